"""Estimators over any density model."""

from sklearn_boltz.meta._imputer import BoltzmannImputer

__all__ = ["BoltzmannImputer"]
