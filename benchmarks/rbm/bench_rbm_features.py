"""Features for a linear classifier from RBMs, beside pixels and untrained hidden units.

Logistic regression, the same for all, on standardised features; its C is chosen on a fifth of
the training rows. All machines of a table have as many hidden units and learn for as many seconds
of the processor, with one thread. `BernoulliRBM` has four settings: two learning rates and two
sizes of mini-batches. The parts are

digits
    scikit-learn's 8 x 8 digits, three folds in the order of the file; whole fits of as many
    epochs as each row says.
mnist
    20,000 rows and 256 units; first the settings of one seed, then the best over more seeds.
large
    60,000 rows and 1,000 units.
seeds
    The same for more than one seed: the best of the four settings by the part before, and ours.
search
    `GridSearchCV` chooses `n_components` and `learning_rate` by the log-likelihood of held-out
    rows, without labels.

MNIST is left out unless ``--data`` is given. For example

    python bench_rbm_features.py --data DIR --parts mnist large seeds
    python bench_rbm_features.py --quick
"""

import sys
from copy import copy
from functools import partial
from time import process_time

import _path  # noqa: F401
import numpy as np
from _baselines import BernoulliRBMPeer
from _common import (
    MissingData,
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    timed,
    unconverged_is_fine,
)
from _data import binary, load_images, load_small_digits
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sklearn_boltz import SDCPRBM, TAPRBM

# What the user guide recommends for features, at the temperatures 1 and 3 of `transform`.
SCALE = dict(weights_init="auto")
FEATURES = SCALE | dict(
    n_inner=1, n_gibbs=1, centered=False, persistent=True, batch_size=10, learning_rate=0.05,
    weight_decay=0.0, early_stopping=False,
)  # fmt: skip
HOT, CENTRED = 3.0, dict(centered=True)
# With many rows and units: mini-batches of 50 and twice the rate, at temperature 2.
FEATURES_OF_MANY, WARM = FEATURES | dict(batch_size=50, learning_rate=0.1), 2.0
# Learning rates and sizes of mini-batches.
PEER_SETTINGS = [(0.05, 10), (0.05, 100), (0.1, 10), (0.1, 100)]
# The best of them with 60,000 rows and 1,000 units, by the part `large`.
PEER_OF_MANY = (0.1, 100)
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
    """The transform of a fitted RBM; of scikit-learn's in float32, and at a temperature."""
    if isinstance(model, BernoulliRBM):
        arrays = (a.astype(np.float32) for a in (model.components_, model.intercept_hidden_))
        return partial(hidden_means, *arrays, temperature)
    return copy(model).set_params(transform_temperature=temperature).transform


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
    return peer.model, *peer.train(seconds, clock=process_time)


