"""The penalties of the Frank–Wolfe paper, 0.01 to 1: which of them let a model grow.

Test log-likelihood with each penalty as published (plain: each unit counts once, and the steps of
the visible biases are repeated until the means match), then of the other modes of this library for
as many seconds of the processor as the best of these took: on statistically binarised MNIST, the
silhouettes of Caltech-101 and scikit-learn's digits, on above 7 of 16. The largest fall is that of
the log-likelihood of training rows from one unit to the next. With ``--models``, each model is
kept.

W. Ping, Q. Liu, A. Ihler (2016). "Learning infinite RBMs with Frank-Wolfe". NIPS.
"""

from functools import partial

import _path  # noqa: F401
import joblib
import matplotlib.pyplot as plt
import numpy as np
from _baselines import independent
from _common import log_likelihood, print_table, processor_timed, script, unconverged_is_fine
from _data import binary, load_bits, load_small_digits
from _reproduction import kept, reproduction, save_picture, settings

from sklearn_boltz import InfiniteRBM

PENALTIES = (1, 0.5, 0.1, 0.05, 0.01)
# With the penalty of the best plain model, and with the default.
OTHERS = ("safeguarded", "corrective")
# Units between two looks at the clock.
PART = 2


def load(name, args):
    """Training and test rows."""
    if name == "digits":
        X = np.random.default_rng(0).permutation(binary(load_small_digits()[0]))
        return X[: min(args.rows, 1200)], X[1500:]
    return load_bits(name, args.data, args.rows, args.test_rows, rng=np.random.default_rng(0))


def grown(mode, alpha, X, X_test, args, seconds=np.inf):
    """Units, test log-likelihood with its error, seconds, and the path of the training rows."""
    model = InfiniteRBM(
        mode=mode, alpha=alpha, n_model_samples=args.samples, early_stopping=False,
        warm_start=True, n_jobs=1, random_state=0,
    )  # fmt: skip
    most = args.components if np.isinf(seconds) else 20 * args.components
    spent, n_before = 0.0, -1
    with unconverged_is_fine():
        while spent < seconds and n_before < getattr(model, "n_components_", 0) < most:
            n_before = getattr(model, "n_components_", 0)
            model.set_params(max_components=min(n_before + PART, most))
            spent += processor_timed(model.fit, X)[1]
    ladder = dict(n_temperatures=args.temperatures, n_chains=100)
    figures = log_likelihood(model, X_test, **ladder)
    return model.n_components_, *figures, spent, model.history_["log_likelihood"]


def grow(name, X, X_test, args):
    """Print the table of a data set, and draw the likelihood of training rows by unit."""
    base = independent(X, X_test, extra=0.25)
    print(f"{name}, {len(X)} rows; no hidden unit: {base:.2f}\n")
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    rows = []

    def row(mode, alpha, seconds=np.inf):
        key = f"infinite_{name}_{mode}_{alpha}_{joblib.hash((X, args.components, args.samples))}"
        make = partial(grown, mode, alpha, X, X_test, args, seconds)
        n_units, value, error, spent, path = kept(args, key, make)
        fall = np.max(-np.diff(path), initial=0)
        rows.append([f"{mode}, {alpha}", n_units, value, error, value - base, fall, spent])
        ax.plot(path, label=rows[-1][0])
        return value, spent, alpha

    best = max(row("plain", alpha) for alpha in PENALTIES)
    for mode in OTHERS:
        for alpha in sorted({best[2], 0.01}, reverse=True):
            row(mode, alpha, best[1])
    header = ["mode, penalty", "units", "test", "±", "above", "largest fall", "seconds"]
    print_table(header, rows, ",.2f,.2f,.2f,.2f,.1f")
    # A mode that falls must not hide the others.
    most = max(row[4] for row in rows)
    ax.set(ylim=(base - 0.5 * most, base + 1.3 * most), xlim=(0, 2 * args.components))
    ax.set(xlabel="hidden units", ylabel="training log-likelihood, nats")
    ax.legend(fontsize="small", loc="lower right", ncols=2)
    save_picture(figure, f"{args.stem}.png")


@script
def main():
    args = settings(
        __doc__,
        full=dict(sets=["digits", "caltech", "mnist"], rows=10_000, test_rows=10_000,
                  components=40, samples=2000, temperatures=2000),
        quick=dict(rows=1_000, test_rows=500, components=4, samples=200, temperatures=200),
    )  # fmt: skip
    for name in args.sets:
        with reproduction(f"infinite_penalties_{name}", "Infinite RBM, the penalties", args):
            grow(name, *load(name, args), args)
