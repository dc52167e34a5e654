"""Networks of categorical columns: objective, solvers, gauge, errors and scores, by brute force."""

import gzip
import re
from functools import partial
from itertools import combinations, permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import parameter_index
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import differences, enumerate_states, random_potts
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax
from scipy.stats import binom, chi2, spearmanr

from private import (
    MAX_ITER,
    CategoricalPseudoLikelihood,
    CodesTask,
    Contrasts,
    Regressions,
    SolverMonitor,
    as_parameters,
    average_product_correction,
    find_patterns,
    frobenius_scores,
    maximise_network,
    state_offsets,
    to_zero_sum,
)
from sklearn_boltz import FVBMPseudoLikelihood, statistics

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=20)


def random_table(rng, n_values, n, missing=0.2):
    """Codes with missing cells; neighbours have something in common."""
    codes = np.stack([rng.integers(0, q, n) for q in n_values], axis=1)
    for j in range(1, len(n_values)):
        repeat = rng.random(n) < 0.4
        codes[repeat, j] = codes[repeat, j - 1] % n_values[j]
    return np.where(rng.random(codes.shape) < missing, -1, codes)


def zero_sum_potts(n_values, seed=0):
    """A model in the gauge of the estimates."""
    model = random_potts(n_values, seed, scale=0.5)
    return model.like(*to_zero_sum(model.coupling, model.intercept, model.n_values))


def one_hot(codes, n_values):
    offsets = state_offsets(n_values)
    x = np.zeros((len(codes), offsets[-1]))
    row, column = np.nonzero(codes >= 0)
    x[row, offsets[column] + codes[row, column]] = 1
    return x


def block(coupling, n_values, i, j):
    """J_ij(a, b), of shape (q_i, q_j)."""
    offsets = state_offsets(n_values)
    return coupling[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]


def log_pseudo_likelihood(codes, n_values, weights, coupling, intercept):
    """By dense arithmetic."""
    x = one_hot(codes, n_values)
    parts = np.split(x @ coupling + intercept, state_offsets(n_values)[1:-1], axis=1)
    log_p = np.hstack([log_softmax(part, axis=1) for part in parts])
    return weights @ (log_p * x).sum(axis=1)


def test_newton_is_for_few_parameters(monkeypatch):
    """With 3, 3 and 2 values there are 5 of single columns and 8 of pairs, of full rank."""
    codes = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 0]])
    task = CodesTask(codes, np.ones(3), np.array([3, 3, 2]), 0.0)
    for most, name in ((13, "newton"), (12, "lbfgs")):
        monkeypatch.setattr("sklearn_boltz.networks.categorical._task.MAX_NEWTON_PARAMETERS", most)
        assert task.method("newton").name == name


def fit_categorical(
    codes, n_values, weights=None, *, solver="newton", tol=1e-5, max_iter=None, coupling_penalty=0.0
):
    """The result of rows of codes, also of bits; λ_J as of `CategoricalPseudoLikelihood`."""
    weights = np.ones(len(codes)) if weights is None else weights
    alpha = 8 * coupling_penalty / weights.sum() if weights.any() else 0.0
    task = CodesTask(codes, weights, n_values, alpha)
    method = task.method(solver)
    monitor = SolverMonitor(tol, MAX_ITER[method.name] if max_iter is None else max_iter)
    task.label = lambda *cell: f"cell {cell}"
    message = monitor.run(partial(maximise_network, task, (None, None), method))
    network = task.network(monitor.last)
    objective = np.array(monitor.values) / monitor.total + task.constant
    return SimpleNamespace(
        coupling=network[0], intercept=network[1], network=network, objective=objective,
        message=message, status=monitor.status,
    )  # fmt: skip


def scores_of(codes, n_values, weights=None, *, coupling_penalty, **options):
    """Corrected scores of a fit by L-BFGS in which a missing cell has no term."""
    weights = np.ones(len(codes)) if weights is None else weights
    columns = FVBMPseudoLikelihood(
        columns=list(map(range, n_values)), alpha=8 * coupling_penalty / weights.sum(),
        missing="observed", solver="lbfgs", **options,
    )  # fmt: skip
    model = columns.fit(np.where(codes < 0, np.nan, codes), sample_weight=weights)
    return model.interaction_scores()


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


