"""Laws of the units of restricted Boltzmann machines."""

from sklearn_boltz.restricted._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.restricted.units import Bernoulli, UnitLaw

__all__ = ["Bernoulli", "TruncatedGaussBernoulli", "TruncatedGaussian", "UnitLaw"]
