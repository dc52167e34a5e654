"""Real-valued TAP machines: MNIST grey levels and CBCL faces.

MNIST with truncated Gauss–Bernoulli visible units (a spike for black), CBCL faces (19 × 19) with
truncated Gaussian ones, 100 epochs. Claims: the training is stable throughout, samples stay in
the range, and the held-out TAP log-likelihood ends above that of the best independent units. The
receptive fields and samples are drawn into the folder of results.
"""

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from _data import load_images

from sklearn_boltz import TAPRBM
from sklearn_boltz.inspection import ReceptiveFieldDisplay, SampleDisplay

SETS = {
    "cbcl": dict(
        visible="truncated_gaussian",
        n_components=256,
        batch_size=20,
        learning_rate=0.02,
        alpha=0.01,
    ),
    "mnist": dict(
        visible="truncated_gauss_bernoulli", n_components=100, batch_size=100, learning_rate=0.05
    ),
}


def run(name, X, X_test, args):
    """Train, measure and draw."""
    model = TAPRBM(**SETS[name], warm_start=True, random_state=0)
    independent = TAPRBM(1, visible=model.visible, max_iter=0, weights_init=0.0).fit(X)
    base = independent.tap_log_likelihood(X_test).mean()
    print(f"{name}: {len(X)} rows, {X.shape[1]} pixels, {SETS[name]}")
    print(f"independent units: {base:.1f} nats a test row")
    rows = []
    while (done := getattr(model, "n_iter_", 0)) < args.epochs:
        model.set_params(max_iter=min(args.every, args.epochs - done)).fit(X)
        last = {key: values[-1] for key, values in model.history_.items()}
        rows.append([
            str(model.n_iter_), f"{model.tap_log_likelihood(X_test).mean():.1f}",
            f"{last['n_solutions']:.0f}", f"{last['share_converged']:.2f}",
            f"{model.history_['seconds'].sum():.0f}",
        ])  # fmt: skip
        print(" ".join(rows[-1]))
    print()
    print_table(["epoch", "test TAP log-likelihood", "solutions", "converged", "s"], rows)
    history = model.history_["tap_log_likelihood"]
    samples = model.sample(40, random_state=0, init=X_test[:40], n_steps=200)
    print_check(f"{name}: finite in every epoch", "yes", "yes", bool(np.isfinite(history).all()))
    inside = samples.min() >= 0 and samples.max() <= 1
    spread = f"{samples.min():.3f} … {samples.max():.3f}"
    print_check(f"{name}: samples in range", "0 … 1", spread, inside)
    gain = float(rows[-1][1]) - base
    print_check(f"{name}: above independent units", "> 0", f"{gain:.1f} nats", gain > 0)
    print()
    ReceptiveFieldDisplay.from_estimator(model, n_units=40, order="spread")
    plt.savefig(args.output / f"tap_real_{name}_fields.png", dpi=120)
    SampleDisplay.from_rows({"test": X_test[:20], "denoised": denoised(model, X_test[:20]),
                             "samples": samples[:20]})  # fmt: skip
    plt.savefig(args.output / f"tap_real_{name}_rows.png", dpi=120)


def denoised(model, X):
    """Rows with Gaussian noise of standard deviation 0.2, denoised."""
    noisy = X + np.random.default_rng(0).normal(0, 0.2, X.shape).astype(X.dtype)
    return model.denoise(noisy, noise_variance=0.04)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="epochs between evaluations")
    parser.add_argument("--rows", type=int, default=10000, help="training rows at most")
    args = parser.parse_args()
    sets = {name: load_images(name, args.data, args.rows, 2000)[:2] for name in args.sets}
    with report(args.output / "tap_real.txt", "Real-valued TAP machines"):
        for name, (X, X_test) in sets.items():
            run(name, X, X_test, args)


if __name__ == "__main__":
    run_script(main)
