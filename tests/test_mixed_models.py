"""RBMs with categorical and Gaussian units in either layer, against sums over all states."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from oracles_rbm import all_points, law_of, pseudo_likelihoods, small_layer
from private import (
    FittedRBM,
    Layered,
    Stream,
    Workers,
    _modes,
    annealed_importance_sampling,
    check_normalisable,
    exact_log_partition,
    log_pseudo_likelihood,
    temperature_ladder,
)
from private import RBMModel as Model
from sklearn_boltz.units import Bernoulli, Categorical, Gaussian, Stacked


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_gaussians_in_both_layers(scale):
    """The precision matrix of all must be positive definite."""
    model = law_of("M", "G", scale).model
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
    for pair in [("M", "B"), ("C", "G"), ("G", "TC")]:
        check_normalisable(law_of(*pair, 100.0).model)
    with pytest.raises(ValueError, match="finitely many values only.*'ais'"):
        exact_log_partition(law_of("M", "M", 0.1).model)
    big = Gaussian(np.zeros(3), np.array([1.0, 1.5, 2.0]))
    check_normalisable(Model(0.9 * np.eye(3), big, big))
    few = np.full((3, 3), 0.1)
    check_normalisable(Layered([few, 0.9 * np.eye(3)], [big, big, big]).sides())
    with pytest.raises(ValueError, match="no distribution"):
        check_normalisable(Layered([few, 1.1 * np.eye(3)], [big, big, big]).sides())


@pytest.mark.parametrize("pair", [("CC", "C"), ("BC", "M"), ("BC", "G")], ids="-".join)
def test_pseudo_likelihood_of_units(pair):
    """ln p(unit | others) from the table of all states, one term for each unit."""
    law = law_of(*pair)
    model, V = law.model, law.V
    counts = [int(count) for count in model.visible.state_counts]
    got = log_pseudo_likelihood(model, V)
    assert_allclose(got, pseudo_likelihoods(law.log_p, counts), rtol=1e-9)
    # Each unit once, in any order, is all of them; one of them is right in the mean.
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(len(counts)), (len(V), 1)), axis=1)
    assert_allclose(log_pseudo_likelihood(model, V, order), got)
    single = [log_pseudo_likelihood(model, V, order[:, [k]]) for k in range(len(counts))]
    assert_allclose(np.mean(single, axis=0), got)
    # Shares are probabilities.
    column = model.visible.columns_of(len(counts) - 1)
    mixed = V[:1].copy()
    mixed[0, column] = np.linspace(1, 2, column.stop - column.start)
    mixed[0, column] /= mixed[0, column].sum()
    assert np.isfinite(log_pseudo_likelihood(model, mixed)).all()
    with pytest.raises(ValueError, match="finitely many"):
        log_pseudo_likelihood(law_of("M", "B").model, np.zeros((1, 5)))


def test_ascents_end_at_states_that_no_unit_can_better(monkeypatch):
    rng = np.random.default_rng(0)
    visible = Stacked([Categorical([3, 4, 2], rng.normal(size=9)), Bernoulli(rng.normal(size=3)),
                       Gaussian.neutral(1)])  # fmt: skip
    model = Model(rng.normal(size=(4, 13)), visible, Bernoulli(rng.normal(size=4)))
    V = visible.sample(np.zeros((20, 13)), Stream(0))
    missing = np.ones(V.shape, dtype=bool)
    missing[:, 3:7] = False
    ends = _modes.coordinate_ascent(model, V, missing)
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
    monkeypatch.setattr(_modes, "MOST_SWEEPS", 1)
    once = model.free_energy(_modes.coordinate_ascent(model, V, missing))
    assert (once >= energy).all() and (once <= model.free_energy(V)).all()


DEEP = [("C", "B", "C"), ("BC", "C", "B"), ("M", "C", "B"), ("C", "CC", "G")]


@pytest.mark.parametrize("kinds", DEEP, ids="-".join)
def test_deep_models(kinds):
    rng = np.random.default_rng(0)
    layers = [small_layer(kind, rng) for kind in kinds]
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
        rbm = FittedRBM(layered, model.visible, model, seed=0, n_jobs=1)
        assert_allclose(rbm.log_sums(V), logsumexp(logs, axis=(1, 2)), rtol=1e-9)
        if kinds[2] != "G":
            log_p = logsumexp(logs, axis=(1, 2)) - logsumexp(logs)
            assert rbm.entropy() == pytest.approx(-np.exp(log_p) @ log_p)
