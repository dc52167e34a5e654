"""The location model: p(x, z) = p(x) Σ_c π_c N(z; a_c + B x, Σ_c), with p(x) a pairwise network.

With the known scores z_o of a row and r = z_o - a_o, each class adds to the log-weight of x

    -½ (r - B_o x)ᵀ P (r - B_o x),  P = Σ_oo⁻¹,

which is quadratic in x. So the categories given numbers are a pairwise network, too: its fields
are greater by B_oᵀ P r, its couplings less by B_oᵀ P B_o.

Rows with missing categories are sums over completions, with the classes of their scores. Where
these are many, draws take their place: from the network of the categories given the known scores by
the class that suits the row best. They are weighted by what all classes say.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._fit import n_completions
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.model import _incomplete
from sklearn_boltz.networks.model._gauge import column_of_state
from sklearn_boltz.networks.model._incomplete import SEED, Joint
from sklearn_boltz.networks.sampling._sampling import gibbs_complete

# Completions of a row that are enumerated at most, and those of all rows at once.
MOST_COMPLETIONS, CHUNK = 1024, 2**14
# Draws that take their place, and the sweeps that lead to each.
N_DRAWS, N_STEPS = 200, 50


@dataclass(eq=False)
class MixedRows:
    """Rows of codes and normal scores.

    Attributes
    ----------
    codes : ndarray of int of shape (n, d)
        -1 for a missing category.
    scores : ndarray of float64
        As `Scores` takes them: NaN for one that is not known.
    log_slopes : ndarray of float64 of shape (n, n_scores)
        ln T', 0 where there is no score.
    """

    codes: np.ndarray
    scores: np.ndarray
    log_slopes: np.ndarray

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, which):
        return MixedRows(self.codes[which], self.scores[which], self.log_slopes[which])


class LocationModel:
    """The distribution of categories and numbers, of `MixedRows`.

    Parameters
    ----------
    network : PottsModel
    gaussians : Gaussians
    scored : ndarray of int of shape (n_scores,)
        The columns of the scores.
    """

    def __init__(self, network, gaussians, scored):
        self.network, self.gaussians, self.scored = network, gaussians, scored
        column = column_of_state(network.n_values)
        self._apart = column[:, None] != column

    # The whole distribution.

    def is_enumerable(self):
        """Whether connected categories have few enough joint states."""
        return self.network.is_enumerable()

    def log_partition(self):
        """ln Z, that of the categories: the densities of scores are normalised."""
        return self.network.log_partition()

    def marginal(self, columns):
        """Joint probabilities of the categories of some columns."""
        return self.network.marginal(columns)

    def entropy(self):
        """Refuse: that of numbers depends on their units."""
        raise ValueError(
            "`entropy` needs columns with finitely many values, and some numbers have normal "
            "scores. Minus the mean of score_samples over many rows of `sample` estimates it."
        )

    def tempered(self, temperature):
        """The model itself: it has no other temperature than 1."""
        if temperature == 1:
            return self
        raise ValueError(
            f"temperature={temperature:g} is for tables without numbers that have normal scores. "
            "Leave it at 1."
        )

    def sample(self, n_samples, generator, n_steps=1000, row=None, draw=None):
        """Draw codes and scores, given what is known in a single `row`.

        `draw` is a function from a network and a number to codes; by default `sample` of that.
        """
        if row is None:
            unknown = np.full((1, len(self.scored)), np.nan)
            row = MixedRows(np.full((1, len(self.network.n_values)), -1), unknown, 0 * unknown)
        draw = draw or (lambda network, n: network.sample(n, generator, n_steps))
        known, found = row.codes[0] >= 0, []
        shares = np.exp(self.gaussians.log_weights)
        if not np.isnan(row.scores).all():
            (cloud,) = self._clouds(row)
            shares = cloud.p.sum(axis=0)
        n_each = generator.multinomial(n_samples, shares / shares.sum())
        for c in np.flatnonzero(n_each):
            rows = row[np.zeros(n_each[c], dtype=np.intp)]
            ((_, network, fields, _),) = self.given(c, row.scores)
            network = network.in_field(fields[0])
            network = network.given(np.flatnonzero(known), row.codes[0, known])
            rows.codes[:, ~known] = draw(network, int(n_each[c]))
            found.append((rows.codes, self._scores_given(c, rows, "sample", generator)))
        order = generator.permutation(n_samples)
        return tuple(np.concatenate(parts)[order] for parts in zip(*found, strict=True))

    # Rows, complete or not.

    def given(self, c, z):
        """Distribution of the categories given scores z (NaN: not known) and class c.

        Yield the rows in which the same scores are known; the `PottsModel` of the categories given
        these, except for the fields of each row; the contribution of the scores to the fields,
        (n_rows, Q); and that to the log-weights of all states, (n_rows,).
        """
        z = Scores(z)
        observed = self.gaussians.observed(c, z)
        residuals, slopes = observed.residuals(0.0), self.gaussians.slopes
        weighed = observed.weighed(residuals)
        constant = observed.log_constant - 0.5 * (residuals * weighed).sum(axis=1)
        fields = weighed @ slopes
        for pattern, precision in enumerate(observed.precisions):
            rows = np.flatnonzero(z.which == pattern)
            quadratic = slopes.T @ precision @ slopes
            network = self.network.like(
                self.network.coupling - np.where(self._apart, quadratic, 0.0),
                self.network.intercept - 0.5 * quadratic.diagonal(),
            )
            yield rows, network, fields[rows], constant[rows]

    def log_sums(self, rows):
        """ln Σ_x exp(log_weight(x)) p(z_o | x) over the missing categories, and ln of all T'."""
        found, is_large = np.empty(len(rows)), self._have_many(rows.codes)
        for cloud in enumerated(self, rows, ~is_large):
            found[cloud.rows] = cloud.log_sums
        large = rows[is_large]
        by_class = np.empty((len(large), self.gaussians.n_classes))
        for c in range(by_class.shape[1]) if len(large) else ():
            for some, *given in self.given(c, large.scores):
                by_class[some, c] = self._sums(large.codes[some], *given)
        found[is_large] = logsumexp(by_class, axis=1)
        return found + rows.log_slopes.sum(axis=1)

    def log_pseudo_likelihood(self, rows):
        """Σ ln p of each observed cell given the others, ln T' of numbers included."""
        whole = self.log_sums(rows)
        others = (self.without(rows, j) for j in range(rows.codes.shape[1]))
        return sum(whole - self.log_sums(other) for other in others)

    def column_probabilities(self, rows, column, *_):
        """p(x_column = a | the other cells) of each row, and errors: none."""
        p = self.category_probabilities(self.without(rows, column))
        return p[:, self.network.places([column])], np.zeros(len(rows))

    def without(self, rows, column):
        """Copies of rows in which the cells of a column are missing."""
        rows = rows[np.arange(len(rows))]
        rows.codes[:, column] = -1 if self.network.n_values[column] > 1 else 0
        own = self.scored == column
        rows.scores[:, own], rows.log_slopes[:, own] = np.nan, 0
        return rows

    def _sums(self, codes, network, fields, constant):
        result = constant + network.log_weight(codes)
        result += (network.one_hot(codes) * fields).sum(axis=1)
        for rows, groups in _incomplete.parts(network, codes):
            if groups is None:
                for i in rows:
                    one = network.in_field(fields[i])
                    result[i] = constant[i] + _incomplete.log_sums(one, codes[i : i + 1])[0]
                continue
            own = network.value_fields(codes[rows]) + fields[rows]
            for group in groups:
                result[rows] += Joint(network, codes[rows], own, group).log_partition()
        return result

    def _have_many(self, codes):
        return n_completions(codes, self.network.n_values) > MOST_COMPLETIONS

    # Missing cells given the others.

    def _clouds(self, rows):
        """The completions of all rows; of those that have many, draws."""
        is_large = self._have_many(rows.codes)
        yield from enumerated(self, rows, ~is_large)
        for row in np.flatnonzero(is_large):
            yield drawn(self, row, rows[[row]])

    def category_probabilities(self, rows):
        """p(x_j = a | what is observed) of missing categories in the one-hot layout, (n, Q)."""
        found = np.zeros((len(rows), self.network.starts[-1]))
        for cloud in self._clouds(rows):
            cloud.add_categories(found, self.network.starts)
        return found

    def complete(self, rows, how, generator, *_):
        """Codes and scores of rows without gaps: means, the most probable ones, or draws.

        The most probable categories have the means of the scores given these and the most probable
        class.
        """
        if how == "mean":
            d, k = rows.codes.shape[1], len(self.scored)
            figures = self.expectation(rows, lambda *of: np.hstack(of[:2]), d + k)
            codes, scores = np.split(figures, [d], axis=1)
            return np.where(rows.codes < 0, codes, rows.codes), scores
        filled, classes = rows[np.arange(len(rows))], np.empty(len(rows), dtype=np.intp)
        for cloud in self._clouds(rows):
            filled.codes[cloud.rows], classes[cloud.rows] = cloud.chosen(how, generator)
        scores = Scores(filled.scores).values
        for c in np.unique(classes):
            own = np.flatnonzero(classes == c)
            scores[own] = self._scores_given(c, filled[own], how, generator)
        return filled.codes, scores

    def _scores_given(self, c, rows, how, generator):
        """The scores of rows without missing categories, by class c: means, or draws."""
        at = self.network.one_hot(rows.codes) @ self.gaussians.slopes.T
        given = self.gaussians.observed(c, Scores(rows.scores))
        return given.sample(at, generator) if how == "sample" else given.means(at)

    def expectation(self, rows, figures, n_figures):
        """Means of figures given what is observed, (n, n_figures).

        `figures` has codes without gaps, and means and variances of the scores given these.
        """
        found = np.zeros((len(rows), n_figures))
        for cloud in self._clouds(rows):
            for c in range(self.gaussians.n_classes):
                values = cloud.p[:, [c]] * figures(cloud.states, *cloud.moments(c))
                found[cloud.rows] += np.add.reduceat(values, cloud.first)
        return found


