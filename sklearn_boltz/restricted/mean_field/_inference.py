"""Mean-field inference by TAP, naive mean field or adaptive TAP."""

from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._arrays import as_numpy, is_foreign, like, zeros
from sklearn_boltz.partition._estimates import LogPartition
from sklearn_boltz.restricted.mean_field import _solutions, _tap, _vamp
from sklearn_boltz.restricted.mean_field._second_order import has_wide_units
from sklearn_boltz.restricted.mean_field._tap import TAP
from sklearn_boltz.restricted.sampling._samples import chain_samples

# What `inference` calls them.
INFERENCES = {"tap": TAP(), "naive": TAP(order=1), "adaptive": TAP(adaptive=True)}
TAP_CONSTRAINTS = {
    "order": [Interval(Integral, 1, 2, closed="both")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "damping": [Interval(Real, 0, 1, closed="left")],
    "n_gibbs": [Interval(Integral, 0, None, closed="left")],
    "adaptive": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="left")],
}
# Iterations from each start, outside training.
MOST_ITERATIONS = 1000
# Number of transitions from independent visible units to the starts of TAP, if there are no rows.
START_STEPS = 100


def settings_of(inference):
    """The settings that the parameter `inference` stands for, checked; None is that of TAP."""
    tap = INFERENCES.get(inference or "tap", inference)
    validate_parameter_constraints(TAP_CONSTRAINTS, tap._asdict(), "TAP")
    return tap


def outside_training(inference, max_iter=MOST_ITERATIONS, **changes):
    """How solutions are found outside training."""
    return settings_of(inference)._replace(max_iter=max_iter, **changes)


def by_tap(model, V, iteration, workers):
    """Solutions from rows, with their free energies."""
    if iteration.adaptive:
        return _vamp.solve(model, V, iteration)[0]
    if is_foreign(V) and not (model.visible.is_binary and model.hidden.is_binary):
        # Arrays of other libraries have iterations for Bernoulli units only.
        model, V = model.moved(as_numpy), as_numpy(V)
    solutions = _tap.solve(model, V, iteration, workers)
    if is_foreign(V):
        model = model.moved(as_numpy)
        solutions = Bunch(**{name: as_numpy(value) for name, value in solutions.items()})
    solutions.free_energy = _solutions.free_energy(model, solutions, iteration.order)
    return solutions


def parts_of(model, V, iteration, workers):
    """Solutions from rows, and distinct ones of one order, whose sum is ln Z.

    If some starts have no second-order solution, their part of the distribution has a first-order
    one, which another start may share. Solutions of different orders are therefore not added; the
    greater sum counts, since that of the first order is too low.
    """
    solutions = by_tap(model, V, iteration, workers)
    chosen = _solutions.select(solutions, _solutions.distinct(model, solutions)[0])
    in_second = chosen.order == 2
    if in_second.any() and not in_second.all():
        first = by_tap(model, V, iteration._replace(order=1), workers)
        first = _solutions.select(first, _solutions.distinct(model, first)[0])
        both = [its for its in (first, _solutions.select(chosen, in_second)) if its.converged.any()]
        chosen = max(both, key=_solutions.total_log_partition, default=first)
    return solutions, chosen


def tap_log_partition(model, base, starts, n_starts, inference, stream, workers):
    """ln Z by the solutions from some starts; None for end states of short chains from the base."""
    if starts is None:
        V = base.sample(zeros(model.weights, (n_starts, len(model.visible))), stream)
        starts = chain_samples(model, V, START_STEPS, stream, workers)
    _, chosen = parts_of(model, starts, outside_training(inference), workers)
    if not chosen.converged.any():
        damping = "" if inference is None else ", or a larger damping of TAP"
        warn(
            "TAP converged from no start: its estimate of ln Z is not reliable. Use "
            f"method='ais'{damping}.",
            ConvergenceWarning,
        )
    return LogPartition(
        value=_solutions.total_log_partition(chosen), std_err=np.nan, low=-np.inf, high=np.inf,
        ess=float(len(chosen.order)), log_weights=-chosen.free_energy, method="tap",
        states=like(model.weights, chosen.visible_mean), trusted=False,
        verdict="The TAP estimate of the log-partition is not to be trusted: TAP is an "
        "expansion for small weights, whose error has an unknown size and sign. score_samples "
        "does not use it. method='ais' gives a lower bound.",
    )  # fmt: skip


def check_units(iteration, layers):
    """Raise an error if adaptive TAP is wanted for units of several numbers."""
    if iteration.adaptive and any(map(has_wide_units, layers)):
        raise ValueError(
            "Adaptive TAP is for units of one number each, and some have several: those of "
            "columns with three or more categories. Set inference='tap'."
        )
