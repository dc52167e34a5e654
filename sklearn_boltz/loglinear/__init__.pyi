# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin

from sklearn_boltz import FSLLDensity as FSLLDensity

def fwht(a: Any, *, axis: Any = ..., overwrite_a: bool = ..., n_jobs: int | None = ...) -> NDArray[Any]: ...
