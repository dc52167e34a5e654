"""Figure 6 of the S-DCP paper: learning rates, and d inner steps of K' transitions with d K' = 24.

On MNIST. The text names the learning rate 0.01 and d = 6, K' = 4 only; the others are chosen
here.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
import numpy as np
from _common import run_script
from _sdcp import OURS, Curve, image_settings, reproduce_images


def curves(args):
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
            f"d×K', learning rate {args.rate:g}", options(name, d, args.rate)
        )
        for name in OURS
        for d in args.inner
    }
    return by_rate | by_inner


def claims(paths, ends, args):
    """What the paper says of its figure."""
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


def main():
    args = image_settings(
        __doc__,
        full=dict(rates=[0.01, 0.05, 0.1], inner=[2, 4, 6, 12], rate=0.05),
        quick=dict(rates=[0.01, 0.05], inner=[2, 6, 12]),
    )
    reproduce_images(6, "hyperparameters", args, curves=curves, claims=claims)


if __name__ == "__main__":
    run_script(main)
