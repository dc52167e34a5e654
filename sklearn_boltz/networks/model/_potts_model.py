"""The pairwise network of categorical columns: the Potts model."""

from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.networks.model._categorical_gibbs import categorical_sweeps, draw_missing
from sklearn_boltz.networks.model._gauge import block_means, reduce_blocks, state_slices
from sklearn_boltz.networks.model._model import Chains, DiscreteModel
from sklearn_boltz.numerics._threads import slices_of_rows

# Fields of the values of rows that are computed at a time, where only sums of them are needed.
FIELDS = 2**18
# Columns with a dependence of at least so many nats, to the second order in their couplings and
# with uniform values, are drawn together: single ones would hardly move. Joint values of such a
# pair at most.
STRONG, MOST_VALUES = 0.25, 2**14
# Chains of a row that begin along strong couplings, and the share of their sweeps that does not
# count.
N_STARTS, NOT_COUNTED = 4, 0.25


class PottsModel(DiscreteModel):
    """p(x) = exp(Σ_j h_j(x_j) + Σ_{j<k} J_jk(x_j, x_k)) / Z, in the one-hot layout.

    Parameters
    ----------
    coupling : ndarray of shape (Q, Q)
        The blocks J_jk, (n_values[j], n_values[k]); symmetric, with diagonal blocks of zeros.
        Q is the sum of the numbers of values.
    intercept : ndarray of shape (Q,)
        The h_j, one after another.
    n_values : ndarray of int64 of shape (d,)
    base : ndarray of shape (Q,), default=None
        As of `DiscreteModel`.
    """

    def __init__(self, coupling, intercept, n_values, base=None):
        super().__init__(np.ascontiguousarray(coupling, dtype=np.float64), intercept, base)
        self.n_values = np.asarray(n_values, dtype=np.int64)

    def like(self, coupling, intercept):
        """A model of the same columns."""
        return PottsModel(coupling, intercept, self.n_values, self.base)

    def in_field(self, fields):
        """The model with something added to its intercepts, (Q,)."""
        return self.like(self.coupling, self.intercept + fields)

    def adjacency(self):
        """Which columns are coupled, (d, d) bool."""
        first = self.starts[:-1]
        if not len(first):
            return np.zeros((0, 0), dtype=bool)
        return reduce_blocks(np.logical_or, self.coupling != 0, first)

    def places(self, columns):
        """Where the values of some columns stand in the one-hot layout."""
        return np.concatenate(
            [np.arange(self.starts[j], self.starts[j + 1]) for j in columns] or [[]]
        ).astype(np.int64)

    def one_hot(self, codes):
        """Rows of 0 and 1, sparse, (n, Q); no 1 for a missing cell."""
        return one_hot(codes, self.starts)

    def fields(self, codes):
        """h_j(a) + Σ_k J_jk(a, x_k) over the observed cells of each row, (n, Q)."""
        return self.one_hot(codes) @ self.coupling + self.intercept

    value_fields = fields

    def log_weight(self, codes):
        """Σ_j h_j(x_j) + Σ_{j<k} J_jk(x_j, x_k) of each row, over its observed cells."""
        found = np.empty(len(codes))
        for some in slices_of_rows(len(codes), len(self.intercept), FIELDS):
            x = self.one_hot(codes[some])
            rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
            # Each row for itself: equal rows get equal bits.
            own = 0.5 * (x @ self.coupling)[rows, x.indices] + self.intercept[x.indices]
            found[some] = np.bincount(rows, own, minlength=x.shape[0])
        return found

    def log_conditionals(self, codes):
        """ln p(x_j = a | the others) of complete rows, (n, Q)."""
        return self.log_softmax(self.fields(codes))

    def expectation(self, codes):
        """Probabilities of the values given the other observed cells, (n, Q)."""
        return np.exp(self.log_conditionals_of_any(codes))

    def rates(self, codes, weights=None):
        """How often each value of each column occurs, (Q,), weighted."""
        weights = np.ones(len(codes)) if weights is None else weights
        return self.one_hot(codes).T @ weights / weights.sum()

    def rates_of_independent(self, base):
        """Rates of independent columns with the intercepts `base`."""
        return np.exp(self.log_softmax(base.copy()))

    def independent_intercept(self, log_p):
        """The intercepts of independent columns, from ln p of their values, (Q,)."""
        return log_p

    def given(self, columns, values):
        """The model of the other columns, given the values of some."""
        free = np.setdiff1d(np.arange(len(self.n_values)), columns)
        places = self.places(free)
        known = self.starts[columns] + values
        intercept = self.intercept[places] + self.coupling[np.ix_(places, known)].sum(axis=1)
        base = None if self.base is None else self.base[places]
        coupling = self.coupling[np.ix_(places, places)]
        return PottsModel(coupling, intercept, self.n_values[free], base)

    @property
    def potts(self):
        """The model itself."""
        return self

    def scaled(self, factor):
        """The model whose log-weights are multiplied by a factor."""
        return self.like(factor * self.coupling, factor * self.intercept)

    @cached_property
    def log_linear(self):
        """The model as a log-linear one, and what the logarithms of its weights lack."""
        inverse = block_diag(*(np.linalg.inv(local_basis(m)) for m in self.n_values.tolist()))
        coupling, single = inverse @ self.coupling @ inverse.T, inverse @ self.intercept
        first, column = self.starts[:-1], np.repeat(np.arange(len(self.n_values)), self.n_values)
        # The first function of each column is constant: a pair of it and another is that other.
        constant = single[first].sum() + coupling[np.ix_(first, first)].sum() / 2
        single = single + coupling[:, first].sum(axis=1)
        place = np.arange(len(column)) - first[column]
        both = self.adjacency()[column][:, column] & np.triu(np.outer(place, place) > 0)
        r, s = np.nonzero(both)
        alone, lines = np.flatnonzero(place), np.arange(len(r))
        basis = np.zeros((len(r) + len(alone), len(self.n_values)), dtype=np.int64)
        basis[lines, column[r]], basis[lines, column[s]] = place[r], place[s]
        basis[np.arange(len(alone)) + len(r), column[alone]] = place[alone]
        theta = np.concatenate([coupling[r, s], single[alone]])
        return LogLinearModel(self.n_values, basis, theta), float(constant)

    # Sampling.

    @cached_property
    def strengths(self):
        """How strongly each pair of columns is coupled, in nats, (d, d).

        That is the mutual information of the two alone, to the second order, if all values of
        each had the same probability: half the mean square of the couplings, zero-sum.
        """
        found = np.empty((len(self.n_values),) * 2)
        for j, own in enumerate(state_slices(self.n_values)):  # without copies of all couplings
            block = self.coupling[own]
            block = block - block.mean(axis=0)
            block -= np.repeat(block_means(block, self.n_values), self.n_values, axis=1)
            found[j] = block_means((block**2).mean(axis=0, keepdims=True), self.n_values)[0] / 2
        return found

    @cached_property
    def pairs(self):
        """The pairs of columns that chains draw together, the strongest first, (n_pairs, 2).

        A spanning forest of the strongly coupled ones: with all of them, sweeps take up to three
        times as long, and move no more cells.
        """
        can_be = np.outer(self.n_values, self.n_values) <= MOST_VALUES
        found = np.where(can_be & (self.strengths > STRONG), -self.strengths, 0.0)
        if not found.any():  # as in most rounds of small tables, where a search would cost more
            return np.empty((0, 2), dtype=np.int64)
        forest = minimum_spanning_tree(csr_array(found))
        pairs = np.column_stack(forest.nonzero()).astype(np.int64)
        return pairs[np.argsort(found[tuple(pairs.T)], kind="stable")]

    def chains(self, codes, seed, free=None):
        """Gibbs chains that begin at complete rows."""
        return PottsChains(self, codes, seed, free)

    def cells_by_chains(self, codes, n_steps, generator):
        """p(x_j = a | the observed cells) of missing cells, one-hot, from chains.

        A few for each row, `n_steps` together, that begin along strong couplings. Where they draw
        strongly coupled pairs at once, cells that were hidden are predicted as well as by annealed
        chains of four times as many sweeps.
        """
        rows, n_sweeps = np.repeat(codes, N_STARTS, axis=0), max(1, n_steps // N_STARTS)
        n_first = int(NOT_COUNTED * n_sweeps)
        sums = np.zeros((len(rows), len(self.intercept)))
        self.draws(rows, n_sweeps, generator, n_first, sums)
        return sums.reshape(len(codes), N_STARTS, -1).mean(axis=1) / (n_sweeps - n_first)

    def independent_log_sum(self, base, row):
        """ln Σ exp Σ_j h_j(x_j) over the missing cells of a row, with h = `base`."""
        first = self.starts[:-1]
        log_p = self.log_softmax(base.copy())
        own = base[first + np.maximum(row, 0)]
        return np.where(row < 0, base[first] - log_p[first], own).sum()

    def begin(self, codes, generator):
        """Draw missing cells one after another, each from its conditional given what is known.

        Each time that one which is most strongly coupled to a known one: chains that begin so are
        not stuck where strongly coupled cells agree with each other, but not with the rest.
        """
        return self.draws(codes, 0, generator)

    def draws(self, codes, n_steps, generator, n_first=0, sums=None):
        """The states of chains that begin so, after some sweeps.

        To `sums`, one-hot, p(x_j = a | the others) of missing cells is added from the sweep
        `n_first` on.
        """
        drawn, rows = np.array(codes, dtype=np.int32, order="C"), np.arange(len(codes))
        draw_missing(
            drawn, self.coupling, self.intercept, self.starts, self.strengths, self.pairs,
            np.empty(room(self.n_values, self.pairs)), int(generator.integers(2**63)),
            rows.astype(np.uint64), n_steps, n_first, sums,
        )  # fmt: skip
        return drawn

    def fill(self, base, codes, generator):
        """Draw missing cells from independent columns with the intercepts `base`."""
        uniform, drawn = generator.random(codes.shape), np.empty(codes.shape, dtype=np.int32)
        p = self.rates_of_independent(base)
        for j, m in enumerate(self.n_values):
            cumulated = np.cumsum(p[self.starts[j] : self.starts[j + 1]])
            places = np.searchsorted(cumulated, uniform[:, j] * cumulated[-1], side="right")
            drawn[:, j] = np.minimum(places, m - 1)
        return np.where(codes < 0, drawn, codes)


class PottsChains(Chains):
    """States of many Gibbs chains with their local fields.

    Parameters
    ----------
    model : PottsModel
    codes : ndarray of int of shape (n_chains, d)
        The initial states.
    seed : int
        Key of the random numbers.
    free : ndarray of bool of shape (n_chains, d), default=None
        Which entries may change. None for all.
    """

    arrays = ("codes", "local")

    def __init__(self, model, codes, seed, free=None):
        self.model, self.seed, self.n_sweeps = model, seed, 0
        self.codes = np.array(codes, dtype=np.int32, order="C")
        self.free = np.ones(codes.shape, dtype=np.uint8) if free is None else free.view(np.uint8)
        self.local = np.ascontiguousarray(model.one_hot(self.codes) @ model.coupling)
        self.rows = np.arange(len(codes), dtype=np.uint64)

    def sweep(self, intercept, n_sweeps=1, scale=1.0, sums=None):
        """Resample all free cells with couplings times `scale`: strong pairs, then each cell.

        To `sums`, in the one-hot layout, p(x_j = a | the others) of free cells is added.
        """
        model = self.model
        # The first pairs: those that are strong with these couplings.
        pairs = model.pairs[scale**2 * model.strengths[tuple(model.pairs.T)] > STRONG]
        categorical_sweeps(
            self.codes, self.local, model.coupling, np.ascontiguousarray(intercept), model.starts,
            scale, pairs, self.free, np.empty(room(model.n_values, pairs)), self.seed,
            self.n_sweeps, n_sweeps, self.rows, sums,
        )  # fmt: skip
        self.n_sweeps += n_sweeps

    def sums(self, intercept, n_sweeps):
        """Sums of p(x_j = a | the others) of free cells, as they are drawn; 0 for others."""
        sums = np.zeros_like(self.local)
        self.sweep(intercept, n_sweeps, sums=sums)
        return sums

    def log_weight(self, intercept):
        """Σ_j h_j(x_j) + Σ_{j<k} J_jk(x_j, x_k) of each state."""
        places = self.codes + self.model.starts[:-1]
        local = np.take_along_axis(self.local, places, axis=1)
        return (0.5 * local + intercept[places]).sum(axis=1)

    def field_weight(self, intercept):
        """Σ_j h_j(x_j) of each state."""
        return intercept[self.codes + self.model.starts[:-1]].sum(axis=1)

    def probabilities(self, intercept):
        """p(x_j = a | the others) in the one-hot layout, (n_chains, Q)."""
        return np.exp(self.model.log_softmax(self.local + intercept))


def one_hot(codes, starts):
    """Rows of 0 and 1, sparse, (n, Q); no 1 for a missing cell."""
    known = codes >= 0
    indices = (codes + starts[:-1])[known]
    indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    return csr_array((np.ones(len(indices)), indices, indptr), (len(codes), starts[-1]))


def room(n_values, pairs):
    """Numbers that sweeps which draw some pairs together need room for."""
    first, second = n_values[pairs.T]
    return 3 * n_values.max(initial=1) + int((first * (second + 1)).sum())


def local_basis(m):
    """The ±1 basis functions of a column, (m values, m functions)."""
    values = np.arange(m)[:, None]
    return StateSpace([m]).signs(values, values).astype(np.float64)
