"""An RBM as a pair of layers and a matrix of weights; energies and conditionals, written once."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.extmath import safe_sparse_dot

from sklearn_boltz.numerics._arrays import is_foreign, like, namespace_of, widened, zeros
from sklearn_boltz.numerics._threads import slices_of_rows
from sklearn_boltz.units._bernoulli_arrays import log_partition_sum

# Why there is no pseudo-likelihood.
CONTINUUM = "The pseudo-likelihood needs visible units with finitely many values."
# Cost of a sigmoid and of a random number, in multiplications.
CELL = 25
# Fields of hidden units that are looked at together, where a visible unit takes all of its states.
FIELDS = 2**18


class Model(NamedTuple):
    """p(v, h) ∝ exp(h · W v) w(v) w(h), with the weights w of two layers of units.

    Attributes
    ----------
    weights : ndarray of shape (n_hidden, n_visible)
        Between the columns of the two layers, of which a unit may take several. Or what looks
        like one, `sklearn_boltz.restricted.model._layered.BlockWeights`.
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
    def n_weights(self):
        """Number of weights."""
        if is_foreign(self.weights):
            return len(self.hidden) * len(self.visible)
        return self.weights.size

    @property
    def work(self):
        """Multiplications for a product of one row, including the cost of its random numbers."""
        return self.n_weights + CELL * (len(self.hidden) + len(self.visible))

    @property
    def weights_by_visible(self):
        """Weights of shape (n_visible, n_hidden), row after row; not copied after training."""
        if is_foreign(self.weights):
            return self.weights.T
        return np.ascontiguousarray(self.weights.T)

    def parameters(self):
        """Weights and the parameters of the visible and of the hidden units, not copied."""
        return [self.weights, *(a for units in self[1:] for a in units.parameters().values())]

    def moved(self, convert):
        """The model with its arrays elsewhere."""
        return Model(convert(self.weights), *(units.moved(convert) for units in self[1:]))

    def sides(self):
        """The model itself: of a deep one, its two sides."""
        return self

    def side(self, V):
        """Rows of the visible side for rows of visible units: here they are the same."""
        return V

    def transposed(self):
        """Exchange the roles of the layers."""
        return Model(self.weights.T, self.hidden, self.visible)

    def annealed(self, beta, base):
        """The model at inverse temperature `beta` on the way from independent units.

        Parameters
        ----------
        beta : float
            0 gives independent visible units as in `base`, 1 this model.
        base : UnitType
        """
        return Model(
            self._times(beta),
            self.visible.annealed(beta, base),
            self.hidden.annealed(beta, self.hidden.base()),
        )

    def tempered(self, beta):
        """The model at another temperature, p(v, h)^β up to normalisation."""
        return Model(self._times(beta), self.visible.tempered(beta), self.hidden.tempered(beta))

    def _times(self, beta):
        weights = beta * self.weights
        return weights if is_foreign(weights) else np.asarray(weights, dtype=self.dtype)

    def in_double(self):
        """The model in float64, for exact sums."""
        weights = np.asarray(self.weights, np.float64)
        return Model(weights, self.visible.astype(np.float64), self.hidden.astype(np.float64))

    def ising(self):
        """J and h of the spins of bits, visible and then hidden: p(s) ∝ exp(½ s·Js + h·s)."""
        weights, visible, hidden = self.in_double()
        n = len(visible)
        J = np.zeros((n + len(hidden), n + len(hidden)))
        J[n:, :n], J[:n, n:] = weights / 4, weights.T / 4
        # Bits are (1 + s) / 2.
        return J, np.concatenate([visible.intercept, hidden.intercept]) / 2 + J.sum(axis=1)

    def hidden_field(self, V):
        """Contribution of the visible units to the fields of the hidden ones."""
        if is_foreign(V):
            return V @ self.weights.T
        return safe_sparse_dot(V, self.weights.T, dense_output=True)

    def visible_field(self, H):
        """Contribution of the hidden units to the fields of the visible ones."""
        if is_foreign(H):
            return H @ self.weights
        return safe_sparse_dot(H, self.weights, dense_output=True)

    def mean_hidden(self, V):
        """E[h | v] for each row."""
        return self.hidden.mean(self.hidden_field(V))

    def mean_visible(self, H):
        """E[v | h] for each row."""
        return self.visible.mean(self.visible_field(H))

    def energy(self, V, H):
        """E(v, h) of pairs of rows, in float64."""
        if is_foreign(V):
            interaction = namespace_of(V).sum(widened(self.hidden_field(V) * H), axis=1)
        else:
            interaction = np.einsum("ij,ij->i", self.hidden_field(V), H, dtype=np.float64)
        return -interaction - self.visible.log_weight(V) - self.hidden.log_weight(H)

    def log_sum(self, field):
        """ln Σ_h exp(h · field) w(h) of each row, in float64."""
        return self.hidden.log_partition_sum(field)

    def free_energy(self, V):
        """F(v) = −ln Σ_h exp(−E(v, h)) of rows, in float64."""
        return -self.visible.log_weight(V) - self.log_sum(self.hidden_field(V))


