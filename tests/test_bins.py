"""Numbers in bins: which bins, and the distribution inside of each, which sums to 1."""

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import kstest

from private import Bins

RNG = np.random.default_rng(0)
NUMBERS = {
    "normal": RNG.normal(size=300),
    "skewed": np.exp(RNG.normal(size=800)),
    "ages": RNG.integers(18, 90, 500).astype(float),
    "counts": RNG.poisson(2, 200).astype(float),
    "many zeros": np.where(RNG.random(400) < 0.4, 0, RNG.gamma(2, 3, 400)),
    "a heap": np.where(RNG.random(500) < 0.6, 40.0, RNG.integers(1, 80, 500)),
    "temperatures": RNG.integers(-50, 50, 300).astype(float),
    "hundreds": np.exp(RNG.normal(3, 1, 400)).round() * 100,
    "two": np.array([0.5, 1.5] * 10),
    "one": np.full(20, 0.5),
    "a single number": np.array([3.2]),
    "neighbours": 1 + np.arange(100) * 2.0**-52,
    "far away": RNG.normal(size=50) * 1e300,
    "tiny": RNG.normal(size=50) * 1e-300,
    "half stars": np.repeat(np.arange(2, 11) / 2, [*[20] * 8, 14]),
    "dates": 1.7e15 + 8.64e10 * RNG.integers(0, 1000, 200),
}
every = pytest.mark.parametrize("name", NUMBERS)


def whole_range(bins, reach):
    """All whole numbers around those of the training."""
    return np.arange(np.floor(bins.values.min()) - reach, bins.values.max() + reach)


@pytest.mark.parametrize("name", ["normal", "skewed", "many zeros", "two", "one", "half stars"])
def test_the_densities_of_each_bin_integrate_to_one(name):
    bins = Bins.learn(NUMBERS[name])
    total = np.zeros(bins.n_bins)

    def density(x):
        return np.exp(bins.log_density(np.array([x])))[0]

    for low, high in zip(bins.breaks[:-1], bins.breaks[1:], strict=True):
        if low == high:
            continue
        middle = np.array([low / 2 + high / 2])
        total[bins.encode(middle).astype(int)] += np.exp(bins.log_density(middle)) * (high - low)
    for end, direction in ((0, -1), (-1, 1)):

        def beyond(distance, end=end, direction=direction):
            return density(bins.breaks[end] + direction * distance)

        total[end] += quad(beyond, 1e-12, np.inf, epsabs=1e-10)[0]
    for atom in bins.atoms:
        total[int(bins.encode(np.array([atom]))[0])] += density(atom)
    assert_allclose(total, 1, atol=1e-8)


@pytest.mark.parametrize("name", ["ages", "counts", "a heap", "temperatures"])
def test_the_probabilities_of_whole_numbers_of_each_bin_sum_to_one(name):
    bins = Bins.learn(NUMBERS[name])
    scale = bins.scales.max()
    every_number = whole_range(bins, 10**6)
    p = np.exp(bins.log_density(every_number))
    total = np.bincount(bins.encode(every_number).astype(int), p)
    assert_allclose(total, 1, atol=(scale / 10**6) ** 2 + 1e-10)  # what lies beyond


@every
def test_codes_and_samples(name):
    numbers = NUMBERS[name]
    bins = Bins.learn(numbers)
    codes = bins.encode(np.sort(numbers))
    assert (np.diff(codes) >= 0).all() and set(codes) == set(range(bins.n_bins))
    assert_array_equal(bins.encode(bins.typical), np.arange(bins.n_bins))
    assert len(set(bins.labels())) == bins.n_bins
    for code in range(bins.n_bins):
        drawn = bins.sample(np.full(100, code), RNG.random(100))
        assert (bins.encode(drawn) == code).all()
        if bins.is_rounded:
            assert set(drawn) <= set(numbers)
    assert np.isnan(bins.encode(np.array([np.nan]))) and bins.log_density(np.array([np.nan])) == 0
    assert (bins.means >= numbers.min()).all() and (bins.means <= numbers.max()).all()
    share = np.bincount(bins.encode(numbers).astype(int)) / len(numbers)
    assert_allclose(share @ (bins.means / np.abs(numbers).max()),
                    np.mean(numbers / np.abs(numbers).max()), rtol=1e-10, atol=1e-15)  # fmt: skip


@every
def test_every_number_has_a_density(name):
    bins, strange = Bins.learn(NUMBERS[name]), np.array([-1e308, -5.5, 0.0, 1 / 3, 1e12, 1e308])
    assert np.isfinite(bins.log_density(strange)).all()
    assert (bins.encode(strange) >= 0).all() and (bins.encode(strange) < bins.n_bins).all()


