"""Rows that come in batches, for data that do not fit in memory."""

from sklearn_boltz.tables._batches import Batches

__all__ = ["Batches"]
