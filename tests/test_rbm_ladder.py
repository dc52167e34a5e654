"""RBMs and their ladders: rungs, ln Z, tracking and tempered training against enumeration."""

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz._estimates import temperature_ladder
from sklearn_boltz._random import Stream
from sklearn_boltz._threads import OneThread
from sklearn_boltz.restricted.model._enumeration import all_states, exact_log_partition
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._annealing import (
    annealed_importance_sampling,
    base_log_partition,
)
from sklearn_boltz.restricted.sampling._climb import ladder_estimate, ladder_to
from sklearn_boltz.restricted.sampling._gibbs_kernel import log_densities
from sklearn_boltz.restricted.sampling._rungs import (
    IndependentRung,
    Rung,
    begin_ladder,
    between,
    insert_between,
    with_hidden,
)
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WORKERS = OneThread()


# Models whose hidden states can be enumerated.


def visible_units(kind, rng, n_units=4):
    """Some units with parameters that are not round."""
    U, V = rng.normal(0, 0.7, n_units), rng.uniform(0.7, 2, n_units)
    if kind == "binary":
        return Bernoulli(U)
    if kind == "categorical":
        return Categorical(3, rng.normal(0, 0.7, 3 * n_units))
    if kind == "gaussian":
        return Gaussian(U, V)
    if kind == "truncated":
        return TruncatedGaussian(U, V - 1, -1.0, 1.5)
    if kind == "gauss-bernoulli":
        return TruncatedGaussBernoulli(rng.uniform(0.3, 0.8, n_units), U, V, -1.0, 1.5)
    kinds = "gaussian", "binary", "categorical"
    return Stacked([visible_units(kind, rng, 2) for kind in kinds])


def small_model(kind, scale=0.8, seed=0, n_units=4, n_hidden=5):
    """A model of some kind of units: "deep" is a machine of three layers of binary units."""
    rng = np.random.default_rng(seed)
    if kind == "deep":
        sizes = (n_units, n_hidden, 3)
        layers = [visible_units("binary", rng, n) for n in sizes]
        weights = [rng.normal(0, scale, pair[::-1]) for pair in zip(sizes, sizes[1:], strict=False)]
        return Layered(weights, layers).sides()
    visible = visible_units(kind, rng, n_units)
    weights = rng.normal(0, scale, (n_hidden, len(visible)))
    return Model(weights, visible, Bernoulli(rng.normal(0, 0.7, n_hidden)))


KINDS = "binary", "categorical", "gaussian", "truncated", "gauss-bernoulli", "mixed", "deep"


def hidden_law(model):
    """All hidden states, and their probabilities with the visible units summed out."""
    H = all_states(model.hidden).astype(model.dtype)
    logs = model.hidden.log_weight(H) + model.visible.log_partition_sum(model.visible_field(H))
    return H, np.exp(logs - logsumexp(logs))


def exact_states(model, n_rows, seed):
    """Independent draws."""
    H, p = hidden_law(model)
    chosen = np.random.default_rng(seed).choice(len(p), size=n_rows, p=p)
    return model.visible.sample(model.visible_field(H[chosen]), Stream(seed + 1))


def assert_distributed(model, V):
    """Means and second moments of independent rows are those of the model.

    Each within 5 standard errors: of some 50 figures, one is out of it with a probability of 3e-5.
    """
    H, p = hidden_law(model)
    mean = p @ model.mean_visible(H)
    error = V.std(axis=0, ddof=1) / np.sqrt(len(V))
    assert (np.abs(V.mean(axis=0) - mean) <= 5 * error + 1e-12).all()
    # E[h hᵀ] has the products of two, which the means do not fix.
    hidden = model.mean_hidden(V)
    for k, m in [(0, 1), (1, 2), (0, 4)]:
        products = hidden[:, k] * hidden[:, m]
        error = products.std(ddof=1) / np.sqrt(len(V))
        assert abs(products.mean() - (p * H[:, k] * H[:, m]).sum()) <= 5 * error + 1e-12


# The kernel.


def literal_log_densities(weights, b, c, V):
    return V @ b + np.logaddexp(0, V @ weights + c).sum(axis=1)


