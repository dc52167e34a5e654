"""Log-likelihood of MNIST (or OMNIGLOT) under RBMs of 500 hidden units, by AIS and by RAISE.

Statistically binarised with a fixed seed; 100 chains, 2,000 temperatures. For example

    python bench_rbm_mnist.py --data DIR --algorithms cs-dcp s-dcp --epochs 10
    python bench_rbm_mnist.py --data DIR --hidden 1000 --redraw --decay 1e-4 --bracket \
        --phases 18:0.05 20:0.015 16:0.0045 40:0.02:centred-pcd-5 \
        12:0.005:centred-pcd-5 8:0.0015:centred-pcd-5 --model FILE --name rbm_mnist_record

Claims at 10 epochs: CS-DCP 6×4 ≥ −92.5, S-DCP ≥ −101.5; `BernoulliRBM` for the same seconds of the
processor at least 10 nats worse. In the long run, past −86.34 is asked: ``--phases 15:0.05
35:0.02`` are epochs and learning rates in turn (with an algorithm of its own:
``30:0.01:centred-pcd-5``), and in the last of them the model is also the mean of the parameters
after each epoch; ``--redraw`` draws the bits of the training rows anew from their grey levels in
each epoch. ``--model FILE`` keeps the model after each phase, and goes on from there when the
script is started again; ``--bracket`` adds ln Z by the ladder, and by AIS and RAISE with five times
as many temperatures.
"""

from copy import deepcopy
from functools import partial
from pathlib import Path
from time import process_time

import _path  # noqa: F401
import joblib
import numpy as np
from _baselines import BernoulliRBMPeer, as_sdcp_rbm
from _common import (
    log_likelihood,
    make_parser,
    print_bracket,
    print_check,
    print_table,
    report,
    script,
)
from _data import binary, load_images

from sklearn_boltz import SDCPRBM

ALGORITHMS = {
    "cs-dcp": dict(batch_size=200),
    "s-dcp": dict(batch_size=200, centered=False),
    "cd-24": dict(batch_size=200, n_inner=1, n_gibbs=24, centered=False),
    "pcd-24": dict(batch_size=200, n_inner=1, n_gibbs=24, centered=False, chains="persistent"),
    "cg-24": dict(batch_size=200, n_inner=1, n_gibbs=24),
    "pcd": dict(batch_size=100, n_inner=1, n_gibbs=1, centered=False, chains="persistent"),
    "centred-pcd": dict(batch_size=100, n_inner=1, n_gibbs=1, chains="persistent"),
    "centred-pcd-5": dict(batch_size=100, n_inner=1, n_gibbs=5, chains="persistent"),
}


def phases(args, name):
    """(epochs, learning rate, algorithm) in turn."""
    if not args.phases:
        return [(args.epochs, args.rate, name)]
    parts = [phase.split(":") for phase in args.phases]
    return [(int(p[0]), float(p[1]), p[2] if len(p) > 2 else name) for p in parts]


def evaluate(model, X_test, args):
    """Mean test log-likelihood by log Z from below and from above, and the standard error."""
    ladder = dict(n_chains=100, n_temperatures=args.temperatures)
    return log_likelihood(model, X_test, reverse=True, **ladder)


