"""Missing cells: `BoltzmannImputer` by default beside scikit-learn's means and missForest's.

Of the observed cells of a table, 20 % are hidden at random. How many of them does each method
find? The mode of each column; the mode of the 10 nearest rows that have the cell, by the share of
differing cells among those that both have; scikit-learn's `IterativeImputer` on the codes of the
values in their order, rounded; random forests in three rounds over the columns, 100 trees each, as
in missForest; and `BoltzmannImputer()`, also with the mean of -ln p of the hidden values, where
it knows probabilities. Seconds are those of one core. For example

    python bench_impute.py --data DIR
    python bench_impute.py --data DIR --sets vote soybean --methods BoltzmannImputer

With some of the methods only, the figures of the others are those of the run before.

Claims: above the mode, the neighbours, IterativeImputer and the forests on three tables of four,
and below the neighbours on none.
"""

import csv
import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, save_table
from _data import load_table
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.preprocessing import OneHotEncoder

from sklearn_boltz import BoltzmannImputer
from sklearn_boltz.meta._imputer import MAX_STATES, N_STEPS

SETS = ["vote", "primary_tumor", "soybean", "bfi"]
SHARE, N_NEIGHBORS, N_TREES, N_ROUNDS = 0.2, 10, 100, 3
HEADER = ["table", "method", "seed", "accuracy", "log-loss", "seconds"]


def coded(table):
    """The values of each column in order, and the places of the cells in them; -1 is missing."""
    values = [sorted(set(table[name].dropna())) for name in table]
    codes = np.full(table.shape, -1)
    for j, name in enumerate(table):
        place = {value: code for code, value in enumerate(values[j])}
        codes[:, j] = [place.get(cell, -1) for cell in table[name]]
    return values, codes


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


def modes(gaps, table, seed):
    filled = gaps.copy()
    for j in range(gaps.shape[1]):
        filled[gaps[:, j] < 0, j] = most_frequent(gaps[:, j])
    return filled, None


def neighbors(gaps, table, seed):
    filled, observed = modes(gaps, table, seed)[0], gaps >= 0
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
    return filled, None


