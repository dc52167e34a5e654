"""What to fill in columns with an order: mode, median or mean, beside two imputers of scikit-learn.

A fifth of the cells of tables is hidden: digits (12 pixels of 800 pictures), the mixed tables and
those of numbers. Means over columns of numbers and levels with more than two values: the share
found, and the absolute and root mean square error in standard deviations of the column.
`IterativeImputer` and `KNNImputer` see these columns alone; what they fill is rounded to the
nearest value for the share.
"""

import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, report, script
from _data import load_mixed, load_numbers
from bench_impute import MIXED, NUMBERS
from sklearn.datasets import load_digits
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from sklearn_boltz import BoltzmannImputer

PIXELS, N_PICTURES = [10, 11, 12, 18, 19, 20, 26, 27, 28, 34, 35, 36], 800


def load(name, folder):
    """A table."""
    if name == "digits":
        pixels = load_digits().data[:N_PICTURES, PIXELS]
        return pd.DataFrame(pixels.astype(int)).add_prefix("pixel ")
    return load_numbers(name) if name in NUMBERS else load_mixed(name, folder)


def compare(name, table):
    """A line for each kind of filling."""
    hidden = table.notna() & (np.random.default_rng(0).random(table.shape) < 0.2)
    gaps = table.mask(hidden)
    ordered = [c for c in table.select_dtypes("number") if table[c].nunique() > 2]
    boltzmann = BoltzmannImputer().fit(gaps)
    for how in ("auto", "mode", "median", "mean"):
        yield (
            name,
            how,
            *figures(table, boltzmann.set_params(how=how).transform(gaps), hidden, ordered),
        )
    for imputer in (IterativeImputer(), KNNImputer()):
        filled = pd.DataFrame(imputer.fit_transform(gaps[ordered]), columns=ordered)
        yield name, type(imputer).__name__, *figures(table, filled, hidden, ordered)


def figures(table, filled, hidden, ordered):
    """The three figures."""
    found = []
    for column in ordered:
        rows, values = hidden[column].to_numpy(), np.unique(table[column].dropna())
        true, own = (frame[column].to_numpy(float)[rows] for frame in (table, filled))
        nearest = values[np.abs(own[:, None] - values).argmin(axis=1)]
        error = (own - true) / table[column].std()
        found.append([(nearest == true).mean(), np.abs(error).mean(), (error**2).mean()])
    right, absolute, squares = np.mean(found, axis=0)
    return right, absolute, np.sqrt(squares)


@script
def main():
    parser = make_parser(__doc__, sets=["digits", *MIXED, *NUMBERS])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with report(args.output / "tables_how.txt", "Mode, median and mean of ordered columns"):
        lines = [line for name in args.sets for line in compare(name, load(name, args.data))]
        header = ["table", "filled", "found", "absolute error", "root mean square error"]
        print_table(header, lines, ",.3f,.3f,.3f")


if __name__ == "__main__":
    main()
