"""Unit types against high precision, finite differences and the frequencies of their samples."""

import itertools
from functools import cache

import mpmath
import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.special import logit, logsumexp, softmax

from oracles_rbm import slopes
from private import Stream, tilted_moments, truncated_quantile
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
    UnitType,
)

PRECISIONS = [-50.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 50.0, 1e4]
FIELDS = [0.0, 1e-3, 1.0, -1.0, 25.0, -25.0, 100.0, -100.0, 1e3, -1e3]
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])
both_storages = pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
SUPPORTS = [(0.0, 1.0), (-1.0, 1.0), (2.0, 5.0)]


# Truncated Gaussians in many digits.


def by_quadrature(b, a, width):
    """Integrals of exp(b y − a y² / 2 − peak) y^k over [0, width], and the peak."""
    inner = b / a if a > 0 else mpmath.mpf(0)
    ends = [mpmath.mpf(0), width] + ([inner] if 0 < inner < width else [])
    peak = max(b * y - a * y * y / 2 for y in ends)
    scale = 1 / (abs(b - a * width) + abs(b) + mpmath.sqrt(abs(a)) + 1)
    steps = [0] + [scale * 2**k for k in range(12)]
    points = sorted({y + s * d for y in ends for d in steps for s in (-1, 1)})
    points = [0] + [y for y in points if 0 < y < width] + [width]
    weight = cache(lambda y: mpmath.exp(b * y - a * y * y / 2 - peak))

    def integral(k):
        return mpmath.quad(lambda y: y**k * weight(y), points, method="gauss-legendre")

    return [integral(k) for k in range(3)], peak


def by_error_functions(b, a, width):
    """The same without a peak; it needs more digits than cancel."""
    root, centre = mpmath.sqrt(a / 2), b / a
    change = mpmath.erf(root * (width - centre)) - mpmath.erf(-root * centre)
    z = mpmath.re(mpmath.sqrt(mpmath.pi) / (2 * root) * change * mpmath.exp(b * b / (2 * a)))
    end = mpmath.exp(b * width - a * width * width / 2)
    first = (b * z - (end - 1)) / a
    return [z, first, (z + b * first - width * end) / a], mpmath.mpf(0)


def reference(b, a, low, high):
    """ln Z, mean − low and variance."""
    with mpmath.workdps(400):
        b, a, low, high = map(mpmath.mpf, (b, a, low, high))
        width, b_low = high - low, b - a * low
        few = a != 0 and abs(b_low**2 / a) + abs(b_low * width) + abs(a) * width**2 < 400
        with mpmath.workdps(400 if few else 25):
            form = by_error_functions if few else by_quadrature
            (z, first, second), peak = form(b_low, a, width)
            log_partition = mpmath.log(z) + peak + b * low - a * low * low / 2
            return log_partition, first / z, second / z - (first / z) ** 2


@pytest.fixture(scope="module", params=SUPPORTS, ids=str)
def grid(request):
    """Of all pairs of a field and a precision, those of a support by turns."""
    cases = list(itertools.product(FIELDS, PRECISIONS))[SUPPORTS.index(request.param) :: 3]
    return request.param, np.array(cases).T, [reference(*case, *request.param) for case in cases]


def test_truncated_gaussian_in_many_digits(grid):
    for dtype, rtol in [(np.float64, 1e-9), (np.float32, 2e-5)]:
        assert_of_many_digits(*grid, dtype, rtol)


def assert_of_many_digits(support, cases, expected, dtype, rtol):
    (low, high), (b, a) = support, cases
    got = tilted_moments(b.astype(dtype), a.astype(dtype), low, high)
    assert {values.dtype for values in got} == {np.dtype(dtype)}
    got = [values.astype(np.float64) for values in got]
    # What float32 loses when it rounds b, a and the value itself.
    noise = 0 if dtype == np.float64 else 4 * np.finfo(dtype).eps
    for k, (log_partition, above, variance) in enumerate(expected):
        size = (abs(b[k]) + abs(a[k]) * max(abs(low), abs(high))) * max(abs(low), abs(high))
        assert abs(got[0][k] - log_partition) <= rtol * max(1, abs(log_partition)) + noise * size
        nearer = min(above, high - low - above)
        rounding = np.finfo(dtype).eps * max(abs(low), abs(high))
        slack = noise * size * float(variance) ** 0.5
        assert abs(got[1][k] - low - above) <= rtol * nearer + 2 * rounding + slack
        assert abs(got[2][k] / variance - 1) <= 5 * rtol + noise * size


