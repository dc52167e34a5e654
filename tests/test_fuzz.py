"""Any legal parameters on any legal table, and frames as they come: a fit, or a refusal in words.

`make test` tries the same few cases each time, `make fuzz` others at random, and many.
"""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import cases
from contract.estimators import ALL, MODELS, VALUES, each, each_with, legal_values
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from sklearn_boltz import BoltzmannImputer

# Hardly any rows separate variables, extreme parameters diverge, and words in columns may be rare.
pytestmark = pytest.mark.filterwarnings("ignore")

# Words of messages that refuse a table for what the parameters make of it.
CAUSES = {"n_samples", "rows", "sample_weight"}


def table(n_rows, n_columns, n_levels, gaps, seed):
    """Codes from 0 on, of which each column follows from the one before it in half of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(n_levels, size=(n_rows, n_columns)).astype(float)
    for j in range(1, n_columns):
        X[:, j] = np.where(rng.random(n_rows) < 0.5, X[:, j - 1], X[:, j])
    X[rng.random(X.shape) < gaps] = np.nan
    return X


# With 150 rows and more, some are set aside to stop early.
tables = st.builds(
    table,
    n_rows=st.sampled_from([1, 2, 20, 150, 220]),
    n_columns=st.integers(1, 5),
    n_levels=st.sampled_from([2, 2, 2, 3, 4]),
    gaps=st.sampled_from([0.0, 0.0, 0.1]),
    seed=st.integers(0, 10**6),
)


def assert_finite(values, name=""):
    assert np.isfinite(np.asarray(values, dtype=np.float64)).all(), name


def assert_in_words(error, model):
    """A refusal names a parameter, the column or what else is its cause."""
    words = set(re.findall(r"\w+", str(error)))
    assert words & (CAUSES | set(model.get_params()) | {"column", "columns"}), str(error)


@each(MODELS)
@settings(max_examples=cases(12))
@given(X=tables, dtype=st.sampled_from([np.float32, np.float64]), data=st.data())
def test_any_legal_parameters(estimator, X, dtype, data):
    """It works, with finite numbers, or it is refused in words."""
    model, X = clone(estimator), X.astype(dtype)
    known = sorted(model.get_params().keys() & VALUES.keys())
    chosen = data.draw(st.lists(st.sampled_from(known), max_size=5, unique=True))
    for name in chosen:
        model.set_params(**{name: data.draw(st.sampled_from(legal_values(model, name)), name)})
    try:
        model.fit(X)
    except ValueError as error:
        assert_in_words(error, model)
        assert not hasattr(model, "n_features_in_")
        return
    # Of a column without a value, nothing is learned, and nothing is drawn.
    empty = np.isnan(X).all(axis=0)
    for name, value in vars(model).items():
        is_number = (
            isinstance(value, (np.ndarray, float)) and np.asarray(value).dtype.kind in "biuf"
        )
        if name.endswith("_") and is_number:
            if name.endswith("_visible_") and np.shape(value) == empty.shape:
                value = value[~empty]  # its unit has other parameters
            if name == "alpha_" and np.ndim(value):
                value = value[[len(np.unique(x[~np.isnan(x)])) > 1 for x in X.T]]  # those that vary
            if name == "alphas_":
                value = np.nan_to_num(value)  # after the end of a path
            assert_finite(value, name)
    for name, path in getattr(model, "history_", {}).items():
        # The likelihood is measured when the cost allows, and after the last epoch.
        rare = "log_likelihood" in name or name == "free_energy_gap"
        assert_finite(path[-1:] if rare else path, name)
    complete = np.where(empty, np.nan, np.nan_to_num(X))
    assert_finite(model.score_samples(complete), "score_samples")
    assert_finite(model.transform(complete), "transform")
    assert_finite(np.asarray(model.sample(2, random_state=0))[:, ~empty], "sample")


DAY = np.datetime64("2024-02-29")
KINDS = {
    "two words": lambda rng, n: rng.choice(["yes", "no"], n),
    "rare words": lambda rng, n: rng.choice(list("abcdefgh"), n, p=[0.4, 0.4] + [0.2 / 6] * 6),
    "a constant": lambda rng, n: np.full(n, "always"),
    "a constant number": lambda rng, n: np.full(n, 3.5),
    "nothing": lambda rng, n: np.full(n, np.nan),
    "hardly anything": lambda rng, n: np.append(1.5, np.full(n - 1, np.nan)),
    "categories": lambda rng, n: pd.Categorical(
        rng.choice(["low", "high"], n), ["low", "middle", "high"], ordered=bool(n % 2)
    ),
    "stars": lambda rng, n: pd.Categorical(rng.integers(1, 6, n), range(1, 6), ordered=True),
    "booleans": lambda rng, n: rng.random(n) < 0.3,
    "bits": lambda rng, n: rng.integers(2, size=n),
    "counts": lambda rng, n: rng.poisson(1.2, n),
    "nullable counts": lambda rng, n: pd.array(rng.poisson(0.8, n), dtype="Int64"),
    "identifiers": lambda rng, n: rng.permutation(10**6 + np.arange(n)),
    "amounts": lambda rng, n: np.exp(rng.normal(size=n)),
    "shares": lambda rng, n: rng.random(n),
    "days": lambda rng, n: DAY + rng.integers(900, size=n).astype("m8[D]"),
    "moments": lambda rng, n: DAY + rng.integers(10**6, size=n).astype("m8[s]"),
    "dates": lambda rng, n: [datetime.date(2020, 1, k) for k in rng.integers(1, 29, n)],
}
OF_POLARS = {"categories", "nullable counts", "stars"}  # which have types of pandas


@st.composite
def frames(draw):
    """A frame, with gaps in some columns."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows = draw(st.sampled_from([30, 60, 160]))
    frame = pd.DataFrame({f"c{j}": KINDS[kind](rng, n_rows) for j, kind in enumerate(kinds)})
    for name in draw(st.lists(st.sampled_from(list(frame)), max_size=2, unique=True)):
        # polars 1.0 takes no NaN among words.
        frame[name] = frame[name].mask(rng.random(n_rows) < 0.15, None)
    if draw(st.booleans()) and not OF_POLARS & set(kinds):
        return pl.from_pandas(frame)
    return frame


