"""The penalties of the Frank–Wolfe paper, 0.01 to 1: which of them let a model grow.

Test log-likelihood of up to 40 units with each penalty, as printed (plain) and with the safeguards
of this library: on statistically binarised MNIST, 10,000 rows, and, as printed, on scikit-learn's
digits, on above 7 of 16.

W. Ping, Q. Liu, A. Ihler (2016). "Learning infinite RBMs with Frank-Wolfe". NIPS.
"""

from functools import partial

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _baselines import independent
from _common import log_likelihood, print_table, script
from _data import binary, load_bits, load_small_digits
from _reproduction import reproduction, save_picture, settings

from sklearn_boltz import InfiniteRBM

PENALTIES = (1, 0.5, 0.1, 0.05, 0.01)
MODES = {"mnist": ("corrective", "safeguarded", "plain"), "digits": ("plain",)}


def load(name, args):
    """Training and test rows."""
    if name == "digits":
        X = binary(load_small_digits()[0])
        X = X[np.random.default_rng(0).permutation(len(X))]
        return X[:1200], X[1500:]
    return load_bits(name, args.data, args.rows, rng=np.random.default_rng(0))


def without_end(model):
    """The plan of a model that early stopping does not end."""
    return InfiniteRBM._plan(model)._replace(n_iter_no_change=model.max_components)


def grow(name, X, X_test, args):
    """Print the table of a data set, and draw the likelihood of validation rows by unit."""
    base = independent(X, X_test, extra=0.25)
    print(f"{name}, {len(X)} rows; no hidden unit: {base:.2f}\n")
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    rows = []
    for mode in MODES[name]:
        for alpha in PENALTIES:
            n = args.components
            model = InfiniteRBM(n, alpha=alpha, mode=mode, random_state=0)
            model._plan = partial(without_end, model)
            path = model.fit(X).history_["validation_log_likelihood"]
            ladder = dict(n_temperatures=args.temperatures, n_chains=100)
            value, error = log_likelihood(model, X_test, **ladder)
            fall = np.max(-np.diff(path), initial=0)
            figures = [value, error, value - base, fall]
            rows.append([f"{mode}, {alpha}", model.n_components_, *(f"{x:.2f}" for x in figures)])
            ax.plot(model.history_["n_components"], path, label=rows[-1][0])
    print_table(["mode, penalty", "units", "test", "±", "above", "largest fall"], rows)
    # A mode that diverges must not hide the others.
    ax.set(ylim=(base - 0.3 * max(float(row[4]) for row in rows), None))
    ax.set(xlabel="hidden units", ylabel="validation log-likelihood, nats")
    ax.legend(fontsize="small")
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
