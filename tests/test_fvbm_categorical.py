"""Networks of categorical columns: objective, solvers, gauge, errors and scores, by brute force."""

import gzip
import warnings
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import parameter_index
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import enumerate_states, random_potts
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax
from scipy.stats import binom, chi2, spearmanr
from sklearn.exceptions import ConvergenceWarning

from oracles import differences
from private import CategoricalPseudoLikelihood, Contrasts, Regressions, _gauge, as_parameters
from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.datasets import read_alignment
from sklearn_boltz.metrics import sequence_weights

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=20)


def random_table(rng, n_values, n, missing=0.2):
    """Codes with missing cells; neighbours have something in common."""
    codes = np.stack([rng.integers(0, q, n) for q in n_values], axis=1)
    for j in range(1, len(n_values)):
        repeat = rng.random(n) < 0.4
        codes[repeat, j] = codes[repeat, j - 1] % n_values[j]
    return np.where(rng.random(codes.shape) < missing, -1, codes)


def fit(codes, n_values, weights=None, **options):
    """A network of codes, in which a missing cell has no term."""
    columns = [range(m) for m in n_values]
    model = FVBMPseudoLikelihood(**{"columns": columns, "missing": "observed"} | options)
    return model.fit(np.where(codes < 0, np.nan, codes), sample_weight=weights)


def zero_sum_potts(n_values, seed=0, scale=0.5):
    """A model in the gauge of the estimates."""
    model = random_potts(n_values, seed, scale)
    return model.like(*_gauge.to_zero_sum(model.coupling, model.intercept, model.n_values))


def one_hot(codes, n_values):
    offsets = _gauge.state_offsets(n_values)
    x = np.zeros((len(codes), offsets[-1]))
    row, column = np.nonzero(codes >= 0)
    x[row, offsets[column] + codes[row, column]] = 1
    return x


def log_pseudo_likelihood(codes, n_values, weights, coupling, intercept):
    """By dense arithmetic."""
    x = one_hot(codes, n_values)
    parts = np.split(x @ coupling + intercept, _gauge.state_offsets(n_values)[1:-1], axis=1)
    log_p = np.hstack([log_softmax(part, axis=1) for part in parts])
    return weights @ (log_p * x).sum(axis=1)


@settings(max_examples=cases(40))
@given(SIZES, st.integers(1, 400), st.booleans(), st.integers(0, 2**32 - 1))
def test_value_and_gradient(n_values, n, zero_sum, seed):
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    codes, weights = random_table(rng, n_values, n), 3 * rng.random(n)
    problem = CategoricalPseudoLikelihood(codes, n_values, weights, coupling_penalty=0.3)
    theta, direction = rng.normal(size=(2, problem.n_parameters))

    def expected(theta):
        coupling, intercept = problem.unpack(problem.centered(theta) if zero_sum else theta)
        value = log_pseudo_likelihood(codes, n_values, weights, coupling, intercept)
        return value - 0.3 * (coupling**2).sum() / 2

    value, gradient = problem.at(theta.copy())[1:3] if zero_sum else problem.evaluate(theta)
    assert value == pytest.approx(expected(theta), rel=1e-12, abs=1e-9)
    step = 1e-4
    slope = (expected(theta + step * direction) - expected(theta - step * direction)) / (2 * step)
    scale = np.abs(gradient * direction).sum()
    assert gradient @ direction == pytest.approx(slope, abs=1e-6 * scale)


def test_rows_in_blocks_and_large_fields(monkeypatch):
    """More rows than a block has, and states that are all but impossible."""
    monkeypatch.setattr("sklearn_boltz.networks.categorical._cells.BLOCK_ROWS", 7)
    monkeypatch.setattr("sklearn_boltz.networks.categorical._cells.BLOCK_NUMBERS", 1)
    rng = np.random.default_rng(0)
    n_values = np.array([3, 2, 4, 12])
    codes, weights = random_table(rng, n_values, 300), np.full(300, 1e3)
    problem = CategoricalPseudoLikelihood(codes, n_values, weights)
    theta = rng.normal(scale=300, size=problem.n_parameters)
    value, gradient = problem.evaluate(theta)
    expected = log_pseudo_likelihood(codes, n_values, weights, *problem.unpack(theta))
    assert value == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(gradient).all()


