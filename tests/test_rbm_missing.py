"""Missing cells in restricted Boltzmann machines: in `fit`, and after it."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from oracles_rbm import SmallDBM, SmallRBM, random_dbm
from private import (
    Incomplete,
    Iteration,
    KeptValues,
    Layered,
    Stream,
    TAPMonitor,
    Workers,
    Workspace,
    _observed,
    clamp,
    complete,
    difference,
    divided,
    free_energy,
    independent_log_likelihood,
    solve,
)
from private import RBMModel as Model
from private import TAPScheme as Scheme
from private import TrainingMonitor as Monitor
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# What is drawn may be off by so many standard errors: a false alarm in 1.7 million figures.
SIGMAS = 5
# Probability of a false alarm of a chi-square test.
FALSE_ALARM = 1e-6
ESTIMATORS = [
    SDCPRBM(4, max_iter=3, batch_size=20, random_state=0),
    SDCPRBM(4, max_iter=3, batch_size=20, persistent=True, n_inner=1, random_state=0),
    TAPRBM(4, max_iter=3, batch_size=20, random_state=0),
    TAPRBM(4, max_iter=3, batch_size=20, persistent=True, random_state=0),
    TAPDBM((4, 3), max_iter=2, pretrain_max_iter=2, batch_size=20, random_state=0),
    InfiniteRBM(3, n_model_samples=200, n_corrective=5, random_state=0),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
UNITS = {
    "bernoulli": lambda rng: Bernoulli(rng.normal(size=6)),
    "one width": lambda rng: Categorical(3, rng.normal(size=9)),
    "several widths": lambda rng: Categorical([2, 3, 1, 4], rng.normal(size=10)),
    "mixed": lambda rng: Stacked(
        [Bernoulli(rng.normal(size=2)), Categorical([3, 2], rng.normal(size=5))]
    ),
}


def with_gaps(rows, units, rng, share=0.5):
    """Rows in which some units are missing, at least one in each row but the first."""
    missing = rng.random((len(rows), units.n_units)) < share
    missing[np.arange(len(rows)), rng.integers(units.n_units, size=len(rows))] = True
    rows, missing[0] = np.array(rows, dtype=np.float64), False
    rows[_observed.spread_over_columns(units, missing)] = np.nan
    return rows


def all_rows(units):
    """All states of a layer, by brute force."""
    each = [states for states, _ in units.unit_states()]
    return np.array([np.concatenate(state) for state in itertools.product(*each)])


def completions_of(v, rows):
    """Which rows agree with the observed cells of a row."""
    return ((rows == v) | np.isnan(v)).all(axis=1)


@pytest.fixture(params=UNITS)
def machine(request):
    """A small machine, rows with gaps, all its states and their log-weights."""
    rng = np.random.default_rng(3)
    visible = UNITS[request.param](rng)
    hidden = Bernoulli(rng.normal(size=3)) if "width" in request.param else Categorical(
        3, rng.normal(size=6)
    )  # fmt: skip
    model = Model(rng.normal(size=(len(hidden), len(visible))), visible, hidden)
    rows = all_rows(visible)
    V = with_gaps(rows[rng.integers(len(rows), size=25)], visible, rng)
    return model, V, rows, -model.free_energy(rows)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(120, 6)).astype(np.float64)
    X[:, 1] = np.where(rng.random(120) < 0.1, 1 - X[:, 0], X[:, 0])
    X[:, 4] = np.where(rng.random(120) < 0.1, 1 - X[:, 3], X[:, 3])
    return X


@pytest.fixture(scope="module")
def gaps(X):
    return np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)


def parameters(model):
    """All weights and biases in one array."""
    named = model.components_, model.intercept_visible_, model.intercept_hidden_
    each = [a for part in named for a in (part if isinstance(part, list) else [part])]
    return np.concatenate([np.ravel(a) for a in each])


# What follows from a row, against sums over all completions.

ROUTES = {"hidden": {"EXACT_MISSING": -1}, "missing": {"EXACT_HIDDEN": -1, "EXACT_SUM": 20}}


@pytest.mark.parametrize("route", ["as it is", "hidden", "missing"])
def test_sums_over_completions(machine, route, monkeypatch):
    model, V, rows, log_weights = machine
    if route == "hidden":
        monkeypatch.setattr(_observed, "EXACT_MISSING", -1)
        monkeypatch.setattr(_observed, "hidden_bits", lambda model: 0.0)
    if route == "missing":
        monkeypatch.setattr(_observed, "hidden_bits", lambda model: np.inf)
    agree = [completions_of(v, rows) for v in V]
    with Workers(1) as workers:
        found = _observed.free_energy(model, model.visible.base(), V, 0, workers)
        means = _observed.mean_hidden(model, V, 0, workers)
        pseudo = _observed.log_pseudo_likelihood(model, V, 0, workers)
    expected = np.array([logsumexp(log_weights[some]) for some in agree])
    np.testing.assert_allclose(-found, expected, atol=1e-10)
    hidden = model.mean_hidden(rows)
    for some, mean in zip(agree, means, strict=True):
        p = np.exp(log_weights[some] - logsumexp(log_weights[some]))
        np.testing.assert_allclose(mean, p @ hidden[some], atol=1e-10)
    for v, total, value in zip(V, expected, pseudo, strict=True):
        for unit in np.flatnonzero(~_observed.missing_units(model.visible, v[np.newaxis])[0]):
            other = v.copy()
            other[model.visible.columns_of(unit)] = np.nan
            value -= total - logsumexp(log_weights[completions_of(other, rows)])
        assert value == pytest.approx(0, abs=1e-10)
    np.testing.assert_allclose(
        _observed.independent_log_probability(model.visible, V),
        [
            logsumexp(model.visible.log_weight(rows[some])) for some in agree
        ] - logsumexp(model.visible.log_weight(rows)),
        atol=1e-10,
    )  # fmt: skip


def test_annealing_of_missing_cells_is_unbiased(machine, monkeypatch):
    """The mean of exp(−F) is right, and single figures are good."""
    monkeypatch.setattr(_observed, "EXACT_SUM", -1)
    model, V, rows, log_weights = machine
    V = V[1:13]
    expected = np.array([logsumexp(log_weights[completions_of(v, rows)]) for v in V])
    with Workers(1) as workers:
        errors = np.array([
            expected + _observed.free_energy(model, model.visible.base(), V, seed, workers)
            for seed in range(3)
        ])  # fmt: skip
    assert np.abs(errors).max() < 0.4
    ratios = np.exp(-errors).ravel()
    assert abs(ratios.mean() - 1) < SIGMAS * ratios.std() / np.sqrt(len(ratios))


def test_quick_annealing_is_unbiased(machine, monkeypatch):
    monkeypatch.setattr(_observed, "QUICK_HIDDEN", -1)
    model, V, rows, log_weights = machine
    V = np.repeat(V[1:], 100, axis=0)
    expected = np.array([logsumexp(log_weights[completions_of(v, rows)]) for v in V])
    found = _observed.quick_free_energy(model, model.visible.base(), V, Stream(0))
    ratios = np.exp(-found - expected)
    assert abs(ratios.mean() - 1) < SIGMAS * ratios.std() / np.sqrt(len(ratios))
    assert abs((found + expected).mean()) < 0.1


def test_conditionals_by_chains(machine, monkeypatch):
    """With many chains, what has to be sampled is as it would be by sums."""
    model, V, *_ = machine
    with Workers(1) as workers:
        expected = [
            function(model, V, 0, workers)
            for function in (_observed.mean_hidden, _observed.log_pseudo_likelihood)
        ]
        for name, value in [("EXACT_MISSING", -1), ("EXACT_HIDDEN", -1), ("ROW_CHAINS", 4000)]:
            monkeypatch.setattr(_observed, name, value)
        means = _observed.mean_hidden(model, V[1:7], 0, workers)
        pseudo = _observed.log_pseudo_likelihood(model, V[1:7], 0, workers)
    # 20,000 states, of 4,000 independent chains.
    np.testing.assert_allclose(means, expected[0][1:7], atol=SIGMAS * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(pseudo, expected[1][1:7], atol=0.1)


def test_a_row_does_not_depend_on_others(monkeypatch):
    for name in ("EXACT_SUM", "EXACT_MISSING", "EXACT_HIDDEN"):
        monkeypatch.setattr(_observed, name, -1)
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(10, 8)).astype(np.float32)
    model = SDCPRBM(5, max_iter=3, random_state=0).fit(X)
    V = with_gaps(X, model._model().visible, rng).astype(np.float32)
    order = rng.permutation(10)
    for method in (model.score_samples, model.transform, model.log_pseudo_likelihood):
        together = method(V)
        np.testing.assert_array_equal(method(V), together)
        np.testing.assert_array_equal(method(V[order]), together[order])
        np.testing.assert_array_equal(method(V[7:8]), together[7:8])
    assert np.isfinite(model.score_samples(V)).all()


@pytest.mark.parametrize("estimator", [*ESTIMATORS[:4], ESTIMATORS[5]], ids=repr)
def test_scores_of_incomplete_rows(estimator, gaps):
    """They are log-probabilities of what is observed: sums over all completions."""
    model = clone(estimator).fit(gaps)
    rows = all_rows(Bernoulli(np.zeros(6)))
    log_p = model.score_samples(rows)
    assert logsumexp(log_p) == pytest.approx(0, abs=1e-5)
    expected = [logsumexp(log_p[completions_of(v, rows)]) for v in gaps]
    np.testing.assert_allclose(model.score_samples(gaps), expected, atol=1e-5)
    nothing = np.full((2, 6), np.nan)
    np.testing.assert_array_equal(model.score_samples(nothing), 0)
    mixed = np.vstack([gaps[:3], nothing, rows[:2]])
    assert model.score_samples(mixed)[3:5].tolist() == [0, 0]
    assert model.transform(mixed).shape == (7, len(model.components_))
    # A complete row in company has the figures that it has alone.
    np.testing.assert_array_equal(model.score_samples(mixed)[5:], model.score_samples(rows[:2]))
    assert np.isfinite(model.log_pseudo_likelihood(mixed)).all()


def test_scores_of_categorical_columns():
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], size=200)
    frame = pd.DataFrame({
        "colour": colour, "warm": np.where(rng.random(200) < 0.9, colour == "red", True),
        "size": rng.choice(["s", "m", "l"], size=200),
    })  # fmt: skip
    frame = frame.astype(object).mask(rng.random(frame.shape) < 0.3, None)
    model = SDCPRBM(
        3, max_iter=20, learning_rate=0.1, batch_size=20, unseen="missing", random_state=0
    ).fit(frame)
    values = [["blue", "green", "red"], [False, True], ["l", "m", "s"]]
    rows = pd.DataFrame(list(itertools.product(*values)), columns=frame.columns, dtype=object)
    log_p = model.score_samples(rows)
    assert logsumexp(log_p) == pytest.approx(0, abs=1e-5)
    agree = (rows.to_numpy()[np.newaxis] == frame.to_numpy()[:, np.newaxis]) | (
        frame.isna().to_numpy()[:, np.newaxis]
    )
    expected = [logsumexp(log_p[some]) for some in agree.all(axis=2)]
    np.testing.assert_allclose(model.score_samples(frame), expected, atol=1e-5)
    assert not model.impute(frame, how="mode").isna().any().any()


def test_scores_of_real_columns():
    """Densities are on the scale of the table, also where a real column is summed out."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=300)
    X = np.column_stack([z, 100 * z + 10 * rng.normal(size=300), rng.integers(2, size=300)])
    model = SDCPRBM(3, visible={1: "gaussian"}, max_iter=20, batch_size=20, random_state=0).fit(X)
    grid = np.linspace(-500, 600, 4001)
    for bit in (0, 1):
        rows = np.column_stack([np.full(4001, bit), grid, np.full(4001, 1.0)])
        expected = np.log(np.trapezoid(np.exp(model.score_samples(rows)), grid))
        row = np.array([[bit, np.nan, 1.0]])
        assert model.score_samples(row)[0] == pytest.approx(expected, abs=1e-4)
    assert np.exp(model.score_samples([[0, np.nan, np.nan], [1, np.nan, np.nan]])).sum() == (
        pytest.approx(1, abs=1e-5)
    )


