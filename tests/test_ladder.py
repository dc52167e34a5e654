"""A ladder of models in general: Bennett's ratio, exchanges, and the constants, by enumeration."""

import re

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.utils import Bunch

from private import Stream, Workers, _estimates, _ladder

N_STATES = 40
WORKERS = Workers(1)


class Walk:
    """A distribution on a line of states, with chains that step to a neighbour by Metropolis."""

    cost = 1

    def __init__(self, log_density, states):
        self.log_density, self.states = log_density, states

    def __len__(self):
        return len(self.states)

    def copy(self):
        return Walk(self.log_density, self.states.copy())

    def move(self, n_steps, stream, first_row):
        for _ in range(n_steps):
            u = stream.uniform((len(self), 2), first_row=first_row)
            there = (self.states + np.where(u[:, 0] < 0.5, -1, 1)) % N_STATES
            rise = self.log_density[there] - self.log_density[self.states]
            self.states = np.where(np.log(u[:, 1]) < rise, there, self.states)

    def log_weights(self, other):
        return self.log_density[other.states]

    def swap(self, other, chains):
        self.states[chains], other.states[chains] = other.states[chains], self.states[chains].copy()


def two_valleys(barrier, n_rungs=8, n_chains=50, seed=None):
    """From the uniform distribution to one with two modes, the second three times the first.

    All chains begin in one mode, or with a seed anywhere.
    """
    angle = 2 * np.pi * np.arange(N_STATES) / N_STATES
    top = barrier / 2 * np.cos(2 * angle) + np.log(3) / 2 * np.cos(angle)
    start = np.zeros(n_chains, int)
    if seed is not None:
        start = np.random.default_rng(seed).integers(N_STATES, size=n_chains)
    rungs = [Walk(beta * top, start.copy()) for beta in np.linspace(0, 1, n_rungs)]
    return _ladder.Ladder(rungs, np.log(N_STATES), Stream(1)), top


