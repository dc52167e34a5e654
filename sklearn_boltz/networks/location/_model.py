"""The location model: p(x, z) = p(x) Σ_c π_c N(z; a_c + B x, Σ_c), with p(x) a network of pairs.

With the known scores z_o of a row and r = z_o - a_o, each class adds to the log-weight of x

    -½ (r - B_o x)ᵀ P (r - B_o x),  P = Σ_oo⁻¹,

which is quadratic in x. So the categories given numbers are a network of pairs, too: its fields
are greater by B_oᵀ P r, its couplings less by B_oᵀ P B_o. Where a row has few completions of its
categories, they are enumerated all the same.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.networks.location._clouds import clouds
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.model import _incomplete
from sklearn_boltz.networks.model._gauge import column_of_state

# Draws of the categories of a row that has too many completions.
N_DRAWS = 100


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

    Rows are codes, (n, d) integers with -1 for a missing category, and scores, (n, n_scores) with
    NaN for one that is not known. `base` are the intercepts of independent columns.

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

    def log_sums(self, codes, z, base):
        """ln Σ_x exp(log_weight(x)) p(z_o | x) over the missing categories of each row."""
        found, (parts, rest) = np.empty(len(codes)), clouds(self, codes, z)
        for cloud in parts:
            found[cloud.rows] = cloud.log_sums
        if len(rest):
            found[rest] = logsumexp(self._class_log_sums(codes[rest], z[rest], base), axis=1)
        return found

    def _class_log_sums(self, codes, z, base):
        """The same by each class, (n, n_classes), without enumeration of all states."""
        found = np.empty((len(codes), self.gaussians.n_classes))
        for c in range(found.shape[1]):
            for part in self.given(c, z):
                found[part.rows, c] = self._sums(part, codes[part.rows], base)
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

    def _class_shares(self, codes, z, base):
        """The probabilities of the classes given what is observed, (n, n_classes)."""
        if self.gaussians.n_classes == 1:
            return np.ones((len(codes), 1))
        log_sums = self._class_log_sums(codes, z, base)
        return np.exp(log_sums - logsumexp(log_sums, axis=1, keepdims=True))

    def class_counts(self, codes, z, base, n, generator):
        """How many of n draws given a row, (1, d) and (1, n_scores), are of each class."""
        shares = np.exp(self.gaussians.log_weights)
        if not np.isnan(z).all():
            shares = self._class_shares(codes, z, base)[0]
        return generator.multinomial(n, shares / shares.sum())

    # Missing cells given the others.

    def category_probabilities(self, codes, z, base):
        """p(x_j = a | what is observed) of missing categories in the one-hot layout, (n, Q)."""
        found, (parts, rest) = (
            np.empty((len(codes), self.network.starts[-1])),
            clouds(self, codes, z),
        )
        for cloud in parts:
            found[cloud.rows] = cloud.category_probabilities(self.network.starts)
        if len(rest):
            codes, z, total = codes[rest], z[rest], 0.0
            shares = self._class_shares(codes, z, base)
            for c in range(self.gaussians.n_classes):
                p = np.empty((len(codes), found.shape[1]))
                for part in self.given(c, z):
                    p[part.rows] = _marginals(part, codes[part.rows])
                total = total + shares[:, [c]] * p
            found[rest] = total
        return found

    def complete(self, codes, z, base, how, n_steps, generator):
        """The missing categories and scores of rows: the most probable ones, or a draw.

        Of the scores, the former are the means given these categories and the most probable class.
        """
        codes, z, classes = codes.copy(), z.copy(), np.empty(len(codes), dtype=np.intp)
        parts, rest = clouds(self, codes, z)
        for cloud in parts:
            codes[cloud.rows], classes[cloud.rows] = cloud.chosen(how, generator)
        if len(rest):
            shares = self._class_shares(codes[rest], z[rest], base)
            classes[rest] = shares.argmax(axis=1)
            if how == "sample":
                uniform = generator.random(len(rest))
                classes[rest] = (np.cumsum(shares, axis=1)[:, :-1] <= uniform[:, None]).sum(axis=1)
            for c in np.unique(classes[rest]):
                own = rest[classes[rest] == c]
                for part in self.given(c, z[own]):
                    rows = own[part.rows]
                    codes[rows] = _filled(part, codes[rows], how, n_steps, generator)
        for c in np.unique(classes):
            own = np.flatnonzero(classes == c)
            z[own] = self.complete_scores(c, codes[own], z[own], how, generator)
        return codes, z

    def complete_scores(self, c, codes, z, how, generator):
        """The unknown scores of rows without missing categories, by class c: means, or draws."""
        at = self.network.one_hot(codes) @ self.gaussians.slopes.T
        given = self.gaussians.observed(c, Scores(z))
        return given.sample(at, generator) if how == "sample" else given.means(at)

    def expectation(self, codes, z, base, figures, n_figures):
        """Means of figures given what is observed, (n, n_figures).

        `figures` has codes without gaps, and means and variances of the scores given these. Rows
        with many completions have draws, with random numbers that are the same for every row.
        """
        found, (parts, rest) = np.zeros((len(codes), n_figures)), clouds(self, codes, z)
        for cloud in parts:
            for c in range(self.gaussians.n_classes):
                values = cloud.p[:, [c]] * figures(cloud.states, *cloud.moments(c))
                found[cloud.rows] += np.add.reduceat(values, cloud.first)
        shares = self._class_shares(codes[rest], z[rest], base) if len(rest) else []
        for row, of_classes in zip(rest, shares, strict=True):
            for c, share in enumerate(of_classes):
                states, moments = self._draws(c, codes[[row]], z[[row]])
                found[row] += share * figures(states, *moments).mean(axis=0)
        return found

    def _draws(self, c, codes, z):
        """Completions of a row by class c, and means and variances of the scores given these."""
        generator = np.random.default_rng(_incomplete.SEED)
        (part,) = self.given(c, z)
        tiled, n_steps = np.tile(codes, (N_DRAWS, 1)), _incomplete.N_STEPS
        states = _incomplete.impute(part.of_row(0), tiled, "sample", n_steps, generator)
        states = states.astype(np.int64)
        at = self.network.one_hot(states) @ self.gaussians.slopes.T
        given = self.gaussians.observed(c, Scores(np.repeat(z, N_DRAWS, axis=0)))
        return states, (given.means(at), given.variances)


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