def test_hidden_units_are_drawn_with_what_is_missing(machine):
    """Against the exact joint probabilities of the hidden units."""
    model = SDCPRBM(2, max_iter=0, random_state=0).fit(np.eye(4))
    rng = np.random.default_rng(0)
    model.components_, model.intercept_visible_ = rng.normal(size=(2, 4)), rng.normal(size=4)
    v, n = np.array([1.0, np.nan, np.nan, 0.0]), 4000
    drawn = model.sample_hidden(np.tile(v, (n, 1)), random_state=0) @ [2, 1]
    small = SmallRBM(model.components_, model.intercept_visible_, model.intercept_hidden_)
    p = small.joint[completions_of(v, small.V)].sum(axis=0)
    p /= p.sum()
    codes = small.H @ [2, 1]
    counts = np.array([(drawn == code).sum() for code in codes])
    statistic = ((counts - n * p) ** 2 / (n * p)).sum()
    assert statistic < chi2.isf(FALSE_ALARM, len(p) - 1)


# The positive phase.


def test_transitions_keep_the_distribution_of_missing_cells(machine):
    model, V, rows, log_weights = machine
    rng = np.random.default_rng(0)
    v = max(V[1:], key=lambda v: completions_of(v, rows).sum() * np.isfinite(v).any())
    agree = np.flatnonzero(completions_of(v, rows))
    p = np.exp(log_weights[agree] - logsumexp(log_weights[agree]))
    start = rows[rng.choice(agree, size=5000, p=p)]
    with Workers(1) as workers:
        ends = complete(model, start, np.tile(np.isnan(v), (5000, 1)), 1, workers)
    assert (ends == start).all(axis=1).mean() < 0.9
    which = (ends[:, np.newaxis] == rows[agree]).all(axis=2).argmax(axis=1)
    counts, common = np.bincount(which, minlength=len(agree)), 5000 * p > 5
    statistic = ((counts - 5000 * p) ** 2 / (5000 * p))[common].sum()
    assert statistic < chi2.isf(FALSE_ALARM, common.sum())


