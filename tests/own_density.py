"""The example of "To add an estimator" in the developer guide."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._discrete import DiscreteDensity
from sklearn_boltz._methods import unchanged_on_error
from sklearn_boltz.loglinear._basis import StateSpace, distribution_of
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.tables._kinds import Need
from sklearn_boltz.tables._unseen import Unseen
from sklearn_boltz.tables._weights import checked_weights, row_weights


class IndependentDensity(DiscreteDensity):
    """Columns that are independent of each other."""

    _need = Need(codes=True, bins=True)  # integers 0, 1, ... are codes; other numbers get bins

    def __init__(self, *, columns="auto", unseen="smooth"):
        self.columns, self.unseen = columns, unseen

    def fit(self, X, y=None, sample_weight=None):
        with unchanged_on_error(self):
            sample_weight = row_weights(sample_weight, tell=True)
            cells = self._validate(X, reset=True, allow_nan=True, sample_weight=sample_weight)
            self.n_values_ = self._numbers_of_values(cells)
            codes, weights = self._rows_of(X, cells), checked_weights(sample_weight, cells)
            self.n_values_ = np.where(self._empty_columns(codes), 1, self.n_values_)
            basis, theta = [], []
            for j, n in enumerate(self.n_values_):
                known = codes[:, j] >= 0
                moments = np.ones(n) + np.bincount(codes[known, j], weights[known], n)
                moments /= moments.sum()
                StateSpace([n]).analyze(moments)  # in place: means of the ±1 terms of the column
                theta.append(distribution_of(moments)[1][1:])
                basis.append(np.outer(np.arange(1, n), np.arange(len(self.n_values_)) == j))
            self.basis_, self.theta_ = np.concatenate(basis), np.concatenate(theta)
            self._n_features_out = len(self.theta_)
            unseen = Unseen.learn(codes, weights, self._encoder.n_open_values(self.n_values_))
            self._encoder = self._encoder.of_model(None, unseen)
        return self

    def transform(self, X):
        check_is_fitted(self)
        cells = self._known_cells(X)
        terms = self._model().expected_terms(self._rows_of(X, cells), self.basis_)
        return terms.astype(np.result_type(cells, np.float32), copy=False)

    def _model(self):
        return LogLinearModel(self.n_values_, self.basis_, self.theta_)

    def _parameters(self):
        return [self.n_values_, self.basis_, self.theta_]
