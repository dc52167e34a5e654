"""Repeated fits of one estimator, to the same rows with other weights."""

import warnings
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.location._fit import completed, fit_one
from sklearn_boltz.numerics._threads import limit_blas
from sklearn_boltz.tables._weights import are_counts

# NumPy draws from fewer copies than 1e9. Where there are more, one stands for some.
MOST_COPIES = 5e8


class Refits(NamedTuple):
    """Fits of copies of a network to weighted rows.

    Attributes
    ----------
    model : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        Fitted.
    rows : ndarray of int of shape (n_samples, n_features)
        The codes of the values, -1 for a missing cell.
    z : ndarray of float64 of shape (n_samples, n_scored)
        Normal scores of numbers, NaN where there is none.
    params : dict
        Other parameters of the copies.
    """

    model: object
    rows: np.ndarray
    z: np.ndarray
    params: dict = {}

    def fit(self, weights, initial=(None, None)):
        """A copy fitted to the rows whose weight is positive.

        There are no warnings about these rows; if there is no maximum, `converged_` is False. BLAS
        has one thread, so that the result does not depend on how many fits there are at a time. The
        Gaussian of scores is a single one, without a penalty if the network has none.
        """
        kept = (weights > 0) & (self.rows >= 0).any(axis=1)
        codes, z, weights = self.rows[kept], self.z[kept], weights[kept]
        codes[:, (codes < 0).all(axis=0)] = 0
        with warnings.catch_warnings(), limit_blas(1):
            warnings.simplefilter("ignore", UserWarning)
            model = self.model._refitted(codes, weights, initial, **self.params)
            if z.shape[1]:
                (rows,) = completed(model._model().potts, codes, [z], weights)
                strength, ridge = (0.0, 0.0) if model.alpha == 0 else (1.0, None)
                model._gaussians = fit_one(rows, strength, ridge=ridge)
        return model


def codes_and_scores(model, X):
    """Codes of rows, -1 for a missing cell, and normal scores of numbers, (n, n_scored)."""
    if model._gaussians is not None:
        rows = model._rows_of(X, model._known_cells(X))
        return rows.codes, rows.scores[..., 0]
    codes = model._codes(X)
    return codes, np.empty((len(codes), 0))


def resampled(network, codes, weights):
    """The network that the bootstrap is of: with bins this one, else that of standard errors.

    Bins have many couplings, whose maximum without a penalty is often at infinity.
    """
    bins = network._encoder.is_binned & (network.n_values_ > 2)
    return network if bins.any() else network._unpenalised(codes, weights)


def all_couplings(model):
    """`coupling_`, or where numbers have normal scores those of the joint network."""
    return model.coupling_ if model._gaussians is None else model._joint_network()[0]


def refuse_scores(model, reason, remedy):
    """Refuse networks of numbers that have normal scores."""
    scored = np.flatnonzero(model._encoder.is_scored)
    if len(scored):
        raise ValueError(f"{reason}, and {model._have(scored)} normal scores. {remedy}")


def n_divisible(weights):
    """How many rows can be divided: copies of rows, of which the weights are counts."""
    return int(weights.sum()) if are_counts(weights) else int((weights > 0).sum())


def random_part(weights, size, generator):
    """The weights of this many rows, drawn without replacement: of copies, if they are counts."""
    if not are_counts(weights) or weights.max() <= 1:
        drawn = generator.permutation(np.flatnonzero(weights))[:size]
        return np.where(np.isin(np.arange(len(weights)), drawn), weights, 0.0)
    scale = max(1.0, weights.sum() / MOST_COPIES)
    copies, size = np.ceil(weights / scale).astype(np.int64), round(size / scale)
    drawn = generator.multivariate_hypergeometric(copies, size, method="marginals")
    return np.minimum(drawn * scale, weights)