def test_the_gradient_is_that_of_what_is_observed(machine):
    """Mean of many visits, which go on from kept values, against the sum over completions."""
    model, V, rows, log_weights = machine
    hidden = model.mean_hidden(rows)
    expected = np.zeros((len(hidden[0]), len(rows[0])))
    for v in V:
        agree = completions_of(v, rows)
        p = np.exp(log_weights[agree] - logsumexp(log_weights[agree]))
        expected += (p[:, np.newaxis] * hidden[agree]).T @ rows[agree] / len(V)
    kept, found = KeptValues.of(V, np.float64), []
    batch = Incomplete(V, kept, np.arange(len(V)))
    with Workers(1) as workers:
        for seed in range(800):
            filled = batch.completed(model, seed, workers)
            np.testing.assert_array_equal(filled[~np.isnan(V)], V[~np.isnan(V)])
            found.append(model.mean_hidden(filled).T @ filled / len(V))
    # Visits depend on those before; blocks of 40 hardly do.
    blocks = np.array(found).reshape(20, 40, *expected.shape).mean(axis=1)
    error = blocks.std(axis=0, ddof=1) / np.sqrt(20)
    # Of 20 blocks, Student's t goes further than a normal number.
    assert (np.abs(blocks.mean(axis=0) - expected) < 8 * error + 1e-9).all()


