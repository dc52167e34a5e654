"""Kernels of Bernoulli units, for a block of rows.

The random numbers come from a counter: each is a function of (seed, step, row, column), so the
result does not depend on how the rows are cut into blocks. `first_row` says where a block
starts. A layer that is sampled takes one step.
"""

from cython cimport floating
from libc.math cimport log
from libc.stdint cimport uint64_t

from sklearn_boltz.units._bernoulli_rows cimport (
    bernoulli_draw_f32,
    bernoulli_draw_f64,
    bernoulli_softplus_f32,
    bernoulli_softplus_f64,
    check_rows,
    mean_rows,
    random_row_key,
    sample_rows,
)


def bernoulli_mean(floating[:, ::1] x, const floating[::1] bias):
    """Equals ``x[...] = scipy.special.expit(x + bias)``."""
    check_rows(x.shape[0], x.shape[1], x, bias)
    if x.shape[0] == 0:
        return
    with nogil:
        mean_rows(x, 1, bias)


def bernoulli_sample(
    floating[:, ::1] x, const floating[::1] bias, uint64_t seed, uint64_t step,
    uint64_t first_row=0,
):
    """Equals ``x[...] = u < scipy.special.expit(x + bias)``, u from `uniform`."""
    check_rows(x.shape[0], x.shape[1], x, bias)
    if x.shape[0] == 0:
        return
    with nogil:
        sample_rows(x, 1, bias, seed, step, first_row)


def bernoulli_draw(
    floating[:, ::1] out, const floating[:, ::1] p, uint64_t seed, uint64_t step,
    uint64_t first_row=0,
):
    """Equals ``out[...] = u < p``, u from `uniform`."""
    cdef uint64_t key
    if out.shape[0] != p.shape[0] or out.shape[1] != p.shape[1]:
        raise ValueError("out and p have different shapes")
    with nogil:
        for i in range(out.shape[0]):
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                bernoulli_draw_f32(&out[i, 0], &p[i, 0], out.shape[1], key)
            else:
                bernoulli_draw_f64(&out[i, 0], &p[i, 0], out.shape[1], key)


def softplus_sums(const floating[:, ::1] x, const floating[::1] bias, double[::1] out):
    """Equals ``out[...] = np.logaddexp(0, x + bias).sum(axis=1)``."""
    check_rows(x.shape[0], x.shape[1], x, bias)
    if out.shape[0] != x.shape[0]:
        raise ValueError("out has the wrong length")
    with nogil:
        for i in range(x.shape[0]):
            out[i] = x.shape[1] * log(2.0)
            if floating is float:
                out[i] += bernoulli_softplus_f32(&x[i, 0], &bias[0], x.shape[1], 0, 1)
            else:
                out[i] += bernoulli_softplus_f64(&x[i, 0], &bias[0], x.shape[1], 0, 1)
