"""Networks as distributions: what can be asked of them, whatever values columns have."""

import math
from copy import copy
from functools import cached_property, partial

import numpy as np
from scipy.sparse.csgraph import connected_components

from sklearn_boltz.networks.model import _incomplete
from sklearn_boltz.networks.model._enumeration import enumerate_rows
from sklearn_boltz.networks.model._gauge import frobenius_scores
from sklearn_boltz.networks.sampling._figures import thermal_figures
from sklearn_boltz.networks.sampling._sampling import (
    annealed_probabilities,
    gibbs_complete,
    gibbs_sample,
)
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import Workers

# Joint states of connected columns that are enumerated at most: for the normalising constant,
# marginals and exact samples.
MAX_STATES = 2**26


class DiscreteModel:
    """p(x) = exp(Σ_j h_j(x_j) + w(x)) / Z, where w holds pairs of columns and whatever else.

    Rows are codes, (n, d) integers: the place of each value among those of its column, and -1 for
    a missing cell. A child has its own layout of the parameters. It defines `fields`, `log_weight`,
    `log_conditionals`, `expectation`, `chains`, `given`, `scaled`, `like`, `potts`, `adjacency`,
    `log_linear`, `independent_log_sum` and `fill`; and for rows with missing cells `value_fields`
    and `joint_log_weights`.

    Parameters
    ----------
    coupling, intercept : ndarray of float64
    base : ndarray of float64, default=None
        Intercepts of independent columns, where annealing begins; None if nothing is annealed.

    Attributes
    ----------
    n_values : ndarray of int64 of shape (d,)
        Number of values of each column.
    is_pairwise : bool
        Whether w holds pairs alone.
    """

    is_pairwise = True
    terms, weights, potential = (), (), ()

    def __init__(self, coupling, intercept, base=None):
        self.coupling, self.intercept, self.base = coupling, intercept, base

    @cached_property
    def starts(self):
        """Where the values of each column begin in the one-hot layout, (d + 1,) int64."""
        return np.concatenate([[0], np.cumsum(self.n_values)])

    # The whole distribution, exactly.

    def is_enumerable(self):
        """Whether each set of connected columns has few enough joint states."""
        _, label = connected_components(self.adjacency(), directed=False)
        # log2 of the number of joint states of the columns with each label.
        bits = np.bincount(label, np.log2(self.n_values), minlength=1)
        return bool((bits <= math.log2(MAX_STATES)).all())

    def log_partition(self):
        """ln Z, exact."""
        exact, constant = self.log_linear
        return exact.log_partition() + constant

    def entropy(self):
        """-Σ_x p(x) ln p(x), exact where ln Z is, and otherwise an estimate."""
        if self.is_enumerable():
            return self.log_linear[0].entropy()
        return thermal_figures(self, 1.0, make_generator(0)).entropy[0]

    def cumulants(self, betas):
        """Exact ln Z_β, mean and variance of the log-weight of the models p(x)^β / Z_β, as rows."""
        exact, constant = self.log_linear
        found = exact.cumulants(betas)
        found[0] += np.multiply(betas, constant)
        found[1] += constant
        return found

    def marginal(self, columns):
        """Joint probabilities of some columns, an array with one axis for each; exact."""
        return self.log_linear[0].marginal(columns)

    def sample(self, n_samples, generator, n_steps=1000):
        """Independent rows: exact, or each from a chain of `n_steps` sweeps."""
        if self.is_enumerable():
            return self.log_linear[0].sample(n_samples, generator)
        return gibbs_sample(self, n_samples, n_steps, generator)

    @property
    def scale(self):
        """No log-weight is greater."""
        return float(np.abs(self.coupling).sum() + np.abs(self.intercept).sum())

    def tempered(self, temperature):
        """The model p(x)^(1/T) / Z_T."""
        # Colder than this, the sums would overflow; all mass is at the mode long before.
        scale = 1 / max(temperature, self.scale / 1e300)
        model = self.scaled(scale)
        model.base = None if self.base is None else min(1, scale) * self.base
        return model

    def begin(self, codes, generator):
        """Draw missing cells, where chains begin."""
        return self.fill(self.intercept, codes, generator)

    def draws(self, codes, n_steps, generator):
        """The states of chains that begin so, after `n_steps` sweeps over the missing cells."""
        return gibbs_complete(self, codes, n_steps, generator).codes

    def cells_by_chains(self, codes, n_steps, generator):
        """p(x_j = a | the observed cells) of missing cells, one-hot, from chains."""
        return annealed_probabilities(self, self.base, codes, n_steps, generator)

    # Rows, complete or not.

    def log_pseudo_likelihood(self, codes):
        """Σ ln p(x_j | the other observed cells) over the observed cells of each row."""
        log_p = self.log_conditionals_of_any(codes)
        rows, columns = np.nonzero(codes >= 0)
        own = log_p[rows, self.starts[columns] + codes[rows, columns]]
        return np.bincount(rows, own, minlength=len(codes)).astype(np.float64)

    def log_conditionals_of_any(self, codes):
        """ln p(x_j | the other observed cells) of all values in the one-hot layout, (n, Q)."""
        return by_completeness(
            codes, self.log_conditionals, partial(_incomplete.log_conditionals, self)
        )

    def log_sums(self, codes):
        """ln Σ exp(log_weight) over the completions of each row; for ln p, less ln Z."""
        return by_completeness(codes, self.log_weight, partial(_incomplete.log_sums, self))

    def complete(self, codes, how, generator, n_steps):
        """See `_incomplete.complete`."""
        return _incomplete.complete(self, codes, how, generator, n_steps)

    def column_probabilities(self, codes, column, n_steps, seed, bar=None):
        """See `_incomplete.column_probabilities`; the steps of a bar are blocks of rows."""
        with Workers(bar=bar) as workers:
            args = codes, column, n_steps, seed, workers
            return _incomplete.column_probabilities(self, *args)

    def cell_probabilities(self, codes, max_states, n_steps, generator):
        """See `_incomplete.cell_probabilities`."""
        return _incomplete.cell_probabilities(self, codes, max_states, n_steps, generator)

    def enumerated(self, codes, max_states):
        """Quantities computed from all joint states of the missing cells of each row.

        Returns
        -------
        p : ndarray of float64 of shape (n, Q)
            p(x_j = a | the observed cells) of missing cells; what stands for observed ones is of no
            use.
        log_sums : ndarray of float64 of shape (n,)
            ln of the sum over the missing cells, less the log-weight of the observed ones.
        is_exact : ndarray of bool of shape (n,)
            Whether the row had few enough states. If not, the other entries have no meaning.
        """
        if not self.is_pairwise:
            return _incomplete.enumerated(self, codes, max_states)
        p, log_sums = self.value_fields(codes), np.empty(len(codes))
        is_exact = np.empty(len(codes), dtype=bool)
        enumerate_rows(
            np.ascontiguousarray(codes, dtype=np.int32), p, self.potts.coupling, self.starts,
            self._coupled, max_states, log_sums, is_exact.view(np.uint8),
        )  # fmt: skip
        return p, log_sums, is_exact

    def estimated(self, row, column, n_steps, seed):
        """p(x_column | the observed cells) of a row with too many joint states, and its error."""
        found = None
        if self.is_pairwise:
            found = _incomplete.weighed(self.potts, row, column, self._strengths, seed)
        return found or _incomplete.annealed(self, row, column, n_steps, seed)

    def weighed_log_sum(self, row):
        """See `_incomplete.weighed_log_sum`."""
        return _incomplete.weighed_log_sum(self.potts, row, self._strengths, _incomplete.SEED)

    @cached_property
    def _strengths(self):
        return frobenius_scores(self.potts.coupling, self.n_values)

    @cached_property
    def _coupled(self):
        return self.adjacency().view(np.uint8)

    def log_softmax(self, fields):
        """Normalise the values of each column in the one-hot layout, in place."""
        return log_softmax(fields, self.starts)


