"""Scorers for model selection, and weights for similar rows."""

from sklearn_boltz.metrics._scorers import (
    log_likelihood,
    log_pseudo_likelihood,
    tap_log_likelihood,
)
from sklearn_boltz.metrics._sequence_weights import sequence_weights

__all__ = ["log_likelihood", "log_pseudo_likelihood", "sequence_weights", "tap_log_likelihood"]
