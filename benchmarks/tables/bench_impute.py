"""Missing cells: `BoltzmannImputer` beside scikit-learn's means and missForest's.

Of the observed cells of a table, 20 % are hidden at random. Seconds are those of one core.

Words and levels: how many of the hidden cells does each method find? The mode of each column; the
mode of the 10 nearest rows that have the cell, by the share of differing cells among those that
both have; scikit-learn's `IterativeImputer` on the codes of the values in their order, rounded;
random forests in three rounds over the columns, 100 trees each, as in missForest.
`BoltzmannImputer` fills modes, too.

Words and numbers: columns of at most 12 different values count as categories. The share of their
hidden cells that is found, and the mean of -ln p of the right category, with p mixed with 1/1000 of
equal ones; of numbers the root of the mean squared error, in standard deviations of the column.
Neighbours and `IterativeImputer` have one-hot columns of strings and standardised numbers; forests
have 60 trees, and p is their votes. Histogram gradient boosting in two rounds has 50 trees of four
leaves for each class, and a rate of 0.08: chosen among seven settings by the hidden cells of wage,
chile and yrbss, as the defaults overfit. `BoltzmannImputer` computes p twice: to fill, and for this
table.

Pooled means: of simulated rows, a number and a word are missing in 30 or 45 % of the rows, the more
often the greater another number is. Ten imputations, from one fit or each from a fit of bootstrap
rows; 95 % intervals of the means by Rubin's rules. The share of the intervals with the true mean.
"""

import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_check, print_table, processor_timed, report, script
from _data import load_mixed, load_numbers, load_table
from scipy.stats import t
from sklearn import ensemble as trees
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from sklearn_boltz import BoltzmannImputer

WORDS = ["vote", "primary_tumor", "soybean", "bfi"]
NUMBERS = ["iris", "wine", "diabetes", "breast_cancer"]
MIXED = ["wage", "yrbss", "chile", "attrition", "happiness", "nhefs"]
SHARE, N_NEIGHBORS, N_TREES, N_ROUNDS = 0.2, 10, 100, 3
MOST_LEVELS, N_FEW_TREES, LEAST = 12, 60, 1e-3
# Early stopping would need two rows of each class.
N_BOOSTED_ROUNDS = 2
WHOLE = {"early_stopping": False}
BOOSTING = {"max_iter": 50, "learning_rate": 0.08, "max_leaf_nodes": 4, **WHOLE}


def hide(table, seed):
    """Which cells are hidden."""
    observed = np.argwhere(table.notna().to_numpy())
    order = np.random.default_rng(seed).permutation(len(observed))
    hidden = np.zeros(table.shape, dtype=bool)
    hidden[tuple(observed[order[: int(SHARE * len(observed))]].T)] = True
    return hidden


def forests_in_rounds(gaps, levels, filled, n_trees, seed):
    """Numbers, or the shares of trees for each level, of all columns.

    `filled` has them at first, of whole levels or not, and in the end whole ones.
    """
    shares, missing = [block.copy() for block in filled], gaps.isna().to_numpy()
    for _ in range(N_ROUNDS):
        for j in np.argsort(missing.sum(axis=0), kind="stable"):
            rows, values = missing[:, j], levels[j]
            if not rows.any():
                continue
            X, y = np.hstack(filled[:j] + filled[j + 1 :]), filled[j][:, 0]
            kind = trees.RandomForestRegressor if values is None else trees.RandomForestClassifier
            y = y if values is None else filled[j].argmax(axis=1)
            forest = kind(n_trees, random_state=seed).fit(X[~rows], y[~rows])
            if values is None:
                shares[j][rows, 0] = filled[j][rows, 0] = forest.predict(X[rows])
            else:
                shares[j][np.ix_(rows, forest.classes_)] = forest.predict_proba(X[rows])
                filled[j][rows] = np.eye(len(values))[shares[j][rows].argmax(axis=1)]
    return shares