def check_normalisable(model):
    """Raise a ValueError if the weights are too large for units without bounds in both layers.

    With precisions V of those, exp(−v² V / 2 − h² V / 2 + h · W v) has an integral if all singular
    values of the weights are less than 1 in units in which all precisions are 1. All other units
    have bounds, and do not matter.

    Parameters
    ----------
    model : Model
    """
    visible, hidden = model.visible.tail_precision, model.hidden.tail_precision
    columns, rows = np.isfinite(visible), np.isfinite(hidden)
    if not (columns.any() and rows.any()):
        return
    weights = np.asarray(model.weights, np.float64)[np.ix_(rows, columns)]
    weights = weights / np.sqrt(np.outer(hidden[rows], visible[columns]))
    greatest = np.linalg.norm(weights, 2)
    if not greatest < 1:
        raise ValueError(
            "The model has no distribution: both layers have Gaussian units, and the weights "
            "between them are too large for their precisions (the greatest singular value of "
            f"weights / sqrt(precisions) is {greatest:.3g}, and must be less than 1). Use hidden "
            "units with bounds, or smaller weights."
        )


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
        the number of units is an unbiased estimate. None for the exact value.

    Returns
    -------
    log_pseudo_likelihood : ndarray of float64 of shape (n_rows,)
    """
    if not model.visible.is_enumerable:
        raise ValueError(CONTINUUM)
    n_units = model.visible.n_units
    chosen = range(n_units) if features is None else features.T
    if is_foreign(V):
        total = _of_arrays(model, V, chosen)
    elif model.visible.is_binary:
        total = _of_binary_units(model, V, chosen)
    else:
        total = _of_any_units(model, V, features)
    return total if features is None else total * (n_units / features.shape[1])


def log_pseudo_likelihood_by(free_energy, visible, V):
    """Σ_i ln p(v_i | v_−i) over the observed units of each row, from free energies of rows.

    Parameters
    ----------
    free_energy : callable
        From rows to their free energies.
    visible : UnitType
        Of finitely many states.
    V : ndarray of shape (n_rows, n_features)
        NaN in missing cells, if these are summed out in the free energies.

    Returns
    -------
    log_pseudo_likelihood : ndarray of float64 of shape (n_rows,)
    """
    total, firsts = np.zeros(len(V)), np.cumsum(visible.widths) - visible.widths
    missing = np.isnan(V[:, firsts])
    for i, (states, _) in enumerate(visible.unit_states()):
        columns, rows = visible.columns_of(i), np.flatnonzero(~missing[:, i])
        if not len(rows):
            continue
        logs, changed = np.empty((len(rows), len(states))), V[rows]
        for k, state in enumerate(states):
            changed[:, columns] = state
            logs[:, k] = -free_energy(changed)
        shares = visible.state_shares(i, V[rows, columns])
        total[rows] += (shares * logs).sum(axis=1) - logsumexp(logs, axis=1)
    return total


def _of_binary_units(model, V, chosen):
    """The sum over the chosen features, by log-odds."""
    n_rows, columns, field = len(V), model.weights_by_visible, model.hidden_field(V)
    binary = ((V == 0) | (V == 1)).all()
    here = model.log_sum(field)
    total = np.zeros(n_rows)
    for i in chosen:
        value = V[np.arange(n_rows), i]

        def with_value(new, i=i, value=value):
            change = (new - value).astype(model.dtype)
            return model.log_sum(field + change[:, np.newaxis] * columns[i])

        if binary:
            other = with_value(1 - value)
            log_odds = np.where(value == 1, here - other, other - here)
        else:
            log_odds = with_value(np.ones(n_rows)) - with_value(np.zeros(n_rows))
        log_odds += model.visible.intercept[i]
        total += value * log_odds - np.logaddexp(0, log_odds)
    return total


def _of_arrays(model, V, chosen):
    """Compute `_of_binary_units` for arrays of other libraries."""
    xp, columns, field = namespace_of(V), model.weights_by_visible, model.hidden_field(V)
    (n_rows, n_columns), total, flat = V.shape, 0.0, xp.reshape(V, (-1,))
    firsts, biases = np.arange(n_rows) * n_columns, model.visible.intercept
    for i in chosen:
        numbers = like(V, np.broadcast_to(i, n_rows).copy())
        value = xp.take(flat, like(V, firsts + i))
        weights = xp.take(columns, numbers, axis=0)
        rest = field - value[:, None] * weights
        log_odds = model.log_sum(rest + weights)
        log_odds = log_odds - model.log_sum(rest) + xp.take(biases, numbers)
        softplus = log_partition_sum(log_odds[:, None], zeros(log_odds, (1,)))
        total = total + widened(value) * log_odds - softplus
    return total


def _of_any_units(model, V, features):
    """The sum over the chosen units of the log-softmax over their states."""
    field, total, by_visible = model.hidden_field(V), np.zeros(len(V)), model.weights_by_visible
    for i, (states, log_weights) in enumerate(model.visible.unit_states()):
        times = np.ones(len(V)) if features is None else (features == i).sum(axis=1)
        rows = np.flatnonzero(times)
        if not len(rows):
            continue
        columns = model.visible.columns_of(i)
        values = V[rows, columns]
        parts = field[rows], values, by_visible[columns], states
        logs = log_weights + log_sums_of_states(model, *parts)
        found = (model.visible.state_shares(i, values) * logs).sum(axis=1)
        total[rows] += times[rows] * (found - np.logaddexp.reduce(logs, axis=1))
    return total


def log_sums_of_states(model, field, values, weights, states):
    """ln Σ_h exp(h · field) w(h) of each row, with each state of some units in their place.

    Parameters
    ----------
    model : Model
    field : ndarray of shape (n_rows, n_hidden)
        What all visible units add to the fields of the hidden ones.
    values : ndarray of shape (n_rows, width) or None
        Of these units; None if they are not in the fields.
    weights : ndarray of shape (width, n_hidden)
    states : ndarray of shape (n_states, width)

    Returns
    -------
    log_sums : ndarray of float64 of shape (n_rows, n_states)
    """
    others = field if values is None else field - values @ weights
    of_states = states.astype(model.dtype) @ weights
    log_sums = np.empty((len(field), len(states)))
    for rows in slices_of_rows(len(field), of_states.size, FIELDS):
        fields = others[rows, np.newaxis] + of_states
        found = model.log_sum(fields.reshape(-1, fields.shape[-1]))
        log_sums[rows] = found.reshape(-1, len(states))
    return log_sums
