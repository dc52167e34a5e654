"""Probabilities of edges against sums over all graphs, and against edges of simulated tables."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import cauchy, t

from sklearn_boltz import FVBMPseudoLikelihood, statistics

QUICK = {"n_sweeps": 20, "random_state": 0}
OUT_OF_STEP = "ignore:edge_inclusion. the chains do not agree"


def with_levels(X, n_values):
    """A network that knows the levels; its estimates do not count."""
    columns = [("ordinal", list(range(n))) for n in n_values]
    return FVBMPseudoLikelihood(alpha=1.0, columns=columns).fit(X)


def simulated(interaction, thresholds, n_rows, rng):
    """Rows of the network, by the probabilities of all states."""
    states = np.array(list(product(*(range(len(own) + 1) for own in thresholds))))
    log_p = ((states @ interaction) * states).sum(axis=1) / 2
    for x, own in zip(states.T, thresholds, strict=True):
        log_p += np.append(0, own)[x]
    return states[rng.choice(len(states), n_rows, p=np.exp(log_p - logsumexp(log_p)))]


def regression(X, j, grid, power):
    """Of column j on two others, its thresholds integrated out, for all pairs of interactions."""
    x, others = X[:, j], np.delete(X, j, axis=1)
    n_levels, step = X[:, j].max(), 1 / 3
    axis = np.arange(-24, 25) * step
    thresholds = np.array(list(product(axis, repeat=n_levels)))
    log_prior = (thresholds / 2 - np.logaddexp(0, thresholds) - np.log(np.pi)).sum(axis=1)
    offsets = np.concatenate([np.zeros((len(thresholds), 1)), thresholds], axis=1)
    found = np.empty((len(grid), len(grid)))
    rows, counts = np.unique(np.column_stack([x, others]), axis=0, return_counts=True)
    for place in np.ndindex(found.shape):
        field = rows[:, 1:] @ grid[list(place)]
        log_p = log_prior.copy()
        for own, r, count in zip(rows[:, 0], field, counts, strict=True):
            log_z = np.log(np.exp(offsets + np.arange(n_levels + 1) * r).sum(axis=1))
            log_p += power * count * (offsets[:, own] + own * r - log_z)
        found[place] = logsumexp(log_p) + n_levels * np.log(step)
    return found


def by_quadrature(X, edge_prior, scale, power):
    """Probabilities and mean interactions of the pairs of three columns, over all eight graphs."""
    grid = np.linspace(-6, 6, 33)
    zero, step = 16, grid[1] - grid[0]
    f = [np.exp(g - g.max()) for g in (regression(X, j, grid, power) for j in range(3))]
    slab = cauchy.pdf(grid, scale=scale) * step * edge_prior
    spike = np.where(np.arange(33) == zero, 1 - edge_prior, 0)
    total, present, mean = 0.0, np.zeros(3), np.zeros(3)
    for graph in product([0, 1], repeat=3):
        a, b, c = (slab if edge else spike for edge in graph)  # of pairs 01, 02, 12
        mass = np.einsum("ab,ac,bc,a,b,c->abc", *f, a, b, c)
        total += mass.sum()
        present += mass.sum() * np.array(graph)
        mean += [mass.sum(axis=other) @ grid for other in ((1, 2), (0, 2), (0, 1))]
    return present / total, mean / total


def test_probabilities_are_those_of_all_graphs(power=0.5):
    """By t tests of 16 chains, with false alarms in 1 of 20,000 runs."""
    thresholds, interaction = [[0.3], [-0.2, -1.0], [-0.5]], np.zeros((3, 3))
    interaction[0, 1] = interaction[1, 0] = 0.9
    rng = np.random.default_rng(0)
    X = simulated(interaction, thresholds, 60, rng)
    expected = by_quadrature(X, 0.3, 1.5, power)
    result = statistics.edge_inclusion(
        *(with_levels(X, (2, 3, 2)), X), edge_prior=0.3, interaction_scale=1.5,
        likelihood_power=power, n_sweeps=250, n_chains=16, random_state=0,
    )  # fmt: skip
    pairs = np.triu_indices(3, 1)
    for values, means in zip((result.samples != 0, result.samples), expected, strict=True):
        by_chain = values.mean(axis=1)
        errors = by_chain.std(axis=0, ddof=1) / 4
        assert (errors < 0.02).all()
        assert (np.abs(by_chain.mean(axis=0) - means) < t.isf(4e-6, 15) * errors).all()
    assert_allclose(result.probability[pairs], (result.samples != 0).mean(axis=(0, 1)))
    odds = result.probability[pairs] / (1 - result.probability[pairs])
    assert_allclose(result.bayes_factor[pairs], odds / (0.3 / 0.7))
    # The errors by parts of the chains are those by chains, up to their own errors.
    ratio = result.std_err[pairs] / ((result.samples != 0).mean(axis=1).std(axis=0) / 4)
    assert ((ratio > 0.4) & (ratio < 2.5)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings(OUT_OF_STEP)
def test_as_many_edges_are_there_as_the_probabilities_say():
    """Of tables drawn from the prior; false alarms in 1 of 8,000 runs, if all were exact.

    With the pseudo-likelihood itself, too many edges are nearly certain.
    """
    rng, d, scale = np.random.default_rng(0), 8, 1.0
    pairs, edges, found = np.triu_indices(d, 1), [], {0.5: [], 1.0: []}
    while len(edges) < 14:
        interaction = np.zeros((d, d))
        edge = rng.random(len(pairs[0])) < 0.5
        interaction[pairs] = edge * scale * rng.standard_cauchy(len(edge))
        p = rng.beta(0.5, 0.5, size=(d, 1)).clip(1e-9, 1 - 1e-9)
        X = simulated(interaction + interaction.T, np.log(p / (1 - p)), 300, rng)
        if X.std(axis=0).all():
            edges.append(edge)
            model = with_levels(X, [2] * d)
            for power, of_power in found.items():
                result = statistics.edge_inclusion(
                    *(model, X), interaction_scale=scale, likelihood_power=power,
                    n_sweeps=80, n_chains=4, random_state=len(edges),
                )  # fmt: skip
                of_power.append(result.probability[pairs])
    z = {}
    for power, probabilities in found.items():
        p, edge = np.ravel(probabilities), np.ravel(edges)
        for low, high in (0.4, 0.6), (0.8, 1):
            own = (p >= low) & (p < high)
            assert own.sum() >= 15
            spread = np.sqrt((p * (1 - p))[own].sum())
            z[power, low] = (p - edge)[own].sum() / spread
    assert max(abs(z[0.5, low]) for low in (0.4, 0.8)) < 4
    assert z[1.0, 0.8] > 4


@pytest.mark.filterwarnings(OUT_OF_STEP)
def test_weights_are_counts_and_gaps_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(60, 4)).astype(float)
    model = with_levels(X, [3] * 4)
    weights = rng.integers(1, 4, size=60)
    repeated = np.repeat(X, weights, axis=0)
    expected = statistics.edge_inclusion(with_levels(repeated, [3] * 4), repeated, **QUICK)
    with pytest.warns(UserWarning, match="not the rows and weights of the fit"):
        found = statistics.edge_inclusion(model, X, sample_weight=weights, **QUICK)
    assert_allclose(found.samples, expected.samples)
    more = np.concatenate([X, [[0, np.nan, 1, 2]] * 2])
    with pytest.warns(UserWarning, match="leaves out 2 of 62 rows"):
        found = statistics.edge_inclusion(with_levels(more, [3] * 4), more, **QUICK)
    assert_allclose(found.samples, statistics.edge_inclusion(model, X, **QUICK).samples)


@pytest.mark.filterwarnings(OUT_OF_STEP)
def test_levels_are_scores_in_their_order():
    """Strings in order, codes of 0 to 2 and bits of any coding are the same columns."""
    rng = np.random.default_rng(0)
    X = rng.integers([2, 3, 3], size=(80, 3))
    X[:40, 2] = X[:40, 1]
    words = np.array(["never", "at times", "always"])
    frame = pd.DataFrame({
        "smoker": np.array(["no", "yes"])[X[:, 0]],
        "one": pd.Categorical(words[X[:, 1]], words, ordered=True),
        "other": words[X[:, 2]],
    })  # fmt: skip
    columns = {"other": ("ordinal", list(words))}
    model = FVBMPseudoLikelihood(alpha=1.0, columns=columns).fit(frame)
    found = statistics.edge_inclusion(model, frame, **QUICK)
    expected = statistics.edge_inclusion(FVBMPseudoLikelihood(alpha=1.0).fit(X), X, **QUICK)
    assert_array_equal(found.samples, expected.samples)
    table = found.to_frame()
    assert table.loc[("one", "other"), "interaction"] == found.interaction[1, 2] > 0
    assert (np.diff(table["probability"]) <= 0).all()
    signs = FVBMPseudoLikelihood(alpha=1.0).fit(2 * (X > 0) - 1)
    bits = FVBMPseudoLikelihood(alpha=1.0).fit(X > 0)
    assert_array_equal(
        statistics.edge_inclusion(signs, 2 * (X > 0) - 1, **QUICK).samples,
        statistics.edge_inclusion(bits, X > 0, **QUICK).samples,
    )
