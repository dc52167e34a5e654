"""How long machines train on small data, and when they say that they have learned nothing."""

import warnings

import numpy as np
import pytest
from contract.estimators import MACHINES, each, name_of
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import SDCPRBM, TAPRBM

# Parameters with which a fit learns nothing. A classifier has its labels to learn.
SLOW = {
    "SDCPRBM": dict(learning_rate=1e-6),
    "TAPRBM": dict(learning_rate=1e-6),
    "TAPDBM": dict(learning_rate=1e-6),
    "InfiniteRBM": dict(alpha=1000.0, mode="plain", n_corrective=0),
}


@pytest.fixture(scope="module")
def digits():
    """Binary digits in random order."""
    images = (load_digits().data > 7).astype(np.float32)
    return images[np.random.default_rng(0).permutation(len(images))]


def independent(train, test):
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return np.log(np.where(test, p, 1 - p)).sum(axis=1).mean()


@pytest.mark.parametrize(
    "n_rows, n_units", [(200, 64), pytest.param(400, 500, marks=pytest.mark.slow)]
)
def test_early_stopping_waits_out_the_first_plateau(digits, n_rows, n_units):
    train, test = digits[:n_rows], digits[1400:]
    model = SDCPRBM(n_units, early_stopping=True, random_state=0).fit(train)
    assert model.score(test) > independent(train, test) + 4
    figures = model.history_["validation_log_likelihood"]
    assert len(figures) == model.n_iter_ < 1000


def test_a_plateau_does_not_end_the_fit(digits):
    # A rate so small that nothing happens.
    model = SDCPRBM(8, learning_rate=1e-6, early_stopping=True, max_iter=200, random_state=0)
    with pytest.warns(ConvergenceWarning, match="really be independent; otherwise train longer"):
        model.fit(digits[:50])
    assert model.n_iter_ == 200


def test_learning_by_heart_ends_the_fit():
    # Random bits: held-out rows never become more probable, training rows do.
    X = np.random.default_rng(0).integers(2, size=(60, 30)).astype(np.float32)
    model = SDCPRBM(32, early_stopping=True, learning_rate=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="held-out rows have a mean log-likelihood"):
        model.fit(X)
    assert model.n_iter_ < 1000


@each([e for e in MACHINES if name_of(e) in SLOW])
def test_a_fit_no_better_than_independent_columns_warns(estimator, digits):
    early_stopping = "TAP" in name_of(estimator)
    model = clone(estimator).set_params(early_stopping=early_stopping, **SLOW[name_of(estimator)])
    rows = "held-out rows" if early_stopping else "training rows"
    with pytest.warns(ConvergenceWarning, match=f"no better than independent columns: its {rows}"):
        model.fit(digits[:100])


def test_a_fit_by_tap_that_has_learned_does_not_warn(digits):
    """Of an SDCPRBM: `test_the_default_learns`."""
    train, test = digits[:120, 18:46], digits[1400:, 18:46]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TAPRBM(8, random_state=0).fit(train)
    assert model.score(test) > independent(train, test) + 1


def test_default_epochs_follow_the_rows(digits):
    # Mini-batches of 10, 50 and 100 rows.
    options = dict(early_stopping=False, track_likelihood=False, random_state=0)
    fit = SDCPRBM(2, n_inner=1, n_gibbs=1, **options).fit
    n_epochs = {n: fit(digits[:n, :9]).n_iter_ for n in (40, 100, 1000)}
    assert n_epochs == {40: 200, 100: 150, 1000: 75}
    assert fit(np.tile(digits[:, :4], (12, 1))).n_iter_ == 10
    assert TAPRBM(2, **options).fit(digits[:100, :9]).n_iter_ == 80