class Chains:
    """States of many Gibbs chains, in arrays of a row for each that a child names in `arrays`.

    Random numbers are functions of (seed, sweep, row): `rows` has a row for each chain.
    """

    def sums(self, intercept, n_sweeps):
        """Sums of p(x_j = a | the others) of free cells over sweeps, one-hot, (n_chains, Q)."""
        total = 0.0
        for _ in range(n_sweeps):
            self.sweep(intercept)
            total = total + self.probabilities(intercept)
        return total

    def copy(self):
        """Chains with states of their own."""
        other = copy(self)
        for name in self.arrays:
            setattr(other, name, getattr(self, name).copy())
        return other

    def swap(self, other, chains):
        """Exchange the states of some chains with those of another population."""
        for name in self.arrays:
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[chains], theirs[chains] = theirs[chains], mine[chains]


def by_completeness(codes, of_complete, of_incomplete):
    """Apply one function to complete rows, and another to those with missing cells."""
    complete = (codes >= 0).all(axis=1)
    if complete.all():
        return of_complete(codes)
    found = of_complete(codes[complete])
    result = np.empty((len(codes), *found.shape[1:]))
    result[complete], result[~complete] = found, of_incomplete(codes[~complete])
    return result


def log_softmax(fields, starts):
    """Normalise the values of each column in the one-hot layout, in place."""
    first, sizes = starts[:-1], np.diff(starts)
    fields -= np.repeat(np.maximum.reduceat(fields, first, axis=-1), sizes, axis=-1)
    sums = np.add.reduceat(np.exp(fields), first, axis=-1)
    fields -= np.repeat(np.log(sums), sizes, axis=-1)
    return fields
