"""The prior of couplings of features, whose variances are estimated with them (MacKay, 1992).

K_jl(m, m') ~ N(0, v_jl r_m r_m'), with a variance of each pair of columns, and one of each order of
smoothness for all columns with an order. Where a user gives the strength of the penalty, both are
known.
"""

import numpy as np

from sklearn_boltz.networks.model._gauge import block_entries

# Variance of a coupling before the first estimate, and bounds of variances.
FIRST, LEAST, MOST = 0.2, 1e-6, 1e4
# Of the variances by orders of smoothness, in ratio to that of the smoothest functions.
LEAST_ORDER, MOST_ORDER = 1e-3, 10.0
# The strength of a penalty that is given, in nats, at most: single precision has no more.
MOST_GIVEN = 1e12
# Rounds of an update.
N_ROUNDS = 10
# The information on a coupling, in ratio to that of two independent columns of which either is
# predicted: a pseudo-likelihood counts each pair twice. Of 1 to 3, hidden cells of six public
# tables were predicted best with 2.5.
INFORMATION = 2.5


class CouplingPrior:
    """Variances of all couplings.

    Parameters
    ----------
    bases : list of Basis
    alpha : float, default=None
        The strength of the penalty ½ α m², if it is given: m is the coupling of two columns of
        values ±1, or of the ends of two trends with equal steps, √3 standard deviations from the
        middle. Orders are those by which polynomials of degree k in equally frequent levels cost
        k (k + 1) / 2.

    Attributes
    ----------
    pairs : ndarray of shape (d, d)
        v.
    orders : ndarray
        r, from the smoothest functions on, which have 1; at last that of values without an order,
        which is 1.
    """

    def __init__(self, bases, alpha=None):
        sizes = np.array([basis.features.shape[1] for basis in bases])
        self.column = np.repeat(np.arange(len(bases)), sizes)
        order = np.concatenate([basis.order for basis in bases])
        # Places among the orders: that of values without an order is the last.
        self.order, n = np.where(order < 0, -1, order), max(order.max(initial=-1) + 2, 1)
        self.order = self.order % n
        self.pairs, self.orders = np.full((len(bases),) * 2, FIRST), np.ones(n)
        self.is_given = alpha is not None
        if self.is_given:
            scale, degrees = np.where([b.is_nominal for b in bases], 2.0, 1 / 3), np.arange(1, n)
            self.pairs = np.outer(scale, scale) / np.clip(alpha, 1 / MOST, MOST_GIVEN)
            self.orders[:-1] = 2 / (degrees * (degrees + 1))
        # Couplings one after another, pair by pair.
        self._columns, self._entries = np.triu_indices(len(sizes), 1), block_entries(sizes)
        self._sizes = sizes[self._columns[0]] * sizes[self._columns[1]]
        first, other = (self.order[places] for places in self._entries)
        self._both = first * n + other
        self._counts = self._by_order(np.ones(len(first)))

    def precision(self):
        """1 / v of all couplings, (K, K)."""
        pairs, by_order = self.pairs[np.ix_(self.column, self.column)], self.orders[self.order]
        return 1 / (pairs * np.outer(by_order, by_order))

    def estimate(self, coupling, second, spread, total):
        """Estimate variances: means of squares of couplings and of their posterior variances.

        `second` and `spread` are those of `FeatureObjective.moments`.
        """
        if len(self.pairs) < 2 or self.is_given:
            return
        (a, b), second, spread = self._entries, np.diag(second), np.diag(spread)
        information = INFORMATION * total * (second[a] * spread[b] + spread[a] * second[b])
        squares, starts = coupling[a, b].astype(np.float64) ** 2, np.cumsum(self._sizes)
        starts, pairs = starts - self._sizes, self.pairs[self._columns]
        for _ in range(N_ROUNDS):
            by_order = np.outer(self.orders, self.orders).ravel()[self._both]
            variances = np.repeat(pairs, self._sizes) * by_order
            ratios = (squares + variances / (information * variances + 1)) / by_order
            pairs = np.clip(np.add.reduceat(ratios, starts) / self._sizes, LEAST, MOST)
            if len(self.orders) > 1:
                self._estimate_orders(ratios / np.repeat(pairs, self._sizes))
        self.pairs[self._columns] = self.pairs.T[self._columns] = pairs

    def _estimate_orders(self, ratios):
        up = self._by_order(ratios) * self.orders
        orders = np.clip((up + 1e-3) / (self._counts + 1e-3), LEAST_ORDER, MOST_ORDER)
        self.orders = np.append(orders[:-1] / orders[0], 1.0)

    def _by_order(self, values):
        """Sums over the couplings of the functions of each order."""
        n = len(self.orders)
        sums = np.bincount(self._both, values, n * n).reshape(n, n)
        return sums.sum(axis=0) + sums.sum(axis=1)
