"""Fast Walsh-Hadamard transform: nanoseconds an element against the length.

Beside it two yardsticks of the same run: a pass of ``np.add(t, d, out=t)`` over tables of the
same size, which is what memory allows, and the butterfly written in NumPy. Times are medians;
short transforms are timed in batches, so that the call itself does not count.

The published figures are those of FFHT [1]_ (AVX, Intel i7-6700K, one thread).

.. [1] https://github.com/FALCONN-LIB/FFHT, used by Andoni, Indyk, Laarhoven, Razenshteyn and
   Schmidt (2015), "Practical and optimal LSH for angular distance", NeurIPS 28.
"""

from statistics import median
from time import perf_counter

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_table, report, run_script, save_table

from sklearn_boltz.loglinear import fwht

BATCH = 2**16  # elements
BUDGET = 0.5  # seconds for each figure
FFHT = {
    ("float64", 20): 1.27,
    ("float64", 24): 2.68,
    ("float32", 20): 0.64,
    ("float32", 24): 1.16,
}
COLUMNS = {
    "fwht": "fwht, 1 thread",
    "fwht_2": "fwht, n_jobs=2",
    "add": "np.add(t, d, out=t)",
    "numpy": "NumPy butterfly",
}


def numpy_butterfly(a):
    """The textbook, in place, one stage at a time."""
    h = 1
    while h < a.shape[-1]:
        pairs = a.reshape(-1, 2, h)
        low, high = pairs[:, 0], pairs[:, 1]
        low += high
        high *= -2
        high += low
        h *= 2


def seconds(function, a):
    """Median time of ``function(a)``, after one call to warm up, on fresh values of `a`."""
    times = []
    started = perf_counter()
    while len(times) < 4 or (perf_counter() - started < BUDGET and len(times) < 200):
        a.fill(1)
        start = perf_counter()
        function(a)
        times.append(perf_counter() - start)
    return median(times[1:])


def measure(dtype, levels):
    """Return a row of the table: nanoseconds an element of each contender."""
    a = np.ones((max(1, BATCH >> levels), 2**levels), dtype=dtype)
    d = np.ones_like(a)
    contenders = {
        "fwht": lambda t: fwht(t, overwrite_a=True, n_jobs=1),
        "fwht_2": lambda t: fwht(t, overwrite_a=True, n_jobs=2),
        "add": lambda t: np.add(t, d, out=t),
        "numpy": numpy_butterfly,
    }
    nanoseconds = {name: 1e9 * seconds(f, a) / a.size for name, f in contenders.items()}
    return {"dtype": dtype, "log2_length": levels} | nanoseconds


def cells(row):
    """A row of the table as it is printed."""
    ratios = row["fwht"] / row["add"], row["numpy"] / row["fwht"]
    return [
        f"{row['dtype']} 2^{row['log2_length']}",
        *(f"{row[name]:.2f}" for name in ("fwht", "fwht_2", "add")),
        f"{ratios[0]:.1f}",
        f"{row['numpy']:.2f}",
        f"{ratios[1]:.1f}",
        FFHT.get((row["dtype"], row["log2_length"]), ""),
    ]


def plot(rows, path):
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for panel, dtype in zip(panels, ("float64", "float32"), strict=True):
        mine = [row for row in rows if row["dtype"] == dtype]
        levels = [row["log2_length"] for row in mine]
        for name, label in COLUMNS.items():
            panel.plot(levels, [row[name] for row in mine], "o-", markersize=3, label=label)
        points = [(x, y) for (kind, x), y in FFHT.items() if kind == dtype]
        panel.plot(*zip(*points, strict=True), "k*", label="FFHT, published (i7-6700K)")
        panel.set(title=dtype, xlabel="log2 of the length", yscale="log")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("nanoseconds an element")
    panels[1].legend(fontsize="small")
    figure.savefig(path, dpi=150)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--max-levels", type=int, default=26, help="log2 of the longest transform")
    args = parser.parse_args()
    header = ["", "fwht", "n_jobs=2", "np.add", "fwht/add", "numpy", "numpy/fwht", "FFHT"]
    with report(args.output / "fwht.txt", "Walsh-Hadamard transform: nanoseconds an element"):
        rows = [
            measure(dtype, levels)
            for dtype in ("float64", "float32")
            for levels in range(10, args.max_levels + 1, 2)
        ]
        print_table(header, [cells(row) for row in rows])
    save_table(args.output / "fwht.csv", list(rows[0]), [list(row.values()) for row in rows])
    plot(rows, args.output / "fwht.png")


if __name__ == "__main__":
    run_script(main)
