"""A remedy that a message names can be run, in the library of the table, and is one."""

import datetime as dt
import re
import warnings
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract.messages_cells import DAYS, GAP, HOURS, OBJECTS, PERIODS, TEXTS, N, cells
from contract.once import once
from contract.test_messages import read, said
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import BoltzmannImputer, FSLLDensity, FVBMPseudoLikelihood

# A statement that follows a colon, up to the end of a sentence.
STATEMENT = re.compile(r": (X(?:\[[^=]*?\])? = .*?)\.(?= |$)", re.MULTILINE)
LISTED = re.compile(r"list all: columns=(\{.*?\})\.")
BITS = np.arange(N) % 2


def in_library(library, what):
    some = PERIODS[what] if what in PERIODS else cells(what)
    if library == "pandas":
        return pd.DataFrame({"x": some, "y": BITS})
    if library == "object":
        column = pd.Series(some, dtype=object)
        return pd.DataFrame({"x": column, "y": BITS})
    if library == "polars":
        return pl.DataFrame({"x": some, "y": BITS})
    if library == "PyArrow":
        return pa.table({"x": some, "y": BITS})
    array = np.empty((N, 2), dtype=object)
    array[:, 1] = BITS
    for row, cell in enumerate(some):
        array[row, 0] = cell
    return array


def fit(X, estimator=None, **parameters):
    """What `fit` says."""
    model = (estimator or FVBMPseudoLikelihood(max_iter=3)).set_params(**parameters)

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X)

    return said(call)


def repaired(X, message):
    """The table after all statements of a message."""
    found = STATEMENT.findall(message)
    assert found, message
    own = X.copy() if hasattr(X, "copy") else X
    scope = {"X": own, "pd": pd, "pl": pl, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("\n".join(found), scope)
    return scope["X"]


def column(X):
    if isinstance(X, np.ndarray):
        return X[:, 0]
    return X.iloc[:, 0] if isinstance(X, pd.DataFrame) else X.to_series(0)


def test_every_line_in_a_message_is_one():
    """Those that other tests do not run are code at least."""
    lines = [line for text in read().values() for line in STATEMENT.findall(text)]
    assert len(lines) > 50
    for line in lines:
        compile(line, "message", "exec")


LIBRARIES = ["pandas", "object", "array", "polars", "PyArrow"]
# Each kind of cells in two libraries by turns; the last two have no periods.
CONVERTED = [
    *((what, LIBRARIES[(k + n) % 5]) for k, what in enumerate([*TEXTS, *OBJECTS]) for n in (0, 2)),
    *product(PERIODS, LIBRARIES[:3]),
]


@pytest.mark.parametrize(("what", "library"), CONVERTED)
def test_the_line_converts_the_column(what, library):
    X = in_library(library, what)
    if what == "dates with a zone" and library not in ("object", "array"):  # a type that is read
        assert fit(X) == ""
        return
    message = fit(X)
    new = repaired(X, message)
    assert type(new) is type(X) if library in ("pandas", "polars") else True
    found = column(new)
    if what in PERIODS:
        assert [str(day)[:7] for day in found] == [str(month) for month in PERIODS[what]]
    else:
        expected = (TEXTS | OBJECTS)[what][0]
        pairs = [(a, b) for k, (a, b) in enumerate(zip(found, expected, strict=True)) if k != GAP]
        if expected is DAYS:
            assert all(str(a)[:10] == str(b) for a, b in pairs), pairs[:3]
        else:
            assert np.allclose(*zip(*pairs, strict=True)), pairs[:3]
            assert expected is HOURS or abs(pairs[0][0]) > 9
        assert found[GAP] is None or found[GAP] != found[GAP]
    assert "onvert" not in fit(new)


class Point:
    """Equal to others, and so without a hash."""

    def __eq__(self, other):
        return isinstance(other, Point)


LENGTHS = [dt.timedelta(seconds=7 * k) for k in range(N)]
CLOCKS = [dt.time(k % 24, k) for k in range(N)]
PARTS = [{"a": k % 3, "b": k % 2} for k in range(N)]
OF_PYARROW = {
    "struct": pa.array(PARTS), "list": pa.array([[k] for k in range(N)]),
    "fixed list": pa.array([[k] for k in range(N)], pa.list_(pa.int64(), 1)),
    "map": pa.array([[("a", k)] for k in range(N)], pa.map_(pa.string(), pa.int64())),
    "months": pa.array([pa.MonthDayNano([k, 0, 0]) for k in range(N)]),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([9, N], pa.int32()), pa.array([1, 2])),
    "duration": pa.array(LENGTHS), "time32": pa.array(CLOCKS, pa.time32("s")),
    "time64": pa.array(CLOCKS, pa.time64("ns")),
}  # fmt: skip
# Columns that are refused by their types or their cells.
REFUSED = {
    **{f"PyArrow {name}": pa.table({"x": cells, "y": BITS}) for name, cells in OF_PYARROW.items()},
    **{f"pandas arrow {name}": pd.DataFrame({"x": pd.Series(OF_PYARROW[name],
                                                            dtype=pd.ArrowDtype(OF_PYARROW[name].type)),
                                             "y": BITS})
       for name in ("struct", "list", "duration", "time64")},
    **{f"polars {name}": pl.DataFrame({"x": pl.Series(cells, dtype=dtype), "y": BITS})
       for name, (cells, dtype) in {
           "Struct": (PARTS, None), "List": ([[k] for k in range(N)], None),
           "Array": ([[k, 1] for k in range(N)], pl.Array(pl.Int64, 2)),
           "Object": ([k % 3 for k in range(N)], pl.Object), "Duration": (LENGTHS, None),
           "Time": (CLOCKS, None)}.items()},
    **{name: pd.DataFrame({"x": cells, "y": BITS}) for name, cells in {
        "arrays": [np.array([k, 1]) for k in range(N)], "lists": [[k] for k in range(N)],
        "dicts": PARTS, "sets": [{k} for k in range(N)],
        "objects without a hash": [Point() for _ in range(N)], "durations": pd.Series(LENGTHS),
        "a NaN that signals": [Decimal("sNaN"), *map(Decimal, range(1, N))]}.items()},
    "lists in an array": np.array([[[k], k % 2] for k in range(N)], dtype=object),
}  # fmt: skip


