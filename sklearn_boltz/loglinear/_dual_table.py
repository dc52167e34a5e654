"""The tables of dual parameters, and the passes over them."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sklearn_boltz.loglinear._basis import distribution_of, multiply_local
from sklearn_boltz.loglinear._dual_update import Penalty, append_change, scan, update_and_scan

# Entries of the fast half of the description lengths: they stay in the first-level cache.
N_INNER = 1024
# Entries of a slab, at least, that are moved at once: they stay in the second-level cache.
SLAB = 2**15
# Joint refits of a term for each value of a column take 2 s at 1,000 values, 40 s at 5,000.
MOST_VALUES = 512


class DualTable:
    """The two tables of the algorithm: θ̄_y = E_θ[Φ_y] and d̄_y = E_data[Φ_y] for all y.

    Parameters
    ----------
    space : StateSpace
    codes, weights : ndarray of shape (n_unique,)
        The states that the data hold, and how often.
    n_features : int
        Number of variables that there are in all, for the description lengths.
    alpha : float
        Multiplies the description lengths.
    max_order : int
        Terms with more variables are not considered.
    dtype : dtype
        Of the tables.
    n_threads : int

    Notes
    -----
    The data are completed by one observation spread evenly over all states. All |d̄_y| are
    then at most 1 - 1/(N+1) and, more than that, d̄ comes from a positive distribution, so
    that every set of terms has a finite optimum. (Clipping the d̄_y that are ±1 would not do:
    where two values never occur together, a combination of several d̄_y is on the boundary.)
    """

    def __init__(self, space, codes, weights, *, n_features, alpha, max_order, dtype, n_threads=1):
        self.space, self.n_features, self.n_threads = space, n_features, n_threads
        n_samples = float(weights.sum())
        self.d = _zeros(space.size, dtype)
        self.set_data(codes, weights)
        self.t = _zeros(space.size, dtype)
        self.t[:: space.n_fast] = space.uniform_moments()
        self._scale = alpha / n_samples
        self._half_log_n = 0.5 * math.log(max(n_samples, 1.0))
        self._penalty = self._make_penalty(max_order, dtype)
        self._max_order, self._rival = max_order, -1
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def _make_penalty(self, max_order, dtype):
        outer, inner = self.space.split_layout(N_INNER)
        outer_lengths, outer_orders = self.space.term_lengths(outer, self.n_features)
        inner_lengths, inner_orders = self.space.term_lengths(inner, self.n_features)
        most = np.finfo(dtype).max / 4  # an alpha beyond it forbids all terms just as well
        return Penalty(
            np.minimum(self._scale * outer_lengths, most).astype(dtype),
            np.minimum(self._scale * (self._half_log_n + inner_lengths), most).astype(dtype),
            outer_orders,
            inner_orders,
            max_order,
        )

    def set_data(self, codes, weights):
        """Make d̄ from data; their weight must be that of the first."""
        n_samples, dtype = float(weights.sum()), self.d.dtype
        # Counts below 2^24 stay exact in float32 until they are divided.
        self.d.fill(0)
        self.d[codes] = weights
        self.space.analyze(self.d, self.n_threads)
        self.d[:: self.space.n_fast] += self.space.uniform_moments().astype(dtype)
        self.d /= n_samples + 1
        self.d[0] = 1
        # So many samples that 1 - 1/(N+1) rounds to 1: float32 beyond a million.
        edge = 1 - 2 * np.finfo(dtype).eps
        if n_samples * np.finfo(dtype).eps > 0.1:
            np.clip(self.d[1:], -edge, edge, out=self.d[1:])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._pool is not None:
            self._pool.shutdown()

    def step_to_data(self, code):
        """How far θ_y must move for θ̄_y to become d̄_y."""
        edge = 1 - float(np.finfo(self.t.dtype).epsneg)  # where rounding would make θ infinite
        t, d = (max(-edge, min(float(x[code]), edge)) for x in (self.t, self.d))
        return math.atanh(d) - math.atanh(t)

    def penalty(self, code):
        """r_y of a term (eq. 2.5)."""
        return self._penalty[code]

    def columns(self):
        """Yield terms that give a column of 3 to `MOST_VALUES` values its own distribution.

        Of each column where the terms gain a nat each (Akaike), times `alpha`: codes, weights if
        there is no other term, and by what they lower the divergence.
        """
        for m, stride in zip(self.space.n_values.tolist(), self.space.strides, strict=True):
            if 2 < m <= MOST_VALUES and self._max_order:
                codes = np.arange(m) * stride
                p, theta = distribution_of(self.d[codes].astype(np.float64))
                gain = math.log(m) + float(p @ np.log(p))
                if gain > self._scale * (m - 1):
                    yield codes[1:], theta[1:], gain

    def _over_threads(self, function, n):
        """The results of function(begin, end) over one range of [0, n) for each thread."""
        if self._pool is None:
            return [function(0, n)]
        cuts = [n * i // self.n_threads for i in range(self.n_threads + 1)]
        others = [self._pool.submit(function, *cuts[i : i + 2]) for i in range(1, self.n_threads)]
        return [function(*cuts[:2]), *(future.result() for future in others)]

    def _best(self, results):
        """The best of several champions; the best of the others is remembered."""
        # By change, then by code: the same winner however the table was cut.
        first, *others = sorted(results, key=lambda r: (r[0], r[1] < 0, r[1]))
        change, code, former = first
        self._rival = others[0][1] if others and former < 0 else former
        return change, code

    def scan(self, best):
        """The (change, code) of the best term to append, if it is less than `best`."""
        return self._best(
            self._over_threads(
                lambda begin, end: scan(self.t, self.d, self._penalty, best, begin, end),
                self.space.size // self._penalty.lanes,
            )
        )

    def update(self, code, step, best):
        """Move θ_y by `step`, then scan.

        exp(δΦ) = cosh δ + Φ sinh δ, because Φ² = 1. So every moment has a closed form,
        θ̄_z <- [θ̄_z + tanh δ · E(Φ_z Φ_y)] / [1 + tanh δ · θ̄_y].
        """
        tanh = math.tanh(step)
        a = 1 / (1 + tanh * float(self.t[code]))
        b = tanh * a
        if code >= self.space.n_fast:
            self._update_indicators(code, a, b)
            self.t[0] = 1
            return self.scan(best)
        lanes = self._penalty.lanes
        n_pairs = self.space.size // (lanes * (2 if code >= lanes else 1))
        best, rival = self._rival_first(code, a, b, best)
        results = self._over_threads(
            lambda begin, end: update_and_scan(
                self.t, self.d, code, a, b, self._penalty, best, rival, begin, end
            ),
            n_pairs,
        )
        self.t[0] = 1  # exactly, whatever the rounding
        return self._best(results)

    def _rival_first(self, code, a, b, best):
        """Change of the cost by last time's second term: a bound that prunes most."""
        rival = self._rival
        if rival > 0:
            t = a * float(self.t[rival]) + b * float(self.t[rival ^ code])
            change = append_change(t, float(self.d[rival])) + self._penalty[rival]
            if change < best:
                return change, rival
        return best, -1

    def _update_indicators(self, code, a, b):
        """t = a t + b E(Φ_z Φ_y) where y touches indicator axes, a slab at a time."""
        k = self.space.decode([code])[0, self.space.indicators]
        for slab, swap in self._slabs(k, code % self.space.n_fast):
            # E(Φ_z Φ_y) by the identities of both kinds of axis.
            moments = slab[swap]
            for axis in np.flatnonzero(k):
                multiply_local(moments, axis, k[axis])
            moments *= b
            slab *= a
            slab += moments

    def _slabs(self, k, mask):
        """Yield views of t that are closed under y -> y xor mask and along the axes where k > 0.

        They have all indicator axes and two for the Hadamard part. With each comes the index that
        makes a copy with the Hadamard part xor-ed by the mask.
        """
        space = self.space
        rows = min(space.n_fast, 16)
        columns = space.n_fast // rows
        table = self.t.reshape(*space.shape(space.indicators), rows, columns)
        high, low = mask // columns, np.arange(columns) ^ (mask % columns)
        swap = (..., slice(None, None, -1 if high else 1), low)
        cut, left = [], table.size
        for axis in np.flatnonzero(k == 0)[:3]:
            if left > SLAB:
                cut, left = [*cut, axis], left // space.n_values[space.indicators][axis]
        for index in np.ndindex(*space.n_values[space.indicators][cut]):
            where = [slice(None)] * len(k)
            for axis, value in zip(cut, index, strict=True):
                where[axis] = slice(value, value + 1)
            for row in range(rows):
                if row <= row ^ high:
                    # The two rows as one slice, which is a view.
                    pair = slice(row, (row ^ high) + 1, (row ^ high) - row or 1)
                    yield table[(*where, pair)], swap

    def promising(self, n_terms, without):
        """Codes of at most `n_terms` terms that by themselves explain most for their length.

        The constant, and the codes in `without`, are left out.
        """
        r_outer, r_inner, order_outer, order_inner = self._penalty.arrays
        n_rows, width = max(1, 2**15 // len(r_inner)), len(r_inner)
        tiny = np.finfo(self.t.dtype).eps
        codes, scores, least = np.empty(0, dtype=np.int64), np.empty(0), 0.0
        for row in range(0, len(r_outer), n_rows):
            rows, start = slice(row, row + n_rows), row * width
            t, d = (x[start : start + n_rows * width] for x in (self.t, self.d))
            r = np.add.outer(r_outer[rows], r_inner).ravel()
            score = (d - t) ** 2 / (np.maximum(1 - t * t, tiny) * np.maximum(r, tiny))
            score[np.add.outer(order_outer[rows], order_inner).ravel() > self._max_order] = 0
            score[without[(without >= start) & (without < start + len(t))] - start] = 0
            better = np.flatnonzero(score > least)
            codes, scores = np.append(codes, start + better), np.append(scores, score[better])
            if len(codes) > 2 * n_terms:
                kept = np.argpartition(-scores, n_terms)[:n_terms]
                codes, scores = codes[kept], scores[kept]
                least = scores.min()
        return np.sort(codes[np.argsort(-scores, kind="stable")[:n_terms]])

    def log_weights(self, codes, theta):
        """Fill t with l_θ(x) for all x; return it."""
        self.t.fill(0)
        self.t[codes] = theta
        self.space.synthesize(self.t, self.n_threads)
        return self.t

    def weigh(self, codes, theta):
        """Fill t with exp(l_θ(x) - max l) for all x; return ln Z."""
        self.log_weights(codes, theta)
        peak = self.t.max()
        self._map_chunks(lambda part: np.exp(np.subtract(part, peak, out=part), out=part))
        return float(peak) + math.log(self.t.sum(dtype=np.float64))

    def normalise(self):
        """After `weigh`: turn the weights in t into the dual parameters."""
        self.space.analyze(self.t, self.n_threads)
        total = self.t[0]
        self._map_chunks(lambda part: np.divide(part, total, out=part))
        self.t[0] = 1

    def refresh(self, codes, theta):
        """Make t anew from θ, without the rounding errors of many updates; return ln Z."""
        log_partition = self.weigh(codes, theta)
        self.normalise()
        return log_partition

    def _map_chunks(self, function):
        """Apply a function to pieces of t that stay in the cache."""
        pieces = np.array_split(self.t, max(1, self.t.size // 2**15))

        def some(begin, end):
            for piece in pieces[begin:end]:
                function(piece)

        self._over_threads(some, len(pieces))


def _zeros(size, dtype):
    """Zeros that begin at a cache line, so that no vector of the kernels straddles two."""
    buffer = np.zeros(size * dtype.itemsize + 64, dtype=np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size * dtype.itemsize].view(dtype)
