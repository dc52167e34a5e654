"""Processor seconds of fits against the rows and against the columns of a table: two curves.

The simulated columns of `bench_seconds.py`, numbers, strings and levels, a tenth of the cells
missing. `BoltzmannImputer` also fills the gaps of the first 10,000 rows, and `IterativeImputer`,
which has codes, those of all rows. A curve ends where the next point would take more than `--most`
seconds, as rows or the square of columns grow.
"""

import warnings

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_table, processor_timed, report, script, unfinished
from bench_seconds import by_codes, of_factors

from sklearn_boltz import BoltzmannImputer, FVBMPseudoLikelihood

METHODS = {
    "FVBMPseudoLikelihood, fit": lambda gaps: FVBMPseudoLikelihood().fit(gaps),
    "BoltzmannImputer": lambda gaps: BoltzmannImputer().fit(gaps).transform(gaps[:FILLED]),
    "IterativeImputer": by_codes,
}
FILLED = 10_000
# The rows of tables of 15 columns, and the columns of tables of 500 rows.
N_COLUMNS, N_ROWS = 15, 500
ROWS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)


def curve(method, tables, power, most):
    """Sizes and seconds, up to a limit."""
    sizes, seconds = [], []
    for size, gaps in tables:
        if sizes and seconds[-1] * (size / sizes[-1]) ** power > most:
            break
        sizes.append(size)
        seconds.append(processor_timed(METHODS[method], gaps)[1])
    return np.array(sizes), np.array(seconds)


def tables(sizes, largest):
    """Tables of some sizes, (rows, columns), with gaps; the number that varies and the table."""
    for n_rows, n_columns in sizes:
        size = n_rows if n_columns == N_COLUMNS else n_columns
        if size <= largest:
            rng = np.random.default_rng(0)
            table = of_factors(n_rows, rng, n_columns)
            yield size, table.mask(rng.random(table.shape) < 0.1)


def draw(curves, path):
    """A panel for rows, one for columns."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for ax, (title, of_methods) in zip(axes, curves.items(), strict=True):
        for method, (sizes, seconds) in of_methods.items():
            ax.loglog(sizes, seconds, marker="o", ms=4, label=method)
        ax.set_xlabel(title)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("processor seconds")
    axes[0].legend()
    fig.savefig(unfinished(path), dpi=110)
    plt.close(fig)


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS[-1], help="rows at most")
    parser.add_argument("--columns", type=int, default=COLUMNS[-1], help="columns at most")
    parser.add_argument("--most", type=float, default=60, help="seconds of a point, about, at most")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    curves = {f"rows, {N_COLUMNS} columns": {}, f"columns, {N_ROWS} rows": {}}
    by_rows, by_columns = curves.values()
    with report(args.output / "tables_curves.txt", "Processor seconds by rows and by columns"):
        METHODS["BoltzmannImputer"](next(tables([(100, N_COLUMNS)], 100))[1])  # modules are loaded
        for method in METHODS:
            sizes = tables([(n, N_COLUMNS) for n in ROWS], args.rows)
            by_rows[method] = curve(method, sizes, 1, args.most)
            sizes = tables([(N_ROWS, n) for n in COLUMNS], args.columns)
            by_columns[method] = curve(method, sizes, 2, args.most)
        for (title, found), sizes in zip(curves.items(), (ROWS, COLUMNS), strict=True):
            lines = []
            for method, (_, seconds) in found.items():
                lines.append([method, *seconds, *[np.nan] * (len(sizes) - len(seconds))])
            print_table([title, *map(str, sizes)], lines, ",".join([".2f"] * len(sizes)))
        draw(curves, args.output / "tables_curves.png")
