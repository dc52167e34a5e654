"""Couplings of numbers with normal scores: the joint network, its standard errors and tests."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from contract.estimators import Location
from contract.test_numbers import wages, with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from test_location import numbers_and_words, small_network

from oracles import differences
from private import JointLayout, PottsModel, joint_network, location_gaussians, to_zero_sum
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics

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
    rng, network = np.random.default_rng(0), small_network(0)
    means, slopes, root = (rng.normal(size=(n, m)) for n, m in ((1, 2), (2, 6), (2, 4)))
    gaussians = location_gaussians.Gaussians(np.zeros(1), means, slopes, (root @ root.T / 4)[None])

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
    return numbers_and_words(200)


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


def test_tables_with_gaps_atoms_and_values_that_do_not_occur():
    X = with_gaps(wages(150)).assign(one="x")
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
        _need = SparseFVBM()._need._replace(scored=("number", "auto"))

    X = chain(400, 1)
    result = statistics.inference(Sparse(), X, split=0.5, random_state=0)
    assert result.pair_p_value()[2, 3] < 1e-6
    with pytest.raises(ValueError, match="split"):
        statistics.inference(Sparse().fit(X[:100]), X)
