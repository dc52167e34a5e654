"""The values of columns from one pass over batches, in any order of these."""

import tracemalloc
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from private import Bins, _counts
from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, RBMClassifier
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
        counts = added(np.array_split(numbers, n_parts), rng)
    assert counts.weights.sum() == n_cells
    assert counts.values[[0, -1]].tolist() == [numbers.min(), numbers.max()]
    assert np.isin(counts.values, numbers).all() and (np.diff(counts.values) > 0).all()
    error = rank_error(counts, numbers)
    assert error <= 2 * max(1 + np.log2(n_cells / 16), 0) / 16
    assert len(counts.values) <= 16 * (2 + np.log2(n_cells))
    if len(np.unique(numbers)) <= 16:
        assert error == 0 == counts.n_merged


def test_numbers_of_different_values():
    """Of hashes that are uniform, the estimate is 4 standard deviations off once in 15,000."""
    rng = np.random.default_rng(0)
    for numbers, is_real in (
        (rng.normal(size=200_000), True),
        (np.round(rng.normal(size=200_000), 4), False),
        (np.where(rng.random(200_000) < 0.2, 0, rng.normal(size=200_000)), False),
    ):
        counts = added(np.array_split(numbers, 5), rng)
        expected = len(np.unique(numbers))
        assert counts.n_merged
        assert abs(counts.n_different / expected - 1) < 4 / np.sqrt(_counts.N_HASHES)
        assert counts.is_real == is_real


@pytest.mark.parametrize("seed", range(3))
def test_bins_of_counts_are_those_of_the_numbers(seed):
    rng = np.random.default_rng(seed)
    few = np.round(rng.lognormal(3, 1, 60_000), 1)  # of 1,600 to 1,800 different values
    counts = added(np.array_split(few, 7), rng)
    for found, expected in zip(
        Bins.learn(counts.values, counts.weights), Bins.learn(few), strict=True
    ):
        assert_array_equal(found, expected)
    many = np.where(rng.random(60_000) < 0.12, 1.5, rng.normal(size=60_000))
    many[rng.random(60_000) < 0.02] = np.nan
    counts = added(np.array_split(np.sort(many), 7), rng)
    assert counts.n_merged
    found, expected = Bins.learn(counts.values, counts.weights), Bins.learn(many)
    assert found.atoms.tolist() == expected.atoms.tolist() == [1.5]
    assert found.n_bins == expected.n_bins
    n = (~np.isnan(many)).sum()
    bound = 2 * (1 + np.log2(n / _counts.MOST)) / _counts.MOST
    edges = [bins.values[:, 0] for bins in (found, expected)]
    ranks = [np.searchsorted(np.sort(many[~np.isnan(many)]), edge) / n for edge in edges]
    # What is before a border, and the border of the share that a bin is to have.
    assert np.abs(ranks[0] - ranks[1]).max() <= 2 * bound + 1 / n
    assert_allclose(
        np.logaddexp.reduce(found.log_density(many[:1000])),
        np.logaddexp.reduce(expected.log_density(many[:1000])), rtol=0.02,
    )  # fmt: skip


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
    "reversed": lambda X, path: Batches(cut(X)[::-1]),
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


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_batches_of_a_table_give_what_the_table_gives(make, tmp_path):
    X, declared = people(), ["nominal", {"kids": "count", "city": ["Bern", "Oslo", "Rome"]}]
    few = X[["city", "kids", "member"]]
    tables = [(X, "auto"), *((few, columns) for columns in [*declared, {"kids": "ordinal"}])]
    k = list(SOURCES.values()).index(make)  # what is declared is the same for all sources
    for (X, columns), model in product([tables[0], tables[k % 4]], MODELS):
        model = clone(model).set_params(columns=columns)
        expected, model = clone(model).fit(X), model.fit(make(X, tmp_path))
        same_columns(model, expected)
        assert_allclose(model.score_samples(X), expected.score_samples(X), rtol=1e-6)
        found, sample = (m.sample(5, random_state=0) for m in (model, expected))
        if isinstance(found, pa.Table):
            found = found.to_pandas()
        assert found.columns.tolist() == sample.columns.tolist()
        for name in X:  # Parquet has units of its own
            assert found[name].dtype.kind == sample[name].dtype.kind


@pytest.mark.parametrize(
    ("make", "model"), list(zip(SOURCES.values(), 3 * MACHINES, strict=True)), ids=SOURCES
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


@pytest.mark.parametrize("kind", ["list", "dask"])
def test_labels_beside_batches_of_tables(kind, tmp_path):
    X = people()
    y = (X["city"] == "Rome").to_numpy().astype(int)
    model = RBMClassifier(3, max_iter=3, random_state=0, early_stopping=False)
    model.fit(SOURCES[kind](X, tmp_path), y)
    assert model.predict_proba(X).shape == (600, 2)
    assert model.columns_ == FSLLDensity().fit(X).columns_


def test_other_containers():
    X = people()
    expected = FSLLDensity().fit(X)
    frames = cut(pl.from_pandas(X))
    model = FSLLDensity().fit(Batches(frames))
    same_columns(model, expected)
    assert model.sample(3, random_state=0).schema == frames[0].schema
    objects = X.drop(columns="member").to_numpy(dtype=object)
    expected, model = FSLLDensity().fit(objects), FSLLDensity().fit(Batches(cut(objects)))
    assert_array_equal(model.theta_, expected.theta_)
    lists = [piece.tolist() for piece in cut(objects)]
    assert_array_equal(FSLLDensity().fit(Batches(lists)).theta_, expected.theta_)
    numbers = np.random.default_rng(0).normal(size=(500, 3))
    expected, model = FSLLDensity().fit(numbers), FSLLDensity().fit(Batches(cut(numbers)))
    assert model.columns_ == dict.fromkeys(range(3), "binned")
    assert_array_equal(model.theta_, expected.theta_)


def test_columns_that_change_from_batch_to_batch():
    """Gaps make floats of whole numbers, and each batch has categories of its own."""
    X = people()[["kids", "city"]].assign(empty=None)
    X["city"] = X["city"].fillna("none")
    whole = X.assign(kids=X["kids"].where(X.index >= 130), city=X["city"].astype("category"))
    batches = [
        whole[:130],
        *(piece.assign(city=piece["city"].astype("category")) for piece in cut(X[130:])),
    ]
    with pytest.warns(UserWarning, match="no row that counts has a value in column 'empty'"):
        model = FSLLDensity().fit(Batches(batches))
    with pytest.warns(UserWarning, match="no row that counts"):
        expected = FSLLDensity().fit(whole)
    same_columns(model, expected)
    assert_array_equal(model.theta_, expected.theta_)


def test_memory_is_flat(monkeypatch):
    """Eight times the batches take hardly more; all rows would be 4 MiB."""
    monkeypatch.setattr(_counts, "MOST", 256)
    X, peaks = people(2**13)[["city", "member"]], []

    def batches(n_batches):
        for k in range(n_batches):
            yield X.assign(pay=np.random.default_rng(k).normal(size=len(X)))

    for n_batches in (2, 4, 32):  # the first to warm up
        tracemalloc.start()
        FSLLDensity().fit(Batches(partial(batches, n_batches)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 2**20
