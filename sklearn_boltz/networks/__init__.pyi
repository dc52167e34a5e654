# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin

from sklearn_boltz import FVBMPseudoLikelihood as FVBMPseudoLikelihood
from sklearn_boltz import MaximumEntropy as MaximumEntropy
from sklearn_boltz import SparseFVBM as SparseFVBM


