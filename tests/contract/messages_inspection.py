"""Bad input to displays."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure
from sklearn.utils import Bunch

from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood
from sklearn_boltz.datasets import make_bars_and_stripes
from sklearn_boltz.inspection import (
    ContactMapDisplay,
    CouplingDisplay,
    HistoryDisplay,
    LadderDisplay,
    MomentsDisplay,
    PathDisplay,
    ReceptiveFieldDisplay,
    SampleDisplay,
    ThermodynamicsDisplay,
)

SPINS = np.random.default_rng(0).choice([-1, 1], size=(200, 4))
CODES = np.random.default_rng(0).integers(3, size=(100, 4))
WORDS = np.where(SPINS > 0, "yes", "no").astype(object)
WORDS[3, 1] = None


@cache
def network(kind="spins", **params):
    rows = {"spins": SPINS, "codes": CODES, "words": WORDS}[kind]
    return FVBMPseudoLikelihood(**({"alpha": 0.1} | params)).fit(rows)


@cache
def images():
    return SDCPRBM(6, max_iter=1, early_stopping=False, random_state=0).fit(
        make_bars_and_stripes(3)
    )


@cache
def couplings(n_nodes=5):
    coupling = np.ones((n_nodes, n_nodes)) - np.eye(n_nodes)
    return CouplingDisplay(coupling=coupling, names=[f"x{j}" for j in range(n_nodes)])


@cache
def moments():
    return MomentsDisplay.from_estimator(network(), SPINS, n_samples=10, random_state=0)


def graph(n_nodes=5, **options):
    return couplings(n_nodes).plot(**({"kind": "graph", "layout": "circle"} | options))


def contact_map(*contacts, **options):
    return ContactMapDisplay.from_estimator(network("codes"), *contacts, **options)


def fields(**options):
    return ReceptiveFieldDisplay.from_estimator(images(), **options)


def chosen_path():
    return network(penalty="l1", alpha="ebic")


LADDER = Bunch(
    value=5.0, std_err=0.3, low=4.4, high=5.6, trusted=True, verdict="", method="ladder",
    acceptances=np.full(3, 0.5), log_partitions=np.arange(4.0),
)  # fmt: skip

CASES = {
    f"{display.__name__} of an estimator before fit": lambda display=display: (
        display.from_estimator(SDCPRBM())
    )
    for display in (ReceptiveFieldDisplay, SampleDisplay, HistoryDisplay, LadderDisplay)
} | {
    f"{display.__name__} of a network before fit": lambda display=display: (
        display.from_estimator(FVBMPseudoLikelihood())
    )
    for display in (CouplingDisplay, PathDisplay, ContactMapDisplay)
} | {
    "history without the entry": lambda: HistoryDisplay.from_estimator(network(), "cost"),
    "history without the entry, against seconds": lambda: HistoryDisplay.from_estimator(
        network(), "loss", against="seconds"
    ),
    "history against a word": lambda: HistoryDisplay.from_estimator(images(), against="epochs"),
    "receptive fields by a word": lambda: fields(order="size"),
    "receptive fields by activity without X": lambda: fields(order="activity"),
    "receptive fields of no unit": lambda: fields(n_units=0),
    "receptive fields of another shape": lambda: fields(image_shape=(2, 4)),
    "images that are no squares": lambda: SampleDisplay.from_rows(np.ones((2, 8))),
    "images in no column": lambda: SampleDisplay.from_rows(np.ones((2, 9)), n_columns=0),
    "lines of different lengths": lambda: SampleDisplay.from_rows(
        {"one": np.ones((1, 4)), "two": np.ones((2, 4))}
    ),
    "no images": lambda: SampleDisplay.from_rows(np.ones((0, 4))),
    "a ladder of a sum": lambda: LadderDisplay(images().log_partition("exact")).plot(),
    "one Axes for a ladder": lambda: LadderDisplay(LADDER).plot(ax=Figure().subplots()),
    "moments of codes": lambda: MomentsDisplay.from_estimator(network("codes"), CODES),
    "moments of other columns": lambda: MomentsDisplay.from_estimator(network(), SPINS[:, :1]),
    "moments of rows with gaps": lambda: MomentsDisplay.from_estimator(network("words"), WORDS),
    "z-scores of counts": lambda: moments().z_scores("count"),
    "one Axes for moments": lambda: moments().plot(ax=[Figure().subplots()]),
    "a temperature that is a number": lambda: ThermodynamicsDisplay.from_estimator(network(), 1.0),
    "one temperature": lambda: ThermodynamicsDisplay.from_estimator(network(), [1.0]),
    "one Axes for thermodynamics": lambda: ThermodynamicsDisplay.from_estimator(
        network(), [0.5, 1.0]
    ).plot(ax=[Figure().subplots()]),
    "couplings as a word": lambda: couplings().plot(kind="circle"),
    "layout as a word": lambda: graph(layout="square"),
    "layout of too few nodes": lambda: graph(layout=np.ones((4, 2))),
    "layout without places": lambda: graph(layout=np.full((5, 2), np.nan)),
    "no edges": lambda: graph(n_edges=0),
    "edges that are no integer": lambda: graph(n_edges=2.5),
    "a negative least coupling": lambda: graph(min_coupling=-1),
    "groups of too few nodes": lambda: graph(groups=["a", "b"]),
    "more groups than colours": lambda: graph(9, groups=range(9)),
    "rows for tests of a sparse network": lambda: CouplingDisplay.from_estimator(
        network(penalty="l1"), SPINS
    ),
    "rows for tests of a network of triples": lambda: CouplingDisplay.from_estimator(
        network(terms=((0, 1, 2),)), SPINS
    ),
    "no path": lambda: PathDisplay.from_estimator(network()),
    "path of a node that is not there": lambda: PathDisplay.from_estimator(chosen_path(), "z"),
    "path of a node beyond the last": lambda: PathDisplay.from_estimator(chosen_path(), 4),
    "one Axes for a path": lambda: PathDisplay.from_estimator(
        chosen_path(), ax=Figure().subplots()
    ),
    "paths of all nodes": lambda: PathDisplay.from_estimator(
        network(penalty="l1", alpha="ebic", nodewise=True)
    ),
    "contacts beyond the last column": lambda: contact_map([[0, 4]]),
    "contacts that are no pairs": lambda: contact_map(np.eye(4)),
    "distances of another shape": lambda: contact_map(distances=np.ones((3, 3))),
    "distances that are not symmetric": lambda: contact_map(
        distances=np.arange(16.0).reshape(4, 4)
    ),
    "contacts and distances": lambda: contact_map([[0, 1]], distances=np.ones((4, 4))),
    "positions of too few sites": lambda: contact_map(positions=[1, 2]),
    "no separation": lambda: contact_map(min_separation=0),
    "no pairs": lambda: contact_map(n_pairs=0),
}  # fmt: skip
