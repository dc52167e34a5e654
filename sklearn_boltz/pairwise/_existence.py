"""Whether the log pseudo-likelihood has a maximum, and how far off it still is.

There is none if some direction in the space of the parameters never lowers x_ij F_ij for any
row i and variable j, and raises some: the parameters then grow without bound while the
objective approaches its supremum.
"""

import math

import numpy as np

from sklearn_boltz.pairwise._solvers import MAX_NEWTON_PARAMETERS, information_solver

# Nats: what is missing moves an estimate by less than a third of its standard error.
NEGLIGIBLE = 0.05
# On the way to infinity, a step of Newton's method moves some field by about a half.
MIN_STEP = 0.1


def warning_message(problem, point, direction, monitor, label):
    """What a user should know about the end of a fit, or None.

    Parameters
    ----------
    problem : PseudoLikelihood
    point : Point
    direction : ndarray of shape (n_parameters,) or None
        The last step of Newton's method, if that was the solver.
    monitor : Monitor
    label : callable
        The name of variable j, or with a second argument of its value -1 or 1.
    """
    if monitor.status == "diverged":
        return (
            "The log pseudo-likelihood fell: the steps are too long. With step_size <= 1 it "
            "always rises."
        )
    empty, separated, remaining = existence_report(problem, point, direction)
    if empty or separated:
        reason = _never_together(empty, label) if empty else _determined(separated, label)
        return (
            f"The log pseudo-likelihood has no maximum: {reason}. Some parameters would grow "
            "without bound; they stand where the fit ended, and their standard errors mean "
            "nothing. With alpha > 0, for example alpha=1, the couplings are drawn towards 0 "
            "and the maximum exists."
        )
    gap = "" if math.isnan(remaining) else f", and some {remaining:.2g} nats above this point"
    advice = "Raise max_iter, use solver='newton', or draw it nearer by alpha > 0."
    if monitor.status == "max_iter":
        return (
            f"The fit ended at max_iter={monitor.max_iter}, while the log pseudo-likelihood still "
            f"rose by {monitor.rise:.2g} an iteration. The data separate no variable that was "
            f"looked at: the maximum exists, but it is far{gap}. {advice}"
        )
    if monitor.status == "converged" and remaining > max(NEGLIGIBLE, 10 * monitor.tol):
        return (
            f"An iteration raised the log pseudo-likelihood by less than tol={monitor.tol:g}, but "
            f"the maximum, which exists, is far{gap}. Lower tol, use solver='newton', or draw it "
            "nearer by alpha > 0."
        )
    return None


def _never_together(empty, label):
    j, k, s, t = empty[0]
    more = f" (and {len(empty) - 1} more such pairs)" if len(empty) > 1 else ""
    return f"{label(j, s)} never occurs together with {label(k, t)}{more}"


def _determined(separated, label):
    j, others = next(iter(separated.items()))
    if not others:
        return f"{label(j)} is determined"
    named = ", ".join(label(k) for k in others[:5]) + (", ..." if len(others) > 5 else "")
    also = [label(k) for k in separated if k != j][:5]
    more = f"; so are, at least in part, {', '.join(also)} by others" if also else ""
    return f"{label(j)} is determined, in all rows or in some, by {named}{more}"


def existence_report(problem, point, direction=None):
    """What stands between the data and a maximum.

    Returns
    -------
    empty : list of (int, int, int, int)
        Pairs of variables with values, -1 or 1, that never meet: then there is no maximum.
    separated : dict of int to list of int
        Variables that others determine, with those others; no maximum either.
    remaining : float
        By how much the objective would still rise, to second order. NaN if there are too
        many parameters to tell.
    """
    # With a penalty there always is one.
    unpenalised = problem.alpha == 0
    empty = empty_cells(*problem.cell_sums()) if unpenalised else []
    if empty or problem.n_parameters > MAX_NEWTON_PARAMETERS:
        return empty, {}, math.nan
    gradient = problem.gradient(point)
    if direction is None:
        direction = information_solver(problem, point)(gradient)
    separated = recession(problem, direction) if unpenalised else {}
    return empty, separated, float(gradient @ direction) / 2


def empty_cells(n, both, single):
    """Pairs of variables j < k with values that never occur together.

    From the number n of rows and the sums Σ x_j x_k and Σ x_j over them. If x_j = s never meets
    x_k = t, then m_jk -> -st ∞ with b_j -> -s ∞ and b_k -> -t ∞ never lowers the
    pseudo-likelihood.
    """
    found = []
    for s in (-1, 1):
        for t in (-1, 1):
            count = n + s * single[:, None] + t * single + s * t * both
            j, k = np.nonzero(np.triu(count < 0.5, 1))
            found += zip(j.tolist(), k.tolist(), [s] * len(j), [t] * len(j), strict=True)
    return sorted(found)


def recession(problem, direction):
    """Variables that a direction separates, if it is one that never lowers the objective.

    Where the maximum is at infinity, Newton's steps do not shrink but tend to a direction
    in which no x_ij F_ij falls; an honest maximum has no such direction.
    """
    coupling, intercept = problem.unpack(direction)
    if (np.abs(coupling).sum(axis=1) + np.abs(intercept)).max(initial=0) < MIN_STEP:
        return {}
    least, greatest = problem.gains(coupling, intercept)
    largest = max(np.abs(least).max(initial=0), np.abs(greatest).max(initial=0))
    if largest < MIN_STEP or least.min() < -0.01 * largest:
        return {}
    strong = np.abs(coupling) > 0.05 * np.abs(direction).max()
    return {
        j: np.flatnonzero(strong[j]).tolist()
        for j in np.flatnonzero(greatest > 0.1 * largest).tolist()
    }
