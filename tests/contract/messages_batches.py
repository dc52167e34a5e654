"""Bad input in batches, and what cannot be done with them."""

import warnings
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa

from private import _counts, _objective, network_rows
from sklearn_boltz import (
    SDCPRBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
)
from sklearn_boltz.batches import Batches

RNG = np.random.default_rng(0)
BITS = RNG.integers(2, size=(100, 4))
BITS[:, 3] = BITS[:, 0] ^ (RNG.random(100) < 0.2)
NAMED = pd.DataFrame(BITS, columns=list("abcd"))
TWO = BITS.copy()
TWO[3, 2] = 2
PAIR = BITS.copy()
PAIR[:, 1] &= PAIR[:, 0]
DETERMINED = BITS.copy()
DETERMINED[:, 2] = DETERMINED[:, [0, 1, 3]].sum(axis=1) >= 2
# Each number twice, so that sixty rows have few words.
MIXED = pd.DataFrame({
    "pay": np.repeat(RNG.normal(size=30), 2),
    "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60) // 2, unit="D"),
    "job": ["a", "b"] * 30,
    "size": pd.Categorical(["s", "m"] * 30, ["s", "m"], ordered=True),
})  # fmt: skip
MODELS = [
    FSLLDensity(columns=range(2)),
    FVBMPseudoLikelihood(columns=range(2)),
    SDCPRBM(2),
    TAPRBM(2),
]


def pieces(X=BITS, step=30):
    return [X[start : start + step] for start in range(0, len(X), step)]


def by_passes(source, kind=FVBMPseudoLikelihood, **options):
    """A fit that keeps no row, as where many of them are distinct."""
    with (
        mock.patch.object(network_rows, "MOST_ENTRIES", 8),
        mock.patch.object(_objective, "PART_ENTRIES", 300),
    ):
        return kind(**options).fit(source)


def other_rows_each_time():
    steps = iter([30, 30, 20, 10])
    return SDCPRBM(3, max_iter=1).fit(Batches(lambda: pieces(step=next(steps))))


def too_many_texts():
    with mock.patch.object(_counts, "MOST_TEXTS", 1):
        return FVBMPseudoLikelihood().fit(Batches([MIXED[["job"]], MIXED[["job"]]]))


def too_many_scores():
    with mock.patch.object(network_rows, "MOST_CELLS", 100):
        return FVBMPseudoLikelihood(columns={"pay": "number"}).fit(Batches([MIXED, MIXED]))


def other_names():
    model = SDCPRBM(2, max_iter=1, warm_start=True).fit(Batches(pieces(NAMED)))
    return model.fit(Batches(pieces(NAMED.rename(columns={"a": "z"}))))


def new_categories(model):
    first = pd.DataFrame({"city": ["Bonn", "Rome"] * 30, "vote": ["no", "yes", "yes"] * 20})
    later = first.assign(city=["Bonn", "Oslo", "Paris"] * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how good the first fit is
        model.fit(first)
    return model.partial_fit(later)


CASES = {
    # By passes over the batches.
    "a pair that never occurs": lambda: by_passes(Batches(PAIR), alpha=0.0),
    "a column that others determine": lambda: by_passes(Batches(DETERMINED), alpha=0.0),
    "a solver that goes through rows": lambda: by_passes(Batches(BITS), solver="bslm"),
    "three values after bits": lambda: by_passes(Batches([BITS, TWO])),
    "a sparse network": lambda: by_passes(Batches(BITS), SparseFVBM),
    "counts of ones": lambda: by_passes(Batches(BITS), MaximumEntropy, count_potential=True),
    "a single pass": lambda: by_passes(iter(pieces())),
    "partial_fit after passes": lambda: by_passes(Batches(BITS)).partial_fit(BITS),
    "other rows each time": other_rows_each_time,
    # Values.
    "other values than in the first batches": lambda: FVBMPseudoLikelihood().fit(
        Batches([BITS * 2 - 1, np.zeros((3, 4))])
    ),
    "partial_fit with other values": lambda: FVBMPseudoLikelihood().fit(BITS).partial_fit(BITS + 1),
    **{
        f"{type(model).__name__}, {what}": partial(model.fit, Batches(batches))
        for model in MODELS
        for what, batches in {
            "a value out of range": [BITS, TWO],
            "fewer columns": [BITS, BITS[:, :3]],
            "no batches": [],
        }.items()
    },
    "weights": lambda: FSLLDensity().fit(Batches(BITS), sample_weight=np.ones(100)),
    "other names": other_names,
    # What the columns are.
    **{
        what: partial(FVBMPseudoLikelihood(**options).fit, Batches([MIXED, MIXED.assign(**other)]))
        for what, (options, other) in {
            "an infinite number": ({}, {"pay": [1.5, np.inf] * 30}),
            "a text among numbers": ({"columns": {"pay": "number"}}, {"pay": ["a lot", 1.5] * 30}),
            "dates and numbers": ({}, {"day": np.arange(60.0)}),
            "a third word": ({"columns": {"job": "binary"}}, {"job": ["b", "c"] * 30}),
            "words of each row": ({}, {"job": [f"job {k}" for k in range(60)]}),
            "other ordered categories": (
                {},
                {"size": pd.Categorical(["m", "s"] * 30, ["m", "s"], ordered=True)},
            ),
            "other columns": ({}, {"more": 1}),
            "a cell that is a list": ({}, {"job": [["a"]] * 60}),
            "a text that looks missing": ({}, {"job": ["?", "b"] * 30}),
        }.items()
    },
    "words and numbers of PyArrow": lambda: FVBMPseudoLikelihood().fit(
        Batches([pa.table({"a": cells, "b": [0, 1] * 9}) for cells in (["x", "y"] * 9, [1, 2] * 9)])
    ),
    "partial_fit with a single pass": lambda: (
        FSLLDensity().fit(MIXED[["job"]]).partial_fit(Batches(iter([MIXED[["job"]]])))
    ),
    "too many texts": too_many_texts,
    "too many cells for normal scores": too_many_scores,
    "a new value for partial_fit": lambda: (
        FSLLDensity(unseen="error")
        .fit(Batches([MIXED[["job", "size"]]]))
        .partial_fit(Batches([MIXED[["job", "size"]].replace({"job": {"a": "z"}})]))
    ),
    "new categories": lambda: new_categories(SDCPRBM(2, max_iter=1)),
    "new categories that unseen takes as missing": lambda: new_categories(
        FVBMPseudoLikelihood(unseen="missing")
    ),
    "new categories of two": lambda: new_categories(FVBMPseudoLikelihood(columns="binary")),
    # Numbers of batches.
    "the third batch of a function": lambda: Batches(lambda: iter(pieces())).batch(2),
    "the third batch of an iterator": lambda: Batches(iter(pieces())).batch(2),
    "a batch beyond the last": lambda: Batches(BITS, batch_rows=30).batch(4),
    "a batch before the first": lambda: Batches(pieces()).batch(-1),
    # What is no source.
    "a number": lambda: Batches(3),
    "None": lambda: Batches(None),
    "one axis": lambda: Batches(np.zeros(3)),
    "no lanes": lambda: Batches([], n_lanes=0),
    "no rows in a batch": lambda: Batches([], batch_rows=0),
}
