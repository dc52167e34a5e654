"""BoltzmannImputer: fills tables of words, levels and numbers, in pipelines and searches."""

import functools
import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from private import Coded, Encoder, LinearMeans, Need, _few_numbers
from sklearn_boltz import SDCPRBM, BoltzmannImputer, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches


def linear_table(n=2000, seed=0):
    """A word, levels and two numbers, each of which follows from the others and noise."""
    rng = np.random.default_rng(seed)
    word, level = rng.integers(3, size=n), rng.integers(1, 9, size=n)
    first = np.array([0.0, 3.0, -2.0])[word] + 0.5 * level + rng.normal(size=n)
    return pd.DataFrame({
        "word": np.array(list("abc"))[word], "level": level, "first": first,
        "second": 100 + 10 * first + 5 * level + rng.normal(size=n),
    })  # fmt: skip


def linear_means(X):
    """What is known of the columns, and the linear means of their numbers."""
    table = Encoder.learn(X, None, Need(bins=True))
    linear = LinearMeans(table.has_means, table.n_categories)
    return table, linear.fit(Coded(table, X, table.encode(X, "missing")), np.ones(len(X)))


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def survey():
    """300 rows: two words that follow a third, levels and noise; what is hidden, and the rest."""
    rng = np.random.default_rng(0)
    city = rng.integers(3, size=300)
    frame = pd.DataFrame({
        "city": np.array(["Bonn", "Oslo", "Rome"])[city],
        "tongue": np.array(["German", "Norse", "Italian"])[city],
        "north": pd.array(city == 1, dtype="boolean"),
        "level": pd.Categorical(np.array(["low", "mid", "high"])[city], ["low", "mid", "high"]),
        "coin": rng.integers(2, size=300),
    })  # fmt: skip
    hidden = rng.random(frame.shape) < 0.15
    hidden[:, 0] &= ~hidden[:, 1]  # of two, one is observed
    gaps = frame.astype(dict.fromkeys(["city", "tongue", "north", "coin"], object))
    for name, rows in zip(frame, hidden.T, strict=True):
        gaps.loc[rows, name] = None
    return frame, hidden, gaps


@pytest.fixture(scope="module")
def of_survey(survey):
    return BoltzmannImputer(random_state=0).fit(survey[2])


def share_right(filled, frame, hidden, names=("city", "tongue", "level")):
    right = [
        (filled[name].to_numpy()[rows] == frame[name].to_numpy()[rows]).mean()
        for name, rows in zip(frame, hidden.T, strict=True)
        if name in names
    ]
    return np.mean(right)


@pytest.mark.parametrize("how", ["mode", "mean", "sample"])
def test_words_are_filled_by_words(survey, of_survey, how):
    frame, hidden, gaps = survey
    filled = of_survey.set_params(how=how).transform(gaps)
    assert list(filled.columns) == list(frame.columns) and not filled.isna().any().any()
    observed = ~hidden
    assert (filled.to_numpy()[observed] == gaps.to_numpy()[observed]).all()
    assert filled["level"].dtype == frame["level"].dtype
    # By guessing, a third is right.
    assert share_right(filled, frame, hidden) > 0.9


def test_any_density_and_indicators(survey):
    frame, hidden, gaps = survey
    imputer = BoltzmannImputer(FSLLDensity(), add_indicator=True).fit(gaps[["city", "tongue"]])
    filled = imputer.transform(gaps[["city", "tongue"]])
    names = ["city", "tongue", "missing_city", "missing_tongue"]
    assert list(filled.columns) == names == imputer.get_feature_names_out().tolist()
    assert_array_equal(filled[names[2:]].to_numpy(dtype=bool), hidden[:, :2])
    assert share_right(filled, frame, hidden, ("city", "tongue")) > 0.9


