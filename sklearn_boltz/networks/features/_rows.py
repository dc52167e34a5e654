"""Features of rows; those of columns of many functions by the states of these."""

import numpy as np

from sklearn_boltz.networks.features._lines import gather, scatter


class FeatureRows:
    """φ of rows, X of shape (n, K), for products with matrices.

    Of a column of many functions they are told by its state a: φ · C is then line a of a table, and
    Xᵀ R comes from sums of the rows of R of each state. Products with features would take several
    times as long.

    Parameters
    ----------
    network : FeatureNetwork
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell, whose features are 0.
    """

    def __init__(self, network, codes):
        self._own, self._features = network.own, network.expand(codes, network.few)
        many = codes[:, network.many]
        lines = np.where(many < 0, -1, many + network.first_lines)
        self._lines = np.ascontiguousarray(lines, dtype=np.int32)

    def times(self, few, table):
        """X C, of the rows of C that belong to columns of few functions, and of lines of others.

        The products of a column of many functions with itself may be left out.
        """
        found = self._features @ few
        gather(found, table, self._lines, self._own)
        return found

    def products(self, residuals, n_lines):
        """Xᵀ R: the rows of columns of few functions, and the lines that the others come from."""
        table = np.zeros((n_lines, residuals.shape[1]), residuals.dtype)
        scatter(residuals, table, self._lines, self._own)
        return self._features.T @ residuals, table
