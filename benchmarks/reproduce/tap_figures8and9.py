"""Figures 8 and 9 of the TAP paper: denoising binary MNIST with machines of four sizes.

Matthews correlation against the flip probability, beside the best estimate of each pixel by
itself (OPE) and the nearest training image (1-NN); and all estimates of one digit.

E. W. Tramel et al. (2018), see `tap_figures3to7.py`.
"""

from functools import partial

import _path  # noqa: F401
import numpy as np
from _baselines import nearest, pixelwise
from _common import script, unconverged_is_fine
from _data import load_bits
from _reproduction import compare, keep_rows, kept, plt, reproduction, save_picture, settings
from sklearn.metrics import matthews_corrcoef

from sklearn_boltz import TAP, TAPRBM


def estimates(models, X, Y, p, args):
    """Of the images of which Y are noisy observations; by name."""
    with unconverged_is_fine():
        denoised = {
            f"TAP-{n}": model.denoise(Y, p, max_iter=args.most) for n, model in models.items()
        }
    return {"pixel": pixelwise(X, Y, p), "1-NN": nearest(X[: args.neighbours], Y)} | denoised


def seconds_of(model):
    return model.history_["seconds"].sum()


def flip(X, p, rng):
    return np.where(rng.random(X.shape) < p, 1 - X, X).astype(np.float32)


def all_curves(probabilities, curves, path):
    """Figure 8."""
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, values in curves.items():
        style = "--" if name == "pixel" else "-"
        ax.plot(probabilities, values, style, marker=".", label=name)
    ax.set(xlabel="flip probability", ylabel="Matthews correlation", ylim=(0, 1))
    ax.legend()
    save_picture(figure, path)


def one_digit(models, X, image, args, path):
    """Figure 9."""
    grid = {}
    for p in args.shown:
        noisy = flip(image[None], p, np.random.default_rng(1))
        for name, rows in ({"observed": noisy} | estimates(models, X, noisy, p, args)).items():
            grid.setdefault(name, []).append(rows[0])
    figure, axes = plt.subplots(len(grid), len(args.shown), layout="constrained",
                                figsize=(0.95 * len(args.shown), len(grid)))  # fmt: skip
    for row, (name, images) in zip(axes, grid.items(), strict=True):
        for ax, pixels in zip(row, images, strict=True):
            ax.imshow(pixels.reshape(28, 28), cmap="Greys", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, p in zip(axes[0], args.shown, strict=True):
        ax.set_title(f"p = {p:g}", fontsize="medium")
    save_picture(figure, path)


def claims(curves, args):
    """What the paper says of its figures."""
    at = np.array(args.p)
    pixel, near = (np.array(curves[name]) for name in ("pixel", "1-NN"))
    better = at[near > pixel].min() if (near > pixel).any() else np.nan
    rows = [
        ("settings", "60,000 rows, 100 epochs, 1,000 images",
         f"{args.rows:,} rows, {args.epochs} epochs, {args.images:,} images", None),
        ("1-NN is better than each pixel by itself", "for p > 0.2", f"from p = {better:g}",
         0.1 < better < 0.3),
    ]  # fmt: skip
    between = (at > 0) & (at <= 0.4)
    for n in args.hidden:
        curve = np.array(curves[f"TAP-{n}"])
        above = (curve > pixel)[between]
        rows.append((f"{n} units, p from {at[between][0]:g} to 0.4: above each pixel by itself",
                     "at low p only" if n == 500 else "always",
                     f"{above.sum()} of {len(above)} points",
                     bool(above[0] and not above.all() if n == 500 else above.all())))  # fmt: skip
    if at[0] == 0:
        least = min(curves[f"TAP-{n}"][0] for n in args.hidden)
        rows.append(("p = 0: the true image is recovered", "in every case", f"{least:.3f}",
                     least > 0.9995))  # fmt: skip
    last = {name: values[-1] for name, values in curves.items()}
    rows.append((f"p = {at[-1]:g}: TAP and 1-NN", "close to each other",
                 ", ".join(f"{last[f'TAP-{n}']:.2f}" for n in args.hidden)
                 + f"; {last['1-NN']:.2f}",
                 all(abs(last[f"TAP-{n}"] - last["1-NN"]) < 0.1 for n in args.hidden)))  # fmt: skip
    return rows


@script
def main():
    p = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    args = settings(
        __doc__,
        full=dict(rows=60_000, hidden=[25, 50, 100, 500], epochs=100, rate=0.005, images=1000,
                  neighbours=60_000, p=p, shown=p, most=1000, jobs=1),
        quick=dict(rows=8_000, epochs=5, rate=0.05, images=100, neighbours=8_000, most=200,
                   p=p[::2], shown=p[::2]),
    )  # fmt: skip
    X, X_test = load_bits("mnist", args.data, args.rows, args.images)
    with reproduction("tap_figures8and9", "TAP, Figures 8 and 9", args):
        models = {}
        for n in args.hidden:
            model = TAPRBM(n, inference=TAP(max_iter=10, n_gibbs=0), learning_rate=args.rate,
                           max_iter=args.epochs, init=0.01, n_jobs=args.jobs,
                           random_state=0)  # fmt: skip
            name = f"tap_{n}_{args.rows}_{args.rate}_{args.epochs}"  # figure 12 has the largest
            with unconverged_is_fine():
                models[n] = kept(args, name, partial(model.fit, X), seconds_of)
            print(f"{n} hidden units: trained in {seconds_of(models[n]):.0f} s", flush=True)
        rng, curves = np.random.default_rng(0), {}
        for p in args.p:
            for name, rows in estimates(models, X, flip(X_test, p, rng), p, args).items():
                score = matthews_corrcoef(X_test.ravel() > 0.5, rows.ravel() > 0.5)
                curves.setdefault(name, []).append(score)
        scores = zip(args.p, *curves.values(), strict=True)
        rows = [[f"{p:g}", *(f"{x:.3f}" for x in row)] for p, *row in scores]
        print()
        keep_rows(args, ["p", *curves], rows)
        compare(args, claims(curves, args))
    stem = args.stem.replace("figures8and9", "figure")
    all_curves(args.p, curves, f"{stem}8.png")
    one_digit(models, X, X_test[0], args, f"{stem}9.png")
