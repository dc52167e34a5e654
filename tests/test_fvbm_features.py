"""Networks of functions of the columns: numbers, levels in order and categories, alpha="auto"."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, softmax

from private import (
    CouplingPrior,
    FeatureNetwork,
    FeatureObjective,
    FeatureRows,
    gather,
    hats_at,
    of_cycle,
    of_order,
    of_values,
    residuals,
    scatter,
)
from sklearn_boltz import BoltzmannImputer, FVBMPseudoLikelihood


def columns(rng):
    """Of many categories, of numbers, and of two."""
    many, cells, two = (rng.dirichlet(np.full(n, 5.0)) for n in (300, 30, 2))
    return [of_values(many), of_order(cells, np.sort(rng.normal(size=30))), of_values(two)]


def random_network(rng, bases, scale=0.3):
    """With couplings of this size."""
    n_features = sum(basis.features.shape[1] for basis in bases)
    coupling = rng.normal(scale=scale, size=(n_features,) * 2)
    network = FeatureNetwork(bases, np.vstack([coupling + coupling.T, rng.normal(size=n_features)]))
    for place in network.places:
        network.coupling[place, place] = 0
    return network


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_equal_the_formula(dtype):
    """Also of states that are all but impossible, without denormal numbers, which are slow."""
    rng, offsets = np.random.default_rng(0), np.array([0, 2, 40, 43, 60])
    x, base = rng.normal(scale=40, size=(50, 60)).astype(dtype), rng.normal(size=60).astype(dtype)
    codes = rng.integers(-1, np.diff(offsets), size=(50, 4)).astype(np.int32)
    weights = rng.exponential(size=50).astype(dtype)
    expected, total = np.zeros((50, 60)), 0.0
    for j, own in enumerate(map(slice, offsets, offsets[1:])):
        fields, known = (x[:, own] + base[own]).astype(float), codes[:, j] >= 0
        left = softmax(fields, axis=1) - (codes[:, [j]] == np.arange(fields.shape[1]))
        expected[:, own] = left * (weights * known)[:, None]
        of_rows = log_softmax(fields, axis=1)[np.arange(50), codes[:, j]]
        total += (of_rows * weights)[known].sum()
    rtol = 100 * float(np.finfo(dtype).eps)
    assert residuals(x, base, offsets, codes, weights) == pytest.approx(total, rel=rtol)
    assert_allclose(x, expected, rtol=rtol, atol=rtol)
    assert np.abs(x[x != 0]).min() > 1e-32
    with pytest.raises(ValueError, match="match"):
        residuals(x, base[1:], offsets, codes, weights)


def test_functions_are_uncorrelated_and_the_first_is_monotone():
    rng = np.random.default_rng(0)
    positions, shares = np.sort(rng.normal(size=30)), rng.dirichlet(np.full(30, 5.0))
    basis = of_order(shares, positions)
    second = (basis.features.T * shares) @ basis.features
    assert_allclose(second - np.diag(second.diagonal()), 0, atol=1e-10)
    assert_allclose(shares @ basis.features, 0, atol=1e-12)
    first = basis.features[:, 0]  # linear between knots at quantiles, which it counts
    assert abs(np.diff(np.sign(np.diff(first)))).sum() == 0
    assert (np.diff(second.diagonal()) < 1e-12).all() and second[0, 0] == pytest.approx(1)
    knots = positions[::5]
    inside = np.linspace(knots[0], knots[-1], 50)
    assert_allclose(hats_at(inside, knots) @ knots, inside)


def test_functions_of_a_cycle_have_no_first_state():
    """For equal shares, they are sines and cosines: their inner products depend on distances."""
    basis = of_cycle(np.full(12, 1 / 12), np.arange(12) / 12)
    kernel, angles = basis.features @ basis.features.T, np.arange(12) * np.pi / 6
    assert_allclose(np.roll(kernel, (1, 1), (0, 1)), kernel, atol=1e-10)
    waves = np.column_stack([np.cos(angles), np.sin(angles)])
    found = np.linalg.lstsq(waves, basis.features[:, :2])[0]
    assert_allclose(waves @ found, basis.features[:, :2], atol=1e-10)
    uneven = np.random.default_rng(0).dirichlet(np.full(40, 5.0))
    basis = of_cycle(uneven, np.arange(40) / 40)
    second = (basis.features.T * uneven) @ basis.features
    assert_allclose(second - np.diag(second.diagonal()), 0, atol=1e-10)


def hours(n, seed):
    """Three bits, each most probable at some hour, one of them midnight."""
    rng = np.random.default_rng(seed)
    hour = rng.integers(24, size=n)
    angles = np.pi / 12 * (hour[:, None] - [0, 6, 12])
    bits = rng.random((n, 3)) < expit(3 * np.cos(angles) - 1)
    return pd.DataFrame(bits.astype(int), columns=list("abc")).assign(hour=hour)


def test_the_last_hour_is_next_to_the_first():
    """Held-out gains over hours without an order, and over hours on a line.

    Of 30 tables they were 0.078 +- 0.016 and 0.011 +- 0.008 nats per row: with 8 other tables, this
    test would fail once in 5,000 times.
    """
    kinds, new = ("cyclic", "nominal", "ordinal"), hours(2000, 0)
    scores = np.array([
        [FVBMPseudoLikelihood(columns={"hour": kind}).fit(hours(300, seed)).score(new)
         for kind in kinds] for seed in range(1, 9)
    ])  # fmt: skip
    gains = scores[:, :1] - scores[:, 1:]
    assert (gains.mean(axis=0) > [0.05, 0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_by_lines_are_those_with_features(dtype):
    rng = np.random.default_rng(2)
    network = random_network(rng, columns(rng))
    network = FeatureNetwork(network.bases, network.theta.astype(dtype))
    codes = rng.integers(-1, np.diff(network.offsets), size=(40, 3))
    features, rows = network.expand(codes, range(3)), FeatureRows(network, codes)
    assert not features[codes[:, 0] < 0, network.places[0]].any()
    parts, atol = (network.coupling[network.few_places], network.lines()), 100 * np.finfo(dtype).eps
    assert_allclose(rows.times(*parts), features @ network.coupling, atol=10 * atol)
    sums, found = rows.products(features, network.n_lines), np.empty_like(network.coupling)
    found[network.few_places] = sums[0]
    network.of_lines(sums[1], found)
    products = features.T @ features
    for place in network.places[:2]:
        found[place, place] = products[place, place] = 0
    assert_allclose(found, products, atol=40 * atol)


def test_lines_of_other_sizes_are_refused():
    x, table, lines, own = np.zeros((3, 5)), np.zeros((4, 5)), np.zeros((3, 2), np.int32), [[0, 0]]
    for kernel in (gather, scatter):
        with pytest.raises(ValueError, match="match"):
            kernel(x, table, lines, np.array(own))


def test_objective_is_the_pseudo_likelihood_of_the_states():
    """Its value by the published couplings, its slope by differences; and back from these."""
    rng = np.random.default_rng(1)
    network = random_network(rng, columns(rng))
    sizes, offsets = np.diff(network.offsets), network.offsets
    codes = rng.integers(sizes, size=(40, 3)).astype(np.int32)
    observed, weights = rng.random(codes.shape) < 0.8, rng.exponential(size=40)
    penalty = rng.exponential(size=network.coupling.shape)
    objective = FeatureObjective(network, codes, observed, weights, penalty + penalty.T)
    point = objective.at(network.theta)
    groups = network.model()
    coupling, intercept = groups.coupling, groups.intercept
    ones = np.zeros((40, offsets[-1]))
    ones[np.arange(40)[:, None], codes + offsets[:-1]] = 1
    fields, total = ones @ coupling + intercept, 0.0
    for j, own in enumerate(map(slice, offsets, offsets[1:])):
        of_rows = log_softmax(fields[:, own], axis=1)[np.arange(40), codes[:, j]]
        total += of_rows @ (weights * observed[:, j])
    squares = ((penalty + penalty.T) * network.coupling**2)[~objective.own].sum()
    assert point.value == pytest.approx(total / weights.sum() - squares / 4)
    other = random_network(rng, network.bases)
    ends = [objective.at(network.theta + h * other.theta).value for h in (-1e-5, 1e-5)]
    slope = np.vdot(point.gradient, other.theta)
    assert np.diff(ends)[0] / 2e-5 == pytest.approx(slope, rel=1e-5)
    values = network.of_values(groups)
    again = network.at(0 * network.theta)
    again = again.near(values.coupling, values.intercept)
    again = again.of_values(again.model())
    assert_allclose(again.coupling, values.coupling, atol=1e-10)
    assert_allclose(again.intercept, values.intercept, atol=1e-10)


def test_prior_finds_the_variances_of_pairs_and_orders():
    """Of couplings that follow it, seen exactly: of 225 each, within 4.5 standard errors."""
    rng = np.random.default_rng(2)
    bases = [of_order(np.full(40, 1 / 40), np.arange(40.0)) for _ in range(4)]
    prior = CouplingPrior(bases)
    n = len(bases[0].order)
    pairs = np.exp(rng.normal(size=(4, 4)))
    pairs, orders = pairs + pairs.T, 1 / np.arange(1, n + 1) ** 0.5
    variances = np.kron(pairs, np.outer(orders, orders))
    coupling = np.tril(rng.normal(size=variances.shape) * np.sqrt(variances), -1)
    coupling = coupling + coupling.T
    for _ in range(30):
        prior.estimate(coupling, np.eye(4 * n), np.eye(4 * n), 1e9)
    found = prior.pairs[np.tril_indices(4, -1)] / pairs[np.tril_indices(4, -1)]
    bound = 4.5 * np.sqrt(2 / n**2)
    assert np.ptp(np.log(found)) < 2 * bound and (prior.orders[1:-1] < 1).all()
    assert_allclose(np.log(prior.orders[:-1] / orders), 0, atol=4.5 * np.sqrt(2 / (3 * n)) * 2)


def test_estimates_from_draws_are_near_those_of_all_cells():
    """A tenth of the cells are missing at random: mean scores differ by little."""
    rng = np.random.default_rng(4)
    mood = rng.normal(size=(800, 1))
    X = pd.DataFrame(mood + rng.normal(size=(800, 3)), columns=list("abc"))
    X["word"] = np.where(mood[:, 0] + rng.normal(size=800) > 0, "x", "y")
    complete = FVBMPseudoLikelihood().fit(X)
    gaps = X.mask(rng.random(X.shape) < 0.1)
    found = FVBMPseudoLikelihood().fit(gaps)
    assert complete.converged_ and found.converged_ and found.n_iter_ == 30
    difference = found.score_samples(X) - complete.score_samples(X)
    assert abs(difference.mean()) < 0.1  # of single rows, as cells of numbers end elsewhere
    assert_array_equal(found.coupling_, FVBMPseudoLikelihood().fit(gaps[::-1]).coupling_)
    apart = complete.alpha_[~np.eye(4, dtype=bool)]
    assert (apart > 0).all() and not complete.alpha_.diagonal().any()
    with pytest.warns(UserWarning, match="max_iter=2 rounds"):
        FVBMPseudoLikelihood(max_iter=2).fit(X)
    again = FVBMPseudoLikelihood(warm_start=True).fit(X).fit(X)
    assert np.abs(again.score_samples(X) - complete.score_samples(X)).mean() < 0.03


def test_all_complete_rows_count():
    """At the maximum, values have the probabilities that they have in all rows, not in some."""
    rng, n = np.random.default_rng(0), 20_000
    z = rng.normal(size=n)
    words = np.array(list("xyz"))[rng.integers(3, size=n) * (z > 0)]
    a, b, c = rng.normal(size=(3, n))
    X = pd.DataFrame({"a": z + a, "b": z + b, "c": c, "word": words})
    model = FVBMPseudoLikelihood(columns=["binned"] * 3 + ["auto"]).fit(X)
    found = model.predict_column_proba(X, "word").mean(axis=0)
    assert_allclose(found, np.unique(words, return_counts=True)[1] / n, atol=1e-5)


def test_columns_that_determine_each_other_have_their_shares():
    """A word and its number, both hidden: all are found that the most frequent word has.

    The pseudo-likelihood does not know which pairs are frequent.
    """
    rng = np.random.default_rng(7)
    number = rng.choice(8, size=4000, p=[0.02, 0.05, 0.4, 0.2, 0.03, 0.1, 0.15, 0.05])
    X = pd.DataFrame({"word": np.char.add("w", number.astype(str)), "number": number})
    X["other"] = np.where(rng.random(4000) < 0.5, "a", "b")
    hidden = rng.random(X.shape) < 0.2
    gaps, both = X.mask(hidden), hidden[:, 0] & hidden[:, 1]
    filled = BoltzmannImputer(how="mode").fit_transform(gaps)
    assert (filled["word"] == X["word"])[hidden[:, 0] & ~both].all()
    assert (filled["number"][both] == 2).mean() > 0.95
    shares = FVBMPseudoLikelihood().fit(gaps).marginal("number")
    assert_allclose(shares, np.bincount(number) / 4000, atol=0.04)


@pytest.mark.parametrize("relation", [np.square, lambda x: np.sin(3 * x)], ids=["square", "sine"])
def test_relations_that_are_no_trends_are_found(relation):
    """RMSE of hidden numbers up to 1.2 times the noise, from 1,000 rows."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, size=1000)
    noise = 0.3 * relation(x).std()
    X = pd.DataFrame({"x": x, "y": relation(x) + noise * rng.normal(size=1000)})
    hidden = rng.random(1000) < 0.2
    filled = BoltzmannImputer(how="mean").fit_transform(
        X.assign(y=X["y"].mask(hidden), z=rng.choice(["a", "b"], 1000))
    )
    error = (filled["y"] - relation(x))[hidden].to_numpy()
    assert np.sqrt((error**2).mean() + noise**2) < 1.2 * noise


def test_rare_values_share_their_couplings():
    """And have the shares of the rows among themselves."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.full(400, 0.5))
    bases = [of_values(shares), of_values(np.array([0.3, 0.7]))]
    group, rare = bases[0].group, bases[0].group == 255
    assert bases[0].features.shape == (256, 256) and rare.sum() == 145
    assert shares[~rare].min() >= shares[rare].max()
    network = random_network(rng, bases)
    groups = network.model()
    values = network.of_values(groups)
    assert values.n_values.tolist() == [400, 2]
    p = groups.marginal([0, 1])[group] * (shares / bases[0].shares[group])[:, None]
    assert_allclose(values.marginal([0, 1]), p, atol=1e-12)
