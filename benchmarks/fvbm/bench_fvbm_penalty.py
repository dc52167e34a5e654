"""The penalty that `FVBMPseudoLikelihood` chooses by default, beside none and a grid.

Log pseudo-likelihood of other rows, in nats summed over as many rows as have been fitted: what the
default, no penalty, and the best of nine strengths have less than the best. The best is chosen
by the very test rows, so that nobody has it. Simulated networks, from independent columns to
strong couplings; binary data sets with some or all of their training rows; tables of words, half
of which are test rows. Where there are up to 20 columns, the same of the log-likelihood. The time
is that of the processor, with one thread. For example

    python bench_fvbm_penalty.py
    python bench_fvbm_penalty.py --data DIR --parts sets tables

Claims: over the repetitions of a line, the default is not worse than no penalty by more than two
standard errors of their difference, or by 2 nats in all; and takes at most three times as long.
"""

import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from _data import load_density, load_spikes, load_table, load_votes
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz._threads import limit_blas
from sklearn_boltz.fully_visible.model._spin_model import SpinModel
from sklearn_boltz.fully_visible.sampling._sampling import gibbs_sample

# Columns and repetitions of simulated networks, and rows that are fitted.
SIMULATED = {5: 6, 10: 4, 20: 3, 50: 2}
N_ROWS = 50, 500, 4000, 16_000
N_TEST = 5000
# Couplings of simulated networks: their standard deviation times √d, and the neighbours of a
# column; None for all.
NETWORKS = {
    "none": (0.0, None), "dense, weak": (0.5, None), "dense, strong": (1.5, None),
    "sparse, weak": (0.5, 3), "sparse, strong": (1.5, 3),
}  # fmt: skip
SETS = {
    "nltcs": (100, 500, 2000, 16_181), "plants": (100, 500, 2000, 17_412),
    "baudio": (500, 2000, 15_000), "bnetflix": (500, 2000, 15_000),
    "accidents": (500, 2000, 12_758), "dna": (400, 1600),
}  # fmt: skip
TABLES = {
    "vote": (40, 217),
    "primary_tumor": (40, 169),
    "soybean": (100, 341),
    "alarm": (200, 4000),
}
# λ = α N of the grid, of strengths that are tried on the test rows.
GRID = np.geomspace(0.3, 3e4, 9)
EXACT = 20


def network(d, scale, degree, rng):
    """Couplings and intercepts."""
    n_neighbours = d - 1 if degree is None else degree
    coupling = np.triu(rng.normal(scale=scale / np.sqrt(n_neighbours), size=(d, d)), 1)
    coupling *= rng.random((d, d)) < n_neighbours / (d - 1)
    return coupling + coupling.T, rng.normal(scale=0.3, size=d)


def simulated(rng):
    """Yield a name, and the pairs of rows of each repetition: training rows and test rows."""
    for d, n_sets in SIMULATED.items():
        for kind, shape in NETWORKS.items():
            models = [SpinModel(*network(d, *shape, rng)) for _ in range(n_sets)]
            n_rows = [n for n in N_ROWS if n < 16_000 or d <= 10]
            drawn = [gibbs_sample(m, max(n_rows) + N_TEST, 200, rng) for m in models]
            for n in n_rows:
                yield f"{d} columns, {kind}", [(X[:n], X[-N_TEST:]) for X in drawn]


def sets(folder, names, rng):
    """The same of binary data sets."""
    for name in names:
        if name.startswith("spikes"):
            spikes = rng.permutation(load_spikes(folder)[name])
            train, test, sizes = spikes[:20_000], spikes[-20_000:], (500, 4000, 20_000)
        else:
            train, _, test = load_density(name, folder)
            sizes = SETS.get(name, (len(train),))
        for n in sizes:
            n_sets = 1 if 2 * n > len(train) else 3
            parts = [rng.permutation(train)[:n] for _ in range(n_sets)]
            yield name, [(part, test[:10_000]) for part in parts]