# Words and levels, as places in the order of their column's values; -1 is missing.


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
    filled, levels = modes(gaps, seed), [np.unique(codes[codes >= 0]) for codes in gaps.T]
    blocks = [np.equal.outer(*pair).astype(float) for pair in zip(filled.T, levels, strict=True)]
    frame = pd.DataFrame(gaps).mask(gaps < 0)
    blocks = forests_in_rounds(frame, levels, blocks, N_TREES, seed)
    places = [block.argmax(axis=1) for block in blocks]
    return np.column_stack([own[at] for own, at in zip(levels, places, strict=True)])


METHODS = {
    "mode": modes,
    "10 nearest": neighbors,
    "IterativeImputer": iterative,
    "forests": forests,
}


def words_found(table, method, seed):
    """The share of the hidden cells that a method finds, and its seconds."""
    hidden = hide(table, seed)
    if method in METHODS:
        right = np.column_stack([pd.Categorical(table[name]).codes for name in table]).astype(int)
        filled, seconds = processor_timed(METHODS[method], np.where(hidden, -1, right), seed)
    else:
        imputer = BoltzmannImputer(how="mode", random_state=seed)
        filled, seconds = processor_timed(imputer.fit_transform, table.mask(hidden))
        filled, right = filled.to_numpy(), table.to_numpy()
    return np.mean(filled[hidden] == right[hidden]), seconds


def compare_words(sets, n_seeds, folder):
    """Print the means over the seeds, and who is first."""
    lines = []
    for name in sets:
        table, means = load_table(name, folder), {}
        for method in [*METHODS, "BoltzmannImputer"]:
            found = [words_found(table, method, seed) for seed in range(n_seeds)]
            means[method] = np.mean(found, axis=0)
            lines.append([name, method, *means[method], n_seeds])
        accuracy, seconds = means.pop("BoltzmannImputer")
        first = max(means, key=lambda method: means[method][0])
        best = means[first][0]
        print_check(
            f"{name}, accuracy", f"> {best:.4f} ({first})", f"{accuracy:.4f}", accuracy > best
        )
        print(f"         {name}, seconds: {seconds / means['forests'][1]:.2f} of the forests'")
    print()
    print_table(["table", "method", "accuracy", "seconds", "seeds"], lines, ",.4f,.2f")


# Words and numbers: of each column either numbers, or shares of its values in order.


def levels_of(table, gaps):
    """The values of words and of numbers of few values, in order; None for other numbers."""
    numbers = table.select_dtypes("number").columns
    few = [name not in numbers or table[name].nunique() <= MOST_LEVELS for name in table]
    return [np.unique(gaps[name].dropna()) if is_few else None
            for name, is_few in zip(table, few, strict=True)]  # fmt: skip


def blocks_of(gaps, levels):
    """Standardised numbers, or one-hot values; NaN where a cell is missing."""
    blocks = []
    for name, values in zip(gaps, levels, strict=True):
        if values is None:
            numbers = gaps[name].to_numpy(float)[:, None]
            blocks.append((numbers - np.nanmean(numbers)) / np.nanstd(numbers))
        else:
            codes = pd.Categorical(gaps[name], values).codes
            blocks.append(np.where(codes[:, None] < 0, np.nan, np.eye(len(values))[codes]))
    return blocks


def with_imputer(make):
    def fill(gaps, levels, seed):
        # The share of the last value follows from the others.
        blocks = [block[:, : max(block.shape[1] - 1, 1)] for block in blocks_of(gaps, levels)]
        filled = make(seed).fit_transform(np.hstack(blocks))
        parts = np.split(filled, np.cumsum([block.shape[1] for block in blocks])[:-1], axis=1)
        many = [values is not None and len(values) > 1 for values in levels]
        return [np.column_stack([part, 1 - part.sum(axis=1)]) if is_one else part
                for part, is_one in zip(parts, many, strict=True)]  # fmt: skip

    return fill


