"""Pairwise networks of mixed tables: a penalty estimated for each pair, and one for all.

The mean log pseudo-likelihood of the other half of the rows, in nats a row; numbers are in up to
16 ordered levels.
"""

import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, processor_timed, report, script
from _data import load_mixed, load_table

from sklearn_boltz import FVBMPseudoLikelihood

ALPHAS, N_LEVELS = np.logspace(-4, 0, 9), 16
COMPLETE, ITEMS, MOST_ROWS = ["wage", "chile", "yrbss", "attrition"], "bfi", 1500


def with_levels(table):
    """The table with ordered levels, each of as many rows, for numbers of many values."""
    numbers = [c for c in table.select_dtypes("number") if table[c].nunique() > N_LEVELS]
    return table.assign(**{c: pd.qcut(table[c], N_LEVELS, duplicates="drop") for c in numbers})


def score(alpha, train, test):
    """-> the score, and the seconds of a fit."""
    model, seconds = processor_timed(FVBMPseudoLikelihood(alpha=alpha).fit, train)
    return model.log_pseudo_likelihood(test).mean(), seconds


def compare(table, seed):
    """Each pair, the best of a grid for the other rows; seconds of both."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = table.iloc[order[: len(table) // 2]], table.iloc[order[len(table) // 2 :]]
    test = test.iloc[:MOST_ROWS]
    own, seconds = score("auto", train, test)
    return own, *max(score(a, train, test) for a in ALPHAS), seconds


@script
def main():
    args = make_parser(__doc__, seeds=3).parse_args()
    warnings.simplefilter("ignore")
    with report(args.output / "tables_penalty.txt", "Strengths of the penalty of networks"):
        lines = []
        for name in [*COMPLETE, ITEMS]:
            table = load_table(name, args.data) if name == ITEMS else load_mixed(name, args.data)
            table = table if name == ITEMS else with_levels(table.dropna())
            figures = np.mean([compare(table, seed) for seed in range(args.seeds)], axis=0)
            lines.append([f"{name}, {len(table) // 2} × {table.shape[1]}", *figures])
        header = ["table", "each pair", "best of nine for all", "seconds of that", "of each pair"]
        print_table(header, lines, ".3f,.3f,.1f,.1f")
