"""Networks as graphs and tables; centralities by brute force over all paths, and how stable."""

import sys
from functools import partial
from io import BytesIO
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from networks import categories, draw, fit, spins
from numpy.testing import assert_allclose, assert_array_equal

from private import SpinModel
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.statistics import CentralityStability, centrality, centrality_stability

networkx = pytest.importorskip("networkx")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 4))
    X[:, 2] = np.where(rng.random(400) < 0.7, 1 - X[:, 0], X[:, 2])
    X[:, 3] = 1
    return pd.DataFrame(X, columns=["home", "age", "travels", "constant"])


@pytest.fixture(scope="module")
def model(X):
    return FVBMPseudoLikelihood(alpha=0.0).fit(X)


@pytest.fixture(scope="module")
def result(model, X):
    return statistics.inference(model, X)


def matrix(graph, weight):
    return networkx.to_numpy_array(graph, weight=weight)


def test_binary_variables(model, result, X):
    graph = statistics.to_networkx(model, result)
    assert list(graph) == X.columns.tolist()
    intercepts = list(networkx.get_node_attributes(graph, "intercept").values())
    assert_array_equal(intercepts, model.intercept_)
    assert_array_equal(matrix(graph, "weight"), model.coupling_)
    assert_array_equal(matrix(graph, "strength"), np.abs(model.coupling_))
    assert graph.edges["travels", "home"]["sign"] == -1
    # No coupling, no edge: the constant column stands alone.
    assert graph.number_of_edges() == 3 and graph.degree("constant") == 0
    for j, k, edge in graph.edges(data=True):
        place = result.names.tolist().index(f"m[{j},{k}]")
        assert edge["std_err"] == result.std_err[place]
        assert edge["p_value"] == result.to_frame()["p_value"][(j, k)]


def test_categorical_variables(model, X):
    table = X.assign(age=np.random.default_rng(1).choice(["young", "old", "older"], len(X)))
    of_words = FVBMPseudoLikelihood(alpha=0.01).fit(table)
    tests = statistics.inference(of_words, table)
    graph = statistics.to_networkx(of_words, tests)
    assert_allclose(matrix(graph, "weight"), of_words.interaction_scores(apc=False))
    assert_array_equal(matrix(graph, "strength"), matrix(graph, "weight"))
    assert "sign" not in graph.edges["home", "age"]
    intercepts = [b for _, node in graph.nodes(data=True) for b in node.values()]
    assert_array_equal(intercepts, of_words.intercept_)
    assert list(graph.nodes["age"]) == ["intercept[old]", "intercept[older]", "intercept[young]"]
    for one, other, edge in graph.edges(data=True):
        assert edge["p_value"] == tests.wald_test([(one, other)]).p_value
    with pytest.raises(ValueError, match="inference must be what statistics"):
        statistics.to_networkx(model, tests)


@pytest.mark.parametrize("levels", [2, 3])
def test_graphs_can_be_written(levels):
    X = np.random.default_rng(0).integers(levels, size=(200, 4)).astype(np.float32)
    graph, file = statistics.to_networkx(FVBMPseudoLikelihood(alpha=0.01).fit(X)), BytesIO()
    networkx.write_graphml(graph, file)
    file.seek(0)
    again = networkx.read_graphml(file)
    assert list(again) == ["x0", "x1", "x2", "x3"]
    assert again.adj == graph.adj and again.nodes == graph.nodes


LABELS = ["a", "a", "b", "b", "c"]


def graph_of(weights):
    return networkx.from_numpy_array(weights)


