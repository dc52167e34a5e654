"""Bad input to statistics of networks: inference, resampling, penalties, terms of higher order."""

from functools import cache

import numpy as np
import pandas as pd

from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches
from sklearn_boltz.fully_visible import compare_groups, stability_selection
from sklearn_boltz.inspection import PathDisplay

RNG = np.random.default_rng(0)
SPINS = np.cumprod(RNG.choice([-1, 1], size=(100, 4), p=[0.3, 0.7]), axis=1)
BITS = RNG.integers(2, size=(100, 4))
THREES = RNG.integers(3, size=(100, 4))
GAPS = np.where(RNG.random(SPINS.shape) < 0.1, np.nan, SPINS)
CONSTANT = np.column_stack([SPINS[:, :3], np.ones(100)])
COPY = np.column_stack([SPINS[:, :2], SPINS[:, :2]])
OFF = ~np.eye(4, dtype=bool)
# No row has ones in the first two columns, and no column of three values is free of an empty cell.
EMPTY = np.where(BITS[:, :1] * BITS[:, 1:2] == 1, [0, 1, 1, 1], BITS)
EMPTY_OF_THREES = np.where((THREES[:, :1] == 1) & (OFF[1] == 0), 0, THREES)
NO_TRIPLE = BITS[~BITS[:, :3].all(axis=1)]
RATINGS = pd.DataFrame({"one": THREES[:, 0], "two": THREES[:, 1], "bit": BITS[:, 0]})
WORDS = np.array(["u", "v", "w"])
MINUS_1 = np.vstack([BITS, [0, -1, 1, 0]])


LIKELIHOOD = {"objective": "likelihood"}


def fitting(X=SPINS, **options):
    """A fit, later."""
    return lambda: FVBMPseudoLikelihood(**options).fit(X)


FITS = {
    "plain": (SPINS, {"alpha": 0.0}),
    "one pair": (SPINS, {"edges": [(0, 1)]}),
    "exact": (SPINS, LIKELIHOOD),
    "term": (SPINS, {"terms": [(0, 1, 2)]}),
    "counts": (SPINS, {"count_potential": True, **LIKELIHOOD}),
    "selected": (SPINS, {"penalty": "l1", "alpha": "ebic"}),
    "by node": (SPINS, {"penalty": "l1", "alpha": "ebic", "nodewise": True}),
    "in order": (RATINGS, {"alpha": 0.1, "ordered": "auto"}),
    "bits": (BITS, {"alpha": 0.1}),
    "signs": (2 * BITS - 1, {"alpha": 0.1}),
    "threes": (THREES, {"alpha": 0.1}),
}


@cache
def fitted(name):
    X, options = FITS[name]
    return FVBMPseudoLikelihood(**options).fit(X)


@cache
def density(name):
    return FSLLDensity().fit(FITS[name][0])


@cache
def result():
    """Nothing is estimated of the last column."""
    return FVBMPseudoLikelihood(alpha=0.0).fit(CONSTANT).inference(CONSTANT)


@cache
def resamples(n=2):
    return fitted("plain").bootstrap(SPINS, n, random_state=0)


def of_too_strong_couplings():
    model = FVBMPseudoLikelihood(alpha=0.0).fit(SPINS)
    model.coupling_ = model.coupling_ * 1000
    return model


def of_other_parameters():
    model = FVBMPseudoLikelihood(edges=[(0, 1)]).fit(SPINS)
    model.coupling_ = -model.coupling_
    return model


def groups(labels, X=BITS):
    """A comparison of two groups, later."""
    return lambda: compare_groups(FVBMPseudoLikelihood(alpha=0.0), X, labels, 9)


def labels(*values):
    return np.resize(np.array(values, dtype=object), len(BITS))


def far_from_data(first, second):
    """Samples that all have the last value of the first column, later."""

    def call():
        frame = pd.DataFrame({"level": first, "other": second})
        model = FVBMPseudoLikelihood(alpha=0.1).fit(frame)
        codes, _ = model._codes(frame)
        codes[:, 0] = codes[:, 0].max()
        model._warn_if_far_from_data("Here,", codes, None, len(codes))

    return call


def stable(X=SPINS, penalty="l1", **options):
    """A stability selection, later."""
    return lambda: stability_selection(FVBMPseudoLikelihood(penalty=penalty), X, **options)