def test_fresh_rows_come_close_to_the_distribution(machine):
    model, V, rows, log_weights = machine
    v = V[3]
    agree = completions_of(v, rows)
    p = np.exp(log_weights[agree] - logsumexp(log_weights[agree]))
    with Workers(1) as workers:
        filled = Incomplete(np.tile(v, (5000, 1))).completed(model, 0, workers)
    error = np.sqrt(p @ rows[agree] ** 2 - (p @ rows[agree]) ** 2) / np.sqrt(5000)
    assert (np.abs(filled.mean(axis=0) - p @ rows[agree]) < SIGMAS * error + 0.02).all()


# TAP.


def small_layers(kind, sizes, rng):
    n, draw = sizes[0], rng.normal
    visible = {
        "bernoulli": lambda: Bernoulli(draw(size=n)),
        "categorical": lambda: Categorical([2, 3], draw(size=n)),
        "mixed": lambda: Stacked([Bernoulli(draw(size=2)), Categorical(3, draw(size=n - 2))]),
        "truncated": lambda: TruncatedGaussian(draw(size=n), draw(size=n)),
        "spike": lambda: TruncatedGaussBernoulli(np.full(n, 0.4), draw(size=n), draw(size=n)),
        "gaussian": lambda: Gaussian(draw(size=n), 1 + rng.random(n)),
    }[kind]()
    weights = [0.4 * draw(size=pair) for pair in zip(sizes[1:], sizes, strict=False)]
    return Layered(weights, [visible, *(Bernoulli(draw(size=size)) for size in sizes[1:])])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("sizes", [(5, 2), (5, 2, 2)])
