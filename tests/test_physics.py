"""Models as spins, samplers of a user's own, temperatures and chains: against enumeration.

Random numbers have fixed seeds. What is said to fail by chance with some probability would do so
with others.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from scipy.special import log_softmax
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from oracles_rbm import SmallRBM, binary
from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood, InfiniteRBM, MaximumEntropy
from sklearn_boltz.statistics import (
    autocorrelation_time,
    estimate_inverse_temperature,
    r_hat,
    swendsen_wang,
    to_bqm,
    to_ising,
)


def ising(n, seed=0, scale=0.4):
    rng = np.random.default_rng(seed)
    J = np.triu(rng.normal(0, scale, (n, n)), 1)
    return J + J.T, rng.normal(0, 0.3, n)


def log_weights(J, h):
    """All states of the spins, and ½ s·Js + h·s of each."""
    s = 2.0 * binary(len(h)) - 1
    return s, np.einsum("ki,ij,kj->k", s, J, s) / 2 + s @ h


def exact(J, h, n, rng, beta=1.0):
    """A sampler by enumeration."""
    s, log_w = log_weights(J, h)
    p = np.exp(beta * (log_w - log_w.max()))
    return s[rng.choice(len(s), n, p=p / p.sum())].astype(np.int8)


def hot(J, h, n, rng):
    """A sampler at an inverse temperature of ½."""
    return exact(J, h, n, rng, beta=0.5)


# Models as spins.


@pytest.mark.parametrize("coding", ["spins", "bits"])
def test_couplings_of_a_network_are_those_of_spins(coding):
    network = FVBMPseudoLikelihood.from_couplings(*ising(5), coding=coding)
    J, h = to_ising(network)
    s, log_w = log_weights(J, h)
    p = np.exp(network.score_samples(s if coding == "spins" else (1 + s) / 2))
    assert_allclose(p, np.exp(log_w - np.logaddexp.reduce(log_w)))
    J[:], h[:] = 0, 0  # copies
    assert network.coupling_.any() and network.intercept_.any()


def test_bits_are_those_of_logistic_regressions():
    """Of each column on the others, over all states with their probabilities."""
    network = FVBMPseudoLikelihood.from_couplings(*ising(5))
    J, h = to_ising(network, coding="bits")
    x = (1 + log_weights(J, h)[0]) / 2
    p = np.exp(network.score_samples(2 * x - 1))
    log_w = ((x @ J) * x).sum(axis=1) / 2 + x @ h
    assert_allclose(p, np.exp(log_w - np.logaddexp.reduce(log_w)))
    for j in range(5):
        regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
        regression.fit(np.delete(x, j, axis=1), x[:, j], sample_weight=1e4 * p)
        assert_allclose(regression.coef_[0], np.delete(J[j], j), atol=1e-6)
        assert_allclose(regression.intercept_, h[j], atol=1e-6)
    again = FVBMPseudoLikelihood.from_couplings(J, h, coding="bits")
    assert_allclose(again.coupling_, network.coupling_)
    assert_allclose(again.intercept_, network.intercept_, atol=1e-12)


def test_energies_of_given_bits_have_their_constant():
    """By enumeration; the chains within 5 standard errors, which chance exceeds once in 1e6."""
    (J, h), x = ising(5, scale=1.0), binary(5).astype(float)
    network = FVBMPseudoLikelihood.from_couplings(J, h, coding="bits")
    log_w = ((x @ J) * x).sum(axis=1) / 2 + x @ h
    log_z = np.logaddexp.reduce(log_w)
    assert_allclose(network.energy(x), -log_w, atol=1e-12)
    assert_allclose(network.free_energy(x), -log_w, atol=1e-12)
    pairs = log_w.reshape(8, 4)  # the last two columns are the fastest
    gaps = np.hstack([x[::4, :3], np.full((8, 2), np.nan)])
    assert_allclose(network.free_energy(gaps), -np.logaddexp.reduce(pairs, axis=1), atol=1e-12)
    assert_allclose(network.log_partition_, log_z)
    assert_allclose(network.score_samples(x), log_w - log_z, atol=1e-12)
    for method in ("ladder", "ais"):
        estimate = network.log_partition(method, random_state=0)
        assert abs(estimate.value - log_z) < 5 * estimate.std_err
    # A fit of rows has the energies of spins.
    assert_allclose(
        network.fit(x).energy(np.ones((1, 5))),
        -network.coupling_.sum() / 2 - network.intercept_.sum(),
    )


def given_rbm():
    rng = np.random.default_rng(0)
    return SDCPRBM.from_parameters(*(rng.normal(size=shape) for shape in [(3, 4), 4, 3]))


ROWS = np.random.default_rng(0).integers(2, size=(60, 4))
RBMS = {
    "given": given_rbm,
    "words": lambda: SDCPRBM(3, max_iter=2, random_state=0).fit(np.array(["no", "yes"])[ROWS]),
    "infinite": lambda: InfiniteRBM(max_components=3, random_state=0).fit(ROWS),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", RBMS)
def test_spins_of_an_rbm_have_its_joint_distribution(name):
    rbm = RBMS[name]()
    oracle = SmallRBM(rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
    J, h = to_ising(rbm)
    assert J.dtype == h.dtype == np.float64
    s, log_w = log_weights(J, h)
    V, H = np.split((1 + s) / 2, [4], axis=1)
    energy = -(V @ oracle.W.T * H).sum(axis=1) - V @ oracle.b - H @ oracle.c
    assert np.ptp(log_w + energy) < 1e-5
    p = np.exp(log_w - np.logaddexp.reduce(log_w))
    of_rows = np.zeros(16)
    np.add.at(of_rows, (V @ [8, 4, 2, 1]).astype(int), p)
    order = (oracle.V @ [8, 4, 2, 1]).astype(int)
    assert_allclose(of_rows[order], oracle.p, rtol=1e-5)
    J, h = to_ising(rbm, coding="bits")
    assert_allclose(J[4:, :4], oracle.W)
    assert_allclose(h, np.concatenate([oracle.b, oracle.c]), atol=1e-6)


def quadratic(linear, pairs, offset, vartype):
    """What is used of a model of dimod, where that is not installed."""
    j, k, weights = pairs
    return SimpleNamespace(
        energies=lambda s: s @ linear + (s[:, j] * s[:, k]) @ weights + offset,
        variables=range(len(linear)), num_variables=len(linear), num_interactions=len(j),
    )  # fmt: skip


@pytest.mark.parametrize("is_stub", [False, True])
def test_energies_of_a_binary_quadratic_model(is_stub, monkeypatch):
    if is_stub:
        stub = SimpleNamespace(from_numpy_vectors=quadratic)
        monkeypatch.setitem(sys.modules, "dimod", SimpleNamespace(BinaryQuadraticModel=stub))
    pytest.importorskip("dimod")
    network = FVBMPseudoLikelihood.from_couplings(*ising(5))
    s, log_w = log_weights(*ising(5))
    assert_allclose(to_bqm(network).energies(s), network.energy(s))
    bits = FVBMPseudoLikelihood.from_couplings(*ising(5), coding="bits")
    assert_allclose(to_bqm(bits).energies(s), bits.energy((1 + s) / 2), atol=1e-12)
    rbm = given_rbm()
    bqm, bits = to_bqm(rbm), binary(7).astype(float)
    assert_allclose(bqm.energies(2 * bits - 1), rbm.energy(bits[:, :4], bits[:, 4:]), atol=1e-12)
    assert list(bqm.variables) == list(range(7)) and bqm.num_interactions == 12
    J = np.zeros((3, 3))
    assert to_bqm(FVBMPseudoLikelihood.from_couplings(J)).num_variables == 3


# Samplers in place of chains.


@pytest.mark.parametrize("alpha", [0.0, 0.02])
def test_a_sampler_finds_what_a_table_finds(alpha):
    """Moments within 0.6 standard errors of the maximum: 0.3, and six errors of 40,960 states."""
    x = exact(*ising(6), 1000, np.random.default_rng(0))
    n_drawn = []

    def sampler(J, h, n, rng):
        n_drawn.append(n)
        return exact(J, h, n, rng)

    found = MaximumEntropy(sampler=sampler, alpha=alpha, moment_tol=0.3, random_state=0).fit(x)
    expected = MaximumEntropy(alpha=alpha).fit(x)
    assert found.solver_ == "sampling" and found.converged_ and n_drawn[0] == 1280
    assert expected.score(x) - found.score(x) < 0.5 / len(x)
    assert_allclose(found.coupling_, expected.coupling_, atol=0.6 / np.sqrt(len(x)) * 2)
    last = found.history_["log_likelihood"][-1]
    assert_allclose(last, expected.history_["log_likelihood"][-1], atol=0.1)
    again = MaximumEntropy(sampler=exact, alpha=alpha, moment_tol=0.3, random_state=0).fit(x)
    assert_array_equal(again.coupling_, found.coupling_)


def test_the_moments_are_those_of_the_sampler():
    """A hot one needs couplings that are twice as strong."""
    x = exact(*ising(5, scale=0.3), 4000, np.random.default_rng(0))
    found = MaximumEntropy(sampler=hot, random_state=0).fit(x)
    expected = MaximumEntropy().fit(x)
    assert found.converged_
    assert_allclose(found.coupling_ / 2, expected.coupling_, atol=0.04)
    assert_allclose(found.intercept_ / 2, expected.intercept_, atol=0.04)


@pytest.mark.parametrize("sampler", [exact, hot])
def test_a_step_of_an_rbm_by_a_sampler(sampler):
    """The gradient, within 5.5 standard errors of the means of 40,000 draws: 19 times 4e-8."""
    before, n = given_rbm(), 40_000
    X = np.random.default_rng(1).integers(2, size=(n, 4))
    after = given_rbm().set_params(
        chains=sampler, n_inner=1, centered=False, alpha=0.0, learning_rate=1.0, random_state=0
    ).partial_fit(X)  # fmt: skip
    oracle = SmallRBM(before.components_, before.intercept_visible_, before.intercept_hidden_)
    states, H = oracle.V, oracle.mean_hidden()
    figures = np.hstack([np.einsum("ki,kj->kij", H, states).reshape(16, 12), states, H])
    drawn = np.bincount(X @ [8, 4, 2, 1], minlength=16)[(states @ [8, 4, 2, 1]).astype(int)] / n
    steps = np.concatenate([
        (getattr(after, name) - getattr(before, name)).ravel()
        for name in ("components_", "intercept_visible_", "intercept_hidden_")
    ])  # fmt: skip
    mean = oracle.p @ figures
    error = np.sqrt((oracle.p @ figures**2 - mean**2) / n)
    z = np.abs(steps - (drawn @ figures - mean)) / error
    assert (z.max() < 5.5) == (sampler is exact)


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_clusters_have_the_law_of_the_spins(scale):
    """Frequencies of 32 states in 10,000 draws, of which each one is independent."""
    J, h = ising(5, scale=scale)
    J[0, 1:] = J[1:, 0] = 0
    states, log_w = log_weights(J, h)
    drawn = swendsen_wang(J, h, 10_000, np.random.default_rng(0))
    assert drawn.dtype == np.int8 and drawn.shape == (10_000, 5)
    counts = (drawn @ 2 ** np.arange(5)[:, np.newaxis] == states @ 2 ** np.arange(5)).sum(axis=0)
    expected = 10_000 * np.exp(log_w - np.logaddexp.reduce(log_w))
    # By chance once in 10,000; states of fewer than ten draws count as one.
    few = expected < 10
    counts, expected = (np.append(a[~few], a[few].sum() + 1e-9) for a in (counts, expected))
    assert ((counts - expected) ** 2 / expected).sum() < chi2(len(counts) - 1).isf(1e-4)


# Temperatures.


def test_the_inverse_temperature_is_the_maximum_of_the_pseudo_likelihood():
    J, h = ising(5, scale=1.0)
    x = exact(J, h, 200, np.random.default_rng(0))
    fields = x @ J + h

    def loss(beta):
        return np.logaddexp(0, -2 * beta * x * fields).sum()

    beta, std_err = estimate_inverse_temperature(FVBMPseudoLikelihood.from_couplings(J, h), x)
    assert beta == pytest.approx(minimize_scalar(loss, tol=1e-12).x, rel=1e-6)
    scores = (x * fields * (1 - np.tanh(beta * x * fields))).sum(axis=1)
    information = (fields**2 / np.cosh(beta * fields) ** 2).sum()
    expected = np.sqrt(200 / 199 * (scores**2).sum()) / information
    assert std_err == pytest.approx(expected, rel=1e-6)


def test_the_inverse_temperature_of_categories():
    rows = np.random.default_rng(0).integers(3, size=(100, 3))
    network = FVBMPseudoLikelihood(columns=[range(3)] * 3, alpha=0.01).fit(rows)
    x = network.sample(200, random_state=0)
    blocks = network.coupling_.reshape(3, 3, 3, 3)

    def loss(beta):
        total = 0.0
        for j in range(3):
            fields = network.intercept_[3 * j : 3 * j + 3] + sum(
                blocks[j, :, k, x[:, k]] for k in range(3) if k != j
            )
            total -= log_softmax(beta * fields, axis=1)[np.arange(200), x[:, j]].sum()
        return total

    beta, _ = estimate_inverse_temperature(network, x)
    assert beta == pytest.approx(minimize_scalar(loss, tol=1e-12).x, rel=1e-5)


@pytest.mark.parametrize("beta", [-1.5, 1.0])
def test_the_error_of_an_inverse_temperature_is_right(beta):
    """Squares of 100 differences in standard errors; each bound fails by chance once in 20,000."""
    rng, z = np.random.default_rng(0), []
    for seed in range(100):
        J, h = ising(6, seed)
        network = FVBMPseudoLikelihood.from_couplings(J, h)
        found, std_err = estimate_inverse_temperature(network, exact(J, h, 1000, rng, beta))
        z.append((found - beta) / std_err)
    assert chi2(100).ppf(5e-5) < np.sum(np.square(z)) < chi2(100).isf(5e-5)


def test_inverse_temperatures_without_end():
    network = FVBMPseudoLikelihood.from_couplings([[0, 1], [1, 0]])
    for rows, expected in ([[1, 1], [-1, -1]], np.inf), ([[1, -1], [-1, 1]], -np.inf):
        beta, std_err = estimate_inverse_temperature(network, rows)
        assert beta == expected and np.isnan(std_err)


# Chains.


@pytest.mark.parametrize(("phi", "n_chains"), [(-0.5, 8), (0.0, 1), (0.9, 1), (0.5, 8)])
def test_the_time_of_autoregressive_chains(phi, n_chains):
    """(1 + φ) / (1 - φ), except for late terms: beyond four standard errors once in 15,000."""
    rng, n = np.random.default_rng(1), 200_000
    first = rng.normal(size=(n_chains, 1)) / np.sqrt(1 - phi**2)
    x, _ = lfilter([1], [1, -phi], rng.normal(size=(n_chains, n // n_chains)), zi=phi * first)
    window = 5 * max((1 + phi) / (1 - phi), 1)
    tau = 1 + 2 * sum(phi**t for t in range(1, int(window) + 1))
    error = tau * np.sqrt(2 * (2 * window + 1) / n)
    assert abs(autocorrelation_time(x) - tau) < 4 * error
    if n_chains == 1:
        assert autocorrelation_time(x[0]) == autocorrelation_time(x)


def test_r_hat_compares_halves_of_chains():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 101))
    halves = [half for chain in x for half in (chain[:50], chain[51:])]
    W = np.mean([np.var(half, ddof=1) for half in halves])
    B = 50 * np.var([np.mean(half) for half in halves], ddof=1)
    assert r_hat(x) == pytest.approx(np.sqrt((49 / 50 * W + B / 50) / W))
    # Chains at ±1 with a variance of 1: the variance of the 8 means is 8 / 7.
    apart = rng.normal(size=(4, 100_000)) + [[1], [1], [-1], [-1]]
    assert r_hat(apart) == pytest.approx(np.sqrt(1 + 8 / 7), rel=0.01)
    drift = rng.normal(size=(1, 100_000)) + np.repeat([-1, 1], 50_000)
    assert r_hat(drift) == pytest.approx(np.sqrt(1 + 2), rel=0.01)
    assert np.isnan(autocorrelation_time(np.ones((2, 10)))) and np.isnan(r_hat(np.ones((2, 10))))