def mixed_forests(gaps, levels, seed):
    blocks = blocks_of(gaps, levels)
    filled = [np.where(np.isnan(block), np.nanmean(block, axis=0), block) for block in blocks]
    return forests_in_rounds(gaps, levels, filled, N_FEW_TREES, seed)


def mixed_boosting(gaps, levels, seed, settings=BOOSTING):
    """Trees see values as their places in the order, and at first a missing cell as such."""
    pairs = zip(blocks_of(gaps, levels), levels, strict=True)
    X = np.column_stack([
        block[:, 0] if values is None else np.where(np.isnan(block[:, 0]), np.nan, block.argmax(1))
        for block, values in pairs
    ])  # fmt: skip
    missing, strings = np.isnan(X), ~gaps.columns.isin(gaps.select_dtypes("number").columns)
    filled = [np.zeros((len(gaps), 1 if values is None else len(values))) for values in levels]
    for _ in range(N_BOOSTED_ROUNDS):
        for j, values in enumerate(levels):
            rows, others = missing[:, j], np.delete(X, j, axis=1)
            kind = trees.HistGradientBoostingRegressor
            kind = kind if values is None else trees.HistGradientBoostingClassifier
            model = kind(**settings, categorical_features=np.delete(strings, j), random_state=seed)
            model.fit(others[~rows], X[~rows, j])
            if values is None:
                filled[j][rows, 0] = X[rows, j] = model.predict(others[rows])
            else:
                filled[j][rows] = model.predict_proba(others[rows])
                X[rows, j] = filled[j][rows].argmax(axis=1)
    return filled


def mixed_boltzmann(gaps, levels, seed):
    imputer = BoltzmannImputer(how="mean", random_state=seed).fit(gaps)
    filled, found, shares = imputer.transform(gaps), imputer.predict_cell_proba(gaps), []
    for name, values in zip(gaps, levels, strict=True):
        if values is None:
            numbers = filled[[name]].to_numpy(float)
            shares.append((numbers - gaps[name].mean()) / gaps[name].std(ddof=0))
        else:
            shares.append(np.zeros((len(gaps), len(values))))
            shares[-1][found[name].rows] = found[name].probabilities
    return shares


MIXED_METHODS = {
    "mode, mean": with_imputer(lambda seed: SimpleImputer()),
    "10 nearest": with_imputer(lambda seed: KNNImputer(n_neighbors=N_NEIGHBORS)),
    "IterativeImputer": with_imputer(lambda seed: IterativeImputer(random_state=seed)),
    "forests": mixed_forests,
    "boosting": mixed_boosting,
    "BoltzmannImputer": mixed_boltzmann,
}


def mixed_figures(table, method, seed):
    """Share of categories found, their -ln p, the error of numbers, seconds."""
    hidden = hide(table, seed)
    numbers = {name: float for name in table.select_dtypes("number")}
    gaps = table.astype(numbers).mask(hidden)
    levels = levels_of(table, gaps)
    filled, seconds = processor_timed(MIXED_METHODS[method], gaps, levels, seed)
    right, losses, errors = [], [], []
    for j, name in enumerate(table):
        rows, block = hidden[:, j], filled[j][hidden[:, j]]
        if levels[j] is None:
            true = (table[name] - gaps[name].mean())[rows] / gaps[name].std(ddof=0)
            errors.extend(block[:, 0] - true)
            continue
        codes = pd.Categorical(table[name], levels[j]).codes[rows]
        p = np.maximum(block, 0) / np.maximum(np.maximum(block, 0).sum(axis=1), 1e-9)[:, None]
        p = np.where(codes < 0, 0, p[np.arange(len(p)), codes])
        right.extend(block.argmax(axis=1) == codes)
        losses.extend(-np.log((1 - LEAST) * p + LEAST / len(levels[j])))
    return np.mean(right), np.mean(losses), np.sqrt(np.mean(np.square(errors))), seconds


