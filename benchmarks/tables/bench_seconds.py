"""Processor seconds of whole fits on real tables, beside imputers by scikit-learn.

A simulated table of 15 columns (numbers, strings, levels) of three factors, with a tenth of the
cells missing, and one of eight kinds of columns; adult and diamonds (the first rows after a
shuffle), a fifth hidden; columns of many strings; wide tables and small ones of numbers.
`IterativeImputer` has the codes of strings, in their order, rounded, and numbers of at most 12
values the nearest of these. On adult and diamonds there are also boosting in two rounds, with its
defaults and with the small trees of `bench_impute.py`, and up to 4,000 rows forests in three. RMSE
in standard deviations of the column; of `BoltzmannImputer`, that of medians, its default.
"""

import warnings
from functools import partial

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, processor_timed, report, script
from _data import load_large, load_numbers
from bench_impute import MOST_LEVELS, WHOLE, levels_of, mixed_boosting, mixed_forests
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from sklearn_boltz import (
    SDCPRBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    SparseFVBM,
)

LARGE = {"adult": (4000, 30162), "diamonds": (1000, 4000, 16000)}
# Rows of forests at most.
MOST_OF_FORESTS = 4000
NUMBERS = ["iris", "wine", "diabetes", "breast_cancer"]
WIDE, STRINGS = [(30, 200), (1000, 100)], [(200, 5000), (641, 5000), (3000, 20_000)]


def of_factors(n_rows, rng, n_columns=15):
    """Six numbers, five strings, four levels, and so on."""
    z, columns = rng.normal(size=(n_rows, 3)), {}
    for j in range(n_columns):
        x, kind = 1.5 * (z[:, j % 3] + rng.normal(size=n_rows)), j % 15
        if 6 <= kind < 11:
            x = np.array(list("abcdefgh"))[np.clip(x + 4, 0, 7).astype(int)]
        columns[f"c{j}"] = x if kind < 11 else np.clip(np.rint(x + 4), 0, 9).astype(int)
    return pd.DataFrame(columns)


def of_codes(n_codes, n_rows, rng):
    """A column of many strings, on which a word and a number depend."""
    code = (n_codes * rng.random(n_rows) ** 1.5).astype(int)
    effect = rng.normal(size=n_codes)[code]
    return pd.DataFrame({
        "code": np.char.add("c", code.astype(str)),
        "word": np.where(effect + rng.normal(size=n_rows) > 0, "a", "b"),
        "number": effect + 0.5 * rng.normal(size=n_rows),
    })  # fmt: skip


def of_wide(n_rows, n_columns, rng):
    """Numbers of five factors."""
    z = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_columns))
    return pd.DataFrame(z + rng.normal(size=z.shape)).add_prefix("x")


def of_kinds(n_rows, rng):
    """Strings (one of 40 levels), numbers, counts, dates and bool of two factors; some missing."""
    x = rng.normal(size=(8, n_rows))
    x += rng.normal(size=(2, n_rows))[[0, 0, 1, 0, 1, 1, 0, 1]]
    ranks = x.argsort(axis=1).argsort(axis=1) / n_rows
    days = pd.to_timedelta((200 * x[6]).round(), unit="D")
    table = pd.DataFrame({
        "city": np.char.add("city", (40 * ranks[0]).astype(int).astype(str)),
        "colour": np.array(list("bgry"))[(4 * ranks[1]).astype(int)],
        "size": np.array(list("sml"))[(3 * ranks[2]).astype(int)],
        "income": np.exp(x[3]), "height": x[4], "visits": rng.poisson(np.exp(x[5] / 2)),
        "since": pd.Timestamp("2020-01-01") + days, "member": x[7] > 0,
    })  # fmt: skip
    for name in ("city", "colour", "income", "visits", "since"):
        table[name] = table[name].mask(rng.random(n_rows) < 0.1)
    return table


def figures(table, filled, hidden):
    """The share of hidden words that are found, and the RMSE of hidden numbers."""
    right, squares = [], []
    for name in table:
        cells, known = table[name][hidden[name]], filled[name][hidden[name]]
        if pd.api.types.is_numeric_dtype(cells) and table[name].nunique() > MOST_LEVELS:
            squares.append(((cells - known) / table[name].std()).to_numpy(float) ** 2)
        else:
            right.append((cells == known.astype(cells.dtype)).to_numpy())
    means = [np.concatenate(some).mean() if some else np.nan for some in (right, squares)]
    return means[0], np.sqrt(means[1])


