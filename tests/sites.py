"""Each categorical column by itself: regressions on the others, as in plmDCA."""

import numpy as np

from private import (
    CategoricalPoint,
    Cells,
    SolverMonitor,
    add_penalty,
    block_means,
    column_of_state,
    distinct_codes,
    fold_table,
    independent_intercept,
    maximise_lbfgs,
    pack_table,
    state_counts,
)


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
        """Evaluate the objective: a `Point`; `out` may take the gradient."""
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
        return CategoricalPoint(theta, float(total + value), gradient, q)

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
        problem.unpack(np.concatenate(monitor.last[::-1]), whole, intercept)
    row_means = block_means(whole, n_values)
    means = block_means(row_means.T, n_values).T
    intercept = intercept + (row_means - means[column]).sum(axis=1)
    intercept -= block_means(intercept[None], n_values)[0, column]
    column_means = block_means(whole.T, n_values).T
    whole = whole - row_means[:, column] - column_means[column] + means[column][:, column]
    return (whole + whole.T) / 2, intercept
