"""What rows may have been: completions of their categories, with the classes of their scores.

Where these are many, draws take their place: from the network of the categories given the known
scores by the class that suits the row best. They are weighted by what all classes say.
"""

from functools import cached_property

import numpy as np

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.model._incomplete import SEED
from sklearn_boltz.networks.sampling._sampling import gibbs_complete

# Completions of a row that are enumerated at most, and those of all rows at once.
MOST_COMPLETIONS, CHUNK = 1024, 2**16
# Draws that take their place, and the sweeps that lead to each.
N_DRAWS, N_STEPS = 200, 50


class Cloud:
    """The completions of some rows, those of each row one after another.

    Parameters
    ----------
    model : LocationModel
    rows : ndarray of int of shape (n_rows,)
    n_each : ndarray of int of shape (n_rows,)
        How many completions each has.
    states : ndarray of int64 of shape (n, d)
    z : ndarray of float64 of shape (n_rows, n_scores)
    proposal : int, default=None
        Of draws, the class that they are from; None for all completions.

    Attributes
    ----------
    first : ndarray of int of shape (n_rows,)
        The first completion of each row.
    p : ndarray of float64 of shape (n, n_classes)
        The probabilities of completions and classes given what is observed.
    log_sums : ndarray of float64 of shape (n_rows,)
        ln of the summed weights of all completions of a row.
    """

    def __init__(self, model, rows, n_each, states, z, proposal=None):
        self.rows, self.states = rows, states
        self.first = np.cumsum(n_each) - n_each
        self._owner = np.repeat(np.arange(len(rows)), n_each)
        gaussians, scores = model.gaussians, Scores(z).take(self._owner)
        self._at = model.network.one_hot(states) @ gaussians.slopes.T
        self._observed = [gaussians.observed(c, scores) for c in range(gaussians.n_classes)]
        log_p = np.column_stack([given.log_densities(self._at) for given in self._observed])
        log_weight = model.network.log_weight(states)[:, None]
        self._log_joint = log_p + log_weight
        log_p += log_weight if proposal is None else -log_p[:, [proposal]]
        peaks = np.maximum.reduceat(log_p.max(axis=1), self.first)
        p = np.exp(log_p - peaks[self._owner, None])
        sums = np.add.reduceat(p.sum(axis=1), self.first)
        self.p, self.log_sums = p / sums[self._owner, None], peaks + np.log(sums)

    @cached_property
    def _last(self):
        return np.append(self.first[1:], len(self.states)) - 1

    def add_categories(self, found, starts):
        """Add p(x_j = a | what is observed) to lines of a table, one-hot."""
        p, rows = self.p.sum(axis=1), self.rows[self._owner]
        for j, codes in enumerate(self.states.T):
            np.add.at(found, (rows, starts[j] + codes), p)

    def chosen(self, how, generator):
        """The most probable completion of each row and its class, or a draw of both."""
        if how != "sample":
            log_p = np.logaddexp.reduce(self._log_joint, axis=1)
            states = np.lexsort((-log_p, self._owner))[self.first]
            return self.states[states], self._log_joint[states].argmax(axis=1)
        n_classes, up_to = self.p.shape[1], np.cumsum(self.p.ravel())
        first, last = self.first * n_classes, (self._last + 1) * n_classes - 1
        start = up_to[first] - self.p[self.first, 0]
        level = start + generator.random(len(first)) * (up_to[last] - start)
        place = np.clip(np.searchsorted(up_to, level, side="right"), first, last)
        states, classes = np.divmod(place, n_classes)
        return self.states[states], classes

    def moments(self, c):
        """Means and variances of the scores given completions and a class."""
        return self._observed[c].means(self._at), self._observed[c].variances


def are_large(n_values, codes):
    """Which rows have too many completions to enumerate."""
    sizes = np.where(codes < 0, n_values.astype(float), 1.0).prod(axis=1)
    return sizes > MOST_COMPLETIONS


def enumerated(model, codes, z, which):
    """Yield clouds of all completions of some rows, not too many at once."""
    rows, n_values = np.flatnonzero(which), model.network.n_values
    sizes = np.where(codes[rows] < 0, n_values, 1).prod(axis=1)
    batch = (np.cumsum(sizes) - 1) // CHUNK
    for some in np.split(rows, np.flatnonzero(np.diff(batch)) + 1) if len(rows) else ():
        states, order, n_each = all_completions(codes[some], codes[some] < 0, n_values)
        yield Cloud(model, some[order], n_each, states.astype(np.int64), z[some[order]])


def drawn(model, row, codes, z):
    """A cloud of draws for a single row, with random numbers that are the same for every row."""
    z, generator = z[None], np.random.default_rng(SEED)
    parts = [part for c in range(model.gaussians.n_classes) for part in model.given(c, z)]
    # How well the scores suit a class, where each missing category is as likely as any other.
    known = np.repeat(codes >= 0, model.network.n_values)
    x = model.network.one_hot(codes[None]).toarray()[0] + ~known / np.repeat(
        model.network.n_values, model.network.n_values
    )
    place = int(np.argmax([part.constant[0] + x @ part.fields[0] for part in parts]))
    tiled = np.tile(codes, (N_DRAWS, 1))
    chains = gibbs_complete(parts[place].of_row(0), tiled, N_STEPS, generator)
    n_each = np.array([N_DRAWS])
    return Cloud(model, np.array([row]), n_each, chains.codes.astype(np.int64), z, place)
