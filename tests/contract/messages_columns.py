"""One error for all columns with the same fault: all are named, by their names."""

import numpy as np
import pandas as pd

from sklearn_boltz import SDCPRBM, TAPRBM, BoltzmannClassifier, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.units import Categorical

BITS = np.arange(40) % 2
DAYS = pd.date_range("2026-01-01", periods=40)


def columns(cells, names="abcdefg"):
    """A table of the same cells in some columns, with bits before and after them."""
    return pd.DataFrame({"first": BITS} | dict.fromkeys(names, cells) | {"last": BITS})


def among_numbers():
    cells = (np.arange(40) / 7).astype(object)
    cells[3] = "none"
    return columns(cells, "ab")


def after_numbers():
    cells = (np.arange(40) / 7).astype(object)
    kinds = dict.fromkeys("abc", "gaussian")
    model = SDCPRBM(2, columns=kinds, max_iter=1).fit(columns(cells, "abc"))
    cells[5] = "?"
    return model.score_samples(columns(cells, "abc"))


def unseen_words():
    words = np.array(list("pq") * 20, dtype=object)
    model = FVBMPseudoLikelihood(alpha=0.1, unseen="error").fit(columns(words))
    words[7] = "r"
    return model.score_samples(columns(words))


def codes(column):
    """Whole numbers of a survey, in which 9 may stand for no answer."""
    X = np.tile(BITS[:, None], (1, 4))
    X[5, column] = 9
    return X


CASES = {
    "ID columns": lambda: FSLLDensity().fit(columns([f"n{k}" for k in range(40)])),
    "numbers of rows": lambda: FVBMPseudoLikelihood().fit(columns(np.arange(101, 141), "a")),
    "numbers of some of the rows": lambda: FVBMPseudoLikelihood().fit(
        columns(np.random.default_rng(0).permutation(60)[:40], "a")
    ),
    "dates": lambda: FSLLDensity().fit(
        columns(pd.date_range("2026-01-01", periods=40, tz="UTC").astype(object))
    ),
    "names that occur twice": lambda: FSLLDensity().fit(
        pd.DataFrame(np.zeros((4, 6)), columns=list("aabbcd"))
    ),
    "texts among numbers": lambda: FSLLDensity().fit(among_numbers()),
    "texts after numbers": after_numbers,
    "a text after numbers beyond floats": lambda: (
        FVBMPseudoLikelihood(columns={"a": "binned"})
        .fit(columns(2**80 + np.arange(40).astype(object), "a"))
        .score_samples(columns("oops", "a"))
    ),
    "lists after dates": lambda: (
        FVBMPseudoLikelihood()
        .fit(columns(DAYS, "a"))
        .score_samples(columns([[day] for day in DAYS], "a"))
    ),
    "units of two kinds": lambda: FVBMPseudoLikelihood().fit(
        columns([f"{k} {'kg' if k % 2 else 'km'}" for k in range(40)], "a")
    ),
    "units and tuples": lambda: FVBMPseudoLikelihood().fit(
        columns([f"{k} kg" if k % 2 else (k,) for k in range(40)], "a")
    ),
    "words declared as numbers": lambda: FVBMPseudoLikelihood(columns="number").fit(
        columns(np.array(list("pq") * 20), "ab")
    ),
    "three values declared as binary": lambda: SDCPRBM(2, columns="binary").fit(
        columns(list("pqr") * 13 + ["p"], "ab")
    ),
    "fractions declared as counts": lambda: FSLLDensity(columns={"a": "count", "b": "count"}).fit(
        columns(np.arange(40) / 4, "ab")
    ),
    "dates declared as nominal": lambda: FVBMPseudoLikelihood(columns={"a": "nominal"}).fit(
        columns(pd.date_range("2026-01-01", periods=40), "ab")
    ),
    "words in an order that is not declared": lambda: FVBMPseudoLikelihood(
        columns="ordinal", alpha=1
    ).fit(columns(["never", "often", "always", "seldom"] * 10)),
    "dates declared as cyclic": lambda: FVBMPseudoLikelihood(columns={"a": "cyclic"}).fit(
        columns(pd.date_range("2026-01-01", periods=40), "ab")
    ),
    "angles declared as cyclic": lambda: FVBMPseudoLikelihood(columns={"a": "cyclic"}).fit(
        columns(np.arange(40) * 9.5, "ab")
    ),
    "a cycle in an order that is not declared": lambda: FVBMPseudoLikelihood(
        columns="cyclic", alpha=1
    ).fit(columns(["spring", "summer", "fall", "winter"] * 10)),
    "unseen words": unseen_words,
    "codes of missing values": lambda: FVBMPseudoLikelihood(alpha=1).fit(codes([1, 2])),
    "more categories than units": lambda: SDCPRBM(2, columns=Categorical([2, 2, 2])).fit(
        pd.DataFrame(dict.fromkeys("abc", list("pqr") * 8))
    ),
    "a class without values": lambda: BoltzmannClassifier(joint=False).fit(
        np.where([[True, False, True]] * 40 & (BITS == 1)[:, None], np.nan, BITS[:, None]), BITS
    ),
    "denoise of numbers": lambda: (
        TAPRBM(2, columns="gaussian", max_iter=1)
        .fit(np.random.default_rng(0).normal(size=(40, 3)))
        .denoise(np.zeros((1, 3)), flip_probability=0.1)
    ),
}
