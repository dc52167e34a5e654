"""Bad input to RBMs that are trained by chains, that grow, and that predict."""

from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM

from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    RBMClassifier,
)
from sklearn_boltz.batches import Batches
from sklearn_boltz.restricted import FractionalModel

BITS = np.random.default_rng(0).integers(2, size=(40, 4)).astype(float)
LABELS = np.arange(40) % 3
MASKED = np.where(LABELS == 2, 2, -1)
ONE_EACH = np.where(np.arange(40) < 3, LABELS, -1)
LETTERS = np.array(list("abcdefghij"))[np.arange(40) % 10]
FRAME = pd.DataFrame(BITS.astype(int), columns=list("abcd")).assign(
    town=np.array(["Oslo", "Rome", "Cairo"])[LABELS], always=1
)
PEOPLE = pd.DataFrame({"sex": list("mf") * 20, "age": np.linspace(20, 70, 40)})
REAL_AGE = {"visible": {"age": "gaussian"}, "init": FVBMPseudoLikelihood(alpha=0.1)}
SOFT = np.where(BITS[:, :1] > 0, 1.5, BITS)
BATCHES = Batches([BITS[:20], BITS[20:]])


@cache
def rbm(**options):
    return SDCPRBM(3, max_iter=1, random_state=0, **options).fit(BITS)


@cache
def grown():
    return InfiniteRBM(2, n_model_samples=32, early_stopping=False, random_state=0).fit(BITS)


def untrained(**options):
    quick = {"n_components": 3, "max_iter": 1, "early_stopping": False, "random_state": 0}
    return RBMClassifier(**quick | options)


@cache
def classifier():
    return untrained(warm_start=True).fit(BITS, LABELS)


@cache
def of_ten_letters():
    return untrained(warm_start=True).fit(BITS, LETTERS)


def diverging(model, *args, method="fit", **options):
    """A fitted model that goes on with steps that no number can hold."""
    model.set_params(learning_rate=1.7e308, **options)
    getattr(model, method)(*args)


def begun_at(init, X=FRAME, **options):
    SDCPRBM(20, init=init, max_iter=1, **options).fit(X)


def classifier_begun_at(init, **options):
    untrained(init=init, **options).fit(BITS, LABELS)


FOREIGN = {
    "BernoulliRBM": BernoulliRBM(5),
    "a fitted BernoulliRBM": BernoulliRBM(5, n_iter=1, random_state=0).fit(BITS),
    "a frozen BernoulliRBM": FrozenEstimator(BernoulliRBM(5)),
    "FSLLDensity": FSLLDensity(),
    "TAPDBM": TAPDBM((5, 3)),
    "RBMClassifier": RBMClassifier(5),
}
STARTS = {
    "another kind of estimator": lambda: begun_at(LogisticRegression()),
    "a network beside hidden categories": lambda: begun_at(
        FVBMPseudoLikelihood(), hidden=("categorical", 3)
    ),
    "a network beside a column of real numbers": lambda: begun_at(
        FVBMPseudoLikelihood(), visible={"a": "gaussian"}
    ),
    "a network of other columns": lambda: begun_at(FVBMPseudoLikelihood().fit(BITS)),
    "a network of fewer columns": lambda: begun_at(
        FVBMPseudoLikelihood().fit(FRAME.drop(columns="a"))
    ),
    "more units than n_components": lambda: begun_at(SDCPRBM(30, max_iter=1)),
    "hidden categories": lambda: begun_at(SDCPRBM(5, max_iter=1, hidden=("categorical", 3))),
    "other visible units": lambda: begun_at(SDCPRBM(5, max_iter=1, visible="categorical")),
    "an unfitted network in partial_fit": lambda: SDCPRBM(init=FVBMPseudoLikelihood()).partial_fit(
        BITS
    ),
    "a network beside real ages": lambda: SDCPRBM(5, **REAL_AGE).fit(PEOPLE),
    "a network beside real ages in a classifier": lambda: RBMClassifier(5, **REAL_AGE).fit(
        PEOPLE, PEOPLE["sex"]
    ),
    "more units than a classifier": lambda: classifier_begun_at(SDCPRBM(7, max_iter=1)),
    "hidden real units in a classifier": lambda: classifier_begun_at(
        SDCPRBM(3, max_iter=1, hidden="gaussian")
    ),
    "real units in a classifier": lambda: classifier_begun_at(
        SDCPRBM(3, max_iter=1, visible="gaussian")
    ),
    "other columns in a growing model": lambda: InfiniteRBM(init=rbm()).fit(BITS[:, :3]),
    "BernoulliRBM in a growing model": lambda: InfiniteRBM(init=FOREIGN["BernoulliRBM"]).fit(BITS),
    "hidden real units in a growing model": lambda: InfiniteRBM(
        init=SDCPRBM(2, hidden="gaussian", max_iter=1)
    ).fit(BITS),
}
for kind, foreign in FOREIGN.items():
    STARTS[f"{kind}"] = lambda foreign=foreign: begun_at(foreign, BITS)
    STARTS[f"{kind} in a classifier"] = lambda foreign=foreign: classifier_begun_at(foreign)

LABELS_OF_FITS = {
    "no labels": None,
    "labels of one class": 0 * LABELS,
    "labels of one class and -1": MASKED,
    "labels that are all -1": 0 * LABELS - 1,
    "labels that are real numbers": LABELS + 0.5 * np.arange(40),
    "labels of two types": np.array(["a", 1, 2], dtype=object)[LABELS],
    "fewer labels than rows": LABELS[:-1],
}