@pytest.mark.parametrize(
    "kind", ["bernoulli", "categorical", "mixed", "truncated", "spike", "gaussian"]
)
def test_tap_gradient_of_incomplete_rows(kind, sizes, order):
    """Against finite differences of the TAP log-likelihood of what is observed."""
    rng = np.random.default_rng(0)
    layered = small_layers(kind, sizes, rng)
    visible = layered.layers[0]
    if visible.is_enumerable:
        rows = all_rows(visible)[rng.integers(6, size=6)]
    else:
        rows = rng.random((6, 5)).round(1)
    V = with_gaps(rows, visible, rng)
    exactly = Iteration(order, 5000, 1e-30, 0.5)

    def objective():
        with Workers(1) as workers:
            clamped = clamp(layered, V, exactly, workers)
            solutions = solve(layered.sides(), clamped.visible_side(), exactly, workers)
        free = free_energy(layered.sides(), solutions, order)
        return free.mean() - clamped.free_energy(order).mean()

    with Workers(1) as workers:
        slopes, _ = difference(
            layered, V, None, Scheme(exactly), (1.0, 1.0), (1.0, 1.0), workers,
            Workspace(layered, 6, 6, order),
        )  # fmt: skip
    pairs = list(zip(layered.weights, slopes.weights, strict=True))
    for units, of_units in zip(layered.layers, slopes.units, strict=True):
        pairs += [(value, of_units[name]) for name, value in units.parameters().items()]
    for parameter, slope in pairs:
        flat = parameter.reshape(-1)
        for i in range(0, len(flat), 2):
            before, step, ends = flat[i], 1e-5, []
            for sign in (1, -1):
                flat[i] = before + sign * step
                ends.append(objective())
            flat[i] = before
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope.reshape(-1)[i], abs=1e-6)


@pytest.mark.parametrize("sizes", [(5, 3), (4, 3, 2)])
def test_tap_free_energy_of_incomplete_rows(sizes):
    """Its error is of the third order in the weights."""
    errors, base = [], random_dbm(sizes, seed=1)
    for scale in (0.1, 0.05):
        small = SmallDBM([scale * W for W in base.weights], base.intercepts)
        v = np.array([1.0, np.nan, 0.0, np.nan, 1.0])[: sizes[0]]
        agree = ((np.hstack(small.layers)[:, : sizes[0]] == v) | np.isnan(v)).all(axis=1)
        layered = Layered(small.weights, [Bernoulli(b) for b in small.intercepts])
        with Workers(1) as workers:
            clamped = clamp(layered, v[np.newaxis], Iteration(2, 5000, 1e-30), workers)
        errors.append(abs(clamped.free_energy(2)[0] + logsumexp(small.log_joint[agree])))
    assert errors[0] < 1e-4 and errors[0] / errors[1] > 2**2.7


# Fits.


@every_estimator
def test_rows_without_a_cell_are_left_out(estimator, gaps):
    empty = np.insert(gaps, [3, 50], np.nan, axis=0)
    expected = parameters(clone(estimator).fit(gaps))
    np.testing.assert_array_equal(parameters(clone(estimator).fit(empty)), expected)
    weights = np.where(np.isnan(empty).all(axis=1), 1e3, 1.0)
    found = clone(estimator).fit(empty, sample_weight=weights)
    np.testing.assert_array_equal(parameters(found), expected)


@every_estimator
def test_what_cannot_be_learned_is_refused(estimator, gaps):
    for X, words in [(np.full((3, 2), np.nan), "All cells are missing"),
                     (sp.csr_array(np.array([[0, np.nan], [1, 0]])), "has no value")]:  # fmt: skip
        model = clone(estimator)
        with pytest.raises(ValueError, match=words):
            model.fit(X)
        assert not hasattr(model, "n_features_in_")
    # A column that is observed in rows of weight 0 only.
    some = np.where(np.arange(120)[:, np.newaxis] < 60, gaps, gaps * [np.nan, 1, 1, 1, 1, 1])
    with pytest.warns(UserWarning, match=r"no row that counts has a value in column 0\."):
        clone(estimator).fit(some, sample_weight=np.arange(120) >= 60)


