"""The penalty that FVBMPseudoLikelihood chooses by itself, alpha="auto"."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from private import (
    MAX_ALPHA,
    CodesTask,
    PseudoLikelihood,
    Task,
    _streamed,
    choose_strength,
    distinct_rows,
    least_strength,
    next_strength,
)
from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches


def ising(n, d=6, seed=0, scale=0.4):
    """Rows of a chain of d columns, each the one before or its opposite."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([-1, 1], size=(n, d), p=[(1 - scale) / 2, (1 + scale) / 2])
    return np.cumprod(steps, axis=1)


def categories(n, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.integers([2, 3, 4, 3], size=(n, 4))
    table[:, 1] = np.where(rng.random(n) < 0.5, table[:, 1], table[:, 0])
    return table


def schur_diagonal(information, n_fields):
    """The information on each coupling when all intercepts are free, by itself."""
    rest = information[n_fields:, n_fields:]
    cross = information[:n_fields, n_fields:]
    inner = np.linalg.solve(information[:n_fields, :n_fields], cross)
    return (rest - cross.T @ inner).diagonal()


def test_curvature_of_independent_columns_is_exact():
    X = ising(60, seed=1)
    problem = PseudoLikelihood(*distinct_rows(X > 0, np.ones(60)))
    task = Task.of_rows(*distinct_rows(X > 0, np.ones(60)), 0.0)
    means = problem.means / 60
    intercept = np.arctanh(means)
    point = problem.at(np.zeros((6, 6)), intercept)
    couplings, information, products = task.pair_curvature(np.zeros((6, 6)), intercept)
    assert not couplings.any()
    assert_allclose(information, schur_diagonal(problem.information(point), 6))
    centred = X - means
    j, k = np.triu_indices(6, 1)
    scores = 2 * centred[:, j] * centred[:, k]  # residual times feature, at both ends
    assert_allclose(products, (scores**2).sum(axis=0))


def test_curvature_of_rows_with_missing_cells():
    """Rows in which a cell is missing count for the other columns only."""
    X = ising(80, d=3, seed=2)
    codes = (X > 0).astype(np.int8)
    codes[:20, 0] = -1
    task = Task.of_incomplete_rows(codes, np.ones(80), 0.0)
    zeros, intercept = np.zeros((3, 3)), np.array([0.1, -0.2, 0.3])
    found = task.pair_curvature(zeros, intercept)
    known = np.where(codes < 0, 0, X)
    mean = known.sum(axis=0) / (codes >= 0).sum(axis=0)
    u, e = (X - mean) * (codes >= 0), (X - np.tanh(intercept)) * (codes >= 0)
    v = (1 - np.tanh(intercept) ** 2) * (codes >= 0)
    for place, (j, k) in enumerate(zip(*np.triu_indices(3, 1), strict=True)):
        assert_allclose(found[1, place], (v[:, j] * u[:, k] ** 2 + v[:, k] * u[:, j] ** 2).sum())
        assert_allclose(found[2, place], ((e[:, j] * u[:, k] + e[:, k] * u[:, j]) ** 2).sum())


def test_curvature_of_categories_is_that_of_bits_where_all_are():
    codes = (ising(70, seed=3) > 0).astype(np.int8)
    model = FVBMPseudoLikelihood(alpha=0.1).fit(codes)
    weights = np.random.default_rng(3).integers(1, 4, 70).astype(float)
    binary = Task.of_rows(*distinct_rows(codes > 0, weights), 0.1)
    parameters = model._model().pairs.potts()
    task = CodesTask(codes, weights, np.full(6, 2), 0.1)
    assert_allclose(
        task.pair_curvature(parameters.coupling, parameters.intercept),
        binary.pair_curvature(model.coupling_, model.intercept_),
        rtol=1e-10,
    )


def test_curvature_of_independent_categories_is_exact():
    codes = categories(200).astype(np.int8)
    task = CodesTask(codes, np.ones(200), np.array([2, 3, 4, 3]), 0.0)
    coupling, intercept = task.whole(*task.initial(None, None))
    counts = [np.bincount(column) / 200 for column in codes.T]
    intercept = np.concatenate([np.log(c) - np.log(c).mean() for c in counts])
    found = task.pair_curvature(coupling, intercept)
    contrasts = task.contrasts
    z = contrasts.pack(coupling, intercept)
    expected = schur_diagonal(contrasts.information(contrasts.at(z)), 8)
    assert_allclose(found[1] / 4, expected, rtol=1e-8)


def test_least_strength_has_fields_of_variance_one():
    assert least_strength(np.full(11, 2)) == pytest.approx(20)
    # λ/4 on K of variance 8/λ, each of which moves the contrasts of the other columns, of norm
    # 1 - 1/q, and in all by 2: that is √2 times the field of a column of ±1.
    n_values = np.array([2, 3, 5, 5])
    variance = 8 / least_strength(n_values)
    moved = [variance * np.delete(1 - 1 / n_values, j).sum() for j in range(4)]
    assert np.mean(moved) == pytest.approx(2)


def test_next_strength_finds_the_variance():
    """Of 5,000 normal couplings with known errors. The error of s is 4 % of it: 5 in 10⁷."""
    rng = np.random.default_rng(0)
    h, strength, s = rng.uniform(50, 200, 5000), 30.0, 0.01
    products = 2 * h
    estimates = rng.normal(scale=np.sqrt(s), size=5000)
    estimates += rng.normal(size=5000) * np.sqrt(products) / h
    shrunk = h / (h + strength) * estimates
    found = next_strength(shrunk, h, products, strength, 1.0, 1e6)
    assert found == pytest.approx(2 / s, rel=0.2)
    # Less than the errors alone: the most. And never less than the least.
    assert next_strength(shrunk / 10, h, products, strength, 1.0, 1e6) == pytest.approx(1e6)
    assert next_strength(10 * shrunk, h, products, strength, 50.0, 1e6) == 50.0


def test_strong_couplings_have_the_least_strength_and_weak_ones_more():
    strong, weak = ising(300, scale=0.9), ising(300, scale=0.1, seed=4)
    model = FVBMPseudoLikelihood().fit(strong)
    assert model.alpha_ * 300 == pytest.approx(2 * 5)
    assert FVBMPseudoLikelihood().fit(weak).alpha_ * 300 > 30
    # Two columns have one coupling, whose variance nothing tells.
    assert FVBMPseudoLikelihood().fit(weak[:, :2]).alpha_ * 300 == pytest.approx(2)


def test_total_strength_is_bounded_as_rows_grow():
    """The chain of .4 has Σ m² / n_pairs of about .06."""
    few, many = (FVBMPseudoLikelihood().fit(ising(n, seed=5)).alpha_ * n for n in (2000, 50_000))
    assert few == pytest.approx(many, rel=0.3)
    assert many < 60


@pytest.mark.parametrize("kind", ["binary", "missing", "categories"])
def test_is_a_fit_with_the_number(kind):
    """The path to the estimate leaves no trace."""
    X = categories(150) if kind == "categories" else ising(150).astype(float)
    if kind == "missing":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    chosen = FVBMPseudoLikelihood(tol=1e-9).fit(X)
    given = FVBMPseudoLikelihood(alpha=chosen.alpha_, tol=1e-9).fit(X)
    assert chosen.alpha_ > 0
    assert_allclose(chosen.coupling_, given.coupling_, atol=1e-5)
    assert_allclose(chosen.intercept_, given.intercept_, atol=1e-5)


def test_weights_order_signs_and_batches_make_no_difference():
    X = ising(400, seed=6)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(X, weights, axis=0)
    model = FVBMPseudoLikelihood().fit(repeated)
    rng = np.random.default_rng(1)
    order, signs = rng.permutation(6), rng.choice([-1, 1], 6)
    others = [
        FVBMPseudoLikelihood().fit(X, sample_weight=weights),
        FVBMPseudoLikelihood().fit(rng.permutation(repeated)[:, order] * signs[order]),
        FVBMPseudoLikelihood().fit((repeated + 1) // 2),
        FVBMPseudoLikelihood().fit(Batches([repeated[:300], repeated[300:]])),
        FVBMPseudoLikelihood().partial_fit(repeated[:300]).partial_fit(repeated[300:]),
    ]
    for other in others:
        assert other.alpha_ == pytest.approx(model.alpha_, rel=1e-3)


def test_curvature_of_batches(monkeypatch):
    """By passes over batches, and of the rows in memory."""
    X = ising(300, seed=7)
    expected = FVBMPseudoLikelihood().fit(X)
    monkeypatch.setattr(_streamed, "MOST_ENTRIES", 10)
    model = FVBMPseudoLikelihood().fit(Batches([X[:100], X[100:]]))
    assert model._seen is None
    assert model.alpha_ == pytest.approx(expected.alpha_, rel=1e-3)
    assert_allclose(model.coupling_, expected.coupling_, atol=1e-3)
    # Rows that were not kept are those that `inference` is given.
    result, asked = model.inference(X), FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    assert_allclose(result.estimate, asked.estimate, atol=1e-4)


def held_out_gains(d, n, scale, seeds):
    """By how much the default is better than no penalty, a row of many others, for each seed."""
    gains = []
    for seed in seeds:
        X = ising(n + 5000, d=d, seed=seed, scale=scale)
        models = FVBMPseudoLikelihood(), FVBMPseudoLikelihood(alpha=0.0)
        scores = [m.fit(X[:n]).log_pseudo_likelihood(X[n:]).mean() for m in models]
        gains.append(scores[0] - scores[1])
    return np.array(gains)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("n", [40, 400])
def test_no_worse_than_without(n, scale):
    """Of 12 sets of 8 columns, by more than two standard errors and by .01 nats a row."""
    gains = held_out_gains(8, n, scale, range(12))
    assert gains.mean() > -max(2 * gains.std(ddof=1) / np.sqrt(12), 0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_much_better_with_few_rows():
    gains = held_out_gains(8, 40, 0.5, range(100, 106))
    assert (gains > 0.1).all()


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, -1, 1]]),
        np.array([[1, -1, 1], [-1, 1, 1]]),
        np.repeat(ising(20, d=1), 4, axis=1),
        np.column_stack([ising(30), np.ones(30)]),
        np.eye(5, dtype=int),
        np.zeros((4, 3), dtype=int),
        np.arange(8)[:, None] * np.ones((1, 3)),
    ],
    ids=["one row", "two rows", "duplicates", "constant", "unit rows", "zeros", "all values"],
)
def test_extremes_are_finite(X):
    for weights in (None, np.full(len(X), 1e-3), np.full(len(X), 1e6)):
        model = FVBMPseudoLikelihood().fit(X, sample_weight=weights)
        assert np.isfinite(model.coupling_).all() and np.isfinite(model.intercept_).all()
        assert np.isfinite(model.alpha_) and model.alpha_ >= 0
        assert np.isfinite(model.log_pseudo_likelihood(X)).all()


