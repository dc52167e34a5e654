"""Bad input to statistics of networks: inference, resampling, penalties, terms of higher order."""

import numpy as np
import pandas as pd
from contract.once import once
from networks import fit, spins

from sklearn_boltz import (
    SDCPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
    statistics,
)
from sklearn_boltz.batches import Batches
from sklearn_boltz.statistics import compare_groups, stability_selection

RNG = np.random.default_rng(0)
SPINS = spins(100, 4)
BITS = RNG.integers(2, size=(100, 4))
THREES = RNG.integers(3, size=(100, 4))
WORDS = np.array(["u", "v", "w"])
RATINGS = pd.DataFrame({"one": THREES[:, 0], "two": THREES[:, 1], "bit": BITS[:, 0]})
GAPS = spins(100, 4, missing=0.1)
MINUS_1 = np.vstack([BITS, [0, -1, 1, 0]])
CONSTANT = np.column_stack([SPINS[:, :3], np.ones(100)])
COPY = pd.DataFrame(np.column_stack([SPINS[:, :2], SPINS[:, :2]]), columns=list("abcd"))
OFF = ~np.eye(4, dtype=bool)
EMPTY_TERM = BITS[~BITS[:, :3].all(axis=1)]
TERM = np.column_stack([SPINS, np.where(np.arange(100) % 9, SPINS[:, 0] * SPINS[:, 1], 1)])
LIKELIHOOD = {"kind": MaximumEntropy}
BY_CV = SparseFVBM(penalty="l1", alpha="cv", cv=2)
FITS = {
    "plain": (SPINS, {}),
    "one pair": (SPINS, {"edges": [(0, 1)]}),
    "penalised pair": (SPINS, {"edges": [(0, 1)], "alpha": 0.1}),
    "pair of other rows": (SPINS * [1, -1, 1, 1], {"edges": [(0, 1)]}),
    "no pair": (SPINS, {"edges": []}),
    "three columns": (SPINS[:, :3], {}),
    "few rows": (SPINS[2:7], {"edges": [(0, 1)]}),
    "gaps": (GAPS, {}),
    "exact": (SPINS, LIKELIHOOD),
    "term": (SPINS, {"terms": [(0, 1, 2)], **LIKELIHOOD}),
    "counts": (SPINS, {"count_potential": True, **LIKELIHOOD}),
    "selected": (SPINS, {"penalty": "l1", "alpha": "ebic"}),
    "by node": (SPINS, {"penalty": "l1", "alpha": "ebic", "nodewise": "and"}),
    "in order": (RATINGS, {"alpha": 0.1, "columns": "ordinal"}),
    "bits": (BITS, {"alpha": 0.1}),
    "signs": (2 * BITS - 1, {"alpha": 0.1}),
    "threes": (THREES, {"alpha": 0.1}),
    "numbers": (np.column_stack([BITS, RNG.normal(size=100)]), {"columns": {4: "number"}}),
}


WAGES = pd.DataFrame({"pay": np.arange(60) / 7, "job": ["a", "b", "c"] * 20})


@once
def network(name):
    X, options = FITS[name]
    return fit(X, **options)


@once
def density(name):
    return FSLLDensity().fit(FITS[name][0])


@once
def result():
    """Nothing is estimated of the last column."""
    return statistics.inference(fit(CONSTANT), CONSTANT)


@once
def resamples(n=2):
    return statistics.bootstrap(network("plain"), SPINS, n, random_state=0)


def strong():
    """Couplings of which the data say nothing."""
    model = fit(SPINS)
    model.coupling_ = model.coupling_ * 1000
    return model


def rbm(**units):
    return SDCPRBM(2, max_iter=0, random_state=0, **units).fit(BITS.astype(float))


def temperature(rows):
    return statistics.estimate_inverse_temperature(network("bits"), rows)


# Calls that are made later.


def sampling(sampler):
    return lambda: network("plain").sample(3, sampler=sampler)


def fitting(X=SPINS, **options):
    return lambda: fit(X, **options)


def scores(find, name, X):
    return lambda: find(name).score_samples(np.reshape(X, (-1, 4)))


def inference(name, **options):
    return lambda: statistics.inference(network(name), FITS[name][0], **options)


def fit_of(X):
    return FVBMPseudoLikelihood().fit(X), X


def wald(tested):
    return lambda: result().wald_test(tested)


