"""Networks of binary columns: the Ising model, with interactions of any order if wanted."""

from functools import cached_property

import numpy as np

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.loglinear._factor import Factor
from sklearn_boltz.networks.model._gibbs import gibbs_sweeps, row_fields
from sklearn_boltz.networks.model._interaction_gibbs import (
    add_term_fields,
    interaction_sweeps,
    sum_terms,
)
from sklearn_boltz.networks.model._model import Chains, DiscreteModel
from sklearn_boltz.networks.model._potts_model import PottsModel


def term_arrays(terms, weights):
    """Terms as the kernels want them: where the columns of each begin, all of them, and weights."""
    members = np.array([j for term in terms for j in term], dtype=np.int64)
    starts = np.cumsum([0, *map(len, terms)], dtype=np.int64)
    return starts, members, np.array(weights, dtype=np.float64)


class SpinModel(DiscreteModel):
    """p(x) = exp(c + ½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x))) / Z with x in {-1, 1}^d.

    The codes are 0 and 1; K is the number of ones. With V and without terms of three, it is the
    K-pairwise model [1]_; without both, the Ising model.

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
    constant : float, default=0.0
        c, which changes energies and Z, and no probability.
    base : ndarray of shape (d,), default=None
        As of `DiscreteModel`.

    References
    ----------
    .. [1] G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
       Neurons", PLoS Computational Biology 10(1), e1003408, 2014, eq. 5.
       https://doi.org/10.1371/journal.pcbi.1003408
    """

    def __init__(
        self, coupling, intercept, terms=(), weights=(), potential=None, *, constant=0.0, base=None
    ):
        super().__init__(coupling, intercept, base)
        self.constant = constant
        self.terms = [tuple(map(int, term)) for term in terms]
        self.arrays, self.n_values = term_arrays(self.terms, weights), np.full(len(intercept), 2)
        potential = np.zeros(len(intercept) + 1) if potential is None else potential
        self.weights, self.potential = self.arrays[2], np.array(potential, dtype=np.float64)
        # (V(k + 1) - V(k)) / 2 for k = 0, ..., d - 1.
        self.steps = np.diff(self.potential) / 2
        self.is_pairwise = not (self.terms or self.potential.any())

    def scaled(self, factor):
        """The model whose log-weights are multiplied by a factor."""
        parts = self.coupling, self.intercept, self.weights, self.potential
        coupling, intercept, weights, potential = (factor * part for part in parts)
        constant = factor * self.constant
        return SpinModel(coupling, intercept, self.terms, weights, potential, constant=constant)

    @property
    def scale(self):
        """No log-weight is greater."""
        further = np.abs(self.weights).sum() + np.abs(self.potential).max()
        return super().scale + float(further + abs(self.constant))

    def adjacency(self):
        """Which columns share a pair or a term, or the potential, (d, d) bool."""
        adjacency = self.coupling != 0
        for term in self.terms:
            adjacency[np.ix_(term, term)] = True
        adjacency |= self.potential.any()
        np.fill_diagonal(adjacency, False)
        return adjacency

    def places(self, columns):
        """Where the intercepts of some columns stand."""
        return columns

    # Rows. In those with missing cells, only the observed cells count, without the potential.

    def pair_fields(self, spins):
        """M x + b of each row, (n, d)."""
        fields = np.empty_like(spins)
        row_fields(spins, np.ascontiguousarray(self.coupling), self.intercept, fields)
        return fields

    def fields(self, codes):
        """Half the change of the log-weight when each column flips to 1, (n, d)."""
        spins = to_spins(codes)
        fields = self.pair_fields(spins)
        if not self.is_pairwise:
            add_term_fields(spins, *self.arrays, fields)
            fields += np.where(is_complete(codes), self.count_fields(spins), 0)
        return fields

    def log_weight(self, codes):
        """c + ½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x)) of each row."""
        spins = to_spins(codes)
        weight = pair_weight(spins, self.pair_fields(spins) - self.intercept, self.intercept)
        weight += self.constant
        if self.is_pairwise:
            return weight
        weight += self.term_sums(spins)
        return weight + np.where(is_complete(codes)[:, 0], self.potential[count_ones(spins)], 0)

    def term_sums(self, spins, factors=1.0):
        """Σ_t θ_t ∏_{i ∈ t} x_i of each row, with factors of the terms."""
        (starts, members, weights), sums = self.arrays, np.empty(len(spins))
        sum_terms(spins, starts, members, weights * factors, sums)
        return sums

    def count_fields(self, spins):
        """(V(k + 1) - V(k)) / 2 with k the number of other columns at 1, (n, d)."""
        return self.steps[count_ones(spins)[:, np.newaxis] - (spins > 0)]

    def log_conditionals(self, codes):
        """ln p(x_j = a | the others) of complete rows in the one-hot layout, (n, 2 d)."""
        twice = 2 * self.fields(codes)
        both = np.stack([-np.logaddexp(0, twice), -np.logaddexp(0, -twice)], axis=2)
        return both.reshape(len(codes), 2 * codes.shape[1])

    def log_pseudo_likelihood(self, codes):
        """Σ ln p(x_j | the other observed cells) over the observed cells of each row."""
        if (codes < 0).any():
            return super().log_pseudo_likelihood(codes)
        return -np.logaddexp(0, -2 * to_spins(codes) * self.fields(codes)).sum(axis=1)

    def expectation(self, codes):
        """Conditional expectations of ±1 given the other observed cells, (n, d)."""
        if (codes < 0).any():
            p = np.exp(self.log_conditionals_of_any(codes))
            return p[:, 1::2] - p[:, ::2]
        return np.tanh(self.fields(codes))

    def value_fields(self, codes):
        """Contribution of the observed cells to the log-weights of all values, (n, 2 d)."""
        if self.is_pairwise:
            return self.potts.fields(codes)
        return np.kron(self.fields(codes), [-1.0, 1.0])

    def joint_log_weights(self, codes, columns):
        """Log-weights of all joint states of missing columns, connected to no others; see `Joint`.

        Terms are Walsh functions of the states: one transform sums all of them.
        """
        k = len(columns)
        # The last column is the fastest.
        bit = {j: 1 << (k - 1 - place) for place, j in enumerate(columns.tolist())}
        table, bits = np.zeros((len(codes), 1 << k)), np.array(list(bit.values()))
        spins = to_spins(codes)
        table[:, bits] = self.pair_fields(spins)[:, columns]
        i, j = np.triu_indices(k, 1)
        table[:, bits[i] + bits[j]] = self.coupling[columns[i], columns[j]]
        for term, weight in zip(self.terms, self.weights, strict=True):
            own = sum(bit.get(j, 0) for j in term)
            if own:
                table[:, own] += weight * spins[:, [j for j in term if j not in bit]].prod(axis=1)
        StateSpace([2] * k).synthesize(table)
        # In the transform the bit 0 stands for 1.
        table = table[:, ::-1]
        if self.potential.any():
            table = table + self.potential[count_ones(spins)[:, np.newaxis] + ones_of_states(k)]
        return table

    # Other models.

    @cached_property
    def potts(self):
        """The part with pairs in the layout of categorical columns."""
        coupling = np.kron(self.coupling, [[1.0, -1.0], [-1.0, 1.0]])
        base = None if self.base is None else np.kron(self.base, [-1.0, 1.0])
        return PottsModel(coupling, np.kron(self.intercept, [-1.0, 1.0]), self.n_values, base)

    def given(self, columns, values):
        """The model of the other columns, given the values of some."""
        free = np.setdiff1d(np.arange(len(self.intercept)), columns)
        coupling = self.coupling[np.ix_(free, free)]
        intercept = self.intercept[free] + self.coupling[np.ix_(free, columns)] @ (2 * values - 1)
        signs, theta = dict(zip(columns, 2 * np.asarray(values) - 1, strict=True)), {}
        place = {j: k for k, j in enumerate(free.tolist())}
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
        further = theta, list(theta.values()), potential
        base = None if self.base is None else self.base[free]
        return SpinModel(coupling, intercept, *further, constant=self.constant, base=base)

    @cached_property
    def log_linear(self):
        """The model as a log-linear one of the codes, and c."""
        d = len(self.intercept)
        pairs = np.argwhere(np.triu(self.coupling))
        terms = [*np.arange(d)[:, None].tolist(), *pairs.tolist(), *self.terms]
        theta = np.concatenate([self.intercept, self.coupling[tuple(pairs.T)], self.weights])
        return LogLinearSpins(terms_of(terms, d), theta, self.potential[::-1]), self.constant

    # Independent columns with the intercepts `base`, and sampling.

    def rates(self, codes, weights=None):
        """The mean of each column's code, weighted."""
        return np.average(codes, axis=0, weights=weights)

    def rates_of_independent(self, base):
        """Rates of independent columns with the intercepts `base`."""
        return (1 + np.tanh(base)) / 2

    def independent_intercept(self, log_p):
        """The intercepts of independent columns, from ln p of their values, (2 d,)."""
        return 0.5 * (log_p[1::2] - log_p[::2])

    def independent_log_sum(self, base, row):
        """ln Σ exp(bᵀ x) over the missing cells of a row, with b = `base`."""
        return np.where(row < 0, np.logaddexp(base, -base), (2 * row - 1) * base).sum()

    def fill(self, base, codes, generator):
        """Draw missing cells from independent columns."""
        drawn = generator.random(codes.shape) < self.rates_of_independent(base)
        return np.where(codes < 0, drawn, codes)

    def chains(self, codes, seed, free=None):
        """Gibbs chains that begin at complete rows."""
        return SpinChains(self, to_spins(codes), seed, free)


