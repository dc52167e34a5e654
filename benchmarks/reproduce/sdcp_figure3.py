"""Figure 3 of the S-DCP paper: five algorithms on statistically binarised MNIST.

The text names one of the two learning rates, 0.01; the other is taken to be 0.05.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import run_script
from _sdcp import COMPARED, five_algorithms, reproduce_images


def claims(paths, ends, args):
    """What the paper says of its figure."""
    rows, slow = [], min(args.rates)
    for rate in args.rates:
        best = max(COMPARED, key=lambda a: ends[f"{a}, rate {rate:g}"][0])
        value = ends[f"{best}, rate {rate:g}"][0]
        rows.append((f"the highest in the end, rate {rate:g}", "",
                     f"{best}, {value:.1f}", None))  # fmt: skip
        values = [ends[f"{a}, rate {rate:g}"][0] for a in COMPARED]
        spread = max(values) - min(values)
        rows.append((f"range of the five after {args.epochs} epochs, rate {rate:g}",
                     "almost the same after 200", f"{spread:.1f} nats",
                     spread < 5 if args.epochs >= 200 else None))  # fmt: skip
    cg, ours = (ends[f"{a}, rate {slow:g}"] for a in ("CG-24", "CS-DCP"))
    rows.append((f"rate {slow:g}: CG and CS-DCP after {args.epochs} epochs",
                 "CS-DCP is faster", f"{cg[0]:.1f} and {ours[0]:.1f}",
                 ours[0] > cg[0]))  # fmt: skip
    rows.append((f"rate {slow:g}: epochs to 90 % of the maximum, CG and CS-DCP",
                 "about 100 apart", f"{cg[1]} and {ours[1]} of {args.epochs}",
                 50 < cg[1] - ours[1] < 200 if args.epochs >= 200 else None))  # fmt: skip
    return rows


def main():
    reproduce_images(3, "MNIST", __doc__, curves=five_algorithms("MNIST"), claims=claims,
                     full=dict(rates=[0.01, 0.05]))  # fmt: skip


if __name__ == "__main__":
    run_script(main)
