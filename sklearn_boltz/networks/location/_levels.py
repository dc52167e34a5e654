"""One-hot categories of completed rows: what all completions of a row share, and the rest.

Most cells are observed, so that sums over completions are sums over rows and over few cells.
"""

import numpy as np
from scipy.sparse import csr_array, dia_array

# Entries of a part of a matrix that is not sparse.
CHUNK = 2**22


class Levels:
    """One-hot categories x of completions.

    Parameters
    ----------
    x : csr_array of shape (n, Q)
    owner : ndarray of int of shape (n,)
        Which row of the table it is; equal ones stand one after another.
    """

    def __init__(self, x, owner):
        self.shape = x.shape
        self._first = np.flatnonzero(np.diff(owner, prepend=-1))
        n_each = np.diff(np.append(self._first, len(owner)))
        self._place = np.repeat(np.arange(len(n_each)), n_each)
        counts = self._by_row(x)
        # An entry is shared if all completions have it.
        shared = counts.data == np.repeat(n_each, np.diff(counts.indptr))
        counts.data = shared.astype(np.float64)
        counts.eliminate_zeros()
        self._shared = counts
        self._rest = csr_array(x - counts[self._place])
        self._rest.eliminate_zeros()

    def _by_row(self, x):
        """Sums over the completions of each row, sparse."""
        ends = np.append(self._first, x.shape[0])
        sums = csr_array((np.ones(x.shape[0]), np.arange(x.shape[0]), ends)) @ x
        sums.sum_duplicates()
        return sums

    def times(self, matrix):
        """x M."""
        return (self._shared @ matrix)[self._place] + self._rest @ matrix

    def sums(self, values):
        """xᵀ V."""
        return self._shared.T @ np.add.reduceat(values, self._first) + self._rest.T @ values

    def second_moments(self, weights):
        """xᵀ w x; matrices of numbers, some rows at a time, are faster than sparse ones."""
        rest = dia_array((weights[None], 0), shape=(len(weights),) * 2) @ self._rest
        total = (self._rest.T @ rest).toarray()
        of_rows, rest = np.add.reduceat(weights, self._first), self._by_row(csr_array(rest))
        step = max(1, CHUNK // max(self.shape[1], 1))
        for start in range(0, len(of_rows), step):
            part = slice(start, start + step)
            shared, own = self._shared[part].toarray(), rest[part].toarray()
            mixed = shared.T @ own
            total += (shared * of_rows[part, None]).T @ shared + mixed + mixed.T
        return total
