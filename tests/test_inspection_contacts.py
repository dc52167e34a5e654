"""Pictures of contacts and of letters: what they show."""

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import make_alignment
from sklearn_boltz.inspection import ContactMapDisplay, plot_logo

pytestmark = pytest.mark.usefixtures("closed_figures")


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
