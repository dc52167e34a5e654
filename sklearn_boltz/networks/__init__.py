"""Boltzmann machines with pairwise interactions and no hidden units."""

from sklearn_boltz.networks._fvbm import FVBMPseudoLikelihood
from sklearn_boltz.networks._maximum_entropy import MaximumEntropy
from sklearn_boltz.networks._sparse_fvbm import SparseFVBM

__all__ = ["FVBMPseudoLikelihood", "MaximumEntropy", "SparseFVBM"]
