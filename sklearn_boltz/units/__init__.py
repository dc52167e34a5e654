"""What values a unit takes, and how likely each is: the layers of restricted Boltzmann machines."""

from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType

__all__ = ["Bernoulli", "TruncatedGaussBernoulli", "TruncatedGaussian", "UnitType"]