class SpinChains(Chains):
    """States of many Gibbs chains with their local fields, those of pairs and terms.

    Parameters
    ----------
    model : SpinModel
    spins : ndarray of float64 of shape (n_chains, d)
        ±1; changed in place.
    seed : int
        Key of the random numbers.
    free : ndarray of bool of shape (n_chains, d), default=None
        Which entries may change. None for all.
    """

    arrays = ("spins", "local")

    def __init__(self, model, spins, seed, free=None):
        self.model, self.spins, self.seed, self.n_sweeps = model, spins, seed, 0
        self.free = np.ones(spins.shape, dtype=np.uint8) if free is None else free.view(np.uint8)
        self.rows = np.arange(len(spins), dtype=np.uint64)
        self._coupling = np.ascontiguousarray(model.coupling)
        self.local = np.empty(spins.shape)
        row_fields(spins, self._coupling, np.zeros(spins.shape[1]), self.local)
        if not model.is_pairwise:
            add_term_fields(spins, *model.arrays, self.local)
            # Where the terms of each column begin, and these terms.
            starts, members, _ = model.arrays
            counts = np.bincount(members, minlength=spins.shape[1])
            terms = np.repeat(np.arange(len(model.terms)), np.diff(starts))
            terms = terms[np.argsort(members, kind="stable")]
            self.by_column = np.concatenate([[0], np.cumsum(counts)]), terms

    @property
    def codes(self):
        """The states, 0 and 1."""
        return (self.spins > 0).astype(np.int32)

    def sweep(self, intercept, n_sweeps=1, scale=1.0):
        """Resample all free spins, one after another, with all but intercepts times `scale`."""
        model, arguments = self.model, (self.spins, self.local, self._coupling)
        how = np.ascontiguousarray(intercept), scale, self.free, self.seed, self.n_sweeps, n_sweeps
        if model.is_pairwise:
            gibbs_sweeps(*arguments, *how, self.rows)
        else:
            arguments += *model.arrays, *self.by_column, model.steps
            interaction_sweeps(*arguments, *how, self.rows)
        self.n_sweeps += n_sweeps

    def log_weight(self, intercept):
        """c + ½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K(x)) of each state."""
        weight, model = pair_weight(self.spins, self.local, intercept), self.model
        weight += model.constant
        if model.is_pairwise:
            return weight
        # In the sum of xᵢ times its local field, a term of order k is counted k times.
        excess = model.term_sums(self.spins, 1 - np.diff(model.arrays[0]) / 2)
        return weight + excess + model.potential[count_ones(self.spins)]

    def field_weight(self, intercept):
        """bᵀ x of each state."""
        return self.spins @ intercept

    def means(self, intercept):
        """The means of ±1 given the others, (n_chains, d)."""
        local = self.local
        if not self.model.is_pairwise:
            local = local + self.model.count_fields(self.spins)
        return np.tanh(local + intercept)

    def probabilities(self, intercept):
        """p(x_j = a | the others) in the one-hot layout, (n_chains, 2 d)."""
        mean = self.means(intercept)
        return np.stack([1 - mean, 1 + mean], axis=2).reshape(len(mean), 2 * mean.shape[1]) / 2


