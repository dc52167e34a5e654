"""Tables of words, levels and booleans: to codes and back, and in every estimator."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import cases
from contract.estimators import ALL, META, MODELS, OF_ANY_TABLE, each, each_with, name_of
from contract.frames import ODD, people, words
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from private import Encoder
from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    statistics,
)
from sklearn_boltz.inspection import CouplingDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TERMS, PAIRS = FSLLDensity(), FVBMPseudoLikelihood(alpha=0.1)
UNITS = SDCPRBM(3, max_iter=2, random_state=0)

TICK, EARLY = np.datetime64(2**62, "ns"), np.datetime64(1, "ns")
# A column of each kind, with a missing cell where the type can hold one: cells, categories.
PANDAS = {
    "truth": (pd.Series([True, False, True, False]), [False, True]),
    "nullable truth": (pd.array([True, None, False, True], dtype="boolean"), [False, True]),
    "truth with gaps": (pd.Series([True, None, False, True], dtype=object), [False, True]),
    "text": (pd.Series(["b", None, "a", "b"]), ["a", "b"]),
    "objects": (pd.Series(["b", np.nan, "a", "b"], dtype=object), ["a", "b"]),
    "blank text": (pd.Series(["b", " ", "a", ""], dtype=object), ["a", "b"]),
    "ordered": (
        pd.Series(pd.Categorical(["lo", None, "hi", "lo"], ["lo", "mid", "hi"], ordered=True)),
        ["lo", "mid", "hi"],
    ),
    "levels of numbers": (pd.Series(pd.Categorical([10, 5, 10, 7])), [5, 7, 10]),
    "integers": (pd.Series([3, 1, 2, 1]), [1, 2, 3]),
    "nullable integers": (pd.array([3, None, 5, 3], dtype="Int64"), [3, 5]),
    "whole floats": (pd.Series([1.0, np.nan, 6.0, 2.0]), [1, 2, 6]),
    "spins": (pd.Series([-1, 1, 1, -1]), [-1, 1]),
    "one level": (pd.Series(["x", "x", None, "x"]), ["x"]),
    "of several types": (pd.Series(["a", 1, None, 2.5], dtype=object), [2.5, 1, "a"]),
    "intervals": (pd.Series(pd.cut([1, 5, 9, 1], [0, 4, 10])), list(pd.cut([1, 5], [0, 4, 10]))),
    "stamps": (pd.Series([pd.Timestamp(f"2020-1-{k}") for k in (2, 4, 5, 2)], dtype=object), None),
    "ticks": (pd.Series([TICK, TICK + 1, EARLY, None], dtype=object), [EARLY, TICK, TICK + 1]),
    "bits": (pd.Series([0, 1, 1, 0]), None),
    "fractions": (pd.Series([0.5, np.nan, 0.25, 1.0]), None),
    "amounts": (pd.Series([1.5, 200.0, -3.0, np.nan]), None),
    "many integers": (pd.Series(np.arange(4) * 1000), [0, 1000, 2000, 3000]),
    "votes": (pd.Series([0, 1, -1, 0]), None),  # -1 may stand for a missing one: it is asked
}  # fmt: skip


@pytest.mark.parametrize("kind", PANDAS)
def test_a_column_of_each_kind_and_back(kind):
    cells, categories = PANDAS[kind]
    frame = pd.DataFrame({"a": cells})
    frame.index = [4, 5, 6, 7]
    table = Encoder.learn(frame)
    found = table.columns[0].categories
    assert (None if found is None else found.tolist()) == categories
    coded = table.encode(frame)
    known = ~np.isnan(coded[:, 0])
    if categories is not None:
        blank = [pd.isna(cell) or str(cell).strip() == "" for cell in frame["a"]]
        assert_array_equal(~known, blank)
        assert len(set(coded[known, 0])) == len(categories) - (kind == "ordered")  # no "mid"
    back = table.decode(coded)
    assert list(back.columns) == ["a"]
    assert back["a"].to_numpy()[known].tolist() == frame["a"].to_numpy()[known].tolist()
    filled = table.fill(frame, np.nan_to_num(coded), np.isnan(coded))
    assert filled["a"].dtype == frame["a"].dtype and filled.index.equals(frame.index)
    assert filled["a"][known].tolist() == frame["a"][known].tolist()
    if categories is not None:
        assert set(filled["a"][~known]) <= {categories[0]}
    assert pickle.loads(pickle.dumps(table)).decode(coded).equals(back)


LEVELS = ["lo", "mid", "hi"]
CODES = pa.array([0, 2, None], pa.int8())
SMALL = pa.dictionary(pa.int16(), pa.string())
OF_POLARS = {
    "truth": ([True, None, False], [False, True]),
    "text": (["b", None, "a"], ["a", "b"]),
    "levels": (pl.Series(["lo", "hi", None], dtype=pl.Enum(LEVELS)), LEVELS),
    "names": (pl.Series(["lo", "hi", None], dtype=pl.Categorical), ["hi", "lo"]),
    "counts": ([1, None, 6], [1, 6]),
    "share": ([0.5, None, 0.25], None),
}
OF_PYARROW = {
    "truth": ([True, None, False], [False, True]),
    "text": (pa.array(["b", None, "a"], pa.large_string()), ["a", "b"]),
    "levels": (pa.DictionaryArray.from_arrays(CODES, LEVELS, ordered=True), LEVELS),
    "names": (pa.array(["lo", "hi", None]).dictionary_encode(), ["hi", "lo"]),
    "chunks": (pa.chunked_array([pa.array(c, SMALL) for c in ("yx", [None])]), ["x", "y"]),
    "bits": (pa.array([1, None, 0], pa.int32()).dictionary_encode(), None),
    "flags": (pa.array([True, None, False]).dictionary_encode(), [False, True]),
    "views": (
        pa.DictionaryArray.from_arrays(CODES, pa.array(LEVELS, pa.string_view())),
        ["hi", "lo"],
    ),
    "levels of numbers": (pa.array([9, 7, None], pa.int8()).dictionary_encode(), [7, 9]),
    "counts": (pa.array([1, None, 6], pa.uint8()), [1, 6]),
    "share": (pa.array([0.5, None, 0.25], pa.float32()), None),
}


@pytest.mark.parametrize(("make", "columns"), [(pl.DataFrame, OF_POLARS), (pa.table, OF_PYARROW)])
def test_columns_of_other_libraries_and_back(make, columns):
    frame = make({name: cells for name, (cells, _) in columns.items()})
    table = Encoder.learn(frame)
    for column, (_, categories) in zip(table.columns, columns.values(), strict=True):
        assert (None if column.categories is None else column.categories.tolist()) == categories
    coded = table.encode(frame)
    missing = np.array([[cell is None for cell in row.values()] for row in rows_of(frame)])
    assert_array_equal(np.isnan(coded), missing)
    for known in (table, pickle.loads(pickle.dumps(table))):
        assert known.decode(coded).schema == frame.schema
        assert rows_of(known.decode(coded)) == rows_of(frame)
    filled = table.fill(frame, np.nan_to_num(coded), missing)
    assert filled.schema == frame.schema
    rows = rows_of(filled)
    assert [row["levels"] for row in rows] == ["lo", "hi", "lo"]
    assert not any(cell is None for row in rows for cell in row.values())


cells = st.one_of(
    st.none(), st.sampled_from(["yes", "no", "maybe"]), st.booleans(), st.integers(-3, 3),
    st.sampled_from([0.5, 2.5, float("nan")]),
)  # fmt: skip


@settings(max_examples=cases(100))
@given(rows=st.lists(st.tuples(cells, cells), min_size=2, max_size=12))
def test_any_cells_and_back(rows):
    """What is not missing comes back as it was, whatever the mixture of types."""
    array = np.empty((len(rows), 2), dtype=object)
    array[:] = rows
    assume(any(isinstance(cell, str) for row in rows for cell in row))
    table = Encoder.learn(array)
    coded = table.encode(array)
    back = table.decode(coded)
    for cell, code, new in zip(array.ravel(), coded.ravel(), np.ravel(back), strict=True):
        assert np.isnan(code) if pd.isna(cell) else new == cell


def test_numbers_in_arrays_stand_for_themselves():
    X = np.array([[0.0, 3.0], [np.nan, 7.0]])
    table = Encoder.learn(X, X)
    assert table.is_plain and table.encode(X) is X
    assert_array_equal(table.fill(X, np.zeros((2, 2)), np.isnan(X)), [[0, 3], [0, 7]])
    assert Encoder.of_numbers(X).decode(X[:, ::-1].astype(np.float32)).dtype == np.float64


# In estimators.


@each_with("container", ["pandas", "polars", "PyArrow", "objects"], MODELS)
def test_words_are_as_good_as_their_codes(estimator, container):
    X, frame = words()
    # The same numbers in an array are codes from 0 on.
    objects = np.where(np.arange(4) == 3, np.array(["x", "y"])[X[:, [3]]], frame.astype(object))
    table = {
        "pandas": frame, "polars": pl.from_pandas(frame), "objects": objects,
        "PyArrow": pa.Table.from_pandas(frame),
    }[container]  # fmt: skip
    model = clone(estimator).set_params(unseen="error").fit(table)
    codes = clone(estimator).fit(X)
    assert_allclose(model.score_samples(table), codes.score_samples(X), rtol=1e-12)
    strange = frame.assign(vote="perhaps")
    with pytest.raises(ValueError, match="'vote' has the value 'perhaps' in row 0|column 0"):
        model.score_samples(strange if container != "objects" else strange.to_numpy())


@each_with("container", [np.asarray, pl.DataFrame, pa.table], [TERMS, PAIRS, UNITS])
def test_unknown_words_in_the_column_are_ignored(estimator, container):
    """Of the column whose probabilities are asked for."""
    trees = np.random.default_rng(0).choice(["ash", "oak", "elm"], size=(60, 2)).astype(object)

    def table(rows):
        if container is np.asarray:
            return rows
        return container({"tree": rows[:, 0].tolist(), "next": rows[:, 1].tolist()})

    model = clone(estimator).set_params(unseen="error").fit(table(trees))
    known, unknown = trees[:5].copy(), trees[:5].copy()
    unknown[:, 1] = "yew"
    found = model.predict_column_proba(table(unknown), 1)
    assert_array_equal(found, model.predict_column_proba(table(known), 1))
    assert unknown[0, 1] == "yew"
    with pytest.raises(ValueError, match="has the value 'yew' in row 0"):
        model.predict_column_proba(table(unknown), 0)


def rows_of(table, named=True):
    """The rows of a result in plain values, whatever its container; of frames, with names."""
    if isinstance(table, tuple):  # with classes, of RBMClassifier
        return [rows_of(table[0], named), table[1].tolist()]
    if isinstance(table, np.ndarray):
        return table.tolist()
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    rows = table.to_dicts() if isinstance(table, pl.DataFrame) else table.to_pylist()
    return rows if named else [list(row.values()) for row in rows]


def as_objects(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy()


@each([*ALL[:-2], BoltzmannOutlierDetector(), ALL[-1]])
def test_what_is_said_of_columns_is_heard(estimator):
    X = people()[["member", "kids"]].assign(city=np.where(np.arange(60) % 3, "Bern", "Oslo"))
    X["kids"] %= 2
    listed = clone(estimator).set_params(columns={"city": ["Bern", "Oslo"], -2: "nominal"})
    listed.fit(X)
    for columns, refused in (
        ({"city": ["Bern", "Rome"]}, "column 'city' has the value 'Oslo' in row 0, which is none"),
        ({"town": "nominal"}, "There is no column 'town'"),
        ({3: "nominal"}, "There is no column 3 among 3"),
        ({"city": "number"}, "'city' is declared to hold numbers|columns has 'number'"),
        ({"city": "purple"}, "columns has 'purple' for a column"),
        (["nominal"], "columns has 1 entries, but the table has 3 columns"),
    ):
        with pytest.raises(ValueError, match=refused):
            clone(estimator).set_params(columns=columns).fit(X)


@each_with(
    "convert",
    [pl.from_pandas, pa.Table.from_pandas, as_objects],
    [*OF_ANY_TABLE, *META, BoltzmannClassifier(random_state=0)],
)
def test_frames_of_all_libraries_have_the_same_answers(estimator, convert):
    frame = people()[["city", "kids", "member"]]
    frame = frame.assign(
        city=frame["city"].where(np.arange(60) % 11 != 3, None), wage=np.arange(60) / 7
    )
    table, y, named = convert(frame), np.arange(60) % 2, convert is not as_objects
    city = "city" if named else 0
    models = [pickle.loads(pickle.dumps(clone(estimator).fit(X, y))) for X in (frame, table)]
    verbs = ["score_samples", "transform", "predict", "predict_proba", "log_pseudo_likelihood"]
    uses = [getattr(type(estimator), name, None) for name in verbs]
    if hasattr(models[0], "impute"):
        uses += [lambda model, X, how=how: model.impute(X, how=how, random_state=0)
                 for how in ("mean", "mode", "sample")]  # fmt: skip
        uses.append(lambda model, X: model.predict_column_proba(X, city))
    if hasattr(models[0], "explain"):
        uses.append(lambda model, X: model.explain(X[:3]))  # complete rows
    if hasattr(models[0], "sample"):
        uses.append(lambda model, X: model.sample(5, random_state=0))
        if name_of(estimator) not in ("RBMClassifier", "BoltzmannClassifier"):
            uses.append(lambda model, X: model.sample(5, random_state=0, given={city: "c1"}))
    for use in filter(None, uses):
        expected, found = (use(*pair) for pair in zip(models, (frame, table), strict=True))
        if not isinstance(expected, (np.ndarray, tuple)):
            assert type(found) is type(table)
        assert rows_of(found) == rows_of(expected, named)


CONDITIONS = {
    "pandas": (pd.DataFrame, lambda t: t["start"] <= t["end"]),
    "polars": (pl.from_pandas, lambda t: t["start"] <= t["end"]),
    "PyArrow": (pa.table, lambda t: pc.less_equal(t["start"], t["end"])),
}


@each_with("library", CONDITIONS, [e for e in [*OF_ANY_TABLE, *META] if hasattr(e, "sample")])
def test_samples_obey_a_condition(estimator, library):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b"], 80), "start": rng.integers(0, 90, 80)})
    frame["end"] = frame["start"] + rng.integers(0, 40, 80)
    convert, where = CONDITIONS[library]
    model = clone(estimator).fit(convert(frame))
    rows = model.sample(300, random_state=0, given={"kind": "b"}, where=where)
    assert type(rows) is type(convert(frame)) and len(rows) == 300
    assert np.asarray(where(rows)).all() and set(map(str, rows["kind"])) == {"b"}
    again = model.sample(300, random_state=0, given={"kind": "b"}, where=where)
    assert_array_equal(np.asarray(again), np.asarray(rows))


@pytest.mark.parametrize("constant", ["x", 5])
def test_a_constant_column_beside_categories(constant):
    table = people().assign(c=constant)[["city", "member", "kids", "c"]]
    model = clone(PAIRS).fit(table)
    names = model.get_feature_names_out()
    assert f"c={model.categories_[3][0]}" in names and "c=(unused)" in names
    assert len(names) == len(model.coupling_)
    result = statistics.inference(model, table)
    assert len(result.names) == len(result.estimate)
    assert list(statistics.to_networkx(model).nodes) == list(table.columns)
    assert len(statistics.bootstrap(model, table, 2, random_state=0).to_frame())
    for kind in ("heatmap", "graph"):
        display = CouplingDisplay.from_estimator(model, kind=kind)
        assert (display.pairs_ is None) == (kind == "heatmap")
    framed = model.set_output(transform="pandas").transform(table)
    assert list(framed.columns) == list(names)
    for density in (model, FSLLDensity().fit(table)):
        assert density.predict_column_proba(table[:2], "c").tolist() == [[1.0], [1.0]]


def test_minus_one_among_missing_cells():
    gaps = ODD["votes of three values"].astype({"vote": "Int64"})
    gaps.loc[::4, "vote"] = pd.NA
    with pytest.warns(UserWarning, match="column 'vote': -1 beside 0 and 1 looks like a code"):
        filled = BoltzmannImputer().fit(gaps).transform(gaps)["vote"]
    assert filled.dtype == "Int64" and set(filled) == {-1, 0, 1}


@pytest.mark.parametrize(("columns", "cells"), [
    ({"town": "nominal"}, [f"t{k % 43}" for k in range(60)]),
    ("auto", np.r_[np.zeros(57), 0.5, 1.5, 2.25]),  # millimetres of rain
])  # fmt: skip
def test_columns_that_are_what_they_say_give_no_warning(columns, cells):
    """Names of which many occur once, as declared, and a few fractions beside zeros."""
    X = pd.DataFrame({"town": cells, "coast": np.arange(60) % 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FVBMPseudoLikelihood(columns=columns).fit(X)
