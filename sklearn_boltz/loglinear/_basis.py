"""The ±1-valued basis of the full-span log-linear model and its transforms.

A joint state x and the index y of a basis function have the same shape, a value in
``range(n_values[i])`` for each variable i, and so the same code: their place in a table of
`size` entries. In the table the variables with an indicator basis come first (they vary
slowest), then those with a Hadamard basis, whose axes together are one long Hadamard axis.
"""

import math

import numpy as np

from sklearn_boltz.loglinear._hadamard import transform_in_threads

# The least probability that is told from 0.
ROUNDED = 1e-9


class StateSpace:
    """The joint states of discrete variables, and the ±1 basis on them.

    Parameters
    ----------
    n_values : sequence of int
        Number of values of each variable, at least 1.

    Attributes
    ----------
    n_values : ndarray of int64 of shape (n_features,)
    size : int
        Number of joint states.
    layout : list of int
        The variables from the slowest to the fastest.
    strides : ndarray of int64 of shape (n_features,)
        Weight of each variable in the code of a state.
    indicators : list of int
        The variables with an indicator basis, in the order of the layout.
    n_lead, n_fast : int
        The table has the shape (n_lead, n_fast): indicator axes, Hadamard axes.
    """

    def __init__(self, n_values):
        self.n_values = np.asarray(n_values, dtype=np.int64)
        values = self.n_values.tolist()
        self.size = math.prod(values)
        kinds = [], []
        for i, m in enumerate(values):
            kinds[m & (m - 1) == 0].append(i)
        self.indicators, hadamard = kinds
        self.layout = self.indicators + hadamard
        self.strides = np.ones(len(values), dtype=np.int64)
        # In Python's integers: the product may be far above what a table could hold.
        stride = 1
        for i in reversed(self.layout):
            self.strides[i] = min(stride, 2**62)
            stride *= values[i]
        self.n_lead = math.prod([values[i] for i in self.indicators])
        self.n_fast = self.size // self.n_lead

    def encode(self, states):
        """Codes of states, (n, n_features) -> (n,) int64."""
        # 2^53 exact integers in a float64 product, which BLAS does; sizes end long before.
        if states.dtype.kind == "f":
            return (states @ self.strides.astype(np.float64)).astype(np.int64)
        codes = np.zeros(states.shape[0], dtype=np.int64)
        for i, stride in enumerate(self.strides):
            # The type of small integers would be kept by NumPy 1.
            codes += np.multiply(states[:, i], stride, dtype=np.int64)
        return codes

    def decode(self, codes):
        """States of codes, (n,) -> (n, n_features) int64."""
        return np.asarray(codes)[:, None] // self.strides % self.n_values

    def shape(self, variables):
        """Number of values of some variables, as a tuple."""
        return tuple(self.n_values[variables].tolist())

    def signs(self, states, basis):
        """Φ_y(x), int8 (n, k), for n states x and k basis indices y."""
        signs = np.ones((len(states), len(basis)), dtype=np.int8)
        for i in range(len(self.n_values)):
            terms = np.flatnonzero(basis[:, i])
            if len(terms):
                x, few = states[:, i], self.n_values[i] <= len(states)
                values, y = (np.arange(self.n_values[i]) if few else x)[:, None], basis[terms, i]
                odd = values != y if i in self.indicators else parity(values & y)
                local = 1 - 2 * odd.astype(np.int8)
                signs[:, terms] *= local[x] if few else local
        return signs

    def synthesize(self, table, n_threads=1):
        """In place, coefficients θ_y -> Σ_y θ_y Φ_y(x) for all x, along the last axis."""
        for axis in self._indicator_axes(table):
            # l(x) = l(0) + 2 θ_x for x >= 1, with l(0) = θ_0 - Σ θ_j
            axis[:, 0] -= axis[:, 1:].sum(axis=1)
            axis[:, 1:] *= 2
            axis[:, 1:] += axis[:, :1]
        self._transform_fast(table, n_threads)

    def analyze(self, table, n_threads=1):
        """In place, p(x) -> Σ_x p(x) Φ_y(x) for all y, along the last axis."""
        for axis in self._indicator_axes(table):
            total = axis.sum(axis=1)
            axis[:, 1:] *= 2
            axis[:, 1:] -= total[:, None]
            axis[:, 0] = total
        self._transform_fast(table, n_threads)

    def _indicator_axes(self, table):
        """Views (slower, n_values, faster) of a table, one for each indicator axis."""
        for i in self.indicators:
            yield table.reshape(-1, self.n_values[i], self.strides[i])

    def _transform_fast(self, table, n_threads):
        n_rows = table.size // self.n_fast
        transform_in_threads(table.reshape(-1), n_rows, self.n_fast, 1, n_threads)

    def uniform_moments(self):
        """E[Φ_y] under the uniform distribution, (n_lead,), for the y whose Hadamard part is 0.

        Where y touches a Hadamard axis it is 0.
        """
        moments = np.ones(1)
        for i in self.indicators:
            m = self.n_values[i]
            moments = np.kron(moments, np.append(1.0, np.full(m - 1, 2 / m - 1)))
        return moments

    def term_lengths(self, variables, n_features):
        """Σ ln(n (m_i - 1)) over the non-zero y_i, and their numbers, for all values of variables.

        The former is the description length of the position of a term, eq. 2.4 of the paper, with n
        variables in all; the latter are uint8. The variables are in the order of the layout.
        """
        lengths, orders = np.zeros(1), np.zeros(1, dtype=np.uint8)
        for i in variables:
            nonzero = np.arange(self.n_values[i]) > 0
            each = nonzero * math.log(n_features * max(self.n_values[i] - 1, 1))
            lengths = np.add.outer(lengths, each).ravel()
            orders = np.add.outer(orders, nonzero.astype(np.uint8)).ravel()
        return lengths, orders

    def term_names(self, basis, names, labels=None):
        """Names of terms, from the names of the variables and of their values, if these have any.

        A binary variable is named by itself; else ``name=j`` is the indicator of the value j,
        and ``name&j`` the parity of the bits that the value has in common with j.
        """

        def factors(y):
            for i in np.flatnonzero(y):
                if self.n_values[i] == 2:
                    yield str(names[i])
                elif i in self.indicators:
                    yield f"{names[i]}={y[i] if labels is None else labels[i][y[i]]}"
                else:
                    yield f"{names[i]}&{y[i]}"

        return ["*".join(factors(y)) for y in basis]

    def split_layout(self, limit):
        """Cut the layout in two where the faster part has at most `limit` states, or is one."""
        cut, n_inner = len(self.layout), 1
        while cut > 0:
            n_inner *= int(self.n_values[self.layout[cut - 1]])
            if n_inner > limit and cut < len(self.layout):
                break
            cut -= 1
        return self.layout[:cut], self.layout[cut:]

    def product_moments(self, table, left, right):
        """E[Φ_y Φ_y'] for codes of y and of y', (n_left, n_right), from the table of all E[Φ_y].

        On a Hadamard axis φ_j φ_k = φ_{j xor k}. On an indicator axis φ_j² = 1 and, for j, k >= 1
        and different, φ_j φ_k = -1 - φ_j - φ_k: three terms for one.
        """
        if not self.indicators:
            return table[np.bitwise_xor.outer(left, right)]
        shape = len(left), len(right)
        left, right = np.repeat(left, shape[1]), np.tile(right, shape[0])
        codes = (left % self.n_fast) ^ (right % self.n_fast)
        pairs, weights = np.arange(len(codes)), np.ones(len(codes))
        for i in self.indicators:
            stride, m = self.strides[i], self.n_values[i]
            j, k = left[pairs] // stride % m, right[pairs] // stride % m
            conflict = (j > 0) & (k > 0) & (j != k)
            codes = codes + np.where(conflict | (j == k), 0, j + k) * stride
            weights = np.where(conflict, -weights, weights)
            more = np.flatnonzero(conflict)
            second, third = codes[more] + j[more] * stride, codes[more] + k[more] * stride
            codes = np.concatenate([codes, second, third])
            weights = np.concatenate([weights, weights[more], weights[more]])
            pairs = np.concatenate([pairs, pairs[more], pairs[more]])
        moments = np.bincount(pairs, weights * table[codes], minlength=len(left))
        return moments.reshape(shape)


def multiply_local(moments, axis, k):
    """In place, E[φ_j f] -> E[φ_j φ_k f] for all j along an indicator axis."""
    along = moments.swapaxes(axis, 0)
    first, kth = along[0].copy(), along[k].copy()
    np.negative(along, out=along)
    along -= first + kth
    along[0], along[k] = kth, first


def distribution_of(moments):
    """The distribution of one variable with some E[φ_j], (m,), and the θ_j that give it."""
    m = len(moments)
    space, p = StateSpace([m]), moments.copy()
    if space.indicators:
        p[1:] = (1 + p[1:]) / 2
        p[0] -= p[1:].sum()
    else:
        space.synthesize(p)
        p /= m
    # A table of float32 may have rounded a rare value away.
    theta = np.log(np.maximum(p, ROUNDED, out=p))
    if space.indicators:
        return p, (theta - theta[0]) / 2
    space.analyze(theta)
    return p, theta / m


def parity(x):
    """Whether the number of one bits is odd, for non-negative int64."""
    for shift in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> shift)
    return (x & 1).astype(bool)
