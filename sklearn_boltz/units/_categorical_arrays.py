"""Categorical units whose parameters are arrays of a library other than NumPy.

Each function gives the same result as the kernel of the same name, and a draw uses the same random
numbers. Tensors in the memory of the CPU are drawn by the kernel itself. `runs` are those of the
kernels: widths, and how many consecutive units have each.
"""

from sklearn_boltz.numerics._arrays import (
    concatenated,
    converted,
    cumulative_sum,
    device_of,
    host_view,
    logsumexp,
    namespace_of,
    widest,
)
from sklearn_boltz.units._categorical_kernel import categorical_sample


def mean(field, intercept, runs):
    """The probabilities of the states."""
    parts = _by_width(field + intercept, runs)
    return _side_by_side([_softmax(part) for part in parts])


def log_partition_sum(field, intercept, runs):
    """The sums of the log-partitions of all units, in the widest type of float."""
    xp, dtype = namespace_of(field), widest(field)
    parts = _by_width(field + intercept, runs)
    return sum(xp.sum(logsumexp(part), axis=1, dtype=dtype) for part in parts)


def sample(field, intercept, runs, stream, first_row=0):
    """One-hot states: the first of which the cumulative weight is above u times the total."""
    xp = namespace_of(field)
    if field.dtype != intercept.dtype:  # a product of lower precision
        field = converted(field, intercept.dtype, xp)
    if host_view(field) is not None:
        out = xp.asarray(field, copy=True)
        bias = host_view(xp.asarray(intercept, copy=True))
        view = host_view(out)
        categorical_sample(view, bias, runs, stream.seed, stream.take(1), first_row)
        return out
    u = stream.uniform_beside(field, (field.shape[0], int(runs[:, 1].sum())), first_row)
    parts, first = [], 0
    for part in _by_width(field + intercept, runs):
        last = first + part.shape[1]
        parts.append(_drawn(part, u[:, first:last]))
        first = last
    return _side_by_side(parts)


def _by_width(x, runs):
    """The columns of units of equal width, of shape (n_rows, n_units, width)."""
    xp, start = namespace_of(x), 0
    for width, n_units in runs.tolist():
        stop = start + width * n_units
        yield xp.reshape(x[:, start:stop], (x.shape[0], n_units, width))
        start = stop


def _side_by_side(parts):
    xp = namespace_of(parts[0])
    return concatenated([xp.reshape(part, (part.shape[0], -1)) for part in parts], axis=1)


def _softmax(x):
    xp = namespace_of(x)
    weights = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def _drawn(x, u):
    """Units of equal width with such log-weights, drawn by numbers of shape (n_rows, n_units)."""
    xp, sums = namespace_of(x), cumulative_sum(_softmax(x))
    below = sums[..., :-1] <= u[..., None] * sums[..., -1:]
    chosen = xp.sum(converted(below, xp.int64, xp), axis=-1)
    states = xp.arange(x.shape[-1], dtype=xp.int64, device=device_of(x))
    return converted(states == chosen[..., None], x.dtype, xp)
