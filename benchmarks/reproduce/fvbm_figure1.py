"""Figure 1 of the BSLM paper: the log-pseudo-likelihood in the course of BSLM.

Five sequences from random starts for each of d = 5, 10, 15, 20 variables; n = 16,000; couplings,
intercepts and starts from N(0, 0.5); tolerance 1e-5. The paper stops nowhere else; here sweeps
end after --max-iter.

H. D. Nguyen, I. A. Wood (2016). "A block successive lower-bound maximization algorithm for the
maximum pseudo-likelihood estimation of fully visible Boltzmann machines". Neural Computation 28.
"""

import _path  # noqa: F401
import numpy as np
from _bslm import SIZES, sequences
from _common import script
from _reproduction import compare, keep_rows, plt, reproduction, save_picture, settings

from sklearn_boltz.inspection import HistoryDisplay

EARLY = 10  # sweeps


def draw(found, file):
    """Values to the left, increases to the right, as in the paper."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for d, ax in zip(SIZES, axes.flat, strict=True):
        for sequence in found:
            if sequence.d == d:
                at, key = np.arange(len(sequence.path)), "log_pseudo_likelihood"
                display = HistoryDisplay(values=sequence.path, key=key, at=at)
                display.plot(show_increase=True, ax=ax, lw=1)
        ax.set(xscale="log", title=f"d = {d}")
        display.increase_ax_.set_ylim(bottom=1e-6)
    save_picture(figure, file)


def row_of(sequence):
    """Figures of one sequence."""
    path = sequence.path
    rises = np.diff(path)
    early = (path[min(EARLY, len(path) - 1)] - path[0]) / (path[-1] - path[0])
    return [sequence.d, sequence.run + 1, sequence.model.n_iter_, f"{rises.min():.1e}",
            f"{early:.3f}", sequence.model.converged_, f"{sequence.seconds:.2f}"]  # fmt: skip


@script
def main():
    args = settings(__doc__, full=dict(max_iter=100_000), quick=dict(max_iter=10_000))
    with reproduction("fvbm_figure1", "BSLM, Figure 1", args):
        found = sequences(args.max_iter)
        rows = [row_of(sequence) for sequence in found]
        header = ["d", "run", "sweeps", "smallest rise, nats a row", f"share after {EARLY} sweeps",
                  "converged", "seconds"]  # fmt: skip
        keep_rows(args, header, rows)
        least, early = min(float(row[3]) for row in rows), min(float(row[4]) for row in rows)
        sweeps = np.array([sequence.model.n_iter_ for sequence in found])
        stopped = (sweeps < args.max_iter).sum()
        converged = sum(sequence.model.converged_ for sequence in found)
        compare(args, [
            ("sweeps at most", "until convergence", str(args.max_iter), None),
            ("the log-pseudo-likelihood never falls", f"{len(found)} of {len(found)} sequences",
             f"{sum(float(row[3]) > -1e-12 for row in rows)} of {len(found)}", least > -1e-12),
            (f"least share of the rise in the first {EARLY} sweeps",
             "most of the increase is early", f"{early:.2f}", early > 0.5),
            ("stops: a sweep raises the sum by less than 1e-5", "rapidly, all",
             f"{stopped} of {len(found)}, median {np.median(sweeps):.0f} sweeps",
             stopped == len(found)),
            ("has a maximum", "", f"{converged} of {len(found)}", None),
        ])  # fmt: skip
    draw(found, f"{args.stem}.png")
