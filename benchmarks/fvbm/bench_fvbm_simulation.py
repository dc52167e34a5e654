"""The simulation of the BSLM paper: what its estimates are worth.

The mean squared error of the estimates beside the sandwich variance; coverage of the 95 %
intervals. The paper's own figures are in `reproduce/fvbm_figure1.py` and `fvbm_errors.py`.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from sklearn.exceptions import ConvergenceWarning

from fvbm._ising import estimate, machine, random_parameters
from sklearn_boltz import FVBMPseudoLikelihood

N = 16_000
SIZES = (5, 10, 15, 20)


def mean_squared_error(variance, n_sets):
    """n * MSE per parameter beside the sandwich variance, over data sets of one machine."""
    rows = []
    for d in SIZES:
        theta = random_parameters(d, variance, np.random.default_rng(100 + d))
        X = machine(theta, d).sample(N * n_sets, random_state=1).reshape(n_sets, N, d)
        errors, variances, separated = [], [], 0
        for sample in X:
            model = FVBMPseudoLikelihood(alpha=0.0).fit(sample)
            if not model.converged_:
                separated += 1
                continue
            errors.append((estimate(model) - theta) ** 2)
            variances.append(model.inference(sample).std_err ** 2)
        if errors:
            mse, sandwich = N * np.mean(errors), N * np.mean(variances)
            middle = N * np.median(np.mean(errors, axis=0))
            rows.append([d, f"{mse:.2f}", f"{sandwich:.2f}", f"{mse / sandwich:.3f}",
                         f"{middle:.2f}", separated])  # fmt: skip
        else:
            rows.append([d, "-", "-", "-", "-", separated])
    print(f"n * MSE per parameter, variance {variance}, {n_sets} data sets of n = {N}")
    print_table(["d", "n * MSE", "sandwich", "ratio", "median parameter", "without maximum"], rows)


def coverage(d, variance, n_sets, n):
    """Share of the 95 % intervals that cover the truth."""
    theta = random_parameters(d, variance, np.random.default_rng(7))
    X = machine(theta, d).sample(n * n_sets, random_state=2).reshape(n_sets, n, d)
    covered = []
    for sample in X:
        result = FVBMPseudoLikelihood(alpha=0.0).fit(sample).inference(sample)
        covered.append((result.ci_low < theta) & (theta < result.ci_high))
    share = np.mean(covered, axis=0)
    print_check(
        f"coverage, d = {d}, variance {variance}, n = {n}, {n_sets} sets",
        "0.93 to 0.97",
        f"{share.mean():.4f} (single parameters {share.min():.3f} to {share.max():.3f})",
        0.93 <= share.mean() <= 0.97,
    )


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="data sets for the coverage")
    args = parser.parse_args()
    # On strong couplings the ends of fits are what is being looked at.
    warnings.simplefilter("ignore", ConvergenceWarning)
    with report(args.output / "fvbm_simulation.txt", "The simulation of Nguyen and Wood"):
        for variance in (0.01, 0.05, 0.5):
            mean_squared_error(variance, 20)
        for d, n in ((5, 2000), (10, 4000)):
            coverage(d, 0.05, args.sets, n)


if __name__ == "__main__":
    run_script(main)
