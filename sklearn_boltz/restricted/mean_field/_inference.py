"""Mean-field inference by name: TAP, relaxed belief propagation, adaptive TAP."""

from sklearn_boltz.restricted.mean_field import _rbp, _tap, _vamp


def by_tap(model, V, iteration, workers):
    """TAP, or naive mean field in the first order."""
    solutions = _tap.solve(model, V, iteration, workers)
    solutions.free_energy = _tap.free_energy(model, solutions, iteration.order)
    return solutions


def by_rbp(model, V, iteration, workers):
    """Relaxed belief propagation."""
    return _rbp.solve(model, V, iteration)


def by_adatap(model, V, iteration, workers):
    """Adaptive TAP."""
    return _vamp.solve(model, V, iteration)


INFERENCES = {"tap": by_tap, "rbp": by_rbp, "adatap": by_adatap}
