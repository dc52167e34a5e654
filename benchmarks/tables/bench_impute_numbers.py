"""Missing numbers: `BoltzmannImputer(how="mean")` beside scikit-learn's imputers.

Of the cells of four tables of scikit-learn, 20 % are hidden at random. How far from them are the
numbers that each method fills in? The root of the mean squared error, in standard deviations of the
column; seconds are those of one core. Peers: the mean of each column; the mean of the 10 nearest
rows; `IterativeImputer`, whose regressions are linear; the same with forests of 50 extremely
randomised trees in four rounds, in the manner of missForest. For example

    python bench_impute_numbers.py
    python bench_impute_numbers.py --sets iris wine --seeds 1

Claim: nearer than the means and the 10 nearest rows on three tables of four.
"""

import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, save_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from sklearn_boltz import BoltzmannImputer

SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "diabetes": load_diabetes,
    "breast_cancer": load_breast_cancer,
}
SHARE = 0.2


def forests(seed):
    trees = ExtraTreesRegressor(50, min_samples_leaf=3, random_state=seed)
    return IterativeImputer(trees, max_iter=4, random_state=seed)


METHODS = {
    "mean": lambda seed: SimpleImputer(),
    "10 nearest": lambda seed: KNNImputer(n_neighbors=10),
    "IterativeImputer": lambda seed: IterativeImputer(max_iter=20, random_state=seed),
    "forests": forests,
    "BoltzmannImputer": lambda seed: BoltzmannImputer(how="mean", random_state=seed),
}


def measure(X, method, seed):
    """The error in standard deviations, and the seconds."""
    hidden = np.random.default_rng(seed).random(X.shape) < SHARE
    gaps = np.where(hidden, np.nan, X)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        filled = METHODS[method](seed).fit_transform(gaps)
    seconds = time.process_time() - start
    errors = ((filled - X) / X.std(axis=0))[hidden]
    return np.sqrt(np.mean(errors**2)), seconds


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    args = parser.parse_args()
    title = f"{SHARE:.0%} of the cells hidden, errors in standard deviations, seconds of one core"
    with report(args.output / "tables_impute_numbers.txt", title):
        lines, nearer = [], []
        for name in args.sets:
            X, means = SETS[name]().data, {}
            for method in METHODS:
                found = [measure(X, method, seed) for seed in range(args.seeds)]
                means[method], seconds = np.mean(found, axis=0)
                lines.append([f"{name}, {len(X)} × {X.shape[1]}", method, f"{means[method]:.3f}",
                              f"{seconds:.2f}", args.seeds])  # fmt: skip
                print(*lines[-1], flush=True)
            mine = means["BoltzmannImputer"]
            nearer.append(mine < min(means["mean"], means["10 nearest"]))
        header = ["table", "method", "error", "seconds", "seeds"]
        save_table(args.output / "tables_impute_numbers.csv", header, lines)
        print()
        print_table(header, lines)
        asked = min(3, len(nearer))
        print_check("nearer than means and 10 nearest rows", f">= {asked} tables",
                    f"{sum(nearer)} of {len(nearer)}", sum(nearer) >= asked)  # fmt: skip


if __name__ == "__main__":
    run_script(main)