@pytest.mark.parametrize(("what", "estimator"), [
    (what, FSLLDensity() if k % 2 else BoltzmannImputer()) for k, what in enumerate(REFUSED)
])  # fmt: skip
def test_each_way_out_of_a_type_that_is_refused(what, estimator):
    """Its lines are alternatives, of which each is run."""
    X = REFUSED[what]
    message = fit(X, estimator)
    assert re.search(r"(column 'x'|column 0) (has|holds) ", message) and "Error" in message
    assert not hasattr(estimator, "n_features_in_")
    lines = STATEMENT.findall(message)
    assert lines, message
    for line in lines:
        assert "Error" not in fit(repaired(X, f": {line}."), clone(estimator)), line


@once
def of_known_cells(k):
    """A table of a kind of cells and a network of it."""
    cells = ([*"ab"], [0.5, 7.25], [0, 1], [2, 3, 30], DAYS)[k]
    X = pd.DataFrame({"x": np.resize(cells, 60), "y": np.arange(60) % 2})
    return X, FVBMPseudoLikelihood().fit(X)


@pytest.mark.parametrize("cell", [[1], {"a": 1}, Decimal("sNaN"), 10**400, "9" * 5000, 1j],
                         ids=lambda cell: str(cell)[:9])  # fmt: skip
@pytest.mark.parametrize("known", range(5))
def test_odd_cells_of_later_rows(known, cell):
    """They are cells, or an error names their column."""
    X, model = of_known_cells(known)
    later = X.astype({"x": object})
    later.at[3, "x"] = cell
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            assert np.isfinite(model.score_samples(later)).all()
        except (TypeError, ValueError) as error:
            assert "column 'x' has" in str(error)
        if isinstance(cell, int):
            with pytest.raises((TypeError, ValueError), match="x"):
                model.sample(2, given={"x": cell})


@pytest.mark.parametrize("write", [
    "{:05}", "#{}", "REF {}", "n{}", "{}-{}", "{} Main St. {}", "0{} 123 456", "10.0.{}.{}",
    "{} p.m.", "{}:{}:{}:{}",
])  # fmt: skip
def test_names_with_numbers_are_no_numbers(write):
    X = pd.DataFrame({"x": [write.format(*[k + 10] * 4) for k in range(N)], "y": BITS})
    assert "looks like an ID column" in fit(X)


