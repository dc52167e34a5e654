"""Synthetic laws against brute force that shares no code with them, and Potts models."""

from itertools import product

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from oracles import assert_drawn
from sklearn_boltz.datasets import (
    make_alignment,
    make_bars_and_stripes,
    make_bayesian_network,
    make_ising_grid,
    make_shifting_bar,
)


def entropy(p):
    p = p[p > 0]
    return -np.sum(p * np.log(p))


def assert_follows(X, p):
    assert_drawn(X, np.indices(p.shape).reshape(p.ndim, -1).T, p.ravel())


def brute_force_edges(n_rows, n_columns, periodic):
    edges = set()
    for r, c in product(range(n_rows), range(n_columns)):
        for r2, c2 in ((r + 1, c), (r, c + 1)):
            if periodic:
                r2, c2 = r2 % n_rows, c2 % n_columns
            elif r2 == n_rows or c2 == n_columns:
                continue
            i, j = r * n_columns + c, r2 * n_columns + c2
            if i != j:
                edges.add((min(i, j), max(i, j)))
    return sorted(edges)


def brute_force_ising(n_rows, n_columns, coupling, field, periodic):
    n = n_rows * n_columns
    spins = np.meshgrid(*[[-1, 1]] * n, indexing="ij", sparse=True)
    energy = field * sum(spins, np.zeros((2,) * n))
    for i, j in brute_force_edges(n_rows, n_columns, periodic):
        energy += coupling * spins[i] * spins[j]
    p = np.exp(energy - energy.max())
    return p / p.sum()


@settings(max_examples=cases(60))
@given(
    shape=st.sampled_from([(r, c) for r in range(1, 13) for c in range(1, 13) if r * c <= 12]),
    coupling=st.floats(-3, 3),
    field=st.floats(-2, 2),
    periodic=st.booleans(),
)
def test_ising_distribution_and_edges_equal_brute_force(shape, coupling, field, periodic):
    law = {"coupling": coupling, "field": field, "periodic": periodic}
    X, p, edges = make_ising_grid(*shape, 5, return_distribution=True, return_edges=True, **law)
    assert list(map(tuple, edges)) == brute_force_edges(*shape, periodic)
    assert_allclose(p, brute_force_ising(*shape, **law), rtol=1e-10, atol=1e-300)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert X.shape == (5, shape[0] * shape[1])


@pytest.mark.parametrize(
    ("shape", "periodic"), [((3, 3), True), ((2, 5), False), ((5, 2), True), ((8, 1), False)]
)
def test_ising_samples_follow_brute_force(shape, periodic):
    options = {"coupling": 0.4, "field": -0.1, "periodic": periodic}
    X = make_ising_grid(*shape, 50_000, random_state=1, **options)
    assert_follows(X, brute_force_ising(*shape, **options))


def test_ising_large_grids_at_extreme_couplings():
    frozen = make_ising_grid(10, 10, 50, coupling=30.0, random_state=0)
    assert np.all(frozen == frozen[:, :1])
    assert set(frozen[:, 0]) == {0, 1}
    checkerboard = make_ising_grid(6, 8, 20, coupling=-30.0, random_state=0, periodic=True)
    assert np.all(np.diff(checkerboard.reshape(20, 6, 8), axis=1) != 0)
    assert np.all(np.diff(checkerboard.reshape(20, 6, 8), axis=2) != 0)
    free = make_ising_grid(8, 8, 5000, coupling=0.0, random_state=0, periodic=True)
    assert np.abs(free.mean(axis=0) - 0.5).max() < 5.5 * 0.5 / np.sqrt(5000)


