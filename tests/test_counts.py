"""The values of columns from one pass over batches, in any order of these."""

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from private import _counts
from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches


def added(parts, rng):
    """The sum of the counts of some arrays, in a random order and along a random tree."""
    counts = [
        _counts.Counts.of(part) for part in rng.permutation(np.array([*parts, None], object)[:-1])
    ]
    while len(counts) > 1:
        k = rng.integers(len(counts) - 1)
        counts[k : k + 2] = [counts[k] + counts[k + 1]]
    return counts[0]


def rank_error(counts, numbers):
    """The greatest error of the share of the cells up to a number, of all numbers."""
    x, here = np.unique(numbers, return_counts=True)
    up_to = np.append(0, np.cumsum(counts.weights))
    found = up_to[np.searchsorted(counts.values, x, side="right")]
    return np.abs(found - np.cumsum(here)).max() / len(numbers)


@settings(max_examples=cases(50))
@given(
    n_cells=st.integers(1, 2000), n_values=st.sampled_from([3, 40, 10**9]),
    n_parts=st.integers(1, 9), is_sorted=st.booleans(), seed=st.integers(0, 100),
)  # fmt: skip
def test_ranks_are_as_exact_as_is_said(n_cells, n_values, n_parts, is_sorted, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(n_values, size=n_cells).astype(float)
    numbers[rng.random(n_cells) < 0.1] = -0.0
    if is_sorted:
        numbers = np.sort(numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_counts, "MOST", 16)
        patch.setattr(_counts, "N_HASHES", 64)
        counts = added(np.array_split(numbers, n_parts), rng)
        assert 1 / 4 < counts.n_different / len(np.unique(numbers)) < 7 / 4  # six errors
    assert counts.weights.sum() == n_cells
    assert counts.values[[0, -1]].tolist() == [numbers.min(), numbers.max()]
    assert np.isin(counts.values, numbers).all() and (np.diff(counts.values) > 0).all()
    error = rank_error(counts, numbers)
    assert error <= 2 * max(1 + np.log2(n_cells / 16), 0) / 16
    assert len(counts.values) <= 16 * (2 + np.log2(n_cells))
    if len(np.unique(numbers)) <= 16:
        assert error == 0 == counts.n_merged


def people(n_rows=600, seed=0):
    """Strings, numbers, dates and booleans with gaps."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Oslo", "Bern"], n_rows, p=[0.5, 0.3, 0.2]).astype(object)
    pay = np.where(rng.random(n_rows) < 0.2, 0, np.round(rng.lognormal(size=n_rows), 3))
    frame = pd.DataFrame({
        "city": np.where(rng.random(n_rows) < 0.05, None, city),
        "pay": np.where(rng.random(n_rows) < 0.05, np.nan, pay + 2 * (city == "Rome")),
        "member": (city == "Oslo") ^ (rng.random(n_rows) < 0.1),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(40, size=n_rows), "D"),
        "kids": rng.poisson(1, n_rows),
    })  # fmt: skip
    return frame


def cut(X, step=130):
    return [X[start : start + step] for start in range(0, len(X), step)]


def parquet(X, path):
    X.to_parquet(path / "people.parquet", row_group_size=90)
    return Batches(path / "people.parquet", batch_rows=100)


SOURCES = {
    "list": lambda X, path: Batches(cut(X)),
    "reversed": lambda X, path: Batches([X[:0], *cut(X)[::-1]]),
    "function": lambda X, path: Batches(lambda: iter(cut(X))),
    "parquet": parquet,
    "pyarrow": lambda X, path: Batches([pa.Table.from_pandas(piece) for piece in cut(X)]),
    "dask": lambda X, path: pytest.importorskip("dask.dataframe").from_pandas(X, npartitions=4),
}
# The share of unseen values depends on which of the rows are looked at.
MODELS = [FSLLDensity(unseen="missing"), FVBMPseudoLikelihood(unseen="missing")]
MACHINES = [kind(3, max_iter=2, early_stopping=False, random_state=0) for kind in (SDCPRBM, TAPRBM)]


def same_columns(model, expected):
    assert model.columns_ == expected.columns_
    assert model.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    for found, values in zip(model.categories_, expected.categories_, strict=True):
        assert_array_equal(found, values)


DECLARED = [
    "auto", "nominal", {"kids": "count", "city": ["Bern", "Oslo", "Rome"]}, {"kids": "ordinal"}
]  # fmt: skip


@cache
def of_table(place, n):
    """A model of the whole table, or of what is declared of some of its columns, and the table."""
    X = people()[["city", "kids", "member"]] if place else people()
    return clone(MODELS[n]).set_params(columns=DECLARED[place]).fit(X), X


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_batches_of_a_table_give_what_the_table_gives(make, tmp_path):
    k = list(SOURCES.values()).index(make)  # what is declared is the same for all sources
    for place, n in {(0, 0), (0, k % 2), (k % 4, k % 2)}:
        expected, X = of_table(place, n)
        model = clone(expected).fit(make(X, tmp_path))
        same_columns(model, expected)
        assert_allclose(model.score_samples(X), expected.score_samples(X), rtol=1e-6)
        found, sample = (m.sample(5, random_state=0) for m in (model, expected))
        if isinstance(found, pa.Table):
            found = found.to_pandas()
        assert found.columns.tolist() == sample.columns.tolist()
        for name in X:  # Parquet has units of its own
            assert found[name].dtype.kind == sample[name].dtype.kind


@pytest.mark.parametrize(
    ("make", "model"), [(SOURCES["list"], MACHINES[0]), (SOURCES["parquet"], MACHINES[1])]
)
def test_machines_learn_from_batches_of_tables(model, make, tmp_path):
    X = people()
    expected, model = clone(model).fit(X), clone(model).fit(make(X, tmp_path))
    same_columns(model, expected)
    assert model.visible_names_.tolist() == expected.visible_names_.tolist()
    # Another order of the rows, and after two epochs little is learned.
    assert abs(model.score(X) - expected.score(X)) < 0.2
    strange = X[:4].assign(city="Paris")
    unseen, ours = expected.score_samples(strange), model.score_samples(strange)
    assert_allclose(ours, unseen, atol=0.7)
    filled = model.impute(X, random_state=0)
    assert not filled.isna().any().any()
    assert ((filled == X) | X.isna()).all().all()


def test_normal_scores_of_batches():
    X = people(90)[["pay", "member"]]
    model, same = (
        FVBMPseudoLikelihood(columns={"pay": "number"}).fit(rows)
        for rows in (X, Batches([X[:0], *cut(X, 40)]))
    )
    assert_allclose(same.score_samples(X), model.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("make", [
    lambda cells: pd.DataFrame({"a": pd.Categorical(cells), "b": np.arange(40) % 2}),
    lambda cells: np.array([cells, np.arange(40) % 2], dtype=object).T,
])  # fmt: skip
def test_values_of_single_batches(make):
    model = FVBMPseudoLikelihood().fit(Batches([make(["x", "y"] * 20), make(["z", "y"] * 20)]))
    assert set(model.categories_[0]) == {"x", "y", "z"}
    assert isinstance(model.sample(2, random_state=0), type(make(["x"] * 40)))


def test_columns_that_change_from_batch_to_batch():
    """Gaps make floats of whole numbers, and each batch has categories of its own."""
    X = people()[["kids", "city"]].assign(empty=None)
    X["city"] = X["city"].fillna("none")
    whole = X.assign(kids=X["kids"].where(X.index >= 130), city=X["city"].astype("category"))
    batches = [
        whole[:130],
        *(piece.assign(city=piece["city"].astype("category")) for piece in cut(X[130:])),
    ]
    with pytest.warns(UserWarning, match="no row has a value in column 'empty'"):
        model = FSLLDensity().fit(Batches(batches))
    with pytest.warns(UserWarning, match="no row has a value"):
        expected = FSLLDensity().fit(whole)
    same_columns(model, expected)
    assert_array_equal(model.theta_, expected.theta_)
