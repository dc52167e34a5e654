"""Missing cells: `BoltzmannImputer` beside scikit-learn's means and missForest's.

Of the observed cells of a table, 20 % are hidden at random. Seconds are those of one core.

Words and levels: how many of the hidden cells does each method find? The mode of each column; the
mode of the 10 nearest rows that have the cell, by the share of differing cells among those that
both have; scikit-learn's `IterativeImputer` on the codes of the values in their order, rounded;
random forests in three rounds over the columns, 100 trees each, as in missForest.

Numbers: the root of the mean squared error, in standard deviations of the column. The mean of each
column; the mean of the 10 nearest rows; `IterativeImputer`, whose regressions are linear; the same
with forests of 50 extremely randomised trees in four rounds; `BoltzmannImputer(how="mean")`.
"""

import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_check, print_table, processor_timed, report, run_script
from _data import load_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from sklearn_boltz import BoltzmannImputer

WORDS = ["vote", "primary_tumor", "soybean", "bfi"]
NUMBERS = {
    "iris": load_iris,
    "wine": load_wine,
    "diabetes": load_diabetes,
    "breast_cancer": load_breast_cancer,
}
SHARE, N_NEIGHBORS, N_TREES, N_ROUNDS = 0.2, 10, 100, 3


# Words and levels.


def coded(table):
    """The values of each column in order, and the places of the cells in them; -1 is missing."""
    columns = [pd.Categorical(table[name]) for name in table]
    codes = np.column_stack([column.codes for column in columns]).astype(int)
    return [list(column.categories) for column in columns], codes


def hide(codes, seed):
    """-> codes of which some more are -1, and the rows and columns of these."""
    observed = np.argwhere(codes >= 0)
    order = np.random.default_rng(seed).permutation(len(observed))
    rows, columns = observed[order[: int(SHARE * len(observed))]].T
    gaps = codes.copy()
    gaps[rows, columns] = -1
    return gaps, (rows, columns)


def most_frequent(cells):
    """The most frequent of some codes; 0 where there is none."""
    return int(np.bincount(cells[cells >= 0], minlength=1).argmax())


def modes(gaps, seed):
    filled = gaps.copy()
    for j in range(gaps.shape[1]):
        filled[gaps[:, j] < 0, j] = most_frequent(gaps[:, j])
    return filled


def neighbors(gaps, seed):
    filled, observed = modes(gaps, seed), gaps >= 0
    for i in np.flatnonzero(~observed.all(axis=1)):
        both = observed & observed[i]
        n_both = both.sum(axis=1)
        distance = ((gaps != gaps[i]) & both).sum(axis=1) / np.maximum(n_both, 1)
        distance[n_both == 0] = 1
        order = np.argsort(distance, kind="stable")
        for j in np.flatnonzero(~observed[i]):
            nearest = order[observed[order, j]][:N_NEIGHBORS]
            if len(nearest):
                filled[i, j] = most_frequent(gaps[nearest, j])
    return filled


def iterative(gaps, seed):
    imputer = IterativeImputer(random_state=seed, keep_empty_features=True)
    filled = imputer.fit_transform(np.where(gaps < 0, np.nan, gaps))
    return np.clip(np.rint(filled), 0, gaps.max(axis=0))


def forests(gaps, seed):
    filled, missing = modes(gaps, seed), gaps < 0
    for _ in range(N_ROUNDS):
        for j in np.argsort(missing.sum(axis=0), kind="stable"):
            rows = missing[:, j]
            if not rows.any() or len(set(gaps[~rows, j])) < 2:
                continue
            X = OneHotEncoder(sparse_output=False).fit_transform(np.delete(filled, j, axis=1))
            forest = RandomForestClassifier(N_TREES, random_state=seed, n_jobs=1)
            filled[rows, j] = forest.fit(X[~rows], gaps[~rows, j]).predict(X[rows])
    return filled


METHODS = {
    "mode": modes,
    "10 nearest": neighbors,
    "IterativeImputer": iterative,
    "forests": forests,
}


def words_found(table, method, seed):
    """The share of the hidden cells that a method finds, and its seconds."""
    values, codes = coded(table)
    gaps, hidden = hide(codes, seed)
    if method in METHODS:
        filled, seconds = processor_timed(METHODS[method], gaps, seed)
    else:
        imputer = BoltzmannImputer(random_state=seed)
        frame, seconds = processor_timed(imputer.fit_transform, table.where(gaps >= 0))
        filled = np.column_stack(
            [[values[j].index(cell) for cell in frame[name]] for j, name in enumerate(table)]
        )
    return np.mean(filled[hidden] == codes[hidden]), seconds


def compare_words(sets, n_seeds, folder):
    """Print the means over the seeds, and who is first."""
    lines = []
    for name in sets:
        table, means = load_table(name, folder), {}
        for method in [*METHODS, "BoltzmannImputer"]:
            found = [words_found(table, method, seed) for seed in range(n_seeds)]
            means[method] = np.mean(found, axis=0)
            accuracy, seconds = means[method]
            lines.append([name, method, f"{accuracy:.4f}", f"{seconds:.2f}", n_seeds])
        accuracy, seconds = means.pop("BoltzmannImputer")
        first = max(means, key=lambda method: means[method][0])
        best = means[first][0]
        print_check(
            f"{name}, accuracy", f"> {best:.4f} ({first})", f"{accuracy:.4f}", accuracy > best
        )
        print(f"         {name}, seconds: {seconds / means['forests'][1]:.2f} of the forests'")
    print()
    print_table(["table", "method", "accuracy", "seconds", "seeds"], lines)


# Numbers.


def number_imputers(seed):
    trees = ExtraTreesRegressor(50, min_samples_leaf=3, random_state=seed)
    return {
        "mean": SimpleImputer(),
        "10 nearest": KNNImputer(n_neighbors=10),
        "IterativeImputer": IterativeImputer(max_iter=20, random_state=seed),
        "forests": IterativeImputer(trees, max_iter=4, random_state=seed),
        "BoltzmannImputer": BoltzmannImputer(how="mean", random_state=seed),
    }


def error_of_numbers(X, method, seed):
    """The error in standard deviations, and the seconds."""
    hidden = np.random.default_rng(seed).random(X.shape) < SHARE
    imputer = number_imputers(seed)[method]
    filled, seconds = processor_timed(imputer.fit_transform, np.where(hidden, np.nan, X))
    errors = ((filled - X) / X.std(axis=0))[hidden]
    return np.sqrt(np.mean(errors**2)), seconds


def compare_numbers(n_seeds):
    lines = []
    for name, load in NUMBERS.items():
        X = load().data
        for method in number_imputers(0):
            found = [error_of_numbers(X, method, seed) for seed in range(n_seeds)]
            error, seconds = np.mean(found, axis=0)
            lines.append(
                [f"{name}, {len(X)} × {X.shape[1]}", method, f"{error:.3f}", f"{seconds:.2f}"]
            )
    print_table(["table", "method", "error", "seconds"], lines)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="3 at most for numbers")
    parser.add_argument("--sets", nargs="+", choices=WORDS, default=WORDS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence
    title = f"{SHARE:.0%} of the observed cells hidden, seconds of one core"
    with report(args.output / "tables_impute.txt", title):
        compare_words(args.sets, args.seeds, args.data)
    title = f"{SHARE:.0%} of the cells hidden, errors in standard deviations, seconds of one core"
    with report(args.output / "tables_impute_numbers.txt", title):
        compare_numbers(min(args.seeds, 3))


if __name__ == "__main__":
    run_script(main)
