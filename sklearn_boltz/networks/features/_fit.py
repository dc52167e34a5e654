"""Fit a network of features: rounds of completions, steps of L-BFGS and estimates of the prior.

A round draws the missing cells anew by the network so far, takes a few steps with them, and
estimates the variances of the couplings. With missing cells, the result is the mean of the last
rounds: a stochastic approximation of EM (Delyon, Lavielle and Moulines, 1999) on the
pseudo-likelihood. Without, the last rounds go on to the maximum with the variances found.
"""

from itertools import islice

import numpy as np

from sklearn_boltz.networks.features._marginals import with_marginals
from sklearn_boltz.networks.features._network import FeatureNetwork
from sklearn_boltz.networks.features._objective import FeatureObjective
from sklearn_boltz.networks.features._prior import CouplingPrior
from sklearn_boltz.networks.features._steps import Scaling
from sklearn_boltz.numerics._lbfgs import Lbfgs

# Rounds with completions, and how many of the last are averaged. If the objective of many rows is
# higher by more in the second half of these than in the first, in nats a cell, others follow:
# strongly related columns need them.
N_ROUNDS, N_AVERAGED, MANY_ROWS, RISING = 30, 10, 2**12, 5e-3
# Rounds of estimates of the prior without completions, and rounds at most, of all fits.
N_ESTIMATES, MOST_ROUNDS = 15, 60
# Steps of the first round, of those with estimates, and of those after them.
FIRST_STEPS, STEPS_COMPLETE, LAST_STEPS = 25, 3, 25
# Steps of a round with completions: more where rows are few, as many rows in all, about; and what
# one has to gain for another to follow, in nats a cell.
FEWEST_STEPS, MOST_STEPS, ROWS_OF_STEPS, WORTH = 5, 12, 130_000, 5e-4
# The same of the rounds beyond `N_ROUNDS`.
MORE_STEPS, MORE_WORTH = 16, 1e-4
# Rounds after those with estimates that go on to `tol`; then it is enough to gain less in a round.
MOST_TO_TOL, NEAR = 10, 1.0
# Sweeps that complete the rows of a round, after they were begun cell by cell.
N_SWEEPS = 3
# From which round on the prior is estimated, and in which rounds the scaling is.
PRIOR_FROM, RESCALED = 3, (0, 1, 2, 5, 10)
# Rows of a round with completions at most, of a random choice; and of the first rounds at least, or
# with many features, whose squares times the rows are at most as many as this beyond.
MOST_ROWS, FEWEST_ROWS, MOST_WORK = 2**14, 2000, 2e9
# Complete rows at most with which a fit goes on to the maximum.
MOST_COMPLETE = 2**16
# Draws of all incomplete rows together, about, of small tables.
N_COMPLETED = 1024
# Features of all rows at most that have double precision, in a fit that goes on to the maximum.
FEW_FEATURES = 2**18
SEED = 0