class Cloud:
    """The completions of some rows, those of each row one after another.

    Parameters
    ----------
    model : LocationModel
    rows : ndarray of int of shape (n_rows,)
    n_each : ndarray of int of shape (n_rows,)
        How many completions each has.
    states : ndarray of int64 of shape (n, d)
    z : ndarray of float64
        The scores of the rows, as `Scores` takes them.
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
        log_p = np.column_stack([given.log_probabilities(self._at) for given in self._observed])
        log_weight = model.network.log_weight(states)[:, None]
        self._log_joint = log_p + log_weight
        if proposal is None:
            log_p += log_weight
        else:
            log_p -= self._observed[proposal].log_densities(self._at)[:, None]
        peaks = np.maximum.reduceat(log_p.max(axis=1), self.first)
        p = np.exp(log_p - peaks[self._owner, None])
        sums = np.add.reduceat(p.sum(axis=1), self.first)
        self.p, self.log_sums = p / sums[self._owner, None], peaks + np.log(sums)

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
        first = self.first * n_classes
        last = np.append(first[1:], self.p.size) - 1
        start = up_to[first] - self.p[self.first, 0]
        level = start + generator.random(len(first)) * (up_to[last] - start)
        place = np.clip(np.searchsorted(up_to, level, side="right"), first, last)
        states, classes = np.divmod(place, n_classes)
        return self.states[states], classes

    def moments(self, c):
        """Means and variances of the scores given completions and a class."""
        return self._observed[c].means(self._at), self._observed[c].variances


def enumerated(model, rows, which):
    """Yield clouds of all completions of some rows, not too many at once."""
    places, n_values = np.flatnonzero(which), model.network.n_values
    codes = rows.codes[places]
    batch = (np.cumsum(np.where(codes < 0, n_values, 1).prod(axis=1)) - 1) // CHUNK
    for some in np.split(places, np.flatnonzero(np.diff(batch)) + 1) if len(places) else ():
        codes = rows.codes[some]
        states, order, n_each = all_completions(codes, codes < 0, n_values)
        own = some[order]
        yield Cloud(model, own, n_each, states.astype(np.int64), rows.scores[own])


def drawn(model, place, row):
    """A cloud of draws for a row, with random numbers that are the same for every one."""
    (codes,), generator = row.codes, np.random.default_rng(SEED)
    found = [one for c in range(model.gaussians.n_classes) for one in model.given(c, row.scores)]
    # How well the scores suit a class, where each missing category is as likely as any other.
    n_values = model.network.n_values
    unknown = np.repeat(codes < 0, n_values)
    x = model.network.one_hot(row.codes).toarray()[0] + unknown / np.repeat(n_values, n_values)
    best = int(np.argmax([constant[0] + x @ fields[0] for _, _, fields, constant in found]))
    _, network, fields, _ = found[best]
    tiled = np.tile(codes, (N_DRAWS, 1))
    chains = gibbs_complete(network.in_field(fields[0]), tiled, N_STEPS, generator)
    states, n_each = chains.codes.astype(np.int64), np.array([N_DRAWS])
    return Cloud(model, np.array([place]), n_each, states, row.scores, best)
