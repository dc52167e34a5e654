"""Scorers, and figures that compare two tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, ks_2samp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sklearn_boltz import FSLLDensity
from sklearn_boltz.metrics import (
    c2st_score,
    compare_tables,
    log_likelihood,
    log_pseudo_likelihood,
    nearest_record_share,
    tap_log_likelihood,
)
from sklearn_boltz.restricted import SDCPRBM, TAPRBM

ESTIMATORS = [FSLLDensity(), SDCPRBM(2, max_iter=2, random_state=0)]


@pytest.fixture
def X():
    return np.random.default_rng(0).integers(2, size=(60, 5))


@pytest.mark.parametrize("scoring", [log_likelihood, log_pseudo_likelihood])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_means_alone_and_in_a_pipeline(estimator, scoring, X):
    scores = {log_likelihood: "score_samples", log_pseudo_likelihood: "log_pseudo_likelihood"}
    model = clone(estimator).fit(X)
    assert scoring(model, X) == getattr(model, scores[scoring])(X).mean()
    alone = cross_val_score(estimator, X, scoring=scoring, cv=3)
    piped = cross_val_score(make_pipeline(MinMaxScaler(), estimator), X, scoring=scoring, cv=3)
    np.testing.assert_allclose(alone, piped, rtol=1e-4)
    assert (alone < 0).all()
    search = GridSearchCV(estimator, {"columns": ["auto", "binary"]}, scoring=scoring, cv=3).fit(X)
    np.testing.assert_allclose(*search.cv_results_["mean_test_score"])


def test_tap_log_likelihood_alone_and_in_a_pipeline(X):
    model = TAPRBM(2, max_iter=2, random_state=0)
    pipeline = make_pipeline(MinMaxScaler(), model).fit(X)
    assert tap_log_likelihood(pipeline, X) == model.tap_log_likelihood(X).mean()
    assert len(cross_val_score(model, X, scoring=tap_log_likelihood, cv=3)) == 3


def table(seed, n=60):
    """Words, numbers, dates and gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "city": rng.choice(["Oslo", "Rome", "Bern"], n, p=[0.5, 0.3, 0.2]),
        "age": rng.integers(18, 80, n).astype(float),
        "height": rng.normal(170, 10, n),
        "since": np.datetime64("2020-01-01") + rng.integers(900, size=n).astype("m8[D]"),
        "size": pd.Categorical(rng.choice(["S", "M"], n), ["S", "M"], ordered=True),
    })  # fmt: skip
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.fixture(scope="module")
def tables():
    return table(0), table(1)


def test_score_is_that_of_the_best_area_under_the_curve():
    # By a bit of which the shares are .5 and .8, the area is .65. A deviation of .04 is 4 standard
    # errors, 6e-5. Here and below, seeds are fixed.
    rng = np.random.default_rng(0)
    bits = [rng.random((4000, 1)) < p for p in (0.5, 0.8)]
    assert abs(c2st_score(*bits, random_state=0) - 0.7) < 0.04


def test_score_of_rows_alike_and_of_rows_apart():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 500, 3))
    # The standard error of an area of ½ is .018: 4 of them, 3e-5.
    assert c2st_score(one, other, random_state=0) > 0.854
    assert c2st_score(one, other + 20, random_state=0) == 0
    words = np.where(one > 0, "a", "b").astype(object)
    assert c2st_score(words, np.full((500, 3), "c", dtype=object), random_state=0) == 0


def test_score_sees_that_only_one_table_has_gaps():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 200, 2))
    other[:, 0] = np.nan
    assert c2st_score(one, other, random_state=0) == 0


def test_all_kinds_of_frames_have_the_same_figures(tables):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    found = []
    for convert in (lambda X: X, polars.from_pandas, pyarrow.Table.from_pandas):
        one, other = map(convert, tables)
        figures = compare_tables(one, other)
        found.append((
            c2st_score(one, other, random_state=0),
            nearest_record_share(one, other, one, random_state=0),
            figures.columns, figures.worst, figures.distance.tolist(),
            figures.association.tolist(),
        ))  # fmt: skip
    assert found[0] == found[1] == found[2]


