"""Couplings of numbers with normal scores: the joint network, its standard errors and tests."""

from itertools import product

import matplotlib
import numpy as np
import pandas as pd
import pytest
from contract.estimators import Location
from contract.test_numbers import wages, with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from test_location import numbers_and_words, small_model

from oracles import differences
from private import (
    JointLayout,
    PottsModel,
    as_parameters,
    joint_network,
    places_of_categories,
    to_zero_sum,
    without_own,
)
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.inspection import CouplingDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Two words of three values, and two numbers without atoms.
LAYOUT = JointLayout(np.array([3, 3, 1, 1]), np.array([False, False, True, True]))


def with_numbers(network, n_scores=2):
    """A network of the same words beside columns of a single value."""
    coupling, intercept = to_zero_sum(network.coupling, network.intercept, network.n_values)
    n_values = np.append(network.n_values, np.ones(n_scores, dtype=int))
    return PottsModel(np.pad(coupling, (0, n_scores)), np.pad(intercept, (0, n_scores)), n_values)


def test_couplings_by_differences_of_the_log_density():
    """What is left of ln p(x, z) after means over values, and its second derivatives."""
    model = small_model()
    network, gaussians = model.network, model.gaussians

    def log_p(codes, z):
        x = network.one_hot(np.array([codes])).toarray()[0]
        mean = gaussians.intercepts[0] + gaussians.slopes @ x
        normal = multivariate_normal(mean, gaussians.covariances[0])
        return network.log_weight(np.array([codes]))[0] + normal.logpdf(z)

    slopes = np.pad(gaussians.slopes, [(0, 0), (0, 2)])
    found, biases = joint_network(
        with_numbers(network), gaussians.intercepts[0], slopes, gaussians.covariances[0], LAYOUT
    )
    states, z = list(product(range(3), range(3))), np.array([0.3, -0.5])
    values = np.array([log_p(codes, z) for codes in states]).reshape(3, 3)
    values = values - values.mean(axis=0)
    assert_allclose(found[:3, 3:6], values - values.mean(axis=1)[:, None], atol=1e-9)

    gradients = {c: differences(lambda z, c=c: log_p(c, z), z, 1e-4) for c in states}
    second = differences(lambda z: differences(lambda z: log_p((0, 0), z), z, 1e-3), z, 1e-3)
    sd = 1 / np.sqrt(-second.diagonal())
    assert_allclose(found[6, 7], second[0, 1] * sd[0] * sd[1], atol=1e-5)
    for k in range(2):
        of_states = np.array([gradients[c][k] for c in states]).reshape(3, 3)
        expected = of_states.mean(axis=1) - of_states.mean()
        assert_allclose(found[6 + k, :3], expected * sd[k], atol=1e-6)
    at_zero = np.array([log_p(codes, np.zeros(2)) for codes in states]).reshape(3, 3)
    assert_allclose(biases[:3], at_zero.mean(axis=1) - at_zero.mean(), atol=1e-9)
    assert_array_equal(found, found.T)


def test_moments_of_a_mixture():
    gaussians = small_model(3).gaussians
    p = np.exp(gaussians.log_weights)
    second = sum(
        q * (s + np.outer(a, a))
        for q, a, s in zip(p, gaussians.intercepts, gaussians.covariances, strict=True)
    )
    mean, covariance = gaussians.moments
    assert_allclose(mean, p @ gaussians.intercepts)
    assert_allclose(covariance, second - np.outer(mean, mean))


def test_slopes_of_levels_at_which_there_is_no_score():
    """A column with an atom: its score has the same means where it exists, and no slope there."""
    rng, layout = np.random.default_rng(0), JointLayout(np.array([2, 3]), np.array([True, False]))
    intercept, slopes = rng.normal(size=1), rng.normal(size=(1, 5))
    a, b = without_own(intercept, slopes, layout)
    x = np.array([0, 1, 0, 0, 1.0])
    assert_allclose(a + b @ x, intercept + slopes @ x)
    assert (b[0, :2] == 0).all() and layout.sizes.tolist() == [3, 3]
    assert layout.of_scores.tolist() == [False, False, True, False, False, False]


def test_parameters_of_words_of_two_values_are_those_of_spins():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"bit": rng.integers(2, size=200), "word": rng.choice(["a", "b"], 200)})
    X["spend"] = np.where(X["bit"] + 2 * rng.random(200) < 1.5, 0.0, rng.normal(size=200))
    model = Location(alpha=0.0).fit(X)
    assert model._coding.is_binary and model._layout().sizes.tolist() == [2, 2, 3]
    places = places_of_categories(model._coding, model._layout())
    spins = np.append(model.intercept_, model.coupling_[np.triu_indices(3, 1)])
    potts, order = model._model().potts, model._layout().order
    coupling = np.pad(potts.coupling, (0, 1))[np.ix_(order, order)]
    intercept = np.pad(potts.intercept, (0, 1))[order]
    expected = as_parameters(coupling, intercept, model._layout().sizes)
    assert_allclose(np.abs(np.where(places < 0, 0, spins[places])), np.abs(expected), atol=1e-12)


