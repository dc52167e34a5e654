"""Local minima of the energy, and basins, against all states."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import FVBMPseudoLikelihood


def fitted(n_values, seed):
    """A network with parameters of its own, and all states of its columns."""
    rng = np.random.default_rng(seed)
    states = np.array(list(itertools.product(*map(range, n_values))))
    model = FVBMPseudoLikelihood(alpha=0.1, n_values=n_values).fit(states)
    noise = rng.normal(size=model.coupling_.shape)
    if max(n_values) == 2:
        model.coupling_ = noise + noise.T - np.diag(2 * noise.diagonal())
    else:
        column = np.repeat(np.arange(len(n_values)), n_values)
        model.coupling_ = (noise + noise.T) * (column[:, None] != column)
    model.intercept_ = rng.normal(size=model.intercept_.shape)
    return model, states


def neighbours(state, n_values):
    """States that differ in one column."""
    for j, q in enumerate(n_values):
        for a in set(range(q)) - {state[j]}:
            yield (*state[:j], a, *state[j + 1 :])


@given(st.lists(st.integers(2, 4), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_minima_and_basins_are_those_of_all_states(n_values, seed):
    model, states = fitted(n_values, seed)
    energy = dict(zip(map(tuple, states.tolist()), model.energy(states), strict=True))
    lowest_around = {
        state: min(neighbours(state, n_values), key=energy.get) for state in energy
    }  # the steepest way
    expected = {s for s in energy if energy[s] < energy[lowest_around[s]]}
    found = model.local_minima(states)
    assert set(map(tuple, found.states.tolist())) == expected
    assert_allclose(found.energy, [energy[tuple(s)] for s in found.states.tolist()])
    assert (np.diff(found.energy) >= 0).all()
    assert_array_equal(found.count, np.bincount(found.basin))
    for state, basin in zip(map(tuple, states.tolist()), found.basin, strict=True):
        while energy[lowest_around[state]] < energy[state]:
            state = lowest_around[state]
        assert state == tuple(found.states[basin].tolist())


def test_states_of_equal_energy_end():
    """Without parameters, every state is where it is."""
    X = np.array([[0, 1], [1, 0], [0, 0], [1, 1]])
    model = FVBMPseudoLikelihood(alpha=1).fit(X)
    model.coupling_, model.intercept_ = np.zeros((2, 2)), np.zeros(2)
    assert len(model.local_minima(X).states) == 4


def test_random_starts_and_tables():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(200) < 0.3, "b": rng.random(200) < 0.4})
    X["c"] = X.a
    model = FVBMPseudoLikelihood(alpha=0.01).fit(X)
    minima = model.local_minima(n_starts=300, random_state=0)
    assert minima.count.sum() == len(minima.basin) == 300
    assert list(minima.states.columns) == ["a", "b", "c"]
    again = model.local_minima(minima.states)
    assert_array_equal(again.basin, np.arange(len(minima.states)))


def test_rows_with_missing_cells_are_refused():
    X = np.random.default_rng(0).integers(0, 2, size=(50, 3)).astype(float)
    model = FVBMPseudoLikelihood(alpha=0.1).fit(X)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 has no value .NaN. in row 3"):
        model.local_minima(X)
