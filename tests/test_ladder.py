"""A ladder of models in general: Bennett's ratio, exchanges, and the constants, by enumeration."""

import re
from copy import deepcopy

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from sklearn.utils import Bunch

from private import Stream, Workers, _estimates, _ladder, _ladder_record

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


# Bennett's ratio.


def test_bennett_by_two_gaussians():
    """ln of the ratio of two widths: within 4 standard errors (false alarm 6e-5)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=4000), 1 + 1.5 * rng.normal(size=4000)

    def forward(x):
        return -((x - 1) ** 2) / 4.5 + x**2 / 2

    ratio, error = _ladder.bennett(forward(a), -forward(b))
    assert 0 < error < 0.05
    assert abs(ratio - np.log(1.5)) < 4 * error


def test_a_chain_contributes_what_its_weight_moves():
    """To the root of Bennett's equation, in which each chain has a weight."""
    rng, n = np.random.default_rng(0), 5
    forward, backward = rng.normal(1, 1, (1, 8, n)), rng.normal(0, 1, (1, 8, n))

    def root(weights):
        def off(x):
            return weights @ (expit(forward[0] - x) - expit(backward[0] + x)).mean(axis=0)

        return brentq(off, -10, 10, xtol=1e-14)

    step, equal = 1e-5, np.full(n, 1 / n)
    slopes = [(root(equal + step * e) - root(equal - step * e)) / (2 * step) for e in np.eye(n)]
    found = _ladder_record.ratios_by_chain(forward, backward)[0]
    np.testing.assert_allclose(found - root(equal), slopes, atol=1e-6)


def test_ratios_of_a_pair_are_means_of_blocks():
    rng, pair = np.random.default_rng(0), _ladder.Pair()
    rounds = rng.normal(size=(7 * _ladder.BLOCK_ROUNDS, 2, 20))

    def of_block(some):
        return _ladder.bennett(*np.swapaxes(some, 0, 1).reshape(2, -1))

    blocks = [of_block(block) for block in rounds.reshape(7, _ladder.BLOCK_ROUNDS, 2, 20)]
    n_first = 2 * _ladder.BLOCK_ROUNDS + 2
    for forward, backward in rounds[:n_first]:
        pair.add(forward, backward)
    rest, error = of_block(rounds[2 * _ladder.BLOCK_ROUNDS : n_first])
    share = 2 / n_first  # of the rounds of the open block
    value, std_err = pair.log_ratio()
    assert value == pytest.approx(share * rest + (1 - share) * (blocks[0][0] + blocks[1][0]) / 2)
    # An error falls with the root of the number of rounds.
    assert std_err == pytest.approx(error * np.sqrt(share))
    for forward, backward in rounds[n_first:]:
        pair.add(forward, backward)
    values = np.array([value for value, _ in blocks])
    assert pair.log_ratio() == pytest.approx((values.mean(), values.std(ddof=1) / np.sqrt(7)))


def test_means_and_errors_by_hand_and_the_first_quarter_of_a_record():
    mean, error = _ladder_record.mean_and_error(np.array([[1.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_allclose(mean, [2, 0])
    np.testing.assert_allclose(error, [1, 0])
    record = _ladder_record.Record(None, None)
    record.blocks = list(range(8))
    assert record.kept() == list(range(2, 8))


# Rounds.


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


def test_a_broken_ladder_says_so():
    states = np.random.default_rng(0).integers(N_STATES, size=(2, 50))
    hill = 50 * np.cos(2 * np.pi * np.arange(N_STATES) / N_STATES)
    ladder = _ladder.Ladder([Walk(hill, states[0]), Walk(-hill, states[1])], 0.0, Stream(1))
    for _ in range(20):
        ladder.round(WORKERS, n_steps=20)
    assert ladder.is_broken()


def test_rungs_come_and_go():
    """ln Z with four rungs, and with three of them: within 4 standard errors."""
    ladder, top = two_valleys(barrier=3, n_rungs=3, seed=0)
    kept, start = deepcopy(ladder), ladder.rungs[0].states.copy()
    ladder.round(WORKERS)
    ladder.insert(1, Walk(0.25 * top, ladder.rungs[0].states.copy()))
    for n_rungs in (4, 3):
        if n_rungs == 3:
            ladder.remove(2)
            assert len(ladder.pairs) == 2 and np.isfinite(ladder.log_partitions()).all()
        for _ in range(200):
            ladder.round(WORKERS, n_steps=20)
        values, errors = ladder.log_partitions()
        assert len(values) == n_rungs
        assert abs(values[-1] - logsumexp(top)) < 4 * errors[-1]
    # A copy has states of its own.
    assert (kept.rungs[0].states == start).all() and kept.n_rounds == 0


# Estimates.


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


def test_an_estimate_stands_and_a_message_says_where_it_is_too_low():
    estimate = Bunch(method="ladder", value=10.0)
    assert _estimates.contradiction(estimate, Bunch()) is None
    assert _estimates.contradiction(estimate, Bunch(low=9.0, value=12.0)) is None
    higher = Bunch(low=11.0, value=14.0)
    assert _estimates.contradiction(Bunch(method="exact", value=10.0), higher) is None
    message = _estimates.contradiction(estimate, higher)
    assert message.startswith("log_partition_ is 10.0, but an AIS run shows that ln Z is at least")
    assert (
        "too high by 1.0 nats or more. -free_energy(X) minus `value` of that run, 14.0" in message
    )


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
    # Both figures are in the sentence where the ends are wide.
    wide = f"It is 10.0 by .* and {ais.value:.1f} by annealed"
    assert (re.search(wide, found.verdict) is None) == (found.high - found.low < 1.2)


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
