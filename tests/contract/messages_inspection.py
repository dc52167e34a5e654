"""Bad input to displays."""

from functools import partial

import numpy as np
from contract.frames import people
from contract.once import once
from matplotlib.figure import Figure
from networks import fit
from sklearn.utils import Bunch

from sklearn_boltz import SDCPRBM, TAPRBM, FVBMPseudoLikelihood, MaximumEntropy
from sklearn_boltz.datasets import make_bars_and_stripes
from sklearn_boltz.inspection import (
    ContactMapDisplay,
    CouplingDisplay,
    HistoryDisplay,
    LadderDisplay,
    LandscapeDisplay,
    MomentsDisplay,
    ReceptiveFieldDisplay,
    SampleDisplay,
    plot_logo,
)

SPINS = np.random.default_rng(0).choice([-1, 1], size=(200, 4))
CODES = np.random.default_rng(0).integers(3, size=(100, 4))
WORDS = np.where(SPINS > 0, "yes", "no").astype(object)
WORDS[3, 1] = None


@once
def network(table="spins", **params):
    rows = {"spins": SPINS, "codes": CODES, "words": WORDS}[table]
    return fit(rows, **({"alpha": 0.1} | params))


@once
def images():
    return SDCPRBM(6, max_iter=1, early_stopping=False, random_state=0).fit(
        make_bars_and_stripes(3)
    )


@once
def couplings(n_nodes=5):
    coupling = np.ones((n_nodes, n_nodes)) - np.eye(n_nodes)
    return CouplingDisplay(coupling=coupling, names=[f"x{j}" for j in range(n_nodes)])


@once
def moments():
    return MomentsDisplay.from_estimator(network(), SPINS, n_samples=10, random_state=0)


def show(display, estimator, *args, **options):
    """The call of `from_estimator`, with what makes the estimator."""
    return lambda: display.from_estimator(estimator(), *args, **options)


def graph(n_nodes=5, **options):
    return lambda: couplings(n_nodes).plot(**({"kind": "graph", "layout": "circle"} | options))


codes = partial(network, "codes")
contact_map = partial(show, ContactMapDisplay, codes)
fields = partial(show, ReceptiveFieldDisplay, images)
sparse = partial(network, penalty="l1", alpha="ebic")
rows = partial(partial, SampleDisplay.from_rows)


LADDER = Bunch(
    value=5.0, std_err=0.3, low=4.4, high=5.6, trusted=True, verdict="", method="ladder",
    acceptances=np.full(3, 0.5), log_partitions=np.arange(4.0),
)  # fmt: skip

CASES = {
    **{
        f"{display.__name__} of an estimator before fit": show(display, SDCPRBM)
        for display in (ReceptiveFieldDisplay, SampleDisplay, HistoryDisplay, LadderDisplay)
    },
    **{
        f"{display.__name__} of a network before fit": show(display, FVBMPseudoLikelihood)
        for display in (CouplingDisplay, ContactMapDisplay)
    },
    "history without the entry": show(HistoryDisplay, network, "cost"),
    "history against a word": show(HistoryDisplay, images, against="epochs"),
    "receptive fields by a word": fields(order="size"),
    "receptive fields by activity without X": fields(order="activity"),
    "receptive fields of no unit": fields(n_units=0),
    "receptive fields of another shape": fields(image_shape=(2, 4)),
    "images that are no squares": rows(np.ones((2, 8))),
    "images in no column": rows(np.ones((2, 9)), n_columns=0),
    "lines of different lengths": rows({"one": np.ones((1, 4)), "two": np.ones((2, 4))}),
    "no images": rows(np.ones((0, 4))),
    "images of words": rows(people()[["city", "member"]], image_shape=(1, 2)),
    "a map of words": lambda: LandscapeDisplay.from_estimator(
        TAPRBM(2, max_iter=1).fit(people()), people()
    ),
    "a ladder of a sum": lambda: LadderDisplay(images().log_partition("exact")).plot(),
    "one Axes for a ladder": lambda: LadderDisplay(LADDER).plot(ax=Figure().subplots()),
    "moments of codes": show(MomentsDisplay, codes, CODES),
    "moments of other columns": show(MomentsDisplay, network, SPINS[:, :1]),
    "moments of rows with gaps": show(MomentsDisplay, partial(network, "words"), WORDS),
    "z-scores of counts": lambda: moments().z_scores("count"),
    "one Axes for moments": lambda: moments().plot(ax=[Figure().subplots()]),
    "couplings as a word": graph(kind="circle"),
    "layout as a word": graph(layout="square"),
    "layout of too few nodes": graph(layout=np.ones((4, 2))),
    "no edges": graph(n_edges=0),
    "edges that are no integer": graph(n_edges=2.5),
    "a negative least coupling": graph(min_coupling=-1),
    "groups of too few nodes": graph(groups=["a", "b"]),
    "more groups than colours": graph(9, groups=range(9)),
    "rows for tests of a sparse network": show(
        CouplingDisplay, partial(network, penalty="l1"), SPINS
    ),
    "rows for tests of a network of triples": show(
        CouplingDisplay, partial(network, kind=MaximumEntropy, terms=((0, 1, 2),)), SPINS
    ),
    "contacts beyond the last column": contact_map([[0, 4]]),
    "contacts that are no pairs": contact_map(np.eye(4)),
    "distances of another shape": contact_map(distances=np.ones((3, 3))),
    "distances that are not symmetric": contact_map(distances=np.arange(16.0).reshape(4, 4)),
    "contacts and distances": contact_map([[0, 1]], distances=np.ones((4, 4))),
    "positions of too few sites": contact_map(positions=[1, 2]),
    "no separation": contact_map(min_separation=0),
    "no pairs": contact_map(n_pairs=0),
    "heights of fewer letters": lambda: plot_logo(np.ones((3, 4)), "ACGTU"),
    "heights that are not finite": lambda: plot_logo([[np.nan, 1.0]], "AC"),
}
