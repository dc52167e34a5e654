"""Exact quantities of a sparse log-linear model, from its terms alone.

There is no table of all states. Variables that no chain of terms connects are independent, so
the distribution is a product of factors. What needs every state of a factor goes through them in
blocks: for given values of the slow variables of the layout, the terms become coefficients of
the fast ones, and one small transform gives the log-weights of the block.
"""

import math
from functools import cached_property

import numpy as np

from sklearn_boltz._completion import all_completions, patterns
from sklearn_boltz.loglinear._basis import StateSpace

# States in a block: a transform of it stays in the cache.
BLOCK = 2**17
# Entries of a temporary array of rows by terms, or of rows by states.
CHUNK = 2**22
# Rows with so few completions are completed, so many at once.
FEW, ROWS = 64, 2**12


class LogLinearModel:
    """p(x) = exp(Σ_y θ_y Φ_y(x)) / Z over a few terms y.

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
        # The index of the empty product may be among the terms of a user: it is a constant.
        self._adjacent = adjacent_variables(basis)
        self.groups = components(self._adjacent)

    def factors(self):
        """Yield (variables, Factor) for each set of variables that terms connect."""
        for variables in self.groups:
            touching = self.basis[:, variables].any(axis=1)
            yield (
                variables,
                Factor(
                    self.space.n_values[variables],
                    self.basis[np.ix_(touching, variables)],
                    self.theta[touching],
                ),
            )

    def log_partition(self):
        """ln Z."""
        return sum(factor.log_partition for _, factor in self.factors())

    def log_weight(self, states):
        """Σ_y θ_y Φ_y(x), (n, n_features) -> (n,)."""
        result = np.empty(len(states))
        step = max(1, CHUNK // (len(self.basis) + 1))
        for start in range(0, len(states), step):
            signs = self.space.signs(states[start : start + step], self.basis)
            # Sums each row on its own: BLAS may not give equal rows equal bits.
            result[start : start + step] = np.einsum("nk,k->n", signs, self.theta)
        return result

    def entropy(self):
        """-Σ_x p(x) ln p(x) = ln Z - Σ_y θ_y E[Φ_y]."""
        return float(self.log_partition() - self.theta @ self.expectation(self.basis))

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

    def conditional(self, states, variables):
        """Distribution of some variables given the others of each row.

        Given the others, the unknown variables fall into independent groups.

        Parameters
        ----------
        states : ndarray of int64 of shape (n, n_features)
            What stands in the columns of `variables` is not used.
        variables : ndarray of int
            The unknown variables.

        Yields
        ------
        rows : slice
        group : ndarray of int
            Some of the unknown variables.
        space : StateSpace
            The joint states of the group.
        log_p : ndarray of shape (n_rows, space.size)
            Logarithms of their probabilities.
        """
        for part in self._given_rows(variables):
            for rows, weights in part.weights(states):
                yield rows, part.group, part.space, _log_probabilities(part.log_weights(weights))[0]

    def _given_rows(self, variables):
        """The independent groups of some variables, given all others."""
        if len(variables):
            for places in components(self._adjacent[np.ix_(variables, variables)]):
                yield GivenRows(self, variables[places])

    def log_marginal(self, states, missing):
        """ln Σ_m exp(Σ_y θ_y Φ_y(x)) of each row, the sum over all values of its missing cells.

        Parameters
        ----------
        states : ndarray of int64 of shape (n, n_features)
            What stands where values are missing is not used.
        missing : ndarray of bool of shape (n, n_features)

        Returns
        -------
        log_marginal : ndarray of float64 of shape (n,)
        """
        result = np.empty(len(states))
        n_completions = np.where(missing, self.space.n_values, 1.0).prod(axis=1)
        few, many = np.flatnonzero(n_completions <= FEW), np.flatnonzero(n_completions > FEW)
        for start in range(0, len(few), ROWS):
            rows = few[start : start + ROWS]
            result[rows] = self._log_sums(states[rows], missing[rows])
        if len(many):
            result[many] = self._log_marginal(states[many], missing[many])
        return result

    def _log_sums(self, states, missing):
        """The same by enumeration of all completions: quick for many patterns."""
        completions, owners, counts = all_completions(states, missing, self.space.n_values)
        weights, starts = self.log_weight(completions), np.cumsum(counts) - counts
        peaks = np.maximum.reduceat(weights, starts)
        weights -= np.repeat(peaks, counts)
        result = np.empty(len(states))
        result[owners] = peaks + np.log(np.add.reduceat(np.exp(weights), starts))
        return result

    def _log_marginal(self, states, missing):
        """The same by connected components of what is missing: quick for many missing cells."""
        result = np.empty(len(states))
        for rows, unknown in patterns(missing):
            known = ~self.basis[:, unknown].any(axis=1)
            apart = LogLinearModel(self.space.n_values, self.basis[known], self.theta[known])
            total = apart.log_weight(states[rows])
            for part in self._given_rows(unknown):
                for some, weights in part.weights(states[rows]):
                    total[some] += part.log_sums(weights)
            result[rows] = total
        return result

    def expected_terms(self, states, missing, basis):
        """E[Φ_y(x) | the observed cells] of each row, for each given y.

        Parameters
        ----------
        states : ndarray of int64 of shape (n, n_features)
            What stands where values are missing is not used.
        missing : ndarray of bool of shape (n, n_features)
        basis : ndarray of int64 of shape (k, n_features)

        Returns
        -------
        expectations : ndarray of float64 of shape (n, k)
        """
        result = np.empty((len(states), len(basis)))
        for rows, unknown in patterns(missing):
            known_part = basis.copy()
            known_part[:, unknown] = 0
            signs = self.space.signs(states[rows], known_part).astype(np.float64)
            for part in self._given_rows(unknown):
                touching = np.flatnonzero(basis[:, part.group].any(axis=1))
                wanted = basis[np.ix_(touching, part.group)]
                for some, weights in part.weights(states[rows]) if len(touching) else ():
                    signs[some, touching] *= part.moments(weights, wanted)
            result[rows] = signs
        return result

    def log_pseudo_likelihood(self, states):
        """Σ_i ln p(x_i | the others) of each row, (n, n_features) -> (n,)."""
        total = np.zeros(len(states))
        for i in range(states.shape[1]):
            for rows, _, _, log_p in self.conditional(states, np.array([i])):
                own = np.take_along_axis(log_p, states[rows, i, None], axis=1)
                total[rows] += own[:, 0]
        return total

    def log_pseudo_likelihood_of_observed(self, states, missing):
        """Σ_i ln p(x_i | the other observed) over the observed cells of each row, -> (n,)."""
        total = np.zeros(len(states))
        whole = self.log_marginal(states, missing)
        for i in range(states.shape[1]):
            rows = np.flatnonzero(~missing[:, i])
            without = missing[rows].copy()
            without[:, i] = True
            total[rows] += whole[rows] - self.log_marginal(states[rows], without)
        return total

    def column_probabilities(self, states, missing, column):
        """p(x_column | the others) of each row, with missing values summed out.

        Parameters
        ----------
        states : ndarray of int64 of shape (n, n_features)
            What stands in the column, and where values are missing, is not used.
        missing : ndarray of bool of shape (n, n_features)
        column : int

        Returns
        -------
        probabilities : ndarray of float64 of shape (n, n_values[column])
        """
        probabilities = np.empty((len(states), self.space.n_values[column]))
        missing = missing.copy()
        missing[:, column] = True
        for rows, unknown in patterns(missing):
            # Those that no chain of terms connects with the column do not matter.
            unknown = next(
                unknown[places]
                for places in components(self._adjacent[np.ix_(unknown, unknown)])
                if column in unknown[places]
            )
            for part, group, space, log_p in self.conditional(states[rows], unknown):
                p = np.exp(log_p)
                place = int(np.flatnonzero(group == column)[0])
                values = space.decode(np.arange(space.size))[:, place]
                for value in range(probabilities.shape[1]):
                    probabilities[rows[part], value] = p[:, values == value].sum(axis=1)
        return probabilities

    def impute(self, states, missing, how, generator):
        """Values for the missing entries of each row, given the others.

        Parameters
        ----------
        states : ndarray of int64 of shape (n, n_features)
        missing : ndarray of bool of shape (n, n_features)
        how : {"mean", "mode", "sample"}
        generator : numpy.random.Generator

        Returns
        -------
        filled : ndarray of float64 of shape (n, n_features)
        """
        filled = states.astype(np.float64)
        for rows, unknown in patterns(missing):
            for part, group, space, log_p in self.conditional(states[rows], unknown):
                p = np.exp(log_p)
                filled[np.ix_(rows[part], group)] = _reduced(p, space, how, generator)
        return filled


def _reduced(p, space, how, generator):
    """Reduce probabilities of joint states, (n, space.size), to one value for each variable."""
    if how == "mean":
        values = np.arange(space.size)
        return np.column_stack(
            [
                p @ (values // stride % m)
                for stride, m in zip(space.strides, space.n_values, strict=True)
            ]
        )
    if how == "mode":
        return space.decode(p.argmax(axis=1))
    cumulated = np.cumsum(p, axis=1)
    uniform = generator.random(len(p)) * cumulated[:, -1]
    return space.decode((cumulated <= uniform[:, None]).sum(axis=1))


def _log_probabilities(table):
    """In place, log-weights (n, size) -> log-probabilities, and what was subtracted (n, 1)."""
    peaks = table.max(axis=1, keepdims=True)
    table -= peaks
    log_sums = np.log(np.exp(table).sum(axis=1, keepdims=True))
    table -= log_sums
    return table, peaks + log_sums


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
        step = max(1, CHUNK // max(self.space.size, len(self._theta)))
        for start in range(0, len(states), step):
            rows = slice(start, min(start + step, len(states)))
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
        return _log_probabilities(self.log_weights(weights))[1][:, 0]

    def moments(self, weights, basis):
        """Expectations of functions of these variables, (n_rows, len(basis))."""
        if self.space.size > CHUNK:
            return np.array([factor.expectation(basis) for factor in self._factors(weights)])
        p = np.exp(_log_probabilities(self.log_weights(weights))[0])
        self.space.analyze(p)
        return p[:, self.space.encode(basis)]

    def _factors(self, weights):
        return (Factor(self.space.n_values, self._own_part, theta) for theta in weights)


class Factor:
    """A log-linear model whose variables are all connected.

    Parameters
    ----------
    n_values : ndarray of int64 of shape (n_features,)
    basis : ndarray of int64 of shape (n_basis, n_features)
        The terms.
    theta : ndarray of float64 of shape (n_basis,)
        Their weights.
    """

    def __init__(self, n_values, basis, theta):
        self.space = space = StateSpace(n_values)
        self.basis, self.theta = basis, theta
        self._outer, self._inner = outer, inner = space.split_layout(BLOCK)
        self._block_space = StateSpace(space.n_values[inner])
        # The terms, each as a term of the fast variables with a sign from the slow ones.
        self._inner_codes = space.encode(basis) % self._block_space.size
        self._n_blocks = space.size // self._block_space.size

        self._slow_part = np.zeros_like(basis)
        self._slow_part[:, outer] = basis[:, outer]

    @cached_property
    def log_partition(self):
        """ln Z, from all states."""
        total = -math.inf
        for block in range(self._n_blocks):
            weights = self._log_weights(block)
            peak = weights.max()
            weights -= peak
            total = np.logaddexp(total, peak + math.log(np.exp(weights, out=weights).sum()))
        return float(total)

    def _outer_states(self, blocks):
        return self.space.decode(np.asarray(blocks) * self._block_space.size)

    def _log_weights(self, block):
        """Σ_y θ_y Φ_y(x) for the states of one block."""
        signs = self.space.signs(self._outer_states([block]), self._slow_part)[0]
        table = np.zeros(self._block_space.size)
        np.add.at(table, self._inner_codes, self.theta * signs)
        self._block_space.synthesize(table)
        return table

    def _probabilities(self):
        """Yield (number of the block, probabilities of its states)."""
        for block in range(self._n_blocks):
            weights = self._log_weights(block)
            weights -= self.log_partition
            yield block, np.exp(weights, out=weights)

    def expectation(self, basis):
        """E[Φ_y] for each given y, (k, n_features) -> (k,)."""
        codes = self.space.encode(basis) % self._block_space.size
        slow_part = np.zeros_like(basis)
        slow_part[:, self._outer] = basis[:, self._outer]
        moments = np.zeros(len(basis))
        for block, table in self._probabilities():
            self._block_space.analyze(table)
            moments += self.space.signs(self._outer_states([block]), slow_part)[0] * table[codes]
        return moments

    def marginal(self, variables):
        """Joint probabilities of some variables, an array with one axis for each."""
        kept_outer = [i for i in self._outer if i in variables]
        kept_inner = [i for i in self._inner if i in variables]
        fast = math.prod(self.space.shape(kept_inner))
        shape, axes = _merged_axes(
            self.space.shape(self._inner), [i in variables for i in self._inner]
        )
        slow = StateSpace(self.space.n_values[kept_outer]) if kept_outer else None
        table = np.zeros((slow.size if slow else 1, fast))
        for block, probabilities in self._probabilities():
            states = self._outer_states([block])[:, kept_outer]
            row = np.ravel_multi_index(states[0], self.space.shape(kept_outer)) if slow else 0
            table[row] += probabilities.reshape(shape).sum(axis=axes).ravel()
        in_layout = kept_outer + kept_inner
        table = table.reshape(self.space.shape(in_layout))
        return table.transpose([in_layout.index(i) for i in variables])

    def sample(self, n_samples, generator):
        """Independent exact samples, -> (n_samples, n_features) int64."""
        mass = np.array([table.sum() for _, table in self._probabilities()])
        counts = generator.multinomial(n_samples, mass / mass.sum())
        codes = []
        for block in np.flatnonzero(counts):
            cumulated = np.cumsum(np.exp(self._log_weights(block) - self.log_partition))
            uniform = generator.random(counts[block]) * cumulated[-1]
            within = np.searchsorted(cumulated, uniform, side="right")
            codes.append(block * self._block_space.size + within)
        # Block by block is not an exchangeable order.
        return self.space.decode(generator.permutation(np.concatenate(codes)))


def _merged_axes(shape, kept):
    """Merge neighbouring axes that are all kept, or all summed: sums over long axes are fast.

    Returns
    -------
    shape : list of int
    axes : tuple of int
        The axes to sum over.
    """
    merged, keep = [], []
    for m, k in zip(shape, kept, strict=True):
        if keep and keep[-1] == k:
            merged[-1] *= m
        else:
            merged.append(m)
            keep.append(k)
    return merged, tuple(axis for axis, k in enumerate(keep) if not k)


def adjacent_variables(basis):
    """Which variables a term connects, as a matrix of bool; each with itself."""
    support = (basis != 0).astype(np.float32)
    return (support.T @ support > 0) | np.eye(basis.shape[1], dtype=bool)


def components(adjacent):
    """Sets of variables that terms connect, as a list of index arrays."""
    found, left = [], np.ones(len(adjacent), dtype=bool)
    while left.any():
        group = np.zeros(len(adjacent), dtype=bool)
        newest = np.flatnonzero(left)[:1]
        while len(newest):
            group[newest] = True
            newest = np.flatnonzero(adjacent[newest].any(axis=0) & ~group)
        left &= ~group
        found.append(np.flatnonzero(group))
    return found
