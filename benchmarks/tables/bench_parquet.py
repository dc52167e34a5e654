"""Tables with gaps in parquet files: memory of fits and of uses, one file after another.

The columns of `bench_seconds.py`, a tenth of the cells missing, in files of 100,000 rows. The
processor seconds, the seconds that pass, and the largest memory of the process besides what was
there before, which should not grow with the rows, except for scores and labels.
"""

import tempfile
import time
import warnings
from pathlib import Path

import _path  # noqa: F401
import numpy as np
import pyarrow.parquet as pq
from _common import make_parser, report, script
from bench_memory import measured
from bench_scale import MIB
from bench_seconds import of_factors

from sklearn_boltz import BoltzmannClassifier, BoltzmannImputer, BoltzmannOutlierDetector
from sklearn_boltz.batches import Batches

FILE_ROWS = 100_000


def write(folder, n_rows):
    """Files of rows with a class; -> the memory of one of them."""
    for k in range(max(n_rows // FILE_ROWS, 1)):
        rng = np.random.default_rng(k)
        table = of_factors(min(n_rows, FILE_ROWS), rng)
        y = table.pop("c14") > 4
        table.mask(rng.random(table.shape) < 0.1).assign(y=y).to_parquet(folder / f"{k:04}.parquet")
    return pq.read_table(folder / "0000.parquet").nbytes


def stages(folder, results):
    """The name and the function of each stage."""
    files = Batches(folder)
    rows = Batches(lambda: (part.drop_columns("y") for part in files))
    pairs = Batches(lambda: ((part.drop_columns("y"), part["y"].to_numpy()) for part in files))
    imputer, detector = BoltzmannImputer(), BoltzmannOutlierDetector(random_state=0)
    classifier = BoltzmannClassifier()

    def fill():
        for k, part in enumerate(rows):
            pq.write_table(imputer.transform(part), results / f"{k:04}.parquet")

    yield "BoltzmannImputer.fit", lambda: imputer.fit(rows)
    yield "BoltzmannImputer.transform", fill
    yield "BoltzmannOutlierDetector.fit", lambda: detector.fit(rows)
    yield "BoltzmannOutlierDetector.predict", lambda: [detector.predict(part) for part in rows]
    yield "BoltzmannClassifier.fit", lambda: classifier.fit(pairs)
    yield "BoltzmannClassifier.predict", lambda: [classifier.predict(part) for part in rows]


def measure(n_rows, names):
    """Write files, and print the results of each stage, or of those with these names."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as results:
        size = write(Path(folder), n_rows)
        print(f"{n_rows:,} rows, {size / MIB:.1f} MiB a file")
        for name, run in stages(Path(folder), Path(results)):
            if not names or name in names:
                used, passed = time.process_time(), time.perf_counter()
                peak = measured(run) / MIB
                used, passed = time.process_time() - used, time.perf_counter() - passed
                print(
                    f"{name:33}{used:5.0f} s, {passed:5.0f} s passed, {peak:5.0f} MiB", flush=True
                )


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--stages", nargs="+", help="all by default; fit is needed for the others")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with report(args.output / "tables_parquet.txt", "Tables with gaps in parquet files"):
        for n_rows in args.rows:
            measure(n_rows, args.stages)