CASES = {
    # Values and columns.
    "rates above 1": lambda: SDCPRBM().fit(SOFT),
    "sparse rates above 1": lambda: SDCPRBM().fit(sp.csr_array(SOFT)),
    "values of 2 in a growing model": lambda: InfiniteRBM(2).fit(2 * BITS),
    "values of 3 in a classifier": lambda: untrained().fit(np.where(BITS, BITS, 3), LABELS),
    "a threshold below 0 of sparse rows": lambda: SDCPRBM(binarize=-1.0).fit(sp.csr_array(BITS)),
    "an unfitted RBM": lambda: SDCPRBM().score_samples(BITS),
    "an unfitted classifier": lambda: untrained().predict(BITS),
    "one row in a growing model": lambda: InfiniteRBM().fit(BITS[:1]),
    # Trainings.
    "a rate that diverges": lambda: diverging(clone(rbm()).fit(BITS), BITS, warm_start=True),
    "a rate that diverges in a batch": lambda: diverging(
        clone(rbm()).fit(BITS), BITS, method="partial_fit"
    ),
    "a rate that diverges in a growing model": lambda: diverging(
        clone(grown()).fit(BITS), BITS, max_components=4, n_model_samples=64, warm_start=True
    ),
    "layers that a deep fit did not have": lambda: diverging(
        TAPDBM((12, 12), pretrain_max_iter=1, max_iter=1, random_state=0).fit(BITS),
        BITS,
        hidden_layer_sizes=(12, 8),
        warm_start=True,
    ),
    "more hidden units than layers": lambda: TAPDBM(hidden=["bernoulli"] * 3).fit(BITS),
    "a trainer that is no SDCPRBM": lambda: grown().refine(BITS, BernoulliRBM()),
    "weights of fewer rows than the batches": lambda: SDCPRBM(3, max_iter=1).fit(
        BATCHES, sample_weight=np.ones(20)
    ),
    "weights that are all 0": lambda: SDCPRBM().fit(BITS, sample_weight=np.zeros(40)),
    "negative weights": lambda: SDCPRBM().fit(BITS, sample_weight=np.full(40, -1.0)),
    "weights that are NaN": lambda: SDCPRBM().fit(BITS, sample_weight=np.full(40, np.nan)),
    "weights of too few rows": lambda: SDCPRBM().fit(BITS, sample_weight=np.ones(3)),
    # Samples, energies, ln Z.
    "samples of the ladder with conditions": lambda: rbm().sample(2, init="ladder", given={0: 1}),
    "samples of the ladder at a temperature": lambda: rbm().sample(
        2, init="ladder", temperature=2.0
    ),
    "samples of the ladder by tempering": lambda: rbm().sample(2, init="ladder", n_temperatures=3),
    "samples that begin nowhere": lambda: rbm().sample(2, init="rungs"),
    "a negative number of steps": lambda: rbm().gibbs(BITS, -1),
    "hidden states of another shape": lambda: classifier().energy(BITS, np.zeros((40, 2))),
    "ln Z of a classifier from rows": lambda: classifier().log_partition("raise", X=BITS),
    "negative multiplicities": lambda: FractionalModel.from_estimator(grown(), [-1.0]),
    "ln Z of a wide fractional model": lambda: FractionalModel(
        np.ones((1, 23)), [0], np.zeros(23), [1]
    ).log_partition(),
    # Labels.
    "no row with a label to score": lambda: classifier().score(BITS, 0 * LABELS - 1),
    "a label to score that is no class": lambda: of_ten_letters().score_samples(BITS[:1], ["Z"]),
    "a label to sample that is no class": lambda: of_ten_letters().sample(y="Z"),
    "a number to sample that is no class": lambda: classifier().sample(2, y=7),
    "more labels than samples": lambda: classifier().sample(2, y=[0, 1, 2]),
    "a new label in a fit that goes on": lambda: of_ten_letters().fit(
        BITS, np.where(LABELS, "a", "Z")
    ),
    "a new size in a fit that goes on": lambda: (
        clone(classifier()).fit(BITS, LABELS).set_params(n_components=7).fit(BITS, LABELS)
    ),
    "early stopping with a label of each class": lambda: untrained(early_stopping=True).fit(
        BITS, ONE_EACH
    ),
    "labels of one class by weight": lambda: untrained().fit(
        BITS, LABELS, sample_weight=(LABELS == 1).astype(float)
    ),
    "labels that rows do not tell": lambda: untrained(learning_rate=1e-6).fit(BITS, LABELS),
    "batches without labels": lambda: untrained().fit(BATCHES),
    "fewer labels than rows of batches": lambda: untrained().fit(BATCHES, [0, 1, 2]),
    "a first partial_fit without classes": lambda: untrained().partial_fit(BITS, LABELS),
    "a partial_fit with a new label": lambda: untrained().partial_fit(BITS, LABELS, classes=[0, 1]),
    "a partial_fit with other classes": lambda: classifier().partial_fit(
        BITS, LABELS, classes=[0, 1]
    ),
}
for what, labels in LABELS_OF_FITS.items():
    CASES[what] = lambda labels=labels: untrained().fit(BITS, labels)
CASES |= {f"init: {what}": call for what, call in STARTS.items()}
