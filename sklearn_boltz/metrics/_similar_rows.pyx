"""How many rows are similar to each row, over all pairs."""

from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef extern from "metrics/_similar_rows_all.h" nogil:
    const int ROW_BLOCK
    void rows_count_similar_u8(
        const uint8_t*, const int64_t*, int64_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t,
        Py_ssize_t) noexcept
    void rows_count_similar_u32(
        const uint32_t*, const int64_t*, int64_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t,
        Py_ssize_t) noexcept


ctypedef fused code_t:
    uint8_t
    uint32_t

# The number of columns that the kernel is given must be a multiple of this.
BLOCK = ROW_BLOCK


def count_similar(const code_t[:, ::1] codes, const int64_t[::1] multiplicity,
                  int64_t[::1] counts, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t most):
    """Add to the counts the pairs of each row of ``begin:end`` and each later row.

    Over all blocks of rows this equals ``similar = (codes[:, None] != codes).sum(axis=2) <= most;
    counts += (similar & ~np.eye(len(codes), dtype=bool)) @ multiplicity``.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32 of shape (n_rows, n_columns)
        The number of columns is a multiple of `BLOCK`.
    multiplicity, counts : ndarray of int64 of shape (n_rows,)
    begin, end : int
    most : int
        How many elements of two similar rows differ, at most.
    """
    cdef Py_ssize_t n_rows = codes.shape[0], n_columns = codes.shape[1]
    if n_rows == 0 or n_columns == 0:
        return
    if n_columns % ROW_BLOCK or not 0 <= begin <= end <= n_rows:
        raise ValueError("columns are not whole blocks, or rows not there")
    if multiplicity.shape[0] != n_rows or counts.shape[0] != n_rows:
        raise ValueError("one multiplicity and one count a row")
    with nogil:
        if code_t is uint8_t:
            rows_count_similar_u8(&codes[0, 0], &multiplicity[0], &counts[0], begin, end, n_rows,
                                  n_columns, most)
        else:
            rows_count_similar_u32(&codes[0, 0], &multiplicity[0], &counts[0], begin, end,
                                   n_rows, n_columns, most)
