"""Pictures of paths of penalties and of contacts: what they show."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from private import apart
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM
from sklearn_boltz.datasets import make_alignment
from sklearn_boltz.inspection import ContactMapDisplay, PathDisplay

pytestmark = pytest.mark.usefixtures("closed_figures")


def with_path(estimator, criterion="ebic", nodewise=False):
    """A fitted estimator with a path, whose couplings are those of the fit, shrunk."""
    estimator = copy.copy(estimator)
    alphas = np.geomspace(1, 0.01, 20)
    shrink = np.maximum(np.abs(estimator.coupling_) - alphas[:, None, None], 0)
    coupling = np.sign(estimator.coupling_) * shrink
    value = (np.log(alphas) + 2) ** 2 * (1 if criterion == "ebic" else -1)
    estimator.alpha_ = alphas[np.argmin((np.log(alphas) + 2) ** 2)]
    n_edges = np.count_nonzero(np.triu(coupling, 1), axis=(1, 2))
    if nodewise:
        d = estimator.n_features_in_
        n_edges = np.count_nonzero(coupling, axis=2)
        scale = np.arange(1, d + 1)
        alphas, value = np.outer(alphas, scale), np.outer(value, scale)
        # The path of the first column ends before those of others.
        alphas[15:, 0] = value[15:, 0] = np.nan
        estimator.alpha_ = estimator.alpha_ * scale
    estimator.path_ = Bunch(alphas=alphas, coupling=coupling, n_edges=n_edges, **{criterion: value})
    return estimator


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(500, 4))
    X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    X[:, 3] = -X[:, 1] * rng.choice([-1, 1], size=500, p=[0.3, 0.7])
    return FVBMPseudoLikelihood().fit(pd.DataFrame(X, columns=list("abcd")))


def test_path(model):
    estimator = with_path(model)
    display = PathDisplay.from_estimator(estimator, n_names=1)
    assert display.pairs.tolist() == ["a, b", "a, c", "a, d", "b, c", "b, d", "c, d"]
    chosen = np.flatnonzero(estimator.path_.alphas == estimator.alpha_)[0]
    at_fit = estimator.path_.coupling[chosen][np.triu_indices(4, 1)]
    assert_array_equal(display.selected_, at_fit != 0)
    assert display.selected_.sum() == 2
    pairs = zip(display.lines_, zip(*np.triu_indices(4, 1), strict=True), strict=True)
    for line, (j, k) in pairs:
        assert_array_equal(line.get_xdata(), estimator.path_.alphas)
        assert_array_equal(line.get_ydata(), estimator.path_.coupling[:, j, k])
    styles = [(line.get_color(), line.get_linestyle()) for line in display.lines_]
    assert styles[1] != styles[4] and len(set(styles)) == 3
    assert styles[0] == styles[2] == styles[3] == styles[5]
    criterion, edges = display.axes_["criterion"], display.axes_["n_edges"]
    marked = criterion.lines[-1].get_data()
    assert_allclose(np.ravel(marked), [estimator.alpha_, estimator.path_.ebic.min()])
    assert_array_equal(edges.lines[0].get_ydata(), estimator.path_.n_edges)
    assert criterion.get_ylabel() == "EBIC" and edges.get_ylabel() == "edges"
    # The penalty falls from left to right.
    assert criterion.get_xlim() == pytest.approx((1, 0.01), rel=0.02)
    assert [text.get_text() for text in display.axes_["coupling"].texts] == ["a, c"]


def test_path_of_cross_validation_and_of_one_variable(model):
    estimator = with_path(model, "cv_score")
    _, axes = plt.subplots(2, 1)
    display = PathDisplay.from_estimator(estimator, "b", ax=axes)
    assert display.figure_ is axes[0].figure
    assert axes[1].get_ylabel() == "held-out\nlog pseudo-likelihood"
    assert display.pairs.tolist() == ["b, a", "b, c", "b, d"]
    others = estimator.path_.coupling[:, 1, [0, 2, 3]]
    assert_array_equal(display.coupling, others)
    n_edges = display.axes_["n_edges"].lines[0].get_ydata()
    assert_array_equal(n_edges, np.count_nonzero(others, axis=1))
    assert_array_equal(PathDisplay.from_estimator(estimator, 1).coupling, others)


def test_path_of_nodes(model):
    estimator = with_path(model, nodewise=True)
    display = PathDisplay.from_estimator(estimator, "a")
    assert display.alpha == estimator.alpha_[0]
    assert_array_equal(display.lines_[0].get_xdata(), estimator.path_.alphas[:15, 0])
    assert_array_equal(display.lines_[1].get_ydata(), estimator.path_.coupling[:15, 0, 2])
    other = PathDisplay.from_estimator(estimator, "c")
    n_edges = other.axes_["n_edges"].lines[0].get_ydata()
    assert_array_equal(n_edges, estimator.path_.n_edges[:, 2])
    assert other.axes_["coupling"].get_xlim()[0] == pytest.approx(3, rel=0.02)


def test_path_of_categories():
    X = np.random.default_rng(0).integers(3, size=(300, 3))
    X[:, 2] = (X[:, 0] + (np.arange(300) % 4 == 0)) % 3
    estimator = with_path(FVBMPseudoLikelihood(alpha=0.1).fit(X))
    display = PathDisplay.from_estimator(estimator)
    block = estimator.path_.coupling[:, :3, 6:]
    assert_allclose(display.coupling[:, 1], np.linalg.norm(block, axis=(1, 2)))
    assert display.axes_["coupling"].get_ylabel() == "norm of the block"


@pytest.fixture(scope="module")
def chain():
    """Six columns, each mostly equal to the one before, and one that is constant."""
    rng = np.random.default_rng(0)
    flips = rng.choice([-1, 1], size=(400, 6), p=[0.25, 0.75])
    return np.column_stack([np.cumprod(flips, axis=1), np.ones(400, dtype=int)])


@pytest.mark.parametrize("alpha", ["ebic", "cv"])
def test_path_of_a_fit(chain, alpha):
    estimator = SparseFVBM(penalty="l1", alpha=alpha).fit(chain)
    display = PathDisplay.from_estimator(estimator)
    assert_array_equal(display.selected_, estimator.coupling_[np.triu_indices(7, 1)] != 0)
    n_edges = display.axes_["n_edges"].lines[0].get_ydata()
    assert_array_equal(n_edges, estimator.path_.n_edges)
    ((at,), (value,)) = display.axes_["criterion"].lines[-1].get_data()
    best = {"ebic": np.min, "cv": np.max}[alpha]
    assert at == pytest.approx(estimator.alpha_) and value == best(display.criterion)
    display.figure_.canvas.draw()


def test_path_of_a_nodewise_fit(chain):
    estimator = SparseFVBM(penalty="l1", nodewise="and").fit(chain)
    for node in range(6):
        display = PathDisplay.from_estimator(estimator, node)
        alphas = display.lines_[0].get_xdata()
        n_edges = display.axes_["n_edges"].lines[0].get_ydata()
        assert_array_equal(n_edges, estimator.path_.n_edges[: len(alphas), node])
        # Its neighbours in the chain, with the AND rule; there may be more in its own equation.
        kept = np.delete(estimator.coupling_[node], node) != 0
        assert (display.selected_ >= kept).all() and kept.any()
        plt.close(display.figure_)
    with pytest.raises(ValueError, match="the chosen variable"):  # it is constant
        PathDisplay.from_estimator(estimator, 6)


@given(st.lists(st.floats(-100, 100, width=32), max_size=8), st.floats(0.01, 10))
def test_names_are_apart(heights, least):
    moved = apart(np.array(heights), least)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(moved[order]) >= least - 1e-4).all()
    if len(heights) and np.diff(np.sort(heights)).min(initial=np.inf) > least:
        assert_allclose(moved, heights, atol=1e-4)


@pytest.fixture(scope="module")
def alignment():
    return make_alignment(800, 10, alphabet="dna", random_state=0)


@pytest.fixture(scope="module")
def potts(alignment):
    return FVBMPseudoLikelihood(alpha=0.01).fit(alignment.codes)


@pytest.mark.parametrize("apc", [False, True])
def test_best_pairs(potts, alignment, apc):
    options = {"apc": apc, "min_separation": 3, "n_pairs": 8}
    display = ContactMapDisplay.from_estimator(potts, alignment.contacts, **options)
    scores = potts.interaction_scores(apc=apc)
    pairs = [(i, j) for i in range(10) for j in range(i + 3, 10)]
    expected = sorted(pairs, key=lambda pair: -scores[pair])[:8]
    assert display.pairs_.tolist() == [list(pair) for pair in expected]
    contacts = set(map(tuple, alignment.contacts.tolist()))
    assert_array_equal(display.is_contact_, [pair in contacts for pair in expected])
    assert display.precision_ == np.mean([pair in contacts for pair in expected])
    assert display.chance_ == np.mean([pair in contacts for pair in pairs])


def drawn(display):
    """Predicted pairs by what the legend calls them."""
    lines = display.ax_.get_legend_handles_labels()
    return {
        label.split(" (")[0]: sorted(zip(*line.get_data()[::-1], strict=True))
        for line, label in zip(*lines, strict=True)
    }


def test_what_a_contact_map_shows(potts, alignment):
    options = {"min_separation": 1, "n_pairs": 20}
    display = ContactMapDisplay.from_estimator(potts, alignment.contacts, **options)
    shown = drawn(display)
    for label, value in (("contact", 1), ("no contact", 0)):
        chosen = display.pairs_[display.is_contact_ == value]
        assert shown[label] == sorted(map(tuple, chosen))
    lines, _ = display.ax_.get_legend_handles_labels()
    styles = [(line.get_color(), line.get_marker()) for line in lines]
    assert [len(set(of)) for of in zip(*styles, strict=True)] == [2, 2]
    # Known contacts are below the diagonal, predictions above it.
    below = np.argwhere(display.ax_.images[0].get_array().filled(0) == 1)
    assert sorted(map(tuple, below[:, ::-1])) == sorted(map(tuple, alignment.contacts))
    assert all(i < j for pairs in shown.values() for i, j in pairs)
    n_found = int(display.is_contact_.sum())
    assert display.ax_.get_title().startswith(f"{n_found} of 20 pairs are contacts (")


def test_distances(potts, alignment):
    """Contacts given as distances; some are not known, and do not count."""
    known = ContactMapDisplay.from_estimator(potts, alignment.contacts, min_separation=1)
    distances = np.where(known.known == 1, 8.0, 8.1)
    options = {"distances": distances, "min_separation": 1}
    display = ContactMapDisplay.from_estimator(potts, **options)
    assert_array_equal(display.is_contact_, known.is_contact_)
    assert (display.precision_, display.chance_) == (known.precision_, known.chance_)
    assert ContactMapDisplay.from_estimator(potts, **options, max_distance=8.2).precision_ == 1
    i, j = display.pairs_[0]
    distances[i, j] = distances[j, i] = np.nan
    display = ContactMapDisplay.from_estimator(potts, **options)
    assert np.isnan(display.is_contact_[0]) and display.precision_ == known.is_contact_[1:].mean()
    assert drawn(display)["not known"] == [(i, j)]
    assert display.ax_.images[0].get_array().mask[j, i]


def test_positions(potts):
    """Separations are those in the sequence, not in the table."""
    positions = np.array([1, 2, 3, 4, 5, 106, 107, 108, 109, 110])
    options = {"positions": positions, "min_separation": 50, "n_pairs": 99}
    display = ContactMapDisplay.from_estimator(potts, **options)
    assert len(display.pairs_) == 25
    assert (display.pairs_[:, 0] < 5).all() and (display.pairs_[:, 1] >= 5).all()
    for place, label in zip(display.ax_.get_xticks(), display.ax_.get_xticklabels(), strict=True):
        assert label.get_text() == str(positions[int(place)])


def test_without_contacts_or_pairs(potts):
    display = ContactMapDisplay.from_estimator(potts, min_separation=1)
    assert np.isnan(display.precision_) and np.isnan(display.chance_)
    assert display.ax_.get_title() == "10 pairs with the highest scores"
    assert list(drawn(display)) == ["not known"]
    display = ContactMapDisplay.from_estimator(potts, np.empty((0, 2)), min_separation=10)
    assert display.pairs_.shape == (0, 2) and np.isnan(display.precision_)
    display.figure_.canvas.draw()
