"""The figures in the S-DCP paper: what their scripts share.

A script says which curves its figure has, and what the paper says of them. On images, all
algorithms make 24 Gibbs transitions for a mini-batch: CD-24, PCD-24, CG-24, S-DCP and CS-DCP with
6 × 4. There the paper has 500 hidden units, batches of 200, 200 epochs, 10 trials and 10,000
temperatures of AIS: some two hours of one thread for a trial of one curve of MNIST, and minutes on
a GPU (``--device cuda --workers 6``).
"""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported

from functools import partial
from typing import NamedTuple

import _path  # noqa: F401
import joblib
import numpy as np
import sklearn
from _common import log_likelihood, print_table
from _data import load_bits
from _reproduction import compare, keep_curves, kept, plt, reproduction, save_picture, settings
from rbm.bench_rbm_mnist import ALGORITHMS
from scipy.linalg import svd

from sklearn_boltz import SDCPRBM
from sklearn_boltz.restricted.training._optimizers import SGD

FULL = dict(hidden=500, rows=60_000, batch=200, epochs=200, trials=10, points=20,
            temperatures=10_000, test_rows=10_000, jobs=1, device="", workers=1)  # fmt: skip
# Small batches make up for the few rows: 60 of them an epoch, where the paper has 300.
QUICK = dict(hidden=100, rows=3_000, batch=50, epochs=8, trials=1, points=4,
             temperatures=300, test_rows=2_000)  # fmt: skip
COMPARED = {
    name: {key: value for key, value in ALGORITHMS[name.lower()].items() if key != "batch_size"}
    for name in ("CD-24", "PCD-24", "CG-24", "S-DCP", "CS-DCP")
}
OURS = {name: COMPARED[name] for name in ("S-DCP", "CS-DCP")}


class SpectralDescent(SGD):
    """Stochastic spectral descent (Carlson, Cevher and Carin, 2015).

    The steepest step for a bound of ln Z in the Schatten-∞ norm of a matrix: along U Vᵀ of the
    singular value decomposition of the gradient, as long as the sum of its singular values. For a
    vector in the ℓ∞ norm: along its signs.
    """

    def __init__(self):
        super().__init__()
        self.plain = False

    def steps(self, gradients):
        """The step of each parameter."""
        return [self._sharp(gradient) for gradient in gradients]

    @staticmethod
    def _sharp(gradient):
        if gradient.ndim == 1:
            return np.abs(gradient).sum() * np.sign(gradient)
        U, s, Vt = svd(gradient, full_matrices=False)
        return s.sum() * (U @ Vt)


def settings_with_points(description, full, quick):
    """Settings whose points, if need be fewer, are equally far apart up to the last epoch."""
    args = settings(description, full, quick)
    args.points = max(n for n in range(1, args.points + 1) if args.epochs % n == 0)
    return args


def image_settings(description, full, quick=None):
    """The settings of a figure of images: `FULL` and `QUICK`, and what it has differently."""
    return settings_with_points(description, FULL | full, QUICK | (quick or {}))


def near_its_best(path, epochs):
    """The first epoch at which a path from below reaches 90 % of its maximum, as the paper says.

    Log-likelihoods are negative: of a maximum of -2.7, 90 % is -3.
    """
    path = np.asarray(path)
    first = int(np.argmax(path >= path.max() / 0.9))
    return round(epochs * (first + 1) / len(path))


# Figures 3 to 7: 28 × 28 pixels, likelihood by annealed importance sampling.


class Curve(NamedTuple):
    """A curve of a figure: the title of its panel, options, and its label, if not its name.

    Options are parameters of `SDCPRBM`, and "visible_bias": the biases of the visible units at
    first (without it, the log-odds of the means).
    """

    panel: str
    options: dict
    label: str = ""


def reproduce_images(number, subject, args, *, curves, claims, data="mnist", batch=200, epochs=200):
    """Run and keep a figure, with the `args` of `image_settings`; batch and epochs of the paper.

    `curves` maps args to a dict of name to `Curve`; those with the same options are learned once.
    `claims` maps paths, ends and args to rows of the comparison; of each curve by its name, `paths`
    has the log-likelihoods, `ends` (log-likelihood in the end, epoch of 90 %).
    """
    X, X_test = load_bits(data, args.data, args.rows, args.test_rows, np.random.default_rng(0))
    title = f"S-DCP, Figure {number}: {subject}{place(args.device)}"
    with reproduction(f"sdcp_figure{number}", title, args):
        chosen = curves(args)
        paths = learn(X, X_test, {name: curve.options for name, curve in chosen.items()}, args)
        ends = keep(paths, args)
        trials = "1 trial" if args.trials == 1 else f"{args.trials} trials"
        compare(args, [
            ("settings",
             f"500 hidden units, all rows, batches of {batch}, {epochs} epochs, 10 trials",
             f"{args.hidden} hidden units, {len(X):,} rows, batches of {args.batch}, "
             f"{args.epochs} epochs, {trials}", None),
            *claims(paths, ends, args),
        ])  # fmt: skip
    draw(chosen, paths, args)


