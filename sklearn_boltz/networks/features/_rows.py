"""Features of rows; those of columns of many values by the places of their ones."""

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.features._block_diagonal import around


class FeatureRows:
    """φ of rows, X of shape (n, K), for products with matrices.

    Features of a column of many values without an order are 1 at its value and 0 elsewhere, less
    their means: an observed one has the row of a coupling that belongs to its value, less the mean
    of the rows of all values.

    Parameters
    ----------
    network : FeatureNetwork
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell, whose features are 0.
    """

    def __init__(self, network, codes):
        self._network, self._dense = network, network.expand(codes, network.narrow_columns)
        self._wide = [(network.places[j], *_ones(network, codes, j)) for j in network.wide_columns]

    def times(self, coupling):
        """X C, without products of a column of many values with itself."""
        network = self._network
        if not self._wide:
            return self._dense @ coupling
        found = self._dense @ coupling[network.narrow]
        for place, ones, shares in self._wide:
            for others in around(place, len(coupling)):
                block = coupling[place, others]
                found[:, others] += ones @ (block - shares @ block)
        return found

    def products(self, residuals):
        """Xᵀ R, likewise, where 0 stands instead."""
        network = self._network
        if not self._wide:
            return self._dense.T @ residuals
        found = np.zeros((residuals.shape[1],) * 2, network.dtype)
        found[network.narrow] = self._dense.T @ residuals
        for place, ones, shares in self._wide:
            for others in around(place, len(found)):
                sums = ones.T @ residuals[:, others]
                found[place, others] = sums - shares[:, None] * sums.sum(axis=0)
        return found


def _ones(network, codes, j):
    """Where a column has which value, as a sparse matrix; and the shares of the values."""
    own, n_values = codes[:, j], len(network.bases[j].shares)
    ends, known = np.arange(len(own) + 1), (own >= 0).astype(network.dtype)
    ones = csr_array((known, np.maximum(own, 0), ends), shape=(len(own), n_values))
    return ones, network.bases[j].shares.astype(network.dtype)