@pytest.mark.parametrize(
    "estimator", [ESTIMATORS[k] for k in (0, 2, 5)], ids=lambda e: type(e).__name__
)
def test_a_fit_with_gaps_learns_the_dependence(estimator, X, monkeypatch):
    # What is measured after each epoch takes longer than the epoch.
    monkeypatch.setattr(TAPMonitor, "measure", lambda *_: {"tap_log_likelihood": 0.0})
    rng = np.random.default_rng(0)
    X = np.tile(X, (5, 1))
    gaps = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    by_tap, model = isinstance(estimator, TAPRBM), clone(estimator)
    if isinstance(model, InfiniteRBM):
        model.set_params(max_components=4, n_corrective=60)
    else:
        model.set_params(max_iter=40, learning_rate=0.3)
    if by_tap:
        model.set_params(alpha=0.0)
    ones = np.nanmean(gaps, axis=0)
    independent = (X @ np.log(ones) + (1 - X) @ np.log(1 - ones)).mean()
    of_complete, with_gaps = clone(model).fit(X).score(X), model.fit(gaps).score(X)
    assert of_complete > independent + 0.5
    assert with_gaps > independent + (0.4 if by_tap else 0.75) * (of_complete - independent)
    # What is observed is more probable than it was.
    assert model.score(gaps) > independent_log_likelihood(Bernoulli.from_data(gaps), gaps) + 0.1


def test_estimates_are_consistent(monkeypatch):
    """The training stays at the truth, although 40 % of the cells are deleted."""
    monkeypatch.setattr(Monitor, "measure", lambda *_: {})
    rng, n, W = np.random.default_rng(0), 8000, np.array([[3.0, -3.0, 2.0, 3.0]])
    truth = SmallRBM(W, 0.3 - W[0] / 2, np.zeros(1))
    X = truth.V[rng.choice(16, size=n, p=truth.p)]
    X[rng.random(X.shape) < 0.4] = np.nan

    def divergence(rows):
        model = SDCPRBM(1, max_iter=0, warm_start=True, learning_rate=0.1, random_state=0)
        model.fit(rows)
        for name, value in [("components_", W), ("intercept_visible_", truth.b)]:
            setattr(model, name, value.copy())
        model.set_params(max_iter=15).fit(rows)
        found = SmallRBM(model.components_, model.intercept_visible_, model.intercept_hidden_)
        return truth.p @ np.log(truth.p / found.p)

    # Of 9 parameters and so many rows, some 0.002 are to be expected.
    assert divergence(X) < 0.01
    assert divergence(np.where(np.isnan(X), np.nanmean(X, axis=0), X)) > 0.025


@pytest.mark.parametrize("estimator", ESTIMATORS[:5], ids=lambda e: type(e).__name__)
def test_warm_start_goes_on_with_the_same_values(estimator, gaps):
    whole = clone(estimator).set_params(max_iter=4).fit(gaps)
    parts = clone(estimator).set_params(max_iter=2, warm_start=True).fit(gaps).fit(gaps)
    np.testing.assert_array_equal(parameters(parts), parameters(whole))
    # Other cells are missing: nothing goes on.
    assert np.isfinite(parameters(parts.fit(gaps[::-1]))).all()


@pytest.mark.parametrize("estimator", ESTIMATORS[:5], ids=lambda e: type(e).__name__)
def test_partial_fit_takes_gaps(estimator, gaps):
    model = clone(estimator).partial_fit(gaps[:50])
    for k in range(3):
        model.partial_fit(gaps[40 * k : 40 * k + 40])
    model.partial_fit(gaps[:5] * [np.nan, 1, 1, 1, 1, 1])
    assert np.isfinite(model.score(gaps))


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[2], ESTIMATORS[5]], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_watches_what_is_observed(estimator, gaps, weighted):
    weights = np.random.default_rng(0).random(120) + 0.1 if weighted else None
    model = clone(estimator).set_params(early_stopping=True, validation_fraction=0.3)
    model.fit(gaps, sample_weight=weights)
    assert all(np.isfinite(values).all() for values in model.history_.values())
    _, valid = divided(120, 0.3, model._evaluation_seed)
    some = None if weights is None else weights[valid]
    if not isinstance(model, TAPRBM):  # of TAP, free energies of rows with gaps are approximations
        expected = model.score(gaps[valid], sample_weight=some)
        assert np.abs(model.history_["validation_log_likelihood"] - expected).min() < 1e-4


