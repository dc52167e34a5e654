"""Networks and RBMs with given parameters: their distributions by enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oracles_rbm import SmallRBM, binary
from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood


def couplings(n, seed=0):
    rng = np.random.default_rng(seed)
    J = np.triu(rng.normal(size=(n, n)), 1)
    return J + J.T, rng.normal(size=n)


@pytest.mark.parametrize("coding", ["spins", "bits"])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_couplings_are_those_of_the_energy(n, coding):
    (J, h), bits = couplings(n), binary(n)
    x = 2 * bits - 1 if coding == "spins" else bits
    weights = np.exp(np.einsum("ki,ij,kj->k", x, J, x) / 2 + x @ h)
    network = FVBMPseudoLikelihood.from_couplings(J, h, coding=coding)
    assert_allclose(np.exp(network.score_samples(x)), weights / weights.sum())
    assert set(np.unique(network.sample(50, random_state=0))) <= set(np.unique(x))
    assert network.get_params() == FVBMPseudoLikelihood().get_params()
    plain = FVBMPseudoLikelihood.from_couplings(J, coding=coding)
    zeros = FVBMPseudoLikelihood.from_couplings(J, np.zeros(n), coding=coding)
    assert_array_equal(plain.score_samples(x), zeros.score_samples(x))
    for shape in ((1, n), (n, 1)):  # a row or a column
        other = FVBMPseudoLikelihood.from_couplings(J, h.reshape(shape), coding=coding)
        assert_array_equal(other.intercept_, network.intercept_)


def test_a_network_of_couplings_learns_from_rows_of_its_own():
    rows = np.random.default_rng(0).choice([-1, 1], size=(300, 4))
    network = FVBMPseudoLikelihood.from_couplings(*couplings(4))
    network.set_params(alpha=0.1).partial_fit(rows)
    expected = FVBMPseudoLikelihood(alpha=0.1).fit(rows)
    assert_allclose(network.coupling_, expected.coupling_, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_are_those_of_the_rbm(dtype):
    rng = np.random.default_rng(0)
    W, b, c = (rng.normal(size=shape).astype(dtype) for shape in [(3, 5), 5, 3])
    rbm, exact = SDCPRBM.from_parameters(W, b, c), SmallRBM(W, b, c)
    assert_allclose(np.exp(rbm.score_samples(exact.V)), exact.p, rtol=1e-5)
    assert rbm.components_.dtype == dtype and rbm.get_params() == SDCPRBM(3).get_params()
    for shape in ((1, -1), (-1, 1)):
        other = SDCPRBM.from_parameters(W, b.reshape(shape), c.reshape(shape))
        assert_array_equal(other.score_samples(exact.V), rbm.score_samples(exact.V))
    W[...] = 0  # the RBM has a copy
    assert rbm.components_.any()
    rows = exact.V[rng.choice(32, 200)].astype(dtype)
    rbm.set_params(warm_start=True, max_iter=2, random_state=0).fit(rows)
    assert rbm.n_iter_ == 2
