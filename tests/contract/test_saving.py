"""Fitted estimators hold plain values: what skops writes and reads back does the same."""

import pickle
import re
import sys
import warnings
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract.estimators import (
    ALL,
    META,
    MODELS,
    OF_ANY_TABLE,
    as_public,
    each,
    each_with,
    fitted,
    labels,
    name_of,
)
from contract.frames import bits
from contract.state import assert_same
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import sklearn_boltz
from sklearn_boltz import SDCPRBM, BoltzmannImputer, FSLLDensity

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "how_to" / "save_and_load.rst"


class Colour(Enum):
    RED = 1
    BLUE = 2


def pandas_frame(n):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "text": pd.Series(rng.choice(["a", "b", None], n)),
        "words": pd.Series(rng.choice(["no", "yes"], n), dtype=object),
        "nullable text": pd.array(rng.choice(["u", "v"], n), dtype=pd.StringDtype("python")),
        "arrow": pd.array(rng.choice(["u", "v"], n), dtype=pd.ArrowDtype(pa.string())),
        "ordered": pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "mid", "hi"], ordered=True),
        "category": pd.Categorical(rng.choice([5, 7, 10], n)),
        "truth": rng.random(n) < 0.5,
        "nullable truth": pd.array(np.where(rng.random(n) < 0.9, True, None), dtype="boolean"),
        "small": rng.integers(1, 4, n).astype(np.int8),
        "nullable": pd.array(rng.choice([3, 4, None], n), dtype="Int64"),
    })  # fmt: skip
    frame.index.name, frame.columns.name = "respondent", "question"
    return frame


def polars_frame(n):
    frame = pandas_frame(n)
    return pl.DataFrame([
        pl.Series("text", frame["words"].tolist()),
        pl.Series("category", frame["words"].tolist(), dtype=pl.Categorical),
        pl.Series("enum", frame["ordered"].tolist(), dtype=pl.Enum(["lo", "mid", "hi"])),
        pl.Series("truth", [None if pd.isna(v) else v for v in frame["nullable truth"]]),
        pl.Series("small", frame["small"].tolist(), dtype=pl.Int8),
        pl.Series("gaps", [None if pd.isna(v) else v for v in frame["nullable"]], dtype=pl.UInt16),
    ])  # fmt: skip


def pyarrow_frame(n):
    some = pandas_frame(n)[["text", "ordered", "nullable truth", "small", "nullable"]]
    table = pa.Table.from_pandas(some, preserve_index=False)
    days = np.datetime64("2026-01-01") + np.arange(n) % 50
    return table.append_column("day", pa.array(days))


def category(*values):
    """A function from codes to a column of pandas with such values."""
    index = pd.Index(list(values), dtype=object, tupleize_cols=False).infer_objects()
    return lambda codes: pd.Categorical.from_codes(codes, index)


def of_values(make, labels=None):
    """A function from the number of rows to a frame whose columns have two values each."""

    def frame(n):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({name: column(rng.integers(2, size=n)) for name, column in make.items()})
        return X if labels is None else X.set_axis(labels[: X.shape[1]], axis=1)

    return frame


def of_objects(*values):
    return lambda codes: pd.Series([values[code] for code in codes], dtype=object)


DAYS = pd.to_datetime(["2024-02-29", "2025-10-26"])
STAMPS = DAYS.tz_localize("Europe/Berlin")
TIMES = {
    "day": category(*(day.date() for day in DAYS)), "stamp": category(*DAYS),
    "zone": category(*STAMPS), "offset": category(*DAYS.tz_localize("+05:30")),
    "period": category(*DAYS.to_period("W")), "duration": category(*(DAYS - DAYS[0])),
    "bins": lambda codes: pd.cut(DAYS[codes].as_unit("ns"), 2),
    "bins with a zone": lambda codes: pd.cut(STAMPS[codes].as_unit("ns"), 2),
}  # fmt: skip
OTHERS = {
    "decimal": of_objects(Decimal("0.10"), Decimal("2.5")),
    "uuid": of_objects(UUID(int=1), UUID(int=2)),
    "fraction": category(Fraction(1, 3), Fraction(2, 3)), "tuple": category(("a", 1), ("b", 2)),
    "set": of_objects(frozenset("a"), frozenset("bc")), "bytes": of_objects(b"a", b"b"),
    "colour": category(*Colour), "interval": lambda codes: pd.array(pd.cut(codes, [-1, 0, 1])),
    "large": of_objects(10**400, 2**70),
}  # fmt: skip
FRAMES = {
    "pandas": pandas_frame, "polars": polars_frame, "pyarrow": pyarrow_frame,
    "times": of_values(TIMES), "other values": of_values(OTHERS),
    "labels": of_values(dict.fromkeys(range(4), lambda codes: codes + 1), pd.interval_range(0, 4)),
}  # fmt: skip
every_library = pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])


def documented():
    """The types beside those of this package that the guide says to trust."""
    found = re.search(r"trusted = \{(.*?)\}", GUIDE.read_text(encoding="utf-8"))
    return set(re.findall(r'"([\w.]+)"', found[1]))


def same(one, other):
    """Whether two results are the same frame, or the same array."""
    if isinstance(one, tuple):
        for part, its_twin in zip(one, other, strict=True):
            same(part, its_twin)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    elif isinstance(one, pl.DataFrame):
        assert one.schema == other.schema
        assert one.rows() == other.rows()  # old versions cannot compare empty frames
    elif isinstance(one, pa.Table):
        assert one.schema == other.schema
        assert one.to_pylist() == other.to_pylist()
    else:
        assert_array_equal(one, other)


