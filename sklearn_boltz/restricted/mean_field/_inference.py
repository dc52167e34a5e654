"""Mean-field inference by name: TAP, relaxed belief propagation, adaptive TAP."""

from sklearn_boltz.numerics._arrays import as_numpy, is_foreign
from sklearn_boltz.restricted.mean_field import _rbp, _tap, _vamp
from sklearn_boltz.restricted.mean_field._second_order import has_wide_units
from sklearn_boltz.restricted.mean_field._tap_arrays import at_home


def by_tap(model, V, iteration, workers):
    """TAP, or naive mean field in the first order."""
    if is_foreign(V) and not (model.visible.is_binary and model.hidden.is_binary):
        # Iterations of arrays are there for Bernoulli units.
        model, V = model.moved(as_numpy), as_numpy(V)
    solutions = _tap.solve(model, V, iteration, workers)
    if is_foreign(V):
        model, solutions = model.moved(as_numpy), at_home(solutions)
    solutions.free_energy = _tap.free_energy(model, solutions, iteration.order)
    return solutions


def by_rbp(model, V, iteration, workers):
    """Relaxed belief propagation."""
    check_units("rbp", (model.visible, model.hidden))
    return _rbp.solve(model, V, iteration)


def by_adatap(model, V, iteration, workers):
    """Adaptive TAP."""
    check_units("adatap", (model.visible, model.hidden))
    return _vamp.solve(model, V, iteration)


INFERENCES = {"tap": by_tap, "rbp": by_rbp, "adatap": by_adatap}


def check_units(inference, layers):
    """Raise an error if an inference is not there for units of several numbers."""
    if inference != "tap" and any(map(has_wide_units, layers)):
        raise ValueError(
            f"inference={inference!r} is for units of one number each, and some have several: "
            "those of columns with three or more categories. Set inference='tap'."
        )
