"""A step of Adam in one pass over the parameters."""

from cython cimport floating


cdef extern from "restricted/training/_adam_kernel_all.h" nogil:
    void adam_move_f32(float *x, const float *gradient, float *mean, float *square, Py_ssize_t n,
                       float momentum, float decay, float epsilon, float rate) noexcept
    void adam_move_f64(double *x, const double *gradient, double *mean, double *square,
                       Py_ssize_t n, double momentum, double decay, double epsilon,
                       double rate) noexcept


def adam_step(floating[::1] x, const floating[::1] gradient, floating[::1] mean,
              floating[::1] square, double momentum, double decay, double epsilon, double rate):
    """Make a step, and move the means of the gradients and of their squares.

    Equals ::

        mean[...] = momentum * mean + (1 - momentum) * gradient
        square[...] = decay * square + (1 - decay) * gradient**2
        x += rate * mean / (np.sqrt(square) + epsilon)
    """
    cdef Py_ssize_t n = x.shape[0]
    if gradient.shape[0] != n or mean.shape[0] != n or square.shape[0] != n:
        raise ValueError("the shapes do not fit")
    if n == 0:
        return
    with nogil:
        if floating is float:
            adam_move_f32(&x[0], &gradient[0], &mean[0], &square[0], n, <float>momentum,
                          <float>decay, <float>epsilon, <float>rate)
        else:
            adam_move_f64(&x[0], &gradient[0], &mean[0], &square[0], n, momentum, decay, epsilon,
                          rate)
