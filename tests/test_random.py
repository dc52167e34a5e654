"""The random numbers of the kernels: that they are what the header says, and how random they are.

What they are is one algorithm, known answers of which are here. How random its numbers are is for
`make test-slow`. The seeds are fixed, so the tests are deterministic. Were they not, each call of
`accept` would raise a false alarm with probability 1e-6 at most, and all of this file with less
than 1e-4.
"""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import chi2, kstest, norm, poisson

from private import Stream
from private import normal as fill_normal
from private import uniform as fill

ALARM, N_WORDS = 1e-6, 2**20
COUNTERS = st.tuples(*[st.integers(0, 2**64 - 1)] * 3)


def uniform(shape, seed, step, first_row=0, dtype=np.float64):
    out = np.empty(shape, dtype)
    fill(out, seed, step, first_row)
    return out


def mix64(z):
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def rounds(x, steps):
    for shift, factor in steps:
        x = x ^ (x >> np.uint32(shift))
        x = x if factor is None else x * np.uint32(factor)
    return x


def words(seed, step, row, column):
    """What `_random.h` says, by NumPy, for arrays of any counters.

    The upper 53 bits are those of float64, and the rest are those that it leaves out.
    """
    arrays = (np.asarray(counter, np.uint64) for counter in (seed, step, row))
    seed, step, row, column = np.broadcast_arrays(*arrays, np.asarray(column, np.uint32))
    key = mix64(mix64(mix64(seed) ^ step) ^ row)
    parts = [key, key >> np.uint64(32), (key * np.uint64(0xD1342543DE82EF95)) >> np.uint64(32)]
    first, second, third = (part.astype(np.uint32) for part in parts)
    begin = rounds(column * np.uint32(0x9E3779B9) + first, [(17, 0xED5AD4BB), (11, None)])
    upper = rounds((begin + second) * np.uint32(0xAC4C1B51), [(15, 0x31848BAB), (14, None)])
    lower = rounds((begin ^ third) * np.uint32(0x21F0AAAD), [(15, 0xD35A2D97), (15, None)])
    upper, lower = upper.astype(np.uint64), lower.astype(np.uint64)
    rest = upper & np.uint64(31)
    return (upper >> np.uint64(5)) << np.uint64(37) | lower << np.uint64(5) | rest


@functools.cache
def stream(part, n):
    """The words of n counters of which one part runs, from 0, and the others stay."""
    counter = dict(seed=11, step=3, row=5, column=7)
    counter[part] = np.arange(n)
    return words(**counter)


@pytest.fixture(params=["column", "row", "step", "seed"])
def word(request):
    """The words along one part of the counter."""
    return stream(request.param, N_WORDS)


def fractions(word):
    return (word >> np.uint64(11)) * 2.0**-53


def lower(word, shift, n_bits):
    """The last bits of each word that is shifted to the right; NumPy 1 counts signed numbers."""
    return ((word >> np.uint64(shift)) & np.uint64(2**n_bits - 1)).astype(np.int64)


def bits_of(word, n_bits=64):
    """Those of each word, the upper first."""
    return np.unpackbits(word.astype(">u8").view(np.uint8).reshape(*word.shape, 8), axis=-1)[
        ..., :n_bits
    ]


def accept(p_values):
    """That the smallest of some p-values does not alarm."""
    p_values = np.asarray(p_values)
    assert p_values.min() * p_values.size > ALARM, p_values.min()


def normal(z):
    return 2 * norm.sf(np.abs(z))


def chi_square(counts, expected, lost=1):
    """Two-sided: a fit that is too good is refused, too."""
    counts, expected = np.ravel(counts), np.ravel(expected)
    statistic = ((counts - expected) ** 2 / expected).sum()
    df = counts.size - lost
    return min(2 * min(chi2.sf(statistic, df), chi2.cdf(statistic, df)), 1)


def poisson_test(count, mean):
    return min(2 * min(poisson.sf(count - 1, mean), poisson.cdf(count, mean)), 1)


@pytest.mark.parametrize(
    ("seed", "step", "row", "column", "single", "double"),
    [
        (0, 0, 0, 0, "0x1.8dbce0p-5", "0x1.8dbcf289ef660p-5"),
        (1, 2, 3, 4, "0x1.38277cp-1", "0x1.38277c59e43fap-1"),
        (2**63 + 1, 2**40, 2**33, 783, "0x1.bdc770p-3", "0x1.bdc7719ff0e74p-3"),
        (2**64 - 1, 2**64 - 1, 2**64 - 1, 1000, "0x1.93cb20p-2", "0x1.93cb21e2698e8p-2"),
    ],
)
def test_known_answers(seed, step, row, column, single, double):
    for dtype, answer in [(np.float32, single), (np.float64, double)]:
        number = uniform((1, column + 1), seed, step, row, dtype)[0, column]
        assert float(number).hex() == float.fromhex(answer).hex()