def through_skops(model):
    """What comes back, and the types of others that are to be trusted."""
    import skops.io  # a second, which every process that collects the tests would take

    # Nothing besides the file tells what to trust.
    file = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=file)
    others = {name for name in trusted if not name.startswith("sklearn_boltz.")}
    return skops.io.loads(file, trusted=trusted), others


def through_pickle(model):
    """What comes back, and the names of the packages that it has classes of."""
    libraries = set()

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            libraries.add(module.partition(".")[0])
            return super().find_class(module, name)

    return Unpickler(BytesIO(pickle.dumps(model))).load(), libraries


@each_with("what", FRAMES, [*OF_ANY_TABLE, *META])
def test_a_model_comes_back_with_the_types_that_the_guide_lists(estimator, what):
    X = FRAMES[what](60)
    X = X.drop(columns=["arrow", "nullable text"]) if what == "pandas" else X  # a small table
    model = as_public(estimator).fit(X, *labels(estimator, X))
    again, others = through_skops(model)
    own = {f"{Colour.__module__}.Colour"} if what == "other values" else set()
    assert others - own <= documented()
    from_pickle, libraries = through_pickle(model)
    assert not libraries & {"pandas", "polars", "pyarrow", "narwhals", "datetime", "decimal"}
    for method in ("score_samples", "transform", "impute", "predict"):
        if hasattr(model, method):
            found = getattr(model, method)(X)
            same(found, getattr(again, method)(X))
            same(found, getattr(from_pickle, method)(X))
    if hasattr(model, "sample"):
        drawn = model.sample(20, random_state=0)
        same(drawn, again.sample(20, random_state=0))
        drawn = drawn[0] if isinstance(drawn, tuple) else drawn
        assert type(drawn) is type(X)
        dtypes = "dtypes" if isinstance(X, pd.DataFrame) else "schema"
        assert list(getattr(drawn, dtypes)) == list(getattr(X, dtypes))


@each(ALL)
def test_a_model_of_an_array_comes_back(estimator):
    model = clone(as_public(estimator)).fit(bits(), *labels(estimator, bits()))
    again, others = through_skops(model)
    assert others <= documented()
    method = "score_samples" if hasattr(model, "score_samples") else "transform"
    same(getattr(model, method)(bits()), getattr(again, method)(bits()))


def test_headers_of_columns_with_levels():
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["wave", None])
    X = pd.DataFrame([[0, 1], [1, 1], [1, 0]] * 10, columns=columns)
    model = FSLLDensity().fit(X)
    same(model.sample(5, random_state=0)[:0], pickle.loads(pickle.dumps(model._encoder)).template)
    pd.testing.assert_index_equal(model.sample(5).columns, columns)
    gaps = X.astype(float).mask(np.random.default_rng(0).random(X.shape) < 0.2)
    gaps.index = pd.Index(np.arange(30) // 2, name="respondent")
    filled, before = model.impute(gaps, how="mode"), gaps.copy()
    pd.testing.assert_index_equal(filled.columns, columns)
    pd.testing.assert_index_equal(filled.index, gaps.index)
    filled.iloc[:, :] = 7.0
    pd.testing.assert_frame_equal(gaps, before)
    imputed = BoltzmannImputer(random_state=0).fit_transform(gaps)
    pd.testing.assert_index_equal(imputed.columns, columns)
    pd.testing.assert_index_equal(imputed.index, gaps.index)
    flat = gaps.set_axis(["a", "b"], axis=1)
    imputed = BoltzmannImputer(add_indicator=True, random_state=0).fit_transform(flat)
    pd.testing.assert_index_equal(imputed.index, gaps.index)
    assert_array_equal(imputed[["missing_a", "missing_b"]], gaps.isna())


@every_library
def test_arrays_where_the_library_of_the_frame_is_not_installed(library, monkeypatch):
    X = FRAMES[library](60)
    X = X.select(["small"]) if library == "pyarrow" else X[["small"]]
    model = FSLLDensity().fit(X)
    expected = np.asarray(model.sample(9, random_state=0))
    monkeypatch.setitem(sys.modules, library, None)
    drawn = model.sample(9, random_state=0)
    assert type(drawn) is np.ndarray
    assert_array_equal(drawn, expected)


def test_training_goes_on_after_skops():
    X = polars_frame(60)
    one = SDCPRBM(4, tempered=0.5, max_iter=2, random_state=0).fit(X)
    other, others = through_skops(one)
    assert others <= documented()
    same(one.partial_fit(X).components_, other.partial_fit(X).components_)


@each(MODELS)
def test_pickles_of_other_versions_warn(estimator, monkeypatch):
    X, model = bits(), fitted(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(model))
    assert_same(model, again)
    same(model.score_samples(X), again.score_samples(X))
    with monkeypatch.context() as other_version:
        other_version.setattr("sklearn_boltz._density.VERSION", "0.0.1")
        old = pickle.dumps(model)
    expected = f"{name_of(model)} of sklearn_boltz from version 0.0.1 when using version "
    with pytest.warns(InconsistentVersionWarning, match=expected + sklearn_boltz.__version__):
        assert_same(model, pickle.loads(old))
    nameless = {k: v for k, v in model.__getstate__().items() if k != "_sklearn_boltz_version"}
    with pytest.warns(InconsistentVersionWarning):
        clone(model).__setstate__(nameless)
    assert "_sklearn_boltz_version" not in vars(pickle.loads(pickle.dumps(model)))
    assert not hasattr(clone(model), "n_features_in_")
