"""Log-linear models on the full span of discrete variables."""

from sklearn_boltz.loglinear._fsll import FSLLDensity
from sklearn_boltz.loglinear._hadamard import fwht

__all__ = ["FSLLDensity", "fwht"]