@settings(max_examples=cases(40))
@given(
    n_values=st.lists(st.integers(2, 4), min_size=1, max_size=6),
    max_parents=st.integers(0, 4),
    concentration=st.sampled_from([1e-4, 0.1, 1.0, 50.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_network_distribution_equals_brute_force(n_values, max_parents, concentration, seed):
    X, p, network = make_bayesian_network(
        len(n_values), 20, n_values=n_values, max_parents=max_parents, concentration=concentration,
        random_state=seed, return_distribution=True, return_network=True,
    )  # fmt: skip
    for table in network.tables:
        assert np.all(np.isfinite(table)) and np.all(table >= 0)
        assert_allclose(table.sum(axis=-1), 1, rtol=1e-12)
    assert p.shape == tuple(n_values)
    x = np.indices(n_values)
    expected = np.ones(n_values)
    for i, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        expected *= table[(*x[list(parents)], x[i])]
    assert_allclose(p, expected, rtol=1e-12)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(p[tuple(X.T)] > 0)


@pytest.mark.parametrize("n_values", [2, [2, 3, 4, 2, 3, 2]])
def test_network_samples_follow_their_distribution(n_values):
    X, p = make_bayesian_network(
        6, 50_000, n_values=n_values, max_parents=3, network_state=5, random_state=6,
        return_distribution=True,
    )  # fmt: skip
    assert_follows(X, p)


def test_network_dirichlet_moments():
    """Mean and variance of the entries of symmetric Dirichlet tables, within five errors."""
    for concentration in (0.2, 5.0):
        _, network = make_bayesian_network(
            3000, 1, max_parents=2, n_values=3, concentration=concentration, random_state=0,
            return_network=True,
        )  # fmt: skip
        values = np.concatenate([table.reshape(-1, 3)[:, 0] for table in network.tables])
        law = stats.beta(concentration, 2 * concentration)
        assert abs(values.mean() - 1 / 3) < 5 * law.std() / np.sqrt(len(values))
        squares = (values - 1 / 3) ** 2
        assert abs(squares.mean() - law.var()) < 5 * squares.std() / np.sqrt(len(values))


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_bars_and_stripes_distribution(side):
    X, p = make_bars_and_stripes(side, return_distribution=True)
    assert X.shape == (2 ** (side + 1), side**2) and X.dtype == np.int8
    expected = np.zeros((2,) * side**2)
    for values in product([0, 1], repeat=side):
        image = np.repeat(np.array(values)[:, np.newaxis], side, axis=1)
        for turned in (image, np.rot90(image)):
            expected[tuple(turned.ravel())] += 0.5 / 2**side
    assert_array_equal(p, expected)
    # Equally weighted rows are the distribution.
    assert np.mean(np.log(p[tuple(X.T)])) == pytest.approx(-entropy(p))


def test_bars_and_stripes_samples():
    X, p = make_bars_and_stripes(3, 50_000, random_state=0, return_distribution=True)
    assert X.shape == (50_000, 9) and X.dtype == np.int8
    assert_follows(X, p)
    large = make_bars_and_stripes(60, 20, random_state=0).reshape(-1, 60, 60)
    rows, columns = np.ptp(large, axis=2).max(axis=1), np.ptp(large, axis=1).max(axis=1)
    assert np.all((rows == 0) | (columns == 0))
    assert set(rows) == {0, 1}


@settings(max_examples=cases(40))
@given(n_features=st.integers(1, 10), data=st.data())
def test_shifting_bar_is_every_rotation(n_features, data):
    bar_length = data.draw(st.integers(1, n_features))
    X, p = make_shifting_bar(n_features, bar_length, return_distribution=True)
    first = [1] * bar_length + [0] * (n_features - bar_length)
    assert_array_equal(X, [np.roll(first, k) for k in range(n_features)])
    assert X.dtype == np.int8 and p.sum() == pytest.approx(1)
    expected = 0.0 if bar_length == n_features else np.log(n_features)
    assert entropy(p) == pytest.approx(expected)


# Potts models.


def brute_force_potts(alignment):
    """Probability of every state, by enumeration."""
    n_sites, q = alignment.field.shape
    states = np.indices((q,) * n_sites).reshape(n_sites, -1).T
    log_p = alignment.field[np.arange(n_sites), states].sum(axis=1)
    for i, j in alignment.contacts:
        log_p += alignment.coupling[i, j, states[:, i], states[:, j]]
    p = np.exp(log_p - log_p.max())
    return states, p / p.sum()


@pytest.mark.parametrize(
    ("alphabet", "n_sites", "n_contacts"), [("dna", 3, 3), ("ab", 6, 7), ("dna", 2, 0)]
)
def test_alignment_samples_follow_their_distribution(alphabet, n_sites, n_contacts):
    alignment = make_alignment(
        20_000, n_sites, alphabet=alphabet, n_contacts=n_contacts, n_steps=30, random_state=0
    )
    assert_drawn(alignment.codes, *brute_force_potts(alignment))
    # The test would see the lack of couplings.
    if n_contacts:
        alignment.coupling[:] = 0
        with pytest.raises(AssertionError):
            assert_drawn(alignment.codes, *brute_force_potts(alignment))


@pytest.mark.parametrize("shape", [(40, 3), (3, 40)])
def test_ising_long_grid_moments_equal_transfer_matrix(shape):
    """By powers of a transfer matrix: 5 standard errors on 317 moments, false alarms below 2e-4."""
    coupling, field, n_samples = 0.3, 0.15, 20_000
    X, edges = make_ising_grid(
        *shape, n_samples, coupling=coupling, field=field, random_state=3, return_edges=True
    )
    spins = 2.0 * X - 1
    images = spins.reshape(-1, *shape)
    strip = images if shape[0] == 40 else images.transpose(0, 2, 1)

    states = 2 * np.array(list(product([0, 1], repeat=3))) - 1
    inside = coupling * (states[:, 0] * states[:, 1] + states[:, 1] * states[:, 2])
    weight = np.exp(inside + field * states.sum(axis=1))
    between = np.exp(coupling * states @ states.T)
    left = [np.ones(8)]
    for _ in range(39):
        message = between.T @ (left[-1] * weight)
        left.append(message / message.sum())
    right = left[::-1]
    for t in range(40):
        p = left[t] * weight * right[t]
        p /= p.sum()
        mean = p @ states
        standard_error = np.sqrt((1 - mean**2) / n_samples)
        assert np.all(np.abs(strip[:, t].mean(axis=0) - mean) < 5 * standard_error)
        for a in (0, 1):
            bond = p @ (states[:, a] * states[:, a + 1])
            observed = (strip[:, t, a] * strip[:, t, a + 1]).mean()
            assert abs(observed - bond) < 5 * np.sqrt((1 - bond**2) / n_samples)
        if t < 39:
            joint = np.outer(left[t] * weight, weight * right[t + 1]) * between
            joint /= joint.sum()
            bond = np.einsum("ij,ia,ja->a", joint, states, states)
            observed = (strip[:, t] * strip[:, t + 1]).mean(axis=0)
            assert np.all(np.abs(observed - bond) < 5 * np.sqrt((1 - bond**2) / n_samples))
    assert len(edges) == 40 * 2 + 39 * 3


@settings(max_examples=cases(30))
@given(
    n_sites=st.integers(1, 9),
    data=st.data(),
    alphabet=st.sampled_from(["protein", "dna", "_*^", "ab"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_alignment_model(n_sites, data, alphabet, seed):
    n_contacts = data.draw(st.none() | st.integers(0, n_sites * (n_sites - 1) // 2))
    alignment = make_alignment(
        5, n_sites, alphabet=alphabet, n_contacts=n_contacts, n_steps=1, random_state=seed
    )
    q = len(alignment.alphabet)
    assert alignment.codes.shape == (5, n_sites) and alignment.codes.dtype == np.int8
    assert 0 <= alignment.codes.min() and alignment.codes.max() < q
    letters = [[alignment.alphabet[code] for code in row] for row in alignment.codes]
    assert alignment.letters.tolist() == letters
    contacts = alignment.contacts.tolist()
    if n_contacts is None:
        n_contacts = min(n_sites, n_sites * (n_sites - 1) // 2)
    assert len(contacts) == n_contacts and contacts == sorted(contacts)
    assert len(set(map(tuple, contacts))) == n_contacts and all(i < j for i, j in contacts)
    coupling = alignment.coupling
    assert coupling.shape == (n_sites, n_sites, q, q) and alignment.field.shape == (n_sites, q)
    assert_array_equal(coupling, coupling.transpose(1, 0, 3, 2))
    for sums in (coupling.sum(axis=2), coupling.sum(axis=3), alignment.field.sum(axis=1)):
        assert_allclose(sums, 0, atol=1e-12)
    coupled = np.argwhere(np.triu(np.abs(coupling).max(axis=(2, 3)) > 0))
    assert coupled.tolist() == contacts