def chain(n, seed):
    """Words and numbers with the edges word - x, bit - x and x - y, and no others.

    The words depend on each other, as both go with x; given x they do not.
    """
    rng = np.random.default_rng(seed)
    of_word, of_bit = np.array([-0.6, 0.0, 0.6]), np.array([-0.6, 0.6])
    p = np.exp(np.outer(of_word, of_bit))
    states = rng.choice(6, n, p=(p / p.sum()).ravel())
    word, bit = np.divmod(states, 2)
    x = of_word[word] + of_bit[bit] + rng.normal(size=n)
    y = 0.5 * x + rng.normal(size=n)
    return pd.DataFrame({"word": np.array(list("abc"))[word], "bit": bit, "x": x, "y": np.exp(y)})


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_a_mixed_graph_is_found(missing):
    """1,500 rows: edges by p < 1e-6, the others by p > 1e-4: a false alarm in 3,000."""
    X = chain(1500, 0)
    X = X.mask(np.random.default_rng(1).random(X.shape) < missing) if missing else X
    model = Location().fit(X)
    p = statistics.inference(model, X).pair_p_value()
    edges = {(0, 2), (1, 2), (2, 3)}
    for pair in zip(*np.triu_indices(4, 1), strict=True):
        assert p[pair] < 1e-6 if pair in edges else p[pair] > 1e-4
    if not missing:
        alone = FVBMPseudoLikelihood().fit(X[["word", "bit"]])
        assert statistics.inference(alone, X[["word", "bit"]]).pair_p_value()[0, 1] < 1e-6
    scores = model.interaction_scores(apc=False)
    absent = max(scores[j, k] for j, k in [(0, 1), (0, 3), (1, 3)])
    assert min(scores[pair] for pair in edges) > 2 * absent


@pytest.fixture(scope="module")
def X():
    return numbers_and_words(400)


@pytest.fixture(scope="module")
def model(X):
    return Location().fit(X)


def test_scores_and_graphs_have_the_joint_network(model, X):
    joint, scores = statistics.joint_network(model), model.interaction_scores(apc=False)
    assert joint.names.tolist() == ["x", "word=a", "word=b", "word=c", "y"]
    assert joint.columns.tolist() == [0, 1, 1, 1, 2]
    assert_allclose(scores[0, 2], 2 * abs(joint.coupling[0, 4]))
    assert_allclose(scores[0, 1], np.sqrt(2) * np.linalg.norm(joint.coupling[0, 1:4]))
    assert model.interaction_scores().sum() < scores.sum()
    networkx = pytest.importorskip("networkx")
    graph = statistics.to_networkx(model)
    assert_allclose(networkx.to_numpy_array(graph), scores)
    edge = graph.edges["x", "y"]
    assert_allclose(edge["partial_correlation"], joint.coupling[0, 4])
    assert graph.nodes["y"] == {"intercept": joint.intercept[4]}
    result = statistics.inference(model, X)
    tested = statistics.to_networkx(model, result)
    assert tested.edges["x", "y"]["p_value"] == result.pair_p_value()[0, 2]
    estimates = dict(zip(result.names, result.estimate, strict=True))
    assert tested.edges["x", "y"]["partial_correlation"] == estimates["m[x,y]"]
    assert tested.nodes["word"]["intercept[b]"] == estimates["b[word=b]"]
    with pytest.raises(ValueError, match="returns for this fit"):
        other = numbers_and_words(100).rename(columns={"y": "v"})
        statistics.to_networkx(model, statistics.inference(Location().fit(other), other))
    assert_allclose(statistics.centrality(model)["strength"], scores.sum(axis=0))


def test_without_numbers_it_is_the_network():
    X = numbers_and_words(100)[["word"]].assign(bit=np.arange(100) % 2)
    for table in (X, X[["bit"]].assign(other=np.arange(100) % 4 // 2)):
        model = FVBMPseudoLikelihood().fit(table)
        joint = statistics.joint_network(model)
        assert_array_equal(joint.coupling, model.coupling_)
        assert_array_equal(joint.names, model.get_feature_names_out())


@pytest.mark.parametrize("kind", ["heatmap", "graph"])
def test_pictures(model, X, kind):
    matplotlib.use("agg")
    display = CouplingDisplay.from_estimator(model, X, kind=kind)
    if kind == "heatmap":
        assert display.image_.get_array().shape == (5, 5)
    else:
        assert {tuple(pair) for pair in display.pairs_} == {(0, 1), (0, 2)}
    matplotlib.pyplot.close(display.figure_)


def test_tables_with_gaps_atoms_and_values_that_do_not_occur():
    X = with_gaps(wages(300)).assign(one="x")
    X["city"] = X["city"].astype(pd.CategoricalDtype([*X["city"].dropna().unique(), "Nowhere"]))
    result = statistics.inference(Location().fit(X), X)
    known = ["Nowhere" not in name and "one=" not in name for name in result.names]
    assert np.isfinite(result.std_err[known]).all()
    assert np.isnan(result.std_err[np.invert(known)]).all()
    assert np.isfinite(result.wald_test([("age", "wage"), ("share", "wage")]).p_value)
    assert np.isfinite(result.pair_p_value()[1, 2])


def test_columns_of_numbers_only():
    X = numbers_and_words(150)[["x", "y"]]
    names = statistics.inference(Location().fit(X), X).names
    assert names.tolist() == ["b[x]", "b[y]", "m[x,y]"]


def test_a_sparse_network_estimates_on_other_rows():
    class Sparse(SparseFVBM):
        _scored_kinds = ("number", "auto")

    X = chain(600, 1)
    result = statistics.inference(Sparse(), X, split=0.5, random_state=0)
    assert result.pair_p_value()[2, 3] < 1e-6
    with pytest.raises(ValueError, match="split"):
        statistics.inference(Sparse().fit(X), X)
