"""Size of the tests of a pair under independence, with few rows and rare values.

Independent columns; the p values of the first two columns' pair, by the Wald test and by the
likelihood ratio of FVBMPseudoLikelihood and by Pearson's chi-squared test of their table. Where the
data separate the pair, the first two have no p value, which counts as not rejected.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from scipy.stats import chi2_contingency
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FVBMPseudoLikelihood

# Rows, and the probabilities of the values of each column.
DESIGNS = {
    "3 columns of 4 levels": (300, [[0.4, 0.3, 0.2, 0.1]] * 3),
    "3 columns of 4 levels, rarer": (300, [[0.5, 0.3, 0.15, 0.05]] * 3),
    "3 levels and 4 levels": (300, [[0.6, 0.3, 0.1], [0.5, 0.3, 0.14, 0.06]]),
    "3 bits, two of rate .12": (120, [[0.88, 0.12], [0.88, 0.12], [0.5, 0.5]]),
}
LEVEL, TOLERANCE = 0.05, 0.02
TESTS = "Wald", "likelihood ratio", "chi-squared"


def p_values(X):
    """Of the pair of the first two columns, by each test; and whether a cell of theirs is empty."""
    table = np.array([[np.sum((X[:, 0] == a) & (X[:, 1] == b)) for b in np.unique(X[:, 1])]
                      for a in np.unique(X[:, 0])])  # fmt: skip
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    others = ~np.eye(X.shape[1], dtype=bool)
    others[0, 1] = others[1, 0] = False
    smaller = FVBMPseudoLikelihood(alpha=0.0, edges=others).fit(X)
    wald = model.inference(X).pair_p_value()[0, 1]
    ratio = model.likelihood_ratio(X, smaller).p_value
    return [wald, ratio, chi2_contingency(table, correction=False)[1]], not table.all()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="tables of each design")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, checks = [], []
    for name, (n, chances) in DESIGNS.items():
        rng = np.random.default_rng(0)
        found, empty = [], []
        for _ in range(args.tables):
            X = np.column_stack([rng.choice(len(p), size=n, p=p) for p in chances])
            p, has_empty = p_values(X)
            found.append(p)
            empty.append(has_empty)
        found, empty = np.array(found), np.array(empty)
        for which, kept in (("all", np.ones_like(empty)), ("no empty cell", ~empty),
                            ("an empty cell", empty)):  # fmt: skip
            if not kept.any():
                continue
            rejected = (found[kept] < LEVEL).mean(axis=0)
            no_p = np.isnan(found[kept]).mean(axis=0)
            rows.append([name, which, int(kept.sum()), f"{no_p[0]:.3f}",
                         *(f"{share:.3f}" for share in rejected)])  # fmt: skip
            if which != "an empty cell":
                checks.append((f"{name}, {which}", rejected))
    with report(args.output / "fvbm_size_of_tests.txt", "Size of tests under independence"):
        print_table(["design", "tables", "number", "without p", *TESTS], rows)
        for name, (wald, ratio, pearson) in checks:
            for test, share in (("Wald", wald), ("likelihood ratio", ratio)):
                asked = f"at most {pearson:.3f} + {TOLERANCE}"
                found = f"{share:.3f}"
                print_check(f"{test}, {name}", asked, found, share <= pearson + TOLERANCE)


if __name__ == "__main__":
    run_script(main)
