"""Figure 4 of the S-DCP paper: five algorithms on OMNIGLOT.

The text names no learning rates; they are taken to be those of Figure 3.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import run_script
from _sdcp import five_algorithms, reproduce_images


def claims(paths, ends, args):
    """What the paper says of its figure."""
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


def main():
    reproduce_images(4, "OMNIGLOT", __doc__, curves=five_algorithms("OMNIGLOT"), claims=claims,
                     data="omniglot", full=dict(rates=[0.01, 0.05]))  # fmt: skip


if __name__ == "__main__":
    run_script(main)