@settings(max_examples=50, deadline=None)
@given(COUNTERS, st.integers(1, 5), st.integers(1, 200))
def test_the_kernel_equals_the_lines_of_numpy(counter, n_rows, n_columns):
    seed, step, row = counter
    rows = (np.uint64(row) + np.arange(n_rows, dtype=np.uint64))[:, None]
    word = words(seed, step, rows, np.arange(n_columns))
    for dtype, n_bits in [(np.float32, 24), (np.float64, 53)]:
        stream = Stream(seed)
        assert stream.take(step) == 0
        u = stream.uniform((n_rows, n_columns), dtype, row)
        assert stream.step == step + 1
        expected = np.maximum((word >> np.uint64(64 - n_bits)).astype(float), 0.5) * 2.0**-n_bits
        assert_array_equal(u, expected)


def test_neither_0_nor_1():
    """The least and the largest of float32, whose counters were searched for."""
    assert uniform((1, 64), 0, 0, 38157, np.float32)[0, 8] == 2.0**-25
    assert uniform((1, 64), 0, 0, 975052, np.float32)[0, 62] == 1 - 2.0**-24
    assert 0 < uniform((1, 64), 0, 0, 38157)[0, 8] < 2.0**-24
    assert 1 - 2.0**-24 <= uniform((1, 64), 0, 0, 975052)[0, 62] < 1


# Those of the last two lie in the far tails: their counters were searched for, too.
@pytest.mark.parametrize("row, n_columns", [(0, 1), (5, 1000), (99399238, 600), (280267061, 222)])
def test_normal_numbers_are_quantiles(row, n_columns):
    expected = ndtri(uniform((3, n_columns), 0, 0, row))
    if row > 5:
        assert np.abs(expected[0, -1]) > 6.6
    for dtype, rtol in [(np.float64, 1e-14), (np.float32, 1e-7)]:
        z = np.empty((3, n_columns), dtype)
        fill_normal(z, 0, 0, row)
        assert_allclose(z, expected, rtol=rtol)
        stream = Stream(0)
        assert_array_equal(stream.normal((3, n_columns), dtype, row), z)
        assert stream.step == 1


@pytest.mark.slow
def test_uniformity(word):
    """Kolmogorov–Smirnov; frequencies of neighbouring bits; the largest of 8."""
    u = fractions(word)
    accept([kstest(part, "uniform").pvalue for part in np.array_split(u, 16)])
    n_bits = word.size.bit_length() - 5  # 16 numbers in each cell
    accept(
        [
            chi_square(np.bincount(lower(word, shift, n_bits)), np.full(2**n_bits, 16.0))
            for shift in (64 - n_bits, 40, 32, 24, 16, 11)
        ]
    )
    accept([kstest(u.reshape(-1, 8).max(axis=1) ** 8, "uniform").pvalue])


@pytest.mark.slow
def test_every_bit_is_fair_and_independent_of_its_neighbours(word):
    """Each alone, with each other one, and with each one of the next number."""
    bits = bits_of(word[: word.size // 8]).astype(np.float32) - 0.5
    n = len(bits)
    accept(normal(bits.sum(axis=0, dtype=float) * 2 / np.sqrt(n)))
    same = (bits.T @ bits)[np.triu_indices(64, 1)]
    accept(normal(same * 4 / np.sqrt(n)))
    accept(normal(bits[1:].T @ bits[:-1] * 4 / np.sqrt(n - 1)))


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1, 2, 3])
@pytest.mark.parametrize("small", [False, True])
def test_avalanche(part, small):
    """A bit of the counter flips each bit of the number half of the time, small ones too."""
    n, n_bits = N_WORDS // 64, 32 if part == 3 else 64
    rng = np.random.default_rng(0)
    counter = [rng.integers(0, 2**bits - 1, n, np.uint64, True) for bits in (64, 64, 64, 32)]
    if small:
        counter = [np.full(n, value, np.uint64) for value in (1, 2, 3, 4)]
        counter[part] = np.arange(n, dtype=np.uint64)
    before = words(*counter)
    flips = np.empty((n_bits, 64))
    for bit in range(n_bits):
        other = list(counter)
        other[part] = other[part] ^ np.uint64(1 << bit)
        flips[bit] = bits_of(before ^ words(*other)).sum(axis=0)
    # A pair of counters that differ by a low bit is met twice where all of them are there.
    n_pairs = np.where(small & (2 ** np.arange(n_bits) < n), n / 2, n)[:, None]
    z = (flips / n - 0.5) * 2 * np.sqrt(n_pairs)
    accept(normal(z))
    statistic = (z**2).sum()
    accept([min(2 * min(chi2.sf(statistic, z.size), chi2.cdf(statistic, z.size)), 1)])


@pytest.mark.slow
def test_birthday_spacings(word):
    """Marsaglia's: equal spacings among 2^12 birthdays in a year of 2^32 days, many times."""
    p_values = []
    for shift in (32, 22, 11):
        days = np.sort(lower(word, shift, 32).reshape(-1, 2**12), axis=1)
        spacings = np.sort(np.diff(days, axis=1), axis=1)
        equal = (np.diff(spacings, axis=1) == 0).sum()
        p_values.append(poisson_test(equal, len(days) * 2.0**36 / 2.0**34))
    accept(p_values)
