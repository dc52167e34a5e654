"""Figure 3 of the S-DCP paper: five algorithms on statistically binarised MNIST.

The text names one of the two learning rates, 0.01; the other is taken to be 0.05.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

from _five_algorithms import reproduce
from _large_sets import COMPARED


def claims(ends, args):
    """What the paper says of its figure."""
    rows, slow = [], min(args.rates)
    for rate in args.rates:
        best = max(COMPARED, key=lambda a: ends[a, rate][0])
        rows.append((f"the highest in the end, rate {rate:g}", "",
                     f"{best}, {ends[best, rate][0]:.1f}", None))  # fmt: skip
        values = [ends[a, rate][0] for a in COMPARED]
        spread = max(values) - min(values)
        rows.append((f"range of the five after {args.epochs} epochs, rate {rate:g}",
                     "almost the same after 200", f"{spread:.1f} nats",
                     spread < 5 if args.epochs >= 200 else None))  # fmt: skip
    cg, ours = ends["CG-24", slow], ends["CS-DCP", slow]
    rows.append((f"rate {slow:g}: CG and CS-DCP after {args.epochs} epochs",
                 "CS-DCP is faster", f"{cg[0]:.1f} and {ours[0]:.1f}",
                 ours[0] > cg[0]))  # fmt: skip
    rows.append((f"rate {slow:g}: epochs to 90 % of the maximum, CG and CS-DCP",
                 "about 100 apart", f"{cg[1]} and {ours[1]} of {args.epochs}",
                 50 < cg[1] - ours[1] < 200 if args.epochs >= 200 else None))  # fmt: skip
    return rows


if __name__ == "__main__":
    reproduce("mnist", 3, __doc__, claims)
