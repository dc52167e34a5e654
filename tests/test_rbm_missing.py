"""Missing cells in restricted Boltzmann machines: in `fit`, and after it."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from contract.frames import memory_map
from contract.state import assert_goes_on, parameters
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from sklearn.base import clone

from oracles import assert_drawn
from oracles_rbm import binary, law_of
from private import RBMModel, _completions, _gaps, _observed, divided, independent_log_likelihood
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz.batches import Batches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# What is drawn may be off by this many standard errors: a false alarm in 1.7 million figures.
SIGMAS = 5
ESTIMATORS = [
    SDCPRBM(4, max_iter=3, batch_size=20, random_state=0),
    SDCPRBM(4, max_iter=3, batch_size=20, chains="persistent", n_inner=1, random_state=0),
    TAPRBM(4, max_iter=3, batch_size=20, random_state=0),
    TAPRBM(4, max_iter=3, batch_size=20, persistent=True, random_state=0),
    TAPDBM((4, 3), max_iter=2, pretrain_max_iter=2, batch_size=20, random_state=0),
    InfiniteRBM(3, n_model_samples=200, n_corrective=5, random_state=0),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def with_gaps(rows, units, rng, share=0.5):
    """Rows in which some units are missing, at least one in each row but the first."""
    missing = rng.random((len(rows), units.n_units)) < share
    missing[np.arange(len(rows)), rng.integers(units.n_units, size=len(rows))] = True
    rows, missing[0] = np.array(rows, dtype=np.float64), False
    rows[_observed.spread_over_columns(units, missing)] = np.nan
    return rows


class Machine(NamedTuple):
    """A small machine, rows with gaps, all its states and their log-weights."""

    model: RBMModel
    V: np.ndarray
    rows: np.ndarray
    log_weights: np.ndarray

    def completions(self, v):
        """Numbers of the rows that agree with the observed cells of a row, ln of their sum, law."""
        agree = np.flatnonzero(((self.rows == v) | np.isnan(v)).all(axis=1))
        total = logsumexp(self.log_weights[agree])
        return agree, total, np.exp(self.log_weights[agree] - total)

    def log_sums(self, V):
        return np.array([self.completions(v)[1] for v in V])


@pytest.fixture(params=[("BB", "C"), ("CC", "B"), ("BC", "C")], ids="-".join)
def machine(request):
    law, rng = law_of(*request.param, 1.0), np.random.default_rng(3)
    V = with_gaps(law.V[rng.integers(len(law.V), size=25)], law.model.visible, rng)
    return Machine(law.model, V, law.V, law.log_Z + law.log_p)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(120, 6)).astype(np.float64)
    X[:, 1] = np.where(rng.random(120) < 0.1, 1 - X[:, 0], X[:, 0])
    X[:, 4] = np.where(rng.random(120) < 0.1, 1 - X[:, 3], X[:, 3])
    return X


@pytest.fixture(scope="module")
def gaps(X):
    return np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)


# What follows from a row, against sums over all completions.


@pytest.mark.parametrize("route", ["as it is", "hidden", "missing"])
def test_sums_over_completions(machine, route, monkeypatch, workers):
    model, V, rows, log_weights = machine
    if route == "hidden":
        monkeypatch.setattr(_observed, "EXACT_MISSING", 0)
    if route != "as it is":
        n_bits = 0.0 if route == "hidden" else np.inf
        monkeypatch.setattr(_observed, "n_bits", lambda units: n_bits)
    found = _observed.free_energy(model, model.visible.base(), V, 0, workers)
    means = _completions.mean_hidden(model, model.visible.base(), V, 0, workers)
    pseudo = _completions.log_pseudo_likelihood(model, model.visible.base(), V, 0, workers)
    assert_allclose(-found, machine.log_sums(V), atol=1e-10)
    hidden, of_visible = model.mean_hidden(rows), model.visible.log_weight(rows)
    independent = [independent_log_likelihood(model.visible, v[np.newaxis]) for v in V]
    for v, mean, log_p, value in zip(V, means, independent, pseudo, strict=True):
        agree, total, p = machine.completions(v)
        assert_allclose(mean, p @ hidden[agree], atol=1e-10)
        expected = logsumexp(of_visible[agree]) - logsumexp(of_visible)
        assert log_p == pytest.approx(expected, abs=1e-10)
        for unit in np.flatnonzero(~_observed.missing_units(model.visible, np.isnan(v))):
            other = v.copy()
            other[model.visible.columns_of(unit)] = np.nan
            value -= total - machine.completions(other)[1]
        assert value == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("machine", [("BC", "C")], indirect=True)
def test_annealing_of_missing_cells_is_unbiased(machine, monkeypatch, workers):
    """The mean of exp(−F) is right, and single figures are good."""
    monkeypatch.setattr(_observed, "EXACT_SUM", -1)
    model, V = machine.model, machine.V[1:13]
    expected = machine.log_sums(V)
    errors = np.array([
        expected + _observed.free_energy(model, model.visible.base(), V, seed, workers)
        for seed in range(3)
    ])  # fmt: skip
    assert np.abs(errors).max() < 0.4
    ratios = np.exp(-errors).ravel()
    assert abs(ratios.mean() - 1) < SIGMAS * ratios.std() / np.sqrt(len(ratios))


def test_the_figures_of_a_fit_are_of_observed_cells():
    """All of them if the columns are few."""
    X = np.random.default_rng(0).integers(2, size=(200, 20)).astype(float)
    X[:, 1] = X[:, 0]
    model = SDCPRBM(2, max_iter=3, random_state=0).fit(X[:, :10])
    found = model.history_["log_pseudo_likelihood"][-1]
    assert found == pytest.approx(model.log_pseudo_likelihood(X[:, :10]).mean())
    X[np.random.default_rng(1).random(X.shape) < 0.4] = np.nan
    model = SDCPRBM(2, learning_rate=1e-9, max_iter=1, random_state=0).fit(X)
    found = model.history_["log_pseudo_likelihood"][-1]
    assert found == pytest.approx(-np.log(2) * (~np.isnan(X)).sum() / len(X), rel=0.03)


def test_as_many_bits_as_the_limit_are_summed_out(monkeypatch):
    rng = np.random.default_rng(0)
    model = SDCPRBM(4, max_iter=1, random_state=0).fit(rng.integers(2, size=(20, 6)))
    model.components_, V = rng.normal(size=(4, 6)), np.array([[1, 0, 1, *[np.nan] * 3]])
    expected = model.free_energy(V)
    for most, is_exact in ((3, True), (2, False)):
        monkeypatch.setattr(_observed, "EXACT_SUM", most)
        assert (model.free_energy(V) == expected) == is_exact


def test_a_row_does_not_depend_on_others(monkeypatch):
    for name in ("EXACT_SUM", "EXACT_MISSING", "EXACT_HIDDEN"):
        monkeypatch.setattr(_observed, name, -1)
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(10, 8)).astype(np.float32)
    model = SDCPRBM(5, max_iter=3, random_state=0).fit(X)
    V = with_gaps(X, model._model().visible, rng).astype(np.float32)
    order = rng.permutation(10)
    for method in (model.score_samples, model.transform, model.log_pseudo_likelihood):
        together = method(V)
        assert_array_equal(method(V), together)
        assert_array_equal(method(V[order]), together[order])
        assert_array_equal(method(V[7:8]), together[7:8])
    assert np.isfinite(model.score_samples(V)).all()


@pytest.mark.parametrize("estimator", [ESTIMATORS[k] for k in (0, 2, 5)], ids=repr)
def test_scores_of_incomplete_rows(estimator, gaps):
    """They are log-probabilities of what is observed: sums over all completions."""
    model = clone(estimator).fit(gaps)
    rows = binary(6)
    log_p = model.score_samples(rows)
    assert logsumexp(log_p) == pytest.approx(0, abs=1e-5)
    exactly = Machine(model, gaps, rows, log_p)
    assert_allclose(model.score_samples(gaps), exactly.log_sums(gaps), atol=1e-5)
    nothing = np.full((2, 6), np.nan)
    assert_array_equal(model.score_samples(nothing), 0)
    assert_array_equal(model.free_energy(nothing), -model.log_partition_)
    mixed = np.vstack([gaps[:3], nothing, rows[:2]])
    assert model.score_samples(mixed)[3:5].tolist() == [0, 0]
    assert model.transform(mixed).shape == (7, len(model.components_))
    # A complete row in company has the figures that it has alone.
    assert_array_equal(model.score_samples(mixed)[5:], model.score_samples(rows[:2]))
    assert np.isfinite(model.log_pseudo_likelihood(mixed)).all()


def test_scores_of_real_columns():
    """Densities are on the scale of the table, also where a continuous column is summed out."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=300)
    X = np.column_stack([z, 100 * z + 10 * rng.normal(size=300), rng.integers(2, size=300)])
    model = SDCPRBM(3, columns={1: "gaussian"}, max_iter=20, batch_size=20, random_state=0).fit(X)
    grid = np.linspace(-500, 600, 4001)
    for bit in (0, 1):
        rows = np.column_stack([np.full(4001, bit), grid, np.full(4001, 1.0)])
        expected = np.log(trapezoid(np.exp(model.score_samples(rows)), grid))
        row = np.array([[bit, np.nan, 1.0]])
        assert model.score_samples(row)[0] == pytest.approx(expected, abs=1e-4)
    assert np.exp(model.score_samples([[0, np.nan, np.nan], [1, np.nan, np.nan]])).sum() == (
        pytest.approx(1, abs=1e-5)
    )


