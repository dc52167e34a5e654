"""Bad input to RBMs that are trained by chains, that grow, and that predict."""

from copy import deepcopy
from functools import partial

import numpy as np
import pandas as pd
from contract.once import once
from sklearn.base import clone
from sklearn.datasets import load_digits
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

BITS = np.random.default_rng(0).integers(2, size=(40, 4)).astype(float)
ONES = np.ones(40)
LABELS = np.arange(40) % 3
PIXELS = np.tile(BITS, 4) * np.linspace(16, 255, 40).round()[:, np.newaxis]
LETTERS = np.array(list("abcdefghij"))[np.arange(40) % 10]
FRAME = pd.DataFrame(BITS.astype(int), columns=list("abcd")).assign(
    town=np.array(["Oslo", "Rome", "Cairo"])[LABELS], always=1
)
PEOPLE = pd.DataFrame({"sex": list("mf") * 20, "age": np.linspace(20, 70, 40)})
NETWORK = FVBMPseudoLikelihood(alpha=0.1)
BATCHES = Batches([BITS[:20], BITS[20:]])
RATES = np.where(BITS[:, :1] > 0, 1.5, BITS)


def bits_of_spins(J, h, n, rng):
    return rng.integers(2, size=(n, len(h)))


def classifier(**options):
    quick = {"n_components": 3, "max_iter": 1, "early_stopping": False, "random_state": 0}
    return RBMClassifier(**quick | options)


QUICK = {"max_iter": 1, "random_state": 0}
MODELS = {
    "sdcp": SDCPRBM(3, **QUICK),
    "grown": InfiniteRBM(2, n_model_samples=32, early_stopping=False, random_state=0),
    "deep": TAPDBM((3, 3), pretrain_max_iter=1, **QUICK),
    "numbers": classifier(warm_start=True),
    "letters": classifier(warm_start=True),
}


@once
def fitted(name):
    return clone(MODELS[name]).fit(BITS, LETTERS if name == "letters" else LABELS)


def going_on(name, *data, **options):
    """A fit that goes on with other parameters."""
    deepcopy(fitted(name)).set_params(warm_start=True, **options).fit(*data)


def diverging_in_batches():
    model = deepcopy(fitted("sdcp")).set_params(learning_rate=1.7e308)
    model.partial_fit(BITS).partial_fit(BITS)


def begun_at(init, X=FRAME, **options):
    SDCPRBM(20, init=init, max_iter=1, **options).fit(X)


def classifier_begun_at(init):
    classifier(init=init).fit(BITS, LABELS)


def grown_from(init, X=BITS):
    InfiniteRBM(3, init=init).fit(X)


REAL = {"max_iter": 1, "columns": "gaussian"}
REAL_HIDDEN = {"max_iter": 1, "hidden": "gaussian"}
OF_AGES = {"init": NETWORK, "columns": {"age": "gaussian"}}
# Weights of two columns and a unit, biases of the columns and of the unit.
PARAMETERS = [
    ([[1.0, 2.0]], [0.0]), ([[1.0, 2.0]], None, [0.0, 0.0]), ([[1.0, 2.0]], [0.0, np.inf]),
    ([1.0, 2.0],), ([[np.nan, 0.0]],),
]  # fmt: skip
STARTS = {
    "another kind of estimator": lambda: begun_at(LogisticRegression()),
    "epochs by the name of scikit-learn": lambda: SDCPRBM(n_iter=10),
    "a fitted RBM of scikit-learn": lambda: begun_at(BernoulliRBM(5, n_iter=1).fit(BITS), BITS),
    "a frozen RBM of scikit-learn": lambda: begun_at(FrozenEstimator(BernoulliRBM(5)), BITS),
    "a classifier": lambda: begun_at(RBMClassifier(5)),
    "a deep machine": lambda: begun_at(TAPDBM((5, 3))),
    "a log-linear model in a classifier": lambda: classifier_begun_at(FSLLDensity()),
    "an RBM of scikit-learn in a growing model": lambda: grown_from(BernoulliRBM(5)),
    "a network beside hidden categories": lambda: begun_at(NETWORK, hidden=("categorical", 3)),
    "a network beside real numbers": lambda: begun_at(NETWORK, columns={"a": "gaussian"}),
    "a network beside ages": lambda: SDCPRBM(5, **OF_AGES).fit(PEOPLE),
    "a network beside ages in a classifier": lambda: classifier(**OF_AGES).fit(PEOPLE, LABELS),
    "a network of other columns": lambda: begun_at(clone(NETWORK).fit(BITS)),
    "a network of fewer columns": lambda: begun_at(clone(NETWORK).fit(FRAME.drop(columns="a"))),
    "an unfitted network in partial_fit": lambda: SDCPRBM(init=NETWORK).partial_fit(BITS),
    "fewer columns in a growing model": lambda: grown_from(fitted("sdcp"), BITS[:, :3]),
    "more units than there are to be": lambda: begun_at(SDCPRBM(30, max_iter=1)),
    "more units than a classifier": lambda: classifier_begun_at(SDCPRBM(7, max_iter=1)),
    "hidden categories": lambda: begun_at(SDCPRBM(5, max_iter=1, hidden=("categorical", 3))),
    "real hidden units in a classifier": lambda: classifier_begun_at(SDCPRBM(3, **REAL_HIDDEN)),
    "real hidden units in a growing model": lambda: grown_from(SDCPRBM(3, **REAL_HIDDEN)),
    "other visible units": lambda: begun_at(SDCPRBM(5, max_iter=1, columns="nominal")),
    "real units in a classifier": lambda: classifier_begun_at(SDCPRBM(3, **REAL)),
}
LABELS_OF_FITS = {
    "no labels": None,
    "labels that are all -1": 0 * LABELS - 1,
    "labels that are real numbers": LABELS + 0.5 * np.arange(40),
}
NEW_LETTER = np.where(LABELS, "a", "Z")
ONE_EACH = np.where(np.arange(40) < 3, LABELS, -1)

