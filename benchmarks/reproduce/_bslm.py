"""The simulation of the BSLM paper: five sequences for each number of variables."""

from typing import NamedTuple

import _path  # noqa: F401
import numpy as np
from _common import timed, unconverged_is_fine

from sklearn_boltz import FVBMPseudoLikelihood

N_ROWS = 16_000
SIZES = (5, 10, 15, 20)
N_RUNS = 5
VARIANCE = 0.5


def random_parameters(d, variance, rng):
    """θ = (b_1, ..., b_d, m_12, m_13, ...), normal with mean 0, as in the BSLM paper."""
    return rng.normal(scale=np.sqrt(variance), size=d * (d + 1) // 2)


def matrices(theta, d):
    """Couplings (d, d) and intercepts (d,) of θ."""
    coupling = np.zeros((d, d))
    coupling[np.triu_indices(d, 1)] = theta[d:]
    return coupling + coupling.T, theta[:d].copy()


def machine(theta, d):
    return FVBMPseudoLikelihood.from_couplings(*matrices(theta, d))


def estimate(model):
    """θ of a fitted estimator."""
    d = len(model.intercept_)
    return np.concatenate([model.intercept_, model.coupling_[np.triu_indices(d, 1)]])


class Sequence(NamedTuple):
    """One fit by BSLM from random initial values, and the true parameters.

    `path` has the mean log pseudo-likelihood of a row, initially and after each sweep.
    """

    d: int
    run: int
    model: FVBMPseudoLikelihood
    theta: np.ndarray
    seconds: float
    path: np.ndarray


def sequences(max_iter):
    """Couplings, intercepts and starts from N(0, 0.5), tolerance 1e-5: -> list of Sequence."""
    found = []
    for d in SIZES:
        rng = np.random.default_rng(d)
        for run in range(N_RUNS):
            theta = random_parameters(d, VARIANCE, rng)
            X = machine(theta, d).sample(N_ROWS, random_state=run)
            start = matrices(random_parameters(d, VARIANCE, rng), d)
            model = FVBMPseudoLikelihood(solver="bslm", alpha=0.0, max_iter=max_iter)
            with unconverged_is_fine():
                _, seconds = timed(model.fit, X, None, None, *start)
            there = FVBMPseudoLikelihood.from_couplings(*start)
            initial = there.log_pseudo_likelihood(X).mean()
            path = np.append(initial, model.history_["log_pseudo_likelihood"])
            found.append(Sequence(d, run, model, theta, seconds, path))
    return found