def classified(X, X_test, y, y_test, args):
    """-> (error of the test rows, error of the rows that C is chosen on, C), errors in per cent.

    C is chosen on at most 5,000 rows after training on at most 20,000 others.
    """
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    n_valid = min(len(X) // 5, 5000)
    train, valid = slice(n_valid, n_valid + 20_000), slice(n_valid)

    def fitted(C, rows):
        with unconverged_is_fine():
            return LogisticRegression(C=C, max_iter=args.steps).fit(X[rows], y[rows])

    def error(classifier, X, y):
        return 100 * (1 - classifier.score(X, y))

    found = {C: error(fitted(C, train), X[valid], y[valid]) for C in PENALTIES}
    C = min(found, key=found.get)
    return error(fitted(C, slice(None)), X_test, y_test), found[C], C


# The parts.


HEADER = ["features", "error %", "validation", "C", "epochs", "seconds"]


class Errors:
    """A table of errors that is made row by row."""

    def __init__(self, data, args):
        self.data, self.args = data, args
        self.found, self.rows = {}, []

    def add(self, title, transform=None, figures=("", "")):
        """Classify by what a function makes of rows, or by pixels."""
        X, X_test, y, y_test = self.data
        if transform is not None:
            X, X_test = transform(X), transform(X_test)
        error, validation, C = classified(X, X_test, y, y_test, self.args)
        self.found[title] = error
        figures = [f"{x:.1f}" if x != "" else x for x in figures]
        self.rows.append([title, f"{error:.2f}", f"{validation:.2f}", f"{C:g}", *figures])

    def add_trained(self, title, model, epochs, seconds, temperatures=(1.0, HOT)):
        """Add rows for the features of a machine at temperatures."""
        for temperature in temperatures:
            name = title if temperature == 1 else f"{title}, temperature {temperature:g}"
            self.add(name, features_of(model, temperature), (epochs, seconds))

    def print(self):
        """Print the table."""
        print_table(HEADER, self.rows)

    def best(self, beginning):
        """The least error of rows whose titles begin so, but for those at a temperature."""
        return min(
            error for title, error in self.found.items()
            if title.startswith(beginning) and "temperature" not in title
        )  # fmt: skip


def name_of(setting):
    """A setting of `BernoulliRBM` in words."""
    return "BernoulliRBM, rate {:g}, batches of {}".format(*setting)


def our_machines(n_hidden, seed, large):
    """The settings of ours by their names."""
    features = FEATURES_OF_MANY if large else FEATURES
    machines = {"SDCPRBM, PCD": SDCPRBM(n_hidden, random_state=seed, **features)}
    if not large:
        one = {**FEATURES, "persistent": False}
        machines |= {
            "SDCPRBM, CD": SDCPRBM(n_hidden, random_state=seed, **one),
            "SDCPRBM, centred CD": SDCPRBM(n_hidden, random_state=seed, **one | CENTRED),
            "SDCPRBM, CS-DCP": SDCPRBM(n_hidden, random_state=seed, **SCALE),
            "TAPRBM": TAPRBM(n_hidden, random_state=seed, **SCALE),
        }
    return machines


def compare(name, data, n_hidden, seconds, args, large=False):
    """Print the table of one seed for images; -> the best setting of the peers."""
    X = data[0]
    table = Errors(data, args)
    table.add("pixels")
    for scale in [0.2] if large else UNTRAINED:
        table.add(f"untrained, N(0, {scale:g}²)", untrained(n_hidden, scale, X, args.seed))
    peers = {s: train_peer(s, n_hidden, X, seconds, args.seed) for s in PEER_SETTINGS}
    for setting, trained in peers.items():
        table.add_trained(name_of(setting), *trained, (1.0,) if large else (1.0, HOT))
    setting = min(PEER_SETTINGS, key=lambda setting: table.found[name_of(setting)])
    hot = WARM if large else HOT
    if large:  # rows take minutes
        table.add_trained(name_of(setting), *peers[setting], (hot,))
    for title, machine in our_machines(n_hidden, args.seed, large).items():
        table.add_trained(title, *train_ours(machine, X, seconds), (1.0, hot))
    print(
        f"{name}: {len(X)} training rows, {len(data[1])} test rows, {n_hidden} hidden units, "
        f"{seconds:g} seconds of the processor\n"
    )
    table.print()
    best, ours = table.best("BernoulliRBM"), table.found[f"SDCPRBM, PCD, temperature {hot:g}"]
    what = f"PCD at temperature {hot:g} below the best of four settings of BernoulliRBM by"
    print_check(what, ">= 0.5", f"{best - ours:.2f}", best - ours >= 0.5)
    print()
    return setting


def more_seeds(data, n_hidden, seconds, setting, args):
    """Print the errors of more seeds: of ours, and of the best setting of `BernoulliRBM`."""
    rows, titles = [], ["BernoulliRBM", "SDCPRBM, PCD"]
    for seed in range(args.seed + 1, args.seed + args.seeds):
        table = Errors(data, args)
        peer = train_peer(setting, n_hidden, data[0], seconds, seed)
        table.add_trained(titles[0], *peer)
        machine = SDCPRBM(n_hidden, random_state=seed, **FEATURES)
        table.add_trained(titles[1], *train_ours(machine, data[0], seconds))
        rows.append([seed, *(f"{error:.2f}" for error in table.found.values())])
    print(f"more seeds; {name_of(setting)}\n")
    print_table(["seed", *table.found], rows)


def seeds_of_many(data, n_hidden, seconds, args):
    """Print errors of seeds with many rows: of the best of the four settings, and of ours."""
    X, table = data[0], Errors(data, args)
    rows, errors = [], []
    for seed in range(args.seed, args.seed + args.seeds):
        peer, ours = f"BernoulliRBM, seed {seed}", f"SDCPRBM, PCD, seed {seed}"
        trained = train_peer(PEER_OF_MANY, n_hidden, X, seconds, seed)
        table.add_trained(peer, *trained, (1.0,))
        machine = SDCPRBM(n_hidden, random_state=seed, **FEATURES_OF_MANY)
        model, n_epochs, _ = train_ours(machine, X, seconds)
        table.add(ours, features_of(model, WARM), (n_epochs, ""))
        errors.append([table.found[peer], table.found[ours]])
        figures = [f"{error:.2f}" for error in errors[-1]]
        rows.append([seed, *figures, f"{trained[1]:.1f}", f"{n_epochs:.1f}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    peer, ours = np.mean(errors, axis=0)
    print(
        f"MNIST: {len(X)} training rows, {n_hidden} hidden units, {seconds:g} seconds of the "
        f"processor; errors in per cent, and epochs\n\n{name_of(PEER_OF_MANY)}; "
        f"SDCPRBM, PCD, rate 0.1, batches of 50, temperature {WARM:g}\n"
    )
    header = ["seed", "BernoulliRBM", "SDCPRBM, PCD", "epochs", "epochs"]
    print_table(header, [*rows, ["mean", f"{peer:.2f}", f"{ours:.2f}", "", ""]])
    what = "PCD below BernoulliRBM, mean of the seeds"
    print_check(what, ">= 0.5", f"{peer - ours:.2f}", peer - ours >= 0.5)
    print()


def compare_digits(args):
    """Print the table of the digits: mean accuracy of three folds in the order of the file."""
    X, y = load_small_digits()
    X = X.astype(np.float32)
    common = dict(n_jobs=1, track_likelihood=False)
    seed, n_epochs = args.seed, 2 if args.quick else 100
    default = {"max_iter": 2} if args.quick else {}
    makers = {
        "BernoulliRBM, default": lambda: BernoulliRBM(random_state=seed),
        "BernoulliRBM, rate 0.06, 60 epochs": lambda: BernoulliRBM(
            learning_rate=0.06, n_iter=n_epochs * 60 // 100, random_state=seed
        ),
        "TAPRBM": lambda: TAPRBM(random_state=seed, **SCALE, **common, **default),
    }
    for scale in ("auto", 0.5):
        makers[f"SDCPRBM, CS-DCP, weights_init={scale}"] = lambda scale=scale: SDCPRBM(
            weights_init=scale, random_state=seed, **common, **default
        )
    for scale in (0.01, "auto", 0.5):
        options = FEATURES | common | dict(weights_init=scale, max_iter=n_epochs)
        makers[f"SDCPRBM, PCD, {n_epochs} epochs, weights_init={scale}"] = lambda options=options: (
            SDCPRBM(random_state=seed, **options)
        )
    found, seconds = {}, {}

    def add(title, H, H_test, y, y_test):
        for scaled in (False, True):
            scaler = StandardScaler(with_mean=scaled, with_std=scaled).fit(H)
            classifier = LogisticRegression(C=0.1 if scaled else 10, max_iter=300)
            classifier.fit(scaler.transform(H), y)
            score = classifier.score(scaler.transform(H_test), y_test)
            found.setdefault(title, {}).setdefault(scaled, []).append(score)

    for train, test in KFold(3).split(X):
        scaler = MinMaxScaler(clip=True).fit(X[train])
        rows = [scaler.transform(X[part]) for part in (train, test)]
        labels = y[train], y[test]
        add("pixels", *rows, *labels)
        for n_hidden in (256, 1000):
            transform = untrained(n_hidden, 0.5, X, seed)
            add(f"{n_hidden} untrained, N(0, 0.5²)",
                *map(transform, rows), *labels)  # fmt: skip
        for title, make in makers.items():
            start = process_time()
            with unconverged_is_fine():
                model = make().fit(rows[0])
            seconds[title] = seconds.get(title, 0) + process_time() - start
            features = list(map(features_of(model), rows))
            add(title, *features, *labels)
            both = [np.hstack(pair) for pair in zip(rows, features, strict=True)]
            add(f"pixels beside {title}", *both, *labels)
    print("digits: mean accuracy of three folds in the order of the file; 256 hidden units\n")
    print_table(
        ["features", "C=10", "standardised, C=0.1", "seconds of a fit"],
        [
            [title, *(f"{np.mean(scores[scaled]):.3f}" for scaled in (False, True)),
             f"{seconds[title] / 3:.1f}" if title in seconds else ""]
            for title, scores in found.items()
        ],
    )  # fmt: skip


def choose_size(name, data, grid, epochs, args):
    """Print the grid search for one data set."""
    X, X_test, *_ = data
    machine = SDCPRBM(max_iter=epochs, batch_size=50, n_jobs=1, random_state=args.seed)
    search, seconds = timed(GridSearchCV(machine, grid, cv=args.folds).fit, X)
    results = search.cv_results_
    mean = results["mean_test_score"].reshape([len(grid[key]) for key in sorted(grid)])
    print(f"{name}: {len(X)} rows, {epochs} epochs, held-out log-likelihood in nats\n")
    rates, sizes = grid["learning_rate"], grid["n_components"]
    header = ["n_components", *(f"rate {rate:g}" for rate in rates)]
    print_table(
        header,
        [[n, *(f"{x:.2f}" for x in column)] for n, column in zip(sizes, mean.T, strict=True)],
    )
    held_out = search.score(X_test)
    print(f"chosen: {search.best_params_}, {seconds:.0f} s, {args.folds} folds; "
          f"on the test rows {held_out:.2f} nats\n")  # fmt: skip


def search_sizes(args):
    """Print the grid searches of the digits and of MNIST."""
    grid = {"n_components": [32, 64, 128], "learning_rate": [0.03, 0.1, 0.3]}
    mnist_grid = {"n_components": [64, 128, 256], "learning_rate": [0.02, 0.05, 0.1]}
    if args.quick:
        grid = mnist_grid = {"n_components": [8, 16], "learning_rate": [0.05, 0.1]}
    X, y = load_small_digits()
    parts = train_test_split(
        X.astype(np.float32), test_size=0.3, stratify=y, random_state=args.seed
    )
    # The likelihood is that of binary rows.
    parts = [binary(X) for X in parts]
    choose_size("digits, binary", parts, grid, 2 if args.quick else 30, args)
    try:
        X, X_test, *_ = load_images("mnist", args.data, args.search_rows)
    except MissingData as error:
        print(f"MNIST: {error}, left out")
        return
    epochs = 2 if args.quick else 10
    choose_size("MNIST, binary", (binary(X), binary(X_test)), mnist_grid, epochs, args)


def main():
    parser = make_parser(__doc__)
    parts = ["digits", "mnist", "large", "seeds", "search"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rows", type=int, default=20_000, help="training rows of mnist")
    parser.add_argument("--hidden", type=int, default=256, help="hidden units of mnist")
    parser.add_argument("--seconds", type=float, default=20.0, help="of training, in mnist")
    parser.add_argument("--seeds", type=int, default=3, help="of mnist and seeds")
    parser.add_argument("--large-seconds", type=float, default=60.0, help="of large and seeds")
    parser.add_argument("--search-rows", type=int, default=3000, help="of MNIST, in search")
    parser.add_argument("--steps", type=int, default=100, help="of lbfgs, at most")
    parser.add_argument("--folds", type=int, default=3, help="of search")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    large_rows, large_hidden = 60_000, 1000
    if args.quick:
        args.rows, args.search_rows, args.hidden, args.folds, args.seeds = 1000, 500, 32, 2, 2
        args.seconds = args.large_seconds = 0.5
        large_rows, large_hidden = 2000, 64
    title = "Features of restricted Boltzmann machines"
    if "digits" in args.parts:
        with report(args.output / "rbm_features_digits.txt", title):
            compare_digits(args)
    if "mnist" in args.parts and args.data is not None:
        with report(args.output / "rbm_features_mnist.txt", title):
            data = load_images("mnist", args.data, args.rows)
            setting = compare("MNIST", data, args.hidden, args.seconds, args)
            more_seeds(data, args.hidden, args.seconds, setting, args)
    if "large" in args.parts and args.data is not None:
        with report(args.output / "rbm_features_large.txt", title):
            data = load_images("mnist", args.data, large_rows)
            compare("MNIST", data, large_hidden, args.large_seconds, args, large=True)
    if "seeds" in args.parts and args.data is not None:
        with report(args.output / "rbm_features_seeds.txt", title):
            data = load_images("mnist", args.data, large_rows)
            seeds_of_many(data, large_hidden, args.large_seconds, args)
    if "search" in args.parts:
        with report(args.output / "rbm_features_search.txt", "Choice of size by likelihood"):
            search_sizes(args)


if __name__ == "__main__":
    run_script(main)