def shortest(sizes, j, k):
    """The length of the shortest path of all, and what it passes; (inf, ()) without a path."""
    others = [i for i in range(len(sizes)) if i not in (j, k)]
    best = np.inf, ()
    for n in range(len(others) + 1):
        for between in permutations(others, n):
            steps = list(zip((j, *between), (*between, k), strict=True))
            if all(sizes[step] for step in steps):
                best = min(best, (sum(1 / sizes[step] for step in steps), between))
    return best


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_centralities_are_those_of_all_paths(share):
    """Of complete, sparse and disconnected graphs with couplings of both signs."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        weights = np.triu(rng.normal(size=(5, 5)) * (rng.random((5, 5)) < share), 1)
        weights += weights.T
        sizes, labels = np.abs(weights), np.array(LABELS)
        table = centrality(graph_of(weights), communities=LABELS)
        length, between = np.zeros((5, 5)), np.zeros(5)
        for j, k in combinations(range(5), 2):
            length[j, k], passed = shortest(sizes, j, k)
            length[k, j] = length[j, k]
            between[list(passed)] += 1
        reached = np.isfinite(length).sum(axis=1) - 1
        total = np.where(np.isfinite(length), length, 0).sum(axis=1)
        expected = np.divide(reached**2, 4 * total, where=total > 0, out=np.zeros(5))
        assert_allclose(table["closeness"], expected)
        assert_allclose(table["betweenness"], between)
        assert_allclose(table["strength"], sizes.sum(axis=1))
        bridges = [sum(sizes[j, k] for k in range(5) if labels[k] != labels[j]) for j in range(5)]
        assert_allclose(table["bridge_strength"], bridges)
        if share == 1:
            # As in qgraph, except for a factor.
            assert_allclose(table["closeness"] / 4, 1 / length.sum(axis=1))


def test_a_network_is_its_graph():
    rows = pd.DataFrame(spins(300, 5, same=0.8), columns=list("vwxyz"))
    for model in (fit(rows), SparseFVBM().fit(rows), fit(categories(300), alpha=0.01)):
        table, graph = centrality(model), statistics.to_networkx(model)
        pd.testing.assert_frame_equal(table, centrality(graph))
        assert_allclose(table["strength"], list(dict(graph.degree(weight="strength")).values()))
        assert "bridge_strength" not in table
    assert list(centrality(fit(rows)).index) == list("vwxyz")


def test_the_coefficient_is_the_largest_share_that_is_stable():
    correlations = np.array([[0.9] * 20, [0.7] * 19 + [0.1], [0.7] * 18 + [0.1] * 2, [0.6] * 20])
    result = CentralityStability("strength", np.array([0.1, 0.2, 0.3, 0.4]), correlations, 0.7)
    assert_allclose(result.probability, [1, 0.95, 0.9, 0])
    assert result.coefficient == 0.2
    frame = result.to_frame()
    assert_array_equal(frame.index, result.shares)
    assert_allclose(frame["mean"], correlations.mean(axis=1))
    assert_allclose(frame["low"], np.quantile(correlations, 0.025, axis=1))
    assert_allclose(frame["high"], np.quantile(correlations, 0.975, axis=1))
    assert CentralityStability("strength", result.shares, correlations - 0.3, 0.7).coefficient == 0
    assert "CentralityStability of strength: coefficient 0.2, for a correlation of 0.7" in repr(
        result
    )


@pytest.mark.parametrize("statistic", ["strength", "closeness", "betweenness", "bridge_strength"])
def test_a_sample_is_a_fit_of_fewer_rows(statistic):
    X, w, network = spins(80, 5), np.arange(80) % 3, FVBMPseudoLikelihood(alpha=0.05, tol=1e-10)
    options = {"statistic": statistic, "communities": LABELS, "shares": [0.5, 0.2], "n_samples": 2}
    result = centrality_stability(network, X, sample_weight=w, random_state=3, **options)
    repeated, generator = np.repeat(X, w, axis=0), np.random.default_rng(3)
    n, whole = len(repeated), centrality(network.fit(repeated), communities=LABELS)[statistic]
    assert_array_equal(result.shares, [0.2, 0.5])
    for share, correlations in zip(result.shares, result.correlations, strict=True):
        for correlation in correlations:
            size = n - round(share * n)
            rows = np.repeat(
                X, generator.multivariate_hypergeometric(w, size, method="marginals"), axis=0
            )
            part = centrality(network.fit(rows), communities=LABELS)[statistic]
            assert correlation == pytest.approx(np.corrcoef(part, whole)[0, 1], abs=1e-6)


def test_a_star_is_stable_and_chance_is_not():
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 0.5
    rows = draw(SpinModel(star, np.zeros(6)), 600)
    options = {"shares": [0.5, 0.75], "random_state": 0}
    assert centrality_stability(SparseFVBM(), rows, n_samples=5, **options).coefficient == 0.75
    noise = np.random.default_rng(0).choice([-1, 1], size=(150, 6))
    assert centrality_stability(fit(noise), noise, n_samples=10, **options).coefficient < 0.4


def test_a_table_in_latex(result):
    pytest.importorskip("jinja2")
    frame = result.to_frame(parameters=True)
    lines = frame.to_latex(escape=True, float_format="%.3f").splitlines()
    assert lines[2].count("&") == frame.shape[1] and r"std\_err" in lines[2]
    row = frame.loc["m[home,travels]"]
    written = next(line for line in lines if line.startswith("m[home,travels] "))
    assert written.split(" & ")[1:3] == [f"{row['estimate']:.3f}", f"{row['std_err']:.3f}"]
    styled = frame.style.format(precision=2).to_latex(hrules=True)
    assert r"\toprule" in styled and f"{row['estimate']:.2f}" in styled


def test_without_networkx_and_pandas(model, result, X, monkeypatch):
    resamples = statistics.bootstrap(model, X, 2, random_state=0)
    stability = partial(centrality_stability, model, X, n_samples=1, random_state=0)
    for package, verb in (
        ("networkx", partial(statistics.to_networkx, model)),
        ("networkx", partial(centrality, model)), ("pandas", result.to_frame),
        ("networkx", partial(stability, statistic="closeness")), ("pandas", resamples.to_frame),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=f"pip install {package}"):
            verb()
    assert len(result.estimate) == len(result.std_err) == 10
    assert stability().correlations.shape == (10, 1)


def test_the_table_without_pandas(monkeypatch):
    graph = graph_of(np.ones((3, 3)))  # A loop is no coupling.
    expected = centrality(graph)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = centrality(graph)
    assert_array_equal(table.variable, [0, 1, 2])
    assert_array_equal(table.strength, [2, 2, 2])
    assert_array_equal(table.closeness, expected["closeness"])
