"""Bad input to networks, and tables without a maximum."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from contract.frames import changed
from contract.once import once

from private import CategoricalPseudoLikelihood
from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood, MaximumEntropy, SparseFVBM, statistics
from sklearn_boltz.statistics import stability_selection

BITS = np.random.default_rng(0).integers(2, size=(40, 4))
SIGNS = 2 * BITS - 1
LETTERS = pd.DataFrame(np.random.default_rng(0).choice(list("AC-"), size=(40, 4)))
CONSTANT = np.zeros((20, 2), dtype=int)
THREE_VALUES = np.arange(40) % 3


GAPS = changed(7, 2, np.nan, BITS)
NUMBERS = np.random.default_rng(0).normal(size=(40, 6))
# The second column is never 1 where the first is.
APART = pd.DataFrame(BITS, columns=list("abcd"))
APART.loc[APART["a"] == 1, "c"] = 0
WORDS = pd.DataFrame({"worried": ["no", "yes"] * 30, "open": ["a", "b", "b"] * 20})
WORDS["often"] = np.where(WORDS.worried == "yes", "often", "never")
APART_OF_THREE = np.column_stack([APART, THREE_VALUES])
OF_THREE = np.array(
    [[a, b, c, a // 2 + b + c > 1] for a, b, c in product(range(3), (0, 1), (0, 1))] * 20
)
MANY_COLUMNS = np.random.default_rng(0).integers(2, size=(1000, 78))
NEITHER_NONE_NOR_ALL = np.array([c for c in product((0, 1), repeat=3) if sum(c) not in (0, 3)])


def fit(X, sample_weight=None, coupling_init=None, intercept_init=None, **params):
    model = FVBMPseudoLikelihood(**params)
    return model.fit(X, None, sample_weight, coupling_init, intercept_init)


@once
def fitted(name):
    tables = {"signs": SIGNS, "bits": BITS, "letters": LETTERS, "numbers": NUMBERS}
    return fit(tables[name], columns="number" if name == "numbers" else "auto")


@once
def inference_of_bits():
    return statistics.inference(fitted("bits"), BITS)


def likelihood(X, **params):
    return MaximumEntropy(**params).fit(X)


NO_PAIR = np.zeros((2, 2))
COUPLINGS = {
    "one way": {"J": [[0, 1], [0, 0]]}, "with a diagonal": {"J": np.eye(2), "coding": "bits"},
    "of one column and two": {"J": [[0, 1]]}, "of other fields": {"J": NO_PAIR, "h": [0, 0, 0]},
    "of NaN": {"J": [[0, np.nan], [np.nan, 0]]}, "of no coding": {"J": NO_PAIR, "coding": "ising"},
    "of infinite fields": {"J": NO_PAIR, "h": [0, np.inf]},
    "of infinite energies": {"J": NO_PAIR, "h": [1e308, 1e308], "coding": "bits"},
    "of a table of fields": {"J": NO_PAIR, "h": NO_PAIR},
}  # fmt: skip
CASES = {
    **{
        f"couplings {what}": partial(FVBMPseudoLikelihood.from_couplings, **given)
        for what, given in COUPLINGS.items()
    },
    "counts that may be survey weights": lambda: fit(BITS, np.full(len(BITS), 500)),
    "lists for too few columns": lambda: fit(BITS, columns=[range(2), range(2)]),
    "three values where two were meant": lambda: fit(changed(7, 2, 2, SIGNS)),
    "a 0 among -1 and 1": lambda: fitted("signs").score_samples(changed(7, 2, 0, SIGNS)),
    "a number that is no value": lambda: fit(np.full((4, 2), -7), columns=range(2)),
    "signs after bits": lambda: fit(BITS > 0).transform(SIGNS),
    "coupling_init of one number": lambda: fit(BITS, coupling_init=[[1.0]]),
    "coupling_init with a diagonal": lambda: fit(BITS, coupling_init=np.ones((4, 4))),
    "coupling_init of a half": lambda: fit(BITS, coupling_init=np.triu(np.ones((4, 4)), 1)),
    "coupling_init of NaN": lambda: fit(BITS, coupling_init=np.full((4, 4), np.nan)),
    "intercept_init of one column": lambda: fit(BITS, intercept_init=[1.0]),
    "sweeps of rows with gaps": lambda: fit(GAPS, solver="bslm", missing="observed"),
    "gradient ascent of rows with gaps": lambda: fit(GAPS, solver="ga", missing="observed"),
    "values that never meet": lambda: fit(APART, alpha=0.0),
    "words that never meet": lambda: fit(WORDS, alpha=0.0),
    "words that never meet, beside a column of three": lambda: fit(
        WORDS.assign(open=WORDS["open"].where(np.arange(60) > 6, "rarely")), alpha=0.0
    ),
    "values of three that never meet": lambda: fit(APART_OF_THREE, alpha=0.0),
    "an early end of many parameters": lambda: fit(MANY_COLUMNS, alpha=0.0, max_iter=2),
    "a column of three values that others determine": lambda: fit(OF_THREE, alpha=0.0),
    "errors of the likelihood of three values": lambda: statistics.inference(
        likelihood(np.column_stack([BITS, THREE_VALUES])), np.column_stack([BITS, THREE_VALUES])
    ),
    "the likelihood of values that never meet": lambda: likelihood(APART),
    "the likelihood of a face of three": lambda: likelihood(NEITHER_NONE_NOR_ALL),
    "edges as numbers": lambda: SparseFVBM(edges=np.ones((4, 4), np.int64)).fit(BITS),
    "a column that two rows have": lambda: SparseFVBM().fit(
        np.column_stack([BITS, np.arange(len(BITS)) < 2])
    ),
    "pairs chosen from all that squares keep": lambda: SparseFVBM(penalty="l2").fit(BITS),
    "edges of a column that is not there": lambda: SparseFVBM(edges=np.array([[0, 9]])).fit(BITS),
    "stability of constant columns": lambda: stability_selection(SparseFVBM(), CONSTANT),
    "stability of a network that selects nothing": lambda: stability_selection(
        fitted("bits"), BITS
    ),
    "inference of an RBM": lambda: statistics.inference(SDCPRBM(2), BITS),
    "minima of rows with gaps": lambda: statistics.local_minima(fitted("bits"), GAPS),
    **{
        f"scores without {what}": lambda ignore=ignore: fitted("letters").interaction_scores(
            ignore=ignore
        )
        for what, ignore in {
            "a value of no column": ".",
            "values that are none": [0, 3, 0, 0],
            "values of too few columns": [0, 0],
        }.items()
    },
    "probabilities of two numbers": lambda: fitted("numbers").predict_column_proba(NUMBERS, [0, 1]),
    "scores of numbers without a value": lambda: fitted("numbers").interaction_scores(ignore=0),
    "inference of more numbers than rows": lambda: statistics.inference(
        fit(NUMBERS.reshape(12, 20), columns="number"), NUMBERS.reshape(12, 20)
    ),
    "numbers in parts": lambda: FVBMPseudoLikelihood(columns="number").partial_fit(NUMBERS),
    "aic of numbers": lambda: statistics.aic(fitted("numbers"), NUMBERS),
    "a graph of another table of numbers": lambda: statistics.to_networkx(
        fitted("numbers"), inference_of_bits()
    ),
    "states beyond what can be fitted": lambda: CategoricalPseudoLikelihood(
        np.zeros((1, 1), dtype=int), np.array([70_000]), np.ones(1)
    ),
    "a graph of a table": lambda: statistics.to_networkx(fitted("bits"), BITS),
}
