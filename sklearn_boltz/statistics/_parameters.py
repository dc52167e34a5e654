"""The parameters of a network one after another, and what they refer to."""

import numpy as np

from sklearn_boltz.statistics.covariance._categorical import as_matrices, parameter_index


class NetworkParameters:
    """Methods of a result with `estimate`, `names` and `n_values`."""

    @property
    def columns(self):
        """Numbers of the two variables of each coupling, ndarray of shape (2, n_parameters).

        Of an intercept, the number of its variable twice.
        """
        if self.n_values is not None:
            i, _, j, _ = parameter_index(self.n_values)
            return np.array([i, np.where(j < 0, i, j)])
        d = round((np.sqrt(8 * len(self.estimate) + 1) - 1) / 2)
        return np.array([np.append(np.arange(d), pair) for pair in np.triu_indices(d, 1)])

    def coupling_matrix(self, values):
        """Arrange values of the parameters like the matrix of couplings.

        Parameters
        ----------
        values : array-like of shape (n_parameters,)
            For example `p_value`.

        Returns
        -------
        matrix : ndarray of the shape of `coupling_`
            Symmetric, NaN on the diagonal, or in the blocks of one and the same variable.
        """
        values = np.asarray(values, dtype=np.float64)
        if self.n_values is not None:
            return as_matrices(values, self.n_values)[0]
        d = round((np.sqrt(8 * len(values) + 1) - 1) / 2)
        matrix = np.full((d, d), np.nan)
        j, k = np.triu_indices(d, 1)
        matrix[j, k] = matrix[k, j] = values[d:]
        return matrix