@settings(max_examples=cases(20))
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_gauge_keeps_the_distribution(n_values, seed):
    model = random_potts(n_values, seed, scale=0.5)
    moved, fields = _gauge.to_zero_sum(model.coupling, model.intercept, n_values)
    for i in range(len(n_values)):
        states = slice(*_gauge.state_offsets(n_values)[i : i + 2])
        assert_allclose(fields[states].sum(), 0, atol=1e-12)
        assert_allclose(moved[:, states].sum(axis=1), 0, atol=1e-12)
    _, expected, _ = enumerate_states(model)
    assert_allclose(enumerate_states(model.like(moved, fields))[1], expected, atol=1e-12)


@pytest.mark.parametrize(("missing", "alpha"), [(0.0, 0.0), (0.3, 0.013)])
def test_solvers_agree(missing, alpha):
    n_values = [2, 3, 4, 3, 1, 5]
    codes = random_table(np.random.default_rng(1), n_values, 3000, missing)
    one, other = (
        fit(codes, n_values, solver=solver, tol=1e-10, alpha=alpha)
        for solver in ("newton", "lbfgs")
    )
    assert (one.solver_, other.solver_) == ("newton", "lbfgs")
    assert one.converged_ and other.converged_
    assert_allclose(one.coupling_, other.coupling_, atol=1e-5)
    assert_allclose(one.intercept_, other.intercept_, atol=1e-5)
    zero_sum = _gauge.to_zero_sum(one.coupling_, one.intercept_, one.n_values_)
    assert_allclose(zero_sum[0], one.coupling_, atol=1e-12)


@settings(max_examples=cases(10))
@given(st.lists(st.integers(2, 4), min_size=2, max_size=4), st.integers(0, 2**32 - 1))
def test_derivatives_in_contrasts(n_values, seed):
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    codes, weights = random_table(rng, n_values, 60), 3 * rng.random(60)
    trends = rng.random(len(n_values)) < 0.5
    problem = CategoricalPseudoLikelihood(
        codes, n_values, weights, coupling_penalty=0.3, trends=trends
    )
    contrasts = Contrasts(problem)
    z = rng.normal(scale=0.3, size=contrasts.n_parameters)
    point = contrasts.at(z)
    coupling, intercept = contrasts.unpack(z)
    theta = contrasts.loadings() @ z
    assert_allclose(as_parameters(coupling, intercept, n_values), theta, atol=1e-12)
    assert_allclose(contrasts.pack(coupling, intercept), z, atol=1e-12)
    slope = differences(lambda z: contrasts.at(z).value, z)
    assert_allclose(point.gradient, slope, atol=1e-5)
    bend = -differences(lambda z: contrasts.at(z).gradient, z)
    assert_allclose(contrasts.information(point), bend, atol=1e-5)
    of = partial(CategoricalPseudoLikelihood, weights=np.ones(1), trends=trends)
    rows = [of(row[None], n_values) for row in codes]
    scores = np.array([Contrasts(row).at(z).gradient for row in rows])
    products = Regressions.of_contrasts(contrasts, point).score_products()
    assert_allclose(products, scores.T * weights @ scores, atol=1e-9)