def ratio(name, smaller, X=SPINS):
    return lambda: statistics.likelihood_ratio(network(name), X, network(smaller))


def resampling(X=SPINS, **options):
    return lambda: statistics.bootstrap(network("plain"), X, 2, previous=resamples(), **options)


def stable(penalty="group", **options):
    return lambda: stability_selection(SparseFVBM(penalty=penalty), SPINS, **options)


def edges_of(X, **options):
    return lambda: statistics.edge_inclusion(
        fit(X, alpha=1.0, **options), X, n_sweeps=400, random_state=0
    )


def central(X=SPINS, estimator=None, **options):
    estimator = SparseFVBM(alpha=0.01) if estimator is None else estimator
    return lambda: statistics.centrality_stability(estimator, X, **options)


def labels(*values):
    return np.resize(np.array(values, dtype=object), len(BITS))


def groups(labels, X=BITS):
    return lambda: compare_groups(FVBMPseudoLikelihood(alpha=0.0), X, labels, 9)


def far_from_data(first, second):
    """Samples that all have the last value of the first column."""

    def call():
        frame = pd.DataFrame({"level": first, "other": second})
        model = fit(frame, alpha=0.1)
        codes = model._codes(frame)
        codes[:, 0] = codes[:, 0].max()
        model._warn_if_far_from_data("Here,", codes, None, len(codes))

    return call


