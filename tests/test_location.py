"""The location model: normal scores of numbers, Gaussian given categories."""

import functools
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from contract.estimators import Location
from contract.test_numbers import wages, with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import kstest
from sklearn.mixture import GaussianMixture
from test_bins import NUMBERS

from private import PottsModel, fit_classes, location_fit, location_gaussians
from sklearn_boltz import SparseFVBM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def log_densities(gaussians, x, z):
    """ln π_c N(z_o; a_c + B x, Σ_c) of rows, by each class."""
    at = x @ gaussians.slopes.T
    return np.column_stack([given.log_densities(at) for given in gaussians.of_classes(z)])


def without_categories(z, weights=None):
    weights = np.ones(len(z)) if weights is None else weights
    return location_fit.ScoredRows(csr_array((len(z), 0)), location_gaussians.Scores(z), weights)


# Normal scores.

COLUMNS = NUMBERS | {
    "rounded": np.append(np.round(np.random.default_rng(0).normal(size=300), 1), np.full(60, 0.2)),
    "a typing error": np.append(NUMBERS["skewed"], 1e9),
}


@functools.cache
def learnt(name):
    """What a model of the column alone has learnt of it."""
    return Location().fit(COLUMNS[name][:, np.newaxis])._encoder.columns[0].scores


def log_density(name, x):
    """ln f of a column by itself."""
    z, log_slope = learnt(name).transform(np.asarray(x, dtype=float))
    return log_slope - z**2 / 2 - np.log(2 * np.pi) / 2


@pytest.mark.parametrize(
    ("name", "around"),
    [("normal", []), ("skewed", []), ("many zeros", []),
     ("rounded", [0.15, 0.2 - 1e-12, 0.2 + 1e-12, 0.25])],
)  # fmt: skip
def test_the_density_integrates_to_one(name, around):
    """With the probability of what is closer to a heap of rounded numbers than to others."""
    scores, quantiles = learnt(name), np.quantile(COLUMNS[name], np.linspace(0, 1, 9))
    powers = np.outer([-1, 1], [1, 3, 10, 100]).ravel()
    cuts = [*scores.means, scores.broad[1], 0, *quantiles, *powers, *around]
    ends = [-np.inf, *np.unique(cuts), np.inf]

    def density(x):
        return np.exp(log_density(name, [x]))[0]

    total = sum(quad(density, *piece, epsabs=1e-12)[0] for piece in pairwise(ends))
    assert_allclose(total + (density(0.2) if around else 0), 1, atol=1e-8)


@pytest.mark.parametrize("name", ["ages", "a heap"])
def test_the_probabilities_of_whole_numbers_sum_to_one(name):
    whole = np.arange(-100_000.0, 100_000)
    whole = whole[~np.isin(whole, learnt(name).atoms)]
    assert_allclose(np.exp(log_density(name, whole)).sum(), 1, atol=1e-8)


def test_every_number_has_a_density():
    for name in COLUMNS:
        if learnt(name) is not None:
            assert np.isfinite(log_density(name, [-1e308, -5.5, 0.0, 1 / 3, 1e12, 1e308])).all()


def test_one_typing_error_leaves_the_others_as_they_were():
    """A cell of 1e9 is a tail, and what the others gain by its absence is little."""
    x = NUMBERS["skewed"]
    assert (log_density("skewed", x) - log_density("a typing error", x)).mean() < 0.3


def test_held_out_density_is_near_the_truth():
    """Of numbers whose logarithms are normal: within .02 nats at 800 numbers."""
    x = np.exp(np.random.default_rng(5).normal(size=20_000))
    truth = -np.log(x) - np.log(x) ** 2 / 2 - np.log(2 * np.pi) / 2
    assert abs((log_density("skewed", x) - truth).mean()) < 0.02


# Gaussians.


