"""A fit with a penalty that selects pairs of columns."""

from copy import copy
from functools import cached_property, partial

import numpy as np
from scipy.stats import chi2
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch

from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.networks.features._task import FeatureTask
from sklearn_boltz.networks.model._gauge import column_of_state, reduce_blocks, state_offsets
from sklearn_boltz.networks.sparse._network import Functions, network_of
from sklearn_boltz.networks.sparse._path import (
    alpha_grid,
    ebic_price,
    fdr_price,
    follow,
    held_out,
    idle_groups,
    information_criterion,
    neighbours,
)
from sklearn_boltz.networks.sparse._penalty import Penalty, UserPenalty, group_norms
from sklearn_boltz.networks.sparse._solver import Solver
from sklearn_boltz.networks.training._fit import MAX_ITER
from sklearn_boltz.networks.training._objective import Point, PseudoLikelihood
from sklearn_boltz.networks.training._solvers import Method
from sklearn_boltz.numerics._bar import progress_bar

# Without a penalty, a coupling that is not believed: an odds ratio of e¹⁰.
STRONG = 2.5
# Length of a path.
N_ALPHAS = 100
# Iterations at most for each penalty of a path.
PATH_ITER = MAX_ITER["prox-newton"]
# Of the tests of all pairs together.
LEVEL = 0.01
# The false discovery rates of the second choice, jointly and by the rules of `nodewise`: with "and"
# a pair pays twice. Measured by bench_selection.py: each finds about as many of 70 among 153 pairs
# as tests of all pairs at a rate of 5 % do, or more, and at most 5 % of the others.
LEVELS = {False: 0.05, "or": 0.05, "and": 0.075}
# Of a column, besides its most frequent value.
LEAST_ROWS = 5
# A column with a smaller standard deviation is constant: the rest is rounding.
CONSTANT = 1e-6
# The norm of a coupling that the first choice might as well have left out.
NEGLIGIBLE = 1e-6
# That of a coupling which the second penalty hardly shrinks: with larger ones, as of numbers that
# nearly determine each other, a path would begin so high that it ends before the weak pairs.
MOST = 5.0


