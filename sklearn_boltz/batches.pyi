# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin


class Batches:
    def __init__(self, source: Any, *, batch_rows: int | None = ..., n_lanes: int = ...) -> None: ...
    source: Any
    batch_rows: int
    n_lanes: int
    n_batches: Any
    def batch(self, k: int) -> Any: ...
    def map_reduce(self, function: Any, merge: Any) -> Any: ...
