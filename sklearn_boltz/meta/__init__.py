"""Estimators that use any density model: imputation, classification, outlier detection."""

from sklearn_boltz.meta._classifier import BoltzmannClassifier
from sklearn_boltz.meta._imputer import BoltzmannImputer
from sklearn_boltz.meta._outlier_detector import BoltzmannOutlierDetector

__all__ = [
    "BoltzmannClassifier",
    "BoltzmannImputer",
    "BoltzmannOutlierDetector",
]
