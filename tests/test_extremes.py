"""Weights, learning rates and sizes at the ends of what numbers can do."""

import numpy as np
import pandas as pd
import pytest
from contract.estimators import DENSITIES, each, each_with
from contract.frames import all_states, bits
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
)

# Of two layers of binary units: those that have a pair of intercepts.
RBMS = [e for e in DENSITIES if isinstance(e, (SDCPRBM, TAPRBM, InfiniteRBM))]


def with_weights(estimator, scale, dtype, seed=0):
    """A fitted machine with all parameters ±scale."""
    model = clone(estimator).fit(bits(60, 6, dtype=dtype))
    rng = np.random.default_rng(seed)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        shape = getattr(model, name).shape
        setattr(model, name, (scale * rng.choice([-1, 1], size=shape)).astype(dtype))
    return model


def brute_force(model, X):
    """ln p of rows, with the hidden units summed out, in float64."""
    W, c, b = (getattr(model, name).astype(np.float64)
               for name in ("components_", "intercept_hidden_", "intercept_visible_"))  # fmt: skip

    def log_weight(V):
        return V @ b + np.logaddexp(0, V @ W.T + c).sum(axis=1)

    return log_weight(X) - logsumexp(log_weight(all_states(X.shape[1])))


@each(RBMS)
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-30, np.float32), (1.0, np.float64), (1e4, np.float32)]
)
@pytest.mark.filterwarnings("ignore:The AIS estimate")
@pytest.mark.filterwarnings("ignore:TAP converged from no start")
def test_large_weights(estimator, dtype, scale):
    model = with_weights(estimator, scale, dtype)
    X = all_states(6)
    exact = brute_force(model, X)
    np.testing.assert_allclose(model.score_samples(X), exact, rtol=2e-6, atol=2e-6)
    assert np.exp(model.score_samples(X)).sum() == pytest.approx(1, rel=1e-4)
    H = model.transform(X)
    for values in (
        H,
        model.mean_visible(H),
        model.energy(X, H),
        model.free_energy(X),
        model.log_pseudo_likelihood(X),
    ):
        assert np.isfinite(values).all()
    for samples in (
        model.gibbs(X, 3, random_state=0),
        model.sample(5, random_state=0, n_steps=10),
        model.sample(5, random_state=0, n_steps=10, n_temperatures=3),
        model.sample_visible(model.sample_hidden(X, random_state=0), random_state=0),
    ):
        assert set(np.unique(samples)) <= {0, 1}
    for method in ("ais", "raise", "tap"):
        estimate = model.log_partition(method, n_temperatures=50, random_state=0)
        assert np.isfinite(estimate.value)
    missing = X[:20].copy()
    missing[:, ::2] = np.nan
    for how in ("mean", "mode", "sample"):
        filled = model.impute(missing, how=how, random_state=0)
        assert (filled >= 0).all() and (filled <= 1).all()


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_large_couplings(scale):
    X = bits(200, 6)
    model = FVBMPseudoLikelihood().fit(X)
    rng = np.random.default_rng(0)
    upper = np.triu(scale * rng.choice([-1, 1], size=(6, 6)), 1)
    model.coupling_, model.intercept_ = upper + upper.T, scale * rng.choice([-1, 1], size=6)
    spins = 2 * all_states(6) - 1
    log_weight = np.einsum("ij,jk,ik->i", spins, upper, spins) + spins @ model.intercept_
    expected = log_weight - logsumexp(log_weight)
    np.testing.assert_allclose(model.score_samples(all_states(6)), expected, rtol=1e-9, atol=1e-9)
    for values in (model.transform(X), model.log_pseudo_likelihood(X), model.sample(5, 0),
                   model.marginal([0, 3])):  # fmt: skip
        assert np.isfinite(values).all()


LEARNERS = [
    SDCPRBM(4, max_iter=5, random_state=0),
    SDCPRBM(4, max_iter=5, early_stopping=True, random_state=0),
    TAPRBM(4, max_iter=5, early_stopping=True, random_state=0),
    TAPRBM(4, max_iter=5, penalty=None, persistent=True, random_state=0),
    TAPRBM(4, max_iter=5, columns="truncated_gaussian", random_state=0),
    TAPRBM(4, max_iter=5, hidden="truncated_gauss_bernoulli", random_state=0),
    TAPDBM((4, 3), pretrain_max_iter=0, max_iter=5, random_state=0),
    InfiniteRBM(3, random_state=0),
]


@pytest.mark.parametrize(("learning_rate", "dtype"), [(1e6, np.float32), (1e300, np.float64)])
@pytest.mark.parametrize("estimator", LEARNERS, ids=lambda e: repr(e).replace(" ", ""))
def test_divergence_is_noticed_and_said(estimator, learning_rate, dtype):
    X = bits(100, 6, dtype=dtype)
    model = clone(estimator).set_params(learning_rate=learning_rate)
    with pytest.warns(ConvergenceWarning, match="smaller learning_rate") as caught:
        model.fit(X)
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            assert np.isfinite(value).all(), name
    for name, path in model.history_.items():
        assert np.isfinite(path).all(), name
    # What is kept can be gone on from, with the remedy.
    if model.n_iter_ == 0:
        model.set_params(learning_rate=0.01, early_stopping=False, warm_start=True).fit(X)
        assert model.n_iter_ > 0 and np.isfinite(model.score(X))


@each_with(
    "code",
    [np.finfo(float).max, -np.finfo(float).max, 3.4028235e38],
    [SDCPRBM(2, max_iter=1, random_state=0), FVBMPseudoLikelihood(), FSLLDensity(),
     BoltzmannImputer(random_state=0), BoltzmannOutlierDetector(random_state=0)],
)  # fmt: skip
def test_the_largest_floats_are_codes(estimator, code):
    """Finite scores, no cell left missing, and a warning."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80)})
    X.loc[:2, "x"], X.loc[5:8, "x"] = code, np.nan
    with pytest.warns(UserWarning, match=r"'x': -?[0-9.]+e\+\d+ beside .* looks like a code"):
        model = clone(estimator).fit(X)
    if isinstance(model, BoltzmannImputer):
        filled = model.transform(X)
        assert np.isfinite(filled).all(axis=None) and (filled.loc[:2, "x"] == code).all()
    else:
        assert np.isfinite(model.score_samples(X)).all()
