"""Columns of numbers, in every estimator: bins, densities inside, and values that can be."""

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract.estimators import (
    DENSITIES,
    META,
    OF_ANY_TABLE,
    Location,
    each,
    each_with,
    name_of,
)
from contract.frames import AMOUNTS
from contract.once import once
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OF_NUMBERS = [e for e in DENSITIES if not isinstance(e, MaximumEntropy)]
WITH_SCORES = [*OF_ANY_TABLE, Location()]


def wages(n=100, seed=0):
    """Ages and whole hours, wages that rise with them, shares, and words."""
    rng = np.random.default_rng(seed)
    age, city = rng.integers(18, 70, n), rng.choice(["Bern", "Oslo", "Rome"], n)
    wage = np.exp(rng.normal(age / 40, 0.5)) + 3 * (city == "Oslo")
    return pd.DataFrame({
        "age": age,
        "city": city,
        "wage": wage.round(2),
        "share": rng.beta(2, 3, n),
        "hours": np.where(rng.random(n) < 0.6, 40, rng.integers(1, 80, n)),
    })  # fmt: skip


def with_gaps(X, share=0.15, seed=1):
    """The same with missing cells, in types that can hold them."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        name: cells.astype(float if cells.dtype.kind == "i" else cells.dtype).where(
            rng.random(len(X)) >= share
        )
        for name, cells in X.items()
    })  # fmt: skip


@once
def _fitted():
    X = with_gaps(wages())
    return {str(e): pickle.dumps(clone(e).fit(X)) for e in WITH_SCORES}


def fitted(estimator):
    return pickle.loads(_fitted()[str(estimator)])


@each(WITH_SCORES)
def test_rows_of_numbers_and_words(estimator):
    X, model = with_gaps(wages()), fitted(estimator)
    scores = model.score_samples(X)
    assert np.isfinite(scores).all()
    far = wages().head(3).assign(wage=[1e6, -5.0, 0.0], age=[0, 200, 44], hours=[99, 1, 0])
    assert np.isfinite(model.score_samples(far)).all()
    drawn = model.sample(40, random_state=0)
    assert drawn.columns.tolist() == X.columns.tolist() and (drawn.dtypes == X.dtypes).all()
    assert_possible(drawn)
    filled = model.impute(X, how="sample", random_state=0)
    assert not filled.isna().any(axis=None)
    assert_possible(filled)
    known = X.notna()
    assert filled.where(known).equals(X.where(known))
    for how in ("mean", "mode"):
        filled = model.impute(X, how=how)
        assert not filled.isna().any(axis=None) and filled["wage"].between(0, 100).all()
    given = model.sample(20, random_state=0, given={"age": 33, "city": "Oslo"})
    assert (given["age"] == 33).all() and (given["city"] == "Oslo").all()
    with pytest.raises(ValueError, match="'old'"):
        model.sample(2, given={"age": "old"})
    for name, categories in zip(X, model.categories_, strict=True):
        p = model.predict_column_proba(X, name)
        assert p.shape == (len(X), len(categories))
        assert_allclose(p.sum(axis=1), 1)


def assert_possible(rows):
    """Whole numbers are whole, money has two digits, and nothing is negative or a new word."""
    for name in ("age", "hours"):
        assert (rows[name] == rows[name].round()).all() and (rows[name] >= 0).all()
    assert_allclose(rows["wage"], rows["wage"].round(2), atol=1e-9)
    assert (rows["wage"] > 0).all() and rows["share"].between(0, 1).all()
    assert set(rows["city"]) <= {"Bern", "Oslo", "Rome"}


def every_kind(n_rows=60, seed=0):
    """Words, booleans, whole numbers and real ones."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bern", "Oslo", "Rome"], n_rows)
    return pd.DataFrame({
        "city": city,
        "member": (city == "Oslo") ^ (rng.random(n_rows) < 0.2),
        "age": rng.integers(18, 30, n_rows) + 5 * (city == "Rome"),
        "change": rng.normal(size=n_rows) + (city == "Bern"),
    })  # fmt: skip


