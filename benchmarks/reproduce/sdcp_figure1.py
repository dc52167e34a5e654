"""Figure 1 of the S-DCP paper: Shifting Bar 9/1, 4 hidden units.

Full batch, learning rates 0.3 and 0.5, 12 transitions for each mini-batch in all algorithms.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import run_script
from _sdcp import reproduce_small


def claims(last, speeds, args):
    """What the paper says of its figure."""
    rows = []
    for rate in (0.3, 0.5):
        stuck = [last[algorithm, rate] for algorithm in ("CD-12", "PCD-12")]
        rows.append((f"CD and PCD, rate {rate}", "stuck at about -3.15",
                     f"{stuck[0]:.2f}, {stuck[1]:.2f}",
                     max(abs(value + 3.15) for value in stuck) < 0.1))  # fmt: skip
    slow, fast = last["CG-12", 0.3], last["CG-12", 0.5]
    rows.append(("CG, rates 0.3 and 0.5", "escapes at 0.5 only", f"{slow:.2f}, {fast:.2f}",
                 slow < -2.9 < -2.7 < fast))  # fmt: skip
    for algorithm in ("S-DCP 3×4", "CS-DCP 3×4"):
        both = [last[algorithm, rate] for rate in (0.3, 0.5)]
        rows.append((f"{algorithm}, rates 0.3 and 0.5", "almost the same",
                     f"{both[0]:.2f}, {both[1]:.2f}", abs(both[0] - both[1]) < 0.2))  # fmt: skip
    others = max(last[a, 0.3] for a in ("CD-12", "PCD-12", "CG-12"))
    ours = [last[a, 0.3] for a in ("S-DCP 3×4", "CS-DCP 3×4")]
    rows.append((f"rate 0.3: the best of CD, PCD and CG after {args.epochs:,} updates",
                 "below S-DCP and CS-DCP up to 30,000",
                 f"{others:.2f}, below {ours[0]:.2f} and {ours[1]:.2f}"
                 if others < min(ours) else f"{others:.2f}, not below {min(ours):.2f}",
                 others < min(ours) if args.epochs <= 30_000 else None))  # fmt: skip
    return rows


def main():
    reproduce_small(1, "shifting", __doc__, claims)


if __name__ == "__main__":
    run_script(main)