def test_distances_of_columns(tables):
    one, other = tables
    figures = compare_tables(one, other)
    assert figures.columns == list(one)
    for name, found in zip(one, figures.distance, strict=True):
        cells = [frame[name].dropna() for frame in (one, other)]
        if name in ("city", "size"):
            shares = [own.astype(object).value_counts(normalize=True) for own in cells]
            asked = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
        else:
            asked = ks_2samp(*(own.astype("int64" if name == "since" else float) for own in cells))
            asked = asked.statistic
        np.testing.assert_allclose(found, asked)
    gaps = other.isna().mean() - one.isna().mean()
    np.testing.assert_allclose(figures.missing, gaps)


def corrected_v(one, other):
    """Bergsma's estimate from the table of two columns, a gap being a level."""
    counts = pd.crosstab(one.astype(object).fillna("gap"), other.astype(object).fillna("gap"))
    n, (r, k) = len(one), counts.shape
    square = chi2_contingency(counts, correction=False).statistic / n - (r - 1) * (k - 1) / (n - 1)
    sizes = r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)
    return np.sqrt(max(square, 0) / (min(sizes) - 1))


def test_associations():
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=300)
    frame = pd.DataFrame(
        {"a": a, "b": a ^ rng.integers(2, size=300), "c": rng.integers(3, size=300)}
    )
    frame["d"] = frame["b"].map({0: "x", 1: "y", 2: None, 3: "z"})
    other = frame.assign(d=rng.permutation(frame["d"]))
    figures = compare_tables(frame, other)
    for found, own in ((figures.association, frame), (figures.synthetic_association, other)):
        asked = [[corrected_v(own[j], own[k]) for k in own] for j in own]
        np.testing.assert_allclose(found, asked, atol=1e-12)
    assert figures.worst == ("b", "d")
    # Of a constant column there is none, and numbers are put into bins.
    numbers = np.column_stack([np.zeros(500), rng.normal(size=500)])
    numbers = np.column_stack([numbers, numbers[:, 1] ** 3])
    found = compare_tables(numbers, numbers).association
    np.testing.assert_allclose(found, [[0, 0, 0], [0, 1, 1], [0, 1, 1]], atol=1e-12)


def test_share_of_nearest_records_by_brute_force(tables):
    training, held_out = tables
    drawn = table(2, 8)
    every = pd.concat([training, held_out, drawn], ignore_index=True)
    ranks = every[["age", "height", "since"]].rank() / len(every)

    def distance(i, j):
        off = [1 if every[c].isna()[[i, j]].any() else every[c][i] != every[c][j]
               for c in ("city", "size")]  # fmt: skip
        return sum(off) + ranks.loc[i].sub(ranks.loc[j]).abs().fillna(1).sum()

    share = 0.0
    for i in range(120, 128):
        one, other = (min(distance(i, j) for j in js) for js in (range(60), range(60, 120)))
        share += 0.5 if abs(one - other) < 1e-9 else one < other
    assert nearest_record_share(training, held_out, drawn) == pytest.approx(share / 8)


def test_rows_that_are_repeated_and_rows_that_are_not():
    training, held_out, fresh = np.random.default_rng(0).normal(size=(3, 400, 3))
    assert nearest_record_share(training, held_out, training) == 1
    assert nearest_record_share(training, held_out, held_out) == 0
    # Of the larger table, as many rows are compared. 5 standard errors of .025 each; half of these
    # are left for what the two tables differ by.
    more, other = np.random.default_rng(1).normal(size=(2, 400, 3))
    twice = np.vstack([training, more])
    assert abs(nearest_record_share(twice, held_out, fresh, random_state=0) - 0.5) < 0.125
    assert abs(nearest_record_share(training, held_out, other) - 0.5) < 0.125


