"""Models of a table do not depend on how it is written: order, values, types, weights, parts."""

import functools

import numpy as np
import pytest
from contract.estimators import Location
from networks import categories, items, spins
from numpy.testing import assert_allclose
from rounding import another_processor, within
from sklearn.base import clone

from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood, MaximumEntropy, SparseFVBM, statistics
from sklearn_boltz.batches import Batches

RNG = np.random.default_rng(0)
SPINS, GAPS = spins(150, 4, 6), spins(300, 4, 1, missing=0.2)
CODES = categories(300, (2, 3, 4), 1).astype(float)
CODE_GAPS = np.where(RNG.random(CODES.shape) < 0.2, np.nan, CODES)
CODE_GAPS = CODE_GAPS[~np.isnan(CODE_GAPS).all(axis=1)]
NUMBERS = np.column_stack([np.cumsum(RNG.normal(size=(150, 2)), axis=1), CODES[:150, 1]])
NUMBERS[RNG.random(NUMBERS.shape) < 0.1] = np.nan
OF_CODES = {"alpha": 0.02, "tol": 1e-9, "columns": [range(2), range(3), range(4)]}
CASES = {
    "auto": (FVBMPseudoLikelihood(tol=1e-9), SPINS),
    "no penalty": (FVBMPseudoLikelihood(alpha=0.0, tol=1e-9), SPINS),
    "EM": (FVBMPseudoLikelihood(alpha=0.02, tol=1e-9), GAPS),
    "observed": (FVBMPseudoLikelihood(alpha=0.02, tol=1e-9, missing="observed"), GAPS),
    "EM of codes": (FVBMPseudoLikelihood(**OF_CODES), CODE_GAPS),
    "observed codes": (FVBMPseudoLikelihood(**OF_CODES, missing="observed"), CODE_GAPS),
    "auto of codes": (FVBMPseudoLikelihood(**OF_CODES | {"alpha": "auto"}), CODES),
    "levels": (
        FVBMPseudoLikelihood(alpha=0.1, tol=1e-12, columns=("ordinal", range(5))), items(200, 3)
    ),
    "lasso": (SparseFVBM(penalty="l1", alpha=0.05, tol=1e-11), SPINS),
    "EBIC": (SparseFVBM(penalty="l1", tol=1e-11), SPINS),
    "by node": (SparseFVBM(penalty="l1", nodewise="and", tol=1e-11), SPINS),
    "elastic net": (SparseFVBM(penalty="elasticnet", alpha=0.05, tol=1e-11), SPINS),
    "likelihood": (MaximumEntropy(tol=1e-9), SPINS),
    "numbers": (Location(alpha=0.1), NUMBERS),
    "observed numbers": (Location(alpha=0.1, missing="observed"), NUMBERS),
    "terms": (FSLLDensity(), SPINS > 0),
    "terms of codes": (FSLLDensity(columns=OF_CODES["columns"]), CODE_GAPS),
}  # fmt: skip


def turned(model, X):
    """The first column the other way round."""
    X = X.copy()
    X[:, 0] = np.nanmin(X[:, 0]) + np.nanmax(X[:, 0]) - X[:, 0]
    return model.fit(X), X


def another_order(model, X):
    order = np.roll(np.arange(X.shape[1]), 1)
    if isinstance(model.columns, list):
        model.set_params(columns=[model.columns[j] for j in order])
    return model.fit(X[:, order]), X[:, order]


def beside_a_constant(model, X):
    if isinstance(model.columns, list):
        model.set_params(columns=[*model.columns, range(2)])
    X = np.column_stack([X, np.ones(len(X))])
    return model.fit(X), X


def on_another_processor(model, X):
    with another_processor(order=9):
        return model.fit(X), X


# By L-BFGS, of 200 rows with four columns of five levels, and of codes; and EM. The others are
# fitted by Newton's method, to a gain of `tol` or, if sparse, to slopes of it.
BOUNDS = {
    "levels": within(tol=1e-12, nats=200 * 4 * np.log(5)),
    "auto of codes": within(tol=1e-9),
    "EM": within(tol=1e-9),
    "EM of codes": within(tol=1e-9),
}