CASES = {
    # Rows for a network, or a density, that is network.
    "-1 for a network of bits": scores(network, "bits", [0, -1, 1, 0]),
    "a half for a network of bits": scores(network, "bits", [0.5, 0, 1, 0]),
    "bits for a network of signs": scores(network, "signs", BITS),
    "signs for a density of bits": scores(density, "bits", 2 * BITS - 1),
    "-1 for a density of bits": scores(density, "bits", [0, -1, 1, 0]),
    "a half for a density of bits": scores(density, "bits", [0, 0.5, 1, 0]),
    **{
        f"{value} for a {find.__name__} of three values": scores(find, "threes", [value, 0, 1, 2])
        for find in (network, density)
        for value in (7, -1, 0.5)
    },
    "-1 among bits, to a network": fitting(MINUS_1),
    "-1 among bits, to a density": lambda: FSLLDensity().fit(MINUS_1),
    # Samples, and temperatures.
    "far from the data, of levels from 1": far_from_data(1 + THREES[:, 0], 1 + THREES[:, 1]),
    "far from the data, of two words": far_from_data(WORDS[BITS[:, 0]], BITS[:, 1]),
    "far from the data, of three words": far_from_data(WORDS[THREES[:, 0]], BITS[:, 1]),
    "far from the data, of bits": far_from_data(BITS[:, 0], BITS[:, 1]),
    "a ladder of one chain": lambda: network("bits").log_partition("ladder", n_chains=1),
    "no temperature": lambda: statistics.thermodynamics(network("bits"), []),
    "a negative temperature": lambda: statistics.thermodynamics(network("bits"), [1.0, -1.0]),
    "a missing temperature": lambda: statistics.thermodynamics(network("bits"), [np.nan]),
    "a table of temperatures": lambda: statistics.thermodynamics(network("bits"), [[1.0]]),
    # Spins, samplers and chains.
    "spins of a density": lambda: statistics.to_ising(density("bits")),
    "spins of three values": lambda: statistics.to_ising(network("threes")),
    "spins of no coding": lambda: statistics.to_ising(network("bits"), coding="signs"),
    "interactions of three values": lambda: network("threes").interactions(),
    "spins of terms": lambda: statistics.to_ising(network("term")),
    "spins of numbers": lambda: statistics.to_ising(network("numbers")),
    "spins of numbers in an RBM": lambda: statistics.to_ising(rbm(columns="gaussian")),
    "spins of an RBM with other hidden units": lambda: statistics.to_ising(
        rbm(hidden="truncated_gaussian")
    ),
    "temperature of a single row": lambda: temperature(BITS[:1]),
    "temperature of rows with gaps": lambda: temperature(np.where(BITS, np.nan, 0.0)),
    "temperature where all states are alike": lambda: statistics.estimate_inverse_temperature(
        FVBMPseudoLikelihood.from_couplings(np.zeros((4, 4))), SPINS
    ),
    "sampler of other numbers of states": sampling(lambda J, h, n, rng: np.ones((5, len(h)))),
    "sampler of bits": sampling(lambda J, h, n, rng: rng.integers(2, size=(n, len(h)))),
    "sampler for three values": lambda: network("threes").sample(3, sampler=np.ones),
    "sampler and terms": fitting(terms=[(0, 1, 2)], sampler=np.ones, **LIKELIHOOD),
    "sampler and missing cells": fitting(GAPS, sampler=np.ones, **LIKELIHOOD),
    "chains of two steps": lambda: statistics.r_hat([[0.0, 1.0], [1.0, 0.0]]),
    "chains with a gap": lambda: statistics.r_hat([[0.0, 1.0, np.nan, 1.0]]),
    "short chains": lambda: statistics.autocorrelation_time(np.arange(20.0)),
    # Inference.
    "null of another length": inference("plain", null=[0.0, 1.0]),
    "adjustment of p values": lambda: result().adjusted_p_value("bonferroni"),
    "inference of a singular information": lambda: statistics.inference(strong(), SPINS),
    "jackknife of the likelihood": inference("exact", covariance="jackknife"),
    "errors of the likelihood of gaps": lambda: statistics.inference(fit(GAPS, **LIKELIHOOD), GAPS),
    "few rows for inference": inference("few rows"),
    "inference of ordered columns": inference("in order"),
    "inference of bins with a penalty": lambda: statistics.inference(
        FVBMPseudoLikelihood(alpha=0.1).fit(WAGES), WAGES
    ),
    "inference of a number that follows": lambda: statistics.inference(
        *fit_of(WAGES.assign(tax=WAGES["pay"] / 5))
    ),
    "inference of terms of three": inference("term"),
    "inference of counts": inference("counts"),
    "inference of the rows that selected": inference("selected"),
    "inference of regressions without a penalty": lambda: statistics.inference(
        fit(SPINS, penalty="l1", nodewise="and"), SPINS
    ),
    "split of what selects nothing": inference("plain", split=0.5),
    "split of another length": inference("selected", split=[True, False]),
    "split by numbers": inference("selected", split=np.arange(100)),
    "split without a row to estimate": inference("selected", split=0.999),
    "split without a row to select": inference("selected", split=np.zeros(100, dtype=bool)),
    "split where terms are selected": lambda: statistics.inference(
        SparseFVBM(max_order=3, term_price=1e-9), np.tile(BITS, (4, 1)), split=np.arange(400) < 200
    ),
    # Joint tests and contrasts.
    "wald_test of no parameter": wald("m[x0,x9]"),
    "wald_test of a number": wald(3),
    "wald_test of a pair with no variable": wald([("x0", "x9")]),
    "wald_test of three variables": wald([("x0", "x1", "x2")]),
    "wald_test of a name turned round": wald("m[x2,x0]"),
    "wald_test of a pair that is no list": wald(("x1", "x0")),
    "wald_test of what is not estimated": wald(["b[x0]", "b[x3]"]),
    "wald_test of nothing": wald(np.zeros(10, dtype=bool)),
    "contrast of nothing": lambda: result().contrast({}),
    # Likelihood ratios.
    "ratio of the smaller to the larger": ratio("one pair", "plain"),
    "ratio to itself": ratio("plain", "plain"),
    "ratio with another alpha": ratio("plain", "penalised pair"),
    "ratio with other columns": ratio("plain", "three columns"),
    "ratio with another objective": ratio("plain", "exact"),
    "ratio to an RBM": lambda: statistics.likelihood_ratio(
        network("plain"), SPINS, SDCPRBM(2, max_iter=1).fit(BITS)
    ),
    "ratio of other rows": ratio("pair of other rows", "no pair"),
    "ratio with missing cells": ratio("plain", "one pair", GAPS),
    # Resampling.
    "previous of other rows": resampling(SPINS[:-1]),
    "previous of the other method": resampling(method="parametric"),
    "previous with reselection": resampling(reselect=False),
    "parametric resamples of numbers": lambda: statistics.bootstrap(
        network("numbers"), FITS["numbers"][0], 2, method="parametric"
    ),
    "stability of numbers": lambda: stability_selection(
        SparseFVBM(columns={4: "number"}), FITS["numbers"][0]
    ),
    "resamples of regressions": lambda: statistics.bootstrap(
        network("by node"), SPINS, 2, reselect=False
    ),
    "interval of no method": lambda: resamples().interval("bca"),
    "interval of one resample": lambda: resamples(1).interval(),
    "stability of a penalty that selects nothing": stable(penalty="l2"),
    "stability without an error": stable(max_false=0.01),
    "inclusion of edges of an RBM": lambda: statistics.edge_inclusion(SDCPRBM(2), BITS),
    "inclusion of edges of strings": edges_of(pd.DataFrame(WORDS[THREES], columns=list("abcd"))),
    "inclusion of edges of nominal codes": edges_of(THREES, columns={1: "nominal", 3: "nominal"}),
    "inclusion of edges of numbers": edges_of(RNG.normal(size=(100, 2)), columns="number"),
    "inclusion of edges of a constant column": edges_of(CONSTANT),
    "inclusion of edges of rows with gaps": edges_of(GAPS),
    "centrality of an RBM": lambda: statistics.centrality(SDCPRBM(2)),
    "communities of too few columns": lambda: statistics.centrality(
        network("bits"), communities=[0, 1]
    ),
    "communities with a gap": lambda: statistics.centrality(
        network("bits"), communities=["a", "b", None, "b"]
    ),
    "stability of an RBM": central(estimator=SDCPRBM(2)),
    "stability of bridges without communities": central(statistic="bridge_strength"),
    "stability of no coupling": central(estimator=SparseFVBM(alpha=9.0)),
    "stability without rows": central(shares=[0.5, 1.0]),
    "one group": groups(np.zeros(100)),
    "three groups": groups(np.arange(100) % 3),
    "missing labels": groups(labels(1.0, np.nan)),
    "missing labels, None": groups(labels("yes", None)),
    "missing labels among words": groups(labels("yes", "no", np.nan)),
    "labels of several types": groups(labels("a", 1)),
    "the name of a column for labels": groups("smoker"),
    "column without a value in a group": groups(
        labels(0, 1), np.where(OFF[1] | (labels(0, 1)[:, None] == 1), BITS, np.nan)
    ),
    # Penalties.
    "alpha='ebic' of l2": fitting(alpha="ebic"),
    "relax of l2": fitting(alpha=0.1, relax=True),
    "l1 of three values": fitting(THREES, penalty="l1", alpha=0.1),
    "regressions by EM": fitting(GAPS, nodewise="and"),
    "alpha='cv' of batches": lambda: BY_CV.fit(Batches([SPINS, SPINS])),
    "edges of another shape": fitting(edges=np.ones((3, 3), dtype=bool)),
    "edges of numbers": fitting(edges=np.ones((4, 4))),
    "edges of different lengths": fitting(edges=[[True], [True, False]]),
    "edges of no variable": fitting(edges=[("x0", "y")]),
    "edges of no number": fitting(edges=[(0, 1), (2, 9)]),
    "edges of a column with itself": fitting(edges=[(0, 1), (2, 2)]),
    "edges one way": fitting(edges=np.triu(np.ones((4, 4), dtype=bool))),
    # Terms of three columns and more, and counts.
    "terms of two": fitting(terms=[(0, 1)], **LIKELIHOOD),
    "terms with a column twice": fitting(terms=[(0, 1, 1)], **LIKELIHOOD),
    "terms with a negative number": fitting(terms=[(0, 1, -1)], **LIKELIHOOD),
    "terms that are no list": fitting(terms=(0, 1, 2), **LIKELIHOOD),
    "terms by their printed names": fitting(terms=["x0*x1*x2"], **LIKELIHOOD),
    "terms of no variable": fitting(terms=[(0, 1, "z")], **LIKELIHOOD),
    "terms of three values": fitting(THREES, terms=[(0, 1, 2)], **LIKELIHOOD),
    "terms with missing cells": fitting(GAPS, terms=[(0, 1, 2)], **LIKELIHOOD),
    "terms after two rounds": fitting(TERM, alpha=0.01, max_order=3, max_iter=2),
    "terms after one iteration": fitting(
        TERM, terms=[(0, 1, 4)], max_iter=1, alpha=0.01, **LIKELIHOOD
    ),
    "max_order of three values": fitting(THREES, max_order=3),
    "max_order with missing cells": fitting(GAPS, max_order=3),
    "counts with a constant column": fitting(CONSTANT, count_potential=True, **LIKELIHOOD),
    # Where there is no maximum.
    "no maximum of a term": fitting(EMPTY_TERM, terms=[(0, 1, 2)], **LIKELIHOOD),
    "no maximum for inference": lambda: statistics.inference(fit(COPY, alpha="auto"), COPY),
}
