"""Rows of categorical columns, as the kernels of their pseudo-likelihood want them."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.categorical._kernel import (
    LANES,
    PANEL,
    evaluate_group,
    fold_table,
    pack_table,
)
from sklearn_boltz.networks.model._gauge import block_means, column_of_state, state_offsets

# Distinct patterns of a bundle of columns at most, and rows for each of them at least.
BUNDLE_PATTERNS, ROWS_PER_PATTERN = 256, 12
# Patterns of a block of bundles, in the second cache.
BLOCK_PATTERNS = 900
# Rows whose fields are in the cache together, and numbers that these fields may be.
BLOCK_ROWS, BLOCK_NUMBERS = 4096, 2**20
# States of all columns, one more for the missing cells: what 16 bits can count.
MAX_STATES = 2**16 - 2
# The field of a state that a column has not.
NEVER = -1e30


class Cells:
    """Rows of codes, as the kernels want them.

    Parameters
    ----------
    codes : ndarray of int of shape (n, n_columns)
        States 0 to q_i - 1, or -1 for a missing cell.
    n_values : ndarray of int of shape (n_columns,)
        The number of states q_i of each column.
    weights : ndarray of shape (n,)
        How often each row counts.

    Attributes
    ----------
    groups : list of tuple
        All columns, those with like numbers of states together, as of `_group`.
    """

    def __init__(self, codes, n_values, weights):
        self.n_values = np.asarray(n_values, dtype=np.int64)
        self.offsets = state_offsets(self.n_values)
        self.n_states = int(self.offsets[-1])
        if self.n_states > MAX_STATES:
            raise ValueError(
                f"The columns have {self.n_states:,} states together; no more than "
                f"{MAX_STATES:,} can be fitted. Leave out columns, or merge rare states."
            )
        if not len(codes):
            codes, weights = np.full((1, len(self.n_values)), -1), np.zeros(1)
        self.codes, self.weights = codes, np.ascontiguousarray(weights, dtype=np.float64)
        sites = np.argsort(self.n_values, kind="stable")
        self.groups = [self._group(sites[k : k + LANES]) for k in range(0, len(sites), LANES)]
        if len(sites):
            self.patterns = find_patterns(codes, self.offsets)
            n_rows = BLOCK_NUMBERS // (int(self.n_values.max()) * LANES)
            self._block_rows = min(BLOCK_ROWS, max(64, n_rows), len(codes))

    def _group(self, sites):
        """Columns, -1 for none; their cells; where they have states; and where these are in θ."""
        padded = np.full(LANES, -1)
        padded[: len(sites)] = sites
        codes = np.full((len(self.codes), LANES), -1, dtype=np.int16)
        codes[:, : len(sites)] = self.codes[:, sites]
        state = np.arange(self.n_values[sites].max())[:, None]
        inside = (padded >= 0) & (state < self.n_values[padded])
        return padded, codes, inside, (self.offsets[:-1][padded] + state)[inside]

    def evaluate(self, group, theta, starts, gradient):
        """The log pseudo-likelihood of a group, whose derivatives are added to a gradient.

        θ has the intercepts of all states, then the blocks of couplings where `starts` says.
        """
        sites, codes, inside, places = group
        sizes, n_states = (self.n_states + 1, self.n_states + 1, self._block_rows), len(inside)
        *buffers, sums = self._buffers
        table, slopes, fields = (
            buffer[: n_states * size * LANES].reshape(n_states, size, LANES)
            for buffer, size in zip(buffers, sizes, strict=True)
        )
        intercept = np.full((n_states, LANES), NEVER)
        intercept[:, sites < 0] = 0
        intercept[inside] = theta[places]
        slope, blocks = np.zeros_like(intercept), (sites, self.n_values, starts)
        pack_table(theta, *blocks, table)
        slopes.fill(0)
        value = evaluate_group(
            self.patterns, codes, self.weights, intercept, table, fields, sums,
            np.empty_like(intercept), slope, slopes,
        )  # fmt: skip
        fold_table(gradient, *blocks, slopes)
        gradient[places] += slope[inside]
        return value

    @cached_property
    def _buffers(self):
        """Room for two tables, for fields, and for the patterns of a block."""
        n_patterns = int(np.diff(self.patterns.starts).max())
        sizes = np.array([self.n_states + 1, self.n_states + 1, self._block_rows])
        tables = [np.empty(size) for size in int(self.n_values.max()) * LANES * sizes]
        return [*tables, np.empty((PANEL * n_patterns, LANES))]


class Patterns(NamedTuple):
    """Rows as patterns of bundles of neighbouring columns, and these in blocks.

    Attributes
    ----------
    rows : ndarray of uint16 of shape (n * n_bundles,)
        For each block, for each row, for each bundle of the block: the pattern, counted from
        the first one of the block.
    parts : ndarray of uint16
        The lines of the table that make up each pattern, one after another.
    bundles, starts : ndarray of int64 of shape (n_blocks + 1,)
        The bundles, and the patterns, with which the blocks start.
    first : ndarray of int64 of shape (n_patterns + 1,)
        Where the parts of each pattern start.
    """

    rows: np.ndarray
    parts: np.ndarray
    bundles: np.ndarray
    starts: np.ndarray
    first: np.ndarray


def find_patterns(codes, offsets):
    """Bundle neighbouring columns as long as they have few distinct rows."""
    shifted = codes + 1
    most = min(BUNDLE_PATTERNS, len(codes) // ROWS_PER_PATTERN)
    blocks, parts, sizes, n_patterns, begin = [], [], [], [], 0
    while begin < codes.shape[1]:
        end, labels, examples = bundle(shifted, begin, most)
        lines = codes[examples, begin:end]
        parts.append(np.where(lines < 0, offsets[-1], lines + offsets[begin:end]).ravel())
        sizes.append(np.full(len(examples), end - begin))
        if not blocks or n_patterns[-1] + len(examples) > BLOCK_PATTERNS:
            blocks.append([])
            n_patterns.append(0)
        blocks[-1].append(labels + n_patterns[-1])
        n_patterns[-1] += len(examples)
        begin = end
    rows = [np.stack(block, axis=1).astype(np.uint16).ravel() for block in blocks]
    return Patterns(
        np.concatenate(rows),
        np.concatenate(parts).astype(np.uint16),
        state_offsets([len(block) for block in blocks]),
        state_offsets(n_patterns),
        state_offsets(np.concatenate(sizes)),
    )


def bundle(codes, begin, most):
    """Columns [begin, end) with few distinct rows; -> end, the number of each row's pattern, and
    a row for each pattern. Codes are not negative."""
    labels, examples = relabel(codes[:, begin])
    end = begin + 1
    while end < codes.shape[1] and len(examples) < most:
        size = codes[:, end].max() + 1
        more, rows = relabel(labels * size + codes[:, end])
        if len(rows) > most:
            break
        labels, examples, end = more, rows, end + 1
    return end, labels, examples


def relabel(keys):
    """Number the values that occur among small integers; -> numbers, and a row for each value."""
    example = np.full(keys.max() + 1, -1)
    example[keys] = np.arange(len(keys))
    occurs = example >= 0
    return (np.cumsum(occurs) - 1)[keys], example[occurs]


def state_counts(codes, offsets, weights):
    """How often each state of each column occurs, of shape (Q,)."""
    states = np.where(codes < 0, 0, codes + offsets[:-1] + 1)
    each = np.repeat(weights, codes.shape[1])
    return np.bincount(states.ravel(), each, offsets[-1] + 1)[1:]


def independent_intercept(counts, n_values):
    """Intercepts of independent columns, zero-sum, for the data and one more observation.

    It is spread evenly over the states of each column, so that all are finite.
    """
    column = column_of_state(n_values)
    logarithm = np.log(counts + 1 / np.asarray(n_values)[column])
    return logarithm - block_means(logarithm[None], n_values)[0, column]
