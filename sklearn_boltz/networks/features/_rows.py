"""Features of rows; those of columns of many values by the places of their ones."""

import numpy as np
from scipy.sparse import csr_array


class FeatureRows:
    """φ of rows, X of shape (n, K), for products with matrices.

    Features of a column of many values without an order are 1 at its value and 0 elsewhere, less
    their means. So X is [D, H - O S], with dense features D, ones H, shares S, and O whether each
    of these columns is observed.

    Parameters
    ----------
    network : FeatureNetwork
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell, whose features are 0.
    """

    def __init__(self, network, codes):
        self._network, self._dense = network, network.expand(codes, network.narrow_columns)
        if not len(network.wide):
            return
        own = codes[:, network.wide_columns]
        self._observed = (own >= 0).astype(network.dtype)
        places = np.maximum(own, 0) + (network.wide_shares > 0).argmax(axis=1)
        ends = np.arange(len(own) + 1) * own.shape[1]
        ones = self._observed.ravel(), places.ravel(), ends
        self._ones = csr_array(ones, shape=(len(own), len(network.wide)))

    def times(self, coupling):
        """X C."""
        network = self._network
        if not len(network.wide):
            return self._dense @ coupling
        of_wide = coupling[network.wide]
        found = self._dense @ coupling[network.narrow]
        found += self._ones @ of_wide
        found -= self._observed @ (network.wide_shares @ of_wide)
        return found

    def products(self, residuals):
        """Xᵀ R."""
        network = self._network
        if not len(network.wide):
            return self._dense.T @ residuals
        found = np.empty((len(network.intercept), residuals.shape[1]), network.dtype)
        found[network.narrow] = self._dense.T @ residuals
        of_columns = network.wide_shares.T @ (self._observed.T @ residuals)
        found[network.wide] = self._ones.T @ residuals - of_columns
        return found