def test_complete_tables_come_back_as_they_are():
    frame = pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "x"]}, index=[3, 4, 5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BoltzmannImputer().fit_transform(frame).equals(frame)


def test_numbers_that_follow_from_others_are_nearer_than_their_bins():
    """Degrees of Celsius and of Fahrenheit, rounded; where neither is known, as before."""
    rng = np.random.default_rng(0)
    celsius = rng.normal(15, 8, size=500).round(1)
    X = pd.DataFrame({"celsius": celsius, "fahrenheit": (32 + 1.8 * celsius).round(1)})
    X["site"] = rng.choice(["hill", "coast"], size=500)
    gaps = X.copy()
    gaps.loc[:99, "fahrenheit"] = gaps.loc[80:119, "celsius"] = np.nan
    filled = BoltzmannImputer().fit_transform(gaps)
    names = ["celsius", "fahrenheit"]
    error = (filled[names] - X[names]).abs()
    assert error["fahrenheit"][:80].mean() < 0.2 and error["celsius"][100:120].mean() < 0.2
    assert 5 < error["fahrenheit"][80:100].mean() < 20


@pytest.mark.parametrize(("values", "is_in_order"), [(["c", "b", "a"], True), ([3, 2, 1], False)])
def test_categories_that_a_batch_lacks_are_those_of_fit(values, is_in_order):
    kind = pd.CategoricalDtype(pd.Index(values, dtype=object), ordered=is_in_order)
    X = pd.DataFrame({"level": pd.Series(values * 40, dtype=kind), "word": ["x", "y", "z"] * 40})
    imputer = BoltzmannImputer().fit(X)
    batch = pd.DataFrame({"level": pd.Series([None] * 3, dtype=kind), "word": ["x", "y", "z"]})
    assert imputer.transform(batch)["level"].dtype == kind
    fewer = batch.assign(level=batch["level"].cat.set_categories(values[:1]))
    found = imputer.transform(fewer)["level"]
    assert found.tolist() == values and found.cat.ordered == is_in_order
    assert not is_in_order or found.cat.categories.tolist() == values


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_batches_without_a_string_are_filled(library):
    """Such as of a file in which a column is empty, or of categories that it lacks."""
    words = {"city": ["Rome", "Oslo", "Bern"] * 40, "lang": ["it", "no", "de"] * 40}
    batch, module = {"city": ["Rome", "Oslo"]}, pytest.importorskip(library)
    if library == "pandas":
        kinds = ["float64", "Int64", "boolean", "datetime64[us]", "object"]
        empty = [pd.Series([None, None], dtype=kind) for kind in kinds]
        empty += [pd.Categorical([None, None], own, ordered=is_in_order)
                  for own in ([], ["it"]) for is_in_order in (False, True)]  # fmt: skip
        make = pd.DataFrame
    elif library == "polars":
        kinds = [module.Null, module.Float64, module.Boolean, module.Enum(["it"])]
        empty = [module.Series([None, None], dtype=kind) for kind in kinds]
        make = module.DataFrame
    else:
        kinds = [module.null(), module.float64(), module.int64()]
        empty, make = [module.array([None, None], kind) for kind in kinds], module.table
    imputer, network = BoltzmannImputer().fit(make(words)), FVBMPseudoLikelihood().fit(make(words))
    for fill in (imputer.transform, network.impute):
        for lang in empty:
            found = fill(make({**batch, "lang": lang}))["lang"]
            assert (found.to_pylist() if library == "pyarrow" else list(found)) == ["it", "no"]


def exact_probabilities(network, row):
    """p of the joint values of the missing codes of a row, by the scores of all states."""
    missing = np.flatnonzero(np.isnan(row))
    states = list(itertools.product(*[range(network.n_values_[j]) for j in missing]))
    rows = np.tile(row, (len(states), 1))
    rows[:, missing] = states
    p = np.exp(network.score_samples(rows))
    return np.reshape(p / p.sum(), network.n_values_[missing])


def test_probabilities_are_sums_over_joint_values_and_the_greatest_is_filled(survey):
    gaps = survey[2].copy()
    gaps.loc[0, ["city", "tongue", "coin"]] = None
    imputer = BoltzmannImputer().fit(gaps)
    found, codes = imputer.predict_cell_proba(gaps), imputer._encoder.encode(gaps)
    for row in (0, *np.flatnonzero(gaps.isna().sum(axis=1) == 2)[:3]):
        names = gaps.columns[gaps.loc[row].isna()]
        joint = exact_probabilities(imputer.estimator_, codes[row])
        for axis, name in enumerate(names):
            others = tuple(k for k in range(joint.ndim) if k != axis)
            own = found[name].probabilities[found[name].rows == row]
            assert_allclose(own[0], joint.sum(axis=others), rtol=1e-6)
    filled = imputer.transform(gaps)
    assert list(found) == list(gaps)
    for name in ("city", "tongue", "north", "level"):
        own = found[name]
        assert_array_equal(own.rows, np.flatnonzero(gaps[name].isna()))
        best = own.categories[own.probabilities.argmax(axis=1)]
        assert_array_equal(filled[name].to_numpy()[own.rows], best)
    assert found["coin"].categories.tolist() == [0, 1]
    assert found["coin"].probabilities.shape[1] == 2


def test_probabilities_of_arrays_of_constants_and_of_nothing():
    X = np.array([["a", 3, None], ["b", 3, None], [None, None, None]] * 10, dtype=object)
    with pytest.warns(UserWarning, match="column 2 without"):
        imputer = BoltzmannImputer().fit(X)
    found = imputer.predict_cell_proba(X)
    assert list(found) == [0, 1] and (found[1].probabilities == 1).all()
    assert imputer.predict_cell_proba(X[:2]) == {}
    assert not hasattr(BoltzmannImputer(OnlyImputes()), "predict_cell_proba")


class OnlyImputes(FVBMPseudoLikelihood):
    predict_column_proba = property()


def test_imputations_are_draws_of_the_joint_distribution():
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=200)
    X = pd.DataFrame({"a": first, "b": np.where(rng.random(200) < 0.9, first, 1 - first)})
    X = pd.concat([X, X[:1].assign(a=np.nan, b=np.nan)], ignore_index=True)
    imputer = BoltzmannImputer(random_state=0, add_indicator=True).fit(X)
    p = exact_probabilities(imputer.estimator_, np.full(2, np.nan)).ravel()
    tables = imputer.multiple_imputations(X, 200)
    assert all(table[:200].equals(tables[0][:200]) for table in tables)
    assert tables[0]["missing_a"].to_numpy(bool).tolist() == [False] * 200 + [True]
    drawn = np.array([table.iloc[200, :2] for table in tables]).astype(int) @ [2, 1]
    assert stats.chisquare(np.bincount(drawn, minlength=4), 200 * p).pvalue > 1e-6
    again = imputer.multiple_imputations(X, n_imputations=2)
    assert all(table.equals(other) for table, other in zip(again, tables[:2], strict=True))
    with pytest.raises(
        ValueError, match=r"'n_imputations' parameter of BoltzmannImputer\.multiple_imputations"
    ):
        imputer.multiple_imputations(X, 0)


