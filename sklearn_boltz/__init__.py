"""Boltzmann machines for scikit-learn."""

from sklearn_boltz._density import VERSION
from sklearn_boltz.loglinear import FSLLDensity
from sklearn_boltz.meta import (
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
)
from sklearn_boltz.networks import FVBMPseudoLikelihood, MaximumEntropy, SparseFVBM
from sklearn_boltz.restricted import SDCPRBM, TAP, TAPDBM, TAPRBM, InfiniteRBM, RBMClassifier

__version__ = VERSION

__all__ = [
    "BoltzmannClassifier",
    "BoltzmannImputer",
    "BoltzmannOutlierDetector",
    "FSLLDensity",
    "FVBMPseudoLikelihood",
    "InfiniteRBM",
    "MaximumEntropy",
    "RBMClassifier",
    "SDCPRBM",
    "SparseFVBM",
    "TAP",
    "TAPDBM",
    "TAPRBM",
]
