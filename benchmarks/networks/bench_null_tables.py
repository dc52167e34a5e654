"""Do pairs of columns that do not interact look as if they did? A grid of tables, and edges.

Tables of independent columns: 4 to 30 of them, of 2 to 5 levels, 200 to 4,000 rows. All levels are
as frequent, or one is rare, or all but one are; up to a fifth of the cells are missing, at random,
or half of the cells of some rows. Then the same with edges: chains in which each column repeats the
level of the one before with some probability, two links of .6 and a weak one in turn, so that
columns that are two links apart depend on each other through the one between.

For each kind of tables, with standard errors over the tables: the share of the pairs with p < .05;
of the tables where Holm's method declares an edge; the false discovery rate of Benjamini and
Hochberg's method without and with edges; the share of the weak links that it finds; the share of
the pairs that have too few rows for a test. Rows per free value are those for each feature of a
column's regression on the others. Kinds whose share is above .06 by more than 2.5 standard errors
are listed at the end.

`--beside` takes the CSV file of another run, as of another version, whose figures stand in the
summary, too.
"""

import warnings
from itertools import product

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, read_table, report, save_table, script
from scipy.stats import false_discovery_control

from sklearn_boltz import FVBMPseudoLikelihood, statistics

# Columns and levels, and how many tables of each kind.
SIZES = {(4, 2): 40, (4, 5): 16, (10, 3): 8, (30, 2): 4, (17, 5): 1}
# Rates of the rare levels, and whether all levels but one are rare.
SHAPES = {"even": None, "one .1": (0.1, False), "one .02": (0.02, False), "most .02": (0.02, True)}
ROWS = 200, 1000, 4000
GAPS = {"none": 0, "5 %": 0.05, "20 %": 0.2, "20 % by row": 0.2}
STRONG, LEVEL, MOST = 0.6, 0.05, 0.06
FIGURES = "raw", "Holm", "FDR", "FDR, edges", "power", "too few"
KIND = "columns", "levels", "rates", "rows", "missing"
CORNERS = [
    (4, 2, "one .02", 200, "none"),
    (30, 2, "one .1", 1000, "none"),
    (4, 5, "most .02", 1000, "none"),
    (10, 3, "even", 200, "5 %"),
    (4, 5, "even", 200, "20 % by row"),
]


def rates_of(n_levels, shape):
    """Probabilities of the levels."""
    if SHAPES[shape] is None:
        return np.full(n_levels, 1 / n_levels)
    rate, is_most = SHAPES[shape]
    if is_most:
        return np.append(np.full(n_levels - 1, rate), 1 - (n_levels - 1) * rate)
    return np.append(np.full(n_levels - 1, (1 - rate) / (n_levels - 1)), rate)


def drawn(kind, rng, *, edges):
    """A table, and which pairs have an edge, and a weak one."""
    n_columns, n_levels, shape, n_rows, gaps = kind
    p, weak = rates_of(n_levels, shape), 4 / np.sqrt(n_rows)
    X = rng.choice(n_levels, size=(n_rows, n_columns), p=p).astype(float)
    strengths = np.where(np.arange(1, n_columns) % 3, STRONG, weak) * edges
    for j, strength in enumerate(strengths):
        X[:, j + 1] = np.where(rng.random(n_rows) < strength, X[:, j], X[:, j + 1])
    hidden, share = rng.random(X.shape), GAPS[gaps]
    if "row" in gaps:
        hidden[rng.random(n_rows) > 2 * share] = 1
        share = 0.5
    X[hidden < share] = np.nan
    one, other = np.triu_indices(n_columns, 1)
    is_link = other - one == 1
    strengths = np.where(is_link, strengths[np.minimum(one, n_columns - 2)], 0)
    return X, strengths > 0, strengths == weak


def p_values(X, n_levels, **options):
    """Of all pairs; NaN where there is none."""
    columns = [f"{j}" for j in range(X.shape[1])]
    kind = "binary" if n_levels == 2 else "nominal"
    model = FVBMPseudoLikelihood(columns=kind, **options)
    try:
        with warnings.catch_warnings(action="ignore"):
            found = statistics.inference(model.fit(X), X).pair_p_value()
    except ValueError:  # no pair has a test
        found = np.full((len(columns),) * 2, np.nan)
    return found[np.triu_indices(len(columns), 1)]


def discoveries(p):
    """Which pairs Benjamini and Hochberg's method declares."""
    found, known = np.zeros(len(p), dtype=bool), np.isfinite(p)
    if known.any():
        found[known] = false_discovery_control(p[known]) < LEVEL
    return found