# The positive phase.


def test_the_gradient_is_that_of_what_is_observed(machine, workers):
    """Mean of many visits, which go on from kept values, against the sum over completions."""
    model, V, rows, _ = machine
    hidden = model.mean_hidden(rows)
    laws = [machine.completions(v) for v in V]
    expected = sum((p[:, np.newaxis] * hidden[agree]).T @ rows[agree] for agree, _, p in laws)
    kept, found = _gaps.KeptValues.of(V, np.float64), []
    batch = _gaps.MiniBatch(V, kept, np.arange(len(V)))
    for seed in range(800):
        filled = batch.completed(model, seed, workers)
        assert_array_equal(filled[~np.isnan(V)], V[~np.isnan(V)])
        found.append(model.mean_hidden(filled).T @ filled)
    # Visits depend on those before; blocks of 40 hardly do.
    blocks = np.array(found).reshape(20, 40, *expected.shape).mean(axis=1)
    error = blocks.std(axis=0, ddof=1) / np.sqrt(20)
    # Of 20 blocks, Student's t goes further than a normal number.
    assert (np.abs(blocks.mean(axis=0) - expected) < 8 * error + 1e-8).all()


def test_codes_of_missing_cells_are_kept_as_their_numbers_are(workers):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 60), "x": rng.normal(9, 4, 60)})
    X["b"] = rng.integers(2, size=60)
    X = X.mask(rng.random(X.shape) < 0.3)
    model = SDCPRBM(3, columns={"x": "gaussian"}, max_iter=2, random_state=0).fit(X)
    rows, found = model._validated(X, allow_nan=True, lazily=True), []
    for source, missing in (
        (rows, X.isna().to_numpy()),
        (rows.toarray(), np.isnan(rows.toarray())),
    ):
        kept = _gaps.KeptValues.of(source, np.float64)
        batch = _gaps.MiniBatch(rows.toarray(), kept, np.arange(60))
        found.append([batch.completed(model._model(), seed, workers) for seed in range(3)])
        assert kept.values.size == missing.sum()
    assert_array_equal(*found)


