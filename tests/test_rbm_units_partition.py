"""Log-partition, chains and imputation of RBMs of any units, against quadrature."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from private import RBMModel as Model
from private import (
    Stream,
    Workers,
    all_states,
    annealed_importance_sampling,
    base_log_partition,
    enumerated,
    exact_log_partition,
    impute,
    impute_by_chains,
    n_enumerated,
    reverse_importance_sampling,
    run_chains,
    temperature_ladder,
    tempered_samples,
)
from sklearn_boltz.units import Bernoulli, TruncatedGaussBernoulli, TruncatedGaussian, UnitType

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def points_of(units):
    """Values of a unit and the logarithms of their weights, shape (n_units, n_points)."""
    if isinstance(units, Bernoulli):
        return np.array([0.0, 1.0]), np.outer(units.intercept, [0, 1])
    low, high = units.bounds
    x = low + (high - low) * (NODES + 1) / 2
    logs = np.outer(units.intercept, x) - np.outer(units.precision, x * x) / 2
    logs += np.log(WEIGHTS * (high - low) / 2)
    if type(units) is TruncatedGaussian:
        return x, logs
    logs += np.log(units.rho)[:, np.newaxis] - logsumexp(logs, axis=1, keepdims=True)
    return np.append(x, 0.0), np.column_stack([logs, np.log1p(-units.rho)])


def all_points(units):
    x, logs = points_of(units)
    index = np.array(list(itertools.product(range(len(x)), repeat=len(units))))
    return x[index], logs[np.arange(len(units)), index].sum(axis=1)


class Brute:
    """The joint law on a grid of quadrature points."""

    def __init__(self, model):
        self.V, visible = all_points(model.visible)
        H, hidden = all_points(model.hidden)
        logs = self.V @ model.weights.T @ H.T + visible[:, np.newaxis] + hidden
        self.log_Z = logsumexp(logs)
        self.p = np.exp(logsumexp(logs, axis=1) - self.log_Z)


def units(kind, n, rng):
    U, V, rho = rng.normal(0, 1, n), rng.normal(0, 3, n), rng.uniform(0.3, 0.8, n)
    if kind == "B":
        return Bernoulli(U)
    if kind == "TG":
        return TruncatedGaussian(U, V, -1.0, 1.5)
    return TruncatedGaussBernoulli(rho, U, V, -1.0, 1.5)


PAIRS = [("TG", "B"), ("TGB", "B"), ("TG", "TG"), ("B", "TG"), ("B", "TGB"), ("TGB", "TG")]


def small_model(visible, hidden, scale=1.0):
    rng = np.random.default_rng(0)
    weights = rng.normal(0, scale, (2, 2))
    return Model(weights, units(visible, 2, rng), units(hidden, 2, rng))


def base_of(model):
    return model.visible.from_data(
        model.visible.sample(np.zeros((500, len(model.visible))), Stream(9)), **options(model)
    )


def options(model):
    visible = model.visible
    return {} if isinstance(visible, Bernoulli) else {"low": visible.low, "high": visible.high}


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if "B" in pair] + [("B", "B")])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-11), (np.float32, 1e-6)])
def test_exact_log_partition(pair, dtype, rtol):
    model = small_model(*pair)
    exact = Brute(model).log_Z
    model = Model(model.weights.astype(dtype), model.visible.astype(dtype),
                  model.hidden.astype(dtype))  # fmt: skip
    assert exact_log_partition(model) == pytest.approx(exact, rel=rtol, abs=rtol)
    assert n_enumerated(model) == 2


def test_what_cannot_be_enumerated():
    model = small_model("TG", "TGB")
    assert n_enumerated(model) == np.inf
    with pytest.raises(ValueError, match="finitely many values.*'ais'"):
        exact_log_partition(model)
    many = Model(np.zeros((27, 2)), model.visible, Bernoulli(np.zeros(27)))
    with pytest.raises(ValueError, match="27 bits.*'ais'"):
        exact_log_partition(many)


class Spin(UnitType):
    """A law of one's own: three values, and nothing that training needs."""

    def __init__(self, intercept):
        self.intercept = intercept

    def parameters(self):
        return {"intercept": self.intercept}

    def states(self):
        return np.array([-1.0, 0.0, 1.0])

    def log_weight(self, X):
        return X @ self.intercept

    def log_partition(self, field, precision=0.0):
        b = self.intercept + np.asarray(field)
        return np.log1p(2 * np.cosh(b) * np.exp(-0.5 * precision))


def test_units_of_three_values():
    rng = np.random.default_rng(0)
    spins, other = Spin(rng.normal(size=4)), units("TG", 3, rng)
    rows = all_states(spins)
    assert rows.tolist() == [list(row) for row in itertools.product([-1, 0, 1], repeat=4)]
    np.testing.assert_array_equal(enumerated(spins, 10, 20), rows[10:20])
    model = Model(rng.normal(size=(4, 3)), other, spins)
    by_hand = logsumexp(
        spins.log_weight(rows) + other.log_partition(rows @ model.weights).sum(axis=1)
    )
    assert exact_log_partition(model) == pytest.approx(by_hand)
    assert n_enumerated(model) == pytest.approx(4 * np.log2(3))


