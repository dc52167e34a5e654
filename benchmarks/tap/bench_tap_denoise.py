"""Denoising of 1,000 MNIST test images, pixels > 0.5, with flipped pixels: TAPRBM as a prior.

Matthews correlation of the estimates with the images, beside the best estimate of each pixel
by itself and the nearest of the training images. For example

    python bench_tap_denoise.py --data DIR
    python bench_tap_denoise.py --data DIR --hidden 25 100 500

Claims for 100 hidden units: at least .02 above the pixel by itself at flip probabilities .05,
.1, .2 and .3, and above the nearest image up to .2. A figure has all curves.
"""

import _path  # noqa: F401
import numpy as np
from _baselines import nearest, pixelwise
from _common import make_parser, print_check, print_table, report, run_script, timed
from _data import load_bits
from sklearn.metrics import matthews_corrcoef

from sklearn_boltz import TAPRBM

CLAIMED = [0.05, 0.1, 0.2, 0.3]


def plot(probabilities, curves, path):
    """Save all curves."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, values in curves.items():
        style = "--" if name == "pixel" else "-"
        ax.plot(probabilities, values, style, marker=".", label=name)
    ax.set(xlabel="flip probability", ylabel="Matthews correlation", ylim=(0, 1))
    ax.legend()
    figure.savefig(path, dpi=150)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", default=[100])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--neighbours", type=int, default=20000, help="training images to search")
    parser.add_argument(
        "--p", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, X_test = load_bits("mnist", args.data, n_test_rows=args.images)
    title = f"MNIST > 0.5, {args.images} test images, {args.epochs} epochs"
    with report(args.output / "tap_denoise.txt", title):
        models = {}
        for n in args.hidden:
            model = TAPRBM(n, learning_rate=args.rate, max_iter=args.epochs, random_state=args.seed)
            models[f"TAP-{n}"], seconds = timed(model.fit, X)
            print(f"{n} hidden units: fitted in {seconds:.0f} s")
        rng = np.random.default_rng(args.seed)
        curves = {name: [] for name in ["pixel", "1-NN", *models]}
        for p in args.p:
            Y = np.where(rng.random(X_test.shape) < p, 1 - X_test, X_test).astype(np.float32)
            estimates = {"pixel": pixelwise(X, Y, p), "1-NN": nearest(X[: args.neighbours], Y)}
            for name, model in models.items():
                estimates[name], seconds = timed(model.denoise, Y, p)
                print(f"p = {p:g}: {name} {seconds:.1f} s")
            for name, estimate in estimates.items():
                score = matthews_corrcoef(X_test.ravel() > 0.5, estimate.ravel() > 0.5)
                curves[name].append(score)
        print()
        rows = zip(*curves.values(), strict=True)
        rows = [[f"{p:g}", *(f"{x:.3f}" for x in row)] for p, row in zip(args.p, rows, strict=True)]
        print_table(["p", *curves], rows)
        plot(args.p, curves, args.output / "tap_denoise.png")
        for p in [p for p in CLAIMED if p in args.p and "TAP-100" in curves]:
            k = args.p.index(p)
            gain = curves["TAP-100"][k] - curves["pixel"][k]
            print_check(f"above the pixel at p = {p:g}", ">= 0.02", f"{gain:.3f}", gain >= 0.02)
            if p <= 0.2:
                gain = curves["TAP-100"][k] - curves["1-NN"][k]
                print_check(f"above 1-NN at p = {p:g}", "> 0", f"{gain:.3f}", gain > 0)


if __name__ == "__main__":
    run_script(main)
