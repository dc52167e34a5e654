"""Some variables of a log-linear model, given all others."""

import numpy as np

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._factor import Factor
from sklearn_boltz.numerics._threads import slices_of_rows

# Entries of a temporary array of rows by terms, or of rows by states; a row with more states than
# that is summed block by block.
CHUNK = 2**22


class GivenRows:
    """Variables that terms connect, given all others, which the rows of a table say.

    Parameters
    ----------
    model : LogLinearModel
    group : ndarray of int
        The variables.

    Attributes
    ----------
    space : StateSpace
        Their joint states.
    """

    def __init__(self, model, group):
        self.group, self.space = group, StateSpace(model.space.n_values[group])
        touching = model.basis[:, group].any(axis=1)
        self._own_part = model.basis[np.ix_(touching, group)]
        self._codes = self.space.encode(self._own_part)
        self._known_part = model.basis[touching]
        self._known_part[:, group] = 0
        self._model, self._theta = model, model.theta[touching]

    def weights(self, states):
        """Yield some rows, and the weights (n_rows, n_terms) that the terms have given these."""
        for rows in slices_of_rows(len(states), max(self.space.size, len(self._theta)), CHUNK):
            signs = self._model.space.signs(states[rows], self._known_part)
            yield rows, self._theta * signs

    def log_weights(self, weights):
        """Log-weights of all joint states, (n_rows, space.size)."""
        table = np.zeros((len(weights), self.space.size))
        for k, code in enumerate(self._codes):
            table[:, code] += weights[:, k]
        self.space.synthesize(table)
        return table

    def log_sums(self, weights):
        """Logarithms of the sums of the weights of all joint states, (n_rows,)."""
        if self.space.size > CHUNK:  # block by block
            return np.array([factor.log_partition for factor in self._factors(weights)])
        return log_probabilities(self.log_weights(weights))[1][:, 0]

    def moments(self, weights, basis):
        """Expectations of functions of these variables, (n_rows, len(basis))."""
        if self.space.size > CHUNK:
            return np.array([factor.expectation(basis) for factor in self._factors(weights)])
        p = np.exp(log_probabilities(self.log_weights(weights))[0])
        self.space.analyze(p)
        return p[:, self.space.encode(basis)]

    def reduced(self, weights, how, generator):
        """One value for each variable, (n_rows, n_variables): see `LogLinearModel.complete`."""
        if self.space.size > CHUNK:
            return np.array([self._reduced(f, how, generator) for f in self._factors(weights)])
        p = np.exp(log_probabilities(self.log_weights(weights))[0])
        if how == "mean":
            values = self.space.decode(np.arange(self.space.size)).T
            return np.column_stack([p @ column for column in values])
        if how == "mode":
            return self.space.decode(p.argmax(axis=1))
        cumulated = np.cumsum(p, axis=1)
        uniform = generator.random(len(p)) * cumulated[:, -1]
        return self.space.decode((cumulated <= uniform[:, None]).sum(axis=1))

    def _reduced(self, factor, how, generator):
        if how == "mode":
            return factor.mode()
        if how == "sample":
            return factor.sample(1, generator)[0]
        tables = [factor.marginal([i]) for i in range(len(self.group))]
        return [table @ np.arange(len(table)) for table in tables]

    def marginal(self, weights, place):
        """Probabilities of the values of one of the variables, (n_rows, n_values)."""
        if self.space.size > CHUNK:
            return np.array([factor.marginal([place]) for factor in self._factors(weights)])
        p = np.exp(log_probabilities(self.log_weights(weights))[0])
        stride, m = int(self.space.strides[place]), int(self.space.n_values[place])
        values = np.arange(self.space.size) // stride % m
        return np.column_stack([p[:, values == value].sum(axis=1) for value in range(m)])

    def _factors(self, weights):
        return (Factor(self.space.n_values, self._own_part, theta) for theta in weights)


def log_probabilities(table):
    """In place, log-weights (n, size) -> log-probabilities, and what was subtracted (n, 1)."""
    peaks = table.max(axis=1, keepdims=True)
    table -= peaks
    log_sums = np.log(np.exp(table).sum(axis=1, keepdims=True))
    table -= log_sums
    return table, peaks + log_sums
