"""Pictures of paths of penalties and of contacts: what they show."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM
from sklearn_boltz.datasets import make_alignment
from sklearn_boltz.inspection import ContactMapDisplay, PathDisplay, plot_logo

pytestmark = pytest.mark.usefixtures("closed_figures")


@pytest.fixture(scope="module")
def chain():
    """Six columns, each mostly equal to the one before or not, and one that is constant."""
    rng = np.random.default_rng(0)
    flips = rng.choice([-1, 1], size=(400, 6), p=[0.25, 0.75])
    X = np.cumprod(flips, axis=1) * [1, 1, 1, -1, -1, -1]
    return pd.DataFrame(np.column_stack([X, np.ones(400, dtype=int)]), columns=list("abcdefg"))


@pytest.mark.parametrize(
    ("alpha", "best", "ylabel"),
    [("ebic", np.min, "EBIC"), ("cv", np.max, "held-out\nlog pseudo-likelihood")],
)
def test_path(chain, alpha, best, ylabel):
    estimator = SparseFVBM(penalty="l1", alpha=alpha).fit(chain)
    path, pairs = estimator.path_, list(combinations(range(7), 2))
    display = PathDisplay.from_estimator(estimator, n_names=1)
    assert display.pairs.tolist() == [", ".join("abcdefg"[j] for j in pair) for pair in pairs]
    at_fit = estimator.coupling_[np.triu_indices(7, 1)]
    assert_array_equal(display.selected_, at_fit != 0)
    for line, (j, k) in zip(display.lines_, pairs, strict=True):
        assert_array_equal(line.get_xdata(), path.alphas)
        assert_array_equal(line.get_ydata(), path.coupling[:, j, k])
    # Signs have a hue and a line, and so has what is not selected.
    styles = [(line.get_color(), line.get_linestyle()) for line in display.lines_]
    of_signs = {(style, sign) for style, sign in zip(styles, np.sign(at_fit), strict=True)}
    assert len(of_signs) == len(set(styles)) == 3
    criterion, edges = display.axes_["criterion"], display.axes_["n_edges"]
    ((at,), (value,)) = criterion.lines[-1].get_data()
    assert at == pytest.approx(estimator.alpha_) and value == best(display.criterion)
    assert_array_equal(edges.lines[0].get_ydata(), path.n_edges)
    assert criterion.get_ylabel() == ylabel and edges.get_ylabel() == "edges"
    # The penalty falls from left to right.
    assert criterion.get_xlim() == pytest.approx((path.alphas[0], path.alphas[-1]), rel=0.02)
    strongest = display.pairs[np.abs(at_fit).argmax()]
    assert [text.get_text() for text in display.axes_["coupling"].texts] == [strongest]
    display.figure_.canvas.draw()
    # Of one variable.
    _, axes = plt.subplots(2, 1)
    display = PathDisplay.from_estimator(estimator, "b", ax=axes)
    assert display.figure_ is axes[0].figure and display.pairs[:2].tolist() == ["b, a", "b, c"]
    others = np.delete(path.coupling[:, 1], 1, axis=1)
    assert_array_equal(display.coupling, others)
    n_edges = display.axes_["n_edges"].lines[0].get_ydata()
    assert_array_equal(n_edges, np.count_nonzero(others, axis=1))
    assert_array_equal(PathDisplay.from_estimator(estimator, 1).coupling, others)


def test_the_path_of_the_second_penalty(chain):
    """The smallest penalty with the pairs of the least criterion."""
    model = SparseFVBM().fit(chain)
    display = PathDisplay.from_estimator(model)
    pairs = [model.path_.coupling[k] != 0 for k in range(len(model.alphas_))]
    (at,) = np.flatnonzero(model.alphas_ == model.alpha_)
    assert_array_equal(pairs[at], pairs[np.argmin(display.criterion)])
    assert display.axes_["criterion"].get_ylabel() == "criterion"
    assert_array_equal(display.selected_, model.coupling_[np.triu_indices(7, 1)] != 0)
    empty = SparseFVBM().fit(np.random.default_rng(0).integers(2, size=(200, 4)))
    display = PathDisplay.from_estimator(empty)
    display.figure_.canvas.draw()
    assert len(display.alphas) == 1 and not display.selected_.any()


def test_path_of_nodes(chain):
    estimator = SparseFVBM(penalty="l1", nodewise="and").fit(chain)
    path, ends = estimator.path_, []
    for node, name in enumerate("abcdef"):
        display = PathDisplay.from_estimator(estimator, name)
        assert display.alpha == estimator.alpha_[node]
        # The path of a column may end before those of others.
        going = np.isfinite(path.alphas[:, node])
        ends.append(going.sum())
        assert_array_equal(display.lines_[0].get_xdata(), path.alphas[going, node])
        others = np.delete(path.coupling[going, node], node, axis=1)
        assert_array_equal([line.get_ydata() for line in display.lines_], others.T)
        n_edges = display.axes_["n_edges"].lines[0].get_ydata()
        assert_array_equal(n_edges, path.n_edges[going, node])
        # Its neighbours in the chain, with the AND rule; there may be more in its own equation.
        kept = np.delete(estimator.coupling_[node], node) != 0
        assert (display.selected_ >= kept).all() and kept.any()
        limit = display.axes_["coupling"].get_xlim()[0]
        assert limit == pytest.approx(path.alphas[0, node], rel=0.02)
        plt.close(display.figure_)
    assert len(set(ends)) > 1
    with pytest.raises(ValueError, match="the chosen variable"):  # it is constant
        PathDisplay.from_estimator(estimator, 6)


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


def test_without_contacts_or_pairs(potts):
    display = ContactMapDisplay.from_estimator(potts, min_separation=1)
    assert np.isnan(display.precision_) and np.isnan(display.chance_)
    assert display.ax_.get_title() == "10 pairs with the highest scores"
    assert list(drawn(display)) == ["not known"]
    display = ContactMapDisplay.from_estimator(potts, np.empty((0, 2)), min_separation=10)
    assert display.pairs_.shape == (0, 2) and np.isnan(display.precision_)
    display.figure_.canvas.draw()


def test_pairs_less_than_six_sites_apart_are_left_out():
    assert ContactMapDisplay(scores=np.ones((8, 8))).pairs_.tolist() == [[0, 6], [0, 7], [1, 7]]


def test_letters_of_a_logo_fill_their_boxes():
    heights = [[0.5, 0.2, -0.3, 0.0], [0.0, -1.0, 0.001, 2.0]]
    ax = plot_logo(heights, "ACGU", positions=[7, 9])
    (letters,) = ax.collections
    # (left, bottom, width, height), those nearest to the axis first. The smallest is left out.
    boxes = {
        "C": (-0.45, 0, 0.9, 0.2), "G": (-0.45, -0.3, 0.9, 0.3), "A": (-0.45, 0.2, 0.9, 0.5),
        "C below": (0.55, -1, 0.9, 1), "U": (0.55, 0, 0.9, 2),
    }  # fmt: skip
    paths = letters.get_paths()
    assert_allclose([path.get_extents().bounds for path in paths], list(boxes.values()), atol=1e-6)
    bold = FontProperties(weight="bold")
    for path, name in zip(paths, boxes, strict=True):
        assert_array_equal(path.codes, TextPath((0, 0), name[0], prop=bold).codes)
    colors = letters.get_facecolor()
    assert_array_equal(colors[0], colors[3])
    assert len(np.unique(colors, axis=0)) == 4
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["7", "9"]
    assert ax.get_ylim()[0] <= -1 < 2 <= ax.get_ylim()[1]
