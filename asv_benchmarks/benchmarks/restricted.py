"""Kernels of the restricted Boltzmann machines."""

import numpy as np

from benchmarks._common import DTYPES, bits, generator
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._random_kernel import normal, uniform
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import (
    anneal,
    gibbs_chains,
    hidden_fields,
    moments,
    visible_fields,
)
from sklearn_boltz.units import Bernoulli, Categorical, Gaussian
from sklearn_boltz.units._bernoulli_kernel import (
    bernoulli_draw,
    bernoulli_mean,
    bernoulli_sample,
    softplus_sums,
)
from sklearn_boltz.units._categorical_kernel import (
    categorical_log_partition,
    categorical_mean,
    categorical_sample,
    categorical_sums,
)
from sklearn_boltz.units._truncated_kernel import truncated_moments, truncated_quantile

SIZES = [(64, 32), (784, 100), (784, 500)]


class Chains:
    """Markov chains of 100 rows: transitions, annealing, and the sums of their states."""

    params = (SIZES, DTYPES)
    param_names = ["n_visible_hidden", "dtype"]

    def setup(self, size, dtype):
        n_visible, n_hidden = size
        rng = generator()
        self.weights = (0.05 * rng.normal(size=size)).astype(dtype)
        self.visible_bias, self.hidden_bias = (np.zeros(n, dtype) for n in size)
        self.V, self.H = bits(100, n_visible, dtype), bits(100, n_hidden, dtype, 0.5)
        self.out = np.empty(size, dtype)
        self.scratch = np.empty(n_visible, dtype), np.empty(n_hidden, dtype)
        self.layers = np.array([[n_visible, 0]]), np.empty((0, 2), dtype=int)
        self.betas, self.log_weights = np.linspace(0, 1, 11), np.zeros(100)

    def time_gibbs(self, size, dtype):
        gibbs_chains(
            self.weights, self.visible_bias, self.hidden_bias, *self.layers, self.V, self.H, 4,
            False, 0, 0,
        )  # fmt: skip

    def time_anneal(self, size, dtype):
        anneal(
            self.weights, self.visible_bias, self.visible_bias, self.hidden_bias, *self.layers,
            self.betas, self.V, self.H, *self.scratch, self.log_weights, 0, 0,
        )  # fmt: skip

    def time_moments(self, size, dtype):
        moments(self.V, self.H, 0.01, self.out, False)


class Products:
    """Products with few ones, and with few rows, where BLAS is not the fastest."""

    params = ([0.05, 0.2, 0.5], [2, 10, 100], DTYPES)
    param_names = ["share_of_ones", "n_rows", "dtype"]

    def setup(self, share, n_rows, dtype):
        self.V, self.H = bits(n_rows, 784, dtype, share), bits(n_rows, 500, dtype, 0.5)
        self.weights = np.zeros((784, 500), dtype)
        self.biases = np.zeros(784, dtype), np.zeros(500, dtype)
        self.out = np.empty((784, 500), dtype)

    def time_hidden_field(self, share, n_rows, dtype):
        """No step, so only the field of the hidden layer and its means."""
        layers = np.array([[784, 0]]), np.empty((0, 2), dtype=int)
        gibbs_chains(self.weights, *self.biases, *layers, self.V, self.H, 0, False, 0, 0)

    def time_moments(self, share, n_rows, dtype):
        moments(self.V, self.H, 0.01, self.out, False)

    def time_hidden_fields(self, share, n_rows, dtype):
        hidden_fields(self.weights, self.V, self.H)

    def time_visible_fields(self, share, n_rows, dtype):
        visible_fields(self.weights, self.H, self.V)


class UnitChains:
    """Gibbs steps of 100 rows, by the type of the 784 visible numbers; "bernoulli" for a ratio."""

    params = (["bernoulli", "categorical 2", "categorical 4", "categorical 28", "gaussian"], DTYPES)
    param_names = ["visible", "dtype"]

    def setup(self, visible, dtype):
        zeros = np.zeros(784, dtype)
        layer = {"bernoulli": Bernoulli(zeros), "gaussian": Gaussian(zeros, zeros + 1)}.get(visible)
        layer = layer or Categorical(int(visible.split()[1]), zeros)
        weights = (0.05 * generator().normal(size=(200, 784))).astype(dtype)
        self.model = Model(np.asfortranarray(weights), layer, Bernoulli(np.zeros(200, dtype)))
        self.V = layer.sample(np.zeros((100, 784), dtype), Stream(0))
        self.H = np.empty((100, 200), dtype)

    def time_gibbs(self, visible, dtype):
        with Workers(1) as workers:
            run_chains(self.model, self.V, self.H, 4, Stream(0), workers)


class Elements:
    """One pass over 100 rows: means, draws and the sums of softplus."""

    params = ([64, 784], DTYPES)
    param_names = ["n_columns", "dtype"]

    def setup(self, n, dtype):
        self.x = generator().normal(size=(100, n)).astype(dtype)
        self.p, self.bias, self.sums = np.full_like(self.x, 0.5), np.zeros(n, dtype), np.empty(100)

    def time_mean(self, n, dtype):
        bernoulli_mean(self.x, self.bias)

    def time_sample(self, n, dtype):
        bernoulli_sample(self.x, self.bias, 0, 0)

    def time_draw(self, n, dtype):
        bernoulli_draw(self.x, self.p, 0, 0)

    def time_uniform(self, n, dtype):
        uniform(self.x, 0, 0)

    def time_normal(self, n, dtype):
        normal(self.x, 0, 0)

    def time_softplus(self, n, dtype):
        softplus_sums(self.x, self.bias, self.sums)


class States:
    """One pass over 100 rows of about 784 columns: units of 2 to 98 states, or mixed ones."""

    params = (["2", "3", "8", "98", "mixed"], DTYPES)
    param_names = ["n_values", "dtype"]

    def setup(self, n_values, dtype):
        widths = generator().integers(1, 12, 130)
        units = Categorical(
            widths if n_values == "mixed" else np.full(784 // int(n_values), int(n_values))
        )
        n = len(units)
        self.x, self.runs = generator().normal(size=(100, n)).astype(dtype), units._runs
        self.bias, self.peaks = np.zeros(n, dtype), np.empty(units.n_units, dtype)
        self.out, self.sums = np.empty((100, units.n_units), dtype), np.empty(100)

    def time_mean(self, n_values, dtype):
        categorical_mean(self.x, self.bias, self.runs)

    def time_sample(self, n_values, dtype):
        categorical_sample(self.x, self.bias, self.runs, 0, 0)

    def time_log_partition(self, n_values, dtype):
        categorical_log_partition(self.x, self.bias, self.runs, self.out)

    def time_sums(self, n_values, dtype):
        categorical_sums(self.x, self.bias, self.runs, self.peaks, self.sums)


class Truncated:
    """Gaussians cut to [0, 1]: moments and quantiles, for each sign of the precision."""

    params = ([100, 10_000], [-2.0, 2.0], DTYPES)
    param_names = ["n", "precision", "dtype"]

    def setup(self, n, precision, dtype):
        rng = generator()
        self.b, self.u = rng.normal(size=n).astype(dtype), rng.random(n).astype(dtype)
        self.a = np.full(n, precision, dtype)
        self.outputs = [np.empty(n, dtype) for _ in range(3)]

    def time_moments(self, n, precision, dtype):
        truncated_moments(self.b, self.a, 0, 1, *self.outputs)

    def time_quantile(self, n, precision, dtype):
        truncated_quantile(self.b, self.a, self.u, 0, 1, self.outputs[0])
