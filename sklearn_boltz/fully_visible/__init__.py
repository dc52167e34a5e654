"""Boltzmann machines with pairwise interactions and no hidden units."""

from sklearn_boltz.fully_visible._fvbm import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.inference._inference import PairwiseInference

__all__ = ["FVBMPseudoLikelihood", "PairwiseInference"]