def test_pairs_of_split_ballots_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(2, size=(90, 7)), columns=list("abcdefg"), dtype=float)
    X.loc[:44, ["b", "c"]] = np.nan
    X.loc[45:, ["d", "e", "f"]] = np.nan
    X.loc[:, "g"] = np.nan
    pairs = "no row has both of the columns 'b' and 'd', 'b' and 'e', 'b' and 'f', 'c' and 'd'"
    expected = f"{pairs}, 'c' and 'e', and 1 more\\."
    for density in (None, FVBMPseudoLikelihood(missing="observed")):
        with pytest.warns(UserWarning, match=f"^BoltzmannImputer: {expected}") as found:
            BoltzmannImputer(density).fit(X)
        assert sum("no row has both" in str(one.message) for one in found) == 1
    X = X.drop(columns="g")
    X.loc[0, ["b", "c"]] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FVBMPseudoLikelihood().fit(X)


@pytest.mark.parametrize("observed", ["first", "second"])
def test_linear_means_are_those_of_regressions(observed):
    """With 2,000 rows, its weak priors move means by less than a tenth of their errors.

    The others all but determine the number: means may be beyond the numbers of the training.
    """
    X = linear_table()
    table, linear = linear_means(X)
    hidden = {"first": "second", "second": "first"}[observed]
    known = pd.get_dummies(X[["word", "level", observed]], columns=["word"], dtype=float)
    expected = LinearRegression().fit(known, X[hidden]).predict(known)
    gaps = X.assign(**{hidden: np.nan})
    p = [np.ones((len(X), n)) / n for n in table.n_categories]
    found = linear.means(Coded(table, gaps, table.encode(gaps, "missing")), p)
    error = (X[hidden] - expected).std()
    assert np.abs(found[X.columns.get_loc(hidden)][0] - expected).max() < error / 10