def test_standard_errors_are_those_of_simulations():
    """40 samples of a known model: the share of intervals that hold the truth, and a χ² test."""
    rng, n_values, n_runs = np.random.default_rng(3), np.array([3, 2, 3]), 40
    model = zero_sum_potts(n_values, 3)
    codes, log_p, _ = enumerate_states(model)
    truth = as_parameters(model.coupling, model.intercept, n_values)
    i, _, j, b = parameter_index(n_values)
    weights = np.zeros((2, len(truth)))
    weights[0, (i == 0) & (j == 2) & (b == 1)] = [1, -1, 0]
    weights[1, (i == 1) & (j < 0)] = [1, -1]
    z, covered = [], 0
    for _ in range(n_runs):
        counts = rng.multinomial(3000, np.exp(log_p))
        fitted = FVBMPseudoLikelihood(columns=list(map(range, n_values)), alpha=0.0)
        fitted.fit(codes, sample_weight=counts)
        result = statistics.inference(fitted, codes, sample_weight=counts)
        std_err = np.sqrt((weights @ result.covariance * weights).sum(axis=1))
        z.append(weights @ (result.estimate - truth) / std_err)
        covered += result.ci_low[4] < truth[4] < result.ci_high[4]
    # Each of these fails by chance once in 2,000 times.
    squares = (np.array(z) ** 2).sum(axis=0)
    assert (squares > chi2.ppf(0.00025, n_runs)).all()
    assert (squares < chi2.ppf(0.99975, n_runs)).all()
    assert binom.ppf(0.00025, n_runs, 0.95) <= covered <= binom.ppf(0.99975, n_runs, 0.95)


