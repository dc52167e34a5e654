"""Time and memory of FSLLDensity against the number of binary variables.

Claims: 26 variables, 10,000 rows, 40 terms in at most 2 GiB and two minutes; 28 variables
complete; 30 variables complete within 16 GiB with ``dtype="float32"`` (only with ``--full``: it
takes minutes and 9 GiB). Each fit has a process of its own, whose largest resident memory is
measured; it holds two tables of 2^n numbers, and the interpreter with its libraries. The rows
are drawn from a random Bayesian network of that many variables with two parents each.
"""

import json
import subprocess
import sys

import _path  # noqa: F401
from _common import (
    make_parser,
    peak_memory,
    print_check,
    print_table,
    report,
    run_script,
    save_table,
    timed,
)

from sklearn_boltz import FSLLDensity
from sklearn_boltz.datasets import make_bayesian_network

GIB = 2**30
N_SAMPLES, N_TERMS = 10_000, 40
COLUMNS = ["n_features", "dtype", "n_terms", "n_iter", "seconds", "gib_before", "gib_peak"]


def fit(n_features, dtype, n_jobs):
    """In the child: fit, print the figures as JSON."""
    X = make_bayesian_network(n_features, N_SAMPLES, network_state=0, random_state=0)
    model = FSLLDensity(max_basis=N_TERMS, dtype=dtype, n_jobs=n_jobs, n_values=2)
    before = peak_memory()
    _, seconds = timed(model.fit, X)
    sizes = [before / GIB, peak_memory() / GIB]
    figures = [n_features, dtype, len(model.theta_), model.n_iter_, seconds, *sizes]
    print(json.dumps(dict(zip(COLUMNS, figures, strict=True))))


def fit_in_child(n_features, dtype, n_jobs):
    command = [sys.executable, __file__, "--child", str(n_features), dtype, str(n_jobs)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        print(f"{n_features} variables, {dtype}: failed\n{child.stderr[-2000:]}")
        return None
    return json.loads(child.stdout)


def print_checks(kinds, fits):
    for n_features, dtype, gib, limit in (
        (26, "float64", 2, 120),
        (28, "float64", None, None),
        (30, "float32", 16, None),
    ):
        if (n_features, dtype) not in kinds:
            continue
        asked, measured, met = "completes", "failed", False
        asked += f", <= {gib} GiB" * (gib is not None) + f", < {limit} s" * (limit is not None)
        for f in fits:
            if (f["n_features"], f["dtype"]) == (n_features, dtype):
                measured = f"{f['gib_peak']:.2f} GiB, {f['seconds']:.0f} s"
                met = gib is None or f["gib_peak"] <= gib
                met = met and (limit is None or f["seconds"] < limit)
        print_check(f"{n_features} variables, {dtype}", asked, measured, met)


def plot(fits, path):
    # Not at the top: a child has no use for it, and its memory is measured.
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for dtype, marker in (("float64", "o"), ("float32", "s")):
        mine = [f for f in fits if f["dtype"] == dtype]
        n = [f["n_features"] for f in mine]
        panels[0].plot(n, [f["seconds"] for f in mine], marker + "-", label=dtype)
        (line,) = panels[1].plot(n, [f["gib_peak"] for f in mine], marker + "-", label=dtype)
        tables = [2 * int(dtype[-2:]) / 8 * 2**k / GIB for k in n]
        panels[1].plot(n, tables, ":", color=line.get_color(), label=f"two tables of {dtype}")
    panels[0].set(title=f"Fit with at most {N_TERMS} terms, {N_SAMPLES:,} rows", ylabel="seconds")
    panels[1].set(title="Largest memory of the process", ylabel="GiB", ylim=(0.02, 16))
    for panel in panels:
        panel.set(xlabel="binary variables", yscale="log", xticks=range(12, 31, 2))
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="also 30 variables in float32")
    parser.add_argument("--largest", type=int, default=28, help="number of variables to go up to")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--child", nargs=3, metavar=("N", "DTYPE", "JOBS"), help="internal")
    args = parser.parse_args()
    if args.child:
        n_features, dtype, n_jobs = args.child
        fit(int(n_features), dtype, int(n_jobs))
        return
    kinds = [(n, t) for t in ("float64", "float32") for n in range(12, args.largest + 1, 2)]
    kinds += [(30, "float32")] if args.full else []
    with report(args.output / "fsll_scale.txt", f"Scale, n_jobs={args.n_jobs}"):
        fits = [fit_in_child(n, dtype, args.n_jobs) for n, dtype in kinds]
        fits = [f for f in fits if f is not None]
        rows = [[f"{v:.3g}" if isinstance(v, float) else v for v in f.values()] for f in fits]
        print_table(COLUMNS, rows)
        print_checks(kinds, fits)
    save_table(args.output / "fsll_scale.csv", COLUMNS, rows)
    plot(fits, args.output / "fsll_scale.png")


if __name__ == "__main__":
    run_script(main)
