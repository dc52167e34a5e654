"""Largest memory of a fit and of scores, divided by the memory of the table, for each estimator.

Target: at most four times the table, of 1e5 rows and 20 columns: ten of numbers, four of whole
numbers, four of strings and two of flags, a tenth of the cells missing. Each estimator has a
process of its own and one thread. What the process holds before the fit does not count: the table
itself and the modules. The table is as large as its data frame says, strings included. Fits are
short, as memory does not depend on their length: an epoch, an iteration, two rounds.
"""

import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
from _common import make_parser, report, script
from bench_scale import MIB, Watch

import sklearn_boltz as boltz
from sklearn_boltz.networks.features import _fit

SHORT = {"max_iter": 1, "early_stopping": False, "random_state": 0, "n_jobs": 1}
ESTIMATORS = {
    "FVBMPseudoLikelihood": partial(boltz.FVBMPseudoLikelihood, max_iter=1),
    "SparseFVBM": partial(boltz.SparseFVBM, alpha=0.1, max_iter=1),
    "MaximumEntropy": partial(boltz.MaximumEntropy, max_iter=1, random_state=0),
    "FSLLDensity": partial(boltz.FSLLDensity, max_iter=1),
    "SDCPRBM": partial(boltz.SDCPRBM, 8, **SHORT),
    "TAPRBM": partial(boltz.TAPRBM, 8, **SHORT),
    "TAPDBM": partial(boltz.TAPDBM, (8, 4), pretrain_max_iter=1, **SHORT),
    "InfiniteRBM": partial(
        boltz.InfiniteRBM, max_components=1, n_corrective=1, early_stopping=False, random_state=0
    ),
    "RBMClassifier": partial(boltz.RBMClassifier, 8, **SHORT),
    "BoltzmannClassifier": boltz.BoltzmannClassifier,
    "BoltzmannImputer": boltz.BoltzmannImputer,
    "BoltzmannOutlierDetector": boltz.BoltzmannOutlierDetector,
}
# Of bits only.
OF_BITS = "MaximumEntropy"
# Joint states of all columns in memory.
OF_FEW_COLUMNS = {"FSLLDensity": 5}


def mixed_table(n_rows, rng):
    """Numbers, whole numbers, strings and flags that depend on three classes, with gaps."""
    z, columns = rng.integers(3, size=n_rows), {}
    for j in range(10):
        columns[f"number{j}"] = (j + 1) * z + rng.normal(size=n_rows)
    for j in range(4):
        columns[f"count{j}"] = rng.poisson(2 + j * z).astype(float)
    for j in range(4):
        words = np.array([f"word {k}" for k in range(4 + 2 * j)], dtype=object)
        columns[f"word{j}"] = words[(z + rng.integers(len(words) - 2, size=n_rows))]
    for j in range(2):
        columns[f"flag{j}"] = (rng.random(n_rows) < (1 + z) / 5).astype(object)
    table = pd.DataFrame(columns)
    return table.mask(rng.random(table.shape) < 0.1)


def measured(function, *args):
    """How much memory a call takes at most besides what is there, in bytes."""
    watch = Watch(pause=0.002)
    start = watch.peak
    watch.start()
    function(*args)
    watch.going = False
    watch.join()
    return (watch.peak - start) * MIB


def child(name, n_rows):
    """In a process of its own: fit, score, print the figures as JSON."""
    _fit.N_ROUNDS = _fit.N_AVERAGED = 2  # of the networks of meta-estimators
    rng = np.random.default_rng(0)
    X = mixed_table(n_rows, rng)
    if name == OF_BITS:
        X = (X.filter(like="number") > 1).astype(float).mask(X.filter(like="number").isna())
    X = X.iloc[:, -OF_FEW_COLUMNS.get(name, X.shape[1]) :].copy()
    y = [rng.integers(2, size=n_rows)] if name.endswith("Classifier") else []
    small = ESTIMATORS[name]().fit(X[:500], *(part[:500] for part in y))  # modules are loaded
    use = next(n for n in ("score_samples", "predict", "transform") if hasattr(small, n))
    getattr(small, use)(X[:500])
    table = float(X.memory_usage(deep=True).sum())
    model = ESTIMATORS[name]()
    start = time.perf_counter()
    found = {"table_mib": table / MIB, "fit": measured(model.fit, X, *y) / table}
    middle = time.perf_counter()
    if name == "FVBMPseudoLikelihood":  # of rows that need no chains, for a normalising constant
        use, X = "free_energy", X[X.isna().sum(axis=1) <= 2]
        table = float(X.memory_usage(deep=True).sum())
    found[use] = measured(getattr(model, use), X) / table
    found |= {"fit_s": middle - start, "use_s": time.perf_counter() - middle}
    print(json.dumps(found))


def in_child(name, n_rows):
    command = [sys.executable, "-W", "ignore", __file__, "--child", name, "--rows", str(n_rows)]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    if run.returncode:
        print(f"{name}: failed\n{run.stderr[-2000:]}")
        return None
    return json.loads(run.stdout)


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10**5)
    parser.add_argument("--only", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    parser.add_argument("--child", choices=list(ESTIMATORS), help="internal")
    args = parser.parse_args()
    if args.child:
        child(args.child, args.rows)
        return
    with report(args.output / "memory.txt", "Memory beyond the table, in sizes of the table"):
        for name in args.only:
            found = in_child(name, args.rows)
            if found:
                print(name, {key: round(value, 2) for key, value in found.items()}, flush=True)
