"""An RBM as a pair of layers and a matrix of weights; energies and conditionals, written once."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.extmath import safe_sparse_dot


class Model(NamedTuple):
    """p(v, h) ∝ exp(h · W v) w(v) w(h), with the weights w of two layers of units.

    Attributes
    ----------
    weights : ndarray of shape (n_hidden, n_visible)
        Or what looks like one, `sklearn_boltz.restricted.model._layered.BlockWeights`.
    visible, hidden : UnitType
        As described in `sklearn_boltz.units`.
    """

    weights: np.ndarray
    visible: Any
    hidden: Any

    @property
    def dtype(self):
        """Type that the model computes in."""
        return self.weights.dtype

    @property
    def weights_by_visible(self):
        """Weights of shape (n_visible, n_hidden), row after row; not copied after a training."""
        return np.ascontiguousarray(self.weights.T)

    def transposed(self):
        """The same distribution with the roles of the layers exchanged."""
        return Model(self.weights.T, self.hidden, self.visible)

    def fallen(self, beta, base):
        """The model at inverse temperature `beta` on the way from independent units.

        Parameters
        ----------
        beta : float
            0 gives independent visible units as in `base`, 1 this model.
        base : UnitType
        """
        return Model(
            np.asarray(beta * self.weights, dtype=self.dtype),
            self.visible.fallen(beta, base),
            self.hidden.fallen(beta, self.hidden.base()),
        )

    def tempered(self, beta):
        """The model at another temperature, p(v, h)^β but for the normalisation."""
        weights = np.asarray(beta * self.weights, dtype=self.dtype)
        return Model(weights, self.visible.tempered(beta), self.hidden.tempered(beta))

    def in_double(self):
        """The model in float64, for exact sums."""
        weights = np.asarray(self.weights, np.float64)
        return Model(weights, self.visible.astype(np.float64), self.hidden.astype(np.float64))

    def hidden_field(self, V):
        """What the visible units add to the fields of the hidden ones."""
        return safe_sparse_dot(V, self.weights.T, dense_output=True)

    def visible_field(self, H):
        """What the hidden units add to the fields of the visible ones."""
        return safe_sparse_dot(H, self.weights, dense_output=True)

    def mean_hidden(self, V):
        """E[h | v] for each row."""
        return self.hidden.mean(self.hidden_field(V))

    def mean_visible(self, H):
        """E[v | h] for each row."""
        return self.visible.mean(self.visible_field(H))

    def energy(self, V, H):
        """E(v, h) of pairs of rows, in float64."""
        interaction = np.einsum("ij,ij->i", self.hidden_field(V), H, dtype=np.float64)
        return -interaction - self.visible.log_weight(V) - self.hidden.log_weight(H)

    def free_energy(self, V):
        """F(v) = −ln Σ_h exp(−E(v, h)) of rows, in float64."""
        return -self.visible.log_weight(V) - self.hidden.log_partition_sum(self.hidden_field(V))


def log_pseudo_likelihood(model, V, features=None):
    """Σ_i ln p(v_i | v_−i) of each row.

    Giving one unit another value changes the hidden field by a row of the weights: an update
    of rank one for each unit, O(n_features × n_hidden) for each row.

    Parameters
    ----------
    model : Model
        With visible units of finitely many states.
    V : ndarray of shape (n_rows, n_features)
        A value between two states counts as a mixture of them: between 0 and 1, as the
        probability of a 1.
    features : ndarray of int of shape (n_rows, n_chosen), default=None
        Units to look at, drawn with replacement for each row; the mean over them times
        n_features is an unbiased estimate. None for the exact value.

    Returns
    -------
    log_pseudo_likelihood : ndarray of float64 of shape (n_rows,)
    """
    chosen = range(V.shape[1]) if features is None else features.T
    one_feature = _of_binary_units if model.visible.is_binary else _of_any_units
    total = one_feature(model, V, chosen)
    return total if features is None else total * (V.shape[1] / features.shape[1])


def _of_binary_units(model, V, chosen):
    """The sum over the chosen features, by log-odds."""
    n_rows, columns, field = len(V), model.weights_by_visible, model.hidden_field(V)
    binary = ((V == 0) | (V == 1)).all()
    here = model.hidden.log_partition_sum(field)
    total = np.zeros(n_rows)
    for i in chosen:
        value = V[np.arange(n_rows), i]

        def with_value(new, i=i, value=value):
            change = (new - value).astype(model.dtype)
            return model.hidden.log_partition_sum(field + change[:, np.newaxis] * columns[i])

        if binary:
            other = with_value(1 - value)
            log_odds = np.where(value == 1, here - other, other - here)
        else:
            log_odds = with_value(np.ones(n_rows)) - with_value(np.zeros(n_rows))
        log_odds += model.visible.intercept[i]
        total += value * log_odds - np.logaddexp(0, log_odds)
    return total


def _of_any_units(model, V, chosen):
    n_rows, columns, field = len(V), model.weights_by_visible, model.hidden_field(V)
    states, log_weights = model.visible.states(), model.visible.state_log_weights()
    total = np.zeros(n_rows)
    for i in chosen:
        value = V[np.arange(n_rows), i]
        logs = [
            model.hidden.log_partition_sum(
                field + (state - value).astype(model.dtype)[:, np.newaxis] * columns[i]
            )
            for state in states
        ]
        logs = np.column_stack(logs) + log_weights[i]
        total += (mixed_states(states, value) * logs).sum(axis=1) - logsumexp(logs, axis=1)
    return total


def mixed_states(states, values):
    """The shares of the states in each value: one, or two if the value is between them.

    Parameters
    ----------
    states : ndarray of shape (n_states,)
    values : ndarray of shape (n_rows,)

    Returns
    -------
    shares : ndarray of shape (n_rows, n_states)
    """
    order = np.argsort(states)
    corners = np.eye(len(states))
    shares = [np.interp(values, states[order], corners[k][order]) for k in range(len(states))]
    return np.column_stack(shares)