# The contract, for each law.


def laws(dtype=np.float64):
    rng = np.random.default_rng(1)
    U, V, rho = rng.normal(0, 2, 4), np.array([-30.0, -1.0, 0.0, 20.0]), rng.uniform(0.2, 0.9, 4)
    rho, U, V = (values.astype(dtype) for values in (rho, U, V))
    return {
        "Bernoulli": Bernoulli(U),
        "Categorical": Categorical([3, 1], U),
        "Categorical pairs": Categorical(2, U),
        "Gaussian": Gaussian(U, 3 * rho),
        "Stacked": Stacked([Bernoulli(U[:1]), Categorical([2], U[1:3]), Gaussian(U[3:], rho[:1])]),
        "TG": TruncatedGaussian(U, V, low=-0.5, high=1.5),
        "TG far": TruncatedGaussian(U, V, low=2, high=3),
        "TGB": TruncatedGaussBernoulli(rho, U, V),
        "TGB both sides": TruncatedGaussBernoulli(rho, U, V, low=-1, high=2),
    }


LAWS = sorted(laws())
# Those of which all units are alike and one number wide.
SINGLE = [name for name in LAWS if name[0] != "C" and name != "Stacked"]
BOUNDED = [name for name in SINGLE if name != "Gaussian"]
every_law = pytest.mark.parametrize("name", LAWS)


def precisions(name, rng, shape=4):
    """Of any sign, but where there is no such distribution."""
    values = rng.normal(0, 5, shape)
    return np.abs(values) if name in ("Gaussian", "Stacked") else values


@every_law
def test_derivatives(name):
    """Mean, variance and second moment are derivatives of the log-partition."""
    units, rng = laws()[name], np.random.default_rng(2)
    field, precision, eps = rng.normal(0, 3, (6, 4)), precisions(name, rng), 1e-5
    mean, variance = units.moments(field, precision)

    def by_each(function):
        """Slopes of a figure of each row by each of four numbers."""
        changes = [(function(eps * one), function(-eps * one)) for one in np.eye(4)]
        return np.stack([(up - down) / (2 * eps) for up, down in changes], axis=1)

    by_field = by_each(lambda e: units.log_partition(field + e, precision).sum(axis=1))
    assert_allclose(mean, by_field, rtol=1e-7, atol=1e-9)
    by_field = by_each(lambda e: units.mean(field + e, precision))
    assert_allclose(variance, np.diagonal(by_field, axis1=1, axis2=2), rtol=1e-6, atol=1e-9)
    by_precision = by_each(lambda e: units.log_partition(field, precision + e).sum(axis=1))
    assert_allclose(-0.5 * (variance + mean**2), by_precision, rtol=1e-7, atol=1e-9)
    assert_array_equal(units.mean(field, precision), mean)
    assert_allclose(units.variance(field, precision), variance, rtol=1e-15)
    total = units.log_partition_sum(field)
    assert_allclose(total, units.log_partition(field).sum(axis=1))
    assert total.dtype == np.float64 and len(units) == 4
    assert units.log_partition(field).shape == (6, units.n_units)


@every_law
@both_storages
def test_gradients(name, storage):
    units, rng = laws()[name], np.random.default_rng(3)
    field, precision = rng.normal(0, 3, (6, 4)), precisions(name, rng)
    X = storage(units.sample(field, Stream(0)))
    by_rows, by_field = units.gradients(X), units.gradients(None, field, precision)
    assert by_rows.keys() == by_field.keys() == units.parameters().keys()

    def means():
        log_partition = units.log_partition(field, precision).sum(axis=1)
        return np.array([units.log_weight(X).mean(), log_partition.mean()])

    for key, values in units.parameters().items():
        expected = pytest.approx(slopes(means, values, 1e-6).T, rel=1e-6, abs=1e-7)
        assert np.array([by_rows[key], by_field[key]]) == expected


def measure_of(units):
    """Points and the measure by which a log-weight is a density."""
    if units.states() is not None:
        return units.states(), np.ones(len(units.states()))
    if isinstance(units, Gaussian):
        points = np.linspace(-100, 100, 200_001)
        return points, np.full(len(points), points[1] - points[0])
    low, high = units.bounds
    nodes, weights = np.polynomial.legendre.leggauss(60)
    points, measure = low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2
    if isinstance(units, TruncatedGaussBernoulli):
        points, measure = np.append(points, 0), np.append(measure, 1)
    return points, measure


