"""Bernoulli units whose parameters are arrays of a library other than NumPy.

Each function gives the same result as the compiled kernel of the same name, and a draw uses the
same random numbers. Tensors in the memory of the CPU are drawn by the kernels themselves.
"""

from sklearn_boltz.numerics._arrays import (
    at_least,
    converted,
    expit,
    fused,
    host_view,
    namespace_of,
    widest,
)
from sklearn_boltz.numerics._random_arrays import uniform
from sklearn_boltz.units import _bernoulli_kernel as kernels


def mean(field, intercept):
    """Equals ``expit(field + intercept)``."""
    return fused(_mean, field)(field, intercept)


def sample(field, intercept, stream, first_row=0):
    """Equals ``u < expit(field + intercept)``, u from the stream."""
    step = stream.take(1)
    if field.dtype != intercept.dtype:  # a product of lower precision
        field = converted(field, intercept.dtype, namespace_of(field))
    view = host_view(field)
    if view is not None:
        out = namespace_of(field).asarray(field, copy=True)
        bias = host_view(intercept)
        kernels.bernoulli_sample(host_view(out), bias, stream.seed, step, first_row)
        return out
    parts = stream.numbers(field).parts(step, field.shape, first_row)
    return fused(_sample, field)(field, intercept, *parts)


def draw(p, stream):
    """Equals ``u < p``, u from the stream."""
    step = stream.take(1)
    view = host_view(p)
    if view is not None:
        out = namespace_of(p).empty_like(p)
        kernels.bernoulli_draw(host_view(out), view, stream.seed, step)
        return out
    return fused(_draw, p)(p, *stream.numbers(p).parts(step, p.shape))


def log_partition_sum(field, intercept):
    """Equals ``np.logaddexp(0, field + intercept).sum(axis=1)``, in the widest float type."""
    xp = namespace_of(field)
    return xp.sum(fused(_softplus, field)(field, intercept), axis=1, dtype=widest(field))


def _mean(field, intercept, xp):
    return expit(field + intercept, xp)


def _sample(field, intercept, key, rows, columns, xp):
    # For a uniform u, u < 1 / (1 + e) is u + u e < 1, as in the kernel.
    y = field + intercept
    u = uniform(key, rows, columns, y.dtype == xp.float64, xp)
    return converted(u + u * xp.exp(-y) < 1, y.dtype, xp)


def _draw(p, key, rows, columns, xp):
    u = uniform(key, rows, columns, p.dtype == xp.float64, xp)
    return converted(u < p, p.dtype, xp)


def _softplus(field, intercept, xp):
    y = field + intercept
    return at_least(y, 0.0, xp) + xp.log1p(xp.exp(-xp.abs(y)))
