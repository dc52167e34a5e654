"""FVBMPseudoLikelihood: fits against evaluations of np.tanh(X @ M) on the same data.

d = 20, n = 16,000 for couplings of three strengths, by Newton's method and by BSLM; then
d = 100 with inference, and with --large d = 400 by L-BFGS, n = 20,000, simulated by Gibbs.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import (
    interleaved,
    make_parser,
    peak_memory,
    print_check,
    print_table,
    report,
    run_script,
    timed,
)
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fvbm._ising import estimate, machine, matrices, random_parameters
from sklearn_boltz import FVBMPseudoLikelihood

N = 16_000
TOL = 1e-5


def seconds_of_tanh(X, coupling):
    """The fastest of many calls of np.tanh(X @ M), in seconds.

    With one thread of BLAS, as the fit of a small model has: two wait for each other.
    """
    with threadpool_limits(1, user_api="blas"):
        return min(timed(lambda: np.tanh(X @ coupling))[1] for _ in range(200))


def small(repeats):
    """d = 20: default and BSLM, in evaluations of tanh."""
    rows, ratios = [], {"newton": {}, "bslm": {}}
    for variance in (0.5, 0.25, 0.05, 0.01):
        theta = random_parameters(20, variance, np.random.default_rng(1))
        X = machine(theta, 20).sample(N, random_state=0).astype(np.float64)
        coupling, _ = matrices(theta, 20)
        fitted = {
            solver: FVBMPseudoLikelihood(alpha=0.0, solver=solver, tol=TOL) for solver in ratios
        }

        def fit(solver, X=X, fitted=fitted):
            fitted[solver].fit(X)

        functions = [lambda solver=solver: fit(solver) for solver in ratios]
        unit = seconds_of_tanh(X, coupling)
        seconds = interleaved(functions, repeats).min(axis=1)
        for solver, s in zip(ratios, seconds, strict=True):
            model = fitted[solver]
            ratios[solver][variance] = s / unit
            rows.append(
                [variance, len(np.unique(X, axis=0)), solver, model.n_iter_, model.converged_,
                 f"{s * 1e3:.1f}", f"{s / unit:.0f}", f"{s / unit / max(model.n_iter_, 1):.2f}"]
            )  # fmt: skip
    header = ["variance", "distinct rows", "solver", "iterations", "converged", "ms",
              "x tanh(X @ M)", "x per iteration"]  # fmt: skip
    print(f"d = 20, n = {N}, tol {TOL:g}; fastest of {repeats} fits in turn, of 200 tanh(X @ M)")
    print_table(header, rows)
    for solver, asked in (("newton", 40), ("bslm", 150)):
        for variance, ratio in ratios[solver].items():
            print_check(
                f"{solver}, variance {variance}", f"<= {asked} x", f"{ratio:.0f} x", ratio <= asked
            )
    print()


def large(d, n=20_000):
    """One fit, with inference up to d = 100."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=d * (d + 1) // 2) * 0.5 / np.sqrt(d)
    theta[:d] = 0.3 * rng.normal(size=d)
    truth = machine(theta, d)
    X, seconds = timed(truth.sample, n, random_state=0, n_steps=50)
    print(f"d = {d}, n = {n}, {len(theta)} parameters")
    print(f"simulation: {seconds:.1f} s, {seconds / (n * d * 50) * 1e9:.0f} ns a draw of a spin")
    unit = min(timed(np.tanh, X @ truth.coupling_)[1] for _ in range(5))
    model, seconds = timed(FVBMPseudoLikelihood(alpha=0.0).fit, X)
    error = n * np.mean((estimate(model) - theta) ** 2)
    print(
        f"fit: {model.solver_}, {model.n_iter_} iterations, {seconds:.1f} s, "
        f"{seconds / unit:.0f} evaluations of tanh; n * MSE per parameter {error:.2f}; "
        f"peak memory {peak_memory() / 2**30:.2f} GiB"
    )
    if d > 100:
        print()
        return
    inference, more = timed(model.inference, X)
    print(f"inference: {more:.1f} s; peak memory {peak_memory() / 2**30:.2f} GiB")
    covered = np.mean((inference.ci_low < theta) & (theta < inference.ci_high))
    print(f"coverage of the {len(theta)} intervals: {covered:.3f}")
    print_check("fit and inference", "< 60 s", f"{seconds + more:.1f} s", seconds + more < 60)
    print()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--large", action="store_true", help="add d = 400, some minutes")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with report(args.output / "fvbm_speed.txt", "Speed of FVBMPseudoLikelihood"):
        small(args.repeats)
        large(100)
        if args.large:
            large(400)


if __name__ == "__main__":
    run_script(main)