class SparseTask:
    """A task with a penalty that selects, by the sparse solver.

    Parameters
    ----------
    task : Task or CodesTask
        Without a penalty of its own. With a `FeatureTask`, columns with an order have smooth
        functions.
    tol : float
    remedy : str
        What makes sure of a maximum where there is no penalty.
    penalty : {"l2", "l1", "elasticnet", "group"} or object, default="l2"
        The latter with `value` and `prox`.
    l1_ratio : float, default=0.0
    edges : ndarray of bool of shape (d, d), default=None
        The pairs of all columns that may be connected; None for all.
    nodewise : {False, "and", "or"}, default=False
        Whether each column is fitted by itself, and which pairs are then kept.
    standardize : bool, default=False
    keeps_path : bool, default=True
        Whether the couplings of a path are kept: a hundred matrices of all values.

    Attributes
    ----------
    alpha : float or ndarray of shape (d,)
        The strength of the penalty, 0 at first; by node, one for each column that varies.
    norms : ndarray of shape (d, d) or None
        Of the blocks of pairs that a first penalty has selected, 0 of the others. By their inverse
        a second one is weighed, which shrinks strong pairs less and weak ones more: the adaptive
        lasso (Zou 2006).
    """

    def __init__(
        self, task, *, tol, remedy, penalty="l2", l1_ratio=0.0, edges=None, nodewise=False,
        standardize=False, keeps_path=True,
    ):  # fmt: skip
        self.task, self.alpha, self.tol = task, 0.0, tol
        is_binary = isinstance(task.problem, PseudoLikelihood)
        self.form = partial(UserPenalty.of, penalty=penalty, scale=1.0 if is_binary else 0.5)
        if isinstance(penalty, str):
            ratio = {"l2": 0.0, "elasticnet": l1_ratio}.get(penalty, 1.0)
            self.form = partial(Penalty.of, l1_ratio=ratio)
        self.nodewise, self.rule = bool(nodewise), nodewise
        self.standardize = standardize and penalty != "l2"
        self.is_of_blocks = penalty not in ("l1", "elasticnet", "l2")
        self.edges = None if edges is None else edges[np.ix_(task.varying, task.varying)]
        self.start, self.norms, self.remedy, self.keeps_path = None, None, remedy, keeps_path
        self._expansions = None

    @cached_property
    def network(self):
        """That of the problem."""
        return self.network_of(self.task.problem)

    def network_of(self, problem):
        """The network of a problem of the same columns."""
        return network_of(problem, self.nodewise, self.functions)

    @cached_property
    def functions(self):
        """Those of each column that varies; None if all are binary."""
        task = self.task
        if isinstance(task.problem, PseudoLikelihood):
            return None
        bases, has_trend = [None] * len(task.varying), ~np.zeros(len(task.varying), dtype=bool)
        if isinstance(task, FeatureTask):
            bases, has_trend = task.bases(), ~task.cyclic[task.varying]
        return list(map(Functions.of, task.n_fitted, bases, has_trend))

    @property
    def method(self):
        """The solver."""

        def at(_, theta):  # its value is not asked
            return Point(theta, np.nan)

        # With a penalty there is a maximum.
        return Method("prox-newton", self.solve, self.message, lambda: None, at)

    def choose(self, codes, weights, *, how, gamma, cv, verbose):
        """Choose the strength of the penalty, and begin the fit there, with a bar of all paths.

        Parameters
        ----------
        codes, weights : ndarray
            The rows of the table, in their order.
        how : {"auto", "ebic", "cv"}
        gamma : float
            Of the EBIC.
        cv : int, splitter or iterable
        verbose : int

        Returns
        -------
        found : dict
            The attributes `alpha_`, `alphas_` and `path_`.
        """
        self.bar = progress_bar("penalties", N_ALPHAS * (1 + (how == "auto")), verbose == 1)
        with self.bar:
            return self._chosen(codes, weights, how, gamma, cv)

    def _chosen(self, codes, weights, how, gamma, cv):
        """The attributes of a choice, see `choose`."""
        if how == "cv":
            chosen = self._choose(partial(self._held_out, codes, weights, cv))
            return self._found("cv_score", *chosen)
        network = self.network
        price = ebic_price(network.total, network.n_columns, gamma)
        if how == "ebic":
            return self._found(how, *self._by_price(price, network.is_categorical))
        self.norms = self._norms(price)
        if not self.norms.any():
            self.norms = None
            return self._found("criterion", *self._by_price(price, False, n_alphas=1))
        n_pairs, n_possible = np.count_nonzero(self.norms) // 2, len(self.candidates())
        price = fdr_price(n_pairs, n_possible, LEVELS[self.rule])
        found = self._found("criterion", *self._by_price(price, True))
        groups = idle_groups(self.solver(network), network.at(self.start), price)
        self.start[np.isin(network.layout.groups, groups)] = 0
        return found

    def _norms(self, price):
        """Those of the pairs that the regression of either column has selected, the larger ones."""
        first = copy(self)
        vars(first).pop("network", None)
        first.nodewise, first.rule = True, "or"
        first._by_price(price, first.network.is_categorical)
        layout = first.network.layout
        norms = group_norms(layout.groups, first.start, layout.n_groups)[layout.pairs]
        np.fill_diagonal(norms, 0)
        norms[norms < NEGLIGIBLE] = 0
        return np.minimum(np.maximum(norms, norms.T), MOST)

    def _by_price(self, price, refitted, n_alphas=N_ALPHAS):
        def criterion_on(path):
            return lambda _, *at: information_criterion(path, *at, price, refitted)

        return self._choose(criterion_on, refitted, n_alphas)

    def _held_out(self, codes, weights, cv, path):
        """Minus the log pseudo-likelihood of held-out rows, by penalties."""

        def of_rows(rows):
            kept = distinct_incomplete(*informative(codes[rows], weights[rows]))
            return self.network_of(self.task.problem_of(*kept))

        folds = [
            (self._begin(of_rows(fit)), of_rows(held)) for fit, held in check_cv(cv).split(codes)
        ]
        total = sum(other.total for _, other in folds)

        def criterion(alpha, _, parts):
            return sum(held_out(fold, alpha, other) for fold, other in folds)[parts] / total

        return criterion

    def _choose(self, criterion_on, refitted=False, n_alphas=N_ALPHAS):
        """Choose by the least value of a criterion on a path; -> what `_found` takes."""
        network, layout = self.network, self.network.layout
        path = self._begin(network)
        alphas = alpha_grid(path.first_alphas(), N_ALPHAS, network)[:n_alphas]
        alphas, criterion, thetas = follow(path, alphas, criterion_on(path), refitted, self.bar)
        self.bar.total -= N_ALPHAS - len(alphas)  # a path may end early
        present = [neighbours(network, np.nan_to_num(theta)) for theta in thetas]
        best = np.nanargmin(criterion, axis=0)
        if refitted:  # the criterion tells pairs: those that are shrunk least, the last of equals
            best = len(criterion) - 1 - np.nanargmin(criterion[::-1], axis=0)
        self.start = thetas[best[layout.part_of_parameter], np.arange(layout.n_parameters)]
        self.alpha = alphas[best, np.arange(layout.n_parts)]
        return alphas, criterion, thetas, np.sum(present, axis=2)

    def _found(self, name, alphas, criterion, thetas, degrees):
        """The attributes of a choice by a criterion of some name."""
        task, alpha = self.task, self.alpha
        if self.nodewise:
            arrays = alpha, alphas, criterion
            alpha, alphas, criterion = (among_all(task, a, np.nan) for a in arrays)
            n_edges = among_all(task, degrees, 0)
        else:
            alpha = self.alpha = float(alpha[0])
            alphas, criterion, n_edges = alphas[:, 0], criterion[:, 0], degrees.sum(axis=1) // 2
        path = Bunch(alphas=alphas, n_edges=n_edges)
        if self.keeps_path:
            matrices = zip(*(path_matrices(self, theta) for theta in thetas), strict=True)
            path.coupling, path.intercept = map(np.array, matrices)
        path[name] = -criterion if name == "cv_score" else criterion
        return {"alpha_": alpha, "alphas_": alphas, "path_": path}

    def _begin(self, network):
        """The solver of a network at the beginning of a path, at independent columns."""
        return self.solver(network).begin(network.theta(self.task.initial(None, None)))

    def without_pairs(self):
        """Attributes of a fit without a pair to choose."""
        self.alpha = np.zeros(len(self.task.varying)) if self.nodewise else 0.0
        found = np.zeros(len(self.task.column_sizes)) if self.nodewise else 0.0
        return {"alpha_": found, "alphas_": np.zeros((0, *np.shape(found)))}

    def keep_pairs(self, coupling):
        """Allow only the pairs of columns that are coupled, by the coupling of all columns."""
        starts, varying = state_offsets(self.task.column_sizes)[:-1], self.task.varying
        present = reduce_blocks(np.logical_or, coupling != 0, starts)
        self.edges = present[np.ix_(varying, varying)]

    def candidates(self):
        """The pairs that may be connected, as lists of two columns of the table."""
        d = len(self.task.varying)
        allowed = np.ones((d, d), dtype=bool) if self.edges is None else self.edges
        return self.task.varying[np.argwhere(np.triu(allowed, 1))].tolist()

    def weights(self, network):
        """The weight of the penalty of each group.

        0 of intercepts, and infinite of pairs that may not be connected.
        """
        layout, size = network.layout, network.sizes
        spread = network.spread if self.standardize else np.ones(len(size))
        # By node the features are standardised, as in glmnet; jointly, the scores of the pairs.
        matrix = spread * np.ones((len(size), 1)) if self.nodewise else np.outer(spread, spread)
        if self.norms is not None:
            with np.errstate(divide="ignore"):
                matrix = np.outer(size, size) / self.norms
        elif network.is_categorical:
            # The norm of the block of two binary columns is twice their m_jk.
            matrix = matrix / 2 * (np.sqrt(np.outer(size, size)) if self.is_of_blocks else 1)
        # Of part of the rows: without a weight, couplings that change nothing would grow.
        constant = network.spread < CONSTANT
        matrix[constant] = matrix[:, constant] = np.inf
        if self.edges is not None:
            matrix = np.where(self.edges, matrix, np.inf)
        np.fill_diagonal(matrix, 0)
        weights = np.empty(layout.n_groups)
        weights[layout.pairs] = matrix
        return weights

    def solve(self, problem, point, monitor):
        """A solver as those of `_solvers`; it begins at `start` if that is given.

        From independent columns, it goes there by larger penalties. Their minima have fewer
        couplings, and one leads to the next in a few iterations, which do not count.
        """
        own = problem is self.task.problem
        network = self.network if own else self.network_of(problem)
        solver, alpha = self.solver(network), np.broadcast_to(self.alpha, network.layout.n_parts)
        if not own and self._expansions is not None:  # of the round of EM before
            solver.expansions = self._expansions
        self._expansions = solver.expansions
        penalty = solver.penalty(alpha)
        theta = self.start if own and self.start is not None else network.theta(point.theta)

        def found(state):
            value = -network.total * (state.losses.sum() + penalty.costs(state.theta).sum())
            return Point(network.of_problem(*self.combined(network, state.theta)), float(value))

        def report(state):
            return monitor(found(state)) and monitor.status != "converged"

        state = network.at(penalty.allowed(theta))
        monitor(found(state))
        if not penalty.norms(theta)[solver.weights > 0].any():
            state = solver.begin(theta).lead_to(alpha).state
        state, converged = solver.solve(penalty, state, self.tol, monitor.max_iter, report)
        if not monitor.values:  # it has begun at the minimum, which an iteration has found
            report(state)
        if converged:
            monitor.status = "converged"
        elif monitor.status == "converged":  # a small rise, but not yet the minimum
            monitor.status = "max_iter"
        return found(state), None

    def solver(self, network):
        """The solver of a network."""
        return Solver(network, self.weights(network), self.form, self.tol, PATH_ITER)

    def combined(self, network, theta):
        """Coupling and intercept of θ; by node, both couplings of a pair are made one."""
        coupling, intercept = network.layout.matrices(theta)
        if not self.nodewise:
            return coupling, intercept
        present, column = neighbours(network, theta), network.layout.column
        kept = present & present.T if self.rule == "and" else present | present.T
        coupling = np.where(kept[np.ix_(column, column)], (coupling + coupling.T) / 2, 0.0)
        return coupling, intercept

    def message(self, point, direction, monitor):
        """Warning about how the fit ended, or None."""
        if monitor.status == "max_iter":
            return (
                f"The fit ended at max_iter={monitor.max_iter} iterations, and the derivatives are "
                f"not yet within tol={self.tol:g}. Raise max_iter, or use a larger alpha."
            )
        return None if np.any(self.alpha) else self._without_penalty(point)

    def _without_penalty(self, point):
        """That the maximum may be at infinity."""
        coupling, sizes = self.task.network(point.theta)[0], self.task.column_sizes
        if isinstance(self.task, FeatureTask):  # a trend may be steep
            smooth = self.task.ordered[column_of_state(sizes)]
            coupling = np.where(np.outer(smooth, smooth), 0, coupling)
        r, s = np.unravel_index(np.abs(coupling).argmax(), coupling.shape)
        if abs(coupling[r, s]) < STRONG:
            return None
        one, other = map(self.task.label, column_of_state(sizes)[[r, s]])
        return (
            f"The coupling of {one} and {other} is {coupling[r, s]:.2g}: "
            "some of their values hardly ever, or never, occur together, and the log "
            f"pseudo-likelihood may have no maximum. With {self.remedy}, it has one."
        )