# Fits.


@every_estimator
def test_rows_without_a_cell_are_left_out(estimator, gaps):
    empty = np.insert(gaps, [3, 50], np.nan, axis=0)
    expected = parameters(clone(estimator).fit(gaps))
    assert_array_equal(parameters(clone(estimator).fit(empty)), expected)
    weights = np.where(np.isnan(empty).all(axis=1), 1e3, 1.0)
    found = clone(estimator).fit(empty, sample_weight=weights)
    assert_array_equal(parameters(found), expected)


@pytest.mark.parametrize(
    "estimator", [ESTIMATORS[1], ESTIMATORS[4]], ids=lambda e: type(e).__name__
)
def test_warm_start_goes_on_with_the_same_values(estimator, gaps):
    assert_goes_on(estimator, gaps)
    parts = clone(estimator).set_params(warm_start=True).fit(gaps)
    # Other cells are missing: nothing goes on.
    assert np.isfinite(parameters(parts.fit(gaps[::-1]))).all()
    # Nor from one call of partial_fit to the next.
    for rows in (gaps[:50], gaps[:40], gaps[40:80], gaps[:5] * [np.nan, 1, 1, 1, 1, 1]):
        parts.partial_fit(rows)
    assert np.isfinite(parts.score(gaps))


@pytest.mark.parametrize(
    ("estimator", "table", "weighted"),
    [(ESTIMATORS[0], "gaps", False), (ESTIMATORS[2], "X", True), (ESTIMATORS[5], "gaps", False)],
)
def test_early_stopping_watches_what_is_observed(estimator, table, weighted, request):
    rows = request.getfixturevalue(table)
    weights = np.random.default_rng(0).random(120) + 0.1 if weighted else None
    model = clone(estimator).set_params(early_stopping=0.3).fit(rows, sample_weight=weights)
    assert all(np.isfinite(values).all() for values in model.history_.values())
    _, valid = divided(120, 0.3, model._training.evaluation_seed)
    if table == "gaps" and isinstance(model, TAPRBM):
        return  # free energies of rows with gaps are approximations
    expected = model.score(rows[valid], sample_weight=weights[valid] if weighted else None)
    off = np.abs(model.history_["validation_log_likelihood"] - expected).min()
    assert off < (1e-4 if table == "gaps" else 1e-5)


