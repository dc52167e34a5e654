"""Kernels of categorical units for a row, compiled into each module that has use for them."""

from libc.stdint cimport uint64_t


cdef extern from "units/_categorical_kernel_all.h" nogil:
    void categorical_weights_f32(
        float *x, const float *bias, Py_ssize_t n, const Py_ssize_t *runs, Py_ssize_t n_runs,
        float *peaks, Py_ssize_t n_units) noexcept
    void categorical_weights_f64(
        double *x, const double *bias, Py_ssize_t n, const Py_ssize_t *runs, Py_ssize_t n_runs,
        double *peaks, Py_ssize_t n_units) noexcept
    void categorical_mean_f32(float *x, const Py_ssize_t *runs, Py_ssize_t n_runs) noexcept
    void categorical_mean_f64(double *x, const Py_ssize_t *runs, Py_ssize_t n_runs) noexcept
    void categorical_sample_f32(
        float *x, const Py_ssize_t *runs, Py_ssize_t n_runs, uint64_t key) noexcept
    void categorical_sample_f64(
        double *x, const Py_ssize_t *runs, Py_ssize_t n_runs, uint64_t key) noexcept
    double categorical_log_partition_f32(
        const float *x, const Py_ssize_t *runs, Py_ssize_t n_runs, float *peaks,
        int each) noexcept
    double categorical_log_partition_f64(
        const double *x, const Py_ssize_t *runs, Py_ssize_t n_runs, double *peaks,
        int each) noexcept