def among_all(task, values, fill):
    """Values of the columns that vary among those of all, along the last axis."""
    values = np.asarray(values)
    whole = np.full((*values.shape[:-1], len(task.column_sizes)), fill, dtype=values.dtype)
    whole[..., task.varying] = values
    return whole


def path_matrices(sparse, theta):
    """Coupling and intercept of all columns, of which those by node are not symmetric.

    NaN in the rows of a column whose path has ended.
    """
    task, network, ended = sparse.task, sparse.network, np.isnan(theta)
    coupling, intercept = network.layout.matrices(np.where(ended, 0.0, theta))
    if not sparse.nodewise:
        both, whole, *_ = task.network(network.of_problem(coupling, intercept))
    else:
        upper, lower = np.triu(coupling), np.tril(coupling)
        above, whole, *_ = task.network(network.of_problem(upper + upper.T, intercept))
        below = task.network(network.of_problem(lower + lower.T, intercept))[0]
        both = np.triu(above) + np.tril(below)
    if ended.any():
        columns = np.zeros(len(task.column_sizes), dtype=bool)
        own = ended[network.layout.places.diagonal()]
        columns[task.varying[network.layout.column[own]]] = True
        rows = np.repeat(columns, task.column_sizes)
        both[rows] = whole[rows] = np.nan
    return both, whole


