"""Pictures of networks: what they show, and that it can be read."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.inspection import CouplingDisplay

pytestmark = pytest.mark.usefixtures("closed_figures")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(500, 5))
    X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    X[:, 4] = -X[:, 1] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    return X


@pytest.fixture(scope="module")
def model(X):
    return FVBMPseudoLikelihood().fit(X)


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(0)
    home = rng.choice(["city", "town", "village"], 400)
    travels = np.where(rng.random(400) < 0.6, home, rng.choice(["city", "town", "village"], 400))
    travels = pd.Series(travels).map({"city": "bus", "town": "bicycle", "village": "car"})
    return pd.DataFrame({"home": home, "age": rng.integers(2, size=400), "travels": travels})


@pytest.fixture(scope="module")
def survey_model(survey):
    return FVBMPseudoLikelihood(alpha=0.01).fit(survey)


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def sparse_network(n_nodes, seed, names=None):
    """A display of a random network with three edges a node."""
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(size=(n_nodes, n_nodes)), 1)
    coupling *= rng.random(coupling.shape) < 6 / n_nodes
    names = names or [f"x{j}" for j in range(n_nodes)]
    return CouplingDisplay(coupling=coupling + coupling.T, names=names)


def test_heatmap(model, X):
    display = CouplingDisplay.from_estimator(model)
    shown = display.image_.get_array()
    assert_array_equal(shown[~np.eye(5, dtype=bool)], model.coupling_[~np.eye(5, dtype=bool)])
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(model.coupling_).max()
    assert tick_labels(display.ax_.xaxis) == tick_labels(display.ax_.yaxis) == display.names
    assert display.significant is None and not display.ax_.collections
    hatched = CouplingDisplay.from_estimator(model, X, colorbar=False, limit=2)
    assert len(hatched.ax_.collections[0].get_paths()) == 20 - hatched.significant.sum()
    assert hatched.colorbar_ is None and hatched.image_.get_clim() == (-2, 2)


def test_significant_edges(model, X):
    result = statistics.inference(model, X)
    display = CouplingDisplay.from_estimator(model, X, kind="graph", significance_level=0.01)
    assert_array_equal(display.significant, result.adjusted_p_value() < 0.01)
    found = set(map(tuple, np.argwhere(np.triu(display.significant)).tolist()))
    assert {(0, 2), (1, 4)} <= found == set(map(tuple, display.pairs_.tolist()))
    for (j, k), segment in zip(display.pairs_, display.edges_.get_segments(), strict=True):
        assert_allclose(segment, display.positions_[[j, k]])
    all_edges = CouplingDisplay.from_estimator(model, kind="graph")
    assert len(all_edges.pairs_) == 10
    assert_array_equal(np.argsort(np.abs(model.coupling_[tuple(all_edges.pairs_.T)])), range(10))


def test_number_and_strength_of_edges(model):
    display = CouplingDisplay.from_estimator(model, kind="graph", n_edges=3, groups="aabbb")
    assert len(display.pairs_) == 3
    _, legend = legends(display)
    assert legend.get_title().get_text() == "coupling\n(3 strongest\nof 10)"
    least = np.sort(np.abs(model.coupling_[np.triu_indices(5, 1)]))[-4]
    assert len(display.plot(kind="graph", min_coupling=least).pairs_) == 4
    dense = CouplingDisplay(coupling=1 - np.eye(20), names=list(map(str, range(20))))
    for options, n_edges in (({}, 40), ({"n_edges": None}, 190), ({"min_coupling": 2.0}, 0)):
        assert len(dense.plot(kind="graph", layout="circle", **options).pairs_) == n_edges


def test_categorical_columns_have_a_node_each(survey_model, survey):
    display = CouplingDisplay.from_estimator(survey_model, kind="graph")
    scores = survey_model.interaction_scores(apc=False)
    assert [text.get_text() for text in nodes(display)] == ["home", "age", "travels"]
    assert_array_equal(display.pairs_[-1], [0, 2])
    widths = display.edges_.get_linewidths()
    strengths = scores[tuple(display.pairs_.T)]
    assert_allclose(np.diff(widths) / np.diff(strengths), np.ptp(widths) / np.ptp(strengths))
    labels = [text.get_text() for text in legends(display)[-1].get_texts()]
    assert float(labels[0]) == pytest.approx(scores[0, 2], rel=0.05)
    significant = CouplingDisplay.from_estimator(survey_model, survey, kind="graph")
    assert_array_equal(significant.pairs_, [[0, 2]])
    p_value = statistics.inference(survey_model, survey).adjusted_p_value()
    assert_array_equal(significant.significant, p_value < 0.05)


def nodes(display):
    return [text for text in display.ax_.texts if text.get_bbox_patch() is not None]


def legends(display):
    return [child for child in display.ax_.get_children() if hasattr(child, "get_texts")]


def test_signs_have_a_hue_and_a_line(model):
    display = CouplingDisplay.from_estimator(model, kind="graph")
    coupling = model.coupling_[tuple(display.pairs_.T)]
    red, _, blue, _ = display.edges_.get_colors().T
    assert_array_equal(red > blue, coupling > 0)
    dashed = [line[1] is not None for line in display.edges_.get_linestyles()]
    assert_array_equal(dashed, coupling < 0)
    assert_array_equal(np.argsort(display.edges_.get_linewidths()), range(10))
    labels = [text.get_text() for text in legends(display)[-1].get_texts()]
    assert labels[0] == f"{coupling.max():+.2g}" and labels[-1] == f"−{-coupling.min():.2g}"


def test_ordinal_columns_have_the_signs_of_their_trends():
    z = np.random.default_rng(0).normal(size=(300, 4))
    z[:, 1:3] += np.outer(z[:, 0], [0.5, -0.5])
    X = np.digitize(z, [-1, 0, 1])
    X[:, 3] = X[:, 3] > 1
    ordinal = FVBMPseudoLikelihood(columns=dict.fromkeys(range(3), "ordinal")).fit(X)
    display = CouplingDisplay.from_estimator(ordinal, X, kind="graph")
    assert sorted(display.pairs_.tolist()) == [[0, 1], [0, 2]]
    dashed = [line[1] is not None for line in display.edges_.get_linestyles()]
    assert_array_equal(dashed, display.pairs_[:, 1] == 2)
    frame = statistics.inference(ordinal, X).to_frame()
    found, tested = display.norms[np.triu_indices(4, 1)], frame["p_value"].values < 0.01
    assert tested.sum() == 2  # signs of the others, about 0, may differ without the penalty
    assert_array_equal(np.sign(found[tested]), np.sign(frame["coupling"][tested]))
    assert_allclose(np.abs(display.norms), ordinal.interaction_scores(apc=False))
    mixed = FVBMPseudoLikelihood(columns={0: "ordinal", 1: "ordinal", 2: "nominal"}).fit(X)
    assert (CouplingDisplay.from_estimator(mixed, kind="graph").norms >= 0).all()


def test_groups():
    names, groups = ["one", "two", "three", "four"], ["left", "right", "left", "middle"]
    display = sparse_network(4, 0, names).plot(kind="graph", groups=groups)
    colours = [text.get_bbox_patch().get_facecolor() for text in nodes(display)]
    assert colours[0] == colours[2] and len(set(colours)) == 3
    legend = legends(display)[0]
    labels = [text.get_text() for text in legend.get_texts()]
    patches = [patch.get_facecolor() for patch in legend.get_patches()]
    by_label = dict(zip(labels, patches, strict=True))
    assert list(by_label) == ["left", "right", "middle"]
    assert [by_label[group] for group in groups] == colours
    assert not legends(display.plot(kind="graph", groups=groups, legend=False))


def assert_apart(display):
    """In pixels, as drawn."""
    display.figure_.canvas.draw()
    texts, window = nodes(display), display.ax_.get_window_extent()
    boxes = np.array([text.get_bbox_patch().get_window_extent().get_points() for text in texts])
    inside = np.array([text.get_window_extent().get_points() for text in texts])
    assert min(text.get_fontsize() for text in texts) >= 5
    low, high = boxes[:, 0], boxes[:, 1]
    assert (low <= inside[:, 0]).all() and (inside[:, 1, 0] <= high[:, 0]).all()
    assert (low >= window.p0 - 2).all() and (high <= window.p1 + 2).all()
    overlap = (low[:, None] + 2 < high).all(axis=2) & (low + 2 < high[:, None]).all(axis=2)
    assert_array_equal(overlap, np.eye(len(texts), dtype=bool))


LONG_NAMES = ["Liberal Democrats", "Opposition", "Ann Castellanos", "x", "Al Wu"]


@pytest.mark.parametrize(
    ("n_nodes", "layout"), [(1, "spring"), (50, "spring"), (100, "kamada_kawai")]
)
def test_every_node_can_be_read(n_nodes, layout):
    """At the default size of a figure: names in their boxes, no box over another, none cut off."""
    names = [LONG_NAMES[j % 5] for j in range(n_nodes)] if n_nodes < 100 else None
    display = sparse_network(n_nodes, 0, names)
    groups = np.arange(n_nodes) % 4
    assert_apart(display.plot(kind="graph", groups=groups, layout=layout, random_state=0))


def test_given_places():
    places = np.arange(10.0).reshape(5, 2) ** 2
    display = sparse_network(5, 0, LONG_NAMES).plot(kind="graph", layout=places)
    assert_array_equal(display.positions_, places)
    assert_apart(display)


@pytest.mark.parametrize("n_nodes", [2, 50])
def test_circle_without_networkx(n_nodes, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    display = sparse_network(n_nodes, 0).plot(kind="graph")
    assert_apart(display)
    places = display.positions_
    assert_array_equal(display.plot(kind="graph", layout="circle").positions_, places)
    for layout in ("spring", "kamada_kawai"):
        with pytest.raises(ImportError, match="pip install networkx"):
            display.plot(kind="graph", layout=layout)


def test_pictures_of_hard_cases():
    constant = FVBMPseudoLikelihood().fit(np.ones((5, 3), dtype=int))
    for kind in ("heatmap", "graph"):
        display = CouplingDisplay.from_estimator(constant, kind=kind, groups=["a", "b", "a"])
        display.figure_.canvas.draw()
    assert len(display.pairs_) == 0
    figure, axes = plt.subplots(1, 2)
    again = display.plot(kind="graph", ax=axes[1], layout="circle")
    assert again is display and display.ax_ is axes[1] and display.figure_ is figure
    empty = CouplingDisplay(coupling=np.zeros((2, 2)), names=["", " "])
    empty.plot(kind="graph").figure_.canvas.draw()
