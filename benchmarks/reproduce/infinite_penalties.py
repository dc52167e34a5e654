"""The penalties of the Frank–Wolfe paper, 0.01 to 1: which of them let a model grow.

Test log-likelihood of up to 40 units with each penalty, as printed (plain) and with the safeguards
of this library: on statistically binarised MNIST, 10,000 rows, on the silhouettes of Caltech-101,
and, as printed, on scikit-learn's digits, on above 7 of 16. With ``--models``, each model is kept.

W. Ping, Q. Liu, A. Ihler (2016). "Learning infinite RBMs with Frank-Wolfe". NIPS.
"""

from functools import partial

import _path  # noqa: F401
import joblib
import matplotlib.pyplot as plt
import numpy as np
from _baselines import independent
from _common import log_likelihood, print_table, script
from _data import binary, load_bits, load_small_digits
from _reproduction import kept, reproduction, save_picture, settings

from sklearn_boltz import InfiniteRBM

PENALTIES = (1, 0.5, 0.1, 0.05, 0.01)
MODES = {
    "digits": ("plain",),
    "caltech": ("safeguarded", "plain"),
    "mnist": ("safeguarded", "plain", "corrective"),
}


def load(name, args):
    """Training and test rows."""
    if name == "digits":
        X = np.random.default_rng(0).permutation(binary(load_small_digits()[0]))
        return X[:1200], X[1500:]
    return load_bits(name, args.data, args.rows, rng=np.random.default_rng(0))


class WithoutEnd(InfiniteRBM):
    """Early stopping does not end it."""

    def _plan(self):
        return super()._plan()._replace(n_iter_no_change=self.max_components)


def grown(mode, alpha, X, X_test, args):
    """Units, test log-likelihood with its error, and the path of the validation rows."""
    model = WithoutEnd(args.components, alpha=alpha, mode=mode, random_state=0)
    path = model.fit(X).history_
    ladder = dict(n_temperatures=args.temperatures, n_chains=100)
    return model.n_components_, *log_likelihood(model, X_test, **ladder), path


def grow(name, X, X_test, args):
    """Print the table of a data set, and draw the likelihood of validation rows by unit."""
    base = independent(X, X_test, extra=0.25)
    print(f"{name}, {len(X)} rows; no hidden unit: {base:.2f}\n")
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    rows = []
    for mode in MODES[name]:
        for alpha in PENALTIES:
            n = args.components
            key = f"infinite_{name}_{mode}_{alpha}_{joblib.hash((X, n, args.temperatures))}"
            make = partial(grown, mode, alpha, X, X_test, args)
            n_units, value, error, history = kept(args, key, make)
            path = history["validation_log_likelihood"]
            figures = [value, error, value - base, np.max(-np.diff(path), initial=0)]
            rows.append([f"{mode}, {alpha}", n_units, *(f"{x:.2f}" for x in figures)])
            print(*rows[-1], flush=True)
            ax.plot(history["n_components"], path, label=rows[-1][0])
    print()
    print_table(["mode, penalty", "units", "test", "±", "above", "largest fall"], rows)
    # A mode that diverges must not hide the others.
    most = max(float(row[4]) for row in rows)
    ax.set(ylim=(base - 0.3 * most, base + 1.1 * most))
    ax.set(xlabel="hidden units", ylabel="validation log-likelihood, nats")
    ax.legend(fontsize="small", loc="upper left", ncols=2)
    save_picture(figure, f"{args.stem}_{name}.png")


@script
def main():
    args = settings(
        __doc__,
        full=dict(rows=10_000, components=40, temperatures=2000),
        quick=dict(rows=1_000, components=5, temperatures=200),
    )
    with reproduction("infinite_penalties", "Infinite RBM, the penalties", args):
        for name in MODES:
            grow(name, *load(name, args), args)
