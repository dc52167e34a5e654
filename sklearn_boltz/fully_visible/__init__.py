"""Boltzmann machines with pairwise interactions and no hidden units."""

from sklearn_boltz.fully_visible._fvbm import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.inference._bootstrap import NetworkBootstrap
from sklearn_boltz.fully_visible.inference._groups import GroupComparison, compare_groups
from sklearn_boltz.fully_visible.inference._inference import PairwiseInference
from sklearn_boltz.fully_visible.inference._stability import StabilitySelection, stability_selection
from sklearn_boltz.fully_visible.inference._tests import HypothesisTest

__all__ = [
    "FVBMPseudoLikelihood",
    "GroupComparison",
    "HypothesisTest",
    "NetworkBootstrap",
    "PairwiseInference",
    "StabilitySelection",
    "compare_groups",
    "stability_selection",
]
