# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin

from sklearn_boltz import InfiniteRBM as InfiniteRBM
from sklearn_boltz import RBMClassifier as RBMClassifier
from sklearn_boltz import SDCPRBM as SDCPRBM
from sklearn_boltz import TAP as TAP
from sklearn_boltz import TAPDBM as TAPDBM
from sklearn_boltz import TAPRBM as TAPRBM


