"""Maximum likelihood of a network that is too large for a table of its states.

Tempered chains, or a user's sampler, estimate the moments of the model, and Newton's method
corrects the parameters until these are the moments of the data. The chains go on from one model to
the next. A step is kept if the likelihood rises, as estimated from the states of the new model;
else it is tried again with more damping, as by Levenberg and Marquardt.

A step that suits all states of the chains may make a mode far from them the likeliest of all, such
as that of all ones. So before chains are run, the step is turned away from what bounds show to be
such a mode.
"""

from copy import copy

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.linalg import LinearOperator, cg

from sklearn_boltz.networks.sampling._sampling import strange_columns
from sklearn_boltz.networks.training._sampled_moments import (
    FIRST_ROUNDS,
    N_CHAINS,
    Bound,
    Sampler,
    Statistics,
    UsersSampler,
)
from sklearn_boltz.networks.training._shared_coupling import shared_coupling
from sklearn_boltz.networks.training._solvers import Monitor
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._ladder_record import mean_and_error

# Rounds whose states tell the moments, at most; then moments are averaged over visits.
MAX_ROUNDS = 2**12
# The rounds are doubled where a step brings less than this share of what the gradient promises, and
# damping falls only where it brings more than the second one.
LEAST_SHARE, GOOD_SHARE = 0.25, 0.5
# The penalty of the pseudo-likelihood whose maximum may be the initial model.
FIRST_ALPHA = 0.2
# Its fit ends when an iteration gains less than this many nats a row, or after this many.
ROUGH, MAX_FIRST_ITER = 1e-5, 500
# Damping: a ridge on the squares of all parameters, per row. It is that of one row at least: then
# parameters without a maximum change by about 1 at a time. A step is kept if the states of both
# models could be exchanged with this probability; above the second one, damping falls.
FIRST_RIDGE, LEAST_OVERLAP, GOOD_OVERLAP, FACTOR = 0.1, 0.6, 0.8, 4.0
# A loss of this share of what the noise of the data costs, half a nat a parameter, is no reason to
# go back.
SMALL_LOSS = 0.01
# Iterations of conjugate gradients for a step, and how exact it is.
MAX_CG, CG_TOL = 200, 0.01
# Bounds that turn a step, at most, and the share of its distance to the likelihood by which a bound
# may fall in it.
MAX_BOUNDS, ROOM = 8, 0.5


