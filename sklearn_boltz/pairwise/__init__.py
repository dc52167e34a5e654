"""Boltzmann machines with pairwise interactions and no hidden units."""

from sklearn_boltz.pairwise._fvbm import FVBMPseudoLikelihood
from sklearn_boltz.pairwise._inference import PairwiseInference

__all__ = ["FVBMPseudoLikelihood", "PairwiseInference"]
