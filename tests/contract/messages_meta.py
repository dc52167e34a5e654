"""Bad input to estimators over densities, and bad labels."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
from contract.once import once
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KernelDensity

from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    RBMClassifier,
)
from sklearn_boltz.batches import Batches

TERMS, PAIRS, RBM = FSLLDensity(), FVBMPseudoLikelihood(), SDCPRBM(2, max_iter=1)
META = {
    type(model).__name__: model
    for model in (BoltzmannClassifier(), BoltzmannImputer(), BoltzmannOutlierDetector())
}
X = np.random.default_rng(0).integers(3, size=(40, 3)).astype(float)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
REALS = FRAME.assign(b=np.random.default_rng(1).random(40))
WORDS = FRAME.assign(a=np.array(["fur", "feathers", "scales"])[FRAME["a"].astype(int)])
INFINITE = FRAME.assign(c=np.where(np.arange(40) == 3, np.inf, X[:, 2]))
DATES = FRAME.assign(a=pd.Timestamp("2025-01-01", tz="UTC")).astype({"a": object})
Y = np.arange(40) % 2
KINDS = np.array(["bird", "fish", "mammal"])[np.arange(40) % 3]


@once
def fitted(name, framed=True):
    return clone(META[name]).fit(FRAME if framed else X, Y)


def later(name, rows):
    """What a fitted estimator does with other rows."""
    model = fitted(name, isinstance(rows, pd.DataFrame))
    return model.transform(rows) if name == "BoltzmannImputer" else model.score_samples(rows)


def fit(estimator, rows=FRAME, y=Y, **params):
    return lambda: clone(estimator).set_params(**params).fit(rows, y)


def classes(rows=FRAME, y=Y, sample_weight=None, **params):
    return lambda: BoltzmannClassifier(**params).fit(rows, y, sample_weight=sample_weight)


def labels(*y):
    return lambda: RBMClassifier(2, max_iter=1).fit([[0, 1], [1, 0], [0, 0], [1, 1]][: len(y)], y)


def of_all(name):
    """What all of them refuse."""
    fit_to = partial(fit, META[name])
    return {
        "inf in an array": fit_to(INFINITE.to_numpy()),
        "inf in a frame": fit_to(INFINITE),
        "inf after fit in an array": lambda: later(name, INFINITE.to_numpy()),
        "inf after fit in a frame": lambda: later(name, INFINITE),
        "no rows": fit_to(FRAME[:0], Y[:0]),
        "no columns": fit_to(FRAME[[]]),
        "n_jobs of a word": fit_to(n_jobs="many"),
    }


BY_NAME = {"mammal": 0.7, "bird": 0.2, "fish": 0.1}
CASES = {
    **{f"{name}: {what}": call for name in META for what, call in of_all(name).items()},
    # Cells and columns.
    **{
        f"imputer with {name}: {what}": fit(BoltzmannImputer(estimator), rows)
        for name, estimator in (("a network", None), ("an RBM", RBM))
        for what, rows in (("-inf", -INFINITE), ("dates", DATES))
    },
    "classifier: a fitted density without the class": lambda: BoltzmannClassifier(
        FrozenEstimator(FVBMPseudoLikelihood().fit(FRAME))
    ).fit(FRAME, Y),
    "classifier: weights of batches": classes(Batches([FRAME]), sample_weight=np.ones(40)),
    "classifier: no batches": lambda: BoltzmannClassifier().fit(Batches([])),
    "classifier: labels of a part of the batches": classes(Batches([FRAME, FRAME])),
    "imputer: weights of batches": lambda: BoltzmannImputer().fit(
        Batches([FRAME]), sample_weight=np.ones(40)
    ),
    "detector: weights of batches": lambda: BoltzmannOutlierDetector().fit(
        Batches([FRAME]), sample_weight=np.ones(40)
    ),
    "imputer: no cell": fit(BoltzmannImputer(), np.full((3, 2), np.nan)),
    "imputer: a column without a value": fit(BoltzmannImputer(), FRAME.assign(b=None)),
    "detector: two without a value": fit(BoltzmannOutlierDetector(), FRAME.assign(a=None, c=None)),
    "detector: half of a number": fit(BoltzmannOutlierDetector(contamination=0.6)),
    "detector: numbers that became words": lambda: later("BoltzmannOutlierDetector", WORDS),
    "classifier: names of rows": classes(FRAME.assign(a=[f"animal {i}" for i in range(40)])),
    **{
        f"{kind.__name__}: columns beside an estimator": fit(kind(TERMS, columns="nominal"))
        for kind in (BoltzmannClassifier, BoltzmannImputer, BoltzmannOutlierDetector)
    },
    # Classes.
    "classifier: one class": classes(y=0 * Y),
    "classifier: no labels": classes(y=None),
    "classifier: one class of positive weight": classes(sample_weight=1 - Y),
    "classifier: no weight": classes(sample_weight=0 * Y),
    "classifier: a class of two rows to calibrate": classes(
        [["a"], ["b"], ["a"], ["b"]], [0, 0, 1, 1], calibration=True
    ),
    **{
        f"classifier: no label in {what}": classes([["x"], ["y"], ["x"], ["y"]], y)
        for what, y in {
            "words": ["a", "b", "a", None],
            "words with NaN": ["a", "b", "a", np.nan],
            "numbers": [0, 1, 0, np.nan],
            "integers of pandas": pd.Series([0, 1, 0, pd.NA], dtype="Int64"),
            "strings of pandas": pd.Series(["a", "b", "a", pd.NA], dtype="string"),
            "words of polars": pl.Series(["a", "b", "a", None]),
            "an array of numbers": np.array([0, 1, 0, np.nan]),
        }.items()
    },
    **{
        f"classifier: priors {priors}": classes(y=KINDS, priors=priors)
        for priors in (
            [0.5, 0.5], [0.5, 0.4, 0.3], [1.2, -0.1, -0.1], [np.nan] * 3,
            {"mammal": 0.7, "bird": 0.3}, BY_NAME | {"snake": 0.0}, BY_NAME | {"fish": 0.3},
            BY_NAME | {"fish": "few"},
        )
    },
    **{
        f"classifier: types {first} and {other} {make.__name__}": classes(
            y=make(np.array([first, other] * 20, dtype=object))
        )
        for first, other in (("a", 1), (1, "a"))
        for make in (np.asarray, pd.Series)
    },
    "classifier: masked labels": classes(y=np.ma.masked_array(Y, np.arange(40) == 7)),
    "labels: words after numbers": lambda: (
        RBMClassifier(2, max_iter=1).fit(X % 2, Y).partial_fit(X % 2, KINDS)
    ),
    "labels: masked": lambda: RBMClassifier().fit(X % 2, np.ma.masked_array(Y, Y == 1)),
    **{
        f"labels: {list(y)}": labels(*y)
        for y in (
            (0, np.nan, 0), (0, None, 0), (0, 0, 0), ("a", None, "a"),
            (2, -1, 2), (2.0, -1.0, np.nan), (None, -1, 2),
            ("a", 1, "a", None), ("a", 1, "a", np.nan),
        )
    },
    # A density of rows and classes.
    **{
        f"joint: reals with {type(estimator).__name__}": classes(
            REALS, estimator=estimator, joint=True
        )
        for estimator in (PAIRS, TERMS)
    },
    **{
        f"joint: numbers from {column.min()} to {column.max()}": classes(
            FRAME.assign(a=column), estimator=PAIRS, joint=True
        )
        for column in (np.arange(40), np.arange(40) % 30 - 10, np.arange(40) % 3 - 1,
                       np.r_[Y[:39], 99])
    },
    **{
        f"joint: {estimator}": classes(estimator=estimator, joint=True)
        for estimator in (
            FVBMPseudoLikelihood(columns=[range(3), range(3), range(3)]),
            SDCPRBM(2, columns="gaussian", max_iter=1), KernelDensity(),
        )
    },
    **{
        f"{what}, {estimator}": classes(
            rows, y, estimator=estimator, joint=False, calibration=False
        )
        for what, rows, y in (
            ("class without a value", FRAME.assign(a=np.where(Y == 1, np.nan, X[:, 0])), Y),
            ("class of one row", FRAME, np.repeat([0, 1], [39, 1])),
        )
        for estimator in (
            None, FVBMPseudoLikelihood(columns=[range(3), range(3), range(3)]),
        )
    },
}  # fmt: skip
