"""Whether the log pseudo-likelihood or the likelihood has a maximum, and how far off it still is.

There is none if some direction in the space of the parameters never lowers x_ij F_ij for any
row i and variable j, and raises some: the parameters then grow without bound while the
objective approaches its supremum.
"""

import math

import numpy as np

from sklearn_boltz.networks.training._objective import largest_move
from sklearn_boltz.networks.training._solvers import MAX_NEWTON_PARAMETERS, information_solver

# Nats: what is missing moves an estimate by less than a third of its standard error.
NEGLIGIBLE = 0.05
# On the way to infinity, a step of Newton's method moves some field by about a half.
MIN_STEP = 0.1
# The second-order figure of what is missing is given where the step to the maximum moves no field
# by more than this. The curvature of the objective then changes by no more than a factor e², since
# the logarithm of sech² has a slope of 2 at most.
QUADRATIC = 1.0


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
            f"The {problem.name} fell: the steps are too long. With step_size <= 1 it always rises."
        )
    by_newton = direction is not None
    if monitor.status == "max_iter":
        # Along a step that has been taken little is left to gain; the next one tells more.
        direction = None
    empty, separated, remaining, strongest = existence_report(problem, point, direction)
    if empty or separated:
        reason = never_together(empty, label) if empty else determined(separated, label)
        return without_maximum(reason, problem.name)
    if strongest is not None and monitor.status in ("max_iter", "converged"):
        return _unknown(problem, monitor, strongest, label)
    if monitor.status == "max_iter":
        return (
            f"The fit ended at max_iter={monitor.max_iter} before it converged; "
            f"{distance(problem, remaining)}. {remedies('Raise max_iter', problem, by_newton)}"
        )
    if monitor.status == "converged" and remaining > max(NEGLIGIBLE, 10 * monitor.tol):
        return (
            f"An iteration raised the {problem.name} by less than tol={monitor.tol:g}, but the "
            f"maximum is about {remaining:.2g} nats higher. "
            f"{remedies('Lower tol', problem, by_newton)}"
        )
    return None


def without_maximum(reason, name="log pseudo-likelihood"):
    """The message where the objective of that name has no maximum."""
    return (
        f"The {name} has no maximum: {reason}. Some parameters would grow "
        "without bound; they stand where the fit ended, and `inference` has NaN in place of their "
        "standard errors. With alpha > 0, for example alpha=0.01, the couplings are drawn towards "
        "0 and the maximum exists."
    )


def distance(problem, remaining):
    """How far the maximum is, as far as is known, in a clause."""
    if math.isnan(remaining):
        exists = "" if problem.penalty else " or whether there is one,"
        return f"how far the maximum is,{exists} is not looked at with so many parameters"
    # With a penalty there always is one.
    known = problem.penalty or remaining <= NEGLIGIBLE
    where = "is about" if known else "exists, but it is far, some"
    return f"the maximum of the {problem.name} {where} {max(remaining, 0):.2g} nats higher"


def remedies(first, problem, by_newton):
    """What to do about a fit that ended before the maximum, beginning with the nearest."""
    # With more parameters another solver takes the place of Newton's method.
    has_newton = not by_newton and problem.n_parameters <= MAX_NEWTON_PARAMETERS
    newton = ", use solver='newton'" if has_newton else ""
    return f"{first}{newton}, or {more_alpha(problem.penalty)}."


def more_alpha(penalty):
    """How to get a maximum that is nearer."""
    return "use a larger alpha" if penalty else "set alpha > 0"


def _unknown(problem, monitor, strongest, label):
    """The fit ended where the curvature does not tell where the maximum is."""
    j, k = strongest
    count, s, t = rarest_cell(problem, j, k)
    rows = f"{count:g} of {problem.total:g} rows"
    if j == k:
        where, rare = f"the intercept of {label(j)}", f"{label(j, s)} occurs in {rows}"
    else:
        where = f"the coupling of {label(j)} and {label(k)}"
        rare = f"{label(j, s)} occurs together with {label(k, t)} in {rows}"
    if monitor.status == "max_iter":
        end, remedy = f"at max_iter={monitor.max_iter}", "a larger max_iter"
    else:
        end = f"because an iteration raised the {problem.name} by less than {monitor.tol:g}"
        remedy = "a smaller tol"
    exists, last = "", "use a larger alpha"
    if problem.penalty == 0:
        exists = ", or whether there is one"
        last = "fit with alpha > 0, for example alpha=0.01, with which the maximum exists"
    return (
        f"The fit ended {end}, at a point whose curvature does not tell how far the maximum is"
        f"{exists}: a step of Newton's method would go too far, above all in {where} ({rare}). "
        "The estimates and their standard errors are not to be trusted. Use solver='newton' from "
        f"the default initial values, with {remedy}; if that does not help, {last}, or leave "
        "out columns that are almost constant."
    )