def test_lbfgs_meets_no_directions_of_the_penalty_alone():
    """Without the gauge it takes 70 iterations, with it 23."""
    X = random_table(np.random.default_rng(0), [8] * 12, 400, missing=0)
    model = FVBMPseudoLikelihood(columns=range(8), solver="lbfgs", alpha=0.01).fit(X)
    assert model.converged_
    assert model.n_iter_ <= 40


@settings(max_examples=cases(20))
@given(SIZES, st.integers(1, 600), st.integers(0, 2**32 - 1))
def test_patterns_are_the_rows(n_values, n, seed):
    rng = np.random.default_rng(seed)
    codes, offsets = random_table(rng, n_values, n), state_offsets(n_values)
    patterns = find_patterns(codes, offsets)
    lines = []
    for k in range(len(patterns.bundles) - 1):
        begin, end = patterns.bundles[k : k + 2]
        rows = patterns.rows[n * begin : n * end].reshape(n, end - begin) + patterns.starts[k]
        for m in rows.T:
            sizes = np.diff(patterns.first)[m]
            assert len(set(sizes)) == 1
            lines.append(patterns.parts[patterns.first[m][:, None] + np.arange(sizes[0])])
    assert_array_equal(np.hstack(lines), np.where(codes < 0, offsets[-1], codes + offsets[:-1]))


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
    moved, fields = to_zero_sum(model.coupling, model.intercept, n_values)
    for i in range(len(n_values)):
        states = slice(*state_offsets(n_values)[i : i + 2])
        assert_allclose(fields[states].sum(), 0, atol=1e-12)
        assert_allclose(moved[:, states].sum(axis=1), 0, atol=1e-12)
    _, expected, _ = enumerate_states(model)
    assert_allclose(enumerate_states(model.like(moved, fields))[1], expected, atol=1e-12)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_bits_give_the_binary_estimate(solver, alpha, missing):
    """½ α N Σ m² is α N / 8 Σ J², and m is J(1, 1) in the zero-sum gauge."""
    codes, n_values = random_table(np.random.default_rng(0), [2] * 6, 500, missing), np.full(6, 2)
    codes = codes[(codes >= 0).any(axis=1)]
    model = FVBMPseudoLikelihood(alpha=alpha, tol=1e-11, missing="observed")
    model.fit(np.where(codes < 0, np.nan, codes))
    penalty = alpha * len(codes) / 8
    result = fit_categorical(codes, n_values, solver=solver, tol=1e-11, coupling_penalty=penalty)
    coupling, intercept = to_zero_sum(result.coupling, result.intercept, n_values)
    assert_allclose(coupling[1::2, 1::2], model.coupling_, atol=1e-6)
    assert_allclose(intercept[1::2], model.intercept_, atol=1e-6)
    last = model.history_["log_pseudo_likelihood"][-1]
    assert result.objective[-1] == pytest.approx(last, abs=1e-9)
    assert result.status == "converged" and result.message is None


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_solvers_agree(missing, penalty):
    rng = np.random.default_rng(1)
    n_values = np.array([2, 3, 4, 3, 1, 5])
    codes = random_table(rng, n_values, 3000, missing)
    results = [
        fit_categorical(codes, n_values, solver=solver, tol=1e-10, coupling_penalty=penalty)
        for solver in ("newton", "lbfgs")
    ]
    for result in results:
        assert result.status == "converged" and result.message is None
    assert_allclose(results[0].coupling, results[1].coupling, atol=1e-5)
    assert_allclose(results[0].intercept, results[1].intercept, atol=1e-5)
    assert_allclose(
        to_zero_sum(*results[0].network[:2], n_values)[0], results[0].coupling, atol=1e-12
    )