def test_early_stopping_with_many_hidden_units(gaps):
    model = SDCPRBM(30, max_iter=3, early_stopping=True, validation_fraction=0.3, random_state=0)
    model.fit(gaps)
    _, valid = divided(120, 0.3, model._evaluation_seed)
    # By single chains, and here the machine is close to independent columns.
    assert model.history_["validation_log_likelihood"][-1] == pytest.approx(
        model.score(gaps[valid]), abs=0.1
    )


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[2]], ids=repr)
def test_batches_with_gaps(estimator, gaps, tmp_path):
    gaps = np.insert(gaps, 7, np.nan, axis=0)
    np.save(tmp_path / "X.npy", gaps)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = parameters(clone(estimator).fit(gaps))
    found = clone(estimator).fit(mapped)
    assert found._training.kept.values.size == np.isnan(gaps).sum()
    np.testing.assert_allclose(found.score(gaps), clone(estimator).fit(gaps).score(gaps), atol=0.1)
    assert expected.shape == parameters(found).shape
    for early_stopping in (False, True):
        model = clone(estimator).set_params(early_stopping=early_stopping)
        model.fit(Batches([gaps[:70], gaps[70:]]))
        assert np.isfinite(model.score(gaps))
    weighted = clone(estimator).fit(Batches([gaps[:70], gaps[70:]]), sample_weight=np.arange(121))
    assert np.isfinite(weighted.score(gaps))
    gaps[:, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 has no value in any row that counts"):
        clone(estimator).fit(Batches([gaps[:70], gaps[70:]]))


def test_real_and_categorical_columns_with_gaps():
    """Units of several numbers and without bounds, in every estimator of mini-batches."""
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=150)
    frame = pd.DataFrame({
        "kind": np.array(["a", "b", "c"])[z], "length": z + 0.3 * rng.normal(size=150),
        "flag": z == 2,
    })  # fmt: skip
    gaps = frame.astype(object).mask(rng.random(frame.shape) < 0.3, np.nan)
    gaps["length"] = gaps["length"].astype(float)
    for model in (
        SDCPRBM(4, visible={"length": "gaussian"}, max_iter=30, batch_size=20, random_state=0),
        TAPRBM(4, visible={"length": "gaussian"}, max_iter=10, batch_size=20, random_state=0),
        TAPDBM((4, 2), visible={"length": "gaussian"}, max_iter=3, pretrain_max_iter=2,
               batch_size=20, random_state=0),
    ):  # fmt: skip
        model.fit(gaps)
        assert np.isfinite(model.score_samples(gaps)).all()
        assert np.isfinite(model.transform(gaps)).all()
        filled = model.impute(gaps)
        known = gaps.notna()
        assert (filled[known] == gaps[known])[known].all().all()
        assert not filled.isna().any().any()


def test_infinite_rbm_refines_rows_with_gaps(gaps):
    model = InfiniteRBM(2, n_model_samples=200, random_state=0).fit(gaps)
    refined = model.refine(gaps, SDCPRBM(max_iter=2, random_state=0))
    assert np.isfinite(refined.score(gaps))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_awkward_tables(dtype):
    """Constant columns, single rows, duplicates, huge weights, hardly anything observed."""
    nan = np.nan
    tables = [
        [[0, 1, nan]] * 3 + [[nan, nan, 1]],
        [[0, nan], [nan, 1]],
        [[1.0, 1.0], [1.0, nan], [nan, nan]],
        [[nan, 0.5], [0.25, nan], [1, 0]],
    ]
    for table, estimator in itertools.product(tables, ESTIMATORS):
        X = np.array(table, dtype=dtype)
        model = clone(estimator)
        if "early_stopping" in model.get_params():
            model.set_params(early_stopping=False)
        weights = np.linspace(1, 1e3, len(X))
        model.fit(X, sample_weight=weights)
        assert np.isfinite(parameters(model)).all()
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.transform(X)).all()
        assert np.isfinite(model.impute(X)).all()


def test_scaled_rows_with_gaps(X):
    """A scaler keeps NaN; what it makes of the values is cut by a threshold."""
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    scaled = StandardScaler().fit_transform(gaps)
    model = SDCPRBM(3, max_iter=3, binarize=0.0, random_state=0)
    expected = parameters(SDCPRBM(3, max_iter=3, random_state=0).fit(gaps))
    np.testing.assert_array_equal(parameters(model.fit(scaled)), expected)
