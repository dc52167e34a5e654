"""Networks of binary columns; that of pairs is the Ising model."""

from functools import cached_property

import numpy as np

from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.networks.model._gibbs import gibbs_sweeps, row_fields
from sklearn_boltz.networks.model._model import Chains, DiscreteModel, PairwiseModel
from sklearn_boltz.networks.model._potts_model import PottsModel


class BinaryModel(DiscreteModel):
    """A distribution of x in {-1, 1}^d, of which the codes are 0 and 1.

    A child defines `fields`: what flipping each column to 1 adds to the log-weight, halved.
    """

    @property
    def n_values(self):
        """2 for each column."""
        return np.full(len(self.intercept), 2)

    def places(self, columns):
        """Where the intercepts of some columns stand."""
        return columns

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

    def rates(self, codes, weights=None):
        """The mean of each column's code, weighted."""
        return np.average(codes, axis=0, weights=weights)

    def rates_of_independent(self, base):
        """The same for independent columns with the intercepts `base`."""
        return (1 + np.tanh(base)) / 2

    def independent_intercept(self, log_p):
        """The intercepts of independent columns, from ln p of their values, (2 d,)."""
        return 0.5 * (log_p[1::2] - log_p[::2])

    def independent_log_sum(self, base, row):
        """ln Σ exp(bᵀ x) over the missing cells of a row, with b = `base`."""
        return np.where(row < 0, np.logaddexp(base, -base), (2 * row - 1) * base).sum()

    def fill(self, base, codes, generator):
        """Draw missing cells from independent columns with the intercepts `base`."""
        drawn = generator.random(codes.shape) < (1 + np.tanh(base)) / 2
        return np.where(codes < 0, drawn, codes)


class SpinModel(BinaryModel, PairwiseModel):
    """P(x) = exp(½ xᵀ M x + bᵀ x) / Z with x in {-1, 1}^d, of which the codes are 0 and 1.

    Parameters
    ----------
    coupling : ndarray of shape (d, d)
        M, symmetric with a zero diagonal.
    intercept : ndarray of shape (d,)
        b.
    """

    def like(self, coupling, intercept):
        """A model of the same kind."""
        return SpinModel(coupling, intercept)

    def adjacency(self):
        """Which columns are coupled, (d, d) bool."""
        return self.coupling != 0

    def fields(self, codes):
        """M x + b of each row, (n, d); missing cells count as 0."""
        spins = to_spins(codes)
        fields = np.empty_like(spins)
        row_fields(spins, np.ascontiguousarray(self.coupling), self.intercept, fields)
        return fields

    def log_weight(self, codes):
        """½ xᵀ M x + bᵀ x of each row."""
        return log_weight(to_spins(codes), self.fields(codes) - self.intercept, self.intercept)

    def given(self, columns, values):
        """The model of the other columns, given the values of some."""
        free = np.setdiff1d(np.arange(len(self.intercept)), columns)
        intercept = self.intercept[free] + self.coupling[np.ix_(free, columns)] @ (2 * values - 1)
        return SpinModel(self.coupling[np.ix_(free, free)], intercept)

    def potts(self):
        """The same model in the layout of categorical columns."""
        coupling = np.kron(self.coupling, [[1.0, -1.0], [-1.0, 1.0]])
        return PottsModel(coupling, np.kron(self.intercept, [-1.0, 1.0]), self.n_values)

    @cached_property
    def log_linear(self):
        """The model as a log-linear one of the codes, and a constant: 0."""
        d = len(self.intercept)
        pairs = np.argwhere(np.triu(self.coupling))
        basis = np.zeros((d + len(pairs), d), dtype=np.int64)
        basis[:d] = np.eye(d)
        np.put_along_axis(basis[d:], pairs, 1, axis=1)
        theta = np.concatenate([self.intercept, self.coupling[tuple(pairs.T)]])
        return Flipped(LogLinearModel(np.full(d, 2), basis, theta)), 0.0

    # Sampling.

    def chains(self, codes, seed, free=None):
        """Gibbs chains that begin at complete rows."""
        return SpinChains(to_spins(codes), self.coupling, seed, free)


class Flipped:
    """A log-linear model whose state 0 stands for 1, and 1 for -1: as a model of codes."""

    def __init__(self, model):
        self.model = model
        self.log_partition, self.entropy = model.log_partition, model.entropy
        self.cumulants = model.cumulants

    def marginal(self, columns):
        return np.flip(self.model.marginal(columns))

    def expectation(self, basis):
        return self.model.expectation(basis)

    def sample(self, n_samples, generator):
        return 1 - self.model.sample(n_samples, generator)


class SpinChains(Chains):
    """States of many Gibbs chains with their local fields.

    Parameters
    ----------
    spins : ndarray of float64 of shape (n_chains, d)
        ±1; changed in place.
    coupling : ndarray of shape (d, d)
    seed : int
        Key of the random numbers.
    free : ndarray of bool of shape (n_chains, d), default=None
        Which entries may change. None for all.
    """

    arrays = ("spins", "local")

    def __init__(self, spins, coupling, seed, free=None):
        self.spins, self.coupling, self.seed = spins, np.ascontiguousarray(coupling), seed
        self.free = np.ones(spins.shape, dtype=np.uint8) if free is None else free.view(np.uint8)
        self.local = spins @ coupling
        self.n_sweeps = 0

    @property
    def codes(self):
        """The states, 0 and 1."""
        return (self.spins > 0).astype(np.int32)

    def sweep(self, intercept, n_sweeps=1, scale=1.0):
        """Resample all free spins, one after another, with couplings times `scale`."""
        gibbs_sweeps(
            self.spins, self.local, self.coupling, np.ascontiguousarray(intercept), scale,
            self.free, self.seed, self.n_sweeps, n_sweeps, self.first_row,
        )  # fmt: skip
        self.n_sweeps += n_sweeps

    def log_weight(self, intercept):
        """½ xᵀ M x + bᵀ x of each state."""
        return log_weight(self.spins, self.local, intercept)

    def field_weight(self, intercept):
        """bᵀ x of each state."""
        return self.spins @ intercept

    def means(self, intercept):
        """The means of ±1 given the others, (n_chains, d)."""
        return np.tanh(self.local + intercept)

    def probabilities(self, intercept):
        """p(x_j = a | the others) in the one-hot layout, (n_chains, 2 d)."""
        mean = self.means(intercept)
        return np.stack([1 - mean, 1 + mean], axis=2).reshape(len(mean), 2 * mean.shape[1]) / 2


def to_spins(codes):
    """±1 of float64 in rows that are contiguous; 0 for missing cells."""
    spins = 2.0 * codes - 1
    spins[codes < 0] = 0
    return np.ascontiguousarray(spins)


def log_weight(spins, local, intercept):
    """½ xᵀ M x + bᵀ x of each row, from its local fields M x."""
    return np.einsum("ij,ij->i", spins, 0.5 * local + intercept)