@every_law
def test_geometric_path(name):
    units = laws()[name]
    base = units.fitted_to(units.sample(np.ones((50, 4)), Stream(1)))
    X = units.sample(np.zeros((200, 4)), Stream(2))
    assert_allclose(units.unit_log_weights(X).sum(axis=1), units.log_weight(X), rtol=1e-9)
    for beta in [0.0, 0.3, 1.0]:
        log_weight = units.annealed(beta, base).log_weight(X)
        difference = log_weight - (1 - beta) * base.log_weight(X) - beta * units.log_weight(X)
        assert_allclose(difference, difference[0], atol=1e-9)
        if beta in (0, 1):
            assert_allclose(log_weight, (units if beta else base).log_weight(X), rtol=1e-9)
    assert type(units.base()) is type(units)
    assert_array_equal(units.base().bounds, units.bounds)


@pytest.mark.parametrize("beta", [0.4, 2.5])
@pytest.mark.parametrize("name", SINGLE)
def test_weights_are_integrated(name, beta):
    """Raised to the power β, too: log-partitions and means by sums over states or quadrature."""
    units, fields = laws()[name], np.array([-1.0, 0.0, 2.0])
    tempered = units.tempered(beta)
    assert type(tempered) is type(units) and tempered.bounds == units.bounds
    X = units.sample(np.zeros((200, 4)), Stream(2))
    difference = tempered.log_weight(X) - beta * units.log_weight(X)
    assert_allclose(difference, difference[0], atol=1e-9)
    points, measure = measure_of(units)
    for j in range(4):
        log_weight = units.chosen(np.array([j])).log_weight(points[:, np.newaxis])
        totals = measure @ np.exp(log_weight[:, np.newaxis] + np.outer(points, fields))
        expected = units.log_partition(fields[:, np.newaxis])[:, j]
        assert_allclose(expected, np.log(totals), rtol=1e-9, atol=1e-12)
        log_weight = beta * log_weight
        weights = measure * np.exp(log_weight - log_weight.max() + np.outer(fields, points))
        totals, field = weights.sum(axis=1), fields[:, np.newaxis]
        mean, log_partition = tempered.mean(field)[:, j], tempered.log_partition(field)[:, j]
        assert_allclose(mean, weights @ points / totals, rtol=1e-8)
        expected = np.log(totals / totals[0])
        assert_allclose(log_partition - log_partition[0], expected, atol=1e-8)


@pytest.mark.parametrize("name", BOUNDED)
def test_domain(name):
    units = laws()[name]
    low, high = units.bounds
    values = np.array([low, high, (low + high) / 2, low - 1e-3, high + 1e-3, np.nan, np.inf])
    assert units.contains(values).tolist() == [True] * 3 + [False] * 4
    assert units.domain == f"values from {low:g} to {high:g}"


@pytest.mark.parametrize("name", BOUNDED)
def test_from_data(name):
    units = laws()[name]
    X = units.sample(np.zeros((4000, 4)), Stream(5)).astype(np.float32)
    X[:, 0] = X[0, 0]
    fitted = units.fitted_to(X)
    assert type(fitted) is type(units) and fitted.bounds == units.bounds
    assert {value.dtype for value in fitted.parameters().values()} == {np.dtype(np.float32)}
    assert_allclose(fitted.mean(0.0)[1:], X.mean(axis=0)[1:], atol=3e-3)
    assert all(np.isfinite(value).all() for value in fitted.parameters().values())
    assert_allclose(fitted.variance(0.0)[1:], X.var(axis=0)[1:], atol=3e-3)
    neutral = type(units).neutral(3, np.float32)
    assert len(neutral) == 3 and neutral.mean(0.0).dtype == np.float32


# Samples. A false alarm of any of these tests has a probability of 1e-6 or less.

N_DRAWS, ALARM = 100_000, 1e-8