def test_transitions_keep_the_distribution_of_missing_cells(machine, workers):
    model, V, rows, _ = machine
    rng, n = np.random.default_rng(0), 5000
    v = max(V[1:], key=lambda v: len(machine.completions(v)[0]) * np.isfinite(v).any())
    agree, _, p = machine.completions(v)
    start = rows[rng.choice(agree, size=n, p=p)]
    ends = _gaps.complete(model, start, np.tile(np.isnan(v), (n, 1)), 1, workers)
    assert (ends == start).all(axis=1).mean() < 0.9
    assert_drawn(ends, rows[agree], p)
    assert_array_equal(_gaps.complete(model, start, np.zeros(start.shape, bool), 1, workers), start)


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[2]], ids=repr)
def test_batches_with_gaps(estimator, gaps, tmp_path, monkeypatch):
    gaps = np.insert(gaps, 7, np.nan, axis=0)
    in_memory = clone(estimator).fit(gaps)
    monkeypatch.setattr("sklearn_boltz.tables._batches.BATCH_ENTRIES", gaps.size - 1)
    mapped = clone(estimator).fit(memory_map(gaps, tmp_path))
    assert mapped._training.kept.values.size == np.isnan(gaps).sum()
    assert_allclose(mapped.score(gaps), in_memory.score(gaps), atol=0.1)
    batches = Batches([gaps[:70], gaps[70:]])
    for options, weights in [
        ({}, None), ({"early_stopping": True}, None), ({}, np.arange(121)),
    ]:  # fmt: skip
        model = clone(estimator).set_params(**options).fit(batches, sample_weight=weights)
        assert np.isfinite(model.score(gaps))
