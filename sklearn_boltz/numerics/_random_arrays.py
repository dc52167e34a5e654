"""The numbers of the counter-based generator by integer arithmetic on arrays of any library.

The same functions as in ``_random.h``, which says what they are, with the same bits. Not all
libraries have unsigned integers that can be multiplied, so these are signed ones: products wrap
around to the same bits, and a shift to the right is followed by a mask.
"""

from copy import copy

from sklearn_boltz.numerics._arrays import at_least, converted, device_of, namespace_of

MASK64 = 2**64 - 1
# Steps whose keys are made at once: launching a kernel takes longer than the work for one.
KEPT_STEPS = 1024


def _signed(number, bits):
    """An unsigned number as the signed one of the same bits."""
    return number - 2**bits if number >> (bits - 1) else number


GOLDEN64 = 0x9E3779B97F4A7C15
MIX64 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
LOWER = _signed(0xD1342543DE82EF95, 64)
GOLDEN32, BEGIN = _signed(0x9E3779B9, 32), _signed(0xED5AD4BB, 32)
UPPER = _signed(0xAC4C1B51, 32), _signed(0x31848BAB, 32)
LOWEST = _signed(0x21F0AAAD, 32), _signed(0xD35A2D97, 32)


def _mix(z):
    """`random_mix64` of a Python integer."""
    z = (z + GOLDEN64) & MASK64
    z = ((z ^ (z >> 30)) * MIX64[0]) & MASK64
    z = ((z ^ (z >> 27)) * MIX64[1]) & MASK64
    return z ^ (z >> 31)


def _shifted(x, n, bits):
    """x >> n of unsigned integers."""
    return (x >> n) & ((1 << (bits - n)) - 1)


def _mixed(z):
    """`random_mix64` of an array of int64."""
    z = z + _signed(GOLDEN64, 64)
    z = (z ^ _shifted(z, 30, 64)) * _signed(MIX64[0], 64)
    z = (z ^ _shifted(z, 27, 64)) * _signed(MIX64[1], 64)
    return z ^ _shifted(z, 31, 64)


class Numbers:
    """The random numbers of a seed, in the place of some arrays.

    Parameters
    ----------
    seed : int
    reference : array
        Says of which library the numbers are and where.
    """

    def __init__(self, seed, reference):
        self._xp, self._device = namespace_of(reference), device_of(reference)
        self._seed, self._first, self._keys = _signed(_mix(seed), 64), None, None
        self._places = {}

    def parts(self, step, shape, first_row=0):
        """State from which `uniform` makes the numbers of a step: key, rows and columns."""
        return self.keys(step, 1), self._rows(first_row, shape[0]), self._columns(shape)

    def keys(self, step, n_steps):
        """The keys of some steps, at most `KEPT_STEPS`, as an array of int64."""
        first = self._first
        if first is None or step < first or step + n_steps > first + KEPT_STEPS:
            self._first = first = step
            self._keys = _mixed(self._counted(step, KEPT_STEPS) ^ self._seed)
        return self._keys[step - first : step - first + n_steps]

    def with_keys(self, step, keys):
        """The numbers with other keys of the steps from one on, an array that may change."""
        other = copy(self)
        other._first, other._keys = step, keys
        return other

    def _rows(self, first, n_rows):
        return self._kept(("rows", first, n_rows), lambda: self._counted(first, n_rows)[:, None])

    def _columns(self, shape):
        """Numbers of columns, multiplied as `random_begin` does."""

        def make():
            xp = self._xp
            return xp.arange(shape[1], dtype=xp.int32, device=self._device) * GOLDEN32

        return self._kept(("columns", shape[1]), make)

    def _kept(self, name, make):
        if name not in self._places:
            self._places[name] = make()
        return self._places[name]

    def _counted(self, start, n):
        """start, start + 1, ... as an array of int64."""
        xp = self._xp
        return xp.arange(start, start + n, dtype=xp.int64, device=self._device)


def uniform(key, rows, columns, double, xp):
    """The numbers in (0, 1) of a step: `random_uniform_f64` if `double`, else `random_uniform_f32`.

    `key` is an int64 array of shape (1,), `rows` one of shape (n_rows, 1), and `columns` int32.
    """
    key = _mixed(rows ^ key)
    begin = columns + _half(key, xp)
    begin = (begin ^ _shifted(begin, 17, 32)) * BEGIN
    begin = begin ^ _shifted(begin, 11, 32)
    upper = (begin + _half(_shifted(key, 32, 64), xp)) * UPPER[0]
    upper = (upper ^ _shifted(upper, 15, 32)) * UPPER[1]
    upper = upper ^ _shifted(upper, 14, 32)
    if not double:
        return at_least(converted(_shifted(upper, 8, 32), xp.float32, xp), 0.5, xp) * 2.0**-24
    lower = (begin ^ _half(_shifted(key * LOWER, 32, 64), xp)) * LOWEST[0]
    lower = (lower ^ _shifted(lower, 15, 32)) * LOWEST[1]
    lower = lower ^ _shifted(lower, 15, 32)
    n = converted(_shifted(upper, 5, 32), xp.float64, xp) * 2.0**26
    return at_least(n + converted(_shifted(lower, 6, 32), xp.float64, xp), 0.5, xp) * 2.0**-53


def _half(key, xp):
    """The lower 32 bits of int64 as int32, whose conversion must not overflow."""
    return converted(((key & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000, xp.int32, xp)
