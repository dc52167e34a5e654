"""Figure 7 of the S-DCP paper: batch sizes, and four initialisations (its Table 1), on MNIST.

The weights begin with N(0, 0.001²) or N(0, 0.01²), the biases of the visible units with 0 or with
the log-odds of the means ("base rate"). The text does not give the batch sizes; the learning
rate is 0.01.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import run_script
from _sdcp import OURS, Curve, image_settings, reproduce_images

# Deviation of the weights; biases of the visible units, if they are not the base rate.
INITIAL = {
    "Init 1": dict(weights_init=0.001, visible_bias=0.0),
    "Init 2": dict(weights_init=0.01, visible_bias=0.0),
    "Init 3": dict(weights_init=0.001),
    "Init 4": dict(weights_init=0.01),
}


def curves(args):
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


def claims(paths, ends, args):
    """What the paper says of its figure."""
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


def main():
    args = image_settings(
        __doc__,
        full=dict(rate=0.01, batches=[50, 100, 200, 500]),
        # The few steps must be longer to come anywhere.
        quick=dict(rate=0.05, batches=[25, 50, 100]),
    )
    reproduce_images(7, "batch size and initialisation", args, curves=curves, claims=claims)


if __name__ == "__main__":
    run_script(main)
