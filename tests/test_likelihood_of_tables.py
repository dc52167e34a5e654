"""MaximumEntropy of columns of more than two values, against maxima by enumeration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy

SIZES = (3, 4, 2, 3)
STATES = np.array(list(product(*map(range, SIZES))))
STARTS = np.cumsum((0, *SIZES))
PAIRS = [(j, k) for j in range(len(SIZES)) for k in range(j)]


def strongly_related(n, rng):
    """Rows whose first two columns all but determine each other."""
    first = rng.integers(3, size=n)
    second = np.where(rng.random(n) < 0.9, first, rng.integers(4, size=n))
    third = (rng.random(n) < np.where(second > 1, 0.8, 0.3)).astype(int)
    last = np.where(rng.random(n) < 0.5, third, rng.integers(3, size=n))
    return np.column_stack([first, second, third, last])


def one_hot(codes):
    return np.hstack([codes[:, [j]] == np.arange(size) for j, size in enumerate(SIZES)]) * 1.0


def objective(coupling, intercept, rows, alpha):
    """The mean log-likelihood of rows, where -1 is a missing cell, less the penalty; its slopes."""
    x, blocks = one_hot(STATES), [slice(*STARTS[[j, j + 1]]) for j in range(len(SIZES))]
    weights = ((x @ coupling) * x).sum(axis=1) / 2 + x @ intercept
    agrees = ((rows[:, None] == STATES) | (rows[:, None] < 0)).all(axis=2)
    of_rows = np.where(agrees, weights, -np.inf)
    value = logsumexp(of_rows, axis=1).mean() - logsumexp(weights)
    more = softmax(of_rows, axis=1).mean(axis=0) - softmax(weights)
    slope = (x.T * more) @ x
    for pair in PAIRS:
        block = tuple(blocks[j] for j in pair)
        value -= alpha[pair] * (coupling[block] ** 2).sum() / 2
        slope[block] -= alpha[pair] * coupling[block]
    return value, slope, x.T @ more


def exact_maximum(rows, alpha):
    n = STARTS[-1]
    free = np.zeros((n, n), dtype=bool)
    for j, k in PAIRS:
        free[STARTS[j] : STARTS[j + 1], STARTS[k] : STARTS[k + 1]] = True

    def loss(theta):
        coupling = np.zeros((n, n))
        coupling[free] = theta[n:]
        value, slope, of_intercept = objective(coupling + coupling.T, theta[:n], rows, alpha)
        return -value, -np.append(of_intercept, slope[free])

    return -minimize(loss, np.zeros(n + free.sum()), jac=True, method="L-BFGS-B", tol=1e-12).fun


@pytest.mark.parametrize("share", [0.0, 0.15], ids=["complete", "gaps"])
def test_a_fit_is_near_the_maximum_of_the_likelihood(share):
    """Chains leave 0.1 nats of all rows, for each of ten seeds; the pseudo-likelihood up to 0.7."""
    rng = np.random.default_rng(0)
    rows = strongly_related(600, rng)
    rows[rng.random(rows.shape) < share] = -1
    table = pd.DataFrame(rows, columns=list("abcd")).astype(float).where(rows >= 0)
    columns = dict(zip("abcd", map(range, SIZES), strict=True))
    model = MaximumEntropy(columns=columns, random_state=0).fit(table)
    quick = FVBMPseudoLikelihood(columns=columns).fit(table)
    most = exact_maximum(rows, model.alpha_)
    gap, of_quick = (
        len(rows) * (most - objective(m.coupling_, m.intercept_, rows, model.alpha_)[0])
        for m in (model, quick)
    )
    assert 0 <= gap < min(1.0, of_quick)
