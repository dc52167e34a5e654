"""Rows that EM has completed: their completions, and the information that missing cells take away.

The estimate solves Σ_i w_i E[s_i(x; θ) | x_o; θ] = 0, s_i the score of a row's pseudo-likelihood.
Its derivative is -Σ_i w_i (E[H_i | x_o] - Cov(s_i, t | x_o)), with H_i the information of a
completed row and t the sufficient statistics, the derivative of ln p(x) up to a constant.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklearn_boltz.missing._completion import (
    CompletionModel,
    IncompleteRows,
    all_completions,
    distinct_incomplete,
    informative,
    log_sums,
)
from sklearn_boltz.numerics._threads import slices_of_rows
from sklearn_boltz.statistics.covariance._curvature import CHUNK

# A row with more completions than this is completed by as many draws; their seed, and the sweeps
# that lead to one where there are too many completions for a table.
N_COMPLETIONS, SEED, N_STEPS = 64, 0, 200


class CompletedRows(NamedTuple):
    """A problem of incomplete rows as one of weighted complete ones, a part of these at a time.

    Attributes
    ----------
    problem : PseudoLikelihood or Contrasts
    theta : ndarray of shape (n_parameters,)
        The estimate.
    describe : callable
        From a problem and a point to `Regressions`.
    parts : list of (ndarray, ndarray, ndarray or None, ndarray)
        Complete rows, how often each counts, where the completions of each row begin, and what each
        row contributes to the variance.
    """

    problem: object
    theta: np.ndarray
    describe: Callable
    parts: list

    @classmethod
    def of(cls, problem, theta, describe, rows, model):
        """Build from rows: codes (-1 is missing), how often each counts, `Regressions.squares`."""
        all_codes, all_weights, squares = rows
        _, squares = distinct_incomplete(*informative(all_codes, squares))
        codes, weights = distinct_incomplete(*informative(all_codes, all_weights))
        n_each = np.where(codes < 0, model.n_values, 1.0).prod(axis=1)
        is_drawn, has_gaps = n_each > N_COMPLETIONS, n_each > 1
        parts = [(codes[~has_gaps], weights[~has_gaps], None, squares[~has_gaps])]
        for enumerate_rows, these in (all_of, has_gaps & ~is_drawn), (drawn, is_drawn):
            size = len(theta) * int(n_each[these].max(initial=1))
            for some in slices_of_rows(these.sum(), min(size, len(theta) * N_COMPLETIONS), CHUNK):
                rows = (array[these][some] for array in (codes, weights, squares))
                parts.append(enumerate_rows(*rows, model))
        return cls(problem, theta, describe, [part for part in parts if len(part[0])])

    def __iter__(self):
        for problem, point, first, squares in self._points():
            yield self.describe(problem, point)._replace(first=first, squares=squares)

    def _points(self):
        """The problem of each part, without a penalty, at the estimate."""
        for rows, weights, first, squares in self.parts:
            problem = self.problem.of_rows(rows, weights)
            problem.set_alpha(0.0)
            yield problem, problem.at(self.theta.copy()), first, squares

    def information(self):
        """Minus the derivative of the expected scores."""
        total = np.zeros((len(self.theta),) * 2)
        for problem, point, first, _ in self._points():
            total += problem.information(point)
            if first is not None:
                regressions = self.describe(problem, point)._replace(first=first)
                total -= regressions.missing_information()
        return self.problem.penalised(total)


def all_of(codes, weights, squares, model):
    """Completions of distinct rows, their weights, where those of each row begin, and squares."""
    rows, owner, n_each = all_completions(codes, codes < 0, model.n_values)
    log_p = model.log_weight(rows)
    shares = np.exp(log_p - np.repeat(log_sums(log_p, n_each), n_each))
    weights = shares * np.repeat(weights[owner], n_each)
    return rows, weights, np.cumsum(n_each) - n_each, squares[owner]


def drawn(codes, weights, squares, model):
    """Draws of these completions."""
    rows, weights = draws(codes, weights, model, N_COMPLETIONS)
    order = np.arange(len(rows)).reshape(N_COMPLETIONS, -1).T.ravel()
    return rows[order], weights[order], np.arange(0, len(rows), N_COMPLETIONS), squares


def draws(codes, weights, model, n_draws):
    """Draws of each distinct row given its observed cells, and how often each counts."""
    data = IncompleteRows(codes, weights, model.n_values)
    described = CompletionModel(
        model.log_weight,
        lambda rows, generator: model.draws(rows, N_STEPS, generator),
    )
    found = data.draws(described, n_draws, np.random.default_rng(SEED))
    return np.concatenate(list(found)), np.tile(data.weights / n_draws, n_draws)
