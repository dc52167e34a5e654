"""Probabilistic circuits of other packages. An ImportError says that one is not installed.

Of ``deeprob-kit``, there are ensembles of random circuits. Of ``spflow`` 1.1, there are continuous
mixtures; its estimator for scikit-learn has Gaussian leaves alone, its LearnSPN and its cutset
networks fail where a column is constant in a cluster, and its EM of hidden Chow-Liu trees stays at
independent columns. ``pyjuice`` 2.6 needs an NVIDIA GPU.
"""

from contextlib import redirect_stdout
from io import StringIO


def random_circuits(X, seed, min_rows, n_circuits=50):
    """The log-likelihoods of rows under an ensemble learned from X (XPC), as a function of them."""
    import numpy as np
    from deeprob.spn.algorithms.inference import log_likelihood
    from deeprob.spn.learning.wrappers import learn_estimator
    from deeprob.spn.structure.leaf import Bernoulli

    d = X.shape[1]
    with redirect_stdout(StringIO()):
        circuit = learn_estimator(
            X.astype(np.float32), [Bernoulli] * d, [[0, 1]] * d, method="ensemble-xpc",
            ensemble_dim=n_circuits, det=False, sd_level=0, min_part_inst=min_rows, conj_len=2,
            arity=4, random_seed=seed,
        )  # fmt: skip
    return lambda rows: log_likelihood(circuit, rows.astype(np.float32)).ravel()


def continuous_mixture(X, valid, seed, n_epochs):
    """A mixture over four Gaussian latent variables (Correia et al., 2023), by quadrature."""
    import torch
    from spflow.zoo.cms.continuous_mixtures import learn_continuous_mixture_factorized

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    X, valid = (torch.as_tensor(rows, dtype=torch.float32) for rows in (X, valid))
    settings = dict(leaf="bernoulli", val_data=valid, num_epochs=n_epochs, num_points_eval=1024)
    mixture = learn_continuous_mixture_factorized(X, seed=seed, **settings)

    @torch.no_grad()
    def of_rows(X):
        found = mixture.log_likelihood(torch.as_tensor(X, dtype=torch.float32))
        return found.reshape(len(X), -1).sum(axis=1).numpy()

    return of_rows