@settings(max_examples=cases(40))
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 40), st.integers(1, 70), st.integers(1, 40)),
    scale=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
)
def test_log_densities(seed, shape, scale, dtype, share):
    (n_rows, n_visible, n_hidden), rng = shape, np.random.default_rng(seed)
    weights = rng.normal(0, scale, (n_visible, n_hidden)).astype(dtype)
    b, c = (rng.normal(0, scale, n).astype(dtype) for n in (n_visible, n_hidden))
    V = (rng.random((n_rows, n_visible)) < share).astype(dtype)
    out, H = np.full(n_rows, np.nan), np.empty((n_rows, n_hidden), dtype)
    before = V.copy()
    log_densities(weights, b, c, V, H, out)
    expected = literal_log_densities(*(a.astype(np.float64) for a in (weights, b, c, V)))
    size = np.abs(weights).sum() + np.abs(b).sum() + np.abs(c).sum() + n_hidden
    tol = 4 * np.finfo(dtype).eps * size
    np.testing.assert_allclose(out, expected, atol=tol, rtol=0)
    np.testing.assert_array_equal(V, before)


@pytest.mark.parametrize("place", range(6))
def test_log_densities_of_wrong_shapes_are_refused(place):
    shapes = [(4, 3), (4,), (3,), (5, 4), (5, 3), (5,)]
    for change in (-1, 1):
        for axis in range(len(shapes[place])):
            wrong = [list(shape) for shape in shapes]
            wrong[place][axis] += change
            with pytest.raises(ValueError):
                log_densities(*(np.zeros(shape) for shape in wrong))
    log_densities(*(np.zeros(shape) for shape in shapes))


# Rungs.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_log_weights_are_minus_free_energies(kind, dtype):
    model = small_model(kind)
    if kind != "deep":
        model = model._replace(
            weights=model.weights.astype(dtype),
            visible=model.visible.astype(dtype),
            hidden=model.hidden.astype(dtype),
        )
    V = exact_states(model, 30, 1).astype(model.dtype)
    one, other = Rung(model, V[:15].copy()), Rung(model, V[15:].copy())
    tol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(one.log_weights(other), -model.free_energy(V[15:]), atol=tol)
    H = all_states(model.hidden).astype(model.dtype)
    rows = [np.repeat(v[np.newaxis], len(H), axis=0) for v in V[15:18]]
    brute = [logsumexp(-model.energy(V, H)) for V in rows]
    np.testing.assert_allclose(one.log_weights(other)[:3], brute, atol=10 * tol)


@pytest.mark.parametrize("kind", KINDS)
def test_transitions_keep_the_distribution(kind):
    """From exact draws, and from a single state after many transitions.

    See `assert_distributed` for the rate of false alarms.
    """
    model = small_model(kind, scale=0.5)
    start = exact_states(model, 4000, 2)
    here = Rung(model, start.copy())
    assert_distributed(model, here.states)
    here.move(1, Stream(5), 0)
    assert (here.states != start).any(axis=1).mean() > 0.5
    assert_distributed(model, here.states)
    there = Rung(model, np.repeat(start[:1], 4000, axis=0))
    there.move(40, Stream(6), 0)
    assert_distributed(model, there.states)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_rung_draws_independent_rows(kind):
    model = small_model(kind, scale=0.5)
    base = small_model(kind, seed=3).visible
    ladder = begin_ladder(model, base, 3000, Stream(4))
    first = ladder.rungs[0]
    assert isinstance(first, IndependentRung)
    assert np.abs(np.asarray(first.model.weights)).max() == 0
    before = first.states.copy()
    for k in range(2):
        assert_distributed(first.model, first.states)
        first.move(1, Stream(k), 0)
        assert (first.states != before).any()
    # Its constant is the one that the sums start at.
    assert ladder.first_log_partition == pytest.approx(exact_log_partition(first.model))
    assert ladder.first_log_partition == base_log_partition(model, base)


def parameters(model):
    return [np.asarray(model.weights), *model.visible.parameters().values(),
            *model.hidden.parameters().values()]  # fmt: skip


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["binary", "categorical", "gaussian", "truncated", "mixed"])
def test_the_model_between_has_the_parameters_between(kind, part):
    low, high = small_model(kind, seed=1), small_model(kind, seed=2)
    middle = between(low, high, part)
    for a, b, mine in zip(*map(parameters, (low, high, middle)), strict=True):
        np.testing.assert_allclose(mine, (1 - part) * a + part * b, rtol=1e-12)
    assert middle.weights.flags.f_contiguous
    # Both are as they were.
    for model, seed in ((low, 1), (high, 2)):
        for mine, own in zip(*map(parameters, (model, small_model(kind, seed=seed))), strict=True):
            np.testing.assert_array_equal(mine, own)


