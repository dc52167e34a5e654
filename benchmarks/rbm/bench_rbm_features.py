"""Features for a linear classifier from RBMs, beside pixels and untrained hidden units.

Logistic regression, the same for all, on standardised features; its C is chosen on a fifth of
the training rows. All machines have as many hidden units and learn for as many seconds of the
processor, with one thread. `BernoulliRBM` has four settings: two learning rates and two sizes of
mini-batches. First the settings of one seed on 20,000 rows of MNIST, then the best over more seeds.
"""

from functools import partial
from time import process_time

import _path  # noqa: F401
import numpy as np
from _baselines import BernoulliRBMPeer
from _common import make_parser, print_check, print_table, report, script, unconverged_is_fine
from _data import load_images
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_boltz import SDCPRBM, TAP, TAPRBM

# What the user guide recommends for features, at the temperatures 1 and 3 of `transform`.
SCALE = dict(init="scaled")
PAPER = TAP(max_iter=10, n_gibbs=0)
FEATURES = SCALE | dict(
    n_inner=1, n_gibbs=1, centered=False, chains="persistent", batch_size=10, learning_rate=0.05,
    alpha=0.0, early_stopping=False,
)  # fmt: skip
HOT, CENTRED = 3.0, dict(centered=True)
# Learning rates and sizes of mini-batches.
PEER_SETTINGS = [(0.05, 10), (0.05, 100), (0.1, 10), (0.1, 100)]
# Standard deviations of the weights of untrained units.
UNTRAINED = [0.1, 0.2, 0.5]
# Inverse strengths of the penalty of the classifier.
PENALTIES = [0.01, 0.03, 0.1, 0.3]


# What is compared.


def hidden_means(weights, biases, temperature, X):
    """P(h = 1 | v) of binary units with weights and biases, at a temperature."""
    return expit((X @ weights.T + biases) / X.dtype.type(temperature))


def untrained(n_hidden, scale, X, seed):
    """The transform of units with normal weights and no biases."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, scale, (n_hidden, X.shape[1])).astype(X.dtype)
    return partial(hidden_means, weights, np.zeros(n_hidden, X.dtype), 1.0)


def features_of(model, temperature=1.0):
    """The transform of a fitted RBM in float32, at a temperature."""
    arrays = (a.astype(np.float32) for a in (model.components_, model.intercept_hidden_))
    return partial(hidden_means, *arrays, temperature)


def train_ours(model, X, seconds):
    """Train whole epochs as long as another one fits in; -> model, epochs, seconds."""
    model.set_params(max_iter=1, warm_start=True, track_likelihood=False, n_jobs=1)
    start, last = process_time(), 0.0
    while True:
        before = process_time()
        with unconverged_is_fine():
            model.fit(X)
        now = process_time()
        last = max(last, now - before)
        if now - start + last > seconds:
            return model, float(model.n_iter_), now - start


def train_peer(setting, n_hidden, X, seconds, seed):
    """Train scikit-learn's machine, to the mini-batch; -> model, epochs, seconds."""
    rate, batch_size = setting
    peer = BernoulliRBMPeer(X, n_hidden, learning_rate=rate, batch_size=batch_size, seed=seed)
    return peer.model, *peer.train(seconds)


