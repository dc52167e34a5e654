"""Figures 6 and 7 of the S-DCP paper: hyperparameters and initialisations, on MNIST.

Figure 6: learning rates, and d inner steps of K' transitions with d K' = 24. The text names the
learning rate 0.01 and d = 6, K' = 4 only; the others are chosen here.

Figure 7: batch sizes, and four initialisations (Table 1 of the paper). The weights begin with
N(0, 0.001²) or N(0, 0.01²), the biases of the visible units with 0 or with the log-odds of the
means ("base rate"). The text does not give the batch sizes; the learning rate is 0.01.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
import numpy as np
from _common import script
from _sdcp import OURS, Curve, image_settings, reproduce_images

# Deviation of the weights; biases of the visible units, if they are not the base rate.
INITIAL = {
    "Init 1": dict(init=0.001, visible_bias=0.0),
    "Init 2": dict(init=0.01, visible_bias=0.0),
    "Init 3": dict(init=0.001),
    "Init 4": dict(init=0.01),
}


def of_hyperparameters(args):
    """S-DCP and CS-DCP at some learning rates, and with some numbers of inner steps."""

    def options(name, d, rate):
        return OURS[name] | dict(n_inner=d, n_gibbs=24 // d, learning_rate=rate)

    by_rate = {
        f"{name}, {rate:g}": Curve("learning rate", options(name, 6, rate))
        for name in OURS
        for rate in args.rates
    }
    by_inner = {
        f"{name} {d}×{24 // d}": Curve(
            f"d×K', learning rate {args.inner_rate:g}", options(name, d, args.inner_rate)
        )
        for name in OURS
        for d in args.inner
    }
    return by_rate | by_inner


def of_starts(args):
    """S-DCP with batches of some sizes; S-DCP and CS-DCP from each of the starts."""
    rate = dict(learning_rate=args.rate)
    by_batch = {
        f"S-DCP, batches of {size}": Curve(
            f"batch size, rate {args.rate:g}", OURS["S-DCP"] | rate | dict(batch_size=size)
        )
        for size in args.batches
    }
    by_start = {
        f"{name}, {start}": Curve("initialisation", OURS[name] | rate | initial)
        for name in OURS
        for start, initial in INITIAL.items()
    }
    return by_batch | by_start


# What the paper says of its figures.


def about_hyperparameters(paths, ends, args):
    rows, rate = [], min(args.rates)
    for name in OURS:
        slow = paths[f"{name}, {rate:g}"]
        rises = int((np.diff(slow) > 0).sum())
        rows.append((f"{name}, rate {rate:g}: points that are above the one before",
                     "most", f"{rises} of {len(slow) - 1}",
                     rises > 0.5 * (len(slow) - 1)))  # fmt: skip
        order = [ends[f"{name} {d}×{24 // d}"][0] for d in args.inner]
        first = [paths[f"{name} {d}×{24 // d}"][0] for d in args.inner]
        rows.append((f"{name}, d = {', '.join(map(str, args.inner))}: first point",
                     "the larger d, the faster", ", ".join(f"{x:.1f}" for x in first),
                     first == sorted(first)))  # fmt: skip
        rows.append((f"{name}, the same after {args.epochs} epochs", "the same in the end",
                     ", ".join(f"{x:.1f}" for x in order),
                     max(order) - min(order) < 3 if args.epochs >= 200 else None))  # fmt: skip
    return rows


def about_starts(paths, ends, args):
    values = [ends[f"S-DCP, batches of {size}"][0] for size in args.batches]
    rows = [(f"S-DCP, batches of {', '.join(map(str, args.batches))}", "almost the same",
             ", ".join(f"{x:.1f}" for x in values),
             max(values) - min(values) < 5 if args.epochs >= 200 else None)]  # fmt: skip
    for name in OURS:
        values = [ends[f"{name}, {start}"][0] for start in INITIAL]
        rows.append((f"{name}, Init 1 to 4", "less sensitive",
                     ", ".join(f"{x:.1f}" for x in values),
                     max(values) - min(values) < 5))  # fmt: skip
    return rows


FIGURES = {
    6: ("hyperparameters", of_hyperparameters, about_hyperparameters),
    7: ("batch size and initialisation", of_starts, about_starts),
}


@script
def main():
    args = image_settings(
        __doc__,
        full=dict(figures=list(FIGURES), rates=[0.01, 0.05, 0.1], inner=[2, 4, 6, 12],
                  inner_rate=0.05, rate=0.01, batches=[50, 100, 200, 500]),
        # The few steps must be longer to come anywhere.
        quick=dict(rates=[0.01, 0.05], inner=[2, 6, 12], rate=0.05, batches=[25, 50, 100]),
    )  # fmt: skip
    for number in args.figures:
        subject, curves, claims = FIGURES[number]
        reproduce_images(number, subject, args, curves=curves, claims=claims)
