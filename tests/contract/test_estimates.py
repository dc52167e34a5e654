"""What an estimate of ln Z is worth."""

import warnings

import numpy as np
import pytest
from contract.frames import bits
from scipy.special import gammaln, logsumexp

from sklearn_boltz import SDCPRBM


def test_every_ais_run_gives_a_floor():
    model = SDCPRBM(6, max_iter=3, init=2.0, random_state=0).fit(bits(200))
    exact = model.log_partition("exact")
    assert exact.low == exact.high == exact.value and exact.verdict == "Exact, by enumeration."
    # By Markov's inequality the floor fails in 5 % of the runs at most: more than 4 of 20
    # fail with a probability below 0.3 %.
    failed, few = 0, dict(n_chains=2, n_temperatures=1)
    for seed in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = model.log_partition("ais", random_state=seed, **few)
        assert estimate.low == estimate.value - 3 and estimate.high == np.inf
        failed += estimate.low > exact.value
    assert failed <= 4


@pytest.fixture
def two_modes():
    """An RBM with nearly all of its mass far from the rows that it was fitted to, and ln Z."""
    rows = np.zeros((50, 20), np.float32)
    rows[:, 0] = np.arange(50) % 2
    model = SDCPRBM(20, max_iter=0, random_state=0).fit(rows)
    model.components_ = np.full((20, 20), 0.6, np.float32)
    model.intercept_hidden_ = np.full(20, -4, np.float32)
    model.intercept_visible_ = np.full(20, -4, np.float32)
    n_on = np.arange(21)  # all units are alike
    log_choices = gammaln(21) - gammaln(n_on + 1) - gammaln(21 - n_on)
    return model, rows, logsumexp(log_choices - 4 * n_on + 20 * np.logaddexp(0, 0.6 * n_on - 4))


def test_contradicting_estimates_are_not_trusted(two_modes):
    model, rows, exact = two_modes
    options = dict(n_chains=50, n_temperatures=300, random_state=0)
    with pytest.warns(UserWarning, match="AIS shows that ln Z is at least .* score_samples uses"):
        estimate = model.log_partition("raise", X=rows, **options)
    # From the rows, the chains never meet the other mode.
    assert estimate.value < exact - 10 and not estimate.trusted
    assert estimate.value < estimate.low <= exact
    assert estimate.high == np.inf
    assert model.log_partition_ == pytest.approx(exact, abs=1)


def test_scores_stay_and_warn_where_a_greater_estimate_is_known(two_modes, monkeypatch):
    model, rows, _ = two_modes
    # The first estimate has too few temperatures to find the other mode.
    poor = model.log_partition
    few = dict(n_chains=5, n_temperatures=2)
    monkeypatch.setattr(model, "log_partition", lambda **options: poor("ais", **few, **options))
    with pytest.warns(UserWarning, match="not to be trusted"):
        before = model.log_partition_
    monkeypatch.undo()
    better = model.log_partition("ais", n_temperatures=1000, random_state=0)
    assert better.low > before + 10
    row = rows[:1]
    with pytest.warns(UserWarning, match="ln Z is at least .* too high by .* nats or more"):
        scores = model.score_samples(row)
    np.testing.assert_array_equal(scores, -model.free_energy(row) - before)
