"""The log pseudo-likelihood of a fully visible Boltzmann machine, with its derivatives.

The parameters are one vector θ = (b_1, ..., b_d, m_12, m_13, ..., m_{d-1,d}), or the pair of
a symmetric matrix `coupling` with zero diagonal and a vector `intercept`. Data are stored
variable by variable, shape (d, n), as distinct rows with weights; or they come in batches. The
objective is a sum over rows, and so are its derivatives: each value is the sum, over one pass, of
the values of the batches.
"""

from functools import partial, reduce
from itertools import product
from operator import add, methodcaller
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.training._bslm import N_LANES, evaluate_fields
from sklearn_boltz.numerics._threads import slices_of_rows

# Entries of a temporary array.
CHUNK = 2**18
# The same where it should stay in the cache.
CACHED = 2**17
# Entries of the part of a batch that is worked on at once: ten arrays of float64 of that size exist
# at a time.
PART_ENTRIES = 2**19
# The values of two variables.
SIGNS = list(product((-1, 1), repeat=2))


class Point(NamedTuple):
    """Parameters, the objective there, and what else an objective keeps of it.

    `full` is θ of the problem that a task has, where a solver knows it by other parameters.
    `coupling`, `fields` and their `tanh` are those of bits; `expected` and `products` are moments
    of the model.
    """

    theta: np.ndarray
    value: float
    gradient: np.ndarray | None = None
    full: np.ndarray | None = None
    coupling: np.ndarray | None = None
    fields: np.ndarray | None = None
    tanh: np.ndarray | None = None
    expected: np.ndarray | None = None
    products: np.ndarray | None = None

    @property
    def parameters(self):
        """θ of the problem that a task has."""
        return self.theta if self.full is None else self.full


class Objective:
    """Interface that solvers need; a child has `at`, `unpack`, `information` and `move`."""

    def gradient(self, point):
        """∂/∂θ, of shape (n_parameters,)."""
        return point.gradient

    def moved(self, direction):
        """Precompute what a step along a direction changes, whatever its size."""

    def after(self, point, direction, size, moved):
        """The point after a step of some size."""
        return self.at(point.theta + size * direction)

    def recycle(self, *used):
        """No-op: no arrays are used again."""

    def bound(self, direction):
        """Upper bound of `move`, at less cost."""
        return largest_move(*self.unpack(direction))


