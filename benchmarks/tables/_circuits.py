"""Probabilistic circuits of other packages. An ImportError says that one is not installed.

``deeprob-kit`` learns the structure of circuits on the processor: LearnSPN, and ensembles of random
circuits. ``spflow`` and ``pyjuice`` are not among them: the EM of hidden Chow-Liu trees of spflow
1.1 stays at independent columns, and pyjuice 2.6 needs an NVIDIA GPU.
"""

from contextlib import redirect_stdout
from io import StringIO


def learned(X, **options):
    """The log-likelihoods of rows under a circuit learned from X, as a function of them."""
    import numpy as np
    from deeprob.spn.algorithms.inference import log_likelihood
    from deeprob.spn.learning.wrappers import learn_estimator
    from deeprob.spn.structure.leaf import Bernoulli

    d = X.shape[1]
    with redirect_stdout(StringIO()):
        circuit = learn_estimator(X.astype(np.float32), [Bernoulli] * d, [[0, 1]] * d, **options)
    return lambda rows: log_likelihood(circuit, rows.astype(np.float32)).ravel()


def learn_spn(X, seed, min_rows):
    """LearnSPN with trees of Chow and Liu as leaves."""
    return learned(
        X, method="learnspn", learn_leaf="binary-clt", split_rows="kmeans", split_cols="gvs",
        min_rows_slice=min_rows, random_state=seed, verbose=False,
    )  # fmt: skip


def random_circuits(X, seed, min_rows, n_circuits=50):
    """An ensemble of random circuits (XPC)."""
    return learned(
        X, method="ensemble-xpc", ensemble_dim=n_circuits, det=False, sd_level=0,
        min_part_inst=min_rows, conj_len=2, arity=4, random_seed=seed,
    )  # fmt: skip
