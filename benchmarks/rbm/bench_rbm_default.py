"""The default RBM: beside a grid of 30 settings on the digits, and on MNIST until it stops.

``SDCPRBM(random_state=seed)`` learns from 360, 720 and 1,437 binary digits, and so does each of a
grid of sizes, learning rates and penalties, with the number of epochs chosen on validation rows.
The best of the grid is chosen on the test rows, which no user could do. Log-likelihoods are exact
or estimated by annealing, 95 % of whose error the table has. `BernoulliRBM` has 64 units and 100
epochs. The last table has the accuracy of a logistic regression on pixels and on the features of
the default, in three folds in the order of the file.

``--parts tuned`` compares with `BernoulliRBM` at the rate .02, in 300 epochs of batches of 20.

``--parts shifted`` adds the training rows shifted by a pixel in each direction, with a weight that
rows held out choose; one RBM, and a mixture of four. The first 1,400 digits are learned, the other
397 are tested.

``--parts mnist`` trains the default on 60,000 rows of MNIST, whose bits are drawn once, in one
thread, until it stops. Its log-likelihood of the test rows is that by a ladder of models, by AIS
and by RAISE with 500 chains and 10,000 temperatures.
"""

import warnings
from itertools import product

import _path  # noqa: F401
import numpy as np
from _baselines import independent, parameters_of
from _common import (
    log_likelihood,
    make_parser,
    print_bracket,
    print_check,
    print_table,
    processor_timed,
    report,
    script,
    unconverged_is_fine,
)
from _data import binary, load_bits, load_small_digits
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM

SIZES, RATES, DECAYS = (16, 32, 64, 128, 256), (0.02, 0.05, 0.1), (0.0, 2e-3)
N_TEST = 360
ROWS = (360, 720, 1437)
ANNEALING = dict(n_chains=200, n_temperatures=2000)


def fitted(estimator, X, test, **settings):
    """-> test log-likelihood, twice its standard error, seconds, the fit."""
    if estimator is BernoulliRBM:
        model, seconds = processor_timed(BernoulliRBM(64, **settings).fit, X)
        model = SDCPRBM.from_parameters(*parameters_of(model))
    else:
        model, seconds = processor_timed(estimator(n_jobs=1, **settings).fit, X)
    value, error = log_likelihood(model, test, **ANNEALING)
    return float(value), 2 * error, seconds, model


def compare_grid(args, X, test):
    """Print the table of likelihoods."""
    rows, differences, times = [], [], {}
    for n_rows in ROWS:
        grid = [
            dict(n_components=size, learning_rate=rate, alpha=decay, batch_size=20,
                 early_stopping=True, chains="data")
            for size, rate, decay in product(SIZES, RATES, DECAYS)
        ]  # fmt: skip
        found = [
            (*fitted(SDCPRBM, X[:n_rows], test, random_state=0, **settings)[:3], settings)
            for settings in grid
        ]
        best, error, _, settings = max(found, key=lambda row: row[0])
        total = sum(seconds for _, _, seconds, _ in found)
        chosen = ", ".join(f"{settings[name]:g}" for name in
                           ("n_components", "learning_rate", "alpha"))  # fmt: skip
        rows.append([n_rows, f"best of {len(grid)} ({chosen})", best, error, total])
        for estimator in (SDCPRBM, TAPRBM, TAPDBM, BernoulliRBM):
            more = {"n_iter": 100} if estimator is BernoulliRBM else {}
            fits = [
                fitted(estimator, X[:n_rows], test, random_state=s, **more)
                for s in range(args.seeds)
            ]
            value, error, times[estimator] = np.mean([figures for *figures, _ in fits], axis=0)
            layers = fits[0][-1].components_
            size = ", ".join(str(len(W)) for W in (layers if estimator is TAPDBM else [layers]))
            name = f"{estimator.__name__}() ({size}), {args.seeds} seeds"
            rows.append([n_rows, name, value, error, times[estimator]])
            if estimator is SDCPRBM:
                differences.append(best - value)
        rows.append([n_rows, "independent pixels", independent(X[:n_rows], test), 0.0, 0.0])
    header = ["rows", "model (units, rate, penalty)", "log-likelihood", "error", "seconds"]
    print_table(header, rows, ",.2f,.2f,.1f")
    worst = max(differences)
    print_check("nats below the best of the grid, at most", "0.3", f"{worst:.2f}", worst <= 0.3)
    for estimator, most in ((SDCPRBM, 3), (TAPRBM, 8), (TAPDBM, 10)):
        ratio = times[estimator] / times[BernoulliRBM]
        what = f"{estimator.__name__}(), {ROWS[-1]} rows: times the seconds of BernoulliRBM"
        print_check(what, f"<= {most}", f"{ratio:.1f}", ratio <= most)


def compare_tuned(args, X, test):
    """Print likelihoods and seconds beside those of a tuned `BernoulliRBM`."""
    tuned = {"learning_rate": 0.02, "batch_size": 20, "n_iter": 300}
    models = {
        "SDCPRBM()": (SDCPRBM, {}),
        "BernoulliRBM, tuned": (BernoulliRBM, tuned),
        "BernoulliRBM, 100 epochs": (BernoulliRBM, {"n_iter": 100}),
    }
    rows = [
        [name, *np.mean([fitted(model, X, test, random_state=seed, **options)[:3]
                         for seed in range(args.seeds)], axis=0)]
        for name, (model, options) in models.items()
    ]  # fmt: skip
    print_table(["model", "log-likelihood", "error", "seconds"], rows, ".2f,.2f,.1f")
    (_, ours, _, our_time), (_, theirs, _, their_time) = rows[:2]
    gain, ratio = ours - theirs, our_time / their_time
    print_check("nats above the tuned BernoulliRBM", ">= 1", f"{gain:.1f}", gain >= 1)
    print_check("times its seconds", "<= 1", f"{ratio:.1f}", ratio <= 1)


