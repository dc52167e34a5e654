"""Distributions of numbers: a few Gaussians of them or of their logarithms, heaps and atoms."""

import numpy as np

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
# Gaussians of a column at most.
MOST_GAUSSIANS = 4
# The least standard deviation of one, relative to that of all numbers, and to the smallest
# distance of two.
LEAST_SD, LEAST_STEPS = 0.03, 0.5
# Numbers that a fit looks at, and that are kept for the way back, at most: quantiles.
MOST_CELLS = 2048
# Iterations of EM, and the gain per cell that ends it.
MAX_ITER, TOL = 200, 1e-5
# A value of this many rows that it is an atom of bins is a heap if it has less than this times the
# cells of the two values on either side, on average.
SPIKE = 10
# It has no more than this share of all rows, which have at least this many different values: the
# scores of heaps are those of their middles.
MOST_OF_HEAP, LEAST_VALUES = 0.25, 16


def scaled(x, shift):
    """Transform of numbers that the Gaussians describe, and ln of its derivative."""
    if np.isnan(shift):
        return x, 0.0
    with np.errstate(divide="ignore"):
        y = np.log(np.maximum(x + shift, 0))
    return np.maximum(y, -1e5), np.where(x + shift > 0, -y, -np.inf)


def spikes(numbers, weights, bins):
    """Which of the atoms of bins are atoms of scores, and the others with their ends."""
    values, where = np.unique(numbers, return_inverse=True)
    mass, atoms, heaps = np.bincount(where, weights), [], []
    for k in np.searchsorted(values, bins.atoms):
        around = [i for i in (k - 2, k - 1, k + 1, k + 2) if 0 <= i < len(values)]
        is_spike = len(values) < LEAST_VALUES or len(around) < 3
        is_spike |= mass[k] >= SPIKE * mass[around].mean() if len(around) else True
        is_spike |= mass[k] > MOST_OF_HEAP * mass.sum()
        if is_spike:
            atoms.append(values[k])
        if is_spike or bins.is_whole:  # whole numbers are points anyway
            continue
        below = values[k - 1] if k else 2 * values[k] - values[k + 1]
        above = values[k + 1] if k + 1 < len(values) else 2 * values[k] - values[k - 1]
        heaps.append((values[k], (values[k] + below) / 2, (values[k] + above) / 2))
    return np.array(atoms), np.array(heaps).reshape(-1, 3)


def fewer(x, mass):
    """Sorted numbers and their masses, in groups of about the same mass if they are many."""
    if len(x) <= MOST_CELLS:
        return x, mass
    group = np.floor((np.cumsum(mass) - mass / 2) / mass.sum() * MOST_CELLS)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    middle = np.append(first[1:], len(x)) - 1
    return x[(first + middle) // 2], np.add.reduceat(mass, first)


def fit_mixture(x, mass, shift, step, most):
    """The mixture of Gaussians of x or ln(x + shift) with the least BIC, which is given first."""
    y, log_dy = scaled(x, shift)
    if not np.isnan(shift):
        step = step / np.exp(np.average(y, weights=mass))
    n, unit = mass.sum(), 2.0 ** np.ceil(np.log2(np.abs(y).max() or 1.0))
    y = y / unit
    mean = np.average(y, weights=mass)
    sd = np.sqrt(np.average((y - mean) ** 2, weights=mass)) or max(abs(mean), 0.5) * 1e-3
    t, least = (y - mean) / sd, max(LEAST_SD, LEAST_STEPS * step / unit / sd)
    best = None
    for n_parts in range(1, min(most, len(x)) + 1):
        log_likelihood, *parts = _em(t, mass, n_parts, least)
        log_likelihood += mass @ np.broadcast_to(log_dy, len(x)) - n * (np.log(sd) + np.log(unit))
        bic = (3 * n_parts - 1) * np.log(n) - 2 * log_likelihood
        if best is None or bic < best[0]:
            best = bic, parts
    bic, (log_weights, means, sds) = best
    return bic, shift, log_weights, (mean + sd * means) * unit, sds * sd * unit


def _em(t, mass, n_parts, least):
    """Gaussians of numbers by EM, from groups of equal mass; -> ln L, ln weights, means, sds."""
    n, powers = mass.sum(), np.array([np.ones(len(t)), t, t**2])
    weighed = (powers * mass).T
    group = np.minimum((np.cumsum(mass) - mass / 2) / n * n_parts, n_parts - 1).astype(int)
    shares, last = np.eye(n_parts)[:, group], -np.inf
    for _ in range(MAX_ITER):
        own, first, second = (shares @ weighed).T
        own += 1e-10 * n
        means = first / own
        sds = np.sqrt(np.maximum(second / own - means**2, least**2))
        log_weights, scaled_means = np.log(own / own.sum()), means / sds
        constants = log_weights - np.log(sds) - scaled_means**2 / 2 - HALF_LOG_2PI
        log_p = np.column_stack([constants, scaled_means / sds, -0.5 / sds**2]) @ powers
        peaks = log_p.max(axis=0)
        shares = np.exp(log_p - peaks)
        sums = shares.sum(axis=0)
        shares, log_likelihood = shares / sums, mass @ (peaks + np.log(sums))
        if log_likelihood - last < TOL * n:
            break
        last = log_likelihood
    return log_likelihood, log_weights, means, sds
