"""Restricted Boltzmann machines."""

from sklearn_boltz.restricted._infinite_rbm import InfiniteRBM
from sklearn_boltz.restricted._rbm_classifier import RBMClassifier
from sklearn_boltz.restricted._sdcp_rbm import SDCPRBM
from sklearn_boltz.restricted._tap_dbm import TAPDBM
from sklearn_boltz.restricted._tap_rbm import TAPRBM
from sklearn_boltz.restricted.mean_field._tap import TAP

__all__ = [
    "SDCPRBM",
    "TAP",
    "TAPDBM",
    "TAPRBM",
    "InfiniteRBM",
    "RBMClassifier",
]