@pytest.mark.parametrize("what", OBJECTS)
def test_the_imputer_says_the_same(what):
    X = in_library("array", what)
    message = fit(X, BoltzmannImputer())
    assert (
        message.partition(": ")[2].partition(": ")[2]
        == (fit(X).partition(": ")[2].partition(": ")[2])
    )
    assert "onvert" not in fit(repaired(X, message), BoltzmannImputer())


# Codes for missing values.

CODES = [[8], [9], [77], [88], [98], [99], [-9], [9999], [999.0], [8, 9], [98, 99], [-8, -9],
         [-9, 99]]  # fmt: skip
KINDS = ["auto", "ordinal", "nominal", "number", "binned", "count"]


def with_codes(codes, n=120):
    rng = np.random.default_rng(0)
    found = rng.integers(1, 6, n).astype(float if isinstance(codes[0], float) else int)
    for k, code in enumerate(codes):
        found[k :: 10 * len(codes)] = code
    return found


@pytest.mark.parametrize(("codes", "kind"), [
    (codes, KINDS[k % 6]) for k, codes in enumerate(CODES)
], ids=str)  # fmt: skip
def test_codes_are_suspected_in_every_kind_of_column(codes, kind):
    if kind == "count" and codes[0] < 0:
        kind = "binned"
    X = pd.DataFrame({"x": with_codes(codes), "y": np.arange(120) % 2})
    message = fit(X, columns={"x": kind})
    assert (
        "column 'x'" in message and "for missing values" in message or "a missing value" in message
    )
    assert message.count("\n") == 0, "one warning"
    new = repaired(X, message)
    assert new["x"].isna().sum() == np.isin(X["x"], codes).sum() and new["x"].max() == 5
    assert fit(new, columns={"x": kind}) == ""
    # If they are values after all.
    columns = eval(LISTED.search(message)[1])
    assert fit(X, columns=columns) == ""
    assert isinstance(columns["x"], tuple) == (kind == "ordinal")


@pytest.mark.parametrize(
    "form", ["category", "text", "polars", "array", "object", "Int64", "PyArrow"]
)
@pytest.mark.parametrize("codes", [[9], [99], [98, 99]], ids=str)
def test_codes_are_suspected_in_columns_of_all_types(codes, form):
    X = pd.DataFrame({"x": with_codes(codes), "y": np.arange(120) % 2})
    if form == "array":
        X = X.to_numpy()
        X = np.where(X == 5, 0, X).astype(float)  # from 0 on
    elif form == "polars":
        X = pl.from_pandas(X)
    elif form == "PyArrow":
        X = pa.Table.from_pandas(X)
    else:
        X = X.astype({"x": str if form == "text" else form})
    message = fit(X, FSLLDensity())
    assert re.search("a code for a missing value|codes for missing values", message), message
    assert fit(repaired(X, message), FSLLDensity()) == ""


@pytest.mark.parametrize("values", [
    [1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 5, 8], [18, 40, 65, 99],
    [-3, 0, 5], [-9, -4, 2, 5], [5, 6, 7, 8, 9], [1, 9], [0, 3, 6, 9], [1, 2, 3, 4, 5, 7],
    [60, 70, 77, 88, 99],
])  # fmt: skip
def test_numbers_in_a_run_are_no_codes(values):
    X = pd.DataFrame({"x": np.resize(values, 120), "y": np.arange(120) % 3 // 2})
    assert "missing value" not in fit(X)


@pytest.mark.parametrize("digits", [2, 0])
def test_amounts_beside_a_code(digits):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.round(rng.gamma(2, 500, 200), digits), "y": np.arange(200) % 2})
    assert fit(X) == ""
    X.loc[::20, "x"] = 99999.0
    message = fit(X)
    assert "99999 beside" in message
    assert fit(repaired(X, message)) == ""


@pytest.mark.parametrize("form", ["records", "list"])
@pytest.mark.parametrize("estimator", [FVBMPseudoLikelihood(), BoltzmannImputer()])
def test_dicts_are_no_tables(form, estimator):
    X = pd.DataFrame({"x": list("ab") * 30, "y": BITS}).to_dict(form)
    assert fit(repaired(X, fit(X, estimator)), estimator) == ""


