"""Fits of categorical columns without an estimator, as those of plmc and plmDCA."""

import numpy as np

from private import (
    MAX_ITER,
    CategoricalPseudoLikelihood,
    Cells,
    CodesTask,
    Contrasts,
    GradientPoint,
    SolverMonitor,
    add_penalty,
    block_means,
    column_of_state,
    contrasts_curvature,
    distinct_codes,
    fitted_places,
    fold_table,
    independent_intercept,
    maximise_lbfgs,
    maximise_network,
    pack_table,
    parameter_index,
    state_counts,
    to_zero_sum,
)


def fit_categorical(
    codes, n_values, weights=None, *, solver="newton", tol=1e-5, max_iter=None, coupling_penalty=0.0
):
    """The `Result` of rows of codes; λ_J as of `CategoricalPseudoLikelihood`."""
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else weights
    alpha = 8 * coupling_penalty / weights.sum() if weights.any() else 0.0
    task = CodesTask(codes, weights, n_values, alpha)
    name, solve = task.choose_solver(solver)
    monitor = SolverMonitor(tol, MAX_ITER[name] if max_iter is None else max_iter)
    return maximise_network(task, (None, None), solve, monitor, lambda *cell: f"cell {cell}")


def fit_all_states(codes, n_values, weights=None, *, tol=1e-5, max_iter=5000, **options):
    """Couplings and intercepts of all states, also of those that never occur, by L-BFGS.

    `options` are those of `CategoricalPseudoLikelihood`; with ``zero_sum`` the estimate is.
    """
    n_values, codes = np.asarray(n_values, dtype=np.int64), np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else weights
    codes, weights = distinct_codes(codes, weights)
    problem = CategoricalPseudoLikelihood(codes, n_values, weights, **options)
    intercept = independent_intercept(problem.counts(), n_values)
    theta = problem.pack(np.zeros((problem.n_states,) * 2), intercept)
    monitor = SolverMonitor(tol, max_iter)
    maximise_lbfgs(problem, problem.at(theta), monitor)
    found = problem.unpack(np.concatenate(monitor.last[1::-1]))
    return to_zero_sum(*found, n_values) if problem.zero_sum else found


class SitePseudoLikelihood:
    """The conditional log-likelihoods of a group of columns, each with couplings of its own.

    The sum over its columns i of Σ_n w_n ln p(x_ni | others) - λ_J Σ_j Σ_ab J_ij(a, b)² -
    λ_h Σ_a h_i(a)². θ has the h_i(a), column by column, then the J_ij(a, b) for each i and j.

    Parameters
    ----------
    cells : Cells
    group : Group
        One of ``cells.groups``.
    coupling_penalty, intercept_penalty : float
        λ_J and λ_h.
    """

    def __init__(self, cells, group, coupling_penalty, intercept_penalty):
        self.cells, self.group, self.dtype = cells, group, cells.dtype
        self.coupling_penalty, self.intercept_penalty = coupling_penalty, intercept_penalty
        self.sites = group.sites[group.sites >= 0]
        column = column_of_state(cells.n_values)
        self._own = np.concatenate([np.flatnonzero(column == i) for i in self.sites])
        self.n_states = len(self._own)
        self._starts = np.zeros((len(cells.n_values),) * 2, dtype=np.int64)
        begin = self.n_states
        for i in self.sites:
            for j in np.flatnonzero(np.arange(len(cells.n_values)) != i):
                self._starts[i, j] = begin
                begin += cells.n_values[i] * cells.n_values[j]
        self.n_parameters = int(begin)

    def initial(self, intercept):
        """θ without couplings, with the intercepts of all columns."""
        theta = np.zeros(self.n_parameters)
        theta[: self.n_states] = intercept[self._own]
        return theta

    def at(self, theta, out=None):
        """Evaluate the objective; `out` may take the gradient."""
        cells, group, q = self.cells, self.group, self.n_states
        gradient = np.empty_like(theta) if out is None else out
        gradient.fill(0)
        total = add_penalty(theta[:q], self.intercept_penalty, gradient[:q])
        total += add_penalty(theta[q:], self.coupling_penalty, gradient[q:])
        intercept, slopes = np.zeros((2, cells.n_states))
        intercept[self._own] = theta[:q]
        place = group.sites, cells.n_values, self._starts, False
        value, places, slope = cells.evaluate(
            group,
            intercept,
            lambda table: pack_table(theta, *place, table),
            lambda table: fold_table(gradient, *place, table),
        )
        slopes[places] = slope
        gradient[:q] += slopes[self._own]
        return GradientPoint(theta, theta[q:], theta[:q], float(total + value), gradient)

    def curvature(self):
        """About the negative diagonal of the second derivative: that of independent columns."""
        cells, q = self.cells, self.n_states
        counts = state_counts(cells.codes, cells.offsets, cells.weights)
        known = np.add.reduceat(counts, cells.offsets[:-1])
        rates = counts / np.maximum(known, 1e-300)[column_of_state(cells.n_values)]
        spread = counts * (1 - rates)
        curvature = np.empty(self.n_parameters)
        curvature[:q] = spread[self._own] + 2 * self.intercept_penalty
        for i, j, place in self._blocks():
            products = np.outer(spread[cells.states(i)], rates[cells.states(j)])
            curvature[place] = products.ravel() + 2 * self.coupling_penalty
        return curvature + 0.5

    def unpack(self, theta, coupling, intercept):
        """Write the group's J_ij(a, b), i the row, and h_i(a) into arrays of all columns."""
        cells = self.cells
        intercept[self._own] = theta[: self.n_states]
        for i, j, place in self._blocks():
            block = theta[place].reshape(cells.n_values[i], cells.n_values[j])
            coupling[cells.states(i), cells.states(j)] = block

    def _blocks(self):
        n_values = self.cells.n_values
        for i in self.sites:
            for j in np.flatnonzero(np.arange(len(n_values)) != i):
                start = self._starts[i, j]
                yield i, j, slice(start, start + n_values[i] * n_values[j])