def place(device):
    """The words for the name of a device, none for the processor."""
    if not device.startswith("cuda"):
        return ""
    import torch

    return f", on {torch.cuda.get_device_name(device)}"


def learn(X, X_test, options, args):
    """Mean test log-likelihood at `args.points` epochs, over the trials, for each name of options.

    The options are those of a `Curve`. Several trials are learned at the same time, in processes.
    """
    distinct = {repr(sorted(given.items())): given for given in options.values()}
    trials = [(given, trial) for given in distinct.values() for trial in range(args.trials)]
    values = joblib.Parallel(args.workers, pre_dispatch="all", batch_size=1)(
        joblib.delayed(learn_once)(X, X_test, *trial, args) for trial in trials
    )
    means = np.reshape(values, (len(distinct), args.trials, -1)).mean(axis=1)
    for mean, given in zip(means, distinct.values(), strict=True):
        print(f"{mean[-1]:.2f} with {given}", flush=True)
    known = dict(zip(distinct, means, strict=True))
    return {name: known[repr(sorted(given.items()))] for name, given in options.items()}


def learn_once(X, X_test, options, trial, args):
    """Test log-likelihood at `args.points` epochs of one trial.

    Each point is kept with its model. So a run with more epochs goes on from a shorter one, if both
    have as many epochs from point to point. On a device, all points are kept at the end.
    """
    parameters = {"batch_size": args.batch} | options
    visible_bias, spectral = (parameters.pop(name, None) for name in ("visible_bias", "spectral"))
    model = SDCPRBM(args.hidden, warm_start=True, max_iter=0, track_likelihood=False,
                    random_state=trial, n_jobs=args.jobs)  # fmt: skip
    model.set_params(**parameters).fit(X)
    if visible_bias is not None:
        model.intercept_visible_ = np.full_like(model.intercept_visible_, visible_bias)
    if spectral:
        model._training.learner.optimizer = SpectralDescent()
    model.set_params(max_iter=args.epochs // args.points)
    key = joblib.hash((X, X_test, model, args.temperatures))
    if args.device:
        path = partial(path_on_device, model, X, X_test, args)
        return kept(args, f"sdcp_{args.device}_{key}_{args.points}", path)
    values = []
    for point in range(args.points):
        following = partial(next_point, model, X, X_test, args.temperatures)
        model, value = kept(args, f"sdcp_{key}_{point}", following)
        values.append(value)
    return values


def path_on_device(model, X, X_test, args):
    """The test log-likelihoods of a model that PyTorch trains on a device."""
    import torch

    with sklearn.config_context(array_api_dispatch=True):
        X, X_test = (torch.asarray(rows, device=args.device) for rows in (X, X_test))
        model, values = model.move_to(torch, args.device), []
        for _ in range(args.points):
            model, value = next_point(model, X, X_test, args.temperatures)
            values.append(float(value))
    return values


def next_point(model, X, X_test, n_temperatures):
    """Train up to the next point; -> model, its test log-likelihood."""
    model.fit(X)
    ladder = dict(n_chains=100, n_temperatures=n_temperatures)
    return model, log_likelihood(model, X_test, **ladder)[0]


def keep(paths, args):
    """Print and keep all curves; -> (log-likelihood in the end, epoch of 90 %) of each."""
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    ends = {name: (path[-1], near_its_best(path, args.epochs)) for name, path in paths.items()}
    print()
    print_table(["", "test log-likelihood", "epoch of 90 %"],
                [[name, f"{end:.2f}", epoch] for name, (end, epoch) in ends.items()])  # fmt: skip
    keep_curves(args, at, paths, 2)
    return ends


def draw(curves, paths, args):
    """The panels; the curves of S-DCP are dashed."""
    panels = list(dict.fromkeys(curve.panel for curve in curves.values()))
    figure, axes = plt.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.6), sharey=True,
                                squeeze=False, layout="constrained")  # fmt: skip
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    for ax, title in zip(axes[0], panels, strict=True):
        for name, curve in curves.items():
            if curve.panel == title:
                style = "--" if name.startswith("S-DCP") else "-"
                ax.plot(at, paths[name], style, marker=".", label=curve.label or name)
        ax.set(title=title, xlabel="epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        # Below the panel: the ends of the curves stay visible.
        ax.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    axes[0, 0].set_ylabel("mean test log-likelihood, nats")
    save_picture(figure, f"{args.stem}.png")
