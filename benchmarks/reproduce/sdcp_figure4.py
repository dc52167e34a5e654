"""Figure 4 of the S-DCP paper: five algorithms on OMNIGLOT.

The text names no learning rates; they are taken to be those of Figure 3.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

from _five_algorithms import reproduce


def claims(ends, args):
    """What the paper says of its figure."""
    rows = []
    for rate in args.rates:
        ours = [ends[a, rate][0] for a in ("S-DCP", "CS-DCP")]
        others = {a: ends[a, rate][0] for a in ("CD-24", "PCD-24", "CG-24")}
        best = max(others, key=others.get)
        rows.append((f"S-DCP and CS-DCP, and the best of the others, rate {rate:g}",
                     "both above all others",
                     f"{ours[0]:.1f} and {ours[1]:.1f}; {others[best]:.1f} ({best})",
                     min(ours) > others[best]))  # fmt: skip
    return rows


if __name__ == "__main__":
    reproduce("omniglot", 4, __doc__, claims)
