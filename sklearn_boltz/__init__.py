"""Boltzmann machines for scikit-learn."""

from importlib.metadata import version

from sklearn_boltz.loglinear import FSLLDensity

__version__ = version("sklearn_boltz")

__all__ = ["FSLLDensity"]
