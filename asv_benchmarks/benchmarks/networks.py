"""Kernels of the pairwise models, which know float64 only."""

import numpy as np

from benchmarks._common import generator, spins, symmetric
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gibbs import row_fields
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sparse._descent import descend
from sklearn_boltz.networks.training._bslm import N_LANES, bslm_sweep, evaluate_fields
from sklearn_boltz.networks.training._objective import PseudoLikelihood as Pairs
from sklearn_boltz.networks.training._objective import distinct_rows
from sklearn_boltz.networks.training._terms import best_triples

SIZES = [(10, 512), (20, 4096), (50, 8192)]


class PseudoLikelihood:
    """A sweep of BSLM and an evaluation, over as many distinct rows."""

    params = [SIZES]
    param_names = ["n_variables_rows"]

    def setup(self, size):
        d, n = size
        n -= n % N_LANES
        x = spins(d, n)
        self.coupling, self.intercept = symmetric(d, 0.1), np.zeros(d)
        self.weights = np.ones(n)
        self.fields = self.coupling @ x
        self.tanh = np.tanh(self.fields)
        self.signs = np.vstack([np.ones(n), x]).astype(np.float32)
        self.weighted, self.moments, self.means = x * self.weights, x @ x.T, x.sum(axis=1)
        self.steps = np.empty((2, d))
        self.rows, self.out = np.ascontiguousarray(x.T), np.empty((n, d))

    def time_sweep(self, size):
        bslm_sweep(
            self.signs, self.tanh, self.weights, self.weighted, self.moments, self.means,
            self.coupling, self.intercept, self.steps, self.weights.sum(), 1.0, 0.0,
        )  # fmt: skip

    def time_evaluate(self, size):
        evaluate_fields(self.fields, self.weights, self.tanh)

    def time_row_fields(self, size):
        row_fields(self.rows, self.coupling, self.intercept, self.out)


class CategoricalPseudoLikelihoods:
    """The value and the gradient for columns of many states or of few."""

    params = [[(50, 20, 2000), (100, 4, 5000)]]
    param_names = ["n_columns_states_rows"]

    def setup(self, size):
        d, q, n = size
        codes = generator().integers(-1, q, (n, d))
        self.problem = CategoricalPseudoLikelihood(codes, np.full(d, q), np.ones(n))
        self.theta = 0.01 * generator().normal(size=self.problem.n_parameters)

    def time_evaluate(self, size):
        self.problem.evaluate(self.theta)


class SparseDescent:
    """Ten sweeps of coordinate descent on a dense quadratic function, half of it selected."""

    params = [20, 200, 1000]
    param_names = ["n_parameters"]

    def setup(self, n):
        root = generator().normal(size=(n, 2 * n))
        self.matrix = (root @ root.T / (2 * n)).ravel()
        self.columns = np.tile(np.arange(n, dtype=np.int32), n)
        self.rows = np.arange(n + 1, dtype=np.int32) * n
        self.starts = np.arange(n + 1, dtype=np.int32)
        self.curvature = self.matrix[:: n + 1].copy()
        self.slope = generator().normal(size=n)
        self.l1, self.l2 = np.full(n, 0.7), np.zeros(n)

    def time_descend(self, n):
        descend(
            self.matrix, self.columns, self.rows, self.starts, self.l1, self.l2, self.curvature,
            np.zeros(n), self.slope.copy(), np.empty(1), 0.0, 10,
        )  # fmt: skip


class Gibbs:
    """Ten sweeps of 1,000 chains."""

    params = [10, 20, 50]
    param_names = ["n_variables"]

    def setup(self, d):
        model = SpinModel(symmetric(d, 0.1), np.zeros(d))
        self.chains = model.chains(spins(1000, d) > 0, 0)

    def time_sweeps(self, d):
        self.chains.sweep(np.zeros(d), 10)


class Interactions:
    """Ten sweeps of 1,000 chains, as many terms of three as pairs; the scores of all triples."""

    params = [10, 20, 50]
    param_names = ["n_variables"]

    def setup(self, d):
        self.x, self.coupling = spins(1000, d), symmetric(d, 0.1)
        n_terms = d * (d - 1) // 2
        triples = np.argsort(generator().random((n_terms, d)), axis=1)[:, :3]
        model = SpinModel(self.coupling, np.zeros(d), triples, np.full(n_terms, 0.01))
        self.chains = model.chains(self.x > 0, 0)
        self.pairs = Pairs(np.ascontiguousarray(self.x.T), np.ones(1000))
        self.tanh = np.zeros_like(self.pairs.spins)

    def time_sweeps(self, d):
        self.chains.sweep(np.zeros(d), 10)

    def time_triples(self, d):
        best_triples(self.pairs, self.tanh, 100, set())


class CategoricalGibbs:
    """Ten sweeps of 1,000 chains of columns with four values."""

    params = [10, 50]
    param_names = ["n_variables"]

    def setup(self, d):
        model = PottsModel(symmetric(4 * d, 0.1), np.zeros(4 * d), np.full(d, 4))
        self.chains = model.chains(generator().integers(4, size=(1000, d)), 0)

    def time_sweeps(self, d):
        self.chains.sweep(np.zeros(4 * d), 10)


class DistinctRows:
    """Equal rows collapsed, after their bits are packed."""

    params = [[10, 50, 200], [10_000, 100_000]]
    param_names = ["n_variables", "n_samples"]

    def setup(self, d, n):
        self.positive, self.weights = generator().random((n, d)) < 0.1, np.ones(n)

    def time_distinct_rows(self, d, n):
        distinct_rows(self.positive, self.weights)
