"""Boltzmann machines with pairwise interactions and no hidden units."""

from sklearn_boltz.fully_visible._fvbm import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.inference._inference import PairwiseInference
from sklearn_boltz.fully_visible.inference._tests import HypothesisTest

__all__ = ["FVBMPseudoLikelihood", "HypothesisTest", "PairwiseInference"]