def test_bennett_by_two_gaussians():
    """ln of the ratio of two widths: within 4 standard errors (false alarm 6e-5)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=4000), 1 + 1.5 * rng.normal(size=4000)

    def forward(x):
        return -((x - 1) ** 2) / 4.5 + x**2 / 2

    ratio, error = _ladder.bennett(forward(a), -forward(b))
    assert 0 < error < 0.05
    assert abs(ratio - np.log(1.5)) < 4 * error


def test_constants_and_shares_behind_a_barrier():
    """A barrier of 12 nats that chains of the top cannot pass: ln Z within 4 standard errors."""
    ladder, top = two_valleys(barrier=12)
    for _ in range(600):
        ladder.round(WORKERS, n_steps=5)
    values, errors = ladder.log_partitions()
    exact = [logsumexp(rung.log_density) for rung in ladder.rungs]
    assert errors[-1] < 0.1
    assert np.abs((values - exact)[1:] / errors[1:]).max() < 4
    density = np.exp(top - logsumexp(top))
    near = np.abs((np.arange(N_STATES) + N_STATES / 4) % N_STATES - N_STATES / 4) < N_STATES / 4
    share = np.isin(ladder.rungs[-1].states, np.flatnonzero(near)).mean()
    # 50 chains at the end: 4 standard deviations.
    assert abs(share - density[near].sum()) < 4 * np.sqrt(0.25 / 50)
    assert not ladder.is_broken()
    assert np.isnan(_ladder.Pair().log_ratio()[0]) and _ladder.Pair().log_ratio()[1] == np.inf


def test_figures_of_weights_by_hand():
    estimate = _estimates.estimate_from_weights("ais", np.log([1.0, 3.0]), 1, None)
    assert estimate.value == pytest.approx(np.log(2))
    # The standard deviation is √2, that of the mean 1, and the mean 2.
    assert estimate.std_err == pytest.approx(0.5)
    assert estimate.ess == pytest.approx(16 / 10)
    assert estimate.low == pytest.approx(np.log(2) - 3)
    # Chains that go back bound the inverse: from below, nothing is known.
    assert _estimates.estimate_from_weights("raise", np.log([1.0, 3.0]), -1, None).low == -np.inf
    # Without a spread, four chains are too few all the same.
    few, enough = (_estimates.estimate_from_weights("ais", np.zeros(n), 1, None) for n in (4, 5))
    assert (few.std_err, few.trusted, enough.trusted) == (0, False, True)
    assert _estimates.estimate_from_weights("ais", np.zeros(1), 1, None).std_err == np.inf


def test_estimates_are_printed_without_their_arrays():
    ais = _estimates.estimate_from_weights("ais", np.ones(100), 1, np.zeros((100, 3)))
    assert str(_estimates.estimate_from_value(2.5)) == "ln Z = 2.5 (exact). Exact, by enumeration."
    assert repr(ais).startswith("ln Z = 1, from -2 to inf (ais). ")
    ais.update(std_err=0.0123, low=-np.inf)
    assert str(ais).startswith("ln Z = 1 ± 0.012 (ais). ") and "array" not in str(ais)


def climbed(**figures):
    estimate = Bunch(value=10.0, std_err=0.05, low=9.9, high=10.1, ess=50.0, method="ladder",
                     trusted=True, verdict="The ladder's: 10.0.")  # fmt: skip
    estimate.update(figures)
    return estimate


def annealed(about, **figures):
    noise = np.random.default_rng(0).normal(0, 0.3, 200)
    estimate = _estimates.estimate_from_weights("ais", about - 0.3**2 / 2 + noise, 1, None)
    estimate.update(value=about, low=about - 3, **figures)
    return estimate


LUCKY, BAD = {"ess": 1.5}, {"trusted": False, "low": -np.inf, "high": np.inf}


@pytest.mark.parametrize(
    ("other", "ais", "expected"),
    [
        # They agree: the ends are those of the ladder, and the annealed ones or their floor.
        ({}, annealed(10.0), ("ladder", 10.0, 9.9, 10.1, True)),
        ({}, annealed(10.1), ("ladder", 10.0, 9.9, 10.1, True)),
        ({}, annealed(12.95, **LUCKY), ("ladder", 10.0, 9.95, 10.1, True)),
        # They differ by five standard errors, of both; the annealed one is too low by half a nat.
        ({}, annealed(11.0, std_err=0.3), ("ladder", 10.0, 9.9, 11.0, True)),
        ({}, annealed(9.6, std_err=0.03), ("ladder", 10.0, 9.6, 10.1, True)),
        ({}, annealed(11.0, std_err=0.1), ("ais", 11.0, 8.0, 14.0, False)),
        ({}, annealed(8.0, std_err=0.1), ("ladder", 10.0, 5.0, 13.0, False)),
        # One that one chain carries may be by chance; but not by more than three nats.
        ({}, annealed(12.0, **LUCKY), ("ladder", 10.0, 9.9, 10.1, True)),
        ({}, annealed(15.0, **LUCKY), ("ais", 15.0, 12.0, 18.0, False)),
        # A bad one leaves the other, which it does not confirm.
        (BAD, annealed(9.6), ("ais", 9.6, 6.6, 13.0, False)),
        (BAD, annealed(10.4), ("ais", 10.4, 7.4, 13.4, False)),
        (BAD, annealed(8.0, trusted=False), ("ladder", 10.0, 5.0, 13.0, False)),
        (BAD, annealed(12.0, trusted=False), ("ais", 12.0, 9.0, 15.0, False)),
        # Unless it is below a sum that the bad one is not.
        (BAD | {"low": 8.5}, annealed(8.0), ("ladder", 10.0, 8.5, 13.0, False)),
        # Chains that are annealed back confirm within half a nat; they do not count by themselves.
        ({"method": "raise"}, annealed(9.6), ("ais", 9.6, 6.6, 13.0, True)),
        ({"method": "raise"}, annealed(10.4), ("ais", 10.4, 7.4, 13.4, True)),
        ({"method": "raise"}, annealed(9.0), ("ais", 9.0, 6.0, 13.0, False)),
        ({"method": "raise"}, annealed(9.9, trusted=False), ("ais", 9.9, 6.9, 13.0, False)),
    ],
)
def test_two_estimates_are_combined(other, ais, expected):
    found = _estimates.combined(climbed(**other), Bunch(**ais))
    method, *figures, trusted = expected
    assert (found.method, found.trusted) == (method, trusted)
    np.testing.assert_allclose((found.value, found.low, found.high), figures)
    assert ("contradict" in found.verdict) == (not trusted and not other)
    # Both figures are in the sentence where the ends are not to be trusted, and these where wide.
    wide = f"It is 10.0 by .* and {ais.value:.1f} by annealed"
    assert (re.search(wide, found.verdict) is None) == (found.high - found.low < 1.2)
    ends = f"between {found.low:.1f} and {found.high:.1f}"
    is_wide = _estimates.has_wide_ends(found)
    assert (ends in found.verdict) == is_wide == (found.high - found.low > 1)


@pytest.mark.parametrize(
    ("n_near", "n_far", "alike"),
    [(0, 1, True), (0, 5, False), (20, 20, True), (20, 34, True), (20, 36, False), (26, 20, False)],
)
def test_chains_far_away_leave_as_easily(n_near, n_far, alike):
    """Of 50 and 50 chains so many have not left: two standard deviations more, at most."""
    ladder = _ladder.Ladder([range(100), range(100)], 0.0, None)
    ladder.origins[-1][:] = np.ravel([np.arange(50) >= n_near, np.arange(50) >= n_far], order="F")
    assert ladder.n_left() == n_near + n_far and not ladder.leaves_alike()
    ladder.explored = np.arange(100) % 2 == 1
    assert ladder.leaves_alike() == alike


def test_a_floor_is_remembered_and_heeded():
    floor, ladder = Bunch(), climbed()
    _estimates.compare_with_floor(annealed(12.0), floor)
    _estimates.compare_with_floor(annealed(11.0), floor)
    assert floor == {"low": 9.0, "value": 12.0}
    _estimates.compare_with_floor(ladder, floor)
    assert ladder.trusted and floor.low == 9.0
    _estimates.compare_with_floor(annealed(13.2), floor)
    _estimates.compare_with_floor(ladder, floor)
    found = "by the ladder, 10, is not to be trusted: an AIS run before says 10.2 at least"
    assert not ladder.trusted and found in ladder.verdict
    for method, name in (("ais", "AIS"), ("raise", "RAISE")):
        estimate = climbed(method=method)
        _estimates.compare_with_floor(estimate, floor)
        assert not estimate.trusted and f"by {name}, 10, is not" in estimate.verdict
    assert (ladder.value, ladder.low, ladder.high) == (10.0, -np.inf, np.inf)