class BinaryObjective(Objective):
    """Base of the objectives of binary columns.

    A child has `at`, `moments`, `observed` and `cell_sums`.

    Parameters
    ----------
    means : ndarray of shape (d,)
        Σ_i w_i x_i.
    total : float
        Number of rows.
    alpha : float
        The strength of the penalty per row.
    """

    # What else to do where there is no maximum.
    advice = ""
    observed = None  # no cell is missing

    def __init__(self, means, total, alpha):
        d = len(means)
        self.means, self.total, self.n_values = means, total, np.full(d, 2)
        self.upper, self.n_parameters = np.triu_indices(d, 1), d * (d + 1) // 2
        self.penalty = min(alpha * total, 1e300)

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row; that on the sum over rows is finite."""
        self.penalty = min(alpha * self.total, 1e300)

    def model(self, theta):
        """The distribution."""
        return SpinModel(*self.unpack(theta))

    def pack(self, coupling, intercept):
        """θ from the two arrays."""
        return np.concatenate([intercept, coupling[self.upper]])

    def unpack(self, theta):
        """The two arrays from θ, of which terms of more columns may be the end."""
        d = len(self.means)
        coupling = np.zeros((d, d))
        coupling[self.upper] = theta[d : d + len(self.upper[0])]
        return coupling + coupling.T, theta[:d].copy()

    def move(self, direction):
        """By how much a step moves the field of any row, at most."""
        return largest_gain(*self.gains(direction))

    @property
    def is_whole(self):
        """Which variables have no missing cells."""
        d = len(self.means)
        return np.ones(d, dtype=bool) if self.observed is None else self.observed.all(axis=1)

    def empty_cells(self):
        """Pairs of variables j < k with values s and t that never occur together: (j, k, s, t).

        If x_j = s never meets x_k = t, then m_jk -> -st ∞ with b_j -> -s ∞ and b_k -> -t ∞ never
        lowers the pseudo-likelihood.
        """
        n, both, single = self.cell_sums()
        found, first = [], single[:, None] if single.ndim == 1 else single
        for s, t in SIGNS:
            count = n + s * first + t * first.T + s * t * both
            j, k = np.nonzero(np.triu(count < 0.5, 1))
            found += zip(j.tolist(), k.tolist(), [s] * len(j), [t] * len(j), strict=True)
        return sorted(found)

    def rarest_cell(self, j, k):
        """The number of rows with the rarest pair of values of two variables, and these values.

        With j = k, of the rarer value of one variable.
        """
        n, first, second, both = self.total, self.means[j], self.means[k], self.moments[j, k]
        if self.observed is not None:
            known = self.weights * self.observed[j] * self.observed[k]
            x, y = self.spins[j], self.spins[k]
            n, first, second, both = known.sum(), known @ x, known @ y, known @ (x * y)
        if j == k:
            return min(((n + s * first) / 2, s, s) for s in (-1, 1))
        return min(((n + s * first + t * second + s * t * both) / 4, s, t) for s, t in SIGNS)

    def pair_curvature(self, theta):
        """Each coupling, the information on it by itself, and the variance of its score.

        Each of shape (n_pairs,).
        """
        n_known = self.total if self.observed is None else self.observed @ self.weights
        curvature = self.pair_sums(theta, self.means / n_known)
        return np.array([self.unpack(theta)[0], *curvature])[:, *self.upper]

    def penalised(self, information):
        """With the second derivatives of the penalty, in place."""
        pairs = np.arange(len(self.means), self.n_parameters)
        information[pairs, pairs] += self.penalty
        return information

    def curvature(self):
        """The bounds of BSLM on the negative diagonal of the second derivative."""
        curvature = np.full(self.n_parameters, 2 * self.total + self.penalty)
        curvature[: len(self.means)] = self.total
        return curvature

    def away(self, j, k, s, t):
        """The direction in which x_j = s and x_k = t become less probable together."""
        coupling, intercept = np.zeros_like(self.moments), np.zeros_like(self.means)
        coupling[j, k] = coupling[k, j] = -s * t
        intercept[[j, k]] = -s, -t
        return self.pack(coupling, intercept)

    def strengths(self, direction):
        """How much a direction changes each coupling, and on the diagonal each intercept."""
        coupling, intercept = self.unpack(direction)
        return np.abs(coupling + np.diag(intercept))


class PseudoLikelihood(BinaryObjective):
    """Σ_i w_i Σ_j [x_ij F_ij - ln cosh F_ij - ln 2] - ½ α N Σ_{j<k} m_jk², with F = M x + b.

    N = Σ_i w_i: of the means per row, the penalty is ½ α Σ_{j<k} m_jk². A missing cell has no term
    of its own, and adds nothing to the fields of the others.

    Parameters
    ----------
    spins : ndarray of float64 of shape (d, n)
        ±1, or 0 for a missing cell.
    weights : ndarray of float64 of shape (n,)
        How often each row counts.
    alpha : float, default=0.0
        The strength α of the penalty per row.

    Attributes
    ----------
    total : float
        N.
    penalty : float
        α N.
    observed : ndarray of float64 of shape (d, n) or None
        1, or 0 for a missing cell; None where none is missing.
    """

    name = "log pseudo-likelihood"

    def __init__(self, spins, weights, alpha=0.0):
        padding = -spins.shape[1] % N_LANES
        # Rows of weight 0 fill the last vector of the kernels.
        self.n_rows = spins.shape[1]
        self.spins, self.weights = spins, weights
        if padding:
            self.spins = np.pad(spins, ((0, 0), (0, padding)), constant_values=1.0)
            self.weights = np.pad(weights, (0, padding))
        super().__init__(self.spins @ self.weights, float(weights.sum()), alpha)
        # The number of observed cells, weighted.
        self.observed, self._n_terms = None, len(spins) * self.total
        if not spins.all():
            self.observed = np.abs(self.spins)
            self._n_terms = float((self.observed @ self.weights).sum())
        weighted = self.spins * self.weights
        self.moments, self._spare = weighted @ self.spins.T, [weighted]

    def array(self):
        """An array like the data, with any content: new ones would cost page faults."""
        return self._spare.pop() if self._spare else np.empty_like(self.spins)

    def recycle(self, *used):
        """Take back arrays, and those of points, that are no longer needed."""
        for one in used:
            self._spare += [one.fields, one.tanh] if isinstance(one, Point) else [one]

    def fields(self, coupling, intercept):
        """F, of shape (d, n)."""
        fields = np.matmul(coupling, self.spins, out=self.array())
        fields += intercept[:, None]
        return fields

    def at(self, theta, fields=None):
        """Evaluate the objective at parameters whose fields may be known."""
        coupling, intercept = self.unpack(theta)
        fields = self.fields(coupling, intercept) if fields is None else fields
        if self.observed is not None:
            fields *= self.observed  # ln cosh 0 = tanh 0 = 0: no term
        tanh = self.array()
        log_cosh = evaluate_fields(fields, self.weights, tanh)
        value = (
            self.means @ intercept
            + np.vdot(self.moments, coupling)
            - log_cosh
            - self._n_terms * np.log(2)
            - self.penalty / 4 * np.vdot(coupling, coupling)
        )
        return Point(theta, float(value), coupling=coupling, fields=fields, tanh=tanh)

    def of_rows(self, rows, counts):
        """The objective of other rows, complete ones of 0 and 1."""
        spins = np.multiply(rows.T, 2.0, order="C") - 1
        return PseudoLikelihood(spins, counts, self.penalty / counts.sum())

    def moved(self, direction):
        """The fields of a direction."""
        return self.fields(*self.unpack(direction))

    def after(self, point, direction, size, moved):
        """The point after a step of some size, by its fields."""
        fields = np.multiply(moved, size, out=self.array())
        fields += point.fields
        return self.at(point.theta + size * direction, fields)

    def cell_sums(self):
        """How many rows are looked at, Σ x_j x_k and Σ x_j: whether cells are empty.

        With missing cells, the number and the sums Σ x_j are those of the rows where both
        columns are observed, (d, d).
        """
        spins = self.spins[:, : self.n_rows]
        if self.observed is None:
            return spins.shape[1], spins @ spins.T, spins.sum(axis=1)
        observed = self.observed[:, : self.n_rows]
        return observed @ observed.T, spins @ spins.T, spins @ observed.T

    def gains(self, direction):
        """The least and the greatest x_ij F_ij of each variable, each of shape (d,)."""
        gain = (self.spins * self.fields(*self.unpack(direction)))[:, : self.n_rows]
        return gain.min(axis=1), gain.max(axis=1)

    def gradient(self, point):
        """∂/∂θ, of shape (n_parameters,)."""
        weighted = np.multiply(point.tanh, self.weights, out=self.array())
        products = self.moments - weighted @ self.spins.T
        coupling = products + products.T - self.penalty * point.coupling
        intercept = self.means - weighted.sum(axis=1)
        self.recycle(weighted)
        return self.pack(coupling, intercept)

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ², of shape (n_parameters, n_parameters).

        Each variable j gives its logistic regression on the others: Σ_i w_i sech²(F_ij) z zᵀ
        with z = x_i, but z_j = 1 for the intercept. The sums over rows are done in `dtype`.
        """
        d = len(self.means)
        places = parameter_places(d, np.triu_indices(d, 1))
        information = np.zeros((self.n_parameters, self.n_parameters))
        for j, block in enumerate(self._logistic_information(point, dtype)):
            information[np.ix_(places[j], places[j])] += block
        return self.penalised(information)

    def pair_sums(self, theta, means):
        """The sums of `pair_curvature` for variables with these means, of shape (2, d, d)."""
        point = self.at(theta)
        total = np.zeros((2, len(means), len(means)))
        for part in slices_of_rows(self.n_rows, len(means), CHUNK):
            spins, tanh = self.spins[:, part], point.tanh[:, part]
            features, spread = spins - means[:, None], 1 - tanh**2
            if self.observed is not None:
                features *= self.observed[:, part]
                spread *= self.observed[:, part]
            total += pair_curvature(features, spins - tanh, spread, self.weights[part])
        return total

    def _logistic_information(self, point, dtype):
        """Yield Σ_i w_i sech²(F_ij) z zᵀ for each variable j."""
        d = len(self.means)
        if point.coupling.any() or self.observed is not None:
            curvature = np.multiply(point.tanh, point.tanh, out=self.array())
            np.subtract(1, curvature, out=curvature)
            curvature *= self.weights
            if self.observed is not None:
                curvature *= self.observed
            moments = self._pair_moments(curvature.astype(dtype, copy=False))
            means, squares = curvature @ self.spins.T, curvature.sum(axis=1)
            if self.observed is not None:
                squares = curvature @ self.observed.T
            self.recycle(curvature)
        else:
            # Independent variables: sech² is the same for all rows.
            sech2 = 1 - point.tanh[:, :1] ** 2
            moments = sech2 * self.moments[self.upper]
            means, squares = sech2 * self.means, sech2[:, 0] * self.total
        for j in range(d):
            block = np.zeros((d, d))
            block[self.upper] = moments[j]
            block += block.T
            block[j] = block[:, j] = means[j]
            np.fill_diagonal(block, squares[j])
            yield block

    def _pair_moments(self, weights):
        """Σ_i weights_ji x_ik x_il for each j and each k < l, of shape (d, d (d - 1) / 2).

        One product of matrices for a block of rows: the products x_k x_l serve
        all d variables.
        """
        d, n = self.spins.shape
        n_pairs = len(self.upper[0])
        moments = np.zeros((d, n_pairs))
        step = max(N_LANES, CACHED // max(n_pairs, 1))
        for start in range(0, n, step):
            x = self.spins[:, start : start + step].astype(weights.dtype)
            products, begin = np.empty((n_pairs, x.shape[1]), dtype=weights.dtype), 0
            for k in range(d - 1):
                end = begin + d - 1 - k
                np.multiply(x[k + 1 :], x[k], out=products[begin:end])
                begin = end
            moments += weights[:, start : start + step] @ products.T
        return moments


def pair_curvature(features, residuals, spread, weights):
    """The information on each coupling by itself, and the variance of its score.

    Parameters
    ----------
    features : ndarray of shape (D, n)
        x, without its mean; 0 for a missing cell.
    residuals : ndarray of shape (D, n)
        x less its mean given the other columns.
    spread : ndarray of shape (D, n)
        The variance of x given the other columns.
    weights : ndarray of shape (n,)

    Returns
    -------
    curvature : ndarray of shape (2, D, D)
        h and J, both summed over the rows.
    """
    squares = features**2
    information = (spread * weights) @ squares.T
    own = (residuals**2 * weights) @ squares.T
    both = residuals * features
    cross = (both * weights) @ both.T
    return np.array([information + information.T, own + own.T + 2 * cross])


def largest_move(coupling, intercept):
    """A bound on how far a direction moves the field of any row."""
    return (np.abs(coupling).sum(axis=1) + np.abs(intercept)).max(initial=0)


def largest_gain(least, greatest):
    """The largest absolute value of `gains`."""
    return max(greatest.max(initial=0), -least.min(initial=0))


def parameter_places(n_features, pairs):
    """Where K_rs stands in θ, and on the diagonal the intercept; (D, D), for features of columns.

    Features that are not among `pairs` have no K: there is the number of parameters.
    """
    r, s = pairs
    n_parameters = n_features + len(r)
    places = np.full((n_features,) * 2, n_parameters)
    np.fill_diagonal(places, np.arange(n_features))
    places[r, s] = places[s, r] = np.arange(n_features, n_parameters)
    return places


def distinct_rows(positive, weights):
    """Collapse equal rows.

    Parameters
    ----------
    positive : ndarray of bool of shape (n, d)
    weights : ndarray of shape (n,)

    Returns
    -------
    spins : ndarray of float64 of shape (d, n_distinct)
        1 where `positive`, else -1.
    weights : ndarray of float64 of shape (n_distinct,)
        The sums over equal rows.
    """
    n, d = positive.shape
    n_bytes = max(8, -(-d // 8))
    packed = np.zeros((n, n_bytes), dtype=np.uint8)
    packed[:, : -(-d // 8)] = np.packbits(positive, axis=1)
    keys = packed.view(np.uint64 if n_bytes == 8 else np.dtype((np.void, n_bytes))).ravel()
    keys, inverse = np.unique(keys, return_inverse=True)
    bits = np.unpackbits(keys.view(np.uint8).reshape(len(keys), n_bytes), axis=1, count=d)
    spins = np.empty((d, len(keys)))
    np.multiply(bits.T, 2.0, out=spins)
    spins -= 1
    return spins, np.bincount(inverse.ravel(), weights, len(keys))


class Sums(NamedTuple):
    """Sums over ±1-valued rows: their number, Σ x_j and Σ x_j x_k."""

    total: float
    means: np.ndarray
    moments: np.ndarray

    @classmethod
    def of(cls, positive, weights):
        """The sums of rows that are given by where they are 1, and how often each counts."""
        parts = (cls(p.total, p.means, p.moments) for p in in_parts(positive, weights))
        return reduce(add, parts, cls(0.0, 0.0, 0.0))

    def __add__(self, other):
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


def in_parts(positive, weights):
    """Yield the pseudo-likelihood, without a penalty, of a part of the rows at a time."""
    for part in slices_of_rows(*positive.shape, PART_ENTRIES):
        yield PseudoLikelihood(2.0 * positive[part].T - 1.0, weights[part])


class StreamedPseudoLikelihood(BinaryObjective):
    """`PseudoLikelihood` of batches: a pass over them for each question.

    Parameters
    ----------
    batches : Batches
    positive : callable
        From the number and the rows of a batch, where the variables of the problem are 1. It may be
        called in other processes.
    sums : Sums
        Of these variables.
    alpha : float
        Strength of the penalty per row.
    """

    def __init__(self, batches, positive, sums, alpha):
        self.batches, self.positive = batches, positive
        super().__init__(sums.means, sums.total, alpha)
        self.moments = sums.moments

    name = PseudoLikelihood.name

    def _sum(self, find, *arguments, merge=add):
        in_batch = partial(_of_batch, partial(find, *arguments), merge, self.positive)
        return self.batches.map_reduce(in_batch, merge)

    def at(self, theta):
        """Evaluate the objective and its derivative."""
        found, (coupling, intercept) = self._sum(_value_and_gradient, theta), self.unpack(theta)
        value = found[0] - self.penalty / 4 * np.vdot(coupling, coupling)
        gradient = found[1:] - self.penalty * self.pack(coupling, np.zeros_like(intercept))
        return Point(theta, float(value), gradient)

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ², of shape (n_parameters, n_parameters)."""
        return self.penalised(self._sum(_information, point.theta, dtype))

    def pair_sums(self, theta, means):
        """The sums of `pair_curvature` for variables with these means, of shape (2, d, d)."""
        return self._sum(methodcaller("pair_sums", theta, means))

    def cell_sums(self):
        """Number of rows, Σ x_j x_k and Σ x_j."""
        return self.total, self.moments, self.means

    def gains(self, direction):
        """The least and the greatest x_ij F_ij of each variable, each of shape (d,)."""
        low, high = self._sum(_gains, direction, merge=np.maximum)
        return -low, high


def _of_batch(find, merge, positive, k, batch):
    """Contributions of one batch, part by part, without the penalty."""
    rows = positive(k, batch)
    return reduce(merge, map(find, in_parts(rows, np.ones(len(rows)))))


def _value_and_gradient(theta, problem):
    """Return value and gradient as one vector."""
    point = problem.at(theta)
    return np.append(point.value, problem.gradient(point))


def _information(theta, dtype, problem):
    return problem.information(problem.at(theta), dtype)


def _gains(direction, problem):
    """The least with its sign changed, and the greatest."""
    least, greatest = problem.gains(direction)
    return np.array([-least, greatest])
