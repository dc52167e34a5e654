"""FVBMPseudoLikelihood on tables with categorical columns: fit, attributes, methods, errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import random_potts
from sklearn.exceptions import ConvergenceWarning

from private import to_zero_sum
from sklearn_boltz import FVBMPseudoLikelihood, statistics

N_VALUES = [2, 3, 4, 2]


@pytest.fixture(scope="module")
def truth():
    """A model in the zero-sum gauge."""
    model = random_potts(N_VALUES, seed=4, scale=0.4)
    return model.like(*to_zero_sum(model.coupling, model.intercept, model.n_values))


@pytest.fixture(scope="module")
def X(truth):
    return truth.sample(1500, np.random.default_rng(0), 1)


@pytest.fixture(scope="module")
def model(X):
    return FVBMPseudoLikelihood(tol=1e-9, alpha=0.0).fit(X)


def test_attributes(model, X):
    assert model.coupling_.shape == (11, 11) and model.intercept_.shape == (11,)
    assert_array_equal(model.n_values_, N_VALUES)
    assert not hasattr(model, "values_")
    starts = np.concatenate([[0], np.cumsum(N_VALUES)])
    assert_array_equal(model.coupling_, model.coupling_.T)
    for j in range(4):
        own = slice(starts[j], starts[j + 1])
        assert_allclose(model.coupling_[own].sum(axis=0), 0, atol=1e-12)
        assert model.intercept_[own].sum() == pytest.approx(0, abs=1e-12)
        assert not model.coupling_[own, own].any()
    names = model.get_feature_names_out()
    assert model.sample(2, random_state=0).dtype == np.int64
    assert names.tolist()[:6] == ["x0=0", "x0=1", "x1=0", "x1=1", "x1=2", "x2=0"]
    assert model.transform(X[:7].astype(np.float32)).dtype == np.float32
    assert model.transform(X[:7]).shape == (7, 11) == (7, len(names))
    last = model.history_["log_pseudo_likelihood"][-1]
    assert last == pytest.approx(model.log_pseudo_likelihood(X).mean(), abs=1e-9)


def test_the_estimate_is_near_the_truth(model, truth, X):
    """Each within 5 standard errors of the inference."""
    result = statistics.inference(model, X)
    expected = np.concatenate([truth.intercept, np.zeros(len(result.names) - 11)])
    matrix = result.coupling_matrix(result.estimate)
    assert_array_equal(matrix[:2, 2:], model.coupling_[:2, 2:])
    assert np.isnan(matrix[:2, :2]).all()
    errors = result.coupling_matrix(result.std_err)
    off = ~np.isnan(matrix)
    assert (np.abs(matrix - truth.coupling)[off] < 5 * errors[off]).all()
    assert (np.abs(result.estimate - expected)[:11] < 5 * result.std_err[:11]).all()
    assert result.names[0] == "b[x0=0]" and result.names[11] == "m[x0=0,x1=0]"


def test_contrasts_between_values(model, X):
    result = statistics.inference(model, X)
    names = result.names.tolist()
    one, other = names.index("m[x0=0,x1=0]"), names.index("m[x0=0,x1=2]")
    found = result.contrast({names[one]: 1, names[other]: -1})
    assert found.estimate[0] == pytest.approx(result.estimate[one] - result.estimate[other])
    c = result.covariance
    variance = c[one, one] + c[other, other] - 2 * c[one, other]
    assert found.std_err[0] == pytest.approx(np.sqrt(variance))
    assert "m[x0=0,x1=2]" in str(found)


@pytest.mark.parametrize("missing", ["em", "observed"])
def test_one_categorical_column_changes_nothing_of_the_bits(missing):
    """A third value that no row has, given by `n_values`, makes codes of bits."""
    rng = np.random.default_rng(1)
    X = rng.integers(2, size=(400, 4)).astype(float)
    X[:, 3] = np.where(rng.random(400) < 0.5, X[:, 2], X[:, 3])
    X[rng.random(X.shape) < 0.15] = np.nan
    options = {"alpha": 0.05, "missing": missing, "tol": 1e-9}
    spins = FVBMPseudoLikelihood(**options).fit(X)
    codes = FVBMPseudoLikelihood(columns=[range(3), range(2), range(2), range(2)], **options).fit(X)
    assert codes.coupling_.shape == (9, 9)
    assert_allclose(codes.coupling_[4::2, 4::2], spins.coupling_[1:, 1:], atol=1e-5)
    assert_allclose(codes.coupling_[1, 4::2] - codes.coupling_[0, 4::2],
                    2 * spins.coupling_[0, 1:], atol=1e-5)  # fmt: skip
    assert_array_equal(codes.coupling_[2], 0)
    assert codes.predict_column_proba(X, 0)[:, 2].max() < 0.01
    observed = statistics.inference(codes, X)
    assert np.isnan(observed.std_err[2]) and np.isfinite(observed.std_err[3:9]).all()
    one = observed.std_err[observed.names.tolist().index("m[x1=1,x2=1]")]
    other = statistics.inference(spins, X)
    expected = other.std_err[other.names.tolist().index("m[x1,x2]")]
    # With draws of missing cells, both within their noise.
    assert one == pytest.approx(expected, rel=1e-6 if missing == "observed" else 0.05)


def test_interaction_scores(model):
    plain = model.interaction_scores(apc=False)
    assert plain[1, 2] == pytest.approx(np.linalg.norm(model.coupling_[2:5, 5:9]))
    corrected = model.interaction_scores()
    means = plain.sum(axis=0) / 3
    assert corrected[0, 3] == pytest.approx(plain[0, 3] - means[0] * means[3] / means.mean())
    ignored = model.interaction_scores(apc=False, ignore=[-1, 0, -1, -1])
    assert ignored[1, 2] == pytest.approx(np.linalg.norm(model.coupling_[3:5, 5:9]))
    bits = FVBMPseudoLikelihood(alpha=0.0).fit(np.random.default_rng(0).integers(2, size=(200, 3)))
    scores = bits.interaction_scores(apc=False)
    assert_allclose(scores, 2 * np.abs(bits.coupling_), atol=1e-12)


def test_constant_columns_and_values_that_never_occur(X):
    model = FVBMPseudoLikelihood(
        columns=[range(2), range(3), range(6), range(2), range(3)], tol=1e-9, alpha=0.0
    )
    constant = np.column_stack([X, np.full(len(X), 1)])
    model.fit(constant)
    alone = FVBMPseudoLikelihood(tol=1e-9, alpha=0.0).fit(X)
    assert_allclose(model.coupling_[:9, :9], alone.coupling_[:9, :9], atol=1e-7)
    assert_array_equal(model.coupling_[9:11], 0)
    assert_array_equal(model.coupling_[13:], 0)
    # One observation more, spread evenly over the values.
    p = (np.array([0, 1500, 0]) + 1 / 3) / 1501
    assert_allclose(model.marginal(4), p, atol=1e-12)
    assert 0 < model.marginal(2)[4:].max() < 1e-3
    assert np.isfinite(model.score(constant))
    errors = statistics.inference(model, constant).std_err
    assert np.isnan(errors[[9, 10, 13, 14, 15]]).all() and np.isfinite(errors[:9]).all()
    nothing = FVBMPseudoLikelihood(columns=range(3)).fit(np.ones((5, 3), dtype=int))
    assert nothing.converged_ and np.isfinite(nothing.score(np.ones((1, 3), dtype=int)))
    single = FVBMPseudoLikelihood(columns=range(3)).fit([[0, 2, 1]])
    assert np.isfinite(single.score([[0, 0, 0]]))


def test_values_that_never_meet_are_named(X):
    kept = X[~((X[:, 1] == 2) & (X[:, 2] == 3))]
    with pytest.warns(ConvergenceWarning, match="column 1 = 2 never occurs together with column 2"):
        model = FVBMPseudoLikelihood(alpha=0.0).fit(kept)
    assert not model.converged_ and np.isfinite(model.coupling_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FVBMPseudoLikelihood(alpha=0.01).fit(kept).converged_


def test_a_code_beyond_memory_is_allowed_where_given():
    X = np.random.default_rng(0).integers(70, size=(300, 2))
    model = FVBMPseudoLikelihood(columns=range(70), alpha=0.1).fit(X)
    assert model.coupling_.shape == (140, 140) and np.isfinite(model.score(X))


@pytest.mark.parametrize("other", [None, "rarely"])
def test_warnings_have_the_words_of_the_table(other):
    X = pd.DataFrame({"worried": ["no", "yes"] * 30, "open": ["a", "b", "b"] * 20})
    X["often"] = np.where(X.worried == "yes", "often", "never")
    if other:
        X.loc[:6, "open"] = other
    with pytest.warns(ConvergenceWarning, match="worried' = (no|yes) .*often' = (often|never)"):
        FVBMPseudoLikelihood(alpha=0.0).fit(X)


def test_many_words_are_not_taken_for_a_code_that_stands_apart():
    X = np.empty((400, 2), dtype=object)
    X[:, 0], X[:, 1] = [f"word {k % 100}" for k in range(400)], np.arange(400) % 2
    X[7, 1] = 99
    message = "at most 64 values, from 0 on, in column 1, but row 7 has the value 99"
    with (
        pytest.warns(UserWarning, match="99 beside 0 and 1 looks like a code"),
        pytest.raises(ValueError, match=message),
    ):
        FVBMPseudoLikelihood().fit(X)