def test_integers_among_objects_stay_integers():
    rng = np.random.default_rng(0)
    X = np.empty((60, 3), dtype=object)
    X[:, 0] = rng.integers(0, 2, 60).tolist()
    X[:, 1] = np.where(X[:, 0], "x", "y")
    X[:, 2] = rng.integers(0, 30, 60).tolist()
    X[[3, 7, 9], [0, 2, 1]] = None
    imputer = BoltzmannImputer(random_state=0).fit(X)
    for how in ("mode", "mean", "sample"):
        filled, kinds = imputer.set_params(how=how).transform(X), {int, float}
        assert {type(filled[3, 0]), type(filled[7, 2])} <= (kinds if how == "mean" else {int})
        assert type(filled[9, 1]) is str and type(filled[0, 0]) is int


# What others have in tables, and what scikit-learn's imputers do.


@functools.cache
def of_bits(convert):
    rows = np.array([[0, 1], [1, 0], [0, np.nan], [1, 1]] * 10)
    return BoltzmannImputer(random_state=0).fit(convert(rows))


@pytest.mark.parametrize("how", ["mode", "mean", "sample"])
@pytest.mark.parametrize("new", [2.0, 0.5, -1.0, 700.0])
@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame])
def test_a_new_value_in_a_column_of_0_and_1_is_left_alone(convert, new, how):
    """And is as good as missing for other cells."""
    imputer = of_bits(convert).set_params(how=how)
    filled = np.asarray(imputer.transform(convert(np.array([[new, np.nan], [np.nan, 0.0]]))))
    unknown = np.asarray(imputer.transform(convert(np.array([[np.nan, np.nan], [np.nan, 0.0]]))))
    assert filled[0, 0] == new
    assert filled[0, 1] == unknown[0, 1] and filled[1, 0] == unknown[1, 0]


@pytest.mark.parametrize("n_rows", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_copies_of_a_column_are_recovered(n_rows):
    """Also where the hidden number is beyond all that are left in its column."""
    rng = np.random.default_rng(n_rows)
    rows = np.repeat(rng.normal(size=(n_rows, 1)), 10, axis=1)
    hidden = rng.random(rows.shape) < 0.2
    hidden[rows[:, 0].argmax(), 0] = hidden[rows[:, 0].argmin(), 1] = True
    filled = BoltzmannImputer().fit_transform(np.where(hidden, np.nan, rows))
    assert np.abs(filled - rows).max() < 0.07
    # What is not negative stays so.
    rows = np.exp(rows)
    filled = BoltzmannImputer().fit_transform(np.where(hidden, np.nan, rows))
    assert filled.min() >= 0


def test_a_fitted_density_fills_as_it_would_itself():
    rng = np.random.default_rng(0)
    common = rng.integers(3, size=200)
    frame = pd.DataFrame({f"c{j}": np.where(rng.random(200) < 0.8, common, 0) for j in range(4)})
    density = FVBMPseudoLikelihood(alpha=0.01).fit(frame)
    before = density.coupling_.copy()
    gaps = frame.mask(rng.random(frame.shape) < 0.2)[:50]
    gaps["c3"] = np.nan  # which the density knows
    imputer = BoltzmannImputer(FrozenEstimator(density)).fit(gaps)
    assert imputer.estimator_ is density
    assert_array_equal(imputer.transform(gaps), density.impute(gaps, how="mode"))
    assert_array_equal(density.coupling_, before)


@pytest.mark.parametrize("density", [None, FVBMPseudoLikelihood(alpha=0.1), FSLLDensity()])
def test_batches_are_filled_as_their_table(survey, density):
    gaps = survey[2]
    imputer = BoltzmannImputer(density, add_indicator=True, random_state=0)
    filled = imputer.fit(iter([gaps[:100], gaps[:0], gaps[100:]])).transform(gaps)
    assert_array_equal(filled["missing_city"], gaps["city"].isna())
    pd.testing.assert_frame_equal(filled, clone(imputer).fit_transform(gaps))


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table])
def test_batches_have_the_same_columns_in_types_that_go_together(convert):
    whole, words = convert({"a": [1, 0], "b": ["x", "y"]}), convert({"a": [1.5, 0], "b": [2, 1]})
    other = convert({"a": [1, 0], "c": ["x", "y"]})
    with pytest.raises(ValueError, match="In batch 1: the columns are 'a', 'c', but .* 'a', 'b'"):
        BoltzmannImputer().fit(Batches([whole, other]))
    if convert is pa.table:  # others have a type of texts and numbers
        with pytest.raises(ValueError, match="BoltzmannImputer: .* types that are not alike"):
            BoltzmannImputer().fit(Batches([whole, words]))


