"""What is fitted where some columns have more than two values: the values that occur."""

import numpy as np

from sklearn_boltz.fully_visible._categorical import (
    CategoricalPseudoLikelihood,
    independent_intercept,
    state_counts,
)
from sklearn_boltz.fully_visible._existence import without_maximum
from sklearn_boltz.fully_visible._contrasts import Contrasts
from sklearn_boltz.fully_visible._gauge import block_means, state_offsets, to_zero_sum
from sklearn_boltz.fully_visible._lbfgs import maximise_lbfgs
from sklearn_boltz.fully_visible._potts_model import PottsModel
from sklearn_boltz.fully_visible._solvers import MAX_NEWTON_PARAMETERS, newton


class CategoricalTask:
    """What `Task` is, of categorical columns. Values that never occur are known without a fit.

    Parameters
    ----------
    codes : ndarray of int of shape (n_distinct, d)
        Distinct rows; -1 for a missing cell.
    counts : ndarray of shape (n_distinct,)
        How often each counts.
    n_values : ndarray of int of shape (d,)
    alpha : float
        Strength of the penalty per row.

    Attributes
    ----------
    varying : ndarray of int
        The columns of which more than one value occurs.
    base : ndarray of shape (Q,)
        Intercepts of independent columns, for the data and one more observation spread evenly.
    seen : (ndarray, ndarray)
        The rows and how often each counts.
    """

    def __init__(self, codes, counts, n_values, alpha):
        self.seen, self.alpha = (codes, counts), alpha
        starts = state_offsets(n_values)
        found = state_counts(codes, starts, counts)
        self.base = independent_intercept(found, n_values)
        self._n_values, self._starts = n_values, starts
        n_occurring = np.add.reduceat(found > 0, starts[:-1])
        self.varying = np.flatnonzero(n_occurring > 1)
        self._kept = n_occurring[self.varying]
        column = np.repeat(np.arange(len(n_values)), n_values)
        # Where the values that are fitted stand among all.
        self._places = np.flatnonzero((found > 0) & (n_occurring > 1)[column])
        self.problem = self._problem(self._reduced(codes), counts)

    def _reduced(self, codes):
        """The columns that vary, with the values that occur counted from 0."""
        number = np.full(self._starts[-1] + 1, -1, dtype=codes.dtype)
        first = np.repeat(state_offsets(self._kept)[:-1], self._kept)
        number[self._places] = np.arange(len(self._places)) - first
        cells = codes[:, self.varying]
        places = np.where(cells < 0, self._starts[-1], cells + self._starts[:-1][self.varying])
        return number[places]

    def _problem(self, codes, counts):
        return CategoricalPseudoLikelihood(
            codes,
            self._kept,
            counts,
            # For binary columns, the penalty of `PseudoLikelihood`.
            coupling_penalty=self.alpha * counts.sum() / 8,
            zero_sum=bool((codes < 0).any()),
        )

    def rows(self):
        """The rows of the columns that vary, -1 for a missing cell, and how often each counts."""
        codes, counts = self.seen
        return self._reduced(codes), counts

    def n_values(self):
        """Number of values of the columns that vary."""
        return self._kept

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        return self._problem(rows.astype(np.int16), counts)

    def at(self, problem, coupling, intercept):
        """The point of an objective at couplings and intercepts as its points have them."""
        return problem.at(np.concatenate([intercept, coupling]))

    def model(self, coupling, intercept):
        """The distribution of the columns that vary."""
        theta = np.concatenate([intercept, coupling])
        return PottsModel(*self.problem.unpack(theta), self._kept)

    def initial(self, coupling, intercept):
        """Where to begin: parameters of all columns, None for those of independent columns."""
        places = self._places
        couplings = np.zeros((len(places),) * 2)
        if coupling is not None:
            couplings = coupling[np.ix_(places, places)]
        intercepts = (self.base if intercept is None else intercept)[places]
        theta = self.problem.pack(*to_zero_sum(couplings, intercepts, self._kept))
        return theta[len(places) :], theta[: len(places)]

    def whole(self, coupling, intercept):
        """Parameters of all columns in the zero-sum gauge, from those of what was fitted."""
        theta = np.concatenate([intercept, coupling])
        if self.problem.zero_sum:
            theta = self.problem.centered(theta)
        couplings, intercepts = to_zero_sum(*self.problem.unpack(theta), self._kept)
        whole = np.zeros((self._starts[-1],) * 2)
        whole[np.ix_(self._places, self._places)] = couplings
        return whole, self._whole_intercepts(intercepts)

    def _whole_intercepts(self, intercepts):
        """A value that never occurs differs from the others as if columns were independent."""
        offset = block_means(self.base[self._places][None], self._kept)[0]
        whole = self.base.copy()
        column = np.repeat(np.arange(len(self._n_values)), self._n_values)
        offsets = np.zeros(len(self._n_values))
        offsets[self.varying] = offset
        whole -= offsets[column]
        whole[self._places] = intercepts
        return whole - block_means(whole[None], self._n_values)[0, column]

    def mean_of_constant_columns(self):
        """What the constant columns add to the mean log pseudo-likelihood of a row."""
        codes, counts = self.seen
        model = PottsModel(np.zeros((self._starts[-1],) * 2), self.base, self._n_values)
        log_p = model.log_softmax(self.base.copy())
        total = 0.0
        for j in np.setdiff1d(np.arange(len(self._n_values)), self.varying):
            known = codes[:, j] >= 0
            total += counts[known] @ log_p[self._starts[j] + codes[known, j]]
        return total / counts.sum()

    def no_maximum(self, label):
        """Why the pseudo-likelihood has no maximum, or None if it may have."""
        if self.alpha > 0 or not len(self.varying):
            return None
        pairs = self._never_together()
        if not pairs:
            return None
        (j, a), (k, b) = pairs[0]
        more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
        reason = f"{label(j)} = {a} never occurs together with {label(k)} = {b}{more}"
        return without_maximum(reason)

    def _never_together(self):
        """Pairs of a column and a value that occur, but never in one row."""
        codes, counts = self.seen
        model = PottsModel(np.zeros((0, 0)), np.zeros(0), self._n_values)
        x = model.one_hot(codes)
        together = (x.T @ x).toarray()[np.ix_(self._places, self._places)]
        column = np.repeat(self.varying, self._kept)
        first, second = np.nonzero(np.triu(together == 0) & (column[:, None] != column))
        values = self._places - self._starts[:-1][column]

        def named(place):
            return int(column[place]), int(values[place])

        return [(named(i), named(j)) for i, j in zip(first, second, strict=True)]

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        found = self.no_maximum(label)
        if found is None and monitor.status == "max_iter":
            return (
                f"The fit ended at max_iter={monitor.max_iter}, while the log pseudo-likelihood "
                f"still rose by {monitor.rise:.2g} an iteration. Raise max_iter, or draw the "
                "maximum nearer by alpha > 0."
            )
        return found

    def choose_solver(self, name, step_size=1.0):
        """The solver that runs, and its name."""
        free = self._kept - 1
        n_parameters = free.sum() + (free.sum() ** 2 - (free**2).sum()) // 2
        if name in ("bslm", "ga"):
            raise ValueError(
                f"solver={name!r} is for binary columns, and some have more values. Use "
                "solver='newton' or 'lbfgs'."
            )
        if name == "newton" and n_parameters <= MAX_NEWTON_PARAMETERS:
            return name, by_contrasts
        return "lbfgs", by_lbfgs


def by_contrasts(problem, point, monitor):
    """Newton's method in coordinates of full rank."""
    contrasts = Contrasts(problem)
    z = contrasts.pack(*to_zero_sum(*problem.unpack(point.theta), problem.n_values))
    return newton(contrasts, contrasts.at(z), monitor)


def by_lbfgs(problem, point, monitor):
    """Limited-memory BFGS."""
    return maximise_lbfgs(problem, point, monitor), None
