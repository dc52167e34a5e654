"""Mean-field inference by TAP, naive mean field or adaptive TAP."""

from sklearn.utils import Bunch

from sklearn_boltz.numerics._arrays import as_numpy, is_foreign
from sklearn_boltz.restricted.mean_field import _tap, _vamp
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
        # Iterations of arrays are there for Bernoulli units.
        model, V = model.moved(as_numpy), as_numpy(V)
    solutions = _tap.solve(model, V, iteration, workers)
    if is_foreign(V):
        model = model.moved(as_numpy)
        solutions = Bunch(**{name: as_numpy(value) for name, value in solutions.items()})
    solutions.free_energy = _tap.free_energy(model, solutions, iteration.order)
    return solutions


def check_units(iteration, layers):
    """Raise an error if adaptive TAP is wanted for units of several numbers."""
    if iteration.adaptive and any(map(has_wide_units, layers)):
        raise ValueError(
            "Adaptive TAP is for units of one number each, and some have several: those of "
            "columns with three or more categories. Set inference='tap'."
        )
