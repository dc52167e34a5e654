"""Columns whose numbers lie on a grid, or are few: what models make has these numbers."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from contract.estimators import OF_ANY_TABLE, Location, each
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from private import Grid
from sklearn_boltz import BoltzmannImputer, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
START = pd.Timestamp("2020-01-06 08:30")


def on_grids(n=300, seed=0):
    """A column on each kind of grid, and one on none."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 4000, (4, n))
    return pd.DataFrame({
        "cents": rng.gamma(2, 1000, n).round(2), "fives": 5 * steps[0],
        "quarters": 0.25 * steps[1] - 100, "single": rng.random(n).round(3).astype(np.float32),
        "minutes": START + pd.to_timedelta(steps[2], "min"),
        "weeks": pd.Timestamp("2020-01-06") + pd.to_timedelta(7 * steps[3], "D"),
        "some": rng.choice([0.0, 0.5, 1.75, 5.5], n), "real": rng.normal(size=n),
    })  # fmt: skip


def assert_on_grids(frame, means=False):
    cents, single = frame["cents"].to_numpy(float), frame["single"].to_numpy(float)
    assert_array_equal(cents, cents.round(2))
    assert_array_equal(single.astype(np.float32), single.round(3).astype(np.float32))
    assert not (frame["fives"] % 5).any() and not (frame["quarters"] * 4 % 1).any()
    assert_array_equal(frame["minutes"], frame["minutes"].dt.floor("min"))
    assert not ((frame["weeks"] - pd.Timestamp("2020-01-06")).dt.days % 7).any()
    assert means or set(frame["some"]) <= {0.0, 0.5, 1.75, 5.5}
    assert frame["real"].nunique() > 2 and (frame["real"] != frame["real"].round(6)).any()


@each([*OF_ANY_TABLE[:-1], Location()])
def test_what_models_draw_and_fill_lies_on_the_grids(estimator):
    frame = on_grids(150)
    model = clone(estimator).fit(frame)
    assert_on_grids(model.sample(200, random_state=0))
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    for how in ("mean", "mode", "sample"):
        assert_on_grids(model.impute(gaps, how=how, random_state=0), how == "mean")


def test_batches_have_grids():
    frame = on_grids()
    model = FVBMPseudoLikelihood().fit(Batches([frame[:100], frame[100:]]))
    assert_on_grids(model.sample(200, random_state=0))


@functools.cache
def filler():
    frame = on_grids(150)
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    return gaps, BoltzmannImputer(random_state=0).fit(gaps)


@pytest.mark.parametrize("how", ["mode", "mean", "sample"])
def test_imputations_lie_on_the_grids(how):
    gaps, imputer = filler()
    filled = imputer.set_params(how=how).transform(gaps)
    assert not filled.isna().any().any()
    assert_on_grids(filled, how == "mean")


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=40, unique=True),
    st.integers(0, 5),
    st.sampled_from([1, 5, 25, 60]),
    st.sampled_from([np.float64, np.float32]),
)
@settings(max_examples=cases(100))
def test_all_numbers_lie_on_the_grid_that_is_found(places, n_digits, step, dtype):
    numbers = np.round(np.array(places) * step / 10.0**n_digits, n_digits)
    found = numbers.astype(dtype).astype(float)
    grid = Grid.of(found)
    if grid is None:
        is_whole = (found == np.floor(found)).all()
        assert is_whole or dtype is np.float32  # which has too few digits
        return
    assert_array_equal(grid.nearest(found).astype(dtype), found.astype(dtype))
    between = np.linspace(found.min(), found.max(), 50)
    nearest = grid.nearest(between)
    assert (np.diff(nearest) >= 0).all()
    ends, more = found[[found.argmin(), found.argmax()]], 1e-6 * (1 + np.abs(found).max())
    assert ends[0] - more <= nearest.min() and nearest.max() <= ends[1] + more
    assert (np.abs(nearest - between) <= grid.step * 0.5001 + 1e-6 * np.abs(between)).all()


def test_real_numbers_and_whole_ones_have_no_grid():
    """Ten whole numbers have a common step by accident in 1 of 1e6 tables."""
    rng = np.random.default_rng(0)
    assert Grid.of(rng.normal(size=100)) is None and Grid.of(rng.random(3)) is None
    assert Grid.of(rng.integers(100, size=100).astype(float)) is None
    assert Grid.of(np.array([10.0, 20.0, 40.0])) is None
    assert Grid.of(10 * rng.integers(100, size=30).astype(float)).step == 10


def prices(n=1500, n_places=25, seed=0):
    """Two prices and a tax, which depend on the place and on nothing else, and a place's size."""
    rng = np.random.default_rng(seed)
    known = rng.gamma(3, 1, (n_places, 3)).round(4)
    place = rng.integers(n_places, size=n)
    frame = pd.DataFrame(known[place], columns=["price", "other", "tax"])
    return frame.assign(size=(10 * np.exp(rng.normal(place / 20, 0.5))).round(3))


def test_few_numbers_are_filled_by_those_that_exist_as_often_right_as_by_forests():
    frame = prices()
    hidden = np.random.default_rng(0).random(frame.shape) < [0.15, 0.15, 0.15, 0]
    filled = BoltzmannImputer().fit_transform(frame.mask(hidden))
    for j, name in enumerate(["price", "other", "tax"]):
        rows = hidden[:, j]
        assert filled[name].isin(frame[name]).all()
        right = (filled[name] == frame[name])[rows].mean()
        X = frame.mask(hidden).drop(columns=name).fillna(-1)
        forest = RandomForestClassifier(50, random_state=0)
        forest.fit(X[~rows], frame[name][~rows].astype(str))
        of_forest = (forest.predict(X[rows]) == frame[name][rows].astype(str)).mean()
        assert right > max(0.9, of_forest)


def test_two_waves_of_dates_are_filled_by_dates_of_a_wave():
    waves = pd.to_datetime(["2019-03-01", "2021-10-15"])
    rng = np.random.default_rng(0)
    wave = rng.integers(2, size=200)
    frame = pd.DataFrame({"wave": waves[wave], "answer": np.where(wave, "yes", "no")})
    gaps = frame.mask(np.eye(200, 2) == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled = BoltzmannImputer().fit_transform(gaps)
    assert filled["wave"][0] == frame["wave"][0]