def test_more_hidden_units_add_ln_2_each():
    small, large = small_model("binary", n_hidden=3), small_model("binary", n_hidden=6, seed=1)
    wider = with_hidden(small, 6)
    assert exact_log_partition(wider) - exact_log_partition(small) == pytest.approx(3 * np.log(2))
    assert with_hidden(small, 3) is small
    V = all_states(small.visible)
    np.testing.assert_allclose(wider.free_energy(V), small.free_energy(V) - 3 * np.log(2))
    for low, high in [(small, large), (large, small)]:
        middle = between(low, high)
        assert middle.weights.shape == (6, 4)
        lows, highs = parameters(with_hidden(low, 6)), parameters(with_hidden(high, 6))
        for a, b, mine in zip(lows, highs, parameters(middle), strict=True):
            np.testing.assert_allclose(mine, (a + b) / 2)


def test_a_rung_between_takes_states_of_both():
    model = small_model("binary")
    ladder = begin_ladder(model, small_model("binary", seed=1).visible, 10, Stream(0))
    ladder.rungs[0].states[...], ladder.rungs[1].states[...] = 0, 1
    insert_between(ladder, 1)
    assert len(ladder) == 3 and len(ladder.pairs) == 2 and len(ladder.from_below) == 3
    np.testing.assert_array_equal(ladder.rungs[1].states[:, 0], np.arange(10) % 2)
    ladder.rungs[1].states[...] = 7
    assert ladder.rungs[0].states.max() == 0 and ladder.rungs[2].states.min() == 1


def test_exchanged_states_are_copies():
    model = small_model("binary")
    one, other = (Rung(model, np.full((5, 4), value)) for value in (0.0, 1.0))
    one.swap(other, np.array([1, 3]))
    assert one.states[:, 0].tolist() == [0, 1, 0, 1, 0]
    assert other.states[:, 0].tolist() == [1, 0, 1, 0, 1]
    copied = one.copy()
    copied.states[...] = 5
    assert one.states.max() == 1 and copied.model is one.model


# ln Z.