def orders(n, seed):
    """Rows with rules of each kind, with gaps."""
    rng = np.random.default_rng(seed)
    city, first = rng.integers(4, size=n), rng.integers(0, 300, n)
    net, share = rng.gamma(2, 100, n).round(2), rng.random(n)
    kinds = rng.multinomial(1, [0.5, 0.3, 0.2], n)
    frame = pd.DataFrame({
        "from": pd.Timestamp("2020-01-01") + pd.to_timedelta(first, "D"),
        "to": pd.Timestamp("2020-01-01") + pd.to_timedelta(first + rng.integers(0, 60, n), "D"),
        "city": np.array(list("ABCD"))[city], "state": np.array(list("xxyz"))[city],
        "net": net, "tax": (net * 0.2 * share).round(2), "a": kinds[:, 0], "b": kinds[:, 1] == 1,
        "c": kinds[:, 2], "percent": (100 * share).round(1), "rest": (100 - 100 * share).round(1),
    })  # fmt: skip
    frame["gross"] = (frame["net"] + frame["tax"]).round(2)
    return frame.mask(rng.random(frame.shape) < 0.02)


def test_rules_that_synthetic_rows_break():
    real = orders(600, 0)
    rng = np.random.default_rng(1)
    shuffled = real.apply(lambda column: column.to_numpy()[rng.permutation(len(column))])
    found = compare_tables(real, shuffled).broken_rules
    kinds = {
        "from <= to": "order", "gross = net + tax": "sum", "percent + rest = 100": "sum",
        "a + b + c = 1": "one-hot", "city determines state": "dependency",
    }  # fmt: skip
    rules = dict(zip(found["rule"], found["kind"], strict=True))
    assert kinds.items() <= rules.items()
    assert found["share"].is_monotonic_decreasing and found["share"].gt(0).all()
    share = found.set_index("rule")["share"]
    assert share["from <= to"] == (shuffled["from"] > shuffled["to"]).mean()
    known = real.dropna(subset=["city", "state"]).set_index("city")["state"].to_dict()
    wrong = shuffled["city"].map(known) != shuffled["state"]
    assert share["city determines state"] == (wrong & shuffled["state"].notna()
                                              & shuffled["city"].notna()).mean()  # fmt: skip
    assert not len(compare_tables(real, orders(600, 2)).broken_rules)
    assert not len(compare_tables(real, real).broken_rules)


def test_a_rule_of_numbers_with_all_digits_and_a_negative_total():
    real, shuffled = np.random.default_rng(0).normal(size=(2, 200, 2))
    real[:, 1] = -5 - real[:, 0]
    found = compare_tables(real, shuffled).broken_rules
    assert found[["rule", "kind", "share"]].values.tolist() == [["0 + 1 = -5", "sum", 1.0]]
    real[2:, 1] = np.nan  # two rows are too few for a sum, and none are for a distance
    assert not len(compare_tables(real, shuffled).broken_rules)
    real[:2, 1] = np.nan
    assert compare_tables(real, shuffled).distance[1] == 1
    assert compare_tables(real, real).distance.tolist() == [0, 0]


def test_independent_columns_have_no_rules():
    """Each of 200 tables has one with probability .003 at most: 6 or more in 1 of 3,000 runs."""
    n_found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, other = (
            np.column_stack([
                rng.integers(3, size=50), rng.random(50) < 0.04, rng.gamma(1, 10, 50),
                rng.random(50).round(1), rng.integers(40, size=50), rng.integers(2, size=50),
            ])
            for _ in range(2)
        )  # fmt: skip
        n_found += len(compare_tables(X, other).broken_rules) > 0
    assert n_found < 6


@pytest.mark.parametrize("compare", [c2st_score, compare_tables])
def test_numbers_in_one_table_and_strings_in_the_other_are_refused(compare):
    """But not a column of both, one table of which has numbers alone."""
    X = pd.DataFrame({"grade": np.arange(40) % 4, "site": np.arange(40) % 2})
    with pytest.raises(ValueError, match=r"Column 'grade' holds numbers in one table and other"):
        compare(X, X.astype({"grade": str}))
    other = X.astype(object)
    other.loc[0, "grade"] = "none"
    compare(X, other)
