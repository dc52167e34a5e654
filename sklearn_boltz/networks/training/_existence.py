"""Whether the log pseudo-likelihood or the likelihood has a maximum, and how far off it still is.

There is none if some direction in the space of the parameters never lowers the field of a value
that occurs, against those of its column's other values, and raises some: the parameters then grow
without bound while the objective approaches its supremum. For a value never seen, no observation
speaks; `CodesTask` leaves it out. If two values never meet, and neither column has missing cells,
their coupling grows without bound.
"""

import math

import numpy as np

from sklearn_boltz.networks.training._objective import largest_gain, largest_move
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
    """Warning about how the fit ended, or None.

    Parameters
    ----------
    problem : PseudoLikelihood, Likelihood, Contrasts or CategoricalPseudoLikelihood
    point : Point
    direction : ndarray of shape (n_parameters,) or None
        The last step of Newton's method, if that was the solver.
    monitor : Monitor
    label : callable
        The name of a column of the problem, or with a second argument of one of its values.
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
        return without_maximum(reason, problem.name, problem.advice)
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


def apart(problem, label, name=None):
    """The message where two values never occur together; None if all do, or with a penalty."""
    empty = [] if problem.penalty else problem.empty_cells()
    if not empty:
        return None
    return without_maximum(never_together(empty, label), name or problem.name, problem.advice)


def without_maximum(reason, name="log pseudo-likelihood", advice=""):
    """The message where the objective of that name has no maximum."""
    return (
        f"The {name} has no maximum: {reason}. Some parameters would grow without bound; they "
        "stay where the fit stopped, and `inference` has NaN in place of their standard errors. "
        f"{advice}With alpha > 0, for example alpha=0.01, the couplings shrink towards 0 and "
        "the maximum exists."
    )


def distance(problem, remaining):
    """How far the maximum is, as far as is known, in a clause."""
    if math.isnan(remaining):
        exists = "" if problem.penalty else " or whether there is one,"
        why = "after L-BFGS" if problem.information is None else "with so many parameters"
        return f"how far the maximum is,{exists} is not checked {why}"
    # With a penalty there always is one.
    known = problem.penalty or remaining <= NEGLIGIBLE
    where = "is about" if known else "exists, but it is far, some"
    return f"the maximum of the {problem.name} {where} {max(remaining, 0):.2g} nats higher"


def remedies(first, problem, by_newton):
    """Remedies for a fit that ended before the maximum, the nearest first."""
    # With more parameters another solver takes the place of Newton's method.
    has_newton = not by_newton and is_small(problem)
    more_alpha = "use a larger alpha" if problem.penalty else "set alpha > 0"
    newton = ", use solver='newton'" if has_newton else ""
    return f"{first}{newton}, or {more_alpha}."


def _unknown(problem, monitor, strongest, label):
    """The fit ended where the curvature does not tell where the maximum is."""
    j, k = strongest
    count, s, t = problem.rarest_cell(j, k)
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


def is_small(problem):
    """Whether second derivatives are looked at."""
    return problem.information is not None and problem.n_parameters <= MAX_NEWTON_PARAMETERS


def existence_report(problem, point, direction=None):
    """Reasons why the data have no finite maximum.

    Returns
    -------
    empty : list of (int, int, int, int)
        Pairs of columns with values that never meet: then there is no maximum.
    separated : dict of int to list of int
        Columns that others determine, with those others; no maximum either.
    remaining : float
        By how much the objective would still rise, to second order. NaN if there are too
        many parameters to tell, or if the second order does not tell.
    strongest : (int, int) or None
        If the second order does not tell: the columns j <= k of the parameter that Newton's
        step would change most, j = k for an intercept.
    """
    # With a penalty there always is one.
    unpenalised = problem.penalty == 0
    empty = problem.empty_cells() if unpenalised else []
    if empty:
        # Of incomplete columns, rows with one of both cells may see to a maximum.
        whole = problem.is_whole
        empty = [cell for cell in empty if whole[[*cell[:2]]].all()]
    if empty or not is_small(problem):
        return empty, {}, math.nan, None
    gradient = problem.gradient(point)
    if direction is None:
        direction = information_solver(problem, point)(gradient)
    separated = recession(problem, direction) if unpenalised else {}
    remaining = float(gradient @ direction) / 2
    if separated or remaining <= NEGLIGIBLE or largest_gain(*problem.gains(direction)) <= QUADRATIC:
        return empty, separated, remaining, None
    strengths = np.triu(problem.strengths(direction))
    j, k = np.unravel_index(strengths.argmax(), strengths.shape)
    return empty, separated, math.nan, (int(j), int(k))


def recession(problem, direction):
    """Columns that a direction separates, if it is one that never lowers the objective.

    Where the maximum is at infinity, Newton's steps do not shrink but tend to a direction
    in which no field of a value that occurs falls; an honest maximum has no such direction.
    """
    if largest_move(*problem.unpack(direction)) < MIN_STEP:
        return {}
    least, greatest = problem.gains(direction)
    largest = largest_gain(least, greatest)
    if largest < MIN_STEP or least.min() < -0.01 * largest:
        return {}
    strong = problem.strengths(direction) > 0.05 * np.abs(direction).max()
    np.fill_diagonal(strong, False)
    return {
        j: np.flatnonzero(strong[j]).tolist()
        for j in np.flatnonzero(greatest > 0.1 * largest).tolist()
    }