def never_together(empty, label):
    """That some pairs of values never occur in one row."""
    j, k, s, t = empty[0]
    more = f" (and {len(empty) - 1} more such pairs)" if len(empty) > 1 else ""
    return f"{label(j, s)} never occurs together with {label(k, t)}{more}"


def determined(separated, label):
    """A variable that others determine, in words."""
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
        many parameters to tell, or if the second order does not tell.
    strongest : (int, int) or None
        If the second order does not tell: the variables j <= k of the parameter that Newton's
        step would change most, j = k for an intercept.
    """
    # With a penalty there always is one.
    unpenalised = problem.penalty == 0
    empty = empty_cells(*problem.cell_sums()) if unpenalised else []
    if empty or problem.n_parameters > MAX_NEWTON_PARAMETERS:
        return empty, {}, math.nan, None
    gradient = problem.gradient(point)
    if direction is None:
        direction = information_solver(problem, point)(gradient)
    coupling, intercept = problem.unpack(direction)
    separated = {}
    if unpenalised:
        separated = recession(problem, direction, coupling, np.arange(len(coupling)))
    remaining = float(gradient @ direction) / 2
    if separated or remaining <= NEGLIGIBLE or move(problem, direction) <= QUADRATIC:
        return empty, separated, remaining, None
    strengths = np.abs(np.triu(coupling) + np.diag(intercept))
    j, k = np.unravel_index(strengths.argmax(), strengths.shape)
    return empty, separated, math.nan, (int(j), int(k))


def move(problem, direction):
    """By how much a direction moves the field of any row, at most."""
    coupling, intercept = problem.unpack(direction)
    bound = largest_move(coupling, intercept)
    if bound <= QUADRATIC:
        return bound
    least, greatest = problem.gains(direction)
    return max(greatest.max(initial=0), -least.min(initial=0))


def rarest_cell(problem, j, k):
    """The number of rows with the rarest pair of values of two variables, and these values.

    With j = k, of the rarer value of one variable.
    """
    n, first, second, both = problem.pair_sums(j, k)
    if j == k:
        return min(((n + s * first) / 2, s, s) for s in (-1, 1))
    return min(
        ((n + s * first + t * second + s * t * both) / 4, s, t) for s in (-1, 1) for t in (-1, 1)
    )


def empty_cells(n, both, single):
    """Pairs of variables j < k with values that never occur together.

    From the number n of rows and the sums Σ x_j x_k and Σ x_j over them. If x_j = s never meets
    x_k = t, then m_jk -> -st ∞ with b_j -> -s ∞ and b_k -> -t ∞ never lowers the
    pseudo-likelihood. With missing cells, n_jk and Σ x_j are those of the rows where x_j and x_k
    are observed, both (d, d).
    """
    found = []
    first = single[:, None] if single.ndim == 1 else single
    for s in (-1, 1):
        for t in (-1, 1):
            count = n + s * first + t * first.T + s * t * both
            j, k = np.nonzero(np.triu(count < 0.5, 1))
            found += zip(j.tolist(), k.tolist(), [s] * len(j), [t] * len(j), strict=True)
    return sorted(found)


def recession(problem, direction, coupling, column):
    """Columns that a direction separates, if it is one that never lowers the objective.

    Where the maximum is at infinity, Newton's steps do not shrink but tend to a direction
    in which no x_ij F_ij falls; an honest maximum has no such direction.

    Parameters
    ----------
    problem : PseudoLikelihood, Likelihood, StreamedPseudoLikelihood or Contrasts
    direction : ndarray of shape (n_parameters,)
    coupling : ndarray of shape (D, D)
        The couplings of the direction.
    column : ndarray of int of shape (D,)
        The column that each of their rows is of.

    Returns
    -------
    separated : dict of int to list of int
        Columns, with those that determine them.
    """
    if largest_move(*problem.unpack(direction)) < MIN_STEP:
        return {}
    least, greatest = problem.gains(direction)
    largest = max(-least.min(initial=0), greatest.max(initial=0))
    if largest < MIN_STEP or least.min() < -0.01 * largest:
        return {}
    strong = np.abs(coupling) > 0.05 * np.abs(direction).max()
    return {
        j: np.unique(column[strong[column == j].any(axis=0)]).tolist()
        for j in np.flatnonzero(greatest > 0.1 * largest).tolist()
    }
