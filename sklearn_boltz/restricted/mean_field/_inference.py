"""Mean-field inference by TAP, naive mean field or adaptive TAP."""

from sklearn.utils import Bunch

from sklearn_boltz.numerics._arrays import as_numpy, is_foreign
from sklearn_boltz.restricted.mean_field import _solutions, _tap, _vamp
from sklearn_boltz.restricted.mean_field._second_order import has_wide_units
from sklearn_boltz.restricted.mean_field._tap import TAP

# What `inference` calls them.
INFERENCES = {"tap": TAP(), "naive": TAP(order=1), "adaptive": TAP(adaptive=True)}
# Iterations from each start, outside training.
MOST_ITERATIONS = 1000


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


def check_units(iteration, layers):
    """Raise an error if adaptive TAP is wanted for units of several numbers."""
    if iteration.adaptive and any(map(has_wide_units, layers)):
        raise ValueError(
            "Adaptive TAP is for units of one number each, and some have several: those of "
            "columns with three or more categories. Set inference='tap'."
        )
