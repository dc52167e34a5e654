"""Exact quantities of a sparse log-linear model, from its terms alone.

There is no table of all states. Variables that no chain of terms connects are independent, so
the distribution is a product of factors.
"""

from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._factor import Factor
from sklearn_boltz.loglinear._given import CHUNK, GivenRows, log_probabilities
from sklearn_boltz.missing._completion import all_completions, log_sums, patterns
from sklearn_boltz.numerics._threads import slices_of_rows

# Rows with this few completions are completed, this many at a time.
FEW, ROWS = 64, 2**12


class LogLinearModel:
    """p(x) = exp(Σ_y θ_y Φ_y(x)) / Z over a few terms y.

    Rows are codes, (n, n_features) int64: states of the variables, and -1 for a missing cell.

    Parameters
    ----------
    n_values : ndarray of int64 of shape (n_features,)
    basis : ndarray of int64 of shape (n_basis, n_features)
        The terms.
    theta : ndarray of float64 of shape (n_basis,)
        Their weights.
    """

    def __init__(self, n_values, basis, theta):
        self.space, self.basis, self.theta = StateSpace(n_values), basis, theta

    @cached_property
    def _adjacent(self):
        # The index of the empty product may be among the terms of a user: it is a constant.
        return adjacent_variables(self.basis)

    def factors(self):
        """Yield (variables, Factor) for each set of variables that terms connect."""
        for variables in components(self._adjacent):
            touching = self.basis[:, variables].any(axis=1)
            basis, theta = self.basis[np.ix_(touching, variables)], self.theta[touching]
            yield variables, Factor(self.space.n_values[variables], basis, theta)

    def is_enumerable(self):
        """True: a fit has summed over all states of connected variables."""
        return True

    def log_partition(self):
        """ln Z."""
        return sum(factor.log_partition for _, factor in self.factors())

    def log_weight(self, states):
        """Σ_y θ_y Φ_y(x), (n, n_features) -> (n,)."""
        result = np.empty(len(states))
        for rows in slices_of_rows(len(states), len(self.basis) + 1, CHUNK):
            signs = self.space.signs(states[rows], self.basis)
            # Sums each row on its own: BLAS may not give equal rows equal bits.
            result[rows] = np.einsum("nk,k->n", signs, self.theta)
        return result

    def entropy(self):
        """-Σ_x p(x) ln p(x) = ln Z - Σ_y θ_y E[Φ_y]."""
        return float(self.log_partition() - self.theta @ self.expectation(self.basis))

    def cumulants(self, betas):
        """ln Z_β of p(x)^β / Z_β, and mean and variance of Σ_y θ_y Φ_y, (3, n_betas)."""
        return sum((factor.cumulants(betas) for _, factor in self.factors()), np.zeros((3, 1)))

    def tempered(self, temperature):
        """The model p(x)^(1/T) / Z_T."""
        # Colder than this, the sums would overflow; all mass is at the mode long before.
        coldest = np.abs(self.theta).sum() / 1e300
        theta = self.theta / max(temperature, coldest)
        return LogLinearModel(self.space.n_values, self.basis, theta)

    def given(self, variables, values):
        """The model of the other variables, given the values of some.

        In the result the given variables are independent of the others, and uniform.
        """
        known, state = np.zeros_like(self.basis), np.zeros((1, len(self.space.n_values)), np.int64)
        known[:, variables], state[0, variables] = self.basis[:, variables], values
        theta = self.theta * self.space.signs(state, known)[0]
        return LogLinearModel(self.space.n_values, self.basis - known, theta)

    def expectation(self, basis):
        """E[Φ_y] for each given y, (k, n_features) -> (k,)."""
        moments = np.ones(len(basis))
        for variables, factor in self.factors():
            touching = basis[:, variables].any(axis=1)
            if touching.any():
                moments[touching] *= factor.expectation(basis[np.ix_(touching, variables)])
        return moments

    def marginal(self, features):
        """Joint probabilities of some variables, an array with one axis for each."""
        table, order = np.ones(()), []
        for variables, factor in self.factors():
            kept = [place for place, i in enumerate(variables) if i in features]
            if kept:
                table = np.multiply.outer(table, factor.marginal(kept))
                order.extend(variables[kept])
        return table.transpose([order.index(i) for i in features])

    def sample(self, n_samples, generator):
        """Independent exact samples, -> (n_samples, n_features) int64."""
        states = np.empty((n_samples, len(self.space.n_values)), dtype=np.int64)
        for variables, factor in self.factors():
            states[:, variables] = factor.sample(n_samples, generator)
        return states

    def _given_rows(self, variables):
        """The independent groups of some variables, given all others."""
        if len(variables):
            for places in components(self._adjacent[np.ix_(variables, variables)]):
                yield GivenRows(self, variables[places])

    def log_sums(self, codes):
        """ln Σ exp(log_weight) over the completions of each row, (n,)."""
        missing, result = codes < 0, np.empty(len(codes))
        if not missing.any():
            return self.log_weight(codes)
        n_completions = np.where(missing, self.space.n_values, 1.0).prod(axis=1)
        few, many = np.flatnonzero(n_completions <= FEW), np.flatnonzero(n_completions > FEW)
        # By enumeration of all completions: quick for many patterns.
        for some in slices_of_rows(len(few), 1, ROWS):
            rows = few[some]
            completions, owners, counts = all_completions(
                codes[rows], missing[rows], self.space.n_values
            )
            result[rows[owners]] = log_sums(self.log_weight(completions), counts)
        if len(many):
            result[many] = self._log_sums(codes[many])
        return result

    def _log_sums(self, codes):
        """Compute it by connected components of missing cells: fast where these are many."""
        result = np.empty(len(codes))
        for rows, unknown in patterns(codes < 0):
            known = ~self.basis[:, unknown].any(axis=1)
            apart = LogLinearModel(self.space.n_values, self.basis[known], self.theta[known])
            total = apart.log_weight(codes[rows])
            for part in self._given_rows(unknown):
                for some, weights in part.weights(codes[rows]):
                    total[some] += part.log_sums(weights)
            result[rows] = total
        return result

    def expected_terms(self, codes, basis):
        """E[Φ_y(x) | the observed cells] of each row, for each y of `basis`; (n, k)."""
        result = np.empty((len(codes), len(basis)))
        for rows, unknown in patterns(codes < 0):
            known_part = basis.copy()
            known_part[:, unknown] = 0
            signs = self.space.signs(codes[rows], known_part).astype(np.float64)
            for part in self._given_rows(unknown):
                touching = np.flatnonzero(basis[:, part.group].any(axis=1))
                wanted = basis[np.ix_(touching, part.group)]
                for some, weights in part.weights(codes[rows]) if len(touching) else ():
                    signs[some, touching] *= part.moments(weights, wanted)
            result[rows] = signs
        return result

    def log_pseudo_likelihood(self, codes):
        """Σ_i ln p(x_i | the other observed cells) over the observed cells of each row, (n,)."""
        gaps, total = (codes < 0).any(axis=1), np.zeros(len(codes))
        whole, complete = self.log_sums(codes[gaps]), codes[~gaps]
        for i in range(codes.shape[1]):
            of_complete = np.zeros(len(complete))
            part = GivenRows(self, np.array([i]))
            for rows, weights in part.weights(complete):
                log_p, _ = log_probabilities(part.log_weights(weights))
                of_complete[rows] = np.take_along_axis(log_p, complete[rows, i, None], axis=1)[:, 0]
            total[~gaps] += of_complete
            known = codes[gaps, i] >= 0
            without = codes[gaps][known]
            without[:, i] = -1
            total[np.flatnonzero(gaps)[known]] += whole[known] - self.log_sums(without)
        return total

    def column_probabilities(self, codes, column, n_steps=None, seed=None, bar=None):
        """p(x_column | the others) of each row, with missing values summed out, and errors of 0.

        What stands in the column is not used. The steps of a bar are patterns of missing cells.
        """
        probabilities = np.empty((len(codes), self.space.n_values[column]))
        codes = codes.copy()
        codes[:, column] = -1
        of_patterns = list(patterns(codes < 0))
        for rows, unknown in of_patterns:
            # Those that no chain of terms connects with the column do not matter.
            unknown = next(
                unknown[places]
                for places in components(self._adjacent[np.ix_(unknown, unknown)])
                if column in unknown[places]
            )
            part = GivenRows(self, unknown)
            for some, weights in part.weights(codes[rows]):
                place = int(np.flatnonzero(unknown == column)[0])
                probabilities[rows[some]] = part.marginal(weights, place)
            if bar is not None:
                bar.total = len(of_patterns)
                bar.update()
        return probabilities, np.zeros(len(codes))

    def complete(self, codes, how, generator, *_):
        """Means, modes or draws of the missing cells of each row given the others, as float64."""
        filled = codes.astype(np.float64)
        for rows, unknown in patterns(codes < 0):
            for part in self._given_rows(unknown):
                for some, weights in part.weights(codes[rows]):
                    values = part.reduced(weights, how, generator)
                    filled[np.ix_(rows[some], part.group)] = values
        return filled


def adjacent_variables(basis):
    """Which variables a term connects, as a matrix of bool; each with itself."""
    support = (basis != 0).astype(np.float32)
    return (support.T @ support > 0) | np.eye(basis.shape[1], dtype=bool)


def components(adjacent):
    """Sets of variables that terms connect, as a list of index arrays."""
    n_sets, labels = connected_components(adjacent, directed=False)
    return [np.flatnonzero(labels == k) for k in range(n_sets)]