def test_what_is_filled_of_independent_columns():
    """Of skewed levels the first is the most frequent and the second the median; and of numbers."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({
        "level": rng.choice([0, 3, 6], p=[0.4, 0.3, 0.3], size=1000),
        "wait": rng.exponential(size=1000),
        "name": rng.choice(["p", "q"], p=[0.3, 0.7], size=1000),
    })  # fmt: skip
    rows = rng.random(1000) < 0.1
    gaps = X.mask(np.repeat(rows[:, None], 3, axis=1))
    known, found = X[~rows], {}
    for how in ("auto", "mode", "median", "mean"):
        filled = BoltzmannImputer(how=how).fit_transform(gaps)[rows]
        found[how] = filled.mean(numeric_only=True).round(3).to_dict()
        assert (filled["name"] == "q").all()
    assert found["auto"]["level"] == found["median"]["level"] == 3 and found["mode"]["level"] == 0
    assert found["mean"]["level"] == pytest.approx(known["level"].mean(), abs=0.02)
    assert found["auto"]["wait"] == found["mode"]["wait"] == found["mean"]["wait"]
    assert found["mean"]["wait"] == pytest.approx(known["wait"].mean(), abs=0.02)
    assert found["median"]["wait"] == pytest.approx(known["wait"].median(), abs=0.05)
    given = BoltzmannImputer(SDCPRBM(max_iter=2)).fit(gaps).set_params(how="median")
    for method in (given.transform, given.fit):
        pytest.raises(ValueError, method, gaps).match("how='median' is for the network")


def test_of_few_numbers_one_of_a_likely_bin_is_filled():
    rng = np.random.default_rng(0)
    word = rng.integers(2, size=1000)
    price = (20 * word + rng.integers(20, size=1000)) / 2
    price[:50] = np.nan
    X = pd.DataFrame({"word": np.array(["low", "high"])[word], "price": price})
    filled = BoltzmannImputer().set_output(transform="pandas").fit_transform(X)
    assert_array_equal(filled["price"][:50] >= 10, word[:50])


def test_of_few_numbers_each_counts_a_cell_of_its_bin_more():
    counts = np.random.default_rng(0).integers(5, size=(4, 6)).astype(float)
    bins = np.array([0, 0, 1, 1, 1, 2])
    of_bin = np.transpose([counts[:, bins == b].sum(axis=1) for b in bins])
    p = (of_bin + 1 / 4) / (of_bin.sum(axis=0) + 1)
    q = (counts + p) / (counts.sum(axis=0) + 1)
    assert_allclose([p.sum(axis=0), q.sum(axis=0)], 1)
    assert_allclose(_few_numbers._log_ratios(counts, bins), np.log(q / p))


@pytest.mark.filterwarnings("ignore:.*is taken for numbers")
def test_a_typing_error_is_found_and_spoils_no_filled_cell():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 400).astype(float)
    X = pd.DataFrame(
        {"age": age, "height": rng.normal(170, 9, 400), "pay": age + rng.normal(size=400)}
    )
    X.loc[7, "age"] = 300
    assert FVBMPseudoLikelihood().fit(X).score_samples(X).argmin() == 7
    X.loc[8, "height"], X.loc[20:60, "height"] = 1e9, np.nan
    assert BoltzmannImputer().fit_transform(X).loc[20:60, "height"].between(150, 190).all()
