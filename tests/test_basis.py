"""State spaces, their transforms and products of basis functions, against dense matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from private import StateSpace

cardinalities = st.lists(st.sampled_from([2, 2, 2, 3, 4, 5, 6, 8]), min_size=1, max_size=5).filter(
    lambda n_values: math.prod(n_values) <= 2000
)
MIXED = [[2], [3], [2, 2, 2], [3, 2], [2, 3, 2], [5, 3], [4, 3, 2], [2, 6, 8], [3, 3, 3, 2, 2]]


def order_of_codes(space):
    """Places in `oracles.states` of the codes 0, 1, 2, ..."""
    return np.ravel_multi_index(space.decode(np.arange(space.size)).T, space.n_values)


def dense(n_values):
    """Φ with rows and columns in the order of the codes."""
    space = StateSpace(n_values)
    order = order_of_codes(space)
    return space, oracles.basis_matrix(n_values)[np.ix_(order, order)]


@given(cardinalities)
def test_codes_number_the_states(n_values):
    space = StateSpace(n_values)
    codes = np.arange(space.size)
    states = space.decode(codes)
    assert len(np.unique(states, axis=0)) == space.size
    for dtype in (states.dtype, float, np.uint8):
        assert_array_equal(space.encode(states.astype(dtype)), codes)


@given(cardinalities, st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_transforms_equal_the_dense_matrices(n_values, seed):
    space, phi = dense(n_values)
    x = np.random.default_rng(seed).normal(size=(2, space.size))
    synthesized, analyzed = x.copy(), x.copy()
    space.synthesize(synthesized)
    space.analyze(analyzed)
    assert_allclose(synthesized, x @ phi, atol=1e-12 * space.size)
    assert_allclose(analyzed, x @ phi.T, atol=1e-12 * space.size)


@pytest.mark.parametrize("n_values", MIXED)
def test_signs_moments_and_lengths_of_all_terms(n_values):
    space, phi = dense(n_values)
    states = space.decode(np.arange(space.size))
    assert_array_equal(space.signs(states, states), phi.T)
    assert set(np.unique(phi)) <= {-1, 1}
    moments = np.zeros(space.size)
    moments[:: space.n_fast] = space.uniform_moments()
    assert_allclose(moments, phi.mean(axis=1), atol=1e-12)
    lengths, orders = space.term_lengths(space.layout, len(n_values))
    r = oracles.description_lengths(n_values, 1)[order_of_codes(space)]
    assert_allclose(lengths, r, atol=1e-12)
    assert_array_equal(orders, (states > 0).sum(axis=1))


@given(cardinalities, st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_product_moments(n_values, seed):
    space, phi = dense(n_values)
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(space.size))
    left, right = rng.integers(space.size, size=7), rng.integers(space.size, size=5)
    expected = np.einsum("ax,bx,x->ab", phi[left], phi[right], p)
    assert_allclose(space.product_moments(phi @ p, left, right), expected, atol=1e-12 * space.size)


@given(cardinalities, st.integers(1, 300))
def test_split_layout(n_values, limit):
    space = StateSpace(n_values)
    outer, inner = space.split_layout(limit)
    assert outer + inner == space.layout
    n_inner = math.prod(space.shape(inner))
    assert len(inner) == 1 or n_inner <= limit
    if outer:
        assert n_inner * space.n_values[outer[-1]] > limit


def test_sizes_beyond_any_table():
    space = StateSpace([2, 3] * 100)
    assert space.size == 6**100
    signs = space.signs(np.zeros((1, 200), dtype=np.int64), np.eye(200, dtype=np.int64))
    assert_array_equal(signs[0], np.tile([1, -1], 100))