def fit_sites(
    codes,
    n_values,
    weights,
    *,
    coupling_penalty=0.0,
    intercept_penalty=0.0,
    tol=1e-5,
    max_iter=5000,
    dtype=np.float64,
):
    """Regress each column on the others by itself, and average both directions of each coupling.

    Parameters
    ----------
    codes, n_values, weights
        As in `fit_categorical`.
    coupling_penalty, intercept_penalty : float
        λ_J and λ_h of Σ_n w_n ln p(x_ni | others) - λ_J Σ_j Σ_ab J_ij(a, b)² - λ_h Σ_a h_i(a)², the
        objective of column i.
    tol, max_iter : float and int
        Of each group of columns that is fitted at once.

    Returns
    -------
    coupling : ndarray of shape (Q, Q)
        Zero-sum: both directions are made so before they are averaged.
    intercept : ndarray of shape (Q,)
    """
    n_values = np.asarray(n_values, dtype=np.int64)
    codes, weights = distinct_codes(np.asarray(codes), np.asarray(weights))
    cells = Cells(codes, n_values, weights, dtype)
    column, whole = column_of_state(n_values), np.zeros((n_values.sum(),) * 2)
    intercept = independent_intercept(state_counts(codes, cells.offsets, weights), n_values)
    for group in cells.groups(np.arange(len(n_values))):
        problem = SitePseudoLikelihood(cells, group, coupling_penalty, intercept_penalty)
        monitor = SolverMonitor(tol, max_iter)
        maximise_lbfgs(problem, problem.at(problem.initial(intercept)), monitor)
        problem.unpack(np.concatenate(monitor.last[1::-1]), whole, intercept)
    row_means = block_means(whole, n_values)
    means = block_means(row_means.T, n_values).T
    intercept = intercept + (row_means - means[column]).sum(axis=1)
    intercept -= block_means(intercept[None], n_values)[0, column]
    column_means = block_means(whole.T, n_values).T
    whole = whole - row_means[:, column] - column_means[column] + means[column][:, column]
    return (whole + whole.T) / 2, intercept


def zero_sum_covariance(task, coupling, intercept):
    """The covariance of an estimate by maximum pseudo-likelihood: H⁻¹ J H⁻¹, in the zero-sum gauge.

    Parameters
    ----------
    task : CodesTask
    coupling, intercept : ndarray of shape (Q, Q) and (Q,)
        The estimate, zero-sum.

    Returns
    -------
    covariance : ndarray of shape (n_parameters, n_parameters)
        In the order of `parameter_index`; NaN for states that do not occur, and for columns
        with a single one that does. Its rank is that of the contrasts.

    Raises
    ------
    ValueError
        If the information matrix is singular.
    """
    n_values = task.column_sizes
    place = fitted_places(task)
    covariance = np.full((len(parameter_index(n_values).i),) * 2, np.nan)
    if len(place):
        problem, states = task.problem, task.states
        contrasts = Contrasts(problem)
        point = contrasts.at(contrasts.pack(coupling[np.ix_(states, states)], intercept[states]))
        curvature = contrasts_curvature(contrasts, point, np.arange(len(states)))
        loadings = contrasts.loadings()
        covariance[np.ix_(place, place)] = loadings @ curvature.covariance() @ loadings.T
    return covariance


def to_binary(coupling, intercept, n_values):
    """M and b of columns of two states each, of which the second is +1 and the first -1.

    In x in {-1, 1}: P(x) ∝ exp(½ xᵀ M x + bᵀ x).
    """
    n_values = np.asarray(n_values)
    assert (n_values == 2).all()
    coupling, intercept = to_zero_sum(coupling, intercept, n_values)
    return np.ascontiguousarray(coupling[1::2, 1::2]), intercept[1::2].copy()


def from_binary(coupling, intercept):
    """The (2 d, 2 d) couplings and (2 d,) intercepts, zero-sum, of M and b."""
    signs = np.array([-1.0, 1.0])
    return np.kron(coupling, np.outer(signs, signs)), np.kron(intercept, signs)


def contrast(weights, estimate, covariance):
    """A weighted sum of parameters, and its standard error.

    With 1 for J_ij(a, b) and -1 for J_ij(a, c), say, it is how much more state a of column i goes
    with state b of column j than with c.

    Parameters
    ----------
    weights : array-like of shape (n_parameters,) or (n_contrasts, n_parameters)
    estimate : ndarray of shape (n_parameters,)
    covariance : ndarray of shape (n_parameters, n_parameters)

    Returns
    -------
    value, std_err : float or ndarray of shape (n_contrasts,)
    """
    weights = np.asarray(weights, dtype=np.float64)
    used = np.flatnonzero(np.atleast_2d(weights).any(axis=0))
    part = weights[..., used]
    variance = np.einsum("...p,pq,...q->...", part, covariance[np.ix_(used, used)], part)
    return part @ estimate[used], np.sqrt(np.maximum(variance, 0))
