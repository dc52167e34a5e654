"""The location model: p(x, z) = p(x) Σ_c π_c N(z; a_c + B x, Σ_c), with p(x) a network of pairs.

With the known scores z_o of a row and r = z_o - a_o, each class adds to the log-weight of x

    -½ (r - B_o x)ᵀ P (r - B_o x),  P = Σ_oo⁻¹,

which is quadratic in x. So the categories given numbers are a network of pairs, too: its fields
are greater by B_oᵀ P r, its couplings less by B_oᵀ P B_o.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.model import _incomplete
from sklearn_boltz.networks.model._gauge import column_of_state

# Completions of a row that are enumerated at most; the draws that take their place.
MOST_COMPLETIONS, N_DRAWS = 1024, 200
# Completions of all rows that are in memory at once.
CHUNK = 2**16


class Part(NamedTuple):
    """Rows in which the same scores are known.

    Attributes
    ----------
    rows : ndarray of int
    network : PottsModel
        Of the categories given these scores, but for the fields of each row.
    fields : ndarray of float64 of shape (n_rows, Q)
        What the scores add to the fields.
    constant : ndarray of float64 of shape (n_rows,)
        What they add to the log-weights of all states.
    """

    rows: np.ndarray
    network: object
    fields: np.ndarray
    constant: np.ndarray

    def of_row(self, i):
        """The network of a single row."""
        return self.network.like(self.network.coupling, self.network.intercept + self.fields[i])


class LocationModel:
    """Categories and numbers of rows.

    Parameters
    ----------
    network : PottsModel
    gaussians : Gaussians
    """

    def __init__(self, network, gaussians):
        self.network, self.gaussians = network, gaussians
        column = column_of_state(network.n_values)
        self._apart = column[:, None] != column

    def given(self, c, z):
        """Yield the parts of rows with scores z (NaN: not known), given class c."""
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
            yield Part(rows, network, fields[rows], constant[rows])

    # ln of the weights of rows.

    def log_sums(self, codes, z, base):
        """ln Σ_x exp(log_weight(x)) p(z_o | x) over the missing categories of each row."""
        return logsumexp(self.class_log_sums(codes, z, base), axis=1)

    def class_log_sums(self, codes, z, base):
        """The same by each class, (n, n_classes)."""
        found = np.empty((len(codes), self.gaussians.n_classes))
        complete = (codes >= 0).all(axis=1)
        whole = codes[complete]
        found[complete] = self.gaussians.log_densities(
            self.network.one_hot(whole), Scores(z[complete])
        )
        found[complete] += self.network.log_weight(whole)[:, None]
        some = np.flatnonzero(~complete)
        for c in range(found.shape[1]) if len(some) else ():
            for part in self.given(c, z[some]):
                found[some[part.rows], c] = self._sums(part, codes[some[part.rows]], base)
        return found

    def _sums(self, part, codes, base):
        result = part.constant + part.network.log_weight(codes)
        result += (part.network.one_hot(codes) * part.fields).sum(axis=1)
        for rows, groups in _incomplete.parts(part.network, codes):
            if groups is None:
                for i in rows:
                    found = _incomplete.log_sums(part.of_row(i), codes[i : i + 1], base)
                    result[i] = part.constant[i] + found[0]
                continue
            fields = part.network.value_fields(codes[rows]) + part.fields[rows]
            for group in groups:
                result[rows] += part.network.joint(codes[rows], fields, group).log_partition()
        return result

    # Missing cells given the others.

    def shares(self, codes, z, base):
        """The probabilities of the classes given what is observed, (n, n_classes)."""
        if self.gaussians.n_classes == 1:
            return np.ones((len(codes), 1))
        log_sums = self.class_log_sums(codes, z, base)
        return np.exp(log_sums - logsumexp(log_sums, axis=1, keepdims=True))

    def category_probabilities(self, codes, z, base):
        """p(x_j = a | what is observed) of missing categories in the one-hot layout, (n, Q)."""
        shares, total = self.shares(codes, z, base), 0.0
        for c in range(self.gaussians.n_classes):
            p = np.empty((len(codes), self.network.starts[-1]))
            for part in self.given(c, z):
                p[part.rows] = _marginals(part, codes[part.rows])
            total = total + shares[:, [c]] * p
        return total

    def complete(self, codes, z, base, how, n_steps, generator):
        """The missing categories and scores of rows: the most probable ones, or a draw.

        Of the scores, the former are the means given these categories and the most probable class.
        """
        shares = self.shares(codes, z, base)
        classes = shares.argmax(axis=1)
        if how == "sample":
            uniform = generator.random(len(codes)) * shares.sum(axis=1)
            classes = (np.cumsum(shares, axis=1)[:, :-1] <= uniform[:, None]).sum(axis=1)
        codes, z = codes.copy(), z.copy()
        for c in np.unique(classes):
            own = np.flatnonzero(classes == c)
            for part in self.given(c, z[own]):
                rows = own[part.rows]
                codes[rows] = _filled(part, codes[rows], how, n_steps, generator)
            at = self.network.one_hot(codes[own]) @ self.gaussians.slopes.T
            given = self.gaussians.observed(c, Scores(z[own]))
            z[own] = given.sample(at, generator) if how == "sample" else given.means(at)
        return codes, z

    def draw_scores(self, c, codes, z, generator):
        """The unknown scores of rows without missing categories, by class c."""
        at = self.network.one_hot(codes) @ self.gaussians.slopes.T
        return self.gaussians.observed(c, Scores(z)).sample(at, generator)

    def expectation(self, codes, z, base, figures, n_figures):
        """Means of figures given what is observed, (n, n_figures).

        `figures` has codes without gaps, and means and variances of the scores given these.
        """
        found = np.zeros((len(codes), n_figures))
        for rows, states, p, *scores in self.completions(codes, z, base):
            np.add.at(found, rows, p[:, None] * figures(states, *scores))
        return found

    def completions(self, codes, z, base):
        """Yield what rows may have been, with probabilities, and a score's mean and variance.

        Rows with many completions have draws instead, with random numbers that are the same for
        every row.

        Yields
        ------
        rows : ndarray of int
            The row of each completion.
        states : ndarray of int of shape (n, d)
            Codes without gaps.
        p : ndarray of float64 of shape (n,)
            The probability of this completion and class given what is observed.
        means, variances : ndarray of float64 of shape (n, n_scores)
        """
        shares, missing = self.shares(codes, z, base), codes < 0
        sizes = np.where(missing, self.network.n_values.astype(float), 1.0).prod(axis=1)
        n_each = np.where(sizes > MOST_COMPLETIONS, N_DRAWS, sizes)
        batch = np.floor(np.cumsum(n_each) / CHUNK)
        for c in range(shares.shape[1]):
            for rows in np.split(np.arange(len(codes)), np.flatnonzero(np.diff(batch)) + 1):
                many = sizes[rows] > MOST_COMPLETIONS
                found = [self._enumerated(c, codes, z, rows[~many])]
                found += [self._drawn(c, codes, z, row) for row in rows[many]]
                owner, states, p = map(np.concatenate, zip(*found, strict=True))
                at = self.network.one_hot(states) @ self.gaussians.slopes.T
                scores = Scores(z[owner])
                given = self.gaussians.observed(c, scores)
                variances = np.diagonal(given.spreads, axis1=1, axis2=2)[scores.which]
                yield owner, states, p * shares[owner, c], given.means(at), variances

    def _enumerated(self, c, codes, z, rows):
        if not len(rows):
            return rows, codes[:0], np.zeros(0)
        states, owner, n_each = all_completions(codes[rows], codes[rows] < 0, self.network.n_values)
        place = np.repeat(owner, n_each)
        log_p = self.network.log_weight(states)
        x = self.network.one_hot(states)
        known = Scores(z[rows][place])
        given = self.gaussians.observed(c, known)
        log_p += given.log_constant - 0.5 * given.distance(x @ self.gaussians.slopes.T)
        first = np.cumsum(n_each) - n_each
        p = np.exp(log_p - np.repeat(np.maximum.reduceat(log_p, first), n_each))
        return rows[place], states, p / np.repeat(np.add.reduceat(p, first), n_each)

    def _drawn(self, c, codes, z, row):
        generator = np.random.default_rng(_incomplete.SEED)
        (part,) = self.given(c, z[[row]])
        model, tiled = part.of_row(0), np.tile(codes[row], (N_DRAWS, 1))
        states = _incomplete.impute(model, tiled, "sample", _incomplete.N_STEPS, generator)
        return np.full(N_DRAWS, row), states.astype(np.int64), np.full(N_DRAWS, 1 / N_DRAWS)


def _marginals(part, codes):
    """p(x_j = a | the observed) in the one-hot layout, by one class."""
    network, result = part.network, np.empty(part.fields.shape)
    for rows, groups in _incomplete.parts(network, codes):
        if groups is None:
            for i in rows:
                log_p = _incomplete.log_conditionals(part.of_row(i), codes[i : i + 1])
                result[i] = np.exp(log_p[0])
            continue
        fields = network.value_fields(codes[rows]) + part.fields[rows]
        for group in groups:
            joint = network.joint(codes[rows], fields, group)
            for place, j in enumerate(joint.columns):
                fields[:, network.starts[j] : network.starts[j + 1]] = joint.log_marginal(place)
        result[rows] = np.exp(network.log_softmax(fields))
    return result


def _filled(part, codes, how, n_steps, generator):
    """Codes of rows without gaps."""
    filled, network = codes.copy(), part.network
    for rows, groups in _incomplete.parts(network, codes):
        if groups is None:
            for i in rows:
                args = codes[i : i + 1], how, n_steps, generator
                filled[i] = _incomplete.impute(part.of_row(i), *args)[0]
            continue
        fields = network.value_fields(codes[rows]) + part.fields[rows]
        for group in groups:
            joint = network.joint(codes[rows], fields, group)
            filled[np.ix_(rows, group)] = joint.reduced(how, generator, np.arange(len(rows)))
    return filled