class LogLinearSpins(LogLinearModel):
    """Binary columns with terms, and a potential of the number of columns in state 1.

    The state 0 of a column stands for 1, and 1 for -1; what is asked of it, for codes.

    Parameters
    ----------
    basis : ndarray of int64 of shape (n_basis, d)
        The terms.
    theta : ndarray of float64 of shape (n_basis,)
        Their weights.
    potential : ndarray of float64 of shape (d + 1,)
        If it is not 0, it connects all columns.
    """

    def __init__(self, basis, theta, potential):
        super().__init__(np.full(basis.shape[1], 2), basis, theta)
        self.potential = potential

    def factors(self):
        """Yield sets of connected variables and their factors."""
        if not self.potential.any():
            yield from super().factors()
            return
        factor = Factor(self.space.n_values, self.basis, self.theta)
        ones, log_weights = ones_of_states(factor.block_size.bit_length() - 1), factor.log_weights
        factor.log_weights = lambda block: (
            log_weights(block) + self.potential[ones + block.bit_count()]
        )
        yield np.arange(self.basis.shape[1]), factor

    def entropy(self):
        """-Σ_x p(x) ln p(x)."""
        if not self.potential.any():
            return super().entropy()
        log_partition, weight, _ = self.cumulants([1.0])[:, 0]
        return float(log_partition - weight)

    def marginal(self, columns):
        """Joint probabilities of some columns, an array with one axis for each."""
        return np.flip(super().marginal(columns))

    def sample(self, n_samples, generator):
        """Independent rows."""
        return 1 - super().sample(n_samples, generator)


def to_spins(codes):
    """±1 of float64 in rows that are contiguous; 0 for missing cells."""
    spins = 2.0 * codes - 1
    spins[codes < 0] = 0
    return np.ascontiguousarray(spins)


def is_complete(codes):
    """Whether a row has all cells, (n, 1)."""
    return (codes >= 0).all(axis=1, keepdims=True)


def count_ones(spins):
    """The number of ones of each row."""
    return np.count_nonzero(spins > 0, axis=1)


def ones_of_states(k):
    """The number of ones of all states of k columns, (2**k,)."""
    counts = np.zeros(1, dtype=np.int64)
    for _ in range(k):
        counts = np.concatenate([counts, counts + 1])
    return counts


def terms_of(terms, d):
    """Which of d columns are in each term, (n_terms, d) of 0 and 1."""
    basis = np.zeros((len(terms), d), dtype=np.int64)
    for line, term in zip(basis, terms, strict=True):
        line[list(term)] = 1
    return basis


def pair_weight(spins, local, intercept):
    """½ xᵀ M x + bᵀ x of each row, from its local fields M x."""
    return np.einsum("ij,ij->i", spins, 0.5 * local + intercept)