BY_CV = FVBMPseudoLikelihood(penalty="l1", alpha="cv", cv=2)

CASES = {
    # Rows for a network, or a density, that is fitted.
    "a value beyond the two of the training data": lambda: fitted("bits").transform([[2, 0, 1, 0]]),
    "such a value where a network learns on": lambda: fitted("bits").partial_fit([[2, 0, 1, 0]]),
    "-1 for a network of bits": lambda: fitted("bits").score_samples([[0, -1, 1, 0]]),
    "a half for a network of bits": lambda: fitted("bits").score_samples([[0.5, 0, 1, 0]]),
    "a 2 for a network of signs": lambda: fitted("signs").score_samples([[-1, -1, 1, 2]]),
    "signs for a network of bits": lambda: fitted("bits").score_samples(2 * BITS - 1),
    "bits for a network of signs": lambda: fitted("signs").score_samples(BITS),
    "signs for a density of bits": lambda: density("bits").score_samples(2 * BITS - 1),
    "-1 for a density of bits": lambda: density("bits").score_samples([[0, -1, 1, 0]]),
    "a half for a density of bits": lambda: density("bits").score_samples([[0, 0.5, 1, 0]]),
    **{
        f"{value} for a {kind} of three values": (
            lambda find=find, value=value: find("threes").score_samples([[value, 0, 1, 2]])
        )
        for kind, find in (("network", fitted), ("density", density))
        for value in (7, -1, 0.5)
    },
    "-1 among bits, to a network": fitting(MINUS_1),
    "-1 among bits, to a density": lambda: FSLLDensity().fit(MINUS_1),
    "energy before fit": lambda: FVBMPseudoLikelihood().energy(BITS),
    # Samples, and temperatures.
    "far from the data, of levels from 1": far_from_data(1 + THREES[:, 0], 1 + THREES[:, 1]),
    "far from the data, of two words": far_from_data(WORDS[BITS[:, 0]], BITS[:, 1]),
    "far from the data, of three words": far_from_data(WORDS[THREES[:, 0]], BITS[:, 1]),
    "far from the data, of bits": far_from_data(BITS[:, 0], BITS[:, 1]),
    "far from the data, of signs": far_from_data(SPINS[:, 0], SPINS[:, 1]),
    "a ladder of one chain": lambda: fitted("bits").log_partition("ladder", n_chains=1),
    "no temperature": lambda: fitted("bits").thermodynamics([]),
    "a negative temperature": lambda: fitted("bits").thermodynamics([1.0, -1.0]),
    "a missing temperature": lambda: fitted("bits").thermodynamics([np.nan]),
    "a table of temperatures": lambda: fitted("bits").thermodynamics([[1.0]]),
    # Inference.
    "null of another length": lambda: fitted("plain").inference(SPINS, null=[0.0, 1.0]),
    "adjustment of p values": lambda: result().adjusted_p_value("bonferroni"),
    "adjustment of p values in a frame": lambda: result().to_frame("bonferroni"),
    "inference of a singular information": lambda: of_too_strong_couplings().inference(SPINS),
    "criterion of a singular information": lambda: of_too_strong_couplings().aic(SPINS),
    "jackknife of the likelihood": lambda: fitted("exact").inference(SPINS, covariance="jackknife"),
    "jackknife after EM": lambda: (
        FVBMPseudoLikelihood(alpha=0.0).fit(GAPS).inference(GAPS, covariance="jackknife")
    ),
    "few rows for inference": lambda: (
        FVBMPseudoLikelihood(edges=[(0, 1)]).fit(SPINS[:16]).inference(SPINS[:16])
    ),
    "inference of ordered columns": lambda: fitted("in order").inference(RATINGS),
    "inference of terms of three": lambda: fitted("term").inference(SPINS),
    "inference of counts": lambda: fitted("counts").inference(SPINS),
    "aic of counts": lambda: fitted("counts").aic(SPINS),
    "bic of counts": lambda: fitted("counts").bic(SPINS),
    "inference of the rows that selected": lambda: fitted("selected").inference(SPINS),
    "refit to the rows that selected": lambda: fitted("selected").inference(SPINS, refit=True),
    "inference of regressions": lambda: fitted("by node").inference(SPINS),
    # Joint tests and contrasts.
    "wald_test of no parameter": lambda: result().wald_test("m[x0,x9]"),
    "wald_test of a number": lambda: result().wald_test(3),
    "wald_test of a pair with no variable": lambda: result().wald_test([("x0", "x9")]),
    "wald_test of three variables": lambda: result().wald_test([("x0", "x1", "x2")]),
    "wald_test of a name turned round": lambda: result().wald_test("m[x2,x0]"),
    "wald_test of a pair that is no list": lambda: result().wald_test(("x1", "x0")),
    "wald_test of what is not estimated": lambda: result().wald_test(["b[x0]", "b[x3]"]),
    "wald_test of nothing": lambda: result().wald_test(np.zeros(10, dtype=bool)),
    "contrast of no parameter": lambda: result().contrast({"b[x0]": 1, "b[x7]": -1}),
    "contrast of nothing": lambda: result().contrast({}),
    # Likelihood ratios.
    "ratio of the smaller to the larger": lambda: fitted("one pair").likelihood_ratio(
        SPINS, fitted("plain")
    ),
    "ratio to terms of three": lambda: fitted("plain").likelihood_ratio(SPINS, fitted("term")),
    "ratio of terms of three": lambda: fitted("term").likelihood_ratio(SPINS, fitted("plain")),
    "ratio to counts": lambda: fitted("exact").likelihood_ratio(SPINS, fitted("counts")),
    "ratio to itself": lambda: fitted("plain").likelihood_ratio(SPINS, fitted("plain")),
    "ratio with another alpha": lambda: fitted("plain").likelihood_ratio(
        SPINS, FVBMPseudoLikelihood(edges=[(0, 1)], alpha=0.1).fit(SPINS)
    ),
    "ratio with other columns": lambda: fitted("plain").likelihood_ratio(
        SPINS, FVBMPseudoLikelihood(alpha=0.0).fit(SPINS[:, :3])
    ),
    "ratio with another objective": lambda: fitted("plain").likelihood_ratio(
        SPINS, fitted("exact")
    ),
    "ratio to an RBM": lambda: fitted("plain").likelihood_ratio(
        SPINS, SDCPRBM(2, max_iter=1).fit(BITS)
    ),
    "ratio of other rows": lambda: of_other_parameters().likelihood_ratio(
        SPINS, FVBMPseudoLikelihood(edges=[]).fit(SPINS)
    ),
    "ratio with missing cells": lambda: fitted("plain").likelihood_ratio(GAPS, fitted("one pair")),
    # Resampling.
    "previous of other rows": lambda: fitted("plain").bootstrap(
        SPINS[:-1], 2, previous=resamples()
    ),
    "previous of the other method": lambda: fitted("plain").bootstrap(
        SPINS, 2, previous=resamples(), method="parametric"
    ),
    "previous without reselection": lambda: fitted("plain").bootstrap(
        SPINS, 2, previous=resamples(), reselect=True
    ),
    "resamples of regressions": lambda: fitted("by node").bootstrap(SPINS, 2),
    "interval of one resample": lambda: resamples(1).interval(),
    "frame of one resample": lambda: resamples(1).to_frame(),
    "std_err of one resample": lambda: resamples(1).std_err,
    "stability of a penalty that selects nothing": stable(penalty="l2"),
    "stability without an error": stable(max_false=0.01),
    "stability with weights that are no counts": stable(sample_weight=np.full(100, 0.5)),
    "one group": groups(np.zeros(100)),
    "three groups": groups(np.arange(100) % 3),
    "missing labels": groups(labels(1.0, np.nan)),
    "missing labels, None": groups(labels("yes", None)),
    "missing labels among words": groups(labels("yes", "no", np.nan)),
    "labels of several types": groups(labels("a", 1)),
    "the name of a column for labels": groups("smoker"),
    "column without a value in a group": groups(
        labels(0, 1), np.where((labels(0, 1)[:, None] == 0) & ~OFF[1], np.nan, BITS)
    ),
    # Penalties.
    "alpha='ebic' of l2": fitting(alpha="ebic"),
    "alpha='ebic' of l2 and three values": fitting(THREES, alpha="ebic"),
    "path of l2": lambda: PathDisplay.from_estimator(fitted("bits")),
    "path of l2 and three values": lambda: PathDisplay.from_estimator(fitted("threes")),
    "path of a density": lambda: PathDisplay.from_estimator(density("bits")),
    "solver of a sparse network": fitting(penalty="l1", alpha=0.1, solver="bslm"),
    "sparse with order": fitting(penalty="l1", alpha=0.1, ordered=True),
    "l1 of three values": fitting(THREES, penalty="l1", alpha=0.1),
    "regressions by EM": fitting(GAPS, nodewise=True),
    "alpha='cv' of batches": lambda: BY_CV.fit(Batches([SPINS, SPINS])),
    "alpha='cv' of parts": lambda: BY_CV.partial_fit(SPINS).partial_fit(SPINS),
    "likelihood of l1": fitting(penalty="l1", **LIKELIHOOD),
    "likelihood with alpha='cv'": fitting(alpha="cv", **LIKELIHOOD),
    "likelihood by nodes": fitting(nodewise=True, **LIKELIHOOD),
    "likelihood of l1 by nodes without it": fitting(
        penalty="l1", alpha=0.0, nodewise=True, **LIKELIHOOD
    ),
    "likelihood of groups by nodes": fitting(
        penalty="group", alpha="ebic", nodewise=True, **LIKELIHOOD
    ),
    "likelihood with edges": fitting(edges=[(0, 1)], **LIKELIHOOD),
    "likelihood with a mask": fitting(edges=OFF, **LIKELIHOOD),
    "edges of another shape": fitting(edges=np.ones((3, 3), dtype=bool)),
    "edges of numbers": fitting(edges=np.ones((4, 4))),
    "edges of different lengths": fitting(edges=[[True], [True, False]]),
    "edges of no variable": fitting(edges=[("x0", "y")]),
    "edges of no number": fitting(edges=[(0, 1), (2, 9)]),
    "edges of a column with itself": fitting(edges=[(0, 1), (2, 2)]),
    "edges one way": fitting(edges=np.triu(np.ones((4, 4), dtype=bool))),
    "too few orders": fitting(RATINGS, ordered=[True]),
    "orders that are numbers": fitting(RATINGS, ordered=[0, 1, 1]),
    "orders that are names": fitting(RATINGS, ordered=["one"]),
    # Terms of three columns and more, and counts.
    "terms of two": fitting(terms=[(0, 1)]),
    "terms of two by the likelihood": fitting(terms=[(0, 1)], **LIKELIHOOD),
    "terms with a column twice": fitting(terms=[(0, 1, 1)]),
    "terms with a negative number": fitting(terms=[(0, 1, -1)]),
    "terms that are no list": fitting(terms=(0, 1, 2)),
    "terms by their printed names": fitting(terms=["x0*x1*x2"]),
    "terms of no variable": fitting(terms=[(0, 1, "z")]),
    "terms and max_order": fitting(terms=[(0, 1, 2)], max_order=3),
    "terms of three values": fitting(THREES, terms=[(0, 1, 2)]),
    "max_order of three values": fitting(THREES, max_order=3),
    "max_order of nodes": fitting(max_order=3, nodewise=True),
    "max_order of l1": fitting(max_order=3, penalty="l1", alpha=0.1),
    "max_order of l1 with alpha='ebic'": fitting(max_order=3, penalty="l1", alpha="ebic"),
    "max_order with a solver": fitting(max_order=3, solver="bslm"),
    "max_order of the likelihood": fitting(max_order=3, **LIKELIHOOD),
    "max_order with missing cells": fitting(GAPS, max_order=3),
    "counts of the pseudo-likelihood": fitting(count_potential=True),
    "counts with a constant column": fitting(CONSTANT, count_potential=True, **LIKELIHOOD),
    "counts with missing cells": fitting(GAPS, count_potential=True, **LIKELIHOOD),
    # Where there is no maximum.
    "no maximum of two bits": fitting(EMPTY, alpha=0.0),
    "no maximum of two columns of three values": fitting(EMPTY_OF_THREES, alpha=0.0),
    "no maximum of equal columns by edges": fitting(COPY, edges=OFF),
    "no maximum of a term": fitting(NO_TRIPLE, terms=[(0, 1, 2)]),
    "no maximum for inference": lambda: (
        FVBMPseudoLikelihood()
        .fit(pd.DataFrame(COPY, columns=list("abcd")))
        .inference(pd.DataFrame(COPY, columns=list("abcd")))
    ),
}