@pytest.mark.parametrize(
    ("V", "rho", "dtype"),
    [(-80.0, None, np.float32), (-1.0, 0.3, np.float64), (0.0, None, np.float64),
     (0.0, 0.3, np.float32), (1.0, None, np.float32), (400.0, 0.3, np.float64)],
)  # fmt: skip
def test_samples_follow_the_law(V, rho, dtype):
    U, low, high = V * 0.4 + 0.5, -0.5, 1.5
    units = TruncatedGaussian(np.array([U], dtype), np.array([V], dtype), low, high)
    if rho is not None:
        share = np.array([rho], dtype)
        units = TruncatedGaussBernoulli(share, units.intercept, units.precision, low, high)
    field = np.full((N_DRAWS, 1), 0.7, dtype)
    draws = units.sample(field, Stream(7)).ravel().astype(float)
    mean, variance = units.moments(0.7)
    assert abs(draws.mean() - mean[0]) < 6 * np.sqrt(variance[0] / N_DRAWS)
    points = np.linspace(low, high, 100_001)
    log_density = (U + 0.7) * points - V * points**2 / 2
    density = np.exp(log_density - log_density.max())
    if rho is not None:
        # The field changes the weight of the slab by the ratio of its integrals.
        tilt = np.exp(0.7 * points)
        odds = rho / (1 - rho) * density.sum() / (density / tilt).sum()
        count = int((draws != 0).sum())
        assert stats.binomtest(count, N_DRAWS, odds / (1 + odds)).pvalue > ALARM
        draws = draws[draws != 0]
    below = np.concatenate([[0], np.cumsum(density[1:] + density[:-1])])
    assert stats.kstest(draws, lambda q: np.interp(q, points, below / below[-1])).pvalue > ALARM


@every_law
def test_samples_do_not_depend_on_blocks(name):
    units, field = laws()[name], np.random.default_rng(0).normal(0, 3, (90, 4))
    whole = Stream(3)
    X = units.sample(field, whole)
    rest = units.sample(field[37:], Stream(3), first_row=37)
    assert_array_equal(X, np.vstack([units.sample(field[:37], Stream(3)), rest]))
    assert not np.array_equal(units.sample(field, whole), X)


# Units of several numbers.


def one_hot(codes, widths):
    return np.hstack([np.eye(width)[code] for code, width in zip(codes.T, widths, strict=True)])


@both_types
@pytest.mark.parametrize("widths", [[1, 1], [4, 4, 4], [2, 1, 5, 5, 30, 9, 2, 300], [2] * 150])
def test_categorical_units_are_softmax(widths, dtype):
    rng, eps = np.random.default_rng(0), 8 * np.finfo(dtype).eps
    n = sum(widths)
    units = Categorical(widths, rng.normal(0, 2, n).astype(dtype))
    field = rng.normal(0, 3, (7, n)).astype(dtype)
    field[1] *= 100  # beyond what an exponential can hold
    field[2, 0], field[3, -1] = 1e30, -1e30
    y = units.intercept.astype(float) + field
    parts = np.split(y, np.cumsum(widths)[:-1], axis=1)
    noise = np.finfo(dtype).eps * np.abs(y).max(axis=1, keepdims=True)
    expected = np.hstack([softmax(part, axis=1) for part in parts])
    assert (np.abs(units.mean(field) - expected) <= eps + 4 * noise * expected).all()
    assert_allclose(units.mean(field) @ np.ones(n), len(widths), rtol=1e-5)
    expected = np.column_stack([logsumexp(part, axis=1) for part in parts])
    assert_allclose(units.log_partition(field), expected, rtol=4 * eps, atol=4 * eps)
    total = units.log_partition_sum(field)
    assert_allclose(total, expected.sum(axis=1), rtol=8 * eps, atol=eps * n)
    X = units.sample(field, Stream(0), first_row=3)
    u = Stream(0).uniform((7, len(widths)), dtype, first_row=3)
    for i, part in enumerate(parts):
        shares = np.exp(part - logsumexp(part, axis=1, keepdims=True))
        below = shares.cumsum(axis=1)[:, :-1]
        clear = (np.abs(below - u[:, [i]]) > 1e3 * eps).all(axis=1)
        chosen = (below <= u[:, [i]]).sum(axis=1)
        drawn = X[:, units.columns_of(i)]
        assert ((drawn == 0) | (drawn == 1)).all() and (drawn.sum(axis=1) == 1).all()
        assert_array_equal(drawn.argmax(axis=1)[clear], chosen[clear])


def test_categorical_units_from_data():
    dtype, storage = np.float32, sparse.csr_matrix
    codes = np.random.default_rng(0).integers(0, [2, 3, 1], (20, 3))
    codes[:, 1] = 2
    X = one_hot(codes, [2, 3, 1]).astype(dtype)
    units = Categorical.from_data(storage(X), [2, 3, 1])
    assert units.intercept.dtype == dtype
    assert_allclose(units.intercept[:2].sum(), 0, atol=1e-6)
    expected = (X.sum(axis=0) + [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 1]) / 21
    assert_allclose(units.mean(0.0), expected, rtol=1e-5)
    again = units.fitted_to(storage(X))
    assert_array_equal(again.intercept, units.intercept)
    two = Categorical.from_data(X[:, :2], 2)
    log_odds = Bernoulli.from_data(X[:, 1:2]).intercept
    assert_allclose(two.intercept[1] - two.intercept[0], log_odds, rtol=1e-5)
    assert len(Categorical.neutral(3, dtype, n_values=4)) == 12