class Search:
    """Newton's method by samples.

    Parameters
    ----------
    statistics : Statistics
    sampler : Sampler or UsersSampler
    first : Visit
    tolerance : float
        The search ends where no moment differs from that of the data by more standard errors of
        the latter.

    Attributes
    ----------
    here : Visit
    """

    def __init__(self, statistics, sampler, first, tolerance):
        self.statistics, self.sampler, self.tolerance = statistics, sampler, tolerance
        self.here, self.n_rounds, self.ridge = first, FIRST_ROUNDS, FIRST_RIDGE
        self._visits = []  # those of the most rounds
        # A moment that is the same in all rows is known to about one row.
        variances = np.maximum(statistics.variances, 1 / statistics.total)
        self._errors = np.sqrt(variances / statistics.total)

    def gradient(self):
        """Moments of the data less those of the model, less the slope of the penalty."""
        statistics, here = self.statistics, self.here
        difference = statistics.moments - here.expected
        return difference - statistics.ridge * here.theta

    def differences(self):
        """The gradient in standard errors of the moments of the data."""
        return self.gradient() / self._errors

    def step(self):
        """Try a step, and keep it if the likelihood rises."""
        direction, path = self._direction()
        there = self._visit(self.here.theta + direction, path)
        rise, error, overlap = compare(self.statistics, self.here, there)
        # Along a gradient that is not noise, a step that changes few states is promised this much.
        is_near, promised = overlap >= LEAST_OVERLAP, self.gradient() @ direction / 2
        is_noisy = is_near and rise < LEAST_SHARE * promised
        if is_noisy:
            self.n_rounds = min(2 * there.n_rounds, MAX_ROUNDS)
        loss = max(2 * error, SMALL_LOSS * len(direction) / (2 * self.statistics.total))
        if is_near and rise >= -loss:
            self._go(self._followed(there, rise, error))
            if overlap > GOOD_OVERLAP and rise >= GOOD_SHARE * promised:
                self.ridge = max(self.ridge / FACTOR, 1 / self.statistics.total)
            return
        self.ridge *= FACTOR
        if is_noisy:
            again = self._visit(self.here.theta, self.sampler.explore(self.here.theta))
            self._go(self._followed(again, 0.0, 0.0))

    def _visit(self, theta, path):
        return self.sampler.visit(theta, self.n_rounds, path, self.here.ladder)

    def _direction(self):
        """A step, and the path to the model there.

        Newton's step is turned away from distributions whose bounds would come too near to the
        likelihood here, or below.
        """
        here, bounds, turns = self.here, [], []
        solve = damped_inverse(self.statistics, here, self.ridge)
        newton = direction = solve(self.gradient())
        while True:
            theta = here.theta + direction
            path = self.sampler.explore(theta)
            if path is None or len(bounds) == MAX_BOUNDS:
                return direction, path
            bound = Bound.of_path(self.statistics, path)
            if bound.at(theta) - bound.at(here.theta) >= -self._room(bound) - 2 * here.error:
                return direction, path
            bounds.append(bound)
            turns.append(solve(bound.slope))
            direction = newton + self._turn(newton, bounds, np.array(turns))

    def _room(self, bound):
        """By how much a bound may fall in a step."""
        return ROOM * max(bound.at(self.here.theta) - self.here.log_likelihood, 0.0)

    def _turn(self, newton, bounds, turns):
        """Correction of a step, so that no bound falls by more than it may."""
        slopes = np.array([bound.slope for bound in bounds])
        least = -np.array([self._room(bound) for bound in bounds])
        return nnls(slopes @ turns.T, np.maximum(least - slopes @ newton, 0))[0] @ turns

    def _followed(self, there, rise, error):
        """A visit; without a log-likelihood of its own, it has that of before and the rise."""
        if np.isfinite(there.log_likelihood):
            return there
        error = np.hypot(self.here.error, error)
        return there._replace(log_likelihood=self.here.log_likelihood + rise, error=error)

    def _go(self, visit):
        """Go to a model; once the rounds are the most, to the mean of the later half of them."""
        self.here = visit
        if visit.n_rounds >= MAX_ROUNDS:
            self._visits.append(visit)
            self.here = averaged(self.statistics, self._visits[len(self._visits) // 2 :])


def averaged(statistics, visits):
    """The mean of several models, whose moments are to first order the means of theirs.

    So the log-likelihood is to third order that of each plus the mean of the slopes there and at
    the mean model, times the way.
    """
    theta, expected = (
        np.mean([getattr(v, name) for v in visits], axis=0) for name in ("theta", "expected")
    )
    values = [
        v.log_likelihood + statistics.penalty(v.theta)
        + (theta - v.theta) @ (statistics.moments - (v.expected + expected) / 2)
        for v in visits
    ]  # fmt: skip
    errors, error = (
        np.sqrt(np.mean([getattr(v, name) ** 2 for v in visits], axis=0) / len(visits))
        for name in ("errors", "error")
    )
    return visits[-1]._replace(
        theta=theta, expected=expected, errors=errors,
        log_likelihood=np.mean(values) - statistics.penalty(theta), error=error,
    )  # fmt: skip


def damped_inverse(statistics, visit, ridge):
    """A function that gives the step of Newton's method, damped, for a gradient.

    The covariances of the terms are those of the states, with which they are multiplied without a
    matrix. As far as the states are too few to tell them, the variances are raised. Terms are
    scaled by their standard deviations, so that those that are rare count.
    """
    states, n_terms = np.concatenate(visit.states), len(visit.theta)
    damping = ridge + statistics.ridge + n_terms / len(states) * statistics.variances
    scale = 1 / np.sqrt(damping + statistics.variances)

    def product(scaled):
        direction = scale * scaled
        values = statistics.log_weights(direction, states)
        return scale * (statistics.covariances_with(values, states) + damping * direction)

    matrix = LinearOperator((n_terms, n_terms), matvec=product, dtype=np.float64)
    return lambda gradient: scale * cg(matrix, scale * gradient, rtol=CG_TOL, maxiter=MAX_CG)[0]


def compare(statistics, here, there):
    """By how much the log-likelihood of a row rises, its standard error, and the overlap.

    The overlap is the mean probability with which states of both would be exchanged.
    """
    step = there.theta - here.theta
    forward, backward = (
        sign * np.array([statistics.log_weights(step, group) for group in visit.states])
        for sign, visit in ((1, here), (-1, there))
    )
    # By the states of the new model alone: those of the old one, whose noise the step follows,
    # would make a step seem to rise too much.
    peak = backward.max()
    weights = np.exp(backward - peak).mean(axis=1)
    weight, error = mean_and_error(weights)
    rise = step @ statistics.moments + peak + np.log(weight)
    rise -= statistics.penalty(there.theta) - statistics.penalty(here.theta)
    n = min(forward.shape[1], backward.shape[1])
    overlap = np.exp(np.minimum(forward[:, :n] + backward[:, :n], 0)).mean()
    return float(rise), float(error / weight), float(overlap)


def first_visit(problem, solve, statistics, sampler):
    """The initial model: a maximum of the penalised pseudo-likelihood, if it resembles the data.

    It may have mass far from the data, in particular where columns have a common cause. Then all
    pairs have the same coupling, which is fitted exactly.
    """
    d, expected = len(statistics.mean), (1 + statistics.mean) / 2
    square = statistics.square_of_sum()
    coupling, intercept, value = shared_coupling(statistics.mean, square, statistics.alpha)
    theta = likely_by_columns(problem, solve, statistics, sampler.base)
    path = sampler.explore(theta)
    if Bound.of_path(statistics, path).at(theta) > value:
        visit = sampler.visit(theta, FIRST_ROUNDS, path)
        rates = expected + visit.expected[:d] / 2
        if visit.log_likelihood > value and not len(strange_columns(rates, expected, N_CHAINS)):
            return visit
    theta = statistics.theta(coupling * (1 - np.eye(d)), intercept)
    return sampler.visit(theta, FIRST_ROUNDS, sampler.explore(theta))


def likely_by_columns(problem, solve, statistics, base):
    """θ of the maximum of the pseudo-likelihood with a penalty, roughly."""
    problem, d = copy(problem), len(base)
    problem.set_alpha(max(statistics.alpha, FIRST_ALPHA))
    monitor = Monitor(ROUGH * problem.total, MAX_FIRST_ITER)
    point, _ = solve(problem, problem.at(problem.pack(np.zeros((d, d)), base)), monitor)
    return statistics.theta(*problem.unpack(point.theta))


def maximise_by_sampling(task, initial, generator, further, draw, monitor):
    """Find the model with the moments of the data; -> a warning about how it ended, or None.

    Parameters
    ----------
    task : Task
        Of complete rows.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    generator : Generator
    further : Further or None
        Of all columns that vary; None for pairs only.
    draw : callable or None
        A user's sampler, as of `spins_of_sampler`; None for chains.
    monitor : Monitor
        With the tolerance of `Search`.
    """
    statistics, problem = Statistics(task.problem, further), task.problem
    monitor.status = "max_iter"
    with Workers() as workers:
        sampler = Sampler(statistics, task.base[task.varying], generator, workers)
        if initial[0] is None and initial[1] is None:
            first = first_visit(problem, task.method("newton").run, statistics, sampler)
        else:
            theta = statistics.theta(*problem.unpack(task.initial(*initial)))
            first = sampler.visit(theta, FIRST_ROUNDS, sampler.explore(theta))
        if draw is not None:
            value, error = first.log_likelihood, first.error
            sampler = UsersSampler(draw, statistics, generator)
            first = sampler.visit(first.theta, FIRST_ROUNDS)
            first = first._replace(log_likelihood=value, error=error)
        search = Search(statistics, sampler, first, monitor.tol)
        while monitor.status == "max_iter" and len(monitor.values) < monitor.max_iter:
            search.step()
            _record(monitor, search)
            if monitor.stop():
                monitor.status = "asked"
            elif np.abs(search.differences()).max() <= search.tolerance:
                monitor.status = "converged"
    return _message(task, search, monitor)


def _record(monitor, search):
    """Record an iteration: the likelihood, and the largest difference of moments."""
    here, largest = search.here, np.abs(search.differences()).max()
    line = (
        f"iteration {len(monitor.values) + 1}: log-likelihood {here.log_likelihood:.4f} ± "
        f"{here.error:.2g} a row, largest difference {largest:.2f} standard errors"
    )
    figures = {"log_likelihood_error": here.error, "largest_difference": largest}
    monitor.add(here.log_likelihood, search.statistics.model(here.theta), line, **figures)


def _message(task, search, monitor):
    """Warning about how the fit ended, or None."""
    reason = task.no_maximum()
    if reason is not None or monitor.status != "max_iter":
        return reason
    differences = search.differences()
    worst = int(np.abs(differences).argmax())
    moment = search.statistics.name(worst, task.named)
    return (
        f"The fit ended at max_iter={monitor.n_kept}, while {moment} still differs from that of "
        f"the model by {abs(differences[worst]):.2g} of its standard errors in the data, more than "
        f"moment_tol={search.tolerance:g}. Raise max_iter or moment_tol, or draw the couplings "
        "closer to 0 by a larger alpha."
    )
