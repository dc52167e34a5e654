"""Figure 2 of the S-DCP paper: Bars & Stripes 3×3, 4 hidden units.

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
        same = [last[a, rate] for a in ("CG-12", "S-DCP 3×4", "CS-DCP 3×4")]
        rows.append((f"CG, S-DCP and CS-DCP, rate {rate}", "almost the same",
                     ", ".join(f"{value:.2f}" for value in same),
                     max(same) - min(same) < 0.2))  # fmt: skip
        plain = [last[a, rate] for a in ("CD-12", "PCD-12")]
        rows.append((f"CD and PCD, rate {rate}", "below the three",
                     ", ".join(f"{value:.2f}" for value in plain),
                     max(plain) < min(same)))  # fmt: skip
        cg, ours = (speeds[a, rate] for a in ("CG-12", "CS-DCP 3×4"))
        rows.append((f"epochs that CG takes longer than CS-DCP to 90 % of its maximum, rate {rate}",
                     "about 2,500", f"{cg - ours:,} ({cg:,} and {ours:,})",
                     1_250 < cg - ours < 5_000))  # fmt: skip
    return rows


def main():
    reproduce_small(2, "bars", __doc__, claims)


if __name__ == "__main__":
    run_script(main)