def test_nothing_varies():
    model = FVBMPseudoLikelihood().fit(np.ones((5, 2)))
    assert model.alpha_ == 0.0 and not model.coupling_.any()


def test_alpha_has_a_ceiling():
    """Rows of all states of four columns, once each, have couplings of exactly 0."""
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    assert FVBMPseudoLikelihood().fit(states).alpha_ == pytest.approx(MAX_ALPHA)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_separated_columns_have_a_maximum():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(30, 8))
    X[:, 7] = X[:, 0]
    model = FVBMPseudoLikelihood().fit(X)
    assert model.converged_ and 0.5 < model.coupling_[0, 7] < 2
    assert FVBMPseudoLikelihood().fit(categories(25)).converged_


@pytest.fixture(scope="module")
def fitted():
    X = ising(600, d=5, seed=8)
    return X, FVBMPseudoLikelihood().fit(X), FVBMPseudoLikelihood(alpha=0.0).fit(X)


class TestInference:
    """Standard errors, tests and criteria are those of the estimate without the penalty."""

    def test_results_are_those_without_a_penalty(self, fitted):
        X, chosen, without = fitted
        one, other = chosen.inference(X), without.inference(X)
        assert_array_equal(one.estimate, other.estimate)
        assert_array_equal(one.std_err, other.std_err)
        assert np.abs(one.estimate[5:]).max() > np.abs(chosen.coupling_).max()
        for criterion in ("aic", "bic", "ebic"):
            found, expected = getattr(chosen, criterion)(X), getattr(without, criterion)(X)
            assert found == expected
        assert chosen.alpha_ > 0 == without.alpha_  # nothing has changed the model

    def test_of_words_weights_and_missing_cells(self):
        pd = pytest.importorskip("pandas")
        codes = categories(300)
        table = pd.DataFrame(np.array(list("abcd"))[codes], columns=list("wxyz"))
        table.iloc[:30, 2] = None
        weights = np.random.default_rng(0).integers(1, 3, 300)
        chosen, without = (
            FVBMPseudoLikelihood(alpha=alpha, tol=1e-8).fit(table, sample_weight=weights)
            for alpha in ("auto", 0.0)
        )
        one, other = (m.inference(table, sample_weight=weights) for m in (chosen, without))
        assert_array_equal(one.names, other.names)
        assert_allclose(one.estimate, other.estimate, atol=1e-9)
        assert_allclose(one.std_err, other.std_err, rtol=1e-6)

    def test_bootstrap(self, fitted):
        X, chosen, without = fitted
        one, other = (m.bootstrap(X, 5, random_state=0) for m in (chosen, without))
        assert_array_equal(one.resamples, other.resamples)
        assert_array_equal(one.estimate, other.estimate)

    def test_likelihood_ratio(self, fitted):
        X, chosen, without = fitted
        chain = [(j, j + 1) for j in range(4)]
        small = FVBMPseudoLikelihood(edges=chain).fit(X)
        assert small.alpha_ == 0
        one, other = chosen.likelihood_ratio(X, small), without.likelihood_ratio(X, small)
        assert one.p_value == other.p_value

    def test_graph(self, fitted):
        pytest.importorskip("networkx")
        X, chosen, without = fitted
        result = chosen.inference(X)
        weight = chosen.to_networkx(result).edges["x0", "x1"]["weight"]
        assert weight == without.coupling_[0, 1]
        assert chosen.to_networkx().edges["x0", "x1"]["weight"] == chosen.coupling_[0, 1]
        with pytest.raises(ValueError, match="of the same fit"):
            FVBMPseudoLikelihood().fit(ising(200, d=5)).to_networkx(result)

    def test_no_maximum_is_told(self):
        pd = pytest.importorskip("pandas")
        X = pd.DataFrame(ising(40, d=4), columns=list("abcd"))
        X["d"] = X["a"]
        model = FVBMPseudoLikelihood().fit(X)
        with pytest.warns(ConvergenceWarning, match="a.* never occurs together with .*d"):
            model.inference(X)

    def test_parameters_of_the_user(self, fitted):
        X, chosen, _ = fitted
        model = pickle.loads(pickle.dumps(chosen))
        model.coupling_ = np.zeros((5, 5))
        assert not model.inference(X).estimate[5:].any()

    def test_pickle_is_no_larger(self, fitted):
        X, chosen, _ = fitted
        again = clone(chosen).fit(X)
        before = len(pickle.dumps(again))
        again.inference(X)
        assert len(pickle.dumps(again)) < before + 1000


