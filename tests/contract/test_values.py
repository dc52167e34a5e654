"""Cells come back as they were, whatever their type, and new ones are values of their column."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import cases
from contract.estimators import META, OF_ANY_TABLE, by_turns, each, each_with, name_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from private import find_places, form_of
from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
)
from sklearn_boltz.batches import Batches

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*(looks like|no better|categories|only names the rows)"),
]
# Columns of what floats, microseconds or strings would change, and of the most common values.
DATES = st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1))
MOMENTS = st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1), timezones=st.just(dt.UTC))
TIMES = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
VALUES = {
    "small": st.integers(1, 60),
    "int64": st.integers(2**53, 2**63 - 1),
    "uint64": st.integers(2**63, 2**64 - 1),
    "int128": st.integers(2**64, 2**127 - 1),
    "int": st.integers(-(10**300), 10**300),
    "near": st.integers(2**62, 2**62 + 9),
    "decimal": st.decimals(-(10**20), 10**20, places=2),
    "cents": st.decimals(-(10**5), 10**5, places=2),
    "fraction": st.fractions(max_denominator=97),
    "text": st.text("abc ü1", min_size=1).filter(str.strip),
    "bytes": st.binary(min_size=1, max_size=3),
    "two bytes": st.binary(min_size=2, max_size=2),
    "bool": st.booleans(),
    "float": st.floats(-1e9, 1e9).filter(lambda x: x != int(x)),
    "float16": st.floats(1, 99, width=16).filter(lambda x: x != int(x)),
    "float32": st.floats(-1e9, 1e9, width=32).filter(lambda x: x != int(x)),
    "date": DATES,
    "time": TIMES,
    "millisecond": TIMES.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    "second": TIMES.map(lambda t: t.replace(microsecond=0)),
    "nanosecond": st.integers(1, 10**18).map(lambda n: np.datetime64(n, "ns")),
    "tick": st.integers(1, 9).map(lambda n: np.datetime64(1766 * 10**15 + n, "ns")),
    "midnight": DATES.map(lambda day: dt.datetime(day.year, day.month, day.day)),
    "stamp": DATES.map(pd.Timestamp),
    "NumPy day": DATES.map(np.datetime64),
    "NumPy second": DATES.map(lambda day: np.datetime64(day, "s")),
    "tuple": st.tuples(st.sampled_from("ab"), st.integers(0, 9)),
    "set": st.frozensets(st.integers(0, 9), min_size=1),
    "uuid": st.uuids(),
    "mixed": st.one_of(st.integers(2**60, 2**61), st.text("xy", min_size=1), st.booleans()),
    "NumPy": st.integers(2**53, 2**63 - 1).map(np.int64),
    "single": st.floats(0.25, 9, width=32).map(np.float32),
    "interval": st.integers(0, 99).map(lambda n: pd.Interval(n, n + 1)),
    "period": st.integers(0, 99).map(lambda n: pd.Period("2020-01", "M") + n),
    "zone": DATES.map(lambda day: pd.Timestamp(day, tz="UTC")),
    "duration": st.integers(1, 99).map(pd.Timedelta),
    "moment": MOMENTS,
    "whole moment": MOMENTS.map(lambda t: t.replace(microsecond=0)),
}  # fmt: skip
# Which of them are numbers in bins, of which the imputer fills means.
NUMBERS = {
    "float", "float16", "float32", "single", "date", "time", "millisecond", "second", "nanosecond",
    "tick", "midnight", "stamp", "NumPy day", "NumPy second", "moment", "whole moment",
}  # fmt: skip


def objects(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def of_pandas(dtype):
    return lambda cells: pd.Series(objects(cells), dtype=dtype)


def category(cells):
    values = list(dict.fromkeys(cell for cell in cells if cell is not None))
    index = pd.Index(values, tupleize_cols=False)
    codes = [-1 if cell is None else values.index(cell) for cell in cells]
    return pd.Series(pd.Categorical.from_codes(codes, index))


def of_pyarrow(dtype):
    return lambda cells: pa.chunked_array([pa.array(cells, dtype)])


def dictionary(dtype, ordered):
    def make(cells):
        words = list(dict.fromkeys(cell for cell in cells if cell is not None))
        codes = pa.array([None if c is None else words.index(c) for c in cells], pa.int8())
        words = pa.array(words, dtype)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, words, ordered=ordered)])

    return make


def of_polars(dtype):
    return lambda cells: pl.Series(cells, dtype=dtype)


def nanoseconds(cells):
    return pl.Series(np.array(cells, dtype="datetime64[ns]"))


PYARROW = {
    "int8": (pa.int8(), "small"), "int64": (pa.int64(), "int64"), "near": (pa.int64(), "near"),
    "uint64": (pa.uint64(), "uint64"), "float32": (pa.float32(), "float32"),
    "float64": (pa.float64(), "float"), "bool": (pa.bool_(), "bool"),
    "decimal128": (pa.decimal128(30, 2), "decimal"),
    "decimal256": (pa.decimal256(50, 2), "decimal"),
    "string": (pa.string(), "text"), "large_string": (pa.large_string(), "text"),
    "binary": (pa.binary(), "bytes"), "large_binary": (pa.large_binary(), "bytes"),
    "fixed binary": (pa.binary(2), "two bytes"), "date32": (pa.date32(), "date"),
    "date64": (pa.date64(), "date"), "timestamp[s]": (pa.timestamp("s"), "second"),
    "timestamp[ms]": (pa.timestamp("ms"), "millisecond"),
    "timestamp[us]": (pa.timestamp("us"), "time"),
    "timestamp[ns]": (pa.timestamp("ns"), "nanosecond"),
    "tick": (pa.timestamp("ns"), "tick"),
    **{f"timestamp[{unit}] with a zone": (pa.timestamp(unit, "Europe/Berlin"), kind)
       for unit, kind in (("s", "whole moment"), ("us", "moment"))},
}  # fmt: skip
# A function from cells, of which some are None, to a column, and what they are.
COLUMNS = {
    "pandas": {
        **{str(t): (of_pandas(t), kind) for t, kind in {
            "Int8": "small", "Int64": "int64", "UInt64": "uint64", "Float32": "float32",
            "Float64": "float", "float32": "float32", "float64": "float", "boolean": "bool",
            "string": "text", "str": "text", "datetime64[s]": "second",
            "datetime64[ms]": "millisecond", "datetime64[us]": "time",
            "datetime64[ns]": "nanosecond", "datetime64[us, Europe/Berlin]": "moment",
            "datetime64[s, UTC]": "whole moment",
        }.items()},
        **{f"object {kind}": (of_pandas(object), kind) for kind in (
            "small", "int64", "int", "decimal", "fraction", "text", "bytes", "bool", "date", "time",
            "nanosecond", "tuple", "set", "uuid", "mixed", "NumPy", "single", "interval",
            "midnight", "stamp", "NumPy day", "NumPy second",
        )},
        **{f"category {kind}": (category, kind) for kind in (
            "small", "int64", "int128", "decimal", "fraction", "text", "bool", "float", "date",
            "time", "tuple", "mixed", "interval", "period", "zone", "duration",
        )},
        **{f"arrow {name}": (of_pandas(pd.ArrowDtype(dtype)), kind)
           for name, (dtype, kind) in PYARROW.items()},
        "interval": (lambda cells: pd.Series(pd.arrays.IntervalArray(cells)), "interval"),
        "sparse": (lambda cells: pd.Series(pd.arrays.SparseArray(
            [np.nan if cell is None else cell for cell in cells])), "float"),
    },
    "PyArrow": {
        **{name: (of_pyarrow(dtype), kind) for name, (dtype, kind) in PYARROW.items()},
        **{name: (of_pyarrow(getattr(pa, name)()), kind)
           for name, kind in (("string_view", "text"), ("binary_view", "bytes"))},
        "dictionary of views": (dictionary(pa.string_view(), False), "text"),
        **{f"{'ordered ' * ordered}dictionary {name}": (dictionary(PYARROW[name][0], ordered),
                                                       PYARROW[name][1])
           for name in ("int8", "int64", "uint64", "decimal128", "string", "binary", "float64",
                        "date32", "timestamp[ns]") for ordered in (False, True)},
    },
    "polars": {
        **{str(t): (of_polars(t), kind) for t, kind in {
            pl.Int8: "small", pl.Int64: "int64", pl.UInt64: "uint64", pl.Float32: "float32",
            pl.Float64: "float", pl.Boolean: "bool", pl.Decimal(30, 2): "decimal",
            pl.String: "text", pl.Categorical: "text", pl.Binary: "bytes", pl.Date: "date",
            pl.Datetime("ms"): "millisecond", pl.Datetime("us"): "time",
            pl.Datetime("us", "Europe/Berlin"): "moment",
        }.items()},
        "Int128": (of_polars(getattr(pl, "Int128", pl.Int64)), "int128"),
        "Enum": (lambda cells: pl.Series(cells, dtype=pl.Enum(
            list(dict.fromkeys(cell for cell in cells if cell is not None)))), "text"),
        "Datetime ns": (nanoseconds, "nanosecond"), "tick": (nanoseconds, "tick"),
    },
}  # fmt: skip
N_ROWS = 24
# To make a failing case smaller takes minutes.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


def draw_frame(library, names, data):
    """A frame with columns of some types: cells of a few values, and gaps."""
    rng, columns = np.random.default_rng(data.draw(st.integers(0, 99))), {}
    for name in names:
        make, kind = COLUMNS[library][name]
        some = st.lists(VALUES[kind], min_size=2, max_size=4, unique_by=str)
        values = list(dict.fromkeys(data.draw(some, label=name)))
        places = np.r_[np.arange(len(values)), rng.integers(len(values), size=N_ROWS - 7)]
        cells = [values[k] for k in places] + [None] * (N_ROWS - len(places))
        columns[name] = make([cells[k] for k in rng.permutation(N_ROWS)])
    return {"pandas": pd.DataFrame, "PyArrow": pa.table, "polars": pl.DataFrame}[library](columns)


def cells_of(column):
    """Its type, and its cells as objects that tell all digits; None for missing ones."""
    if isinstance(column, pd.Series):
        gaps = column.isna()
        return column.dtype, [None if gap else c for c, gap in zip(column, gaps, strict=True)]
    dtype = column.type if isinstance(column, pa.ChunkedArray) else column.dtype
    if isinstance(dtype, pa.DictionaryType) and "view" not in str(dtype):
        column = column.cast(dtype.value_type)
    if "ns" in str(dtype):
        return dtype, [None if np.isnat(date) else date for date in np.asarray(column)]
    return dtype, column.to_list() if isinstance(column, pl.Series) else column.to_pylist()


def assert_kept(X, filled, kinds, fills_are_values=True):
    """Observed cells are what they were, in columns of the same types; no cell is missing."""
    for name, kind in kinds.items():
        (dtype, before), (new_dtype, after) = cells_of(X[name]), cells_of(filled[name])
        assert new_dtype == dtype, name
        assert len(after) == len(before) and None not in after, name
        kept = [(b, a) for b, a in zip(before, after, strict=True) if b is not None]
        assert all(type(b) is type(a) and b == a for b, a in kept), (name, kept)
        if fills_are_values or kind not in NUMBERS:
            assert all(cell in before for cell in after), (name, after)


def assert_all_kept(X, kinds):
    imputer = BoltzmannImputer(random_state=0).fit(X)
    assert_kept(X, imputer.transform(X), kinds, fills_are_values=False)
    for rows in (X, Batches([X[:10], X[10:]])):
        model = FVBMPseudoLikelihood(max_iter=5, missing="observed").fit(rows)
        for how in ("mode", "sample"):
            assert_kept(X, model.impute(X, how=how, random_state=0), kinds)
        drawn = model.sample(50, random_state=0)
        for name in kinds:
            (dtype, before), (new_dtype, after) = cells_of(X[name]), cells_of(drawn[name])
            assert new_dtype == dtype, name
            # Numbers of NumPy among objects are those of Python in samples.
            types = set(map(type, before))
            types |= {type(cell.item()) for cell in before if isinstance(cell, np.number)}
            assert all(cell in before and type(cell) in types for cell in after), name
    for container in ("pandas", "polars"):
        filled = clone(imputer).set_output(transform=container).fit(X).transform(X)
        for name in kinds:
            pairs = zip(cells_of(X[name])[1], cells_of(filled[name])[1], strict=True)
            same = [a == b or form_of(a) == form_of(b) for b, a in pairs if b is not None]
            assert all(same), name


@pytest.mark.parametrize("library", COLUMNS)
@settings(max_examples=cases(3), phases=UNSHRUNK)
@given(data=st.data())
def test_cells_come_back_as_they_were(library, data):
    """Of some types at random; all of them are slow."""
    some = st.lists(st.sampled_from(sorted(COLUMNS[library])), min_size=3, max_size=3, unique=True)
    names = data.draw(some, label="types")
    assert_all_kept(
        draw_frame(library, names, data), {name: COLUMNS[library][name][1] for name in names}
    )


ZONE = "Europe/Berlin"
INSTANTS = [
    dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC) + k * dt.timedelta(hours=37) for k in range(40)
]
ZONED = {
    "pandas": lambda x: pd.DataFrame({"x": pd.Series(x, dtype=f"datetime64[us, {ZONE}]")}),
    "pandas, Arrow": lambda x: pd.DataFrame(
        {"x": pd.Series(x, dtype=pd.ArrowDtype(pa.timestamp("s", ZONE)))}
    ),
    "polars": lambda x: pl.DataFrame({"x": pl.Series(x, dtype=pl.Datetime("us", ZONE))}),
    "PyArrow": lambda x: pa.table({"x": pa.array(x, pa.timestamp("ms", ZONE))}),
}  # fmt: skip


def in_utc(X):
    """The type of a column, and its dates without a zone."""
    dtype, cells = cells_of(X["x"])
    return dtype, [c and c.astimezone(dt.UTC).replace(tzinfo=None) for c in cells]


@each_with("library", ZONED, OF_ANY_TABLE)
def test_dates_with_a_zone_are_the_same_instants_in_all_libraries(estimator, library):
    moments = [None, *INSTANTS[1:]]
    X, plain = ZONED[library](moments), pd.DataFrame({"x": in_utc({"x": pd.Series(moments)})[1]})
    model, same = clone(estimator).fit(X), clone(estimator).fit(plain)
    for make in ZONED.values():
        np.testing.assert_array_equal(model.score_samples(make(moments)), same.score_samples(plain))
    filled, drawn = model.impute(X, how="sample", random_state=0), model.sample(9, random_state=0)
    for found in (filled, drawn[0] if isinstance(drawn, tuple) else drawn):
        dtype, cells = in_utc(found)
        assert dtype == in_utc(X)[0] and ZONE in str(dtype)
        assert INSTANTS[0].replace(tzinfo=None) < min(cells) <= max(cells)
    assert in_utc(filled)[1][1:] == in_utc(X)[1][1:]


# Arrays and lists.

ARRAYS = ["int", "decimal", "fraction", "tick", "NumPy", "date", "uuid", "set"]


@settings(max_examples=cases(2))
@given(data=st.data(), kind=st.sampled_from(ARRAYS), as_list=st.booleans())
def test_cells_of_arrays_and_lists_come_back(data, kind, as_list):
    some = st.lists(VALUES[kind], min_size=2, max_size=4, unique_by=str)
    values = list(dict.fromkeys(data.draw(some)))
    X = np.array([[None, k % 2] for k in range(N_ROWS)], dtype=object)
    X[3:, 0] = objects([values[k % len(values)] for k in range(3, N_ROWS)])
    table = X.tolist() if as_list else X
    known = [cell for cell in X[:, 0] if cell is not None]
    for model in (FSLLDensity(), FVBMPseudoLikelihood(max_iter=5), SDCPRBM(2, max_iter=2)):
        filled = model.fit(table).impute(table, how="mode")
        assert filled[3:].tolist() == X[3:].tolist() and set(filled[:, 0]) <= set(known)
        assert {type(cell) for cell in filled[:, 0]} == set(map(type, known))
        assert set(model.sample(20)[:, 0].tolist()) <= set(known)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@each(OF_ANY_TABLE)
def test_whole_numbers_of_arrays_beyond_floats(estimator, dtype):
    X = np.column_stack([2**62 + np.arange(60) % 4, np.arange(60) % 4 // 2]).astype(dtype)
    model = clone(estimator).fit(X)
    drawn = model.sample(100, random_state=0)
    drawn = drawn[0] if isinstance(drawn, tuple) else drawn
    assert drawn.dtype == dtype and set(drawn[:, 0]) == set(X[:, 0])
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("kind", ["near", "int", "decimal", "cents", "fraction", "tick"])
@pytest.mark.parametrize("columns", ["binned", "number"])
def test_numbers_that_are_no_floats_stay_what_they_are(kind, columns):
    """Observed ones to the digit, and others in their type and their range."""
    step = np.timedelta64(1, "ns") if kind == "tick" else 1
    low = {
        "near": 2**62, "int": 2**80, "decimal": Decimal("1.25"), "cents": Decimal("-7.10"),
        "fraction": Fraction(1, 97), "tick": np.datetime64(1766 * 10**15, "ns"),
    }[kind]  # fmt: skip
    cells = [low + k % 30 * step for k in range(90)]
    X = pd.DataFrame({"x": pd.Series(objects(cells), dtype=object), "y": np.arange(90) % 2})
    X.loc[::9, "x"] = None
    model = FVBMPseudoLikelihood(columns={"x": columns}, max_iter=5).fit(X)
    known = X["x"].notna()
    for how in ("mean", "mode", "sample"):
        filled = model.impute(X, how=how, random_state=0)["x"]
        assert filled[known].tolist() == X["x"][known].tolist()
        assert set(map(type, filled)) == {type(cells[0])}
        assert min(cells) <= min(filled) and max(filled) <= max(cells)
    drawn = model.sample(50, random_state=0)["x"]
    assert {form_of(cell) for cell in drawn} <= {form_of(low + k * step) for k in range(30)}
    drawn = model.sample(3, given={"x": cells[5]})["x"]
    assert {form_of(cell) for cell in drawn} == {form_of(cells[5])}


# Another type than in the training.


@pytest.mark.parametrize(("values", "cells", "places"), [
    (["10115", "20095", "07"], [10115, 20095.0, Decimal(7), "10115", 8], [0, 1, 2, 0, -1]),
    ([10115, 7], ["10115", "10115.0", " 7", "x"], [0, 0, 1, -1]),
    (["7", "07"], [7, "7", "07"], [-1, 0, 1]),
    (["1", "2"], ["1.0", 1, True], [-1, 0, 0]),
    ([False, True], ["False", "true", 0, 1.0, np.True_, 2], [0, 1, 0, 1, 1, -1]),
    (["False", "True"], [False, True, 1], [0, 1, 1]),
    ([2**60, 2**60 + 1], [float(2**60), str(2**60 + 1), 2**60 + 2], [0, 1, -1]),
    ([Decimal("0.10"), Fraction(1, 3)], [0.1, "0.1", 1 / 3], [0, 0, 1]),
    (["nan", "None", ""], [None, np.nan, pd.NA, pd.NaT], [-1] * 4),
    ([dt.date(2020, 1, 2)], ["2020-01-02", "2020-01-02 00:00:00", pd.Timestamp("2020-01-02"),
                             np.datetime64("2020-01-02"), "2020-01-03"], [0, 0, 0, 0, -1]),
    (["2020-01-02 03:04:00.5"], [pd.Timestamp("2020-01-02 03:04:00.5")], [0]),
    ([b"a"], ["a"], [0]),
    ([("a", 1)], [("a", 1), "('a', 1)"], [0, 0]),
    ([], ["a"], [-1]),
])  # fmt: skip
def test_values_are_found_in_other_types(values, cells, places):
    assert find_places(values, cells).tolist() == places


@settings(max_examples=cases(40))
@given(data=st.data(), kind=st.sampled_from([
    "int", "decimal", "fraction", "bool", "float", "date", "time", "uuid", "interval", "period",
]))  # fmt: skip
def test_values_are_found_by_their_texts(data, kind):
    values = data.draw(st.lists(VALUES[kind], unique_by=form_of))
    texts = list(map(str, values))
    if kind != "fraction":
        assert find_places(values, texts).tolist() == list(range(len(values)))
    assert find_places(texts, texts).tolist() == list(range(len(values)))


def codes(n=120):
    rng = np.random.default_rng(0)
    zip_code, vote = rng.choice(["10115", "20095", "80331"], n), rng.random(n) < 0.5
    vote = np.where(rng.random(n) < 0.2, vote, zip_code == "10115")
    day = pd.to_datetime(rng.choice(["2020-01-01", "2020-03-09"], n))
    return pd.DataFrame({"zip": zip_code, "vote": vote, "day": pd.Categorical(day)})


OTHERS = {
    "numbers": lambda X: X.assign(zip=X["zip"].astype(int)),
    "floats": lambda X: X.assign(zip=X["zip"].astype(float)),
    "words": lambda X: X.assign(vote=X["vote"].astype(str)),
    "bits": lambda X: X.assign(vote=X["vote"].astype(float)),
    "texts": lambda X: X.assign(day=X["day"].astype(str)),
    "times": lambda X: X.assign(day=X["day"].astype(str) + ".000"),
    "days": lambda X: X.assign(day=pd.to_datetime(X["day"]).dt.date),
}
USERS = [
    FVBMPseudoLikelihood(), FSLLDensity(), BoltzmannClassifier(random_state=0),
    BoltzmannOutlierDetector(random_state=0),
]  # fmt: skip


@each(USERS)
@pytest.mark.parametrize("other", OTHERS)
def test_rows_in_other_types_have_the_same_scores(estimator, other):
    X = codes()
    model = clone(estimator).fit(X, *[by_turns(X)] * is_classifier(estimator))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.score_samples(OTHERS[other](X)), model.score_samples(X))


def test_filled_cells_have_the_type_of_the_observed_ones():
    X = codes()
    imputer = BoltzmannImputer(random_state=0).fit(X)
    for other, column, missing in (("floats", "zip", np.nan), ("words", "vote", None),
                                   ("texts", "day", None), ("times", "day", None),
                                   ("days", "day", None)):  # fmt: skip
        new = OTHERS[other](X[X["day"] == "2020-01-01"].reset_index(drop=True))
        new.loc[::5, column] = missing
        filled = imputer.transform(new)[column]
        assert {str(cell) for cell in filled} <= {str(cell) for cell in OTHERS[other](X)[column]}
        assert filled.dtype == new[column].dtype


VERBS = ["score_samples", "score", "transform", "impute", "predict", "predict_proba", "free_energy",
         "explain", "multiple_imputations", "predict_cell_proba"]  # fmt: skip
# In which meta-estimators several densities read the same rows.
GIVEN = [
    BoltzmannOutlierDetector(FVBMPseudoLikelihood(), random_state=0),
    BoltzmannImputer(FVBMPseudoLikelihood(), random_state=0),
    BoltzmannClassifier(FVBMPseudoLikelihood(), random_state=0),
]


@pytest.mark.parametrize("estimator", [*OF_ANY_TABLE, *META, *GIVEN], ids=name_of)
def test_a_column_of_new_values_has_one_warning(estimator):
    X = codes(60)[["zip", "vote"]].astype({"vote": "boolean"})
    model = clone(estimator).fit(X, *[by_turns(X)] * is_classifier(estimator))
    new = X.assign(zip=[f"x{k % 3}" for k in range(60)])
    new.loc[::7, "vote"] = None
    for verb in filter(lambda verb: hasattr(model, verb), VERBS):
        if verb == "score" and is_classifier(estimator):
            continue
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            getattr(model, verb)(new)
        told = [str(one.message) for one in told if "in training" in str(one.message)]
        assert len(told) == 1, verb
        assert "column 'zip'" in told[0] and "'10115'" in told[0] and "'x1'" in told[0]


def test_one_new_value_has_no_warning_but_one_of_another_type():
    model = FVBMPseudoLikelihood().fit(codes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score_samples(codes()[:1].assign(zip="50667"))
    with pytest.warns(UserWarning, match="column 'zip' has none of .* Now: 50667"):
        model.score_samples(codes()[:1].assign(zip=50667))


# Columns without a cell, and other libraries.


@each([e for e in OF_ANY_TABLE if name_of(e) not in ("InfiniteRBM", "TAPDBM", "RBMClassifier")])
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_batch_whose_column_came_without_a_cell(estimator, first):
    """As floats, which is what pandas reads where there is nothing."""
    X = codes(60).assign(when=pd.Timestamp("2020-01-01"), date=dt.date(2020, 1, 1))
    empty = X[30:].assign(zip=np.nan, day=np.nan, when=np.nan, date=np.nan)
    batches = [[X[:30], empty], [empty, X[:30]]][first]
    model = clone(estimator).fit(Batches(batches))
    filled = model.impute(empty, how="mode", random_state=0)
    assert list(filled.dtypes) == list(X.dtypes) == list(model.sample(3, random_state=0).dtypes)
    assert all(set(filled[name]) <= set(X[name]) for name in X)
    assert list(BoltzmannImputer().fit(X).transform(empty).dtypes) == list(X.dtypes)


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_frames_of_other_libraries_become_those_of_pandas(make):
    X = make({"n": [1, None, 3] * 9, "day": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)] * 9,
              "x": [0.5, None, 2.5] * 9, "word": ["a", None, "b"] * 9,
              "when": [INSTANTS[0], None, INSTANTS[1]] * 9})  # fmt: skip
    filled = BoltzmannImputer(random_state=0).set_output(transform="pandas").fit_transform(X)
    assert [dtype.kind for dtype in filled.dtypes[:3]] == ["i", "M", "f"]
    assert filled["word"].tolist()[::3] == ["a"] * 9
    assert filled["when"][::3].tolist() == INSTANTS[:1] * 9


@pytest.mark.parametrize("convert", [lambda X: X, pa.Table.from_pandas])
def test_frames_of_other_libraries_become_those_of_polars(convert):
    size = pd.Categorical(["s", "m", None] * 9, ["s", "m"], ordered=True)
    X = pd.DataFrame({"when": pd.Series([INSTANTS[0], None, INSTANTS[1]] * 9), "size": size})
    imputer = BoltzmannImputer(random_state=0).set_output(transform="polars")
    filled = imputer.fit_transform(convert(X))
    assert filled["when"].to_list()[::3] == INSTANTS[:1] * 9
    assert filled.schema["size"] == pl.Enum(["s", "m"])


@pytest.mark.filterwarnings("ignore:.*has none of the values that it had in training")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_words_among_numbers_are_objects_or_refused(make):
    words = make({"a": ["x", None, "y"] * 20, "b": [0, 1] * 30})
    model = FVBMPseudoLikelihood(max_iter=3).fit(words)
    numbers = make({"a": [1, None, 2] * 20, "b": [0, 1] * 30})
    if make is pd.DataFrame:
        filled = model.impute(numbers.astype({"a": "Int64"}), how="mode")["a"]
        assert filled[::3].tolist() == [1] * 20 and set(filled[1::3]) <= {"x", "y"}
        return
    with pytest.raises(ValueError, match="cannot hold cells of the type (string|String)"):
        model.impute(numbers, how="mode")


def test_filled_cells_may_be_categories_that_a_batch_lacks():
    X = pd.DataFrame({"a": pd.Categorical(["x", "y", None] * 20), "b": [0, 1] * 30})
    few = X.assign(a=pd.Categorical(["x", None, "x"] * 20))
    filled = FVBMPseudoLikelihood(max_iter=3).fit(X).impute(few, how="sample", random_state=0)["a"]
    assert filled.dtype == X["a"].dtype and (filled[few["a"].notna()] == "x").all()
    assert set(filled) == {"x", "y"}
