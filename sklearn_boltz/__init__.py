"""Boltzmann machines for scikit-learn."""

from importlib.metadata import version

from sklearn_boltz.loglinear import FSLLDensity
from sklearn_boltz.pairwise import FVBMPseudoLikelihood
from sklearn_boltz.restricted import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM

__version__ = version("sklearn_boltz")

__all__ = ["FSLLDensity", "FVBMPseudoLikelihood", "InfiniteRBM", "SDCPRBM", "TAPDBM", "TAPRBM"]
