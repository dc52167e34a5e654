"""Section 5 of the BSLM paper: the average mean squared error of the estimates.

The mean over the parameters and over five repetitions, each with parameters of its own from
N(0, 0.5), of (estimate - truth)², as the paper defines it. No unbiased estimate of an intercept
or a coupling has a variance below 1/n, since a product of spins has a variance of at most 1 (Fisher
bound): n = 16,000 rows give 6.25e-5, and the printed errors lie far below. So the same is
computed for couplings that are known to be weak, N(0, 0.01), beside the sandwich variance of the
same fits.
"""

import _path  # noqa: F401
import numpy as np
from _bslm import N_ROWS, N_RUNS, SIZES, estimate, machine, random_parameters, sequences
from _common import script
from _reproduction import compare, keep_rows, plt, reproduction, save_picture, settings

from sklearn_boltz import FVBMPseudoLikelihood, statistics

PAPER = dict(zip(SIZES, [2.09e-6, 5.96e-7, 4.64e-7, 2.89e-7], strict=True))
WEAK = 0.01


def weak_errors(d, n_sets):
    """Mean squared error and mean sandwich variance over machines with weak couplings."""
    rng, errors, variances = np.random.default_rng(100 + d), [], []
    for run in range(n_sets):
        theta = random_parameters(d, WEAK, rng)
        X = machine(theta, d).sample(N_ROWS, random_state=run)
        model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
        errors.append(np.mean((estimate(model) - theta) ** 2))
        variances.append(np.mean(statistics.inference(model, X).std_err ** 2))
    return np.mean(errors), np.mean(variances)


def draw(rows, path):
    """The paper's errors, ours, the sandwich and the bound against d."""
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    columns = list(zip(*rows, strict=True))
    for name, k, style in (
        ("paper", 1, "k^-"), ("here, N(0, 0.5), median run", 3, "C0o-"),
        ("here, N(0, 0.01)", 4, "C1o-"), ("sandwich, N(0, 0.01)", 5, "C1--"),
        ("Fisher bound 1/n", 6, "C3:"),
    ):  # fmt: skip
        ax.plot(SIZES, [float(x) for x in columns[k]], style, label=name)
    ax.set(yscale="log", xlabel="variables", ylabel="mean squared error", xticks=SIZES)
    figure.legend(loc="outside upper center", ncols=2, fontsize="small")
    save_picture(figure, path)


@script
def main():
    args = settings(__doc__, full=dict(max_iter=10_000, sets=40), quick=dict(sets=10))
    with reproduction("fvbm_errors", "BSLM, the errors of Section 5", args):
        found, rows = sequences(args.max_iter), []
        for d in SIZES:
            mine = [np.mean((estimate(s.model) - s.theta) ** 2) for s in found if s.d == d]
            ended = sum(s.model.converged_ for s in found if s.d == d)
            weak, sandwich = weak_errors(d, args.sets)
            numbers = [PAPER[d], np.mean(mine), np.median(mine), weak, sandwich, 1 / N_ROWS]
            rows.append([d, *(f"{x:.2e}" for x in numbers), f"{ended} of {N_RUNS}"])
        header = ["d", "paper", "here, N(0, 0.5)", "median run", "here, N(0, 0.01)",
                  "sandwich, N(0, 0.01)", "Fisher bound 1/n", "converged"]  # fmt: skip
        keep_rows(args, header, rows)
        ratios = [float(row[4]) / float(row[5]) for row in rows]
        below = max(PAPER.values()) * N_ROWS
        least = min(float(row[4]) for row in rows) * N_ROWS
        compare(args, [
            ("settings", "5 repetitions, N(0, 0.5)",
             f"the same, {args.max_iter} sweeps at most; N(0, 0.01), {args.sets} sets", None),
            *((f"mean squared error, d = {row[0]}", row[1], row[2],
               0.5 < float(row[2]) / float(row[1]) < 2) for row in rows),
            ("n * MSE, the most in the paper, the least here; bound: 1", f"{below:.3f}",
             f"{least:.2f}", 0.5 < least / below < 2),
            ("MSE by the theory's variance, weak couplings", "conforms",
             f"{min(ratios):.2f} to {max(ratios):.2f}", max(abs(np.log(ratios))) < np.log(1.5)),
        ])  # fmt: skip
    draw(rows, f"{args.stem}.png")