def figures_of(kind, seed):
    """The results of one table and one with edges."""
    null, edge = (
        drawn(kind, np.random.default_rng([seed, kind[3], edges]), edges=edges)
        for edges in (False, True)
    )
    p, q = (p_values(X, kind[1]) for X in (null[0], edge[0]))
    known, (_, is_edge, is_weak), found = np.isfinite(p), edge, discoveries(q)
    return [
        np.mean(p[known] < LEVEL) if known.any() else np.nan,
        known.any() and bool(np.nanmin(p) * known.sum() < LEVEL),
        bool(discoveries(p).any()),
        (found & ~is_edge).sum() / max(found.sum(), 1),
        found[is_weak].mean(),
        1 - known.mean(),
    ]


def measured(kind, share):
    """How many tables, rows per free value, means and standard errors of the figures."""
    n_tables = max(2, round(share * SIZES[kind[:2]]))
    with warnings.catch_warnings(action="ignore"):  # a mean of nothing
        found = np.array([figures_of(kind, seed) for seed in range(n_tables)], dtype=float)
        errors = np.nanstd(found, axis=0, ddof=1) / np.sqrt(np.isfinite(found).sum(axis=0))
        means = np.nanmean(found, axis=0)
    per_value = kind[3] * (1 - GAPS[kind[4]]) / (1 + (kind[0] - 1) * (kind[1] - 1))
    return n_tables, per_value, *means, *errors


def by_way(n_tables):
    """False discovery rates of chains with gaps, by what is done about them."""
    for n_rows, missing in product(ROWS, ("em", "observed")):
        shares = []
        for seed in range(n_tables):
            rng = np.random.default_rng([seed, n_rows])
            X, is_edge, _ = drawn((4, 2, "even", n_rows, "20 %"), rng, edges=True)
            found = discoveries(p_values(X, 2, missing=missing))
            shares.append((found & ~is_edge).sum() / max(found.sum(), 1))
        yield [
            f"{n_rows}",
            missing,
            f"{np.mean(shares):.3f} ± {np.std(shares) / n_tables**0.5:.3f}",
        ]


def kinds(args):
    """All kinds of tables, or corners."""
    if args.quick:
        return CORNERS
    return [
        (*size, *kind)
        for size, *kind in product(SIZES, SHAPES, ROWS, GAPS)
        # Of two levels, one is rare; and the largest tables take too long.
        if (size[1] > 2 or "most" not in kind[0]) and (size[0] * size[1] < 80 or kind[1] < 4000)
    ]


def pooled(rows, k):
    """The mean of a figure over kinds, and its standard error, as text."""
    values, errors = (np.array([row[first + k] for row in rows]) for first in (7, 13))
    known = np.isfinite(values)
    if not known.any():
        return "-"
    error = np.sqrt(np.nansum(errors[known] ** 2)) / known.sum()
    return f"{values[known].mean():.3f} ± {error:.3f}"


def summaries(rows, others):
    """Lines of the summary, for kinds that have something in common; others are of another run."""
    groups = {"all": lambda row: True, "10 rows a value": lambda row: row[6] >= 10}
    for place, of_kind in enumerate(("columns", "levels", "rates", "rows", "missing")):
        for value in dict.fromkeys(row[place] for row in rows):
            groups[f"{of_kind} {value}"] = lambda row, at=place, is_=value: row[at] == is_
    for name, belongs in groups.items():
        runs = [[row for row in run if belongs(row)] for run in (rows, others) if run]
        if runs[0]:
            figures = product(range(len(FIGURES)), runs)
            yield [name, len(runs[0]), *(pooled(run, k) for k, run in figures)]


def numbers(row):
    """A row of a CSV file, its numbers as such."""
    return [int(row[0]), int(row[1]), row[2], int(row[3]), row[4], *map(float, row[5:])]


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="corners of the grid")
    parser.add_argument("--share", type=float, default=1.0, help="share of the tables to draw")
    parser.add_argument("--beside", help="CSV file of another run")
    args = parser.parse_args()
    header = [*KIND, "tables", "rows a value", *FIGURES]
    log = args.output / f"null_tables{'_quick' * args.quick}.txt"
    with report(log, "Tests of pairs in tables of independent columns, and of chains"):
        rows = [[*kind, *measured(kind, args.share)] for kind in kinds(args)]
        save_table(
            log.with_suffix(".csv"), [*header, *(f"{name}, error" for name in FIGURES)], rows
        )
        others = [] if args.beside is None else list(map(numbers, read_table(args.beside)[1]))
        names = [f"{name}{at}" for name in FIGURES for at in ("", ", beside")[: 1 + bool(others)]]
        print_table(["", "kinds", *names], summaries(rows, others))
        high = [row for row in rows if np.any(row[7:11] - 2.5 * np.array(row[13:17]) > MOST)]
        print(f"Above {MOST} by more than 2.5 standard errors: {len(high)} of {len(rows)} kinds.")
        if high:
            shown = [[*map(str, row[:6]), *np.char.mod("%.3f", row[6:13])] for row in high]
            print_table(header, shown)
        print("FDR of chains of 4 columns of 2 levels, 20 % of the cells missing:\n")
        print_table(["rows", "missing=", "FDR"], by_way(max(2, round(100 * args.share))))
