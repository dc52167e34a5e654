"""All completions of the missing categories of rows, with the classes of their scores."""

from functools import cached_property

import numpy as np

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._gaussians import Scores

# Completions of a row that are enumerated here at most, and those of all rows at once.
MOST_COMPLETIONS, CHUNK = 1024, 2**16


class Cloud:
    """The completions of some rows, those of each row one after another.

    Parameters
    ----------
    model : LocationModel
    rows : ndarray of int
    codes : ndarray of int of shape (n_rows, d)
        Of these rows.
    z : ndarray of float64 of shape (n_rows, n_scores)

    Attributes
    ----------
    states : ndarray of int64 of shape (n, d)
    first : ndarray of int of shape (n_rows,)
        The first completion of each row.
    log_sums : ndarray of float64 of shape (n_rows,)
        ln of the summed weights of a row's completions.
    p : ndarray of float64 of shape (n, n_classes)
        The probabilities of completions and classes given what is observed.
    """

    def __init__(self, model, rows, codes, z):
        states, order, n_each = all_completions(codes, codes < 0, model.network.n_values)
        self.rows, self.states = rows[order], states.astype(np.int64)
        self.first = np.cumsum(n_each) - n_each
        self._owner = np.repeat(np.arange(len(order)), n_each)
        x, gaussians = model.network.one_hot(self.states), model.gaussians
        self._at, self._scores = x @ gaussians.slopes.T, Scores(z[order]).take(self._owner)
        self._observed = [gaussians.observed(c, self._scores) for c in range(gaussians.n_classes)]
        log_p = np.column_stack([given.log_densities(self._at) for given in self._observed])
        log_p += model.network.log_weight(self.states)[:, None]
        peaks = np.maximum.reduceat(log_p.max(axis=1), self.first)
        p = np.exp(log_p - peaks[self._owner, None])
        sums = np.add.reduceat(p.sum(axis=1), self.first)
        self.p, self.log_sums = p / sums[self._owner, None], peaks + np.log(sums)

    @cached_property
    def _of_states(self):
        return self.p.sum(axis=1)

    def category_probabilities(self, starts):
        """p(x_j = a | what is observed) in the one-hot layout, (n_rows, Q)."""
        found = np.zeros((len(self.rows), starts[-1]))
        for j, codes in enumerate(self.states.T):
            np.add.at(found, (self._owner, starts[j] + codes), self._of_states)
        return found

    def chosen(self, how, generator):
        """The most probable completion of each row and its class, or a draw of both."""
        p, n_classes = self.p, self.p.shape[1]
        if how == "sample":
            up_to = np.cumsum(p.ravel())
            starts = up_to[self.first * n_classes] - p[self.first, 0]
            ends = up_to[np.append(self.first[1:], len(p)) * n_classes - 1]
            level = starts + generator.random(len(starts)) * (ends - starts)
            place = np.searchsorted(up_to, level, side="right")
            last = np.append(self.first[1:], len(p)) * n_classes - 1
            states, classes = np.divmod(np.clip(place, self.first * n_classes, last), n_classes)
            return self.states[states], classes
        order = np.lexsort((-self._of_states, self._owner))
        states = order[self.first]
        return self.states[states], p[states].argmax(axis=1)

    def moments(self, c):
        """Means and variances of the scores given completions and a class."""
        return self._observed[c].means(self._at), self._observed[c].variances


def clouds(model, codes, z):
    """A generator of clouds, and the rows with too many completions.

    Parameters
    ----------
    model : LocationModel
    codes : ndarray of int of shape (n, d)
    z : ndarray of float64 of shape (n, n_scores)

    Returns
    -------
    parts : iterator of Cloud
    rest : ndarray of int
    """
    sizes = np.where(codes < 0, model.network.n_values.astype(float), 1.0).prod(axis=1)
    few, rest = np.flatnonzero(sizes <= MOST_COMPLETIONS), np.flatnonzero(sizes > MOST_COMPLETIONS)
    batch = np.floor(np.cumsum(sizes[few]) / CHUNK)
    chunks = np.split(few, np.flatnonzero(np.diff(batch)) + 1) if len(few) else []
    return (Cloud(model, rows, codes[rows], z[rows]) for rows in chunks), rest