def rare_columns(codes, weights):
    """The columns that vary in fewer than `LEAST_ROWS` rows: all others have the same value.

    By so few rows a test of a pair rejects far more often than its level says.
    """
    counts = [np.bincount(column[column >= 0], weights[column >= 0]) for column in codes.T]
    return np.array([c.any() and 0 < c.sum() - c.max() < LEAST_ROWS for c in counts], dtype=bool)


def dependent_pairs(codes, weights, pairs):
    """Those that Pearson's chi-squared test finds with Holm's adjustment, the smallest p first.

    Parameters
    ----------
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell.
    weights : ndarray of shape (n,)
    pairs : list of pairs of int
        Of columns.
    """
    p_values = np.array([pearson_p_value(*codes[:, pair].T, weights) for pair in pairs])
    order = np.argsort(p_values, kind="stable")
    rejected = p_values[order] * np.arange(len(order), 0, -1) < LEVEL
    n_rejected = len(order) if rejected.all() else int(rejected.argmin())
    return [pairs[k] for k in order[:n_rejected]]


def pearson_p_value(one, other, weights):
    """The p value of two columns of codes, in the rows that have both."""
    known = (one >= 0) & (other >= 0)
    shape = one.max(initial=0) + 1, other.max(initial=0) + 1
    table = np.zeros(shape)
    np.add.at(table, (one[known], other[known]), weights[known])
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    df = (table.shape[0] - 1) * (table.shape[1] - 1)
    if df < 1:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), df))
