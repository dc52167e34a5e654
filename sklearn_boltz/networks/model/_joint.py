"""The joint states of the missing cells of rows, given the observed cells."""

from functools import cached_property

import numpy as np

from sklearn_boltz.missing._completion import all_states

# Entries of a temporary array of rows by joint states, and by values.
CHUNK = 2**22
# Joint states from which on sums over them are products of matrices, and draws are searched for.
MANY = 2**9


class Joint:
    """All joint states of some missing columns, for rows that miss the same.

    Parameters
    ----------
    potts : PottsModel
    columns : ndarray of int of shape (k,)
    log_weights : ndarray of shape (n_rows, n_states)
        Not normalised; the last column is the fastest.
    """

    def __init__(self, potts, columns, log_weights):
        self.potts, self.columns, self.log_weights = potts, columns, log_weights
        self.shape = tuple(potts.n_values[columns].tolist())

    @classmethod
    def of(cls, potts, fields, columns):
        """All states, from the fields of the observed cells, (n_rows, Q), intercepts included."""
        return cls(potts, columns, joint_log_weights(potts, fields, columns))

    @cached_property
    def states(self):
        """The states, (n_states, k)."""
        return all_states(self.shape)

    def log_partition(self):
        """ln Σ exp(log_weights) of each row."""
        return log_sum_exp(self.log_weights, axis=1)

    @cached_property
    def log_probabilities(self):
        """ln p of the states given the observed cells."""
        return self.log_weights - self.log_partition()[:, None]

    def log_marginal(self, place):
        """ln p of the values of a column, (n_rows, n_values)."""
        before = int(np.prod(self.shape[:place], dtype=np.int64))
        log_p = self.log_probabilities.reshape(-1, before, self.shape[place], self._after(place))
        return log_sum_exp(log_sum_exp(log_p, axis=3), axis=1)

    def _after(self, place):
        return int(np.prod(self.shape[place + 1 :], dtype=np.int64))

    def reduced(self, how, generator, rows):
        """One value of each column, for rows by their numbers: "mode" or "sample"."""
        if how == "mode":
            found = self.log_weights.argmax(axis=1)[rows]
        else:
            found = self._drawn(generator, rows)
        return np.column_stack(np.unravel_index(found, self.shape))

    def _drawn(self, generator, rows):
        """The number of a state drawn for each of some rows."""
        cumulated = np.cumsum(np.exp(self.log_probabilities), axis=1)
        uniform = generator.random(len(rows)) * cumulated[rows, -1]
        if cumulated.shape[1] < MANY:
            return (cumulated[rows] <= uniform[:, None]).sum(axis=1)
        pairs = zip(rows, uniform, strict=True)
        return np.array([np.searchsorted(cumulated[row], u, side="right") for row, u in pairs])

    def gains(self, codes, observed):
        """What these columns add to the fields of observed ones, themselves summed out.

        ln Σ_s p(s) exp(change), with p given all observed cells, and the change by another value
        of an observed column than that of the row.

        Parameters
        ----------
        codes : ndarray of int of shape (n_rows, d)
        observed : list of int

        Yields
        ------
        values : ndarray of int
            Places in the one-hot layout.
        gain : ndarray of shape (n_rows, n_values)
        """
        if not observed:
            return
        if self.log_weights.shape[1] >= MANY:
            p = np.exp(self.log_probabilities)
            gain = [self._gain_by_product(*row, observed) for row in zip(codes, p, strict=True)]
            if np.isfinite(gain).all():
                yield self.potts.places(observed), np.array(gain)
                return
        step = max(1, int(CHUNK // (self.log_weights.size * self.potts.n_values.max())))
        for start in range(0, len(observed), step):
            part = observed[start : start + step]
            yield self.potts.places(part), self._gain_by_logarithms(codes, part)

    def _gain_by_logarithms(self, codes, observed):
        n_values, values = self.potts.n_values[observed], self.potts.places(observed)
        extra = influence(self.potts, self.columns, self.states, values)
        own = np.repeat(np.cumsum(n_values) - n_values + codes[:, observed], n_values, axis=1)
        change = extra[None] - extra.T[own].transpose(0, 2, 1)
        return log_sum_exp(self.log_probabilities[:, :, None] + change, axis=1)

    def _gain_by_product(self, row, p, observed):
        """Of one row: a change is a sum over these columns, and the sum a product of matrices.

        -inf where nearly nothing is left of a sum, whose digits are lost.
        """
        own, values = self.potts.starts[observed] + row[observed], self.potts.places(observed)
        own, factors, scales = np.repeat(own, self.potts.n_values[observed]), [], 0.0
        for part in halves(self.columns):
            states = all_states(self.potts.n_values[part])
            change = influence(self.potts, part, states, values)
            change -= influence(self.potts, part, states, own)
            peak = change.max(axis=0)
            factors.append(np.exp(change - peak))
            scales = scales + peak
        left, right = factors
        sums = np.einsum("st,st->t", left, p.reshape(len(left), len(right)) @ right)
        return np.where(sums > 1e-200, np.log(np.maximum(sums, 1e-300)) + scales, -np.inf)


def halves(columns):
    """Columns, cut in two."""
    cut = (len(columns) + 1) // 2
    return columns[:cut], columns[cut:]


def joint_log_weights(potts, fields, columns):
    """Logarithms of the weights of all joint states of some columns, (n_rows, n_states)."""
    if len(columns) == 1:
        return fields[:, potts.places(columns)]
    left, right = halves(columns)
    states, values = all_states(potts.n_values[right]), potts.places(right)
    chosen = np.zeros((len(states), len(values)))
    first = np.cumsum(potts.n_values[right]) - potts.n_values[right]
    np.put_along_axis(chosen, states + first, 1.0, axis=1)
    pairs = influence(potts, left, all_states(potts.n_values[left]), values) @ chosen.T
    table = joint_log_weights(potts, fields, left)[:, :, None] + pairs
    table += joint_log_weights(potts, fields, right)[:, None, :]
    return table.reshape(len(fields), -1)


def influence(potts, columns, states, values):
    """What joint states of some columns add to the fields of some values."""
    total = np.zeros((len(states), len(values)))
    for column, own in zip(columns, states.T, strict=True):
        lines = slice(potts.starts[column], potts.starts[column + 1])
        total += potts.coupling[lines][:, values][own]
    return total


def log_sum_exp(values, axis):
    """ln Σ exp along an axis; SciPy's takes longer on small arrays."""
    peak = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - peak).sum(axis=axis)) + peak.squeeze(axis)