def train(name, X, X_test, redraw, args):
    """Fit with one algorithm, printing a line now and then; -> rows of the table."""
    model = SDCPRBM(args.hidden, max_iter=1, warm_start=True, alpha=args.decay,
                    random_state=args.seed)  # fmt: skip
    mean, n_averaged, seconds, steps, done_phases, rows = None, 0, 0.0, phases(args, name), 0, []
    if args.model and args.model.exists():
        model, mean, seconds, n_averaged, done_phases, rows = joblib.load(args.model)
    for phase, (epochs, rate, algorithm) in enumerate(steps):
        if phase < done_phases:
            continue
        settings = dict(n_inner=6, n_gibbs=4, centered=True, chains="data")
        model.set_params(learning_rate=rate, **settings | ALGORITHMS[algorithm])
        for done in range(1, epochs + 1):
            start = process_time()
            if args.redraw:
                X = redraw()
            model.fit(X)
            seconds += process_time() - start
            if len(steps) > 1 and phase == len(steps) - 1:
                n_averaged += 1
                mean = deepcopy(model) if mean is None else mean
                move_mean(mean, model, n_averaged)
            if done % args.every and done < epochs:
                continue
            rows = []
            for label, fitted in labelled(name, model, mean, n_averaged):
                low, high, error = evaluate(fitted, X_test, args)
                print(f"{label}: epoch {model.n_iter_}, {seconds:.0f} s, AIS {low:.2f} ± "
                      f"{error:.2f}, RAISE {high:.2f}")  # fmt: skip
                rows.append([label, model.n_iter_, low, high, error, seconds])
        if args.model:
            joblib.dump((model, mean, seconds, n_averaged, phase + 1, rows), args.model)
    if args.bracket:
        for label, fitted in labelled(name, model, mean, n_averaged):
            print(f"\n{label}\n")
            low = print_bracket(fitted, X_test, n_chains=100, n_temperatures=5 * args.temperatures)
            print_check("low end of the ladder and AIS", "> -86", f"{low:.2f}", low > -86)
    return rows


def labelled(name, model, mean, n_averaged):
    """(label, model) of the model, and of the mean if it has begun."""
    return [(name, model)] + [(f"{name}, mean of {n_averaged}", mean)] * (n_averaged > 0)


def move_mean(mean, model, n):
    """Make `mean` the mean of n models, of which `model` is the last."""
    for name in ["components_", "intercept_visible_", "intercept_hidden_"]:
        before = getattr(mean, name)
        setattr(mean, name, before + (getattr(model, name) - before) / n)


def bernoulli_rbm(X, X_test, seconds, args):
    """scikit-learn's RBM after as many seconds, its likelihood by our AIS."""
    peer = BernoulliRBMPeer(X, args.hidden, learning_rate=args.rate, batch_size=100, seed=args.seed)
    epochs, spent = peer.train(seconds)
    figures = evaluate(as_sdcp_rbm(peer.parameters(), X), X_test, args)
    return ["BernoulliRBM", f"{epochs:.1f}", *figures, spent]


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=["mnist", "omniglot"], default="mnist")
    parser.add_argument("--algorithms", nargs="+", choices=list(ALGORITHMS), default=["cs-dcp"])
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--decay", type=float, default=0.0, help="L2 penalty")
    parser.add_argument("--model", type=Path, help="file of the model, from which a run goes on")
    parser.add_argument("--bracket", action="store_true", help="ladder and a longer AIS at the end")
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations")
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--phases", nargs="+", help="epochs:rate in turn")
    parser.add_argument("--peer", action="store_true", help="BernoulliRBM for the same seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="rbm_mnist", help="of the file of results")
    parser.add_argument("--redraw", action="store_true", help="bits anew in each epoch")
    args = parser.parse_args()
    if args.model and len(args.algorithms) > 1:
        parser.error("--model is for one algorithm")
    grey, grey_test, *_ = load_images(args.set, args.data)
    draw = partial(binary, rng=np.random.default_rng(args.seed))
    X, X_test = draw(grey), draw(grey_test)
    title = f"{args.set}, {len(X)} rows, {args.hidden} hidden units, learning rate {args.rate}"
    with report(args.output / f"{args.name}.txt", title):
        if args.phases:
            print(f"phases {' '.join(args.phases)}, decay {args.decay}\n")
        redraw = partial(draw, grey)
        rows = sum((train(name, X, X_test, redraw, args) for name in args.algorithms), [])
        if args.peer:
            rows.append(bernoulli_rbm(X, X_test, rows[0][-1], args))
        print()
        header = ["", "epochs", "AIS", "RAISE", "std. err.", "seconds"]
        print_table(header, rows, ",.2f,.2f,.2f,.0f")