@settings(max_examples=cases(10))
@given(st.lists(st.integers(2, 4), min_size=2, max_size=4), st.integers(0, 2**32 - 1))
def test_derivatives_in_contrasts(n_values, seed):
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    codes, weights = random_table(rng, n_values, 60), 3 * rng.random(60)
    of_pairs = np.exp(rng.normal(size=(len(n_values),) * 2))
    trends = rng.random(len(n_values)) < 0.5
    problem = CategoricalPseudoLikelihood(
        codes, n_values, weights, coupling_penalty=0.3, pair_weights=of_pairs, trends=trends
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


@settings(max_examples=cases(20))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 0.1]))
def test_empty_and_rarest_cells(seed, missing):
    rng, n_values = np.random.default_rng(seed), np.array([3, 2, 4])
    codes, weights = random_table(rng, n_values, 12, missing), rng.integers(1, 4, 12)
    problem = CategoricalPseudoLikelihood(codes, n_values, weights)
    cells = {
        (i, j, a, b): weights[(codes[:, i] == a) & (codes[:, j] == b)].sum()
        for i, j in product(range(3), repeat=2)
        for a, b in product(range(n_values[i]), range(n_values[j]))
    }
    expected = [cell for cell, n in cells.items() if cell[0] < cell[1] and not n]
    assert sorted(problem.empty_cells()) == expected
    assert_array_equal(problem.is_whole, (codes >= 0).all(axis=0))
    for i, j in product(range(3), repeat=2):
        own = [n for c, n in cells.items() if c[:2] == (i, j) and (i != j or c[2] == c[3])]
        count, a, b = problem.rarest_cell(i, j)
        assert count == min(own) == cells[i, j, a, b]
        assert i != j or a == b


def test_standard_errors_are_those_of_simulations():
    """100 samples of a known model: the share of intervals that hold the truth, and a χ² test."""
    rng, n_values, n_runs = np.random.default_rng(3), np.array([3, 2, 3]), 100
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


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("codes", [
    np.full((3, 2), -1), np.zeros((1, 2), int), np.zeros((0, 2), int), np.array([[0, 1], [1, -1]]),
])  # fmt: skip
def test_tables_of_hardly_anything(solver, codes):
    for penalty in (0.0, 1.0):
        result = fit_categorical(
            codes, [2, 3], solver=solver, coupling_penalty=penalty, max_iter=50
        )
        assert np.isfinite(result.coupling).all() and np.isfinite(result.intercept).all()


def test_scores_by_hand():
    n_values = np.array([3, 2, 4])
    model = random_potts(n_values, 6)
    coupling = model.coupling
    zero_sum, _ = to_zero_sum(coupling, model.intercept, n_values)
    scores = frobenius_scores(coupling, n_values)
    without = frobenius_scores(coupling, n_values, ignore=[0, -1, 3])
    for i, j in combinations(range(3), 2):
        j_ij = block(zero_sum, n_values, i, j)
        assert scores[i, j] == pytest.approx(np.linalg.norm(j_ij))
        assert scores[j, i] == pytest.approx(scores[i, j])
        kept = np.delete(j_ij, [0] if i == 0 else [], axis=0)
        kept = np.delete(kept, [3] if j == 2 else [], axis=1)
        assert without[i, j] == pytest.approx(np.linalg.norm(kept))
    s01, s02, s12 = scores[0, 1], scores[0, 2], scores[1, 2]
    total = (s01 + s02 + s12) / 3
    corrected = average_product_correction(scores)
    assert corrected[0, 1] == pytest.approx(s01 - (s01 + s02) / 2 * (s01 + s12) / 2 / total)
    assert_array_equal(np.diag(corrected), 0)
    assert_array_equal(average_product_correction(np.zeros((3, 3))), 0)
    assert_array_equal(average_product_correction([[1.0]]), 0)


