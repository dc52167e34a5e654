"""The pseudo-likelihood of categorical columns, for a group of columns ("sites") at once.

Arrays of a group have an axis of `LANES` sites; `table`, for each state, a line for
each state of each column and a last one of zeros. Their layout is told in
``_kernel.h``; only these functions need to know it.
"""

from libc.stdint cimport int16_t, int64_t, uint16_t


cdef extern from "networks/categorical/_kernel.h" nogil:
    const int CATEGORICAL_PANEL
    const int CATEGORICAL_LANES "LANES"

    ctypedef struct categorical_rows:
        const uint16_t *rows
        const uint16_t *parts
        const int64_t *bundles
        const int64_t *patterns
        const int64_t *first
        Py_ssize_t n_blocks, n_rows, n_lines

    ctypedef struct categorical_group:
        const int64_t *sites
        const int64_t *n_values
        const int64_t *starts
        Py_ssize_t n_sites, n_states

    void categorical_gather(const categorical_rows *, Py_ssize_t, double *, double *, double *,
                            Py_ssize_t, Py_ssize_t) noexcept
    void categorical_scatter(const categorical_rows *, Py_ssize_t, double *, double *, double *,
                             Py_ssize_t, Py_ssize_t) noexcept
    double categorical_softmax(double *, const double *, const int16_t *, const double *,
                               Py_ssize_t, Py_ssize_t, double *, double *) noexcept
    void categorical_couplings(const categorical_group *, double *, double *, Py_ssize_t,
                               int) noexcept


# States of a panel at most.
PANEL = CATEGORICAL_PANEL
# Sites of a group.
LANES = CATEGORICAL_LANES


cdef categorical_group _group(const int64_t[::1] sites, const int64_t[::1] n_values,
                              const int64_t[:, ::1] starts, Py_ssize_t n_states) noexcept:
    cdef categorical_group group
    group.sites, group.n_values, group.starts = &sites[0], &n_values[0], &starts[0, 0]
    group.n_sites, group.n_states = n_values.shape[0], n_states
    return group


def pack_table(const double[::1] theta, const int64_t[::1] sites, const int64_t[::1] n_values,
               const int64_t[:, ::1] starts, double[:, :, ::1] table):
    """Fill ``table`` with the couplings J_ij(a, b) of the sites i of a group to all columns j.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,)
    sites : ndarray of shape (LANES,)
        The sites of the group, -1 for none.
    n_values : ndarray of shape (n_sites,)
        The number of states of each column.
    starts : ndarray of shape (n_sites, n_sites)
        Where the block of i and j starts in ``theta``, row by row: that of the smaller and the
        larger of both.
    table : ndarray of shape (n_states, n_lines, LANES)
        `n_states` is the largest number of states of the sites.
    """
    cdef categorical_group group = _group(sites, n_values, starts, table.shape[0])
    with nogil:
        categorical_couplings(
            &group, <double *>&theta[0], &table[0, 0, 0], table.shape[1], 1)


def fold_table(double[::1] theta, const int64_t[::1] sites, const int64_t[::1] n_values,
               const int64_t[:, ::1] starts, const double[:, :, ::1] table):
    """Add to ``theta`` what ``table`` has for each coupling; the arguments of `pack_table`."""
    cdef categorical_group group = _group(sites, n_values, starts, table.shape[0])
    with nogil:
        categorical_couplings(
            &group, &theta[0], <double *>&table[0, 0, 0], table.shape[1], 0)


def evaluate_group(patterns, const int16_t[:, ::1] codes, const double[::1] weights,
                   const double[:, ::1] intercept, double[:, :, ::1] table,
                   double[:, :, ::1] fields, double[:, ::1] sums, double[:, ::1] work,
                   double[:, ::1] intercept_gradient, double[:, :, ::1] table_gradient):
    """The log pseudo-likelihood of a group of sites, to which its derivatives are added.

    With ``f = intercept + table[:, lines].sum(over columns)``, that is
    ``(weights * (f[codes] - logsumexp(f))).sum()`` over the cells that are not missing.

    Parameters
    ----------
    patterns : Patterns
        The rows, in bundles of columns.
    codes : ndarray of shape (n_rows, LANES)
        The states of the group's sites, -1 where they are missing.
    weights : ndarray of shape (n_rows,)
    intercept : ndarray of shape (n_states, LANES)
        -1e30 for states that a site has not.
    table : ndarray of shape (n_states, n_lines, LANES)
    fields : ndarray of shape (n_states, n_block_rows, LANES)
        Overwritten: room for this many rows at a time.
    sums : ndarray of shape (PANEL * n_patterns, LANES)
        Overwritten: room for the patterns of any block.
    work : ndarray of shape (n_states, LANES)
        Overwritten.
    intercept_gradient, table_gradient : ndarray
        Like `intercept` and `table`.
    """
    cdef const uint16_t[::1] row_patterns = patterns.rows, parts = patterns.parts
    cdef const int64_t[::1] bundles = patterns.bundles, starts = patterns.starts
    cdef const int64_t[::1] first = patterns.first
    cdef categorical_rows rows
    cdef Py_ssize_t n_states = table.shape[0], begin = 0, end, step = fields.shape[1]
    cdef double total = 0
    if codes.shape[0] == 0:
        return 0.0
    rows.rows, rows.parts = &row_patterns[0], &parts[0]
    rows.bundles, rows.patterns, rows.first = &bundles[0], &starts[0], &first[0]
    rows.n_blocks = bundles.shape[0] - 1
    rows.n_rows, rows.n_lines = codes.shape[0], table.shape[1]
    with nogil:
        while begin < rows.n_rows:
            end = min(begin + step, rows.n_rows)
            categorical_gather(
                &rows, n_states, &table[0, 0, 0], &sums[0, 0], &fields[0, 0, 0], begin, end)
            total += categorical_softmax(
                &fields[0, 0, 0], &intercept[0, 0], &codes[begin, 0], &weights[begin],
                end - begin, n_states, &work[0, 0], &intercept_gradient[0, 0])
            categorical_scatter(
                &rows, n_states, &table_gradient[0, 0, 0], &sums[0, 0], &fields[0, 0, 0],
                begin, end)
            begin = end
    return total


def center_blocks(double[::1] theta, const int64_t[::1] n_values, const int64_t[:, ::1] starts):
    """Make all intercepts and blocks of couplings in ``theta`` zero-sum, in place.

    Each ``block -= block.mean(0)``, then ``block -= block.mean(1)[:, None]``.
    """
    cdef Py_ssize_t i, j, start = 0
    with nogil:
        for i in range(n_values.shape[0]):
            _center(&theta[start], n_values[i], 1)
            start += n_values[i]
        for i in range(n_values.shape[0]):
            for j in range(i + 1, n_values.shape[0]):
                _center(&theta[starts[i, j]], n_values[i], n_values[j])
                _center_rows(&theta[starts[i, j]], n_values[i], n_values[j])


cdef void _center(double *block, Py_ssize_t n_rows, Py_ssize_t n_columns) noexcept nogil:
    cdef Py_ssize_t a, b
    cdef double mean
    for b in range(n_columns):
        mean = 0
        for a in range(n_rows):
            mean += block[a * n_columns + b]
        mean /= n_rows
        for a in range(n_rows):
            block[a * n_columns + b] -= mean


cdef void _center_rows(double *block, Py_ssize_t n_rows, Py_ssize_t n_columns) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(n_rows):
        _center(block + a * n_columns, n_columns, 1)