def by_codes(gaps):
    """`IterativeImputer` on codes, which are rounded."""
    codes, words = gaps.copy(), gaps.columns.difference(gaps.select_dtypes("number").columns)
    for name in words:
        codes[name] = gaps[name].astype("category").cat.codes.replace(-1, np.nan)
    filled = pd.DataFrame(IterativeImputer().fit_transform(codes), columns=gaps.columns)
    for name in words:
        values = gaps[name].astype("category").cat.categories
        filled[name] = values[filled[name].round().clip(0, len(values) - 1).astype(int)]
    for name in gaps.columns.difference(words):
        values = np.unique(gaps[name].dropna())
        if len(values) <= MOST_LEVELS:
            distance = np.abs(filled[name].to_numpy()[:, None] - values)
            filled[name] = values[distance.argmin(axis=1)]
    return filled


def by_trees(method, gaps):
    """The most probable levels, and numbers, of trees in rounds."""
    levels, filled = levels_of(gaps, gaps), gaps.copy()
    for name, values, block in zip(gaps, levels, method(gaps, levels, 0), strict=True):
        if values is None:
            filled[name] = block[:, 0] * gaps[name].std(ddof=0) + gaps[name].mean()
        else:
            filled[name] = values[block.argmax(axis=1)]
    return filled


METHODS = {
    "BoltzmannImputer": lambda gaps: BoltzmannImputer().fit_transform(gaps),
    "IterativeImputer": by_codes,
    "boosting": partial(by_trees, partial(mixed_boosting, settings=WHOLE)),
    "boosting, small trees": partial(by_trees, mixed_boosting),
    "forests": partial(by_trees, mixed_forests),
}


def compare(title, table, share, methods=("BoltzmannImputer", "IterativeImputer")):
    """Lines of imputers."""
    table = table.reset_index(drop=True)
    hidden = table.notna() & (np.random.default_rng(0).random(table.shape) < share)
    for name in methods:
        filled, seconds = processor_timed(METHODS[name], table.mask(hidden))
        yield [title, name, *figures(table, filled, hidden), seconds]


def fits(n_rows, rng):
    """Lines of other fits of the first table."""
    gaps = of_factors(n_rows, rng)
    gaps = gaps.mask(rng.random(gaps.shape) < 0.1)
    for estimator in (FVBMPseudoLikelihood(), BoltzmannOutlierDetector()):
        _, seconds = processor_timed(estimator.fit, gaps)
        yield [f"factors, {n_rows} × 15", type(estimator).__name__, np.nan, np.nan, seconds]


def fits_of_kinds(n_rows, rng):
    """Lines of fits of a table of many kinds of columns."""
    gaps = of_kinds(n_rows, rng)
    for estimator in (
        FVBMPseudoLikelihood(), FSLLDensity(), SparseFVBM(), SDCPRBM(),
        BoltzmannOutlierDetector(), BoltzmannImputer(),
    ):  # fmt: skip
        _, seconds = processor_timed(estimator.fit, gaps)
        yield [f"kinds, {n_rows} × 8", type(estimator).__name__, np.nan, np.nan, seconds]


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest tables alone")
    args, rng, lines = parser.parse_args(), np.random.default_rng(0), []
    warnings.simplefilter("ignore")
    with report(args.output / "tables_seconds.txt", "Processor seconds of fits of tables"):
        for name in NUMBERS[: 1 if args.quick else None]:
            table = load_numbers(name)
            lines += compare(f"{name}, {len(table)} × {table.shape[1]}", table, 0.2)
        if not args.quick:
            lines += [*fits_of_kinds(2000, rng), *fits(2000, rng), *fits(20_000, rng)]
            lines += compare("factors, 20000 × 15", of_factors(20_000, rng), 0.1)
            for n_codes, n_rows in STRINGS:
                table = of_codes(n_codes, n_rows, rng)
                lines += compare(f"{n_codes} strings, {n_rows} × 3", table, 0.1)
            for size in WIDE:
                lines += compare("numbers, {} × {}".format(*size), of_wide(*size, rng), 0.2)
            for name, sizes in LARGE.items():
                table = load_large(name, args.data)
                for n_rows in sizes:
                    title = f"{name}, {n_rows} × {table.shape[1]}"
                    methods = list(METHODS)[: None if n_rows <= MOST_OF_FORESTS else -1]
                    lines += compare(title, table.iloc[:n_rows], 0.2, methods)
        header = ["table", "method", "words right", "RMSE of numbers", "seconds"]
        print_table(header, lines, ",.4f,.3f,.1f")