@pytest.mark.parametrize("library", ["pandas", "polars", "PyArrow", "array"])
def test_dates_become_categories(library):
    days = [DAYS[k % 4] for k in range(N)]
    days[GAP] = None
    X = {"x": days, "y": BITS}
    X = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "PyArrow": pa.table,
         "array": lambda X: np.array([days, BITS], dtype=object).T}[library](X)  # fmt: skip
    kinds = {0 if library == "array" else "x": "nominal"}
    new = repaired(X, fit(X, columns=kinds))
    assert fit(new, columns=kinds) == ""
    assert [str(day) for k, day in enumerate(column(new)) if k != GAP] == [
        str(day) for k, day in enumerate(days) if k != GAP
    ]
    assert not isinstance(column(new)[GAP], str)


def test_numbers_and_a_word_become_categories():
    some = [0.5 + k for k in range(N)]
    some[3] = "none"
    X = pd.DataFrame({"x": pd.Series(some, dtype=object), "y": BITS})
    message = fit(X)
    assert "the string 'none' in row 3" in message
    assert fit(repaired(X, message), columns={"x": "nominal"}) == ""


# One value in two spellings.


@pytest.mark.parametrize("some", [[3, "3", 4, "4", 5], [3, "3", 4, "5", "n"], [2.5, "2.5", 3, "3"],
                                  [True, "True", False, "False"]], ids=str)  # fmt: skip
def test_a_number_and_its_text_are_one_value(some):
    X = pd.DataFrame({"x": pd.Series(some * 20, dtype=object), "y": np.arange(20 * len(some)) % 2})
    model = FVBMPseudoLikelihood().fit(X)
    same = X.assign(x=X["x"].map(str))
    plain = FVBMPseudoLikelihood().fit(same)
    assert model.n_values_[0] == plain.n_values_[0] == len({str(value) for value in some})
    np.testing.assert_allclose(model.score_samples(X), model.score_samples(same))
    gaps = X.copy()
    gaps.loc[::7, "x"] = None
    filled = model.impute(gaps, how="mode")["x"]
    kept = gaps["x"].notna()
    assert all(a is b for a, b in zip(filled[kept], X["x"][kept], strict=True))


def test_texts_with_leading_zeros_are_no_numbers():
    X = pd.DataFrame({"x": pd.Series([10115, "07545", 20095] * 20, dtype=object), "y": BITS})
    model = FVBMPseudoLikelihood().fit(X)
    assert set(model.categories_[0]) == {10115, 20095, "07545"}


def test_spellings_are_pointed_at_in_one_warning():
    X = pd.DataFrame({
        "a": ["1 ", "1", "2"] * 20, "b": ["yes", "Yes", "no"] * 20, "c": ["aa", "Aa", "AA"] * 20,
        "d": ["x", "y", "z"] * 20,
    })  # fmt: skip
    message = fit(X)
    assert message.count("\n") == 0
    assert "columns 'a', 'b' have strings that differ" in message and "'1' and '1 '" in message
    message = fit(X[["b", "d"]])
    assert set(repaired(X, message)["b"]) == {"yes", "no"}
    message = fit(pl.from_pandas(X[["b", "d"]]))
    assert set(repaired(pl.from_pandas(X), message)["b"]) == {"yes", "no"}


@pytest.mark.parametrize("estimator", [FVBMPseudoLikelihood(), BoltzmannImputer()])
@pytest.mark.parametrize("some", [[1.5, np.inf, 2], [1, -np.inf, "x"], [1, np.inf, None]], ids=str)
def test_infinite_numbers_among_objects_are_refused(some, estimator):
    X = pd.DataFrame({"x": pd.Series(some * 20, dtype=object), "y": BITS})
    with pytest.raises(ValueError, match="column 'x' has the value -?inf in row 1"):
        estimator.fit(X)


@pytest.mark.parametrize("texts", [
    [str(k) for k in range(12)], [f"{k}.5" for k in range(12)], [f"{k}" for k in range(-11, 1)],
    [f"{10 * k} - {10 * k + 9}" for k in range(12)], [f"level {k}" for k in range(12)],
    [f"{k} years" for k in range(1, 13)],
])  # fmt: skip
def test_ordinal_strings_are_in_the_order_of_their_numbers(texts):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.permutation(np.resize(texts, 120)), "y": np.arange(120) % 2})
    model = FVBMPseudoLikelihood(columns={"x": "ordinal"}).fit(X)
    assert model.categories_[0].tolist() == texts
    numbers = X.assign(x=X["x"].map(texts.index))
    same = FVBMPseudoLikelihood(columns={"x": "ordinal"}).fit(numbers)
    np.testing.assert_allclose(model.score_samples(X), same.score_samples(numbers))