def test_chain_of_three_states(shared_data):
    """plmc's potts3: an open chain, 500 rows of 60 columns."""
    path = shared_data / "oracles/potts/plmc_potts3.a2m.gz"
    codes = read_alignment(path, alphabet="_*^", gaps="missing").codes
    scores = fit(codes, [3] * 60, alpha=8 / 500, solver="lbfgs").interaction_scores()
    i, j = np.triu_indices(60, 1)
    strongest = np.argsort(-scores[i, j])[:59]
    assert (j - i)[strongest].max() == 1
    # Neighbours are equal as often as with J = 2.177, a model in which states may be permuted.
    pairs = np.column_stack([codes[:, :-1].ravel(), codes[:, 1:].ravel()])
    pairs = np.concatenate([np.array(order)[pairs] for order in permutations(range(3))])
    model = fit(pairs, [3, 3], alpha=0.0, tol=1e-9)
    two = model.coupling_[:3, 3:]
    assert_allclose(two - two[0, 1], 2.177 * np.eye(3), atol=3e-4)
    assert_allclose(model.intercept_, 0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit ended at max_iter=10")
def test_dhfr_scores(shared_data):
    """A few iterations; more of them give the same ranks."""
    folder = shared_data / "oracles/potts"
    found = read_alignment(
        folder / "plmc_DHFR.a2m.gz", focus="DYR_ECOLI", unknown="drop", gaps="missing"
    )
    weights = np.loadtxt(folder / "plmc_DHFR_weights_raw.txt.gz")[found.rows]
    assert found.codes.shape[1] == 159
    options = {"alpha": 8 * 16 / weights.sum(), "solver": "lbfgs", "max_iter": 10}
    scores = fit(found.codes, [20] * 159, weights, **options).interaction_scores()
    with gzip.open(folder / "plmc_DHFR.couplings.gz", "rt") as file:
        table = [line.split() for line in file]
    numbers = sorted({int(row[k]) for row in table for k in (0, 2)})
    place = {number: k for k, number in enumerate(numbers)}
    found = [scores[place[int(row[0])], place[int(row[2])]] for row in table]
    assert len(found) == 159 * 158 // 2
    assert spearmanr(found, [float(row[5]) for row in table])[0] > 0.85


# The estimator.

N_VALUES = [2, 3, 4, 2]


@pytest.fixture(scope="module")
def truth():
    return zero_sum_potts(N_VALUES, 4, 0.4)


@pytest.fixture(scope="module")
def X(truth):
    return truth.sample(1500, np.random.default_rng(0), 1)


@pytest.fixture(scope="module")
def model(X):
    return FVBMPseudoLikelihood(tol=1e-9, alpha=0.0).fit(X)


def test_estimates_are_in_the_zero_sum_gauge(model, X):
    starts = np.concatenate([[0], np.cumsum(N_VALUES)])
    assert_array_equal(model.coupling_, model.coupling_.T)
    for j in range(4):
        own = slice(starts[j], starts[j + 1])
        assert_allclose(model.coupling_[own].sum(axis=0), 0, atol=1e-12)
        assert model.intercept_[own].sum() == pytest.approx(0, abs=1e-12)
        assert not model.coupling_[own, own].any()
    last = model.history_["log_pseudo_likelihood"][-1]
    assert last == pytest.approx(model.log_pseudo_likelihood(X).mean(), abs=1e-9)


@pytest.mark.parametrize(("missing", "solver", "alpha"), [
    ("em", "newton", 0.05), ("observed", "newton", 0.0), ("observed", "lbfgs", 0.05),
])  # fmt: skip
def test_one_categorical_column_changes_nothing_of_the_bits(missing, solver, alpha):
    """A third value that no row has makes codes of bits; ½ α N Σ m² is α N / 8 Σ J²."""
    rng = np.random.default_rng(1)
    X = rng.integers(2, size=(400, 4)).astype(float)
    X[:, 3] = np.where(rng.random(400) < 0.5, X[:, 2], X[:, 3])
    X[rng.random(X.shape) < 0.15] = np.nan
    options = {"alpha": alpha, "missing": missing, "tol": 1e-11}
    spins = FVBMPseudoLikelihood(**options).fit(X)
    columns = [range(3), range(2), range(2), range(2)]
    codes = FVBMPseudoLikelihood(columns=columns, solver=solver, **options).fit(X)
    assert codes.coupling_.shape == (9, 9)
    assert_allclose(codes.coupling_[4::2, 4::2], spins.coupling_[1:, 1:], atol=1e-5)
    assert_allclose(codes.coupling_[1, 4::2] - codes.coupling_[0, 4::2],
                    2 * spins.coupling_[0, 1:], atol=1e-5)  # fmt: skip
    assert_array_equal(codes.coupling_[2], 0)
    assert codes.predict_column_proba(X, 0)[:, 2].max() < 0.01
    observed = statistics.inference(codes, X)
    assert np.isnan(observed.std_err[2]) and np.isfinite(observed.std_err[3:9]).all()
    one = observed.std_err[observed.names.tolist().index("m[x1=1,x2=1]")]
    other = statistics.inference(spins, X)
    expected = other.std_err[other.names.tolist().index("m[x1,x2]")]
    # With draws of missing cells, both within their noise.
    assert one == pytest.approx(expected, rel=1e-6 if missing == "observed" else 0.05)


def test_interaction_scores(model):
    plain = model.interaction_scores(apc=False)
    assert not _gauge.average_product_correction(0 * plain).any()
    assert plain[1, 2] == pytest.approx(np.linalg.norm(model.coupling_[2:5, 5:9]))
    corrected = model.interaction_scores()
    means = plain.sum(axis=0) / 3
    assert corrected[0, 3] == pytest.approx(plain[0, 3] - means[0] * means[3] / means.mean())
    ignored = model.interaction_scores(apc=False, ignore=[-1, 0, -1, -1])
    assert ignored[1, 2] == pytest.approx(np.linalg.norm(model.coupling_[3:5, 5:9]))
    bits = FVBMPseudoLikelihood(alpha=0.0).fit(np.random.default_rng(0).integers(2, size=(200, 3)))
    scores = bits.interaction_scores(apc=False)
    assert_allclose(scores, 2 * np.abs(bits.coupling_), atol=1e-12)


def test_scores_without_a_letter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("AC-"), size=(100, 4)))
    X[3] = rng.choice(list("AC"), size=100)  # without a gap
    model = FVBMPseudoLikelihood().fit(X)
    scores = model.interaction_scores(ignore="-")
    assert_array_equal(scores, model.interaction_scores(ignore=[0, 0, 0, -1]))
    assert not np.allclose(scores, model.interaction_scores())


def test_constant_columns_and_values_that_never_occur(X):
    model = FVBMPseudoLikelihood(
        columns=[range(2), range(3), range(6), range(2), range(3)], tol=1e-9, alpha=0.0
    )
    constant = np.column_stack([X, np.full(len(X), 1)])
    model.fit(constant)
    alone = FVBMPseudoLikelihood(tol=1e-9, alpha=0.0).fit(X)
    assert_allclose(model.coupling_[:9, :9], alone.coupling_[:9, :9], atol=1e-7)
    assert_array_equal(model.coupling_[9:11], 0)
    assert_array_equal(model.coupling_[13:], 0)
    # One observation more, spread evenly over the values.
    p = (np.array([0, 1500, 0]) + 1 / 3) / 1501
    assert_allclose(model.marginal(4), p, atol=1e-12)
    assert 0 < model.marginal(2)[4:].max() < 1e-3
    assert np.isfinite(model.score(constant))
    errors = statistics.inference(model, constant).std_err
    assert np.isnan(errors[[9, 10, 13, 14, 15]]).all() and np.isfinite(errors[:9]).all()


