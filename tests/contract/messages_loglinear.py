"""Bad input to log-linear models, and to the transform they are computed by."""

from unittest import mock

import numpy as np
import pandas as pd
from contract.once import once

from private import _loglinear_fit, _size
from sklearn_boltz import FSLLDensity
from sklearn_boltz.loglinear import fwht

RNG = np.random.default_rng(0)
NAN = np.nan
GAPS = np.array([[0, NAN, 1], [1, NAN, NAN], [NAN, NAN, 0], [1, NAN, 1]])
NAMED = pd.DataFrame({f"c{m}": np.append(RNG.integers(m, size=99), m - 1) for m in range(2, 14)})
NAMED["age"] = np.append(RNG.integers(90, size=99), 89)


def bits(n_columns, n_rows=50):
    return np.random.default_rng(0).integers(2, size=(n_rows, n_columns))


@once
def fitted(columns=None):
    X = np.arange(24).reshape(12, 2) // [3, 5] % [2, 3]
    return FSLLDensity(columns=[range(2), range(3)]).fit(
        pd.DataFrame(X, columns=list(columns)) if columns else X
    )


def too_large(X, memory=2**34, **options):
    """Fit with this many bytes of memory; the error comes before anything is allocated."""
    with (
        mock.patch.object(_size, "available_memory", lambda: memory),
        mock.patch.object(_size, "SMALL", 0),
        mock.patch.object(_loglinear_fit, "DualTable", side_effect=AssertionError("allocated")),
    ):
        FSLLDensity(**options).fit(X)


CASES = {
    # What does not fit in memory.
    "571 columns": lambda: too_large(bits(571)),
    "571 columns, and no limit": lambda: too_large(bits(571), max_states=2**600),
    "3,000 columns, and no limit": lambda: too_large(bits(3000), max_states=2**4000),
    "more states than max_states": lambda: too_large(bits(12), 2**30, max_states=1000),
    "more states than max_states and memory": lambda: too_large(bits(12), 2**15, max_states=1000),
    # The two tables of 20 binary columns take 2**24 bytes, or 2**23 in float32.
    "float32 would fit": lambda: too_large(bits(20, 2000), 2**24 - 1),
    "float32 would just fit": lambda: too_large(bits(20, 2000), 2**23),
    "float32 would not fit": lambda: too_large(bits(20, 2000), 2**23 - 1),
    "float32 does not fit": lambda: too_large(bits(20, 2000), 2**23 - 1, dtype=np.float32),
    "a column with many values": lambda: too_large(np.arange(50)[:, None], max_states=40),
    "columns with many values": lambda: too_large(NAMED.to_numpy() % 64),
    "few columns with many values": lambda: too_large(NAMED[["c13", "c12", "c3"]], max_states=200),
    "one of many columns with three values": lambda: too_large(
        np.column_stack([np.arange(50) % 3, bits(100)])
    ),
    # Values.
    "a fraction": lambda: FSLLDensity(columns=range(2)).fit([[0.5, 1.0]]),
    "a value that no row of the fit can have": lambda: fitted().score_samples([[0, 0], [2, 0]]),
    # Missing cells.
    "a column without a value": lambda: FSLLDensity().fit(pd.DataFrame(GAPS, columns=list("abc"))),
    "a column without a value, of which the values are listed": lambda: FSLLDensity(
        columns=range(2)
    ).fit(GAPS),
    "no values": lambda: FSLLDensity().fit(np.full((4, 2), NAN)),
    "the energy of an incomplete row": lambda: fitted().energy([[NAN, 1]]),
    # Methods.
    "other names of columns": lambda: fitted("ab").get_feature_names_out(["x", "y"]),
    "a variable that is none": lambda: fitted("ab").marginal("q"),
    **{
        f"variables {features}": lambda features=features: fitted().marginal(features)
        for features in ([], [0, 0], [9], [-5], [[0]])
    },
    **{
        f"basis {basis}": lambda basis=basis: fitted().expectation(basis)
        for basis in ([0, 1], [[0, 3]], [[0.5, 0]], [[-1, 0]])
    },
    # The Walsh–Hadamard transform.
    "fwht of twelve": lambda: fwht(np.zeros(12)),
    "fwht along one axis of three": lambda: fwht(np.zeros((4, 3)), axis=(0, 1)),
    "fwht of nothing": lambda: fwht(np.zeros(0), axis=0),
    "fwht of complex numbers": lambda: fwht(np.zeros(4, dtype=complex)),
}
