"""Bad input to makers and readers of data sets, to weights of rows, and to figures of tables."""

from functools import partial
from io import StringIO

import numpy as np
import pandas as pd

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import (
    make_alignment,
    make_bars_and_stripes,
    make_bayesian_network,
    make_ising_grid,
    make_shifting_bar,
    read_alignment,
)
from sklearn_boltz.metrics import (
    c2st_score,
    compare_tables,
    mutational_effect,
    nearest_record_share,
    sequence_weights,
)

RNA = "".join(np.random.default_rng(0).choice(list("ACGU"), 200))
MAKERS = {
    make_alignment: [
        {"n_sites": 4, "n_contacts": 7}, {"n_sites": 0}, {"coupling": -1}, {"alphabet": "A"},
        {"n_sites": 1000}, {"n_steps": -1},
    ],
    make_ising_grid: [
        {"n_rows": 7, "n_columns": 4, "return_distribution": True},
        {"n_rows": 90, "n_columns": 90}, {"n_rows": 12, "n_columns": 12, "periodic": True},
        {"n_rows": 150, "n_columns": 150, "return_distribution": True},
        {"n_rows": 0}, {"n_samples": 0}, {"coupling": np.inf}, {"field": np.nan},
    ],
    make_bayesian_network: [
        {"n_features": 28, "return_distribution": True}, {"n_features": 40, "max_parents": 39},
        {"n_values": [2, 3]}, {"n_features": 2, "n_values": [2, 1]},
        {"n_features": 2, "n_values": [2.5, 2]}, {"n_values": 1}, {"max_parents": -1},
        {"concentration": 0},
    ],
    make_bars_and_stripes: [
        {"side": 6, "return_distribution": True}, {"side": 30}, {"side": 0}, {"n_samples": -1},
    ],
    make_shifting_bar: [
        {"bar_length": 10}, {"bar_length": 0}, {"n_features": 28, "return_distribution": True},
        {"n_features": 100_000},
    ],
}  # fmt: skip
# The text of a file and options: the sequence and the column are named.
FILES = [
    ("", {}),
    ("\n \n", {}),
    ("# STOCKHOLM 1.0\n", {}),
    (">a\nMK\n>b\nMKV\n", {}),
    (">a\nMKv\n>b\nMKV\n>c\nMKvV\n", {}),
    (">a\n>b\n", {}),
    (">a\nMK\n>b\n\n", {}),
    (">a\n..\n", {}),
    (">a\nM1\n", {}),
    (">a\nMKVE\n", {"alphabet": "dna"}),
    (">a\nMéV\n", {}),
    (">a\nMK\n>b\nMX\n", {"unknown": "error"}),
    (">a\nMX\n", {"unknown": "drop"}),
    (">a\nab-\n", {"alphabet": "ab"}),
    (">a\nMK\n", {"focus": "b"}),
    (">\u2003\nMK\n>\nMK\n", {"focus": "b"}),
    (">DYR_ECOLI/1-2\nMK\n", {"focus": "DYR_ECOIL"}),
    (">a/1-2\nMK\n>a/5-6\nMK\n", {"focus": "a"}),
    (">a\nMK\n", {"focus": 1}),
    (">a\n--\n>b\nMK\n", {"focus": "a"}),
    (">a\nMK\n", {"alphabet": "A"}),
    (">a\nMK\n", {"alphabet": "ACA"}),
    (">a\nMK\n", {"alphabet": "A C"}),
    (">a\nMK\n", {"alphabet": "proteins"}),
    (">a\nMK\n", {"alphabet": 3}),
    (f">a\n{RNA}\n", {"alphabet": "protein"}),
    (">a\n" + "ACGT" * 24 + "RRYA\n", {}),
]
ROWS = [
    ([[0, 1]], 0), ([[0, 1]], 80), (["ACD", "ACE"], 0.8), ([[0.0, np.inf]], 0.8),
    (np.empty((0, 3)), 0.8),
]  # fmt: skip
# Pairs of tables.
TABLES = {
    "other columns": (np.zeros((9, 2)), np.zeros((9, 4))),
    "frames of other columns": (pd.DataFrame(np.eye(9), columns=list("abcdefghi")),
                                pd.DataFrame(np.eye(9)[:, :7], columns=list("abcdefg"))),
    "a single row": (np.zeros((9, 2)), np.zeros((1, 2))),
    "no table": (np.zeros((9, 2)), np.zeros(2)),
}  # fmt: skip

AC = {"alphabet": "AC"}
MUTANTS = [(which, AC) for which in ("C1A", "A1G", "A9C", "A1C;C2A", "AC", [0, 1])]
MUTANTS = [("A1C", {}), *MUTANTS, ("A1C", AC | {"positions": [1, 2]})]


def effect_of(mutants, options):
    model = FVBMPseudoLikelihood(alpha=1.0).fit(np.eye(3))
    return mutational_effect(model, "ACA", mutants, **options)


def read(text, options):
    return read_alignment(StringIO(text), **options)


CASES = {
    **{
        f"{make.__name__}({', '.join(f'{k}={v}' for k, v in options.items())})": partial(
            make, **options
        )
        for make, all_options in MAKERS.items()
        for options in all_options
    },
    **{
        f"alignment {text[:25]!r} {options or ''}".rstrip(): partial(read, text, options)
        for text, options in FILES
    },
    **{
        f"weights of {np.asarray(X).tolist()} with identity {identity}": partial(
            sequence_weights, X, identity
        )
        for X, identity in ROWS
    },
    **{
        f"{compare.__name__}: {what}": partial(compare, *tables, *tables[: n - 2])
        for compare, n in ((c2st_score, 2), (compare_tables, 2), (nearest_record_share, 3))
        for what, tables in TABLES.items()
    },
    **{
        f"mutational_effect of {mutants!r} {options or ''}".rstrip(): partial(
            effect_of, mutants, options
        )
        for mutants, options in MUTANTS
    },
    "c2st_score: few rows": partial(c2st_score, np.zeros((9, 2)), np.zeros((4, 2))),
    "c2st_score: a single fold": partial(c2st_score, np.zeros((9, 2)), np.zeros((9, 2)), cv=1),
}