def classified(X, X_test, y, y_test):
    """-> (error of the test rows, error of the rows that C is chosen on, C), errors in per cent.

    C is chosen on at most 5,000 rows after training on at most 20,000 others.
    """
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    n_valid = min(len(X) // 5, 5000)
    train, valid = slice(n_valid, n_valid + 20_000), slice(n_valid)

    def fitted(C, rows):
        with unconverged_is_fine():
            return LogisticRegression(C=C, max_iter=100).fit(X[rows], y[rows])

    def error(classifier, X, y):
        return 100 * (1 - classifier.score(X, y))

    found = {C: error(fitted(C, train), X[valid], y[valid]) for C in PENALTIES}
    C = min(found, key=found.get)
    return error(fitted(C, slice(None)), X_test, y_test), found[C], C


# The parts.


HEADER = ["features", "error %", "validation", "C", "epochs", "seconds"]


class Errors:
    """A table of errors that is made row by row."""

    def __init__(self, data):
        self.data = data
        self.found, self.rows = {}, []

    def add(self, title, transform=None, figures=("", "")):
        """Classify by what a function makes of rows, or by pixels."""
        X, X_test, y, y_test = self.data
        if transform is not None:
            X, X_test = transform(X), transform(X_test)
        error, validation, C = classified(X, X_test, y, y_test)
        self.found[title] = error
        figures = [f"{x:.1f}" if x != "" else x for x in figures]
        self.rows.append([title, f"{error:.2f}", f"{validation:.2f}", f"{C:g}", *figures])

    def add_trained(self, title, model, epochs, seconds, temperatures=(1.0, HOT)):
        """Add rows for the features of a machine at temperatures."""
        for temperature in temperatures:
            name = title if temperature == 1 else f"{title}, temperature {temperature:g}"
            self.add(name, features_of(model, temperature), (epochs, seconds))


def name_of(setting):
    """A setting of `BernoulliRBM` in words."""
    return "BernoulliRBM, rate {:g}, batches of {}".format(*setting)


def our_machines(n_hidden, seed):
    """The settings of ours by their names."""
    one = {**FEATURES, "chains": "data"}
    return {
        "SDCPRBM, PCD": SDCPRBM(n_hidden, random_state=seed, **FEATURES),
        "SDCPRBM, CD": SDCPRBM(n_hidden, random_state=seed, **one),
        "SDCPRBM, centred CD": SDCPRBM(n_hidden, random_state=seed, **one | CENTRED),
        "SDCPRBM, CS-DCP": SDCPRBM(n_hidden, random_state=seed, **SCALE),
        "TAPRBM": TAPRBM(n_hidden, inference=PAPER, random_state=seed, **SCALE),
    }


def compare(data, args):
    """Print the table of one seed for MNIST; -> the best setting of the peers."""
    X, n_hidden, seconds = data[0], args.hidden, args.seconds
    table = Errors(data)
    table.add("pixels")
    for scale in UNTRAINED:
        table.add(f"untrained, N(0, {scale:g}²)", untrained(n_hidden, scale, X, 0))
    for setting in PEER_SETTINGS:
        table.add_trained(name_of(setting), *train_peer(setting, n_hidden, X, seconds, 0))
    for title, machine in our_machines(n_hidden, 0).items():
        table.add_trained(title, *train_ours(machine, X, seconds))
    print(
        f"MNIST: {len(X)} training rows, {len(data[1])} test rows, {n_hidden} hidden units, "
        f"{seconds:g} seconds of the processor\n"
    )
    print_table(HEADER, table.rows)
    setting = min(PEER_SETTINGS, key=lambda setting: table.found[name_of(setting)])
    gain = table.found[name_of(setting)] - table.found[f"SDCPRBM, PCD, temperature {HOT:g}"]
    what = f"PCD at temperature {HOT:g} below the best of four settings of BernoulliRBM by"
    print_check(what, ">= 0.5", f"{gain:.2f}", gain >= 0.5)
    print()
    return setting


def more_seeds(data, setting, args):
    """Print the errors of more seeds: of ours, and of the best setting of `BernoulliRBM`."""
    rows = []
    for seed in range(1, args.seeds):
        table = Errors(data)
        peer = train_peer(setting, args.hidden, data[0], args.seconds, seed)
        table.add_trained("BernoulliRBM", *peer)
        machine = SDCPRBM(args.hidden, random_state=seed, **FEATURES)
        table.add_trained("SDCPRBM, PCD", *train_ours(machine, data[0], args.seconds))
        rows.append([seed, *(f"{error:.2f}" for error in table.found.values())])
    print(f"more seeds; {name_of(setting)}\n")
    print_table(["seed", *table.found], rows)


@script
def main():
    parser = make_parser(__doc__, seeds=3)
    parser.add_argument("--rows", type=int, default=20_000, help="training rows")
    parser.add_argument("--hidden", type=int, default=256, help="hidden units")
    parser.add_argument("--seconds", type=float, default=20.0, help="of training")
    args = parser.parse_args()
    data = load_images("mnist", args.data, args.rows)
    title = "Features of restricted Boltzmann machines"
    with report(args.output / "rbm_features_mnist.txt", title):
        more_seeds(data, compare(data, args), args)
