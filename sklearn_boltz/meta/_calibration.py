"""Calibration of class log-likelihoods on held-out rows."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

# Penalty on the squared offsets, relative to the sum over rows: an offset without rows is 0.
RIDGE = 0.01


def held_out(y, fraction, generator, name):
    """Choose a share of the rows of each class, of which two stay in any case.

    Parameters
    ----------
    y : ndarray of int of shape (n,)
        The classes.
    fraction : float
    generator : RandomState
    name : str
        Name of the estimator in messages.

    Returns
    -------
    held : ndarray of bool of shape (n,)
    """
    held = np.zeros(len(y), dtype=bool)
    for c in range(y.max() + 1):
        rows = generator.permutation(np.flatnonzero(y == c))
        n = min(int(np.ceil(fraction * len(rows))), len(rows) - 2)
        held[rows[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(
            f"{name}: calibration needs a class with at least three rows, to hold one out. "
            "Set calibration=False."
        )
    return held


def calibrate(log_likelihoods, y, weights, log_priors):
    """Fit an offset for each class, and a common factor.

    Parameters
    ----------
    log_likelihoods : ndarray of float64 of shape (n, n_classes)
        ln p(x | y) of rows that were not in the fit of the densities, up to unknown constants for
        each class and for each row.
    y : ndarray of int of shape (n,)
        The classes.
    weights : ndarray of float64 of shape (n,) or None
        Weight of each row. None means equal weights.
    log_priors : ndarray of float64 of shape (n_classes,)

    Returns
    -------
    offsets : ndarray of float64 of shape (n_classes,)
        Offsets with sum 0.
    scale : float
        The common factor. Offsets and factor maximise the mean of ln p(y | x), where p(y | x) is
        proportional to exp(log_priors + scale * log_likelihoods + offsets). This function is
        concave.
    """
    n, n_classes = log_likelihoods.shape
    weights = np.ones(n) if weights is None else weights
    own = np.eye(n_classes)[y]
    # For rows far from all classes, log-densities differ by thousands of nats.
    spread = max(1.0, float(np.ptp(log_likelihoods, axis=1).mean()))
    scores = log_likelihoods - log_likelihoods.max(axis=1, keepdims=True)

    def loss(parameters):
        offsets, scale = parameters[:-1], parameters[-1] / spread
        log_p = log_softmax(log_priors + scale * scores + offsets, axis=1)
        rest = weights[:, None] * (np.exp(log_p) - own)
        value = -(weights @ (own * log_p).sum(axis=1)) + RIDGE / 2 * offsets @ offsets
        slope = np.append(rest.sum(axis=0) + RIDGE * offsets, (rest * scores).sum() / spread)
        return value / weights.sum(), slope / weights.sum()

    first = np.append(np.zeros(n_classes), spread)
    bounds = [(None, None)] * n_classes + [(0.0, None)]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found[:-1] - found[:-1].mean(), float(found[-1] / spread)