@pytest.mark.parametrize(("solver", "alpha"), [("newton", 0.0), ("lbfgs", 0.0), ("lbfgs", 1.0)])
def test_tables_of_hardly_anything(solver, alpha):
    for rows in ([[0, 0]], [[0, 2]], [[0, 1], [1, -1]], [[1, 1]] * 5):
        model = fit(np.array(rows), [2, 3], solver=solver, alpha=alpha)
        assert np.isfinite(model.coupling_).all() and np.isfinite(model.score([[0, 0], [1, 2]]))


def test_values_that_never_meet_are_named(X):
    kept = X[~((X[:, 1] == 2) & (X[:, 2] == 3))]
    with pytest.warns(ConvergenceWarning, match="column 1 = 2 never occurs together with column 2"):
        model = FVBMPseudoLikelihood(alpha=0.0).fit(kept)
    assert not model.converged_ and np.isfinite(model.coupling_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FVBMPseudoLikelihood(alpha=0.01).fit(kept).converged_


@pytest.mark.slow
def test_plmdca_scores(shared_data):
    """Its regressions of one column on the others, by SciPy, as the network has none by itself.

    The objective of column i is Σ_n w_n ln p(x_ni | others) - λ_J Σ_j Σ_ab J_ij(a, b)² -
    λ_h Σ_a h_i(a)², and both directions of a coupling are averaged. It stops early, so the digits
    are few.
    """
    folder = shared_data / "oracles/potts"
    codes = read_alignment(folder / "plmDCA_example1_alignment.fasta.gz").codes
    # Letters that are no amino acid count as gaps.
    codes = np.unique(np.maximum(codes, 0), axis=0)
    weights = sequence_weights(codes)
    assert weights.sum() == pytest.approx(1478.2347, abs=1e-4)
    (n, d), q, total = codes.shape, 21, weights.sum()
    dense = one_hot(codes, [q] * d).astype(np.float32)
    x, between = csr_array(dense), np.kron(1 - np.eye(d), np.ones((q, q)))
    strength = total * np.append(np.full(between.size, 0.005), np.full(q * d, 0.01))
    rates = weights @ dense / total + 1e-3
    spread = rates * (1 - rates)
    scale = np.sqrt(total * np.append(np.outer(rates, spread), spread) + 2 * strength)

    def cost(z):
        theta = (z / scale).astype(np.float32)
        coupling, intercept = theta[: between.size].reshape(between.shape), theta[between.size :]
        fields = (x @ (coupling * between).astype(np.float32) + intercept).reshape(n, d, q)
        log_p = log_softmax(fields, axis=2).reshape(n, -1)
        off = weights.astype(np.float32)[:, None] * (np.exp(log_p) - dense)
        slope = np.append(x.T @ off * between, off.sum(axis=0))
        value = strength @ theta**2 - weights @ (log_p * dense).sum(axis=1)
        return value, (slope + 2 * strength * theta) / scale

    start, options = np.zeros(len(scale)), {"maxiter": 70}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options=options).x / scale
    coupling = found[: between.size].reshape(between.shape)
    scores = _gauge.frobenius_scores((coupling + coupling.T) / 2, [q] * d, ignore=0)
    scores = _gauge.average_product_correction(scores)
    table = np.loadtxt(folder / "plmDCA_example1_scores.csv.gz", delimiter=",")
    i, j = table[:, :2].astype(int).T - 1
    assert len(i) == 1378
    assert_allclose(scores[i, j], table[:, 2], atol=0.03)
    assert spearmanr(scores[i, j], table[:, 2])[0] > 0.995