def test_gaussian_units_from_data():
    dtype, storage = np.float32, sparse.csr_matrix
    X = np.random.default_rng(0).normal([1.0, -30.0, 0.0, 5.0], [1, 2, 0, 0], (400, 4))
    X = X.astype(dtype)
    units = Gaussian.from_data(storage(X))
    assert {value.dtype for value in units.parameters().values()} == {np.dtype(dtype)}
    assert_allclose(units.mean(0.0), X.mean(axis=0), rtol=1e-5)
    assert_allclose(units.variance(0.0)[:2], X[:, :2].var(axis=0), rtol=1e-3)
    assert_allclose(units.variance(0.0)[2:], [1e-6, 26e-6], rtol=1e-3)
    one = Gaussian.from_data(storage(X[:1]))
    assert np.isfinite(one.precision).all() and (one.precision > 0).all()
    small = np.array([[100, -20, 5, 0]], np.int8)  # their squares are no such numbers
    assert units.log_weight(small) == units.log_weight(small.astype(float))


def test_gaussian_precisions_stay_positive():
    units = Gaussian(np.zeros(3), np.ones(3))
    units.ascend({"intercept": np.ones(3), "precision": np.array([0.01, -1e9, 1e9])}, 0.1)
    assert_allclose(units.precision, [np.exp(0.001), 0.5, 2.0])
    assert_allclose(units.intercept, 0.1)
    units.parameters()["precision"] -= 5
    units.project()
    assert (units.precision == 1e-8).all()
    # Where there is no distribution, that of the least precision is taken.
    units = Gaussian(np.array([1.0]), np.array([2.0]))
    for precision in (-1.99, -2.0, -50.0):
        assert units.variance(0.0, precision)[0] == pytest.approx(50)
        assert np.isfinite(units.log_partition(3.0, precision)).all()
    assert units.variance(0.0, -1.5)[0] == pytest.approx(2)
    assert units.contains(np.array([1e300, np.inf, np.nan])).tolist() == [True, False, False]


def test_moments_of_a_fit_from_data_are_those_of_one_more_uniform_row():
    x = np.array([[0.2], [0.9], [0.4], [0.5]])
    mean, variance = TruncatedGaussian.from_data(x).moments(np.zeros((1, 1)))
    assert mean.item() == pytest.approx((x.sum() + 1 / 2) / 5, abs=1e-5)
    assert (variance + mean**2).item() == pytest.approx(((x**2).sum() + 1 / 3) / 5, abs=1e-5)
    # Of zeros, half a row more.
    spiked = TruncatedGaussBernoulli.from_data(np.array([[0.0], [0.5], [np.nan], [0.7]]))
    assert spiked.rho.item() == pytest.approx(2.5 / 4)


def test_a_type_is_faster_than_what_it_inherits_and_agrees_with_it():
    one, rng = Categorical(3, np.arange(6.0)), np.random.default_rng(0)
    field, two = rng.normal(size=(5, 6)), Stacked([one, one])
    for method, *args in [("nearest", field), ("mode", field), ("columns_of", 1),
                          ("state_shares", 1, np.eye(3)[[2, 0]])]:  # fmt: skip
        assert_array_equal(getattr(one, method)(*args), getattr(UnitType, method)(one, *args))
    unequal = Categorical([3, 1, 2])
    columns = [UnitType.columns_of(unequal, k) for k in range(3)]
    assert columns == [slice(0, 3), slice(3, 4), slice(4, 6)]
    weights = one.state_log_weights()
    assert_array_equal(UnitType.state_log_weights(one), weights - weights[:, :1])
    assert_array_equal(two.state_log_weights(), np.vstack([weights, weights]))
    assert one.chosen(np.array([], int)).unit_log_weights(np.empty((2, 0))).shape == (2, 0)


def test_units_side_by_side():
    units, field = laws()["Stacked"], np.random.default_rng(0).normal(size=(1, 4))
    mode = units.mode(field)
    rows = np.array([[x, *pair, mode[0, 3]] for x in (0, 1) for pair in ((0, 1), (1, 0))])
    assert_array_equal(rows[[(units.log_weight(rows) + rows @ field[0]).argmax()]], mode)
    assert mode[0, 3] == units.mean(field)[0, 3]
    assert_array_equal(units.nearest(mode), mode)
    bit, word, number = units.domain.split("; ")
    assert bit == "column 0: values from 0 to 1" and number == "column 3: finite values"
    assert word.startswith("columns 1 to 2: one 1 and otherwise 0 in the 2 columns of a unit")


