"""Unit types of the layers of restricted Boltzmann machines: values and their distributions."""

from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._stacked import Stacked
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType

__all__ = [
    "Bernoulli", "Categorical", "Gaussian", "Stacked", "TruncatedGaussBernoulli",
    "TruncatedGaussian", "UnitType",
]  # fmt: skip