def cells_of(frame, name):
    return [None if pd.isna(cell) else cell for cell in frame[name].to_list()]


def assert_possible(found, frame):
    """The columns and types of a frame; words that it has, and numbers between those it has."""
    assert type(found) is type(frame) and list(found.columns) == list(frame.columns)
    assert list(map(str, found.dtypes)) == list(map(str, frame.dtypes))
    for name in frame.columns:
        own, cells = (set(cells_of(X, name)) - {None} for X in (frame, found))
        if not own or isinstance(next(iter(own)), (str, bool)):
            assert cells <= own.union(getattr(frame[name].dtype, "categories", ())), name
        else:
            assert min(own) <= min(cells, default=min(own)), name
            assert max(cells, default=max(own)) <= max(own), name


def assert_used(estimator, frame):
    """It is learned, used and given back with its types; or the refusal names column or remedy."""
    model = clone(estimator)
    try:
        model.fit(frame, *[np.arange(len(frame)) % 2] * is_classifier(estimator))
    except ValueError as error:
        assert_in_words(error, model)
        assert not hasattr(model, "n_features_in_")
        return
    if hasattr(model, "score_samples"):
        assert_finite(model.score_samples(frame))
    if is_classifier(model):
        np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1, rtol=1e-6)
    if hasattr(model, "sample"):
        rows = model.sample(len(frame), random_state=0)
        assert_possible(rows[0] if isinstance(rows, tuple) else rows, frame)
    if isinstance(model, BoltzmannImputer):
        model.transform(frame)
    if hasattr(model, "impute"):
        filled = model.impute(frame, how="sample", random_state=0)
        assert_possible(filled, frame)
        for name in frame.columns:
            before, after = cells_of(frame, name), cells_of(filled, name)
            assert None not in after or set(before) == {None}, name
            assert all(b in (None, a) for b, a in zip(before, after, strict=True)), name


@each(ALL)
@settings(max_examples=cases(8))
@given(frame=frames())
def test_any_frame(estimator, frame):
    assert_used(estimator, frame)


@each_with("name", ["attrition", "chile", "happiness", "nhefs", "wage", "yrbss"], ALL)
def test_real_frames(estimator, name, shared_data):
    """60 rows and some columns of each."""
    frame = pd.read_csv(shared_data / "mixed" / f"{name}.csv.gz")
    frame = frame.iloc[:, :: -(-frame.shape[1] // 5)].sample(60, random_state=0)
    assert_used(estimator, frame.reset_index(drop=True))