@pytest.mark.parametrize(
    ("name", "n_arguments"),
    [("bounds", 0), ("parameters", 0), ("from_data", 1), ("neutral", 1), ("annealed", 2),
     ("log_weight", 1), ("log_partition", 1), ("moments", 1), ("gradients", 1)],
)  # fmt: skip
def test_what_a_type_of_a_user_need_not_define_is_missed_where_it_is_used(name, n_arguments):
    with pytest.raises(NotImplementedError):
        getattr(UnitType(), name)(*[0.5] * n_arguments)


def test_the_mode_is_by_log_weight_and_field():
    field = np.array([[-1.0, 0.5], [-0.1, -3.0]])
    assert_array_equal(Bernoulli(np.array([0.6, 1.0])).mode(field), [[0, 1], [1, 0]])


def test_a_slab_is_never_taken_for_the_spike():
    """Values of the slab that underflow are not zero."""
    for low, high in [(0.0, 1.0), (-1.0, 0.0)]:
        units = TruncatedGaussBernoulli(np.array([1 - 1e-7]), np.zeros(1), np.zeros(1), low, high)
        x = units.astype(np.float32).sample(np.zeros((200_000, 1), np.float32), Stream(0))
        assert (x != 0).mean() > 0.9999
        assert units.contains(x).all()


# Any numbers at all.

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@settings(max_examples=cases(200))
@given(
    b=numbers, a=numbers, low=st.floats(-10, 10), width=st.floats(1e-6, 100), u=st.floats(0, 1)
)  # fmt: skip
def test_moments_and_quantiles_of_any_tilted_law(b, a, low, width, u):
    high, quantile = low + width, np.empty(1)
    truncated_quantile(*np.array([[b], [a], [u]]), low, high, quantile)
    assert low <= quantile <= high
    log_partition, mean, variance = tilted_moments(b, a, low, high)
    assert np.isfinite(log_partition) and low <= mean <= high
    assert 0 <= variance <= width**2 / 4 * (1 + 1e-9)
    # The mean grows with the field.
    later = tilted_moments(b + abs(b) * 1e-3 + 1e-3, a, low, high)[1]
    assert later >= mean - 1e-9 * min(width, abs(mean - low) + abs(high - mean))


@settings(max_examples=cases(60))
@given(b=numbers, a=numbers, rho=st.floats(1e-6, 1 - 1e-6), low=st.floats(-10, 0))
def test_moments_of_any_law_with_a_spike(b, a, rho, low):
    units = TruncatedGaussBernoulli(np.array([rho]), np.zeros(1), np.zeros(1), low, 1.0)
    mean, variance = units.moments(b, a)
    assert np.isfinite(units.log_partition(b, a)).all()
    assert low <= mean[0] <= 1 and 0 <= variance[0] <= (1 - low) ** 2 / 4 * (1 + 1e-9)


def test_a_step_goes_along_the_slopes_and_stays_legal():
    """ρ moves in its log-odds: near the margins its slope is of the order of a million."""
    units = TruncatedGaussBernoulli(np.array([1e-4, 0.5, 0.9999]), np.zeros(3), np.ones(3))
    before = logit(units.rho)
    slopes = {"intercept": np.ones(3), "precision": -np.ones(3)}
    slopes["rho"] = np.array([1.0, -1.0, -1.0]) / (units.rho * (1 - units.rho))
    units.ascend(slopes, 0.1)
    assert_allclose(units.intercept, 0.1)
    assert_allclose(units.precision, 0.9)
    assert_allclose(logit(units.rho) - before, [0.1, -0.1, -0.1], rtol=1e-9)
    units.ascend({**slopes, "rho": np.array([1e30, 1e30, -1e30])}, 1.0)
    assert ((units.rho > 0) & (units.rho < 1)).all()
    units.parameters()["rho"] += [0.7, 0.7, -0.7]
    units.project()
    assert ((units.rho > 0) & (units.rho < 1)).all()
    plain = Bernoulli(np.zeros(2))
    plain.ascend({"intercept": np.array([1.0, -2.0])}, 0.5)
    assert_array_equal(plain.intercept, [0.5, -1.0])
