"""A fitted network as a graph of networkx, and as a table."""

import sys
from functools import partial
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import FVBMPseudoLikelihood, statistics

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
        assert edge["p_value"] == result.p_value[place]


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


def test_a_table_in_latex(result):
    pytest.importorskip("jinja2")
    frame = result.to_frame()
    lines = frame.to_latex(escape=True, float_format="%.3f").splitlines()
    assert lines[2].count("&") == frame.shape[1] and r"std\_err" in lines[2]
    row = frame.loc["m[home,travels]"]
    written = next(line for line in lines if line.startswith("m[home,travels] "))
    assert written.split(" & ")[1:3] == [f"{row['estimate']:.3f}", f"{row['std_err']:.3f}"]
    styled = frame.style.format(precision=2).to_latex(hrules=True)
    assert r"\toprule" in styled and f"{row['estimate']:.2f}" in styled


def test_without_networkx_and_pandas(model, result, X, monkeypatch):
    resamples = statistics.bootstrap(model, X, 2, random_state=0)
    for package, verb in (
        ("networkx", partial(statistics.to_networkx, model)), ("pandas", result.to_frame),
        ("pandas", resamples.to_frame),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=f"pip install {package}"):
            verb()
    assert len(result.estimate) == len(result.std_err) == 10
