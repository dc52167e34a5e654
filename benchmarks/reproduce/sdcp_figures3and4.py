"""Figures 3 and 4 of the S-DCP paper: five algorithms on statistically binarised MNIST, OMNIGLOT.

The text names one of the two learning rates of Figure 3, 0.01; the other is taken to be 0.05, and
those of Figure 4, which it does not name, to be the same.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import script
from _sdcp import COMPARED, Curve, image_settings, reproduce_images


def curves(args):
    """A panel for each learning rate."""
    return {
        f"{name}, rate {rate:g}": Curve(
            f"{args.title}, learning rate {rate:g}", options | dict(learning_rate=rate), name
        )
        for rate in args.rates
        for name, options in COMPARED.items()
    }


# What the paper says of its figures.


def of_mnist(paths, ends, args):
    rows, slow = [], min(args.rates)
    for rate in args.rates:
        values = {a: ends[f"{a}, rate {rate:g}"][0] for a in COMPARED}
        best = max(values, key=values.get)
        rows.append((f"the highest in the end, rate {rate:g}", "",
                     f"{best}, {values[best]:.1f}", None))  # fmt: skip
        spread = values[best] - min(values.values())
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


def of_omniglot(paths, ends, args):
    rows = []
    for rate in args.rates:
        ours = [ends[f"{a}, rate {rate:g}"][0] for a in ("S-DCP", "CS-DCP")]
        others = {a: ends[f"{a}, rate {rate:g}"][0] for a in ("CD-24", "PCD-24", "CG-24")}
        best = max(others, key=others.get)
        rows.append((f"S-DCP and CS-DCP, and the best of the others, rate {rate:g}",
                     "both above all others",
                     f"{ours[0]:.1f} and {ours[1]:.1f}; {others[best]:.1f} ({best})",
                     min(ours) > others[best]))  # fmt: skip
    return rows


FIGURES = {"mnist": (3, of_mnist), "omniglot": (4, of_omniglot)}


@script
def main():
    args = image_settings(__doc__, dict(sets=list(FIGURES), rates=[0.01, 0.05]))
    for name in args.sets:
        number, claims = FIGURES[name]
        args.title = name.upper()
        reproduce_images(number, args.title, args, curves=curves, claims=claims, data=name)