def iterative(gaps, table, seed):
    imputer = IterativeImputer(random_state=seed, keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        filled = imputer.fit_transform(np.where(gaps < 0, np.nan, gaps))
    return np.clip(np.rint(filled), 0, gaps.max(axis=0)), None


def forests(gaps, table, seed):
    filled, missing = modes(gaps, table, seed)[0], gaps < 0
    for _ in range(N_ROUNDS):
        for j in np.argsort(missing.sum(axis=0), kind="stable"):
            rows = missing[:, j]
            if not rows.any() or len(set(gaps[~rows, j])) < 2:
                continue
            X = OneHotEncoder(sparse_output=False).fit_transform(np.delete(filled, j, axis=1))
            forest = RandomForestClassifier(N_TREES, random_state=seed, n_jobs=1)
            filled[rows, j] = forest.fit(X[~rows], gaps[~rows, j]).predict(X[rows])
    return filled, None


def boltzmann(gaps, table, seed):
    frame = table.where(gaps >= 0)
    imputer = BoltzmannImputer(random_state=seed).fit(frame)
    return imputer.transform(frame), imputer


METHODS = {
    "mode": modes,
    "10 nearest": neighbors,
    "IterativeImputer": iterative,
    "forests": forests,
    "BoltzmannImputer": boltzmann,
}


def mean_log_loss(imputer, table, gaps, codes, hidden):
    """The mean of -ln p of the hidden values given the observed cells of their rows."""
    frame = imputer._table.encode(table.where(gaps >= 0), "missing")
    p = imputer.estimator_._cell_probabilities(frame, MAX_STATES, N_STEPS, 0)
    # A value that is hidden wherever it occurs is not known to the model.
    n_values = imputer.estimator_.n_values_
    left = imputer._table.encode(table, "missing")[hidden]
    known = ~np.isnan(left)
    places = (np.cumsum(n_values) - n_values)[hidden[1][known]] + left[known].astype(int)
    return -np.log(np.append(p[hidden[0][known], places], np.full((~known).sum(), 1e-9))).mean()


def measure(name, method, seed, table):
    """A row of results."""
    values, codes = coded(table)
    gaps, hidden = hide(codes, seed)
    start = time.process_time()
    filled, imputer = METHODS[method](gaps, table, seed)
    seconds = time.process_time() - start
    log_loss = None
    if imputer is not None:
        log_loss = mean_log_loss(imputer, table, gaps, codes, hidden)
    if not isinstance(filled, np.ndarray):
        filled = coded_like(filled, values)
    accuracy = np.mean(filled[hidden] == codes[hidden])
    log_loss = "" if log_loss is None else f"{log_loss:.4f}"
    return [name, method, str(seed), f"{accuracy:.5f}", log_loss, f"{seconds:.2f}"]


def coded_like(table, values):
    """The places of the cells of a table among the values of its columns."""
    return np.column_stack([
        [values[j].index(cell) for cell in table[name]] for j, name in enumerate(table)
    ])  # fmt: skip


def kept_rows(path, args):
    """Rows of an earlier run which this one does not measure."""
    if not path.is_file():
        return []
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return [row for row in rows if row[0] not in args.sets or row[1] not in args.methods]


def summary(rows, name):
    """Means over the seeds by method: accuracy, log-loss, seconds; and the number of seeds."""
    result = {}
    for method in METHODS:
        mine = [row[3:] for row in rows if row[:2] == [name, method]]
        if mine:
            figures = [[float(x) if x else np.nan for x in row] for row in mine]
            result[method] = [*np.mean(figures, axis=0), len(mine)]
    return result


def tell(rows):
    """Print the means, and what was asked for beside them."""
    found = {name: summary(rows, name) for name in SETS}
    found = {name: of_set for name, of_set in found.items() if of_set}
    lines = []
    for name, of_set in found.items():
        for method, (accuracy, log_loss, seconds, n) in of_set.items():
            loss = "" if np.isnan(log_loss) else f"{log_loss:.3f}"
            lines.append([name, method, f"{accuracy:.4f}", loss, f"{seconds:.2f}", n])
    print_table(["table", "method", "accuracy", "-ln p", "seconds", "seeds"], lines)
    whole = {name: of_set for name, of_set in found.items() if len(of_set) == len(METHODS)}
    best = []
    for name, of_set in whole.items():
        mine = of_set["BoltzmannImputer"]
        others = {method: row for method, row in of_set.items() if method != "BoltzmannImputer"}
        first = max(others, key=lambda method: others[method][0])
        best.append(mine[0] > others[first][0])
        print_check(f"{name}, accuracy", f"> {others[first][0]:.4f} ({first})", f"{mine[0]:.4f}",
                    best[-1])  # fmt: skip
        ratio = mine[2] / others["forests"][2]
        print(f"         {name}, seconds: {ratio:.2f} of the forests'")
    if not whole:
        return
    asked = min(3, len(whole))
    print_check("above all others", f">= {asked} tables", f"{sum(best)} of {len(best)}",
                sum(best) >= asked)  # fmt: skip
    least = min(row["BoltzmannImputer"][0] - row["10 nearest"][0] for row in whole.values())
    print_check("least difference to the neighbours", ">= 0", f"{least:+.4f}", least >= 0)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    args = parser.parse_args()
    path = args.output / "tables_impute.csv"
    tables = {name: load_table(name, args.data) for name in args.sets}
    title = f"{SHARE:.0%} of the observed cells hidden, seconds of one core"
    with report(args.output / "tables_impute.txt", title):
        rows = kept_rows(path, args)
        for name, table in tables.items():
            for method in args.methods:
                for seed in range(args.seeds):
                    rows.append(measure(name, method, seed, table))
                    save_table(path, HEADER, rows)
        tell(rows)


if __name__ == "__main__":
    run_script(main)
