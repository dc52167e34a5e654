"""Scorers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sklearn_boltz import FSLLDensity
from sklearn_boltz.metrics import log_likelihood, log_pseudo_likelihood, tap_log_likelihood
from sklearn_boltz.restricted import SDCPRBM, TAPRBM

ESTIMATORS = [FSLLDensity(), SDCPRBM(2, max_iter=2, random_state=0)]


@pytest.fixture
def X():
    return np.random.default_rng(0).integers(2, size=(60, 5))


@pytest.mark.parametrize("scoring", [log_likelihood, log_pseudo_likelihood])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_means_alone_and_in_a_pipeline(estimator, scoring, X):
    scores = {log_likelihood: "score_samples", log_pseudo_likelihood: "log_pseudo_likelihood"}
    model = clone(estimator).fit(X)
    assert scoring(model, X) == getattr(model, scores[scoring])(X).mean()
    alone = cross_val_score(estimator, X, scoring=scoring, cv=3)
    piped = cross_val_score(make_pipeline(MinMaxScaler(), estimator), X, scoring=scoring, cv=3)
    np.testing.assert_allclose(alone, piped, rtol=1e-4)
    assert (alone < 0).all()
    search = GridSearchCV(estimator, {"columns": ["auto", "binary"]}, scoring=scoring, cv=3).fit(X)
    np.testing.assert_allclose(*search.cv_results_["mean_test_score"])


def test_tap_log_likelihood_alone_and_in_a_pipeline(X):
    model = TAPRBM(2, max_iter=2, random_state=0)
    pipeline = make_pipeline(MinMaxScaler(), model).fit(X)
    assert tap_log_likelihood(pipeline, X) == model.tap_log_likelihood(X).mean()
    assert len(cross_val_score(model, X, scoring=tap_log_likelihood, cv=3)) == 3