@given(st.lists(st.integers(0, 3) | st.floats(-1e6, 1e6), min_size=1, max_size=60), st.data())
@settings(max_examples=cases(60))
def test_weights_are_repetitions(numbers, data):
    numbers = np.array(numbers, dtype=np.float64)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(numbers),
                                          max_size=len(numbers))))  # fmt: skip
    if not weights.any():
        weights[0] = 1
    one = Bins.learn(numbers, weights.astype(float))
    other = Bins.learn(np.repeat(numbers, weights))
    for mine, yours in zip(one, other, strict=True):
        assert_allclose(mine, yours, rtol=1e-9)
    assert np.isfinite(one.log_density(numbers)).all()
    inside = numbers[weights > 0]
    assert_array_equal(one.encode(one.typical), np.arange(one.n_bins))
    assert (np.diff(one.encode(np.sort(inside))) >= 0).all()


@pytest.mark.parametrize("error", [1e6, -1e6])
@pytest.mark.parametrize("digits", [0, 1])
def test_typing_errors_are_in_the_tail_and_leave_the_rest_alone(error, digits):
    x = np.random.default_rng(0).normal(50, 10, size=500).round(digits)
    right, wrong = Bins.learn(x), Bins.learn(np.append(x, [error, 2 * error]))
    others = x[np.abs(x - 50) < 15]
    assert_allclose(wrong.log_density(others), right.log_density(others), atol=1.0)
    assert wrong.log_density(np.array([error]))[0] < wrong.log_density(x).min() - 10
    assert np.abs(wrong.means).max() < 100


def test_atoms_equal_bins_and_tails():
    # Negative numbers in a column without any have much less than small ones.
    negative, small = Bins.learn(NUMBERS["ages"]).log_density(np.array([-1.0, 1.0]))
    assert negative < small - 4
    numbers = np.append(np.zeros(100), np.linspace(1, 2, 100))
    bins = Bins.learn(numbers, most=6)
    assert bins.atoms.tolist() == [0.0] and bins.labels()[0] == "0"
    assert_array_equal(np.bincount(bins.encode(numbers).astype(int)), [100, 20, 20, 20, 20, 20])


@pytest.mark.parametrize("most", [2, 5, 32])
def test_atoms_do_not_depend_on_the_number_of_bins(most):
    """So that likelihoods of all models have the same measure."""
    numbers = np.where(RNG.random(900) < 0.2, 40.0, RNG.normal(size=900))
    assert Bins.learn(numbers, most=most).atoms.tolist() == [40.0]
    few = RNG.choice([0.5, 1.5, 2.5, 7.25], 900)
    assert Bins.learn(few, most=most).atoms.tolist() == [0.5, 1.5, 2.5, 7.25]


def test_samples_have_the_distribution_of_the_column():
    """A draw of a bin and a number of it is one of the column; false alarms: 1 in 10,000."""
    numbers = np.exp(np.random.default_rng(1).normal(size=5000))
    bins, rng = Bins.learn(numbers), np.random.default_rng(2)
    codes = rng.permutation(bins.encode(numbers).astype(int))[:1000]
    drawn = bins.sample(codes, rng.random(1000))
    assert kstest(drawn, numbers).pvalue > 1e-4


def test_a_few_numbers_of_many_cells_have_a_bin_each():
    """Twelve prices do not share bins where each has twenty cells; densities stay comparable."""
    prices = np.array([1, 2, 2.5, 4, 8, 15.96, 19.6, 20, 22, 50, 99.9, 248.75])
    scores = []
    for n_each in (19, 20):
        x = np.repeat(prices, n_each)
        bins, most = Bins.learn(x), Bins.learn(x, most=8)
        assert (bins.n_bins == len(prices)) == (n_each == 20) and most.n_bins <= 8
        assert not len(bins.atoms)
        share = np.bincount(bins.encode(x).astype(int)) / len(x)
        scores.append((np.log(share)[bins.encode(x).astype(int)] + bins.log_density(x)).mean())
    assert abs(scores[1] - scores[0]) < 0.5


def test_held_out_density_is_near_the_truth():
    """Of a normal distribution, whose entropy is known: within .1 nats at 1,000 numbers."""
    rng = np.random.default_rng(3)
    train, test = rng.normal(size=1000), rng.normal(size=20_000)
    bins = Bins.learn(train)
    share = np.bincount(bins.encode(train).astype(int)) / len(train)
    score = np.log(share)[bins.encode(test).astype(int)] + bins.log_density(test)
    truth = -0.5 * np.log(2 * np.pi) - 0.5
    assert truth - 0.1 < score.mean() < truth + 0.02  # its error is .007
