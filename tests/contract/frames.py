"""Tables that the tests of all estimators share: good ones, and those that are refused."""

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp


def bits(n_rows=60, n_columns=5, seed=0, dtype=np.int64):
    """Columns 0 and 1 differ in a tenth of the rows, and so do the last and two before it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n_rows, n_columns))
    X[:, 1] = X[:, 0] ^ (rng.random(n_rows) < 0.1)
    X[:, -1] = X[:, 2] ^ X[:, 3] ^ (rng.random(n_rows) < 0.1)
    return X.astype(dtype)


def gaps(n_rows=40, seed=0):
    """Bits of which some are missing."""
    X = bits(n_rows, seed=seed, dtype=float)
    X[np.random.default_rng(seed).random(X.shape) < 0.03] = np.nan
    return X


def memory_map(X, path):
    """The same array in a file of a folder."""
    np.save(path / "X.npy", X)
    return np.load(path / "X.npy", mmap_mode="r")


def all_states(n_columns):
    return np.indices((2,) * n_columns).reshape(n_columns, -1).T.astype(float)


def people(n=60, seed=0, n_rare=6):
    """Independent columns: words of which most are rare, counts, bits, and declared categories."""
    rng = np.random.default_rng(seed)
    chances = np.r_[0.4, 0.4, np.full(n_rare, 0.2 / n_rare)]
    return pd.DataFrame({
        "city": rng.choice([f"c{k}" for k in range(len(chances))], n, p=chances),
        "kids": rng.poisson(0.8, n),
        "member": rng.random(n) < 0.1,
        "size": pd.Categorical(rng.choice(["s", "m"], n), ["s", "m", "l"], ordered=True),
    })  # fmt: skip


def words(n=60, seed=0):
    """Bits, and a frame of two values a column that says the same."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 4))
    X[:, 1] = X[:, 0]
    return X, pd.DataFrame({
        "vote": np.array(["no", "yes"])[X[:, 0]],
        "present": X[:, 1].astype(bool),
        "side": pd.Categorical(np.array(["left", "right"])[X[:, 2]], ["left", "right"]),
        "level": X[:, 3] + 1,
    })  # fmt: skip


def seven(cells, **others):
    """A table with seven columns of the same cells, and others before and after them."""
    some = {f"c{k}": cells for k in range(7)}
    return pd.DataFrame({"fine": np.arange(len(cells)) % 2, **some, **others})


def changed(row, column, value, X=None, dtype=float):
    """Bits, or another array, with another value in a cell."""
    X = (bits() if X is None else X).astype(dtype)
    X[row, column] = value
    return X


NAMES = [f"n{k}" for k in range(40)]
DAYS = pd.date_range("2026-01-01", periods=40)
AMOUNTS = np.where(np.arange(40) < 2, np.inf, np.arange(40) % 2)
# Refused by all estimators. Messages for those above are of scikit-learn, NumPy and pandas.
REFUSED_BY_OTHERS = {
    "one axis": np.zeros(3),
    "three axes": np.zeros((2, 2, 2)),
    "no row": np.zeros((0, 3)),
    "no column": np.zeros((3, 0)),
    "complex numbers": np.zeros((2, 2), complex),
    "None": None,
    "ragged": [[0, 1], [1]],
    "sparse rows with NaN": sp.csr_array(np.array([[0, np.nan], [1, 0]])),
}
REFUSED = {
    "an infinite cell": changed(6, 1, -np.inf),
    "seven columns with infinite cells": seven(AMOUNTS),
    "dictionaries": np.array([["a", {}], ["b", {}]], dtype=object),
    "names of rows": np.array([[f"name {i}", "x"] for i in range(30)]),
    "seven columns of names": seven(NAMES),
    "an ID column": seven(np.arange(40) % 2, id=NAMES),
    "dates of NumPy": np.full((2, 2), np.datetime64("2020-01-01")),
    "seven columns of differences of times": seven(DAYS - DAYS[0]),
    "seven columns of dates with a zone": seven(DAYS.tz_localize("UTC").astype(object)),
    "months": pd.DataFrame({"month": pd.period_range("2026-01", periods=40, freq="M")}),
    "two columns of a name": pd.concat([people(), people()[["city"]]], axis=1),
    "a column alone": people()["city"],
    "a list of cells": people()["city"].tolist(),
    "a lazy frame": pl.DataFrame({"a": [0, 1] * 10}).lazy(),
    "numbers as texts": pd.DataFrame({"age": [*map(str, range(59)), "?"]}),
    "a text among numbers": pd.DataFrame(
        {"c": [*np.linspace(0, 1, 59), "oops"]}, dtype=object
    ),
}  # fmt: skip
# Taken as numbers.
AMOUNTS = {
    "amounts": changed(slice(None), 1, np.linspace(0, 30, 60)),
    "seven columns of amounts": seven(np.arange(40) / 4 + 0.1),
    "temperatures": changed(slice(None), 0, np.arange(60) % 15 - 7, dtype=int),
    "rates above one": pd.DataFrame({"rate": np.arange(40) / 23}),
    "days": pd.DataFrame({"seen": DAYS, "smoker": np.arange(40) % 2}),
    "years": pd.DataFrame({"born": 1950 + np.arange(60) % 41, "smoker": np.arange(60) % 2}),
}
# Refused, or taken with a warning.
ODD = {
    "spins": 2 * bits() - 1,
    "minus one beside bits": changed(4, 2, -1),
    "minus one beside even numbers": changed(3, 1, -1, 2 * bits()),
    "a column of spins": changed(slice(None), 1, 2 * bits()[:, 1] - 1, bits() + bits()[:, ::-1]),
    "votes of three values": people().assign(vote=np.arange(60) % 3 - 1),
    "a share": changed(2, 1, 1.2),
    "two columns with values outside": changed([2, 7], [1, 2], [1.2, -0.25]),
    "far outside": changed(0, 1, 1e300),
    "grey levels": 255 * bits(),
    "columns that count from one": bits() + 1,
    "one column that counts from one": changed(slice(None), 1, bits()[:, 1] + 1, dtype=int),
    "a third value": changed(3, 1, 3),
    "nine": changed([4, 5, 6, 7], [1, 1, 1, 3], 9, dtype=int),
    "nine among five": changed([4, 5, 7], [1, 1, 3], 9, changed(8, 1, 3, bits() + 1), int),
    "nine in a frame": pd.DataFrame({"answer": np.r_[9, 9, np.arange(58) % 3 + 1]}),
    "a column without a value": changed(slice(None), 3, np.nan),
    "seven columns without a value": seven(np.full(40, np.nan)),
    "a category that looks missing": pd.DataFrame({"a": ["x", "?", "y"] * 10}),
}  # fmt: skip
