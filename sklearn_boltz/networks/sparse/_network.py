"""The pseudo-likelihood as the sparse solver wants it: joint, or of each column by itself.

Both are sums of regressions, of each column on the others. The features of these are centred, as
rare values are nearly collinear with an intercept otherwise. Jointly the two couplings of a pair
are one parameter; by node (`nodewise`) they are two, and the regressions are separate parts of the
problem. Categorical columns are given by functions of their states, so that every pair of columns
has a block of parameters: contrasts where states have no order, by which the norm of a block is
that of the coupling in the zero-sum gauge, and else a few smooth functions. Binary columns have one
parameter a pair.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from sklearn_boltz.networks.categorical._contrasts import softmax_information
from sklearn_boltz.networks.features._lines import gather, scatter
from sklearn_boltz.networks.features._objective import FIELDS
from sklearn_boltz.networks.features._residuals import residuals
from sklearn_boltz.networks.model._gauge import (
    column_of_state,
    contrast_basis,
    state_slices,
)
from sklearn_boltz.networks.training._bslm import evaluate_fields
from sklearn_boltz.networks.training._objective import PseudoLikelihood, parameter_places
from sklearn_boltz.numerics._threads import slices_of_rows

# Smooth functions of a column with an order, of which the first is its trend; of few states all.
N_SMOOTH, FEW_STATES = 3, 5
# Groups of neighbouring states at most.
MOST_GROUPS = 24
# Features of the rows up to which the network computes in double precision.
FEW_FEATURES = 2**16
# What a loss may rise by rounding, relative to itself, by precision. With too little of it no step
# would be allowed near the minimum.
ROUNDING = {np.float64: 1e-14, np.float32: 1e-7}


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
    left : list of ndarray
        Of each column: the conditional mean of its spin, of shape (n,), or by how much the
        probabilities of its states or their groups exceed those of the rows, times the weight.
    """

    theta: np.ndarray
    losses: np.ndarray
    left: list

    def changed(self, nodes, theta, losses, left):
        """That at another θ, which changes the losses of some columns."""
        whole, every = self.losses.copy(), list(self.left)
        whole[nodes] = losses
        for node, own in zip(nodes, left, strict=True):
            every[node] = own
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

    is_categorical, rounding = False, ROUNDING[np.float64]

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
        weighted = np.array([state.left[j] for j in nodes]) * problem.weights
        out[nodes] = (weighted @ self._features.T - self._moments[nodes]) / self.total
        out[nodes, nodes] = (weighted.sum(axis=1) - problem.means[nodes]) / self.total
        return out

    def curvature(self, state, j, used):
        """Second derivatives of the loss of column j by some parameters, and which these are.

        `used` tells, for each s, whether the coupling to it, or the intercept, is one of them.
        """
        problem = self.problem
        weights = problem.weights * (1 - state.left[j] ** 2)
        if problem.observed is not None:
            weights *= problem.observed[j]
        columns = np.flatnonzero(used[j])
        x = self._features32[columns]
        x[columns == j] = 1
        weighted = x * (weights / self.total).astype(np.float32)
        return self.layout.places[j, columns], (weighted @ x.T).astype(np.float64)


class Functions(NamedTuple):
    """Functions of the states of a column, by which its couplings are described.

    Attributes
    ----------
    values : ndarray of shape (q, k)
    inverse : ndarray of shape (k, q)
        From a function of the states to coefficients, except for a constant.
    log_base : ndarray of shape (q,)
        What intercepts have besides them.
    group : ndarray of int of shape (q,)
        Of each state. The column's own conditional is one of groups, of at most `MOST_GROUPS`
        neighbours where values have an order: their means tell as much of a few smooth functions.
    of_groups, base_of_groups : ndarray of shape (n_groups, k) and (n_groups,)
        `values` and `log_base` of the groups.
    scale, size : float
        The size is the variance of all functions of equally frequent states, times the scale. That
        of two states is 1, and q - 1 without an order.
    n_trends : int
        The first ones, which a trend has.
    costs : ndarray of shape (k,)
        Of squared coefficients, in ratio to those of contrasts, where all pairs have one penalty.
    """

    values: np.ndarray
    inverse: np.ndarray
    log_base: np.ndarray
    group: np.ndarray
    of_groups: np.ndarray
    base_of_groups: np.ndarray
    scale: float
    size: float
    n_trends: int
    costs: np.ndarray

    @classmethod
    def of(cls, n_states, basis, has_trend, most=N_SMOOTH):
        """Contrasts, or the smoothest functions of a basis, in ratio to those of two states."""
        if basis is None or basis.is_nominal:
            values, base, rank = contrast_basis([n_states]), np.zeros(n_states), n_states - 1
            own = np.arange(n_states), values, base
            return cls(values, values.T, base, *own, n_states, rank, rank, np.ones(rank))
        n_functions = most if n_states > FEW_STATES else n_states - 1
        values, n_groups = basis.features[:, :n_functions] / np.sqrt(2), min(n_states, MOST_GROUPS)
        weighted, group = values.T * basis.shares, np.arange(n_states) * n_groups // n_states
        variance, shares = weighted @ values, np.bincount(group, basis.shares)
        inverse, base = np.linalg.solve(variance, weighted), np.log(basis.shares)
        # In the zero-sum gauge.
        values, middle = values - values.mean(axis=0), base.mean()
        means = np.array([np.bincount(group, own) for own in values.T * basis.shares])
        own = group, means.T / shares[:, None], np.log(shares) - middle
        n_trends, size = 1 if has_trend else len(variance), 2 * np.trace(variance)
        costs = np.ones(len(variance))
        return cls(values, inverse, base - middle, *own, 2, size, n_trends, costs)


