"""A large table with gaps: a fit of BoltzmannImputer, and the filling of some rows.

The simulated table of 15 columns of `bench_seconds.py`, a tenth of the cells missing. Processor
seconds, those that pass, and the largest memory besides what is there, in sizes of the table that
is fitted or filled. `IterativeImputer`, on codes, is fitted to the rows that are filled, and fills
them.
"""

import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, processor_timed, report, script
from bench_memory import measured
from bench_scale import MIB
from bench_seconds import by_codes, of_factors

from sklearn_boltz import BoltzmannImputer


def figures(title, function, table):
    """A line: processor seconds, seconds that pass, memory."""
    size, start, seconds = table.memory_usage(deep=True).sum(), time.perf_counter(), []
    peak = measured(lambda: seconds.append(processor_timed(function, table)[1]))
    passed = time.perf_counter() - start
    return [title, len(table), seconds[0], passed, size / MIB, peak / size]


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10**6, help="training rows")
    parser.add_argument("--filled", type=int, default=10**5, help="rows that are filled")
    args, rng = parser.parse_args(), np.random.default_rng(0)
    warnings.simplefilter("ignore")
    with report(args.output / "tables_fill.txt", "A large table with gaps, 15 columns"):
        gaps = of_factors(args.rows, rng)
        gaps = gaps.mask(rng.random(gaps.shape) < 0.1)
        some, imputer = gaps[: args.filled], BoltzmannImputer(random_state=0)
        imputer.fit(some[:500]).transform(some[:500])  # modules are loaded
        lines = [figures("fit", imputer.fit, gaps), figures("transform", imputer.transform, some)]
        lines.append(figures("IterativeImputer, both", by_codes, some))
        header = ["", "rows", "processor seconds", "seconds", "table, MiB", "memory, tables"]
        print_table(header, lines, "d,.1f,.1f,.1f,.2f")
        ours, theirs = lines[1][2], lines[2][2]
        print(f"transform, in ratio to IterativeImputer: {ours / theirs:.2f}")