def nodes_of(column):
    """Cells over which a sum with these weights is that over all values of a column.

    Of words and booleans, all and another one. Of whole numbers all to the borders of the
    tails, of which the probabilities are known in closed form. Of real numbers, the nodes of
    Gauss and Legendre in each piece, and in the tails after a transform of these to (0, 1).
    """
    bins = column.bins
    if bins is None:
        cells = [*column.categories.tolist(), "another"]
        return np.array(cells, dtype=object), np.ones(len(cells))
    ends = bins.breaks[[0, -1]]
    if bins.is_whole:
        cells = np.arange(np.floor(ends[0]), np.ceil(ends[1]) + 1)
        weights = np.ones(len(cells))
        far = bins.scales + np.abs(cells[[0, -1]] - ends)
        weights[[0, -1]] = 1 / (1 - ((far - 0.5) / (far + 0.5)) ** 2)
        return cells, weights
    z, w = np.polynomial.legendre.leggauss(3)
    half = np.diff(bins.breaks)[:, np.newaxis] / 2
    cells, weights = [bins.breaks[:-1, np.newaxis] + half * (1 + z)], [half * w]
    z, w = np.polynomial.legendre.leggauss(4)
    t, dt = (1 + z) / 2, w / 2
    for end, scale in zip(ends, bins.scales * [-1, 1], strict=True):
        cells.append(end + scale * t / (1 - t))
        weights.append(np.abs(scale) * dt / (1 - t) ** 2)
    return np.concatenate([*map(np.ravel, cells)]), np.concatenate([*map(np.ravel, weights)])


@each([META[0], clone(META[0]).set_params(joint=True)])
def test_probabilities_of_all_rows_sum_to_one(estimator):
    """Over words, booleans and whole numbers, with an integral over real ones.

    Of models, see test_verbs.py.
    """
    X = every_kind()
    model = clone(estimator).fit(X, X.iloc[:, 0] == X.iloc[0, 0])
    cells, weights = zip(*map(nodes_of, model._encoder.columns), strict=True)
    places = np.indices([len(own) for own in cells]).reshape(len(cells), -1)
    of_all = zip(X, cells, places, strict=True)
    rows = pd.DataFrame({name: own[place] for name, own, place in of_all})
    weight = np.prod([w[place] for w, place in zip(weights, places, strict=True)], axis=0)
    assert_allclose(weight @ np.exp(model.score_samples(rows)), 1, rtol=0, atol=1e-8)


@each(WITH_SCORES)
def test_quantiles_are_those_of_draws(estimator):
    """Shares of 1,000 draws within four standard errors: 1 false alarm in 2,000 tests of six."""
    model = fitted(estimator)
    row = wages().iloc[[3]].assign(age=np.nan)
    levels = np.array([0.1, 0.5, 0.8])
    (found,) = model.predict_column_quantiles(row, "age", levels)
    draws = model.impute(row.loc[row.index.repeat(1000)], how="sample", random_state=0)["age"]
    error = 4 * np.sqrt(levels * (1 - levels) / 1000)
    assert (np.mean(draws.to_numpy()[:, None] <= found, axis=0) >= levels - error).all()
    assert (np.mean(draws.to_numpy()[:, None] < found, axis=0) <= levels + error).all()
    ends = model.predict_column_quantiles(row, "age", [0, 1])
    assert (ends[0] == [wages()["age"].min(), wages()["age"].max()]).all()
    with pytest.raises(ValueError, match="column 'city' has values that are no numbers"):
        model.predict_column_quantiles(row, "city")
    with pytest.raises(ValueError, match=r"quantiles must be .* got \[1.5\]"):
        model.predict_column_quantiles(row, "age", [1.5])