class FunctionNetwork:
    """Network of categorical columns.

    Parameters
    ----------
    problem : CategoricalPseudoLikelihood
        Its penalty is not looked at.
    nodewise : bool
    functions : list of Functions
        Of the columns.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        Those of the functions, q - 1 where there is no order.
    ranks, n_trends : ndarray of int of shape (d,)
        The number of functions of each column, and of those that a trend has.
    is_bent : ndarray of bool of shape (n_parameters + 1,)
        The parameters that trends do not have.
    rounding : float
        By how much a loss may rise by rounding, relative to itself.
    """

    is_categorical = True

    def __init__(self, problem, nodewise, functions):
        self.problem, self.total, self.n_values = problem, problem.total, problem.n_values
        self._functions, self.n_columns = functions, len(functions)
        self.sizes = np.array([f.size for f in functions], dtype=float)
        self.ranks = np.array([f.values.shape[1] for f in functions])
        self.n_trends = np.array([f.n_trends for f in functions])
        self._own = state_slices(self.ranks)
        self._basis = block_diag(*(f.values for f in functions))
        self._log_base = np.concatenate([f.log_base for f in functions])
        codes, column = problem.cells.codes, column_of_state(self.ranks)
        is_small = len(codes) * len(column) <= FEW_FEATURES
        self._dtype = dtype = np.float64 if is_small else np.float32
        self.rounding = ROUNDING[dtype]
        self._weights = problem.cells.weights.astype(dtype)
        self._features = np.empty((len(codes), len(column)), dtype)
        self._values = [f.values.astype(dtype) for f in functions]
        sizes = self.n_values.astype(np.int64)
        self._first = np.cumsum(sizes) - sizes
        self._lines = np.where(codes < 0, -1, codes + self._first).astype(np.int32, order="C")
        self._no_chunks = np.zeros((len(functions), 2), dtype=np.int64)
        self._heads = [
            (f.of_groups.astype(dtype), f.base_of_groups.astype(dtype)) for f in functions
        ]
        self._groups = np.empty((len(functions), len(codes)), dtype=np.int32)
        for i, (own, f) in enumerate(zip(self._own, functions, strict=True)):
            # The last ones are for missing cells.
            self._features[:, own] = np.pad(f.values, ((0, 1), (0, 0)))[codes[:, i]]
            self._groups[i] = np.append(f.group, -1)[codes[:, i]]
        shift = problem.cells.weights @ self._features / self.total
        self._features -= shift
        self.layout = layout = Layout(column, nodewise, shift)
        counts = np.split(problem.counts(), self._first[1:])
        self.spread = np.array(list(map(spread_of, functions, counts)))
        # What the shares of states in their groups add to the losses.
        inside = [f.base_of_groups[f.group] - f.log_base for f in functions]
        self._constants = np.array([n @ own for n, own in zip(counts, inside, strict=True)])
        place = np.concatenate([np.arange(rank) for rank in self.ranks])
        trend = place < self.n_trends[column]
        bent = ~np.outer(trend, trend)
        np.fill_diagonal(bent, False)
        self.is_bent = np.zeros(layout.n_parameters + 1, dtype=bool)
        self.is_bent[layout.places] = bent

    def theta(self, theta):
        """θ of the network from that of the problem."""
        problem, inverse = self.problem, block_diag(*(f.inverse for f in self._functions))
        coupling, intercept = problem.unpack(problem.gauged(theta))
        return self.layout.vector(
            inverse @ coupling @ inverse.T, inverse @ (intercept - self._log_base)
        )

    def of_problem(self, coupling, intercept):
        """θ of the problem, from a symmetric coupling and an intercept."""
        basis = self._basis
        return self.problem.pack(basis @ coupling @ basis.T, self._log_base + basis @ intercept)

    def at(self, theta, nodes=None, old=None):
        """Evaluate the losses; see `SpinNetwork`."""
        coupling, intercept = self.layout.centred(theta)
        intercept -= coupling @ self.layout.shift
        nodes = np.arange(self.n_columns) if nodes is None else nodes
        losses, left, (places, ends) = np.empty(len(nodes)), [], self._places(nodes)
        table = self._table(coupling[places].T.astype(self._dtype))
        fields = np.tile(intercept[places].astype(self._dtype), (len(self._lines), 1))
        gather(fields, table, self._lines, self._no_chunks)
        for k, i in enumerate(nodes):
            of_groups, base = self._heads[i]
            of_node = fields[:, ends[k] : ends[k + 1]] @ of_groups.T
            groups, offsets = self._groups[i][:, None], np.array([0, len(base)])
            value = residuals(of_node, base, offsets, groups, self._weights)
            losses[k] = (self._constants[i] - value) / self.total
            left.append(of_node)
        if old is None:
            return State(theta, losses, left)
        return old.changed(nodes, theta, losses, left)

    def slopes(self, state, nodes, out):
        """Fill the rows of `nodes` with the derivatives of their losses; -> `out`."""
        (places, ends), shift = self._places(nodes), self.layout.shift
        left = np.empty((len(self._lines), ends[-1]), self._dtype)
        for i, start, end in zip(nodes, ends[:-1], ends[1:], strict=True):
            np.matmul(state.left[i], self._heads[i][0], out=left[:, start:end])
        sums = np.zeros((self.n_values.sum(), ends[-1]))
        for rows in slices_of_rows(len(left), ends[-1], FIELDS):
            part = np.zeros(sums.shape, self._dtype)
            scatter(left[rows], part, self._lines[rows], self._no_chunks)
            sums += part
        whole = left.sum(axis=0, dtype=np.float64) / self.total
        for first, values, own in zip(self._first, self._values, self._own, strict=True):
            slope = sums[first : first + len(values)].T @ values / self.total
            out[places, own] = slope - np.outer(whole, shift[own])
        out[places, places] = whole
        return out

    def _places(self, nodes):
        """Those of the functions of some columns, one after another, and where each begins."""
        places = [np.arange(self._own[i].start, self._own[i].stop) for i in nodes]
        return np.concatenate(places), np.cumsum([0, *map(len, places)])

    def _table(self, coupling):
        """The products of the functions of all states, one after another, with a matrix."""
        found = np.empty((self.n_values.sum(), coupling.shape[1]), self._dtype)
        for first, values, own in zip(self._first, self._values, self._own, strict=True):
            np.matmul(values, coupling[own], out=found[first : first + len(values)])
        return found

    def curvature(self, state, i, used):
        """Second derivatives of the loss of column i by some parameters, and which these are."""
        layout, own = self.layout, np.flatnonzero(self.layout.column == i)
        others = np.flatnonzero(used[own[0]] & (layout.column != i))
        x = np.ones((len(self._features), 1 + len(others)), np.float32)
        x[:, 1:] = self._features[:, others]
        chances, group = state.left[i] / self._weights[:, None], self._groups[i]
        known = np.flatnonzero(group >= 0)
        chances[known, group[known]] += 1
        weights = self._weights * (group >= 0) / self.total
        block = softmax_information(self._functions[i].of_groups, chances, x, weights)
        places = np.column_stack([layout.places[own, own], layout.places[np.ix_(own, others)]])
        return places.ravel(), block.reshape(places.size, -1).astype(np.float64)


def spread_of(functions, counts):
    """√ of the variance of functions of states that occur so often, in ratio to their size.

    Of columns of ±1 it is the standard deviation, and of others without an order √(1 - Σ p²) in
    ratio to that of equally frequent values.
    """
    p, values = counts / max(counts.sum(), 1e-300), functions.values
    variance = (p @ (values - p @ values) ** 2).sum()
    return np.sqrt(max(variance * functions.scale / functions.size, 0))


def network_of(problem, nodewise, functions):
    """The network of a pseudo-likelihood of binary columns, or of categorical ones."""
    if isinstance(problem, PseudoLikelihood):
        return SpinNetwork(problem, nodewise)
    return FunctionNetwork(problem, nodewise, functions)
