"""RBMs with categorical and Gaussian units in either layer, against sums over all states."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from private import (
    Layered,
    Stream,
    Workers,
    _conditional,
    all_states,
    annealed_importance_sampling,
    base_log_partition,
    check_normalisable,
    column_probabilities,
    coordinate_ascent,
    enumerated,
    exact_entropy,
    exact_free_energy,
    exact_log_partition,
    expectation_maximisation,
    impute,
    impute_by_chains,
    log_pseudo_likelihood,
    n_enumerated,
    nearest_state,
    reverse_importance_sampling,
    run_chains,
    temperature_ladder,
    tempered_samples,
)
from private import RBMModel as Model
from sklearn_boltz.units import Bernoulli, Categorical, Gaussian, Stacked, TruncatedGaussian


def units(kind, rng, dtype=np.float64):
    """A small layer: B three bits, C 3 and 2 states, G two Gaussians, M some of each."""

    def values(n):
        return rng.normal(0, 1, n).astype(dtype)

    return {
        "B": lambda: Bernoulli(values(3)),
        "C": lambda: Categorical([3, 2], values(5)),
        "CC": lambda: Categorical([1, 4, 2], values(7)),
        "G": lambda: Gaussian(values(2), np.array([1.5, 3.0], dtype)),
        "BC": lambda: Stacked([Bernoulli(values(2)), Categorical([3], values(3))]),
        "M": lambda: Stacked([
            Bernoulli(values(1)), Categorical([3], values(3)),
            Gaussian(values(1), np.array([2.0], dtype)),
        ]),
        "T": lambda: Stacked([
            TruncatedGaussian(values(1), values(1), -1.0, 2.0), Categorical([2], values(2))
        ]),
    }[kind]()  # fmt: skip


@functools.cache
def small_model(visible, hidden, scale=0.7, dtype=np.float64):
    rng = np.random.default_rng(0)
    visible, hidden = units(visible, rng, dtype), units(hidden, rng, dtype)
    weights = rng.normal(0, scale, (len(hidden), len(visible))).astype(dtype)
    return Model(weights, visible, hidden)


@functools.cache
def brute_of(*pair, **options):
    return Brute(small_model(*pair, **options).in_double())


CELL = 18 / 40  # of the quadrature of a Gaussian


def unit_points(layer):
    """Of each unit: rows of values and their log-weights, times those of a quadrature."""
    if isinstance(layer, Stacked):
        return [points for part in layer.layers for points in unit_points(part)]
    if isinstance(layer, Bernoulli):
        return [(np.array([[0.0], [1.0]]), np.array([0, u])) for u in layer.intercept]
    if isinstance(layer, Categorical):
        parts = np.split(layer.intercept, np.cumsum(layer.widths)[:-1])
        return [(np.eye(width), part) for width, part in zip(layer.widths, parts, strict=True)]
    if isinstance(layer, Gaussian):
        # The trapezoidal rule is exact for what is smooth and falls to 0.
        x = np.linspace(-9, 9, 41)
        measure = np.full(len(x), np.log(CELL))
    else:
        nodes, measure = np.polynomial.legendre.leggauss(20)
        low, high = layer.bounds
        x, measure = low + (high - low) * (nodes + 1) / 2, np.log(measure * (high - low) / 2)
    return [
        (x[:, np.newaxis], u * x - v * x * x / 2 + measure)
        for u, v in zip(layer.intercept, layer.precision, strict=True)
    ]


def all_points(layer):
    points = unit_points(layer)
    index = np.array(list(itertools.product(*(range(len(logs)) for _, logs in points))))
    rows = np.hstack([values[k] for (values, _), k in zip(points, index.T, strict=True)])
    return rows, sum(logs[k] for (_, logs), k in zip(points, index.T, strict=True))


class Brute:
    """The joint distribution at all points."""

    def __init__(self, model):
        self.V, visible = all_points(model.visible)
        H, hidden = all_points(model.hidden)
        logs = self.V @ model.weights.T @ H.T + visible[:, np.newaxis] + hidden
        self.log_Z, self.log_p = logsumexp(logs), logsumexp(logs, axis=1)
        self.log_p = self.log_p - self.log_Z
        self.p = np.exp(self.log_p)

    def given(self, known, observed):
        """The rows that have the observed values, and their probabilities."""
        here = np.isclose(self.V[:, observed], known[observed]).all(axis=1)
        return self.V[here], self.p[here] / self.p[here].sum()


ENUMERABLE = [("B", "C"), ("C", "B"), ("C", "CC"), ("CC", "BC"), ("BC", "G"), ("G", "B"),
              ("M", "C"), ("C", "M"), ("T", "C"), ("BC", "T")]  # fmt: skip
PAIRS = [*ENUMERABLE, ("M", "M"), ("G", "G"), ("M", "T")]


@pytest.mark.parametrize("pair", ENUMERABLE, ids="-".join)
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_exact_log_partition_and_free_energy(pair, dtype, rtol):
    model, brute = small_model(*pair, dtype=dtype), brute_of(*pair, dtype=dtype)
    assert exact_log_partition(model) == pytest.approx(brute.log_Z, rel=rtol, abs=rtol)
    transposed = exact_log_partition(model.transposed())
    assert transposed == pytest.approx(brute.log_Z, rel=rtol, abs=rtol)
    assert n_enumerated(model) < 5
    if model.visible.is_enumerable:
        V = all_states(model.visible)
        assert_array_equal(V, brute.V)
        assert_array_equal(enumerated(model.visible, 2, 4), V[2:4])
        log_p = -model.free_energy(V.astype(dtype)) - brute.log_Z
        assert_allclose(log_p, brute.log_p, rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_gaussians_in_both_layers(scale):
    """The precision matrix of all must be positive definite."""
    model = small_model("M", "G", scale)
    joint = np.diag([model.visible.layers[2].precision[0], *model.hidden.precision])
    joint[0, 1:] = joint[1:, 0] = -model.weights[:, -1]
    if np.linalg.eigvalsh(joint).min() > 0:
        check_normalisable(model)
        return
    with pytest.raises(ValueError, match="no distribution"):
        check_normalisable(model)
    with pytest.raises(ValueError, match="no distribution"), Workers(1) as workers:
        betas, base = temperature_ladder(2), model.visible.base()
        annealed_importance_sampling(model, base, betas, 10, Stream(0), workers)


def test_what_has_a_distribution():
    """Whatever the weights are, one layer of Gaussians has one."""
    for pair in [("M", "B"), ("C", "G"), ("G", "T")]:
        check_normalisable(small_model(*pair, scale=100.0))
    with pytest.raises(ValueError, match="finitely many values only.*'ais'"):
        exact_log_partition(small_model("M", "M", 0.1))
    big = Gaussian(np.zeros(3), np.array([1.0, 1.5, 2.0]))
    check_normalisable(Model(0.1 * np.eye(3), big, big))
    few = np.full((3, 3), 0.1)
    check_normalisable(Layered([few, 0.1 * np.eye(3)], [big, big, big]).sides())
    with pytest.raises(ValueError, match="no distribution"):
        check_normalisable(Layered([few, 3 * np.eye(3)], [big, big, big]).sides())


@pytest.mark.parametrize("pair", [("C", "B"), ("CC", "C"), ("BC", "M"), ("BC", "G")], ids="-".join)
def test_pseudo_likelihood_of_units(pair):
    """ln p(unit | others) from the table of all states, one term for each unit."""
    model, brute = small_model(*pair), brute_of(*pair)
    counts = [int(count) for count in model.visible.state_counts]
    table = brute.log_p.reshape(counts)
    expected = np.zeros(counts)
    for axis in range(len(counts)):
        expected += table - logsumexp(table, axis=axis, keepdims=True)
    got = log_pseudo_likelihood(model, brute.V)
    assert_allclose(got, expected.ravel(), rtol=1e-9)
    # Each unit once, in any order, is all of them; one of them is right in the mean.
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(len(counts)), (len(brute.V), 1)), axis=1)
    assert_allclose(log_pseudo_likelihood(model, brute.V, order), got)
    single = [log_pseudo_likelihood(model, brute.V, order[:, [k]]) for k in range(len(counts))]
    assert_allclose(np.mean(single, axis=0), got)
    # Shares are probabilities.
    column = model.visible.columns_of(len(counts) - 1)
    mixed = brute.V[:1].copy()
    mixed[0, column] = np.linspace(1, 2, column.stop - column.start)
    mixed[0, column] /= mixed[0, column].sum()
    assert np.isfinite(log_pseudo_likelihood(model, mixed)).all()
    with pytest.raises(ValueError, match="finitely many"):
        log_pseudo_likelihood(small_model("M", "B"), np.zeros((1, 5)))


# In these tests a false alarm is six standard deviations, 2e-9 each.


def base_of(model):
    rows = model.visible.sample(np.zeros((500, len(model.visible)), model.dtype), Stream(9))
    return model.visible.fitted_to(rows)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("n_temperatures", [1, 4])
def test_ais_is_unbiased(pair, n_temperatures):
    model, n = small_model(*pair, scale=0.4), 5000
    with Workers(1) as workers:
        estimate = annealed_importance_sampling(
            model, base_of(model), temperature_ladder(n_temperatures), n, Stream(0), workers
        )
    ratio = np.exp(estimate.log_weights - brute_of(*pair, scale=0.4).log_Z)
    assert abs(ratio.mean() - 1) < 6 * ratio.std() / np.sqrt(n)
    assert model.visible.contains(estimate.states).all()
    base = base_of(model)
    expected = base.log_partition(0.0).sum() + model.hidden.base().log_partition(0.0).sum()
    assert base_log_partition(model, base) == pytest.approx(expected)


def draws(model, brute, n, rng):
    """Samples of the model, but for the grid of Gaussian units: one transition mends that."""
    return brute.V[rng.choice(len(brute.p), size=n, p=brute.p)].astype(model.dtype)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_reverse_ais_is_unbiased(pair):
    model, brute, n = small_model(*pair, scale=0.4), brute_of(*pair, scale=0.4), 5000
    V = draws(model, brute, n, np.random.default_rng(1))
    with Workers(1) as workers:
        estimate = reverse_importance_sampling(
            model, base_of(model), temperature_ladder(5), V, Stream(1), workers
        )
    ratio = np.exp(estimate.log_weights + brute.log_Z)
    assert abs(ratio.mean() - 1) < 6 * ratio.std() / np.sqrt(n)
    assert estimate.value == pytest.approx(brute.log_Z, abs=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_chains_stay_in_the_distribution(pair, dtype):
    model, n = small_model(*pair, scale=0.4, dtype=dtype), 8000
    brute = brute_of(*pair, scale=0.4, dtype=dtype)
    V = draws(model, brute, n, np.random.default_rng(1))
    with Workers(1) as workers:
        tempered = tempered_samples(model, base_of(model), V, 3, 3, Stream(1), workers)
        run_chains(model, V, np.empty((n, len(model.hidden)), dtype), 2, Stream(0), workers)
    i, j = np.triu_indices(V.shape[1])
    products = brute.V[:, i] * brute.V[:, j]
    expected = brute.p @ products
    spread = np.sqrt(np.maximum(brute.p @ products**2 - expected**2, 0))
    for chains in (V, tempered):
        assert model.visible.contains(chains).all()
        error = (chains[:, i] * chains[:, j]).mean(axis=0, dtype=float) - expected
        assert (np.abs(error) <= 6 * spread / np.sqrt(n) + 1e-6).all()


def test_chains_do_not_depend_on_blocks_and_threads():
    rng = np.random.default_rng(0)
    widths = rng.integers(1, 6, 60)
    visible = Stacked([Categorical(widths), Gaussian.neutral(20)])
    model = Model(rng.normal(0, 0.1, (50, len(visible))), visible, Bernoulli(np.zeros(50)))
    results = []
    for n_jobs, n in [(1, 600), (2, 600), (1, 70)]:
        V = np.zeros((n, len(visible)))
        with Workers(n_jobs) as workers:
            run_chains(model, V, np.empty((n, 50)), 5, Stream(0), workers)
        results.append(V)
    assert_array_equal(results[0], results[1])
    # Other blocks multiply in another order.
    assert_allclose(results[0][:70], results[2], atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 2.0])
@pytest.mark.parametrize("pair", [("C", "B"), ("M", "C"), ("G", "BC"), ("M", "M")], ids="-".join)
def test_temperature(pair, beta):
    """p(v, h)^β: ratios of the free energies are those of the powers."""
    model = small_model(*pair, scale=0.4)
    V, visible = all_points(model.visible)
    H, hidden = all_points(model.hidden)
    cell = sum(np.log(CELL) for count in model.hidden.state_counts if np.isinf(count))
    logs = beta * (V @ model.weights.T @ H.T + hidden - cell)
    expected = logsumexp(logs, axis=1)[: len(V)] + beta * model.visible.log_weight(V)
    got = -model.tempered(beta).free_energy(V)
    near = expected > expected.max() - 30
    difference = (got - expected)[near]
    assert_allclose(difference, difference[0], atol=1e-8)


# Missing units.


def with_limits(monkeypatch, how):
    """Which way imputation goes."""
    limits = {"missing": (10, 12), "hidden": (-1, 12), "chains": (-1, -1)}[how]
    monkeypatch.setattr(_conditional, "IMPUTE_MISSING", limits[0])
    monkeypatch.setattr(_conditional, "IMPUTE_HIDDEN", limits[1])


def one_unit_known(model, brute):
    """A row of which all units but one are missing."""
    known = brute.V[np.argmax(brute.p)]
    observed = np.zeros(len(known), dtype=bool)
    observed[model.visible.columns_of(0)] = True
    row = np.where(observed, known, np.nan)
    return row, observed, *brute.given(known, observed)


WAYS = ["missing", "hidden", "chains"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("pair", [("C", "B"), ("CC", "C"), ("BC", "C"), ("B", "BC"), ("M", "C"),
                                  ("G", "C"), ("BC", "M"), ("M", "M")], ids="-".join)  # fmt: skip
def test_impute(pair, how, monkeypatch):
    scale = 0.4 if pair == ("M", "M") else 0.7
    model, brute = small_model(*pair, scale=scale), brute_of(*pair, scale=scale)
    n, rng = 500, np.random.default_rng(0)
    few = model.visible.is_enumerable if how == "missing" else model.hidden.is_enumerable
    if how != "chains" and not few:
        pytest.skip("this side has a continuum of values")
    with_limits(monkeypatch, how)
    row, observed, rows, p = one_unit_known(model, brute)
    V = np.tile(row, (n, 1))
    missing = np.isnan(V)
    mean = p @ rows
    spread = np.sqrt(np.maximum(p @ rows**2 - mean**2, 1e-12))
    if how == "chains":
        filled = impute(model, V, missing, "mean", 40, rng).mean(axis=0)
        assert (np.abs(filled - mean) < 6 * spread / np.sqrt(n))[~observed].all()
        states = impute_by_chains(model, V, missing, 5, Stream(0))[1]
        assert (states[:, observed] == row[observed]).all()
    else:
        filled = impute(model, V[:1], missing[:1], "mean", 40, rng)[0]
        assert_allclose(filled[~observed], mean[~observed], rtol=1e-6, atol=1e-9)
    filled = impute(model, V, missing, "sample", 40, rng)
    filled[:, observed] = row[observed]
    assert model.visible.contains(filled).all()
    assert (np.abs(filled.mean(axis=0) - mean) < 6 * spread / np.sqrt(n) + 1e-12).all()
    # The most probable state of what has states, and the mean of the rest given that.
    continuous = np.repeat(np.isinf(model.visible.state_counts), model.visible.widths)
    states, group = np.unique(rows[:, ~continuous], axis=0, return_inverse=True)
    best = np.bincount(group.ravel(), weights=p).argmax()
    here = group.ravel() == best
    rest = p[here] @ rows[here][:, continuous] / p[here].sum()
    found = impute(model, V[:1], missing[:1], "mode", 2000, rng)[0]
    chosen = ~continuous & ~observed
    if how != "chains" or not continuous.any():
        assert_array_equal(found[chosen], states[best][chosen[~continuous]])
    chosen = continuous & ~observed
    error = np.abs(found[chosen] - rest[chosen[continuous]])
    assert (error <= (0.5 if how == "chains" else 1e-6) * (1 + spread[chosen])).all()


def test_a_unit_is_missing_as_a_whole():
    model = small_model("C", "B")
    V = np.array([[np.nan, 0, 1, 1, 0.0]])
    with pytest.raises(ValueError, match="Columns 0 to 2 are the states of one unit"):
        impute(model, V, np.isnan(V), "mean", 1, np.random.default_rng(0))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("pair", [("C", "B"), ("CC", "BC"), ("M", "C")], ids="-".join)
def test_probabilities_of_a_unit(pair, how, monkeypatch):
    model, brute, rng = small_model(*pair), brute_of(*pair), np.random.default_rng(0)
    if how == "missing" and not model.visible.is_enumerable:
        pytest.skip("the visible side has a continuum of values")
    with_limits(monkeypatch, how)
    layer, known = model.visible, brute.V[np.argmax(brute.p)]
    with_states = [unit for unit, states in enumerate(layer.unit_states()) if states is not None]
    for unit, alone in itertools.product(with_states, (True, False)):
        missing = np.zeros(len(known), dtype=bool)
        missing[layer.columns_of(unit)] = True
        if not alone:
            missing[layer.columns_of((unit + 1) % layer.n_units)] = True
        rows, p = brute.given(known, ~missing)
        own = rows[:, layer.columns_of(unit)]
        expected = [p[(own == s).all(axis=1)].sum() for s in layer.unit_states()[unit][0]]
        V = np.tile(np.where(missing, np.nan, known), (40, 1))
        found = column_probabilities(model, V, np.tile(missing, (40, 1)), unit, layer, 400, rng)
        if alone or how != "chains":
            assert_allclose(found[0], expected, atol=1e-9)
        else:
            assert_allclose(found.mean(axis=0), expected, atol=0.05)


def test_ascents_end_at_states_that_no_unit_can_better():
    rng = np.random.default_rng(0)
    visible = Stacked([Categorical([3, 4, 2], rng.normal(size=9)), Bernoulli(rng.normal(size=3)),
                       Gaussian.neutral(1)])  # fmt: skip
    model = Model(rng.normal(size=(4, 13)), visible, Bernoulli(rng.normal(size=4)))
    V = visible.sample(np.zeros((20, 13)), Stream(0))
    missing = np.ones(V.shape, dtype=bool)
    missing[:, 3:7] = False
    ends = coordinate_ascent(model, V, missing)
    assert visible.contains(ends).all()
    assert_array_equal(ends[:, ~missing[0]], V[:, ~missing[0]])
    assert_array_equal(ends[:, 12], V[:, 12])
    energy = model.free_energy(ends)
    assert (energy <= model.free_energy(V)).all() and (energy < model.free_energy(V)).any()
    for unit in [0, 2, 3, 4, 5]:
        for state in visible.unit_states()[unit][0]:
            other = ends.copy()
            other[:, visible.columns_of(unit)] = state
            assert (model.free_energy(other) >= energy - 2e-5).all()

    def mean_field(rows):
        return model.visible_field(model.mean_hidden(rows))

    found = expectation_maximisation(visible, mean_field, V, missing)
    assert visible.contains(found).all()
    assert (model.free_energy(found) <= model.free_energy(V) + 1e-9).all()
    means = visible.mean(rng.normal(size=(5, 13)))
    nearest = nearest_state(visible, means)
    assert visible.contains(nearest).all()
    assert_array_equal(nearest[:, :3].argmax(axis=1), means[:, :3].argmax(axis=1))


# Several layers.


DEEP = [("C", "B", "C"), ("BC", "C", "B"), ("M", "C", "B"), ("C", "CC", "G")]


@pytest.mark.parametrize("kinds", DEEP, ids="-".join)
def test_deep_models(kinds):
    rng = np.random.default_rng(0)
    layers = [units(kind, rng) for kind in kinds]
    weights = [
        rng.normal(0, 0.4, (len(above), len(below))) for below, above in itertools.pairwise(layers)
    ]
    layered = Layered(weights, layers)
    (V, visible), (H, first), (G, second) = map(all_points, layers)
    logs = (V @ weights[0].T @ H.T + visible[:, np.newaxis])[:, :, np.newaxis]
    logs = logs + first[:, np.newaxis] + (H @ weights[1].T @ G.T + second)
    model = layered.sides()
    assert exact_log_partition(model) == pytest.approx(logsumexp(logs), rel=1e-9)
    if kinds[0] != "M":
        free_energy = exact_free_energy(layered, V)
        assert_allclose(-free_energy, logsumexp(logs, axis=(1, 2)), rtol=1e-9)
        if kinds[2] != "G":
            log_p = logsumexp(logs, axis=(1, 2)) - logsumexp(logs)
            assert exact_entropy(layered) == pytest.approx(-np.exp(log_p) @ log_p)
