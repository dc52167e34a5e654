"""Kernels of the log-linear models: the transform, and the passes over the tables."""

import numpy as np

from benchmarks._common import DTYPES, generator
from sklearn_boltz.loglinear import fwht
from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._dual_update import Penalty, active_changes, scan, update_and_scan


class Transform:
    """The Walsh-Hadamard transform: of the whole table, and of the first axis of a matrix."""

    params = ([10, 16, 20], DTYPES)
    param_names = ["n_bits", "dtype"]

    def setup(self, n_bits, dtype):
        # The transform of zeros is of zeros, so that numbers do not grow from call to call.
        self.table = np.zeros(2**n_bits, dtype=dtype)
        self.matrix = self.table.reshape(-1, 64)

    def time_table(self, n_bits, dtype):
        fwht(self.table, overwrite_a=True)

    def time_first_axis(self, n_bits, dtype):
        fwht(self.matrix, axis=0, overwrite_a=True)


class DualTables:
    """The passes over the tables of dual parameters that a step of the search makes."""

    params = ([10, 16, 20], DTYPES)
    param_names = ["n_bits", "dtype"]

    def setup(self, n_bits, dtype):
        rng, n = generator(), 2**n_bits
        self.t, self.d = (np.tanh(0.1 * rng.normal(size=n)).astype(dtype) for _ in range(2))
        self.t[0] = self.d[0] = 1
        space = StateSpace([2] * n_bits)
        outer, inner = space.split_layout(1024)
        r_outer, order_outer = space.term_lengths(outer, n_bits)
        r_inner, order_inner = space.term_lengths(inner, n_bits)
        self.penalty = Penalty(
            r_outer.astype(dtype), r_inner.astype(dtype), order_outer, order_inner, 255
        )
        self.n_blocks = n // self.penalty.lanes
        self.codes = rng.choice(n - 1, size=200, replace=False) + 1
        self.theta, self.costs = rng.normal(size=200), np.ones(200)

    def time_scan(self, n_bits, dtype):
        scan(self.t, self.d, self.penalty, -1e-6, 0, self.n_blocks)

    def time_update_and_scan(self, n_bits, dtype):
        """A term of the highest variables: the blocks are paired."""
        top = 2 ** (n_bits - 1)
        update_and_scan(
            self.t, self.d, top, 1.0, 1e-9, self.penalty, -1e-6, -1, 0, self.n_blocks // 2
        )

    def time_update_within_blocks(self, n_bits, dtype):
        """A term of the lowest variable: the elements of a vector trade places."""
        n_pairs = self.n_blocks if self.penalty.lanes > 1 else self.n_blocks // 2
        update_and_scan(self.t, self.d, 1, 1.0, 1e-9, self.penalty, -1e-6, -1, 0, n_pairs)

    def time_active_changes(self, n_bits, dtype):
        active_changes(self.t, self.d, self.codes, self.theta, self.costs)
