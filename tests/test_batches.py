"""Rows that come in batches give what the same rows in memory give."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from contract.frames import memory_map
from contract.state import parameters
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from rounding import within
from sklearn.base import clone

from private import _batches, network_rows
from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, statistics
from sklearn_boltz.batches import Batches


def make_rows(n_rows=900, n_features=8):
    """Bits of which the second half mostly repeats the first."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(n_rows, n_features)).astype(np.uint8)
    half = n_features // 2
    X[:, half : 2 * half] ^= (
        X[:, half : 2 * half] ^ X[:, :half] ^ (rng.random((n_rows, half)) < 0.2)
    )
    return X


def pieces_of(X, step=130):
    return [X[start : start + step] for start in range(0, len(X), step)]


SOURCES = {
    "map": memory_map,
    "small batches": lambda X, path: Batches(memory_map(X, path), batch_rows=77),
    "list": lambda X, path: Batches(pieces_of(X)),
    "callable": lambda X, path: Batches(lambda: iter(pieces_of(X))),
    "ones first": lambda X, path: Batches([X[X.all(axis=1)], X[~X.all(axis=1)]]),
    "with empty ones": lambda X, path: Batches([X[:0], *pieces_of(X), X[:0]]),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_models_of_distinct_rows_have_the_same_bits(make, tmp_path, monkeypatch):
    monkeypatch.setattr(network_rows, "MOST_ENTRIES", 2**11)  # as many as there can be
    X = make_rows()
    expected, model = FSLLDensity().fit(X), FSLLDensity().fit(make(X, tmp_path))
    assert_array_equal(model.basis_, expected.basis_)
    assert_array_equal(model.theta_, expected.theta_)
    assert model.cost_ == expected.cost_ and model.n_features_in_ == X.shape[1]
    assert model.sample(2, random_state=0).dtype == X.dtype
    expected = FVBMPseudoLikelihood().fit(X)
    model = FVBMPseudoLikelihood().fit(make(X, tmp_path))
    assert_array_equal(model.coupling_, expected.coupling_)
    assert_array_equal(model.intercept_, expected.intercept_)


def test_of_too_many_distinct_rows_a_random_part_is_kept(monkeypatch):
    """In any order of the batches; so that each row has the same chance, and none counts twice."""
    monkeypatch.setattr(network_rows, "MOST_KEPT", 1200)
    X = np.random.default_rng(0).integers(3, size=(1000, 5))
    X[:, 4] = np.arange(1000) // 100
    parts, models = np.array_split(X.astype(float), 7), []
    model = FVBMPseudoLikelihood(alpha=1.0, columns=[range(3)] * 4 + [range(10)])
    for order in (parts, parts[::-1]):
        with pytest.warns(UserWarning, match=r"uses \d+ of the 1,000 rows, drawn at random"):
            models.append(clone(model).fit(Batches(order)))
    rows, counts = models[0]._seen
    assert_array_equal(models[1]._seen[0], rows)
    assert_array_equal(models[1]._seen[1], counts)
    distinct = np.unique(X, axis=0, return_counts=True)
    of_all = {tuple(row): count for row, count in zip(*distinct, strict=True)}
    assert all(count <= of_all[tuple(row)] for row, count in zip(rows, counts, strict=True))
    n_kept = counts.sum()
    assert 100 <= n_kept <= 240  # 1,200 cells of 6 numbers
    found = np.bincount(rows[:, 4], counts, 10)
    # χ² with 9 degrees of freedom: a false alarm once in 10,000.
    assert ((found - n_kept / 10) ** 2 / (n_kept / 10)).sum() < 33.7


@pytest.mark.parametrize(("solver", "alpha"), [("newton", 0.0), ("lbfgs", 0.005)])
def test_fvbm_by_passes_over_the_batches(monkeypatch, solver, alpha):
    monkeypatch.setattr(network_rows, "MOST_ENTRIES", 8)  # no rows are kept
    X = make_rows()
    X[:, 6] = 1
    expected = FVBMPseudoLikelihood(solver=solver, alpha=alpha, tol=1e-9).fit(X)
    model = clone(expected).fit(Batches(X, batch_rows=200))
    # L-BFGS may end an iteration earlier.
    tol = 1e-11 if solver == "newton" else within(tol=1e-9)
    assert_allclose(model.coupling_, expected.coupling_, atol=tol)
    assert_allclose(model.intercept_, expected.intercept_, atol=tol)
    assert_allclose(
        model.history_["log_pseudo_likelihood"][[0, -1]],
        expected.history_["log_pseudo_likelihood"][[0, -1]], rtol=1e-12, atol=1e-4,
    )  # fmt: skip
    assert model.converged_
    assert_allclose(statistics.aic(model, X), statistics.aic(expected, X), rtol=1e-5)


RBMS = [
    kind(5, max_iter=2, random_state=0, **options)
    for kind, options in [
        (SDCPRBM, {}),
        (SDCPRBM, {"early_stopping": True, "batch_size": 64}),
        (TAPRBM, {}),
        (TAPRBM, {"early_stopping": True}),
    ]
]
# Two epochs are few.
SHORT = pytest.mark.filterwarnings("ignore:.*still rising")


@SHORT
@pytest.mark.parametrize("estimator", RBMS, ids=lambda m: type(m).__name__)
def test_rbms_have_the_same_bits_on_a_memory_map(estimator, tmp_path):
    X = make_rows(400)
    expected, model = clone(estimator).fit(X), clone(estimator).fit(memory_map(X, tmp_path))
    assert_array_equal(parameters(model), parameters(expected))
    for name in set(expected.history_) - {"seconds"}:
        assert_array_equal(model.history_[name], expected.history_[name])
    expected.set_params(warm_start=True).fit(X)
    model.set_params(warm_start=True).fit(memory_map(X, tmp_path))
    assert_array_equal(parameters(model), parameters(expected))


def test_a_batch_that_earlier_passes_did_not_have():
    pieces, passes = pieces_of(make_rows(60), 20), iter([2, 2, 2, 3])
    with pytest.raises(ValueError, match="Batch 2 had 0 rows in an earlier pass and now has 20"):
        SDCPRBM(3, max_iter=1).fit(Batches(lambda: pieces[: next(passes)]))


@SHORT
@pytest.mark.parametrize("estimator", RBMS, ids=lambda m: type(m).__name__)
def test_rbms_on_batches_do_not_depend_on_the_source(estimator, tmp_path):
    X = make_rows(400)
    expected = parameters(clone(estimator).fit(Batches(pieces_of(X, 130))))
    model = clone(estimator).fit(Batches(memory_map(X, tmp_path), batch_rows=130))
    assert_array_equal(parameters(model), expected)
    model = clone(estimator).fit(Batches(sp.csr_matrix(X.astype(np.float32)), batch_rows=130))
    assert_allclose(parameters(model), expected, rtol=0, atol=1e-6)


def test_empty_batches_may_lie_anywhere():
    X, model = make_rows(60), SDCPRBM(3, max_iter=2, random_state=0)
    fits = (clone(model).fit(Batches(parts)) for parts in ([X, X[:0]], [X[:0], X]))
    assert_array_equal(*map(parameters, fits))


@given(n_rows=st.integers(1, 30), batch_rows=st.integers(1, 9), k=st.integers(-40, 40))
def test_numbers_of_batches(n_rows, batch_rows, k):
    X = np.arange(n_rows)[:, np.newaxis]
    for batches in (Batches(X, batch_rows=batch_rows), Batches(pieces_of(X, batch_rows))):
        assert batches.n_batches == len(range(0, n_rows, batch_rows))
        if 0 <= k < batches.n_batches:
            rows = X[k * batch_rows : (k + 1) * batch_rows]
            assert_array_equal(batches.batch(k), rows)
        else:
            with pytest.raises(IndexError):
                batches.batch(k)


@pytest.mark.parametrize(
    "model",
    [
        FSLLDensity(),
        FVBMPseudoLikelihood(),
        SDCPRBM(2, max_iter=1, n_inner=1, n_gibbs=1, batch_size=2**13),
    ],
)
def test_memory_is_flat(model, tmp_path):
    """Four times the rows take hardly more; a float32 copy of the last would be 8 MiB."""
    peaks = []
    for n_rows in (2**13, 2**16, 2**18):  # the first to warm up
        X = memory_map(np.resize(make_rows(2**10), (n_rows, 8)), tmp_path)
        tracemalloc.start()
        clone(model).fit(Batches(X, batch_rows=2**13))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 2**18


@given(
    lengths=st.lists(st.integers(0, 40), max_size=6),
    n_lanes=st.integers(1, 5),
    batch_size=st.integers(1, 30),
    seed=st.integers(0, 10),
)
def test_mini_batches_have_each_row_once(lengths, n_lanes, batch_size, seed):
    blocks = [(k, np.arange(n)) for k, n in enumerate(lengths)]
    batches = list(
        _batches.mini_batches(iter(blocks), n_lanes, batch_size, np.random.default_rng(seed))
    )
    found = sorted((k, row) for pieces in batches for _, k, rows in pieces for row in rows)
    assert found == [(k, row) for k, n in enumerate(lengths) for row in range(n)]
    sizes = [sum(len(rows) for _, _, rows in pieces) for pieces in batches]
    assert all(size == batch_size for size in sizes[:-1])
    if len(sizes) > 1:
        assert (batch_size + 1) // 2 <= sizes[-1] < batch_size + (batch_size + 1) // 2
    for pieces in batches:
        assert all(0 <= lane < n_lanes for lane, _, _ in pieces)