def compare_mixed(sets, n_seeds, folder):
    lines = []
    for name in sets:
        table = load_numbers(name) if name in NUMBERS else load_mixed(name, folder)
        for method in MIXED_METHODS:
            found = [mixed_figures(table, method, seed) for seed in range(n_seeds)]
            size = f"{name}, {len(table)} × {table.shape[1]}"
            lines.append([size, method, *np.mean(found, axis=0)])
    header = ["table", "method", "categories", "-ln p", "numbers", "seconds"]
    print_table(header, lines, ",.4f,.3f,.3f,.1f")


# Pooled means.

N_TABLES, MEAN = 10, 10.0


def simulated(n_rows, share, rng):
    """A table, half of whose words are "yes", with gaps in the number y and in the words b."""
    x, group = rng.normal(size=n_rows), rng.integers(3, size=n_rows)
    y = MEAN + 1.5 * x + np.array([0.0, 1.0, -1.0])[group] + rng.normal(size=n_rows)
    b = rng.random(n_rows) < 1 / (1 + np.exp(-x - (group == 1) + (group == 2)))
    table = pd.DataFrame({"x": x, "group": np.array(list("abc"))[group], "y": y,
                          "b": np.where(b, "yes", "no")})  # fmt: skip
    for name in ("y", "b"):
        table.loc[rng.random(n_rows) < 2 * share / (1 + np.exp(-x)), name] = None
    return table


def imputations(way, table, rng):
    if way == "of one fit":
        return BoltzmannImputer(random_state=0).fit(table).multiple_imputations(table, N_TABLES)
    n, tables = len(table), []
    for seed in range(N_TABLES):
        weights = rng.multinomial(n, np.full(n, 1 / n))
        imputer = BoltzmannImputer(how="sample", random_state=seed)
        tables.append(imputer.fit(table, sample_weight=weights).transform(table))
    return tables


def intervals(tables):
    """Of the means of y and of b, by Rubin's rules: (2,) each."""
    columns = [np.column_stack([table["y"], table["b"] == "yes"]) for table in tables]
    within = np.mean([cells.var(axis=0, ddof=1) / len(cells) for cells in columns], axis=0)
    means = np.mean(columns, axis=1)
    between = (1 + 1 / len(tables)) * means.var(axis=0, ddof=1)
    freedom = (len(tables) - 1) * (1 + within / between) ** 2
    half = t.ppf(0.975, freedom) * np.sqrt(within + between)
    return means.mean(axis=0) - half, means.mean(axis=0) + half


def compare_pooled(n_runs):
    lines, true = [], np.array([MEAN, 0.5])
    for n_rows, share in ((100, 0.45), (200, 0.3)):
        for way in ("of one fit", "of bootstrap rows"):
            inside = []
            for seed in range(n_runs):
                rng = np.random.default_rng(seed)
                low, high = intervals(imputations(way, simulated(n_rows, share, rng), rng))
                inside.append((low < true) & (true < high))
            lines.append([n_rows, share, way, *np.mean(inside, axis=0), n_runs])
    print_table(["rows", "missing", "imputations", "number", "word", "runs"], lines, ",,.3f,.3f")


@script
def main():
    parser = make_parser(__doc__, seeds=5)
    parser.add_argument("--sets", nargs="*", choices=WORDS, default=WORDS)
    parser.add_argument("--mixed", nargs="*", choices=MIXED + NUMBERS, default=MIXED + NUMBERS)
    parser.add_argument("--runs", type=int, default=400, help="of pooled means; 0 for none")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence
    title = f"{SHARE:.0%} of the observed cells hidden, seconds of one core"
    if args.sets:
        with report(args.output / "tables_impute.txt", title):
            compare_words(args.sets, args.seeds, args.data)
    if args.mixed:
        with report(args.output / "tables_impute_mixed.txt", title):
            compare_mixed(args.mixed, min(args.seeds, 2), args.data)
    if args.runs:
        title = "Coverage of 95 % intervals of means, by Rubin's rules from ten imputations"
        with report(args.output / "tables_impute_pooled.txt", title):
            compare_pooled(args.runs)