def some_scores(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def test_without_categories_and_shrinkage_it_is_a_gaussian_mixture_of_one():
    z = some_scores()
    found = location_fit.fit_one(without_categories(z), 0.0)
    expected = GaussianMixture(1, reg_covar=0).fit(z)
    assert_allclose(found.intercepts, expected.means_, rtol=1e-10)
    assert_allclose(found.covariances, expected.covariances_, rtol=1e-10)
    log_p = log_densities(found, csr_array((200, 0)), location_gaussians.Scores(z))[:, 0]
    assert_allclose(log_p, expected.score_samples(z), rtol=1e-10)


def test_two_classes_are_a_gaussian_mixture_of_two():
    """With the same start and no penalty but the weights' one cell, whose effect is small."""
    z = np.concatenate([some_scores(400, 2), some_scores(600, 2, seed=3) + 8])
    rows = without_categories(z)
    one = location_fit.fit_one(rows, 0.0)
    found = fit_classes(rows, one, np.eye(2)[np.r_[np.zeros(400, int), np.ones(600, int)]], 0.0)
    expected = GaussianMixture(2, reg_covar=0, random_state=0, tol=1e-8).fit(z)
    score = logsumexp(log_densities(found, rows.x, rows.z), axis=1).mean()
    assert_allclose(score, expected.score(z), atol=1e-4)


def categories_and_scores(n=150, seed=0, missing=0.25):
    """A network of two columns, and two scores that depend on them, some unknown."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=(n, 2))
    codes[:, 1] = np.where(rng.random(n) < 0.6, codes[:, 0], codes[:, 1])
    noise = rng.normal(size=(n, 2)) @ [[1, 0.5], [0, 0.8]]
    z = np.eye(3)[codes[:, 0]] @ [[1, 0], [-1, 2], [0, -1]] + noise
    z[rng.random(z.shape) < missing] = np.nan
    codes[rng.random(codes.shape) < missing] = -1
    return codes, z


def small_network(seed=0):
    rng = np.random.default_rng(seed)
    coupling = np.zeros((6, 6))
    coupling[:3, 3:] = rng.normal(size=(3, 3))
    return PottsModel(coupling + coupling.T, rng.normal(size=6), np.array([3, 3]))


# The estimator.


def numbers_and_words(n=120, seed=0):
    """Two real numbers and a word of three."""
    rng = np.random.default_rng(seed)
    word = rng.choice(["a", "b", "c"], n)
    x = rng.normal(size=n) + 2 * (word == "a")
    return pd.DataFrame({"x": x, "word": word, "y": np.exp(0.5 * x + rng.normal(size=n))})


@pytest.fixture(scope="module")
def model():
    return Location().fit(numbers_and_words())


def grid(scores):
    """A quadrature of a column, by pieces out to the tails of Lomax; the middle is a bend."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    _, middle, scale = scores.broad
    reach = 10.0 ** np.arange(0.5, 8.5, 0.5)
    cuts = middle + scale * np.unique([*-reach, *np.linspace(-3, 3, 25), *reach])
    width = np.diff(cuts)[:, None] / 2
    at = ((cuts[1:] + cuts[:-1]) / 2)[:, None] + width * nodes
    return at.ravel(), (width * weights).ravel()


def share_of_seen(model):
    """ln of what unseen words leave to the others."""
    unseen = pd.DataFrame({"x": [None], "word": ["d"], "y": [None]})
    return np.log1p(-np.exp(model.score_samples(unseen)[0]))


def test_probabilities_of_all_rows_integrate_to_one():
    """A sum over words of integrals over two numbers."""
    rng = np.random.default_rng(3)
    X = numbers_and_words(60).assign(y=lambda X: rng.normal(size=60) + X["x"])
    model = Location().fit(X)
    (x, of_x), (y, of_y) = (grid(model._encoder.columns[j].scores) for j in (0, 2))
    total = 0.0
    for word in "abc":
        rows = pd.DataFrame({"x": np.repeat(x, len(y)), "word": word, "y": np.tile(y, len(x))})
        total += of_x @ np.exp(model.score_samples(rows)).reshape(len(x), -1) @ of_y
    assert_allclose(total, np.exp(share_of_seen(model)), atol=1e-8)


def test_a_missing_number_is_integrated_out_and_has_probabilities(model):
    rows, scores = numbers_and_words(6, seed=1), model._encoder.columns[0].scores
    (x, weights), p = grid(scores), model.predict_column_proba(rows, "x")
    bins = scores.bins.encode(x).astype(int)
    gaps = model.score_samples(rows.assign(x=np.nan))
    for i, (_, row) in enumerate(rows.iterrows()):
        all_x = pd.DataFrame({"x": x, "word": row["word"], "y": row["y"]})
        each = weights * np.exp(model.score_samples(all_x))
        assert_allclose(gaps[i], np.log(each.sum()), rtol=1e-7)
        # Nodes near the border of a bin belong to one of the two.
        assert_allclose(p[i], np.bincount(bins, each) / each.sum(), atol=0.01)


def test_a_missing_word_is_summed_out_and_has_probabilities(model):
    rows = numbers_and_words(20, seed=1)
    log_p = np.column_stack([model.score_samples(rows.assign(word=word)) for word in "abc"])
    gaps = rows.assign(word=None)
    expected = logsumexp(log_p, axis=1) - share_of_seen(model)
    assert_allclose(model.score_samples(gaps), expected, rtol=1e-9)
    p = model.predict_column_proba(rows, "word")
    assert_allclose(p, np.exp(log_p - logsumexp(log_p, axis=1)[:, None]), atol=1e-9)
    filled = model.impute(gaps, how="mode")["word"]
    assert_array_equal(filled, np.array(list("abc"))[p.argmax(axis=1)])
    is_word = [name.startswith("word=") for name in model.get_feature_names_out()]
    assert_allclose(model.transform(rows)[:, is_word], p, atol=1e-12)


def test_samples_are_of_the_model(model):
    """Each column by a test of Kolmogorov and Smirnov, and a correlation; 1 in 10,000 fails."""
    train, drawn = numbers_and_words(), model.sample(4000, random_state=0)
    for name, column in (("x", 0), ("y", 2)):
        z, _ = model._encoder.columns[column].scores.transform(drawn[name])
        assert kstest(z, "norm").statistic < 0.08
        assert drawn[name].between(train[name].min(), train[name].max()).all()
    share = (train["word"] == "a").mean()
    error = np.sqrt(share * (1 - share) / 4000)
    assert abs((drawn["word"] == "a").mean() - share) < 4 * error + 0.01
    found, expected = (np.corrcoef(rows["x"], np.log(rows["y"]))[0, 1] for rows in (drawn, train))
    assert abs(found - expected) < 0.08


def test_given_a_number_and_a_word(model):
    """The words of 20,000 draws given a number; 3 shares within 4.5 sd."""
    drawn = model.sample(20_000, random_state=0, given={"x": 2.0})
    assert (drawn["x"] == 2).all()
    row = pd.DataFrame({"x": [2.0], "word": [None], "y": [np.nan]})
    p = model.predict_column_proba(row, "word")[0]
    shares = [(drawn["word"] == word).mean() for word in "abc"]
    assert (np.abs(shares - p) < 4.5 * np.sqrt(p * (1 - p) / 20_000)).all()
    both = model.sample(4000, random_state=0, given={"x": 2.0, "word": "b"})
    assert (both["word"] == "b").all()
    row = row.assign(word="b")
    mean = model.impute(row, how="mean")["y"][0]
    assert abs(both["y"].mean() - mean) < 4.5 * both["y"].std() / np.sqrt(4000)
    with pytest.raises(ValueError, match="temperature=2"):
        model.sample(3, temperature=2.0)


def test_the_pseudo_likelihood_is_that_of_cells_given_the_others(model):
    rows = numbers_and_words(5, seed=1)
    scores = model.score_samples(rows)
    expected = sum(scores - model.score_samples(rows.assign(**{name: None})) for name in rows)
    share = share_of_seen(model)  # unseen words have no part in it
    assert_allclose(model.log_pseudo_likelihood(rows), expected - share, rtol=1e-9)
    assert_allclose(model.energy(rows), -scores - model.log_partition_ + share, rtol=1e-9)
    with pytest.raises(ValueError, match="no value"):
        model.energy(rows.assign(x=np.nan))


def test_all_patterns_of_gaps():
    """Also rows without an observed cell, columns with hardly any, and unseen words."""
    rng = np.random.default_rng(0)
    X = wages(60).astype(object).where(rng.random((60, 5)) < [0.9, 0.5, 0.3, 0.1, 0.7], None)
    X = X.astype({"age": float, "wage": float, "share": float, "hours": float})
    model = Location().fit(X)
    X.loc[0, "city"] = "Lima"
    assert np.isfinite(model.score_samples(X)).all()
    assert not model.impute(X, how="sample", random_state=0).isna().any(axis=None)


@pytest.mark.filterwarnings("ignore:.*no row has a value in column 'none'")
def test_columns_that_are_constant_or_empty_and_fewer_rows_than_numbers():
    X = wages(50).assign(one=2.5, none=np.nan)
    model = Location().fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert (model.sample(5, random_state=0)["one"] == 2.5).all()
    X = some_scores(12, 30)
    model = Location().fit(X)
    assert np.isfinite(model.score_samples(np.vstack([X, X + 1]))).all()


def whole_numbers(name, n=400):
    """Tables whose last column is of whole numbers, which others tell well."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    years = np.floor(np.exp(1.5 + 0.8 * x + 0.5 * rng.normal(size=n)))
    if name == "an atom":
        years = np.where(rng.random(n) < 0.4, 3.0, years)
    if name == "to within one":
        years = np.rint(20 * x)
        x = years + 0.3 * rng.normal(size=n)
    X = pd.DataFrame({"x": x, "years": years})
    if name == "beside others":
        word = np.where(rng.random(n) < 0.3, "b", "a")
        other = X["years"] + 2 + rng.integers(2, size=n)
        X = pd.DataFrame({"years": X["years"], "x": x, "word": word, "other": other})
    return X


@pytest.mark.parametrize("name", ["coarse", "an atom", "to within one", "beside others"])
def test_whole_numbers_sum_to_what_rows_have_without_them(name):
    """The order of columns decides which number is given by the middle of the other: within .2."""
    X = whole_numbers(name)
    model, last, every = Location().fit(X), X.columns[-1], np.arange(-1000.0, 2000)
    row = X.iloc[[0]]
    for column in {last, "years"}:
        each = model.score_samples(pd.concat([row] * len(every)).assign(**{column: every}))
        without = model.score_samples(row.assign(**{column: np.nan}))[0]
        atol = 1e-8 if column == last else 0.2
        assert_allclose(logsumexp(each), without, rtol=0, atol=atol)
        if column == last:  # the distribution of the number is that of the density, by bins
            p = model.predict_column_proba(row, last)[0]
            bins = model._encoder.columns[-1].scores.bins.encode(every).astype(int)
            assert_allclose(np.bincount(bins, np.exp(each - without)), p, atol=1e-8)
    if name == "beside others":
        log_p = np.column_stack([model.score_samples(X.assign(word=word)) for word in "ab"])
        expected = np.exp(log_p - logsumexp(log_p, axis=1)[:, None])
        assert_allclose(model.predict_column_proba(X, "word"), expected, atol=1e-9)


def test_sparse_networks_have_scores_but_no_terms_with_them():
    class Sparse(SparseFVBM):
        _need = SparseFVBM()._need._replace(scored=("number", "auto"))

    X = wages(100)
    assert np.isfinite(Sparse().fit(X).score_samples(with_gaps(X))).all()
    with pytest.raises(ValueError, match="max_order at 2"):
        Sparse(max_order=3).fit(X)


@pytest.mark.parametrize("most", [32, 0], ids=["all completions", "draws"])
def test_each_round_of_em_raises_the_penalised_likelihood(most, monkeypatch):
    monkeypatch.setattr(location_fit, "MOST_COMPLETIONS", most)
    codes, z = categories_and_scores()
    path = []
    monkeypatch.setattr(location_fit, "TOL", 1e-7)
    (rows,) = location_fit.completed(small_network(), codes, [z], np.ones(len(z)))
    location_fit.fit_one(rows, 1.0, path)
    assert len(path) > 4 and (np.diff(path) > -1e-8 * np.abs(path[0])).all()
