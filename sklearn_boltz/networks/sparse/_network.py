"""The pseudo-likelihood as the sparse solver wants it: joint, or of each column by itself.

Both are sums of regressions, of each column on the others. The features of these are centred, as
rare values are nearly collinear with an intercept otherwise. Jointly the two couplings of a pair
are one parameter; by node (`nodewise`) they are two, and the regressions are separate parts of the
problem. Categorical columns are given by their contrasts, so that every pair of columns has a
block of parameters, whose norm is that of the block of the coupling in the zero-sum gauge; binary
columns have one parameter a pair.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from sklearn_boltz.networks.categorical._block_penalty import ordered_basis
from sklearn_boltz.networks.categorical._contrasts import softmax_information
from sklearn_boltz.networks.model._gauge import column_of_state, state_slices
from sklearn_boltz.networks.training._bslm import evaluate_fields
from sklearn_boltz.networks.training._objective import PseudoLikelihood, parameter_places

# Rows whose features are in the cache together.
BLOCK_ROWS = 1024


class Layout:
    """Where the parameters stand in the vector θ.

    Parameters
    ----------
    column : ndarray of int of shape (D,)
        The column of the table that each equation is one of.
    nodewise : bool
    shift : ndarray of shape (D,)
        The means of the features. θ has the intercepts of centred features.

    Attributes
    ----------
    pairs : ndarray of int of shape (d, d)
        The group of parameters of each pair of columns, and on the diagonal that of the intercepts.
    places : ndarray of int of shape (D, D)
        The parameter with which s enters the equation r, and on the diagonal the intercept;
        `n_parameters` where there is none.
    groups : ndarray of int of shape (n_parameters,)
        The group of each parameter, in increasing order.
    parts : ndarray of int of shape (n_groups,)
        The part of the problem that each group belongs to, in increasing order.
    """

    def __init__(self, column, nodewise, shift):
        d = int(column[-1]) + 1
        self.column, self.nodewise, self.shift = column, nodewise, shift
        each = np.arange(d * d)
        self.pairs = each.reshape(d, d) if nodewise else parameter_places(d, np.triu_indices(d, 1))
        self.n_groups = int(self.pairs.max()) + 1
        self.parts = each // d if nodewise else np.zeros(self.n_groups, dtype=int)
        self.n_parts = d if nodewise else 1
        self._part_starts = np.searchsorted(self.parts, np.arange(self.n_parts))
        self.part_of_column = np.arange(d) if nodewise else np.zeros(d, dtype=int)
        used = (column[:, None] != column) | np.eye(len(column), dtype=bool)
        r, s = np.nonzero(used if nodewise else np.triu(used))
        groups = self.pairs[column[r], column[s]]
        order = np.argsort(groups, kind="stable")
        r, s, self.groups = r[order], s[order], groups[order]
        self.n_parameters = len(r)
        self.places = np.full((len(column),) * 2, self.n_parameters)
        self.places[r, s] = np.arange(self.n_parameters)
        if not nodewise:
            self.places[s, r] = self.places[r, s]
        self.part_of_parameter = self.parts[self.groups]

    def vector(self, coupling, intercept):
        """θ of a matrix of shape (D, D), whose rows are equations, and a vector of shape (D,)."""
        theta = np.empty(self.n_parameters + 1)
        theta[self.places] = coupling
        theta[self.places.diagonal()] = intercept + coupling @ self.shift
        return theta[:-1]

    def centred(self, theta):
        """The coupling of shape (D, D), and the intercept with centred features."""
        coupling = np.append(theta, 0.0)[self.places]
        intercept = coupling.diagonal().copy()
        np.fill_diagonal(coupling, 0)
        return coupling, intercept

    def matrices(self, theta):
        """The coupling of shape (D, D) and the intercept of shape (D,)."""
        coupling, intercept = self.centred(theta)
        return coupling, intercept - coupling @ self.shift

    def gradient(self, slopes):
        """The derivatives by θ, of those by the entries of the matrix: two may be one parameter."""
        return np.bincount(self.places.ravel(), slopes.ravel(), self.n_parameters + 1)[:-1]

    def parameters(self, groups):
        """The parameters of some groups, in increasing order."""
        if self.n_groups == self.n_parameters:
            return groups
        chosen = np.zeros(self.n_groups, dtype=bool)
        chosen[groups] = True
        return np.flatnonzero(chosen[self.groups])

    def largest_of_part(self, values):
        """The largest value of the groups of each part."""
        return np.maximum.reduceat(values, self._part_starts)

    def largest_move(self, step):
        """By how much a step moves any field of each part, at most."""
        rows = np.append(np.abs(step), 0.0)[self.places].sum(axis=1)
        moves = np.zeros(self.n_parts)
        np.maximum.at(moves, self.part_of_column[self.column], rows)
        return moves

    def by_part(self, values, parts):
        """Sums over each part."""
        return np.bincount(parts, values, self.n_parts)


class State(NamedTuple):
    """Parameters, and what the network knows there.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,)
    losses : ndarray of shape (d,)
        Minus the mean over the rows of ln p(x_j | others), of each column.
    means : list of ndarray
        Of each column: the conditional mean of its spin, of shape (n,), or the probabilities of its
        states, of shape (q, n).
    """

    theta: np.ndarray
    losses: np.ndarray
    means: list

    def changed(self, nodes, theta, losses, means):
        """That at another θ, which changes the losses and means of some columns."""
        whole, every = self.losses.copy(), list(self.means)
        whole[nodes] = losses
        for node, mean in zip(nodes, means, strict=True):
            every[node] = mean
        return State(theta, whole, every)


class SpinNetwork:
    """Network of binary columns.

    Parameters
    ----------
    problem : PseudoLikelihood
        Its penalty is not looked at.
    nodewise : bool
        Whether each column has couplings of its own.
    """

    is_categorical = False

    def __init__(self, problem, nodewise):
        self.problem, self.total = problem, problem.total
        d = len(problem.means)
        self.layout = Layout(np.arange(d), nodewise, problem.means / self.total)
        self.n_columns, self.n_values, self.sizes = d, np.full(d, 2), np.ones(d)
        self.is_bent = np.zeros(self.layout.n_parameters + 1, dtype=bool)
        observed = np.ones_like(problem.spins) if problem.observed is None else problem.observed
        self._n_known = observed @ problem.weights
        self._features = problem.spins - self.layout.shift[:, None]
        self._features32 = self._features.astype(np.float32)
        self._moments = problem.moments - np.outer(problem.means, self.layout.shift)
        rates = problem.means / np.maximum(self._n_known, 1e-300)
        self.spread = np.sqrt(np.maximum(1 - rates**2, 0))

    def theta(self, theta):
        """θ of the network from that of the problem."""
        return self.layout.vector(*self.problem.unpack(theta))

    def of_problem(self, coupling, intercept):
        """θ of the problem, from a symmetric coupling and an intercept."""
        return self.problem.pack(coupling, intercept)

    def at(self, theta, nodes=None, old=None):
        """Evaluate the losses; those of `nodes` only, if the others are as in `old`."""
        problem = self.problem
        coupling, intercept = self.layout.centred(theta)
        nodes = np.arange(self.n_columns) if nodes is None else nodes
        fields = coupling[nodes] @ self._features
        fields += intercept[nodes, None]
        if problem.observed is not None:
            fields *= problem.observed[nodes]  # ln cosh 0 = tanh 0 = 0: no term
        means = [np.empty_like(field) for field in fields]
        pairs = zip(fields, means, strict=True)
        log_cosh = [evaluate_fields(f[None], problem.weights, mean[None]) for f, mean in pairs]
        linear = problem.means * intercept + (self._moments * coupling).sum(axis=1)
        losses = log_cosh + self._n_known[nodes] * np.log(2) - linear[nodes]
        losses /= self.total
        if old is None:
            return State(theta, losses, means)
        return old.changed(nodes, theta, losses, means)

    def slopes(self, state, nodes, out):
        """Fill the rows of `nodes` with the derivatives of their losses; -> `out`."""
        problem = self.problem
        weighted = np.array([state.means[j] for j in nodes]) * problem.weights
        out[nodes] = (weighted @ self._features.T - self._moments[nodes]) / self.total
        out[nodes, nodes] = (weighted.sum(axis=1) - problem.means[nodes]) / self.total
        return out

    def curvature(self, state, j, used):
        """Second derivatives of the loss of column j by some parameters, and which these are.

        `used` tells, for each s, whether the coupling to it, or the intercept, is one of them.
        """
        problem = self.problem
        weights = problem.weights * (1 - state.means[j] ** 2)
        if problem.observed is not None:
            weights *= problem.observed[j]
        columns = np.flatnonzero(used[j])
        x = self._features32[columns]
        x[columns == j] = 1
        weighted = x * (weights / self.total).astype(np.float32)
        return self.layout.places[j, columns], (weighted @ x.T).astype(np.float64)


class ContrastNetwork:
    """Network of categorical columns.

    Parameters
    ----------
    problem : CategoricalPseudoLikelihood
        Its penalty is not looked at, except for which columns are ordered.
    nodewise : bool

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        The sum of the squares of the contrasts of each column, q - 1 where there is no order.
    n_trends : ndarray of int of shape (d,)
        The number of contrasts that a trend has: 1 of ordered columns, q - 1 of others.
    is_bent : ndarray of bool of shape (n_parameters + 1,)
        The parameters that trends do not have.
    """

    is_categorical = True

    def __init__(self, problem, nodewise):
        size, self._ordered = problem.n_values - 1, problem.ordered
        self.problem, self.total, self.n_values = problem, problem.total, problem.n_values
        self._basis, self._squares = ordered_basis(self.n_values, self._ordered)
        column, self.n_columns = column_of_state(size), len(size)
        self.sizes = np.bincount(column, self._squares, len(size))
        self.n_trends = np.where(self._ordered, 1, size)
        self._states, self._own = state_slices(self.n_values), state_slices(size)
        self._bases = [self._basis[both] for both in zip(self._states, self._own, strict=True)]
        codes, weights = problem.cells.codes, problem.cells.weights
        self._features = features = np.empty((len(column), len(codes)))
        for own, basis, states in zip(self._own, self._bases, codes.T, strict=True):
            # A row of 0 at the end, for the missing cells.
            features[own] = np.append(basis, np.zeros((1, basis.shape[1])), axis=0).T[:, states]
        self._weights, self._sums = weights * (codes.T >= 0), features @ weights
        self._blocks = list(gen_batches(len(codes), BLOCK_ROWS))
        self.layout = layout = Layout(column, nodewise, self._sums / self.total)
        self._moments = np.zeros((len(column),) * 2)
        for rows in self._blocks:
            weighted = features[:, rows] * weights[rows]
            features[:, rows] -= layout.shift[:, None]
            self._moments += weighted @ features[:, rows].T
        self.spread = self._spread()
        is_first = np.diff(column, prepend=-1) > 0
        trend = is_first | ~self._ordered[column]
        bent = ~np.outer(trend, trend)
        np.fill_diagonal(bent, False)
        self.is_bent = np.zeros(layout.n_parameters + 1, dtype=bool)
        self.is_bent[layout.places] = bent

    def _spread(self):
        """√(1 - Σ p²) in ratio to that of equally frequent values.

        Of columns of ±1 it is the standard deviation. Of ordered columns, √ of the trace of the
        covariance of the contrasts takes the place.
        """
        begins = np.cumsum(self.n_values) - self.n_values
        counts = self.problem.counts()
        known = np.maximum(np.add.reduceat(counts, begins), 1e-300)
        rates = counts / np.repeat(known, self.n_values)
        squares = np.add.reduceat(rates**2, begins)
        spread = (1 - squares) / (1 - 1 / self.n_values)
        for i in np.flatnonzero(self._ordered):
            p, basis = rates[self._states[i]], self._bases[i]
            trace = (p @ (basis - p @ basis) ** 2).sum()
            spread[i] = trace * self.n_values[i] / self.sizes[i]
        return np.sqrt(np.maximum(spread, 0))

    def theta(self, theta):
        """θ of the network from that of the problem."""
        problem, inverse = self.problem, self._basis / self._squares
        coupling, intercept = problem.unpack(problem.gauged(theta))
        return self.layout.vector(inverse.T @ coupling @ inverse, inverse.T @ intercept)

    def of_problem(self, coupling, intercept):
        """θ of the problem, from a symmetric coupling and an intercept."""
        basis = self._basis
        return self.problem.pack(basis @ coupling @ basis.T, basis @ intercept)

    def at(self, theta, nodes=None, old=None):
        """Evaluate the losses; see `SpinNetwork`."""
        coupling, intercept = self.layout.centred(theta)
        nodes = np.arange(self.n_columns) if nodes is None else nodes
        linear = intercept * self._sums + (self._moments * coupling).sum(axis=1)
        losses = np.array([-linear[self._own[i]].sum() for i in nodes])
        weights = np.column_stack([intercept, coupling])
        weights = np.concatenate([self._bases[i] @ weights[self._own[i]] for i in nodes])
        means = [np.empty((self.n_values[i], self._features.shape[1])) for i in nodes]
        for rows in self._blocks:
            fields = weights[:, 1:] @ self._features[:, rows]
            fields += weights[:, :1]
            for k, states in enumerate(state_slices(self.n_values[nodes])):
                field, known = fields[states], self._weights[nodes[k], rows]
                largest = field.max(axis=0)
                chances = np.exp(np.subtract(field, largest, out=field), out=field)
                sums = chances.sum(axis=0)
                np.divide(chances, sums, out=means[k][:, rows])
                losses[k] += known @ (np.log(sums) + largest)
        losses /= self.total
        return (
            State(theta, losses, means) if old is None else old.changed(nodes, theta, losses, means)
        )

    def slopes(self, state, nodes, out):
        """Fill the rows of `nodes` with the derivatives of their losses; -> `out`."""
        states = state_slices(self.n_values[nodes])
        by_field = np.zeros((states[-1].stop if states else 0, 1 + len(self._features)))
        for rows in self._blocks:
            weighted = [state.means[i][:, rows] * self._weights[i, rows] for i in nodes]
            weighted = np.concatenate(weighted)
            by_field[:, 0] += weighted.sum(axis=1)
            by_field[:, 1:] += weighted @ self._features[:, rows].T
        for i, own_states in zip(nodes, states, strict=True):
            own, slopes = self._own[i], self._bases[i].T @ by_field[own_states]
            out[own] = slopes[:, 1:] - self._moments[own]
            places = np.arange(own.start, own.stop)
            out[places, places] = slopes[:, 0] - self._sums[own]
            out[own] /= self.total
        return out

    def curvature(self, state, i, used):
        """Second derivatives of the loss of column i by some parameters, and which these are."""
        layout, own = self.layout, np.flatnonzero(self.layout.column == i)
        others = np.flatnonzero(used[own[0]] & (layout.column != i))
        x = np.ones((1 + len(others), self._features.shape[1]), np.float32)
        x[1:] = self._features[others]
        weights = self._weights[i] / self.total
        block = softmax_information(self._bases[i], state.means[i].T, x.T, weights)
        places = np.column_stack([layout.places[own, own], layout.places[np.ix_(own, others)]])
        return places.ravel(), block.reshape(places.size, -1).astype(np.float64)


def network_of(problem, nodewise):
    """The network of a pseudo-likelihood of binary or of categorical columns."""
    if isinstance(problem, PseudoLikelihood):
        return SpinNetwork(problem, nodewise)
    return ContrastNetwork(problem, nodewise)