CASES = {
    # Values, trainings and weights.
    "rates above 1": lambda: SDCPRBM(columns="probability").fit(RATES),
    "probabilities of 2 in a growing model": lambda: InfiniteRBM(2, columns="probability").fit(
        2 * BITS
    ),
    "digits of 16 grey levels": lambda: SDCPRBM(2, max_iter=1, random_state=0).fit(
        load_digits().data[:100]
    ),
    "pictures of 8 bits": lambda: classifier().fit(PIXELS, LABELS),
    "a condition for samples of two classes": lambda: fitted("numbers").sample(
        2, y=[0, 1], where=lambda rows: rows[:, 0] > 0
    ),
    "one row in a growing model": lambda: InfiniteRBM().fit(BITS[:1]),
    "a rate that diverges": lambda: going_on("sdcp", BITS, learning_rate=1.7e308),
    "a rate that diverges in batches": diverging_in_batches,
    "a rate that diverges as a model grows": lambda: going_on(
        "grown", BITS, learning_rate=1.7e308, max_components=4, n_model_samples=64
    ),
    "other layers in a fit that goes on": lambda: going_on("deep", BITS, hidden_layer_sizes=(3, 2)),
    "more hidden units than layers": lambda: TAPDBM(hidden=["bernoulli"] * 3).fit(BITS),
    "fewer weights than rows of batches": lambda: SDCPRBM(3).fit(BATCHES, sample_weight=ONES[:20]),
    "negative weights": lambda: SDCPRBM().fit(BITS, sample_weight=-ONES),
    "weights that are NaN": lambda: SDCPRBM().fit(BITS, sample_weight=np.nan * ONES),
    "weights of too few rows": lambda: SDCPRBM().fit(BITS, sample_weight=ONES[:3]),
    "a sampler for numbers": lambda: SDCPRBM(3, chains=np.ones, columns="gaussian").fit(BITS),
    "a sampler for hidden numbers": lambda: SDCPRBM(3, chains=np.ones, hidden="relu").fit(BITS),
    "a sampler for words": lambda: SDCPRBM(3, chains=np.ones).fit(FRAME),
    "a sampler beside a ladder": lambda: SDCPRBM(3, chains=np.ones, tempered=0.5).fit(BITS),
    "a sampler of bits for an RBM": lambda: SDCPRBM(3, chains=bits_of_spins).fit(BITS),
    # Samples, energies, ln Z.
    **{
        f"samples of the ladder {how}": lambda options=options: fitted("sdcp").sample(
            init="ladder", **options
        )
        for how, options in {
            "with conditions": {"given": {0: 1}},
            "at a temperature": {"temperature": 2.0},
            "by tempering": {"n_temperatures": 3},
        }.items()
    },
    "a negative number of steps": lambda: fitted("sdcp").gibbs(BITS, -1),
    "too few steps for probabilities": lambda: SDCPRBM.from_parameters(
        3 * (np.arange(30) == 0)[:, None] * np.ones(30), np.full(30, -1.5)
    ).predict_column_proba(np.full((2, 30), np.nan), 2, n_steps=1),
    "hidden states of another shape": lambda: fitted("numbers").energy(BITS, BITS[:, :2]),
    "ln Z of a classifier from rows": lambda: fitted("numbers").log_partition("raise", X=BITS),
    # Labels.
    "no row with a label to score": lambda: fitted("numbers").score(BITS, 0 * LABELS - 1),
    "a label to score that is no class": lambda: fitted("letters").score_samples(BITS[:1], ["Z"]),
    "a number to sample that is no class": lambda: fitted("numbers").sample(2, y=7),
    "more labels than samples": lambda: fitted("numbers").sample(2, y=[0, 1, 2]),
    "a new label in a fit that goes on": lambda: going_on("letters", BITS, NEW_LETTER),
    "a new size in a fit that goes on": lambda: going_on("numbers", BITS, LABELS, n_components=7),
    "early stopping with a label of each class": lambda: classifier(early_stopping=True).fit(
        BITS, ONE_EACH
    ),
    "labels of one class by weight": lambda: classifier().fit(BITS, LABELS, 1.0 * (LABELS == 1)),
    "a weight of a class that is not there": lambda: classifier(class_weight={9: 1.0}).fit(
        BITS, LABELS
    ),
    "batches without labels": lambda: classifier().fit(BATCHES),
    "fewer labels than rows of batches": lambda: classifier().fit(BATCHES, [0, 1, 2]),
    "a first partial_fit without classes": lambda: classifier().partial_fit(BITS, LABELS),
    "a partial_fit with a new label": lambda: classifier().partial_fit(BITS, LABELS, [0, 1]),
    "a partial_fit with other classes": lambda: fitted("numbers").partial_fit(BITS, LABELS, [0, 1]),
}
for what, labels in LABELS_OF_FITS.items():
    CASES[what] = lambda labels=labels: classifier().fit(BITS, labels)
CASES |= {f"parameters {given}": partial(SDCPRBM.from_parameters, *given) for given in PARAMETERS}
CASES |= {f"init: {what}": call for what, call in STARTS.items()}