# In these tests a false alarm is five standard deviations: 6e-7 each.


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("n_temperatures", [1, 4])
def test_ais_is_unbiased(pair, n_temperatures):
    model, n = small_model(*pair), 20_000
    with Workers(1) as workers:
        estimate = annealed_importance_sampling(
            model, base_of(model), temperature_ladder(n_temperatures), n, Stream(0), workers
        )
    ratio = np.exp(estimate.log_weights - Brute(model).log_Z)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(n)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_reverse_ais_is_unbiased(pair):
    """From samples of the model, the mean weight is 1 / Z."""
    model, n, rng = small_model(*pair), 20_000, np.random.default_rng(1)
    brute = Brute(model)
    # A grid point is not a sample of a continuous law, but one exact transition later the
    # chains are: the field of the hidden units sees the law by quadrature only.
    V = brute.V[rng.choice(len(brute.p), size=n, p=brute.p)]
    with Workers(1) as workers:
        estimate = reverse_importance_sampling(
            model, base_of(model), temperature_ladder(5), V, Stream(1), workers
        )
    ratio = np.exp(estimate.log_weights + brute.log_Z)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(n)
    assert estimate.value == pytest.approx(brute.log_Z, abs=0.1)


def test_ladder_of_many_rungs_in_both_types_and_threads():
    model = small_model("TGB", "TG", scale=2.0)
    exact, base = Brute(model).log_Z, base_of(model)
    values = []
    for dtype, n_jobs in [(np.float64, 1), (np.float64, 2), (np.float32, 1)]:
        typed = Model(
            model.weights.astype(dtype), model.visible.astype(dtype), model.hidden.astype(dtype)
        )
        with Workers(n_jobs) as workers:
            stream = Stream(0)
            estimate = annealed_importance_sampling(
                typed, base.astype(dtype), temperature_ladder(100), 400, stream, workers
            )
        assert estimate.value == pytest.approx(exact, abs=5 * estimate.std_err + 1e-4)
        assert typed.visible.contains(estimate.states).all()
        values.append((estimate.value, stream.step))
    assert values[0] == values[1]
    zero = base_log_partition(model, base)
    assert zero == pytest.approx(
        base.log_partition(0.0).sum() + model.hidden.base().log_partition(0.0).sum()
    )


def test_threads_do_not_change_the_log_weights():
    rng = np.random.default_rng(0)
    model = Model(rng.normal(0, 0.1, (30, 40)), units("TG", 40, rng), units("B", 30, rng))
    results = []
    for n_jobs in [1, 2]:
        with Workers(n_jobs) as workers:
            # Enough work that the threads wake.
            results.append(
                annealed_importance_sampling(
                    model, model.visible.base(), temperature_ladder(20), 250, Stream(0), workers
                ).log_weights
            )
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_chains_stay_in_the_law(pair):
    model, n, rng = small_model(*pair), 40_000, np.random.default_rng(1)
    brute = Brute(model)
    V = brute.V[rng.choice(len(brute.p), size=n, p=brute.p)]
    with Workers(1) as workers:
        run_chains(model, V, np.empty((n, 2)), 2, Stream(0), workers)
        tempered = tempered_samples(model, base_of(model), V, 3, 3, Stream(1), workers)
    for chains in (V, tempered):
        for power in (1, 2):
            expected = brute.p @ brute.V**power
            spread = np.sqrt(brute.p @ brute.V ** (2 * power) - expected**2)
            error = (chains**power).mean(axis=0) - expected
            assert (np.abs(error) < 5 * spread / np.sqrt(n)).all()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_impute(pair):
    model, n, rng = small_model(*pair), 4000, np.random.default_rng(0)
    brute = Brute(model)
    # One value is known: the grid's points that have it are the conditional law.
    known = brute.V[np.argmax(brute.p), 0]
    here = brute.V[:, 0] == known
    law, values = brute.p[here] / brute.p[here].sum(), brute.V[here, 1]
    mean = law @ values
    spread = np.sqrt(law @ values**2 - mean**2)
    V = np.tile([known, np.nan], (n, 1))
    missing = np.isnan(V)
    exactly = not (pair[1].startswith("T") and pair[0].startswith("T"))
    filled = impute(model, V[:1] if exactly else V, missing[:1] if exactly else missing,
                    "mean", 40, rng)[:, 1]  # fmt: skip
    assert filled.mean() == pytest.approx(mean, rel=1e-9 if exactly else 0, abs=0.05 * spread)
    samples = impute(model, V, missing, "sample", 40, rng)[:, 1]
    assert abs(samples.mean() - mean) < 5 * spread / np.sqrt(n)
    means, chained = impute_by_chains(model, V, missing, 40, Stream(0))
    assert abs(chained[:, 1].mean() - mean) < 5 * spread / np.sqrt(n)
    assert (chained[:, 0] == known).all()
    mode = impute(model, V[:1], missing[:1], "mode", 40, rng)[0, 1]
    assert mode in (0, 1) if pair[0] == "B" else mode == pytest.approx(mean, abs=spread)


def test_impute_enumerates_few_hidden_units_beside_many_visible():
    rng = np.random.default_rng(0)
    model = Model(rng.normal(0, 0.3, (3, 80)), units("TGB", 80, rng), units("B", 3, rng))
    V = np.full((2, 80), np.nan)
    V[:, :5] = 0.5
    mean = impute(model, V, np.isnan(V), "mean", 1, rng)
    chained = impute_by_chains(
        model, np.tile(V[:1], (500, 1)), np.isnan(np.tile(V[:1], (500, 1))), 60, Stream(0)
    )[0].mean(axis=0)
    np.testing.assert_allclose(mean[0, 5:], chained[5:], atol=0.02)
    binary = Model(rng.normal(0, 0.3, (40, 80)), units("B", 80, rng), units("TG", 40, rng))
    V = np.zeros((1, 80))
    V[0, :4] = np.nan
    filled = impute(binary, V, np.isnan(V), "sample", 1, rng)
    assert set(filled[0, :4]) <= {0.0, 1.0}
