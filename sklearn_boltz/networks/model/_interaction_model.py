"""Binary columns with interactions of any order, and a potential of the number of ones."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.loglinear._factor import Factor
from sklearn_boltz.networks.model._interaction_gibbs import (
    add_term_fields,
    interaction_sweeps,
    sum_terms,
)
from sklearn_boltz.networks.model._joint import Joint
from sklearn_boltz.networks.model._spin_model import (
    BinaryModel,
    Flipped,
    SpinChains,
    SpinModel,
    to_spins,
)


class Terms(NamedTuple):
    """Interactions of three columns and more, as the kernels want them.

    Attributes
    ----------
    starts : ndarray of int64 of shape (n_terms + 1,)
        Where the columns of each term begin in `members`.
    members : ndarray of int64
        The columns of all terms, one term after another.
    weights : ndarray of float64 of shape (n_terms,)
    """

    starts: np.ndarray
    members: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, terms, weights):
        """From tuples of columns."""
        orders = [len(term) for term in terms]
        members = np.array([j for term in terms for j in term], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(orders, dtype=np.int64)])
        return cls(starts, members, np.array(weights, dtype=np.float64))

    @property
    def orders(self):
        """Number of columns of each term."""
        return np.diff(self.starts)

    def by_column(self, d):
        """Where the terms of each column begin, (d + 1,), and these terms."""
        terms = np.repeat(np.arange(len(self.weights)), self.orders)
        order = np.argsort(self.members, kind="stable")
        counts = np.bincount(self.members, minlength=d)
        return np.concatenate([[0], np.cumsum(counts)]), terms[order]

    def weighted(self, weights):
        """The same terms with other weights."""
        return self._replace(weights=weights)

    def sums(self, spins):
        """Σ_t θ_t ∏_{i ∈ t} x_i of each row."""
        sums = np.empty(len(spins))
        sum_terms(spins, *self, sums)
        return sums


class InteractionModel(BinaryModel):
    """p(x) = exp(½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x))) / Z with x in {-1, 1}^d.

    K is the number of ones. With V and without terms of three, it is the K-pairwise model [1]_.

    Parameters
    ----------
    coupling : ndarray of shape (d, d)
        M, symmetric with a zero diagonal.
    intercept : ndarray of shape (d,)
        b.
    terms : sequence of tuples of int
        Of three and more different columns each.
    weights : array-like of shape (n_terms,)
        θ.
    potential : array-like of shape (d + 1,), default=None
        V(0), ..., V(d). None for 0.

    References
    ----------
    .. [1] G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
       Neurons", PLoS Computational Biology 10(1), e1003408, 2014, eq. 5.
       https://doi.org/10.1371/journal.pcbi.1003408
    """

    def __init__(self, coupling, intercept, terms=(), weights=(), potential=None):
        super().__init__(coupling, intercept)
        self.terms = [tuple(map(int, term)) for term in terms]
        self.arrays = Terms.of(self.terms, weights)
        d = len(intercept)
        self.potential = np.zeros(d + 1) if potential is None else np.array(potential, float)
        self.pairs = SpinModel(coupling, intercept)

    @property
    def weights(self):
        """θ, the weights of the terms."""
        return self.arrays.weights

    def scaled(self, factor):
        """The model whose log-weights are multiplied by a factor."""
        return InteractionModel(
            factor * self.coupling,
            factor * self.intercept,
            self.terms,
            factor * self.weights,
            factor * self.potential,
        )

    @property
    def scale(self):
        """No log-weight is greater."""
        return super().scale + float(np.abs(self.weights).sum() + np.abs(self.potential).max())

    def adjacency(self):
        """Which columns share a pair or a term, or the potential, (d, d) bool."""
        adjacency = self.coupling != 0
        for term in self.terms:
            adjacency[np.ix_(term, term)] = True
        adjacency |= self.potential.any()
        np.fill_diagonal(adjacency, False)
        return adjacency

    # Rows. In those with missing cells, only the observed cells count, without the potential.

    def fields(self, codes):
        """What flipping each column to 1 adds to the log-weight, halved, (n, d)."""
        spins, fields = to_spins(codes), self.pairs.fields(codes)
        add_term_fields(spins, *self.arrays, fields)
        fields += np.where(is_complete(codes), self.count_fields(spins > 0), 0)
        return fields

    def log_weight(self, codes):
        """½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x)) of each row."""
        spins = to_spins(codes)
        weight = self.pairs.log_weight(codes) + self.arrays.sums(spins)
        return weight + np.where(is_complete(codes)[:, 0], self.potential[count_ones(spins > 0)], 0)

    def count_fields(self, ones):
        """(V(k + 1) - V(k)) / 2 with k the number of other columns at 1, (n, d)."""
        return self.steps[count_ones(ones)[:, np.newaxis] - ones]

    @cached_property
    def steps(self):
        """(V(k + 1) - V(k)) / 2 for k = 0, ..., d - 1."""
        return np.diff(self.potential) / 2

    def given(self, columns, values):
        """The model of the other columns, given the values of some."""
        d, signs = len(self.intercept), dict(zip(columns, 2 * np.asarray(values) - 1, strict=True))
        free = np.setdiff1d(np.arange(d), columns)
        place = {j: k for k, j in enumerate(free.tolist())}
        pairs, theta = self.pairs.given(columns, values), {}
        coupling, intercept = pairs.coupling.copy(), pairs.intercept.copy()
        for term, weight in zip(self.terms, self.weights, strict=True):
            weight = weight * np.prod([signs.get(j, 1) for j in term])
            rest = tuple(place[j] for j in term if j in place)
            if len(rest) > 2:
                theta[rest] = theta.get(rest, 0) + weight
            elif len(rest) == 2:
                coupling[rest] += weight
                coupling[rest[::-1]] += weight
            elif rest:
                intercept[rest] += weight
        ones = int(np.sum(values))
        potential = self.potential[ones : ones + len(free) + 1]
        return InteractionModel(coupling, intercept, theta, list(theta.values()), potential)

    def value_fields(self, codes):
        """What the observed cells add to the log-weights of all values, (n, 2 d)."""
        return np.kron(self.fields(codes), [-1.0, 1.0])

    def joint(self, codes, fields, columns):
        """The joint states of connected missing columns."""
        return InteractionJoint(self, codes, columns)

    @cached_property
    def log_linear(self):
        """The model as a log-linear one of the codes, and a constant: 0."""
        pairs = self.pairs.log_linear[0].model
        basis = np.zeros((len(self.terms), len(self.intercept)), dtype=np.int64)
        for line, term in zip(basis, self.terms, strict=True):
            line[list(term)] = 1
        basis = np.concatenate([pairs.basis, basis])
        theta = np.concatenate([pairs.theta, self.weights])
        if self.potential.any():
            return Flipped(CountModel(basis, theta, self.potential[::-1])), 0.0
        return Flipped(LogLinearModel(self.n_values, basis, theta)), 0.0

    def chains(self, codes, seed, free=None):
        """Gibbs chains that begin at complete rows."""
        return InteractionChains(self, to_spins(codes), seed, free)


def is_complete(codes):
    """Whether a row has all cells, (n, 1)."""
    return (codes >= 0).all(axis=1, keepdims=True)


def count_ones(ones):
    """The number of ones of each row."""
    return ones.sum(axis=1, dtype=np.int64)


def ones_of_states(k):
    """The number of ones of all states of k columns, (2**k,)."""
    counts = np.zeros(1, dtype=np.int64)
    for _ in range(k):
        counts = np.concatenate([counts, counts + 1])
    return counts


class InteractionJoint(Joint):
    """Joint states of some missing columns that nothing but the observed ones connects with more.

    Parameters
    ----------
    model : InteractionModel
    codes : ndarray of int of shape (n_rows, d)
        Rows that miss the same cells.
    columns : ndarray of int of shape (k,)
    """

    def __init__(self, model, codes, columns):
        self.model, self.codes = model, codes
        super().__init__(model, columns, self._log_weights(columns))

    def _log_weights(self, columns):
        """Terms are Walsh functions of the states: one transform sums all of them."""
        model, k = self.model, len(columns)
        # The last column is the fastest.
        bit = {j: 1 << (k - 1 - place) for place, j in enumerate(columns.tolist())}
        table, bits = np.zeros((len(self.codes), 1 << k)), np.array(list(bit.values()))
        table[:, bits] = model.pairs.fields(self.codes)[:, columns]
        i, j = np.triu_indices(k, 1)
        table[:, bits[i] + bits[j]] = model.coupling[columns[i], columns[j]]
        spins = to_spins(self.codes)
        for term, weight in zip(model.terms, model.weights, strict=True):
            own = sum(bit.get(j, 0) for j in term)
            if own:
                table[:, own] += weight * spins[:, [j for j in term if j not in bit]].prod(axis=1)
        StateSpace([2] * k).synthesize(table)
        # In the transform the bit 0 stands for 1.
        table = table[:, ::-1]
        if model.potential.any():
            observed = count_ones(self.codes > 0)[:, np.newaxis]
            table = table + model.potential[observed + ones_of_states(k)]
        return table

    def gains(self, codes, observed):
        """What these columns add to the fields of observed ones, themselves summed out.

        See `Joint.gains`.
        """
        rows, near = np.arange(len(codes)), self.model.adjacency()[:, self.columns].any(axis=1)
        for j in observed:
            if not near[j]:
                continue
            flipped = codes.copy()
            flipped[:, j] = 1 - codes[:, j]
            other, gain = (
                InteractionJoint(self.model, flipped, self.columns),
                np.zeros((len(rows), 2)),
            )
            gain[rows, flipped[:, j]] = other.log_partition() - self.log_partition()
            yield np.array([2 * j, 2 * j + 1]), gain


class CountFactor(Factor):
    """Binary columns with terms, and a potential of the number of columns in state 1.

    Parameters
    ----------
    basis : ndarray of int64 of shape (n_basis, d)
        The terms.
    theta : ndarray of float64 of shape (n_basis,)
        Their weights.
    potential : ndarray of float64 of shape (d + 1,)
    """

    def __init__(self, basis, theta, potential):
        super().__init__(np.full(basis.shape[1], 2), basis, theta)
        self.potential = potential
        self._ones = ones_of_states(self.block_size.bit_length() - 1)

    def log_weights(self, block):
        """The logarithms of the weights of the states of one block."""
        ones = self._ones + block.bit_count()
        return super().log_weights(block) + self.potential[ones]


class CountModel(LogLinearModel):
    """The distribution of a `CountFactor`, in which all columns are connected."""

    def __init__(self, basis, theta, potential):
        super().__init__(np.full(basis.shape[1], 2), basis, theta)
        self.potential = potential

    def factors(self):
        """Yield all variables and their factor."""
        factor = CountFactor(self.basis, self.theta, self.potential)
        yield np.arange(self.basis.shape[1]), factor

    def entropy(self):
        """-Σ_x p(x) ln p(x)."""
        log_partition, weight, _ = self.cumulants([1.0])[:, 0]
        return float(log_partition - weight)


class InteractionChains(SpinChains):
    """States of many Gibbs chains with their local fields, those of pairs and terms.

    Parameters
    ----------
    model : InteractionModel
    spins : ndarray of float64 of shape (n_chains, d)
        ±1; changed in place.
    seed : int
        Key of the random numbers.
    free : ndarray of bool of shape (n_chains, d), default=None
        Which entries may change. None for all.
    """

    def __init__(self, model, spins, seed, free=None):
        super().__init__(spins, model.coupling, seed, free)
        self.model = model
        self._by_column = model.arrays.by_column(spins.shape[1])
        add_term_fields(spins, *model.arrays, self.local)

    def sweep(self, intercept, n_sweeps=1, scale=1.0):
        """Resample all free spins, one after another, with all but intercepts times `scale`."""
        interaction_sweeps(
            self.spins, self.local, self.coupling, *self.model.arrays, *self._by_column,
            self.model.steps, np.ascontiguousarray(intercept), scale, self.free, self.seed,
            self.n_sweeps, n_sweeps, self.first_row,
        )  # fmt: skip
        self.n_sweeps += n_sweeps

    def log_weight(self, intercept):
        """½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x)) of each state."""
        # In the sum of xᵢ times its local field, a term of order k is counted k times.
        arrays = self.model.arrays
        excess = arrays.weighted(arrays.weights * (1 - arrays.orders / 2))
        potential = self.model.potential[count_ones(self.spins > 0)]
        return super().log_weight(intercept) + excess.sums(self.spins) + potential

    def means(self, intercept):
        """The means of ±1 given the others, (n_chains, d)."""
        return np.tanh(self.local + self.model.count_fields(self.spins > 0) + intercept)
