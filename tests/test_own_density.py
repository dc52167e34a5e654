"""A `DiscreteDensity` that defines what the developer guide lists has all methods."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from own_density import IndependentDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from oracles import assert_drawn
from sklearn_boltz import BoltzmannImputer
from sklearn_boltz.datasets import load_penguins

EVERY = np.array(list(itertools.product(range(2), range(3))))


def fitted():
    X = np.repeat(EVERY, [5, 0, 2, 4, 4, 3], axis=0)
    return IndependentDensity().fit(X), np.outer([8, 12], [10, 5, 6]).ravel() / (20 * 21)


def test_methods_are_those_of_independent_columns():
    model, p = fitted()
    assert_allclose(model.score_samples(EVERY), np.log(p), rtol=1e-12)
    assert_allclose(model.log_pseudo_likelihood(EVERY), np.log(p), rtol=1e-12)
    assert_allclose(-model.energy(EVERY) - model.log_partition().value, np.log(p), rtol=1e-12)
    assert_allclose(model.marginal([0, 1]).ravel(), p, rtol=1e-12)
    assert_allclose(model.entropy(), -p @ np.log(p), rtol=1e-12)
    assert_drawn(model.sample(3000, random_state=0), EVERY, p)
    assert (model.sample(50, random_state=0, given={1: 2})[:, 1] == 2).all()
    gaps = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan]])
    assert_allclose(model.score_samples(gaps), [np.log(0.6), np.log(2 / 7), 0], atol=1e-12)
    means = model.impute(gaps)
    assert_allclose(means, [[1, 17 / 21], [0.6, 2], [0.6, 17 / 21]], rtol=1e-12)
    assert_allclose(model.impute(gaps, how="mode"), [[1, 0], [1, 2], [1, 0]])
    assert_allclose(model.predict_column_proba(gaps, 1)[0], np.array([10, 5, 6]) / 21, rtol=1e-12)


def test_it_takes_tables_of_any_columns():
    pytest.importorskip("pandas")
    X = load_penguins()
    X["empty"] = np.nan
    with pytest.warns(UserWarning, match="no row has a value in column 'empty'"):
        model = IndependentDensity().fit(X)
    for how in ("mean", "mode", "sample"):
        filled = model.impute(X, how=how, random_state=0)
        assert filled.drop(columns="empty").notna().all(axis=None)
    assert list(model.sample(2).columns) == list(X)
    assert model.predict_column_quantiles(X, "body_mass_g").shape == (len(X), 3)
    filled = BoltzmannImputer(IndependentDensity()).fit_transform(X.drop(columns="empty"))
    assert filled.notna().all(axis=None)


@parametrize_with_checks([IndependentDensity()])
def test_scikit_learn(estimator, check):
    check(estimator)
