"""Simulated fully visible Boltzmann machines for the benchmarks of FVBMPseudoLikelihood."""

import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood


def random_parameters(d, variance, rng):
    """θ = (b_1, ..., b_d, m_12, m_13, ...), normal with mean 0, as in the BSLM paper."""
    return rng.normal(scale=np.sqrt(variance), size=d * (d + 1) // 2)


def matrices(theta, d):
    """Couplings (d, d) and intercepts (d,) of θ."""
    coupling = np.zeros((d, d))
    coupling[np.triu_indices(d, 1)] = theta[d:]
    return coupling + coupling.T, theta[:d].copy()


def machine(theta, d):
    """An estimator whose parameters are θ."""
    rows = np.random.default_rng(0).choice([-1, 1], size=(50, d))
    model = FVBMPseudoLikelihood(alpha=0.02).fit(rows)
    model.coupling_, model.intercept_ = matrices(theta, d)
    return model


def estimate(model):
    """θ of a fitted estimator."""
    d = len(model.intercept_)
    return np.concatenate([model.intercept_, model.coupling_[np.triu_indices(d, 1)]])
