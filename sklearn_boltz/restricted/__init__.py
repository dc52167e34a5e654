"""Restricted Boltzmann machines."""

from sklearn_boltz.restricted._sdcp_rbm import SDCPRBM

__all__ = ["SDCPRBM"]