def tables(folder, names, rng):
    """The same of tables of words, of which the numbers of values are told."""
    for name in names:
        table = load_votes(folder) if name == "votes" else load_table(name, folder)
        for n in TABLES.get(name, (len(table) // 2,)):
            order = [rng.permutation(len(table)) for _ in range(5)]
            yield name, [(table.iloc[o[:n]], table.iloc[o[-(len(table) // 2) :]]) for o in order]


def losses(train, test, known):
    """By the default, without a penalty, and of the grid: nats of test rows, and seconds.

    Returns
    -------
    pseudo, exact : ndarray of shape (2 + n_grid,)
        Log pseudo-likelihood and log-likelihood, the mean of the test rows.
    seconds : ndarray of shape (2,)
    alpha : float
    """
    pseudo, exact, seconds, alphas, n = [], [], [], [], len(train)
    for alpha in ["auto", 0.0, *(GRID / n)]:
        model = FVBMPseudoLikelihood(alpha=alpha, unseen="missing", missing="observed", **known)
        start = time.process_time()
        model.fit(train)
        seconds.append(time.process_time() - start)
        pseudo.append(model.log_pseudo_likelihood(test).mean())
        is_small = model.n_features_in_ <= EXACT and model._coding.is_binary
        exact.append(model.score(test) if is_small else np.nan)
        alphas.append(model.alpha_)
    return np.array(pseudo), np.array(exact), seconds[:2], alphas[0]


def line(name, parts, known):
    """What the table tells of one model or set and number of rows; and whether the claims hold."""
    n = len(parts[0][0])
    found = [losses(*part, known) for part in parts]
    pseudo, exact, seconds, alpha = (np.array(part) for part in zip(*found, strict=True))
    row = [name, n, f"{np.median(alpha) * n:.3g}"]
    for value in (pseudo, exact):
        best = value[:, 2:].mean(axis=0).argmax() + 2
        lack = n * (value[:, best][:, None] - value[:, :2]).mean(axis=0)
        row += [f"{x:.1f}" for x in lack] if np.isfinite(lack[0]) else ["", ""]
        row.insert(5, f"{GRID[best - 2]:.3g}") if value is pseudo else None
    ratio = np.median(seconds[:, 0] / seconds[:, 1])
    more = n * (pseudo[:, 0] - pseudo[:, 1])
    error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
    met = more.mean() > -max(2 * error, 2.0)
    return row + [f"{ratio:.2f}"], met, ratio


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--parts", nargs="+", default=["simulated", "sets", "tables"],
                        choices=["simulated", "sets", "tables"])  # fmt: skip
    parser.add_argument("--sets", nargs="+", default=[*SETS, "spikes15", "spikes50"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    rng, rows, missed, ratios = np.random.default_rng(0), [], [], []
    made = {
        "simulated": lambda: simulated(rng),
        "sets": lambda: sets(args.data, args.sets, rng),
        "tables": lambda: tables(args.data, args.tables, rng),
    }
    title = "The default penalty of FVBMPseudoLikelihood: nats behind the best of a grid"
    suffix = "" if len(args.parts) == len(made) else "_" + "_".join(args.parts)
    with report(args.output / f"fvbm_penalty{suffix}.txt", title), limit_blas(1):
        for part in args.parts:
            for name, parts in made[part]():
                row, met, ratio = line(name, parts, {})
                print(*row, flush=True)
                rows.append(row)
                ratios.append(ratio)
                missed += [] if met else [f"{name}, {row[1]} rows"]
        print()
        print_table(
            ["", "rows", "λ", "default", "none", "best λ", "default, likelihood", "none", "time"],
            rows,
        )
        print_check("worse than none", "nowhere", "; ".join(missed) or "nowhere", not missed)
        slowest = max(ratios)
        print_check("time beside none", "≤ 3", f"{np.median(ratios):.2f} (median), {slowest:.2f}",
                    slowest <= 3)  # fmt: skip


if __name__ == "__main__":
    run_script(main)