class Rounds:
    """The rounds of a fit of a network.

    Parameters
    ----------
    bases : list of Basis
    codes : ndarray of int of shape (n, d)
        Distinct rows, of all values; -1 for a missing cell.
    weights : ndarray of shape (n,)
        How often each counts.
    n_draws : int
        Of each incomplete row in a round, at most; with 0, missing cells count as the mean.
    alpha : float, default=None
        The strength of the penalty per row, if it is given; see `CouplingPrior`.
    """

    def __init__(self, bases, codes, weights, n_draws, alpha=None):
        n_features = sum(basis.features.shape[1] for basis in bases)
        self.total, self.completes = float(weights.sum()), n_draws > 0
        self.most_rows = int(np.clip(MOST_WORK / n_features**2, FEWEST_ROWS, MOST_ROWS))
        incomplete = (codes < 0).any(axis=1)
        self.is_exact = not (incomplete.any() and self.completes) and len(codes) <= MOST_COMPLETE
        is_small = self.is_exact and len(codes) * n_features <= FEW_FEATURES
        self.dtype = np.float64 if is_small else np.float32
        n_copies = np.clip(N_COMPLETED // max(incomplete.sum(), 1), 1, max(n_draws, 1))
        copies = np.where(incomplete, n_copies, 1)
        columns = list(zip(bases, codes.T, strict=True))
        # What the rows' own values add to ln p of their groups.
        self.constant = float(
            sum(np.log(np.append(basis.within, 1.0))[own] @ weights for basis, own in columns)
        )
        codes = [np.append(basis.group, -1)[own] for basis, own in columns]
        self.codes = np.repeat(np.column_stack(codes).astype(np.int16), copies, axis=0)
        self.weights = np.repeat(weights / copies, copies).astype(self.dtype)
        self.missing = self.codes < 0
        strength = None if alpha is None else alpha * self.total
        self.bases, self.prior, self.solver = bases, CouplingPrior(bases, strength), Lbfgs()
        self.generator = np.random.default_rng(SEED)

    def network(self):
        """The network of independent columns."""
        n_features = len(self.prior.column)
        return FeatureNetwork(self.bases, np.zeros((n_features + 1, n_features), self.dtype))

    def run(self, network, monitor):
        """Fit, from a network on, whose parameters the monitor keeps."""
        n_rounds = N_ESTIMATES if self.is_exact else N_ROUNDS
        n_rounds, scaling, mean, k = min(n_rounds, monitor.max_iter), None, 0, 0
        while k < n_rounds:
            n_averaged = 0 if self.is_exact else k + 1 - max(n_rounds - N_AVERAGED, 0)
            if not self.is_exact:
                monitor.bar.total = n_rounds
            objective = self.objective(network, 1.0 if n_averaged > 0 else (k + 1) / n_rounds)
            if k in RESCALED:
                second, spread = objective.moments(network.theta)
                stiffness = self.prior.is_given * np.sqrt(objective.penalty.diagonal())
                scaling = Scaling(network.places, second, spread, objective, stiffness)
            if k >= PRIOR_FROM:
                self.prior.estimate(network.coupling, second, spread, self.total)
                objective.penalty = self._penalty()
                scaling.renew(objective)
            point, _ = self._advance(objective, network, scaling, *self._effort(k, monitor))
            network = averaged = network.at(point.theta)
            if n_averaged > 0:
                mean = mean + (point.theta - mean) / n_averaged
                averaged = network.at(mean)
            if self.record(monitor, point, averaged):
                return
            k += 1
            if k == n_rounds >= N_ROUNDS and self._is_rising(monitor):
                n_rounds = min(n_rounds + N_AVERAGED, MOST_ROUNDS, monitor.max_iter)
        if self.is_exact:
            self._finish(objective, network, scaling, monitor)
        else:
            monitor.status = "converged" if n_rounds >= N_ROUNDS else "max_iter"

    def _is_rising(self, monitor):
        """Whether the objective of many rows has risen in the rounds that were averaged."""
        first, last = np.reshape(monitor.values[-N_AVERAGED:], (2, -1)).mean(axis=1)
        return self.total > MANY_ROWS and last - first > RISING * self.total * len(self.bases)

    def _finish(self, objective, network, scaling, monitor):
        """Go on to the maximum."""
        monitor.status = "max_iter"
        first = len(monitor.values)
        for k in range(first, monitor.max_iter):
            least = monitor.tol / self.total
            point, rise = self._advance(objective, network, scaling, LAST_STEPS, least)
            network, before = network.at(point.theta), monitor.values[-1]
            if self.record(monitor, point, network):
                return
            gain = monitor.values[-1] - before
            if rise * self.total < self._resolution(point, monitor) or (
                gain < NEAR and k >= first + MOST_TO_TOL
            ):
                monitor.status = "converged"
                return

    def _resolution(self, point, monitor):
        """Nats that an iteration gains at least: `tol`, or what rounding lets us see."""
        rounding = np.finfo(self.dtype).eps * abs(point.value) * self.total
        return max(monitor.tol, rounding)

    def _effort(self, k, monitor):
        """The steps of round k at most, and what one has to gain for another to follow."""
        if self.is_exact:
            return STEPS_COMPLETE if k else FIRST_STEPS, monitor.tol / self.total
        if k >= N_ROUNDS:
            return MORE_STEPS, MORE_WORTH * len(self.bases)
        n_steps = ROWS_OF_STEPS // min(len(self.codes), self.most_rows)
        n_steps = int(np.clip(n_steps, FEWEST_STEPS, MOST_STEPS)) if k else FIRST_STEPS
        return n_steps, WORTH * len(self.bases)

    def _advance(self, objective, network, scaling, n_steps, worth):
        """Some steps, until one gains too little; -> the point, and the gain of the last step."""
        point, rise = objective.at(network.theta), 0.0
        points = self.solver.points(objective, point, scaling, worth)
        for after in islice(points, n_steps):
            rise, point = after.value - point.value, after
            if rise < worth:
                break
        return point, rise

    def record(self, monitor, point, network):
        """Tell the monitor of a round; -> whether to stop."""
        value = point.value * self.total + self.constant
        of_row = f"{value / self.total:.6f} a row"
        monitor.add(value, network, f"round {len(monitor.values) + 1}: {of_row}")
        if monitor.stop():
            monitor.status = "asked"
        return monitor.asked

    def model(self, network):
        """The fitted network of all values, whose strongly coupled columns have their shares."""
        objective = self.objective(network)
        shares = np.concatenate([basis.shares for basis in self.bases])
        model = with_marginals(network.model(), objective.codes, objective.weights, shares)
        return network.of_values(model)

    def strength(self):
        """The penalty per row of each pair of columns, for the smoothest functions; 0 of itself."""
        strength = 1 / (self.prior.pairs * self.total)
        np.fill_diagonal(strength, 0)
        return strength

    def _penalty(self):
        return (self.prior.precision() / self.total).astype(self.dtype)

    def _some_rows(self, share):
        """A random choice of a share of the rows, within bounds."""
        n = len(self.codes)
        size = min(n, self.most_rows, max(int(n * share), FEWEST_ROWS))
        return np.arange(n) if size == n else np.sort(self.generator.choice(n, size, replace=False))

    def objective(self, network, share=1.0):
        """The objective of a share of the rows, with draws of their missing cells."""
        rows = np.arange(len(self.codes)) if self.is_exact else self._some_rows(share)
        codes, hidden = self.codes[rows], self.missing[rows]
        if self.completes and hidden.any():
            codes = network.model().draws(codes, N_SWEEPS, self.generator)
        return FeatureObjective(network, codes, ~hidden, self.weights[rows], self._penalty())