def test_of_other_penalties():
    X = ising(200)
    for options in (dict(penalty="l1"), dict(penalty="group"), dict(penalty="l1", nodewise=True)):
        chosen = FVBMPseudoLikelihood(**options).fit(X)
        by_ebic = FVBMPseudoLikelihood(alpha="ebic", **options).fit(X)
        assert_array_equal(chosen.alpha_, by_ebic.alpha_)
        assert_array_equal(chosen.coupling_, by_ebic.coupling_)
    for options in (
        dict(edges=[(0, 1)]), dict(nodewise=True), dict(objective="likelihood"),
        dict(terms=[(0, 1, 2)]), dict(max_order=3),
    ):  # fmt: skip
        assert FVBMPseudoLikelihood(**options).fit(X).alpha_ == 0, options


def test_ordered_columns():
    """Their penalty is no multiple of the identity: the strength is the least one."""
    table = categories(200)
    model = FVBMPseudoLikelihood(ordered=True).fit(table)
    assert model.alpha_ * 200 == pytest.approx(least_strength(np.array([2, 3, 4, 3])))
    given = FVBMPseudoLikelihood(ordered=True, alpha=model.alpha_).fit(table)
    assert_array_equal(model.ordered_, given.ordered_)
    assert_allclose(model.coupling_, given.coupling_, atol=1e-2)


def test_other_words_are_refused():
    with pytest.raises(InvalidParameterError, match="'auto'"):
        FVBMPseudoLikelihood(alpha="best").fit(ising(20))


def test_verbose_tells_the_strength(capsys):
    model = FVBMPseudoLikelihood(verbose=1).fit(ising(100))
    assert f"alpha={model.alpha_:.3g}" in capsys.readouterr().out


def test_interrupt_leaves_the_estimator_as_it_was(monkeypatch):
    model = FVBMPseudoLikelihood().fit(ising(100))
    before = model.coupling_

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Task, "pair_curvature", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ising(100, seed=9))
    assert model.coupling_ is before


def test_choice_ends_where_it_began():
    """Where the least strength is right there is one fit."""
    task = Task.of_rows(*distinct_rows(ising(300, scale=0.9) > 0, np.ones(300)), 0.0)
    alpha, (coupling, _) = choose_strength(task, (None, None), str)
    assert alpha == pytest.approx(10 / 300) and coupling.any()
    assert task.problem.penalty == pytest.approx(10)