@pytest.mark.parametrize("n_chains", [20, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_log_partition_of_all_units(kind, n_chains):
    """Within 5 standard errors, which are small: 14 cases, a false alarm of 1e-5 in all.

    (With 20 chains by Student's distribution: 5e-4.)
    """
    model = small_model(kind, scale=1.5)
    base = small_model(kind, seed=3).visible
    ladder = ladder_to(model, base, None, n_chains, Stream(1), WORKERS)
    found = ladder_estimate(ladder, 0.05, 2000, WORKERS)
    exact = exact_log_partition(model)
    assert found.trusted and found.method == "ladder"
    assert 0 < found.std_err <= 0.05
    assert abs(found.value - exact) < 5 * found.std_err
    assert len(found.states) == n_chains
    rungs = [exact_log_partition(rung.model) for rung in ladder.rungs]
    assert np.abs(found.log_partitions - rungs).max() < 0.3
    assert found.log_partitions[0] == pytest.approx(ladder.first_log_partition)


def opposite_modes(strength, tilt):
    """12 × 12 units with the modes x and 1 − x, the first the more probable by e^(24 tilt)."""
    rng = np.random.default_rng(0)
    x, s = (np.where(rng.permutation(12) < 6, 1.0, -1.0) for _ in range(2))
    weights = strength * np.outer(s, x)
    visible = Bernoulli(-weights.sum(axis=0) / 2 + tilt * x)
    return Model(np.asfortranarray(weights), visible, Bernoulli(-weights.sum(axis=1) / 2))


def two_patterns(strength, threshold):
    """12 × 12 units with two modes far from all else: half of the hidden units wait for each."""
    rng = np.random.default_rng(0)
    patterns = [np.where(rng.permutation(12) < 6, strength, -strength) for _ in range(2)]
    weights = np.asfortranarray(np.repeat(patterns, 6, axis=0))
    return Model(weights, Bernoulli(np.zeros(12)), Bernoulli(np.full(12, -strength * threshold)))


class CountedRung(Rung):
    """Counts the transitions of all chains."""

    n_transitions = 0

    def move(self, n_steps, stream, first_row):
        CountedRung.n_transitions += n_steps * len(self)
        super().move(n_steps, stream, first_row)


def test_modes_behind_a_barrier(monkeypatch):
    """Ten ladders are right, and better in the median than annealing at the same cost.

    The first mode has e^2.4 times the weight of the second. Errors of the ladder were .02 in the
    median, and those of as many transitions of annealing .06. The ladder's are independent, with
    a standard error of .03 at most: one greater than .12 in ten has a probability of 6e-4.
    """
    model, base = opposite_modes(2.0, 0.2), Bernoulli(np.zeros(12))
    exact, errors = exact_log_partition(model), []
    for module in ("_climb", "_rungs"):
        monkeypatch.setattr(f"sklearn_boltz.restricted.sampling.{module}.Rung", CountedRung)
    for seed in range(10):
        CountedRung.n_transitions = 0
        ladder = ladder_to(model, base, None, 100, Stream(seed), WORKERS)
        climbed = ladder_estimate(ladder, 0.03, 1000, WORKERS)
        betas = temperature_ladder(CountedRung.n_transitions // 100)
        annealed = annealed_importance_sampling(model, base, betas, 100, Stream(seed), WORKERS)
        assert climbed.trusted and climbed.std_err <= 0.03
        errors.append([climbed.value - exact, annealed.value - exact])
    errors = np.abs(errors)
    assert errors[:, 0].max() < 0.12
    assert np.median(errors[:, 0]) < np.median(errors[:, 1])


@pytest.mark.parametrize("strength", [2.0, 3.0])
def test_a_mode_that_is_found_late(strength):
    """Chains fall into narrow modes after the rungs were set: the ladder sets more, and is right.

    Within 5 standard errors, in four runs: a false alarm of 1e-6 each.
    """
    model = two_patterns(strength, 5)
    exact = exact_log_partition(model)
    for seed in range(2):
        ladder = ladder_to(model, Bernoulli(np.zeros(12)), None, 100, Stream(seed), WORKERS)
        found = ladder_estimate(ladder, 0.05, 1000, WORKERS)
        assert found.trusted and len(ladder) > 2
        assert abs(found.value - exact) < 5 * found.std_err < 0.3


# Tracking.


def bimodal(n_rows, n_features, share, seed=0, noise=0.05):
    """Rows near one of two patterns; -> rows and the numbers of their patterns."""
    rng = np.random.default_rng(seed)
    first = np.arange(n_features) % 2
    numbers = (rng.random(n_rows) >= share).astype(int)
    patterns = np.stack([first, 1 - first])
    X = np.abs(patterns[numbers] - (rng.random((n_rows, n_features)) < noise))
    return X.astype(float), numbers


def table(n_rows=400, n_features=14, seed=0):
    """Bits of which some depend on others."""
    rng = np.random.default_rng(seed)
    causes = rng.integers(2, size=(n_rows, 4))
    X = causes[:, rng.integers(4, size=n_features)]
    return np.abs(X - (rng.random(X.shape) < 0.1)).astype(float)


def sdcp(**parameters):
    options = dict(learning_rate=0.05, batch_size=50, max_iter=6, random_state=0)
    return SDCPRBM(14, **(options | parameters))


def exact_likelihood(model, X, sample_weight=None):
    """Mean log-likelihood per row by enumeration."""
    scores = -model.free_energy(X) - model.log_partition("exact").value
    return np.average(scores, weights=sample_weight)


def differences(model, X, n_epochs, weights=None):
    """What was tracked minus the truth, after each epoch."""
    model.set_params(max_iter=1, warm_start=True)
    found = []
    for _ in range(n_epochs):
        model.fit(X, sample_weight=weights)
        found.append(model.history_["log_likelihood"][-1] - exact_likelihood(model, X, weights))
    assert len(model.history_["log_likelihood"]) == n_epochs
    return np.array(found)


TRACKED = {
    "plain": sdcp(),
    "fast": sdcp(learning_rate=0.3),
    "tempered": sdcp(learning_rate=0.02, sampler="tempered"),
    "few rungs": sdcp(max_rungs=3),
    "cheap": sdcp(track_likelihood=0.01),
    "dear": sdcp(track_likelihood=3.0),
    "TAP": TAPRBM(14, learning_rate=0.02, batch_size=50, random_state=0),
    "float32": sdcp(),
    "weights": sdcp(),
}


@pytest.mark.parametrize("case", TRACKED)
def test_tracked_likelihood_is_near_the_truth(case):
    """The greatest error of 12 epochs, of many seeds at most what is asserted here."""
    X, model = table(), TRACKED[case]
    X = X.astype(np.float32) if case == "float32" else X
    weights = np.random.default_rng(1).integers(4, size=len(X)) if case == "weights" else None
    errors = differences(model, X, 12, weights)
    print(case, np.abs(errors).max().round(3), errors.round(2))
    assert np.abs(errors).max() < 0.3
