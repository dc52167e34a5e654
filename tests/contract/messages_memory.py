"""What does not fit into a gibibyte: the size, the limit and a remedy."""

from unittest.mock import patch

import numpy as np
from contract.frames import bits
from scipy.sparse import csr_array

from private import _memory, _size, dense
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    RBMClassifier,
    SparseFVBM,
    statistics,
)
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Categorical

X = bits(40)
WIDE = np.random.default_rng(0).integers(2, size=(3, 100_000))
WORDS = np.random.default_rng(0).integers(3, size=(9, 2000))


def covariance():
    model = FVBMPseudoLikelihood(alpha=0.1, max_iter=1, missing="observed").fit(WIDE[:, :200])
    return statistics.inference(model, WIDE[:, :200])


def edges():
    model = FVBMPseudoLikelihood(alpha=0.1, max_iter=1, missing="observed").fit(bits(40, 9))
    return statistics.edge_inclusion(model, bits(40, 9), n_sweeps=10**7)


def within_a_gibibyte(call):
    def limited():
        with (
            patch.object(_memory, "available_memory", lambda: 2**30),
            patch.object(_size, "available_memory", lambda: 2**30),
            np.errstate(all="ignore"),
        ):
            call()

    return limited


TOO_LARGE = {
    "tables of 27 columns": lambda: FSLLDensity(dtype=np.float64).fit(
        np.random.default_rng(0).integers(2, size=(99, 27))
    ),
    "couplings": lambda: FVBMPseudoLikelihood().fit(WIDE),
    "couplings chosen by a penalty": lambda: SparseFVBM(penalty="l1").fit(WIDE),
    "couplings from batches": lambda: FVBMPseudoLikelihood().fit(Batches([WIDE])),
    "couplings of categories": lambda: FVBMPseudoLikelihood().fit(WORDS),
    "couplings of 30,000 values": lambda: FVBMPseudoLikelihood(columns=range(30_000)).fit(
        WORDS[:, :3]
    ),
    "covariance": covariance,
    "chains of edges": edges,
    "hidden units": lambda: SDCPRBM(10**9).fit(X),
    "weights": lambda: SDCPRBM(10**8).fit(X),
    "weights of a batch": lambda: SDCPRBM(10**8).partial_fit(X),
    "weights by mean fields": lambda: TAPRBM(10**8).fit(X),
    "weights of layers": lambda: TAPDBM((10**5, 10**6)).fit(X),
    "weights of a classifier": lambda: RBMClassifier(10**9).fit(X, X[:, 0]),
    "hidden units with states": lambda: SDCPRBM(10**8, hidden=("categorical", 3)).fit(X),
    "states of a unit": lambda: Categorical([10**9]),
    "states that no integer counts": lambda: Categorical([2**62] * 4),
    "a sparse table": lambda: dense(csr_array((10**6, 10**6))),
}
CASES = {what: within_a_gibibyte(call) for what, call in TOO_LARGE.items()}