def test_quantiles_of_scores_know_their_place_inside_of_bins():
    """y differs from x by a hundredth, so that an interval is much narrower than a bin."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    model = Location().fit(pd.DataFrame({"x": x, "y": x + 0.01 * rng.normal(size=1000)}))
    X = pd.DataFrame({"x": [-1.5, 0.0, 1.0], "y": [None] * 3})
    for row, found in zip(X["x"], model.predict_column_quantiles(X, "y"), strict=True):
        drawn = model.sample(4000, random_state=0, given={"x": row})["y"]
        assert_allclose(found, np.quantile(drawn, [0.05, 0.5, 0.95]), rtol=0, atol=0.01)


@each_with("make", [pl.DataFrame, pa.table], [*OF_NUMBERS, Location()])
def test_frames_of_other_libraries_and_arrays(estimator, make):
    X = wages(60)
    expected = clone(estimator).fit(X)
    frame = make({name: cells.tolist() for name, cells in X.items()})
    model = clone(estimator).fit(frame)
    assert_array_equal(model.score_samples(frame), expected.score_samples(X))
    assert model.sample(3, random_state=0).schema == frame.schema
    numbers = X.drop(columns="city").to_numpy()
    model = clone(estimator).fit(numbers)
    scores = model.score_samples(numbers)
    assert np.isfinite(scores).all()
    assert_array_equal(model.score_samples(numbers.tolist()), scores)
    assert model.sample(3, random_state=0).dtype == numbers.dtype


@each(OF_NUMBERS)
def test_rows_that_do_not_count_are_as_if_absent(estimator):
    """Their strings are no levels, and their numbers change no kind."""
    X = with_gaps(wages(60)).assign(kids=np.arange(60) % 4)
    far = pd.DataFrame([{"age": 999.0, "city": "Bonn", "wage": -1e9, "share": 7.0, "kids": 999}])
    more = pd.concat([X, far], ignore_index=True)
    model = clone(estimator).fit(more, sample_weight=np.append(np.ones(60), 0))
    absent = clone(estimator).fit(X, sample_weight=np.ones(60))
    assert model.columns_ == absent.columns_
    assert_array_equal(model.categories_[1], absent.categories_[1])
    assert_allclose(model.score_samples(X), absent.score_samples(X), rtol=1e-6)


@each_with("what", AMOUNTS, OF_NUMBERS)
def test_numbers_of_all_sorts(estimator, what):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(estimator).fit(AMOUNTS[what])
    assert np.isfinite(model.score_samples(AMOUNTS[what])).all()
    drawn, rows = (pd.DataFrame(r) for r in (model.sample(5, random_state=0), AMOUNTS[what]))
    assert (drawn.dtypes == rows.dtypes).all()
    if what not in ("seven columns of amounts", "rates above one"):  # others between them
        assert set(drawn.iloc[:, 0]) <= set(rows.iloc[:, 0])


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * k) for k in range(60)]
DATES = {
    "pandas": pd.DataFrame({"day": pd.to_datetime(DAYS), "vote": ["no", "yes"] * 30}),
    "Python": pd.DataFrame({"day": DAYS, "vote": ["no", "yes"] * 30}),
    "polars": pl.DataFrame({"day": DAYS, "vote": ["no", "yes"] * 30}),
    "times of polars": pl.DataFrame({
        "day": [datetime.datetime(2020, 1, 1, k % 24, 30) for k in range(60)],
        "vote": ["no", "yes"] * 30,
    }),
    "PyArrow": pa.table({"day": DAYS, "vote": ["no", "yes"] * 30}),
    "times of PyArrow": pa.table({
        "day": pa.array([datetime.datetime(2020, 1, 1, k, 30) for k in range(20)] * 3,
                        pa.timestamp("ms")),
        "vote": ["no", "yes"] * 30,
    }),
}  # fmt: skip


def cells(column):
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


@pytest.mark.parametrize("kind", DATES)
def test_dates_come_back(kind):
    X = DATES[kind]
    make = pa.table if isinstance(X, pa.Table) else type(X)
    gaps = {name: cells(X[name]) for name in ("day", "vote")}
    gaps["day"][:3] = [None] * 3
    gaps = make(gaps)
    model = FVBMPseudoLikelihood().fit(gaps)
    days = set(cells(X["day"])[3:])
    assert set(cells(model.sample(50, random_state=0)["day"])) <= days
    filled = cells(model.impute(gaps, how="sample", random_state=0)["day"])
    assert filled[3:] == cells(X["day"])[3:] and set(filled) <= days
    mean = cells(model.impute(gaps)["day"])[0]
    assert min(days) < mean < max(days)
    given = model.sample(4, random_state=0, given={"day": cells(X["day"])[7]})
    assert set(cells(given["day"])) == {cells(X["day"])[7]}
    with pytest.raises(ValueError, match="has cells that are not dates"):
        model.score_samples(make({"day": [True], "vote": ["no"]}))


@each(OF_ANY_TABLE)
def test_kinds_of_columns_are_told_and_taken(estimator, capsys):
    """Those that were found are as good as what the user says."""
    X = wages(120)
    model = clone(estimator).set_params(verbose=1).fit(X)
    line = f"[{name_of(estimator)}] columns: "
    (said,) = [told for told in capsys.readouterr().out.splitlines() if told.startswith(line)]
    for kind in set(model.columns_.values()):
        own = [name for name, its in model.columns_.items() if its == kind]
        assert f"{len(own)} {kind} ({', '.join(own)})" in said
    kinds = model.columns_
    assert list(kinds) == list(X.columns)
    assert {"binned", "nominal"} <= set(kinds.values()) <= {"binned", "nominal", "binary"}
    again = clone(estimator).set_params(columns=kinds).fit(X)
    assert again.columns_ == kinds
    counted = clone(estimator).set_params(columns={"age": "count"}).fit(X)
    assert counted.columns_ == kinds | {"age": "count"}