def read_sequences(path, alphabet, ignored="$^"):
    """Letters of an alignment, and their codes of either case; -2 for what has none."""
    with gzip.open(path, "rt") as file:
        entries = file.read().split(">")[1:]
    rows = ["".join(entry.split("\n")[1:]) for entry in entries]
    letters = np.array([re.sub(ignored, "", row) for row in rows])
    letters = letters.view(np.uint32).reshape(len(rows), -1)
    code_of = np.full(128, -2)
    for k, letter in enumerate(alphabet):
        code_of[[ord(letter), ord(letter.lower())]] = k
    return letters, code_of[letters]


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def test_chain_of_three_states(shared_data):
    """plmc's potts3: an open chain, 500 rows of 60 columns."""
    _, codes = read_sequences(shared_data / "oracles/potts/plmc_potts3.a2m.gz", "_*^")
    n_values = np.full(60, 3)
    scores = scores_of(codes, n_values, coupling_penalty=1.0)
    i, j = np.triu_indices(60, 1)
    strongest = np.argsort(-scores[i, j])[:59]
    assert (j - i)[strongest].max() == 1
    # Neighbours are equal as often as with J = 2.177, a model in which states may be permuted.
    pairs = np.column_stack([codes[:, :-1].ravel(), codes[:, 1:].ravel()])
    pairs = np.concatenate([np.array(order)[pairs] for order in permutations(range(3))])
    result = fit_categorical(pairs, [3, 3], tol=1e-9)
    two = block(result.coupling, [3, 3], 0, 1)
    assert_allclose(two - two[0, 1], 2.177 * np.eye(3), atol=3e-4)
    assert_allclose(result.intercept, 0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit ended at max_iter=10")
def test_dhfr_scores(shared_data):
    """A few iterations; more of them give the same ranks."""
    folder = shared_data / "oracles/potts"
    letters, codes = read_sequences(folder / "plmc_DHFR.a2m.gz", AMINO_ACIDS)
    is_lower = letters >= ord("a")
    codes[np.isin(letters, [ord("-"), ord(".")]) | is_lower] = -1
    codes = codes[:, ~is_lower[0] & (letters[0] >= ord("A"))]
    kept = (codes > -2).all(axis=1)
    weights = np.loadtxt(folder / "plmc_DHFR_weights_raw.txt.gz")
    assert codes.shape[1] == 159 and (~kept).sum() == 13
    assert weights.sum() == pytest.approx(1568.104282573092)
    n_values = np.full(159, 20)
    scores = scores_of(codes[kept], n_values, weights[kept], coupling_penalty=16.0, max_iter=10)
    with gzip.open(folder / "plmc_DHFR.couplings.gz", "rt") as file:
        table = [line.split() for line in file]
    numbers = sorted({int(row[k]) for row in table for k in (0, 2)})
    place = {number: k for k, number in enumerate(numbers)}
    found = [scores[place[int(row[0])], place[int(row[2])]] for row in table]
    assert len(found) == 159 * 158 // 2
    assert spearmanr(found, [float(row[5]) for row in table])[0] > 0.85


def test_plmdca_scores(shared_data):
    """Its regressions of one column on the others, by SciPy, as the network has none by itself.

    The objective of column i is Σ_n w_n ln p(x_ni | others) - λ_J Σ_j Σ_ab J_ij(a, b)² -
    λ_h Σ_a h_i(a)², and both directions of a coupling are averaged. It stops early, so the digits
    are few.
    """
    folder = shared_data / "oracles/potts"
    _, codes = read_sequences(
        folder / "plmDCA_example1_alignment.fasta.gz", "-" + AMINO_ACIDS, ignored="[^A-Z-]"
    )
    # Letters that are no amino acid count as gaps.
    codes = np.unique(np.maximum(codes, 0), axis=0)
    near = [((row == codes).mean(axis=1) >= 0.8).sum() for row in codes]
    weights = 1 / np.array(near)
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
    scores = frobenius_scores((coupling + coupling.T) / 2, [q] * d, ignore=0)
    scores = average_product_correction(scores)
    table = np.loadtxt(folder / "plmDCA_example1_scores.csv.gz", delimiter=",")
    i, j = table[:, :2].astype(int).T - 1
    assert len(i) == 1378
    assert_allclose(scores[i, j], table[:, 2], atol=0.03)
    assert spearmanr(scores[i, j], table[:, 2])[0] > 0.995
