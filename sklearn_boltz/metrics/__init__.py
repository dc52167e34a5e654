"""Scorers for model selection, tools for sequences, and how like real rows others are."""

from sklearn_boltz.metrics._mutations import mutational_effect
from sklearn_boltz.metrics._scorers import (
    log_likelihood,
    log_pseudo_likelihood,
    tap_log_likelihood,
)
from sklearn_boltz.metrics._sequence_weights import sequence_weights
from sklearn_boltz.metrics._tables import c2st_score, compare_tables, nearest_record_share

__all__ = [
    "c2st_score",
    "compare_tables",
    "log_likelihood",
    "log_pseudo_likelihood",
    "mutational_effect",
    "nearest_record_share",
    "sequence_weights",
    "tap_log_likelihood",
]
