"""Shared by all results: the order of parameters, and pandas tables."""

from functools import cached_property

import numpy as np

from sklearn_boltz.networks.model._gauge import block_entries, column_of_state
from sklearn_boltz.statistics.covariance._curvature import columns_of_parameters
from sklearn_boltz.tables._frames import optional


class NetworkParameters:
    """Methods of a result with `estimate`, `names` and `n_values`."""

    @cached_property
    def columns(self):
        """Numbers of the two variables of each coupling, ndarray of shape (2, n_parameters).

        For an intercept, the number of its variable twice.
        """
        return columns_of_parameters(*self._entries)

    @property
    def _entries(self):
        """The variable of each line of the matrix of couplings, and where their parameters are."""
        if self.n_values is not None:
            return column_of_state(self.n_values), block_entries(self.n_values)
        d = round((np.sqrt(8 * len(self.estimate) + 1) - 1) / 2)
        return np.arange(d), np.triu_indices(d, 1)

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

        Raises
        ------
        ValueError
            If there is another number of values.
        """
        columns, pairs = self._entries
        if len(values) != len(self.estimate):
            raise ValueError(
                f"values must have {len(self.estimate)} entries, one for each parameter, got "
                f"{len(values)}."
            )
        matrix = np.full((len(columns),) * 2, np.nan)
        matrix[pairs] = matrix.T[pairs] = values[len(columns) :]
        return matrix


def parameter_frame(names, columns):
    """A row for each parameter, with its name as the index."""
    pandas = import_pandas("such as `estimate` and `std_err`")
    return pandas.DataFrame(columns, index=pandas.Index(names, name="parameter"))


def pair_matrix(values, diagonal):
    """Values of all pairs of variables as a symmetric matrix."""
    d = round((1 + np.sqrt(1 + 8 * len(values))) / 2)
    matrix, pairs = np.full((d, d), diagonal), np.triu_indices(d, 1)
    matrix[pairs] = matrix.T[pairs] = values
    return matrix


def pair_frame(feature_names, matrices):
    """A row for each pair of variables, with their names as the index, from symmetric matrices."""
    pandas = import_pandas("matrices of pairs")
    j, k = np.triu_indices(len(feature_names), 1)
    names = [feature_names[j], feature_names[k]]
    return pandas.DataFrame(
        {name: matrix[j, k] for name, matrix in matrices.items()},
        index=pandas.MultiIndex.from_arrays(names, names=["one", "other"]),
    )


def import_pandas(attributes):
    """The package; where it is not installed, an error that says what is there without it."""
    return optional(
        "pandas",
        "to_frame needs pandas, which is not installed: run `pip install pandas`, or use "
        f"the attributes, {attributes}.",
    )