def compare_features(X, y):
    """Print accuracies of logistic regression."""
    folds, classifier = KFold(3), LogisticRegression(C=10, max_iter=2000)
    models = {"pixels": classifier}
    for model in (SDCPRBM(random_state=0), TAPRBM(random_state=0)):
        models[f"features of {model}"] = make_pipeline(model, classifier)
    found = {name: cross_val_score(model, X, y, cv=folds).mean() for name, model in models.items()}
    print_table(["features", "accuracy"], found.items(), ".3f")


def with_shifted(X, weight):
    """Rows, those of the images shifted by a pixel in four directions, and the weights of all."""
    images = np.pad(X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moved = [np.roll(images, step, axis) for step in (1, -1) for axis in (1, 2)]
    shifted = np.concatenate(moved)[:, 1:-1, 1:-1].reshape(-1, X.shape[1])
    return np.vstack([X, shifted]), np.repeat([1, weight], [len(X), len(shifted)])


def learn_shifted():
    """Print the likelihoods with and without shifted rows."""
    X = (load_small_digits()[0] * 16 > 7).astype(np.float32)
    learned, test = X[:1400], X[1400:]
    tried = {}
    for weight in (0.02, 0.05, 0.1):
        more, weights = with_shifted(learned[:1200], weight)
        model = SDCPRBM(random_state=0).fit(more, sample_weight=weights)
        tried[weight] = model.score(learned[1200:])
        print(f"shifted rows with weight {weight:g}: {tried[weight]:.2f} of 200 rows held out")
    more, weights = with_shifted(learned, max(tried, key=tried.get))
    cases = [
        ("SDCPRBM()", learned, None, ["auto"]),
        ("SDCPRBM(), with shifted rows", more, weights, ["auto"]),
        ("SDCPRBM(200), with shifted rows", more, weights, [200]),
        ("mixture of four SDCPRBM(), with shifted rows", more, weights, ["auto"] * 4),
    ]
    rows = []
    for name, given, given_weights, sizes in cases:
        parts = [SDCPRBM(size, random_state=seed, n_jobs=1) for seed, size in enumerate(sizes)]
        fits = [processor_timed(part.fit, given, sample_weight=given_weights) for part in parts]
        found = [part.log_partition("ais", random_state=0, **ANNEALING) for part in parts]
        of_parts = [-part.free_energy(test) - z.value for part, z in zip(parts, found, strict=True)]
        value = (logsumexp(of_parts, axis=0) - np.log(len(parts))).mean()
        error = 2 * max(z.std_err for z in found)
        rows.append([name, value, error, sum(seconds for _, seconds in fits)])
    print_table(["", "log-likelihood", "error", "seconds"], rows, ".2f,.2f,.1f")
    _, value, _, seconds = rows[-1]
    met = value >= -16.3 and seconds <= 30
    print_check("a mixture", ">= -16.3 in 30 s", f"{value:.2f} in {seconds:.0f} s", met)


def stop_on_mnist(args):
    """Print what the default chose on MNIST, and its likelihood."""
    X, test = load_bits("mnist", args.data, rng=np.random.default_rng(0))
    with threadpool_limits(1):
        model, seconds = processor_timed(SDCPRBM(random_state=0, n_jobs=1, verbose=1).fit, X)
    history = model.history_
    rates = history["learning_rate"]
    print(f"{len(X)} rows, {model.n_components_} hidden units, {seconds:.0f} seconds\n")
    rows = []
    for rate in np.unique(rates)[::-1]:
        values = history["validation_log_likelihood"][rates == rate]
        rows.append([f"{rate:.5f}", len(values), values[-1]])
    print_table(["learning rate", "epochs", "of validation rows, in the end"], rows, ",.2f")
    low = print_bracket(model, test, n_chains=500, n_temperatures=10_000)
    print_check("low end of the ladder and AIS", ">= -88", f"{low:.2f}", low >= -88)


@script
def main():
    parser = make_parser(__doc__, seeds=3)
    parts = ["digits", "tuned", "shifted", "mnist"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    args = parser.parse_args()
    with unconverged_is_fine(), warnings.catch_warnings():
        if "digits" in args.parts:
            with report(args.output / "rbm_default.txt", "The default RBM on the digits"):
                grey, y = load_small_digits()
                X = binary(grey)
                compare_grid(args, *np.split(np.random.default_rng(0).permutation(X), [-N_TEST]))
                compare_features(X, y)
        if "tuned" in args.parts:
            with report(args.output / "rbm_tuned.txt", "The default RBM beside a tuned one"):
                X = np.random.default_rng(0).permutation(binary(load_small_digits()[0]))
                compare_tuned(args, *np.split(X, [-N_TEST]))
        if "shifted" in args.parts:
            with report(args.output / "rbm_shifted.txt", "Digits and the same shifted by a pixel"):
                learn_shifted()
        if "mnist" in args.parts and args.data is not None:
            with report(args.output / "rbm_default_mnist.txt", "The default RBM on MNIST"):
                stop_on_mnist(args)