CHANGES = {
    "rows backwards": lambda model, X: (model.fit(X[::-1]), X),
    "columns in another order": another_order,
    "a constant column": beside_a_constant,
    "other values": turned,
    "another processor": on_another_processor,
    "float32": lambda model, X: (model.fit(X.astype(np.float32)), X.astype(np.float32)),
    "batches": lambda model, X: (model.fit(Batches([X[:70], X[70:]])), X),
    "parts": lambda model, X: (model.fit(X[:70]).partial_fit(X[70:]), X),
    "rows without a cell": lambda model, X: (
        model.fit(np.vstack([X, np.full((30, X.shape[1]), np.nan)])), X
    ),
}  # fmt: skip


@functools.cache
def fitted(case):
    return clone(CASES[case][0]).fit(CASES[case][1])


# Normal scores turn round but nearly, and have no parts; terms are of codes in their order.
EXCEPT = {
    "numbers": ["other values", "parts"], "observed numbers": ["other values", "parts"],
    "terms": ["other values"], "terms of codes": ["other values"],
}  # fmt: skip
# Each change is made to a third of the cases, by turns, and that of the processor to all.
CHANGED = [
    (case, change)
    for k, case in enumerate(CASES)
    for n, change in enumerate(CHANGES)
    if (change == "another processor" or (k + n) % 3 == 0) and change not in EXCEPT.get(case, [])
]


@pytest.mark.parametrize(("case", "change"), CHANGED)
def test_what_must_not_matter(case, change):
    """A constant column multiplies all probabilities by its own."""
    (estimator, X), expected = CASES[case], fitted(case)
    model, rows = CHANGES[change](clone(estimator), X)
    difference = model.score_samples(rows) - expected.score_samples(X)
    if change == "a constant column":
        assert -0.02 < difference[0] < 0
        assert not hasattr(model, "coupling_") or not model.coupling_[-1].any()
        difference -= difference[0]
    # Fits of parts begin elsewhere, and float32 has other real numbers.
    bound = BOUNDS.get(case, {"parts": 1e-5, "float32": 1e-6}.get(change, 1e-8))
    assert_allclose(difference, 0, atol=bound)
    found, alphas = (np.sort(np.ravel(getattr(one, "alpha_", 0))) for one in (model, expected))
    assert_allclose(found[: len(alphas)], alphas, rtol=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_weights_are_repetitions_in_fits_and_criteria(case):
    """In fits, inference and criteria. A penalty for each row makes other weights as good."""
    (estimator, X), is_scored = CASES[case], case.endswith("numbers")
    w = np.arange(len(X)) % 4
    repeated = np.repeat(X, w, axis=0)
    one, other = clone(estimator).fit(X, sample_weight=w), clone(estimator).fit(repeated)
    bound = BOUNDS.get(case, 1e-9)
    assert_allclose(one.score_samples(X), other.score_samples(X), rtol=0, atol=bound)
    if isinstance(estimator, (SparseFVBM, FSLLDensity)) or case == "levels":  # no standard errors
        return
    result = statistics.inference(one, X, sample_weight=w)
    expected = statistics.inference(other, repeated)
    if is_scored:  # missing cells of numbers are drawn, for a repeated row once more
        known = np.isfinite(expected.std_err)
        assert_allclose(result.std_err[known], expected.std_err[known], rtol=0.3)
    else:
        assert_allclose(result.covariance, expected.covariance, rtol=1e-7, atol=1e-12)
    assert result.n_samples == expected.n_samples
    if not is_scored:
        for criterion in (statistics.aic, statistics.bic, statistics.ebic):
            assert criterion(one, X, w) == pytest.approx(criterion(other, repeated), abs=1e-6)
    if estimator.alpha != "auto" and not is_scored:
        heavy = clone(estimator).fit(X, sample_weight=1e3 * w)
        assert_allclose(heavy.score_samples(X), other.score_samples(X), rtol=0, atol=1e-5)
