"""Tables of words, levels and truth values: to codes and back, and in every estimator."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from test_common import DEFAULTS

from private import Table, has_numbers_only, is_date_or_time, is_empty, learn_table, true_of
from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
)
from sklearn_boltz.batches import Batches

every_estimator = pytest.mark.parametrize("estimator", DEFAULTS, ids=lambda e: type(e).__name__)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
META = [
    BoltzmannClassifier(),
    BoltzmannImputer(FVBMPseudoLikelihood()),
    BoltzmannOutlierDetector(random_state=0),
    BoltzmannMixture([("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood())], random_state=0),
]

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
    table = learn_table(frame)
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


def test_columns_of_polars_and_back():
    frame = pl.DataFrame({
        "truth": [True, None, False],
        "text": ["b", None, "a"],
        "levels": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "mid", "hi"])),
        "names": pl.Series(["lo", "hi", None], dtype=pl.Categorical),
        "counts": [1, None, 6],
        "share": [0.5, None, 0.25],
    })  # fmt: skip
    table = learn_table(frame)
    categories = [None if c.categories is None else c.categories.tolist() for c in table.columns]
    expected = [[False, True], ["a", "b"], ["lo", "mid", "hi"], ["hi", "lo"], [1, 6], None]
    assert categories == expected
    coded = table.encode(frame)
    assert table.decode(coded).equals(frame)
    assert table.decode(coded).schema == frame.schema
    filled = table.fill(frame, np.nan_to_num(coded), np.isnan(coded))
    assert filled.schema == frame.schema and filled.null_count().sum_horizontal()[0] == 0
    assert filled["levels"].to_list() == ["lo", "hi", "lo"]


@every_estimator
def test_booleans_of_polars_with_gaps(estimator):
    """A frame of nothing else is an array of objects to NumPy."""
    frame = pl.DataFrame({"a": [True, None, False] * 10, "b": [False, True, True] * 10})
    model = clone(estimator).fit(frame)
    filled = model.impute(frame, how="mode", random_state=0)
    assert filled.schema == frame.schema and filled["a"].null_count() == 0
    assert np.isfinite(model.score_samples(frame)).all()


cells = st.one_of(
    st.none(), st.sampled_from(["yes", "no", "maybe"]), st.booleans(), st.integers(-3, 3),
    st.sampled_from([0.5, 2.5, float("nan")]),
)  # fmt: skip


odd_cells = st.one_of(
    cells, st.sampled_from(["", " ", pd.NA, pd.NaT, np.float64("nan"), 1.0]),
    st.dates(), st.lists(st.integers(), max_size=1),
)  # fmt: skip


@settings(max_examples=cases(100))
@given(st.lists(odd_cells, max_size=12))
def test_each_different_cell_is_tested_once(column):
    """With the result of a test of each cell, also for cells without a hash or an order."""
    array = np.empty(len(column), dtype=object)
    array[:] = column
    for test in (is_empty, is_date_or_time):
        assert true_of(test, array).tolist() == [test(cell) for cell in column]
    seen = []
    words = np.array(["yes", "no", None] * 30, dtype=object)
    true_of(lambda cell: seen.append(cell) or True, words)
    assert seen == ["yes", "no", None]


@settings(max_examples=cases(100))
@given(rows=st.lists(st.tuples(cells, cells), min_size=2, max_size=12))
def test_any_cells_and_back(rows):
    """What is not missing comes back as it was, whatever the mixture of types."""
    array = np.empty((len(rows), 2), dtype=object)
    array[:] = rows
    if has_numbers_only(array):
        return
    table = learn_table(array)
    coded = table.encode(array)
    back = table.decode(coded)
    for cell, code, new in zip(array.ravel(), coded.ravel(), np.ravel(back), strict=True):
        assert np.isnan(code) if pd.isna(cell) else new == cell


def test_numbers_in_arrays_stand_for_themselves():
    X = np.array([[0.0, 3.0], [np.nan, 7.0]])
    table = learn_table(X, X)
    assert table.is_plain and table.encode_numbers(X) is X
    assert_array_equal(table.fill(X, np.zeros((2, 2)), np.isnan(X)), [[0, 3], [0, 7]])
    assert Table.of_numbers(X).decode(X[:, ::-1].astype(np.float32)).dtype == np.float64


NUMBERS = {
    "integers": np.array([[0, 1], [1, 1], [1, 0]]),
    "truth": np.array([[False, True], [True, True], [True, False]]),
    "floats": np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 0.25]]),
    "single": np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 0.25]], dtype=np.float32),
    "with gaps": np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 0.0]]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_among_objects_have_the_type_that_they_have_alone(kind):
    X = NUMBERS[kind]
    cells = X.astype(object)
    if X.dtype.kind == "f":  # of single precision as NumPy's scalars
        cells[:] = [[None if np.isnan(x) else x for x in row] for row in X]
    model = SDCPRBM(3, visible="bernoulli", max_iter=2, unseen="missing", random_state=0).fit(X)
    for table in (cells, cells.tolist(), pd.DataFrame(cells, dtype=object)):
        other = clone(model).fit(table)
        assert other.components_.dtype == model.components_.dtype
        assert_array_equal(other.components_, model.components_)
        assert_array_equal(other.score_samples(table), model.score_samples(X))


def test_numbers_that_no_type_of_numpy_holds():
    array = np.array([[Fraction(1, 2), 2**70], [None, 0.5]], dtype=object)
    table = learn_table(pd.DataFrame(array))
    coded = table.encode(pd.DataFrame(array))
    assert coded.dtype == np.float64
    assert_array_equal(coded, [[0.5, 2.0**70], [np.nan, 0.5]])


def test_unseen_categories():
    table = learn_table(pd.DataFrame({"city": ["Rome", "Oslo"], "n": [1, 2]}))
    strange = pd.DataFrame({"city": ["Oslo", "Bonn"], "n": [2, 1]})
    with pytest.raises(ValueError, match=r"column 'city' has the value 'Bonn' in row 1.*'Oslo'"):
        table.encode(strange)
    assert_array_equal(table.encode(strange, unseen="missing"), [[0, 1], [np.nan, 0]])


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (pd.DataFrame({"a": [{}, {}]}), "column 'a' has a dict in row 0"),
        (pd.DataFrame({"a": [f"name {i}" for i in range(50)]}), "looks like an ID column"),
        (pd.DataFrame({"a": [f"{i}" for i in range(50)]}), r"\.astype\(float\)"),
        (pd.DataFrame([[0, 1]], columns=["a", "a"]), "two columns named 'a'"),
    ],
)
def test_tables_that_are_refused(frame, match):
    with pytest.raises((TypeError, ValueError), match=match):
        learn_table(frame)


def test_texts_that_look_like_missing_cells_are_told_of():
    with pytest.warns(UserWarning, match=r"column 'a' has the category '\?'"):
        learn_table(pd.DataFrame({"a": ["x", "?", "y"]}))


def words(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 4))
    X[:, 1] = X[:, 0]
    return X, pd.DataFrame({
        "vote": np.array(["no", "yes"])[X[:, 0]],
        "present": X[:, 1].astype(bool),
        "side": pd.Categorical(np.array(["left", "right"])[X[:, 2]], ["left", "right"]),
        "level": X[:, 3] + 1,
    })  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.float32, object])
@pytest.mark.parametrize(
    "estimator", DEFAULTS + META, ids=lambda estimator: type(estimator).__name__
)
def test_masked_cells_are_missing(estimator, dtype):
    rng = np.random.default_rng(0)
    X, mask = rng.integers(2, size=(60, 4)), rng.random((60, 4)) < 0.1
    X[:, 1], y = X[:, 0], X[:, 0]
    masked = np.ma.masked_array(X.astype(dtype), mask)
    kind = np.float64 if dtype is np.int64 else dtype
    holes = np.where(mask, None if dtype is object else np.nan, X.astype(kind)).astype(kind)
    models = [clone(estimator).fit(table, y) for table in (masked, holes)]
    method = "predict_proba" if is_classifier(estimator) else "score_samples"
    if isinstance(estimator, BoltzmannImputer):
        method = "transform"
    found, expected = (
        getattr(model, method)(table) for model, table in zip(models, (masked, holes), strict=True)
    )
    assert not np.ma.isMaskedArray(found)
    assert_array_equal(found, expected)
    if hasattr(models[0], "impute"):
        filled = [m.impute(t, random_state=0) for m, t in zip(models, (masked, holes), strict=True)]
        assert not np.ma.isMaskedArray(filled[0])
        assert_array_equal(*filled)
    assert_array_equal(masked.mask, mask)


@every_estimator
@pytest.mark.parametrize("container", ["pandas", "polars", "objects"])
def test_words_are_as_good_as_their_codes(estimator, container):
    X, frame = words()
    table = {"pandas": frame, "polars": pl.from_pandas(frame), "objects": frame.astype(object)}
    table = table[container].to_numpy() if container == "objects" else table[container]
    if container == "objects":
        table = np.where(np.arange(4) == 3, np.array(["x", "y"])[X[:, [3]]], table)
    model = clone(estimator).set_params(unseen="error").fit(table)
    codes = clone(estimator).fit(X)
    np.testing.assert_allclose(model.score_samples(table), codes.score_samples(X), rtol=1e-12)
    with pytest.raises(ValueError, match="'vote' has the value 'perhaps' in row 0|column 0"):
        strange = frame.assign(vote="perhaps")
        model.score_samples(strange if container != "objects" else strange.to_numpy())


@pytest.mark.parametrize("estimator", [
    FSLLDensity(), FVBMPseudoLikelihood(), SDCPRBM(3, max_iter=2, random_state=0)
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_threshold_leaves_words_as_they_are(estimator):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"word": rng.choice(list("xyz"), 90), "amount": rng.random(90)})
    frame.loc[frame["word"] == "z", "amount"] += 1
    by_hand = frame.assign(amount=(frame["amount"] > 0.8).astype(float))
    estimator = clone(estimator).set_params(unseen="missing")  # bits of a frame may be smoothed
    model = clone(estimator).set_params(binarize=0.8).fit(frame)
    expected = clone(estimator).fit(by_hand)
    np.testing.assert_allclose(model.score_samples(frame), expected.score_samples(by_hand))


def test_the_same_words_make_the_same_model_in_any_order_of_rows():
    _, frame = words()
    model = FSLLDensity().fit(frame)
    other = FSLLDensity().fit(frame.iloc[::-1])
    np.testing.assert_allclose(model.score_samples(frame), other.score_samples(frame))


def test_batches_hold_numbers():
    _, frame = words()
    with pytest.raises(ValueError, match=r"In batch 0: .*batches must hold numbers"):
        SDCPRBM(4, max_iter=1).fit(Batches([frame, frame]))
