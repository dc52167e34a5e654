"""Bad tables, weights and cells: in `fit`, and in methods of models of a good table."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
from contract.frames import ODD, REFUSED, REFUSED_BY_OTHERS, bits, changed, people, seven, words
from contract.once import once
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from private import Encoder
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, InfiniteRBM
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Categorical, TruncatedGaussBernoulli

TERMS, PAIRS = FSLLDensity(), FVBMPseudoLikelihood(alpha=0.1)
UNITS = SDCPRBM(2, max_iter=1, random_state=0)
KINDS = {"FSLLDensity": TERMS, "FVBMPseudoLikelihood": PAIRS, "SDCPRBM": UNITS}
# Legal tables of some.
SILENT = {
    "a third value, FSLLDensity", "a third value, FVBMPseudoLikelihood",
    "one column that counts from one, FVBMPseudoLikelihood", "spins, FVBMPseudoLikelihood",
    "grey levels, FSLLDensity", "grey levels, FVBMPseudoLikelihood",
    *(f"{table}, SDCPRBM" for table in (
        "a third value", "spins", "a column of spins", "far outside", "grey levels",
        "columns that count from one", "one column that counts from one",
    )),
}  # fmt: skip
PEOPLE, X = people(), bits()
DATES = [f"2024-03-{day:02}" for day in range(1, 31)]
PRICES = pd.DataFrame(bits(n_columns=12), columns=[f"price{j}" for j in range(12)])
LARGE = 1 + 5 * np.random.default_rng(0).random((50, 2))
WEIGHTS = {
    "-2": np.where(np.arange(60) == 7, -2.0, 1), "NaN": np.where(np.arange(60) == 7, np.nan, 1),
    "all 0": np.zeros(60),
}  # fmt: skip


def fit(estimator, X, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of few epochs
        return clone(estimator).fit(X, *args, **options)


@once
def model(estimator, table="people", **parameters):
    tables = {"people": PEOPLE, "bits": X, "seven": seven(np.arange(40) % 2)}
    return fit(clone(estimator).set_params(**parameters), tables[table])


def some(**cells):
    """Three rows of people with other cells."""
    return PEOPLE[:3].astype(dict.fromkeys(cells, object)).assign(**cells)


def units(columns, X, **options):
    return partial(fit, TAPRBM(2, max_iter=1, columns=columns, **options), X)


MANY_WORDS = np.empty((400, 2), dtype=object)
MANY_WORDS[:, 0], MANY_WORDS[:, 1] = [f"word {k % 100}" for k in range(400)], np.arange(400) % 2
MANY_WORDS[7, 1] = 99
CODES = np.random.default_rng(0).integers(3, size=(40, 2))
TYPED = SDCPRBM(2, columns={0: Categorical([3]), 1: "nominal"}, max_iter=1)
GAPS = seven(np.where(np.arange(40) < 2, np.nan, np.arange(40) % 2))

CASES = {
    **{what: partial(fit, UNITS, table) for what, table in REFUSED.items()},
    **{
        f"{what}, {kind}": partial(fit, estimator, table)
        for what, table in ODD.items()
        for kind, estimator in KINDS.items()
        if f"{what}, {kind}" not in SILENT
    },
    **{
        f"weights with {what}, {kind}": partial(fit, estimator, X, sample_weight=weights)
        for what, weights in WEIGHTS.items()
        for kind, estimator in {**KINDS, "InfiniteRBM": InfiniteRBM(2)}.items()
    },
    "sparse rows with NaN": partial(fit, UNITS, REFUSED_BY_OTHERS["sparse rows with NaN"]),
    "99, FVBMPseudoLikelihood": partial(fit, PAIRS, changed([4, 7], [1, 3], 99)),
    "99 beside bits, and many words": partial(fit, PAIRS, MANY_WORDS),
    "texts of numbers": lambda: Encoder.learn(pd.DataFrame({"a": [f"{i}" for i in range(50)]})),
    "texts of dates": lambda: Encoder.learn(pd.DataFrame({"a": DATES})),
    "texts of dates, each twice": lambda: Encoder.learn(pd.DataFrame({"a": 3 * DATES})),
    # Cells that were not there in `fit`.
    **{
        f"{what}, {kind}": lambda estimator=estimator, cells=cells: model(
            estimator, unseen="error"
        ).score_samples(some(**cells))
        for what, cells in {
            "a new word": {"city": "nowhere"},
            "a new count": {"kids": [9, 1, 4]},
        }.items()
        for kind, estimator in KINDS.items()
    },
    "a negative count": lambda: model(TERMS, unseen="missing").score_samples(some(kids=-2)),
    "words in `given`, FSLLDensity": lambda: model(TERMS).sample(given={"city": "nowhere"}),
    "words in `given` of a number": lambda: fit(PAIRS, PRICES + 0.5).sample(
        given={"price3": "low"}
    ),
    "a new word where none may be missing": lambda: model(UNITS).gibbs(some(city="zz")),
    "a gap where none may be missing": lambda: model(UNITS).gibbs(some(city=None)),
    "an energy of gaps, FSLLDensity": lambda: model(TERMS, "seven").energy(GAPS),
    "an energy of gaps, FVBMPseudoLikelihood": lambda: model(PAIRS, "seven").energy(GAPS),
    "a value out of range": lambda: model(UNITS, "bits").transform(changed(3, 3, 7)),
    "a value out of range that may be a gap": lambda: model(UNITS, "bits").score_samples(
        changed(3, 2, -1)
    ),
    # Batches.
    "numbers, then words in batches": partial(fit, UNITS, Batches([words()[0], words()[1]])),
    "batches, InfiniteRBM": partial(fit, InfiniteRBM(), Batches(X)),
    "batches to score": lambda: model(PAIRS, "bits").score_samples(Batches([X])),
    "weights of some rows": partial(fit, UNITS, Batches([X]), sample_weight=np.ones(7)),
    "one row, of which some are set aside": partial(
        fit, SDCPRBM(2, early_stopping=True), Batches(lambda: iter([X[:1]]))
    ),
    "batches without a cell": partial(fit, SDCPRBM(2), Batches([np.full((3, 2), np.nan)])),
    "batches to pre-train on": partial(fit, TAPDBM((3, 2)), Batches([X])),
    # Types of units.
    "no such column": partial(fit, SDCPRBM(2, columns={"prise3": "gaussian"}), PRICES),
    "no similar column": partial(fit, SDCPRBM(2, columns={"zz": "gaussian"}), PRICES),
    "no such number": partial(fit, SDCPRBM(2, columns={12: "gaussian"}), PRICES.to_numpy()),
    "a range of a class, with 0": units(TruncatedGaussBernoulli, LARGE),
    "a range of amounts": units("truncated_gaussian", changed(0, 0, np.nan, LARGE)),
    "a code of units": partial(fit, TYPED, changed(4, 0, 1.5, CODES)),
    "a code of units, later": lambda: fit(TYPED, CODES).transform(changed(4, 0, 1.5, CODES)),
}
