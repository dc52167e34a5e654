"""Standard errors, tests, comparisons and figures of fitted networks."""

from sklearn_boltz.statistics._bootstrap import NetworkBootstrap, bootstrap
from sklearn_boltz.statistics._centrality import (
    CentralityStability,
    centrality,
    centrality_stability,
)
from sklearn_boltz.statistics._conversions import joint_network, to_bqm, to_ising, to_networkx
from sklearn_boltz.statistics._criteria import aic, bic, ebic, likelihood_ratio
from sklearn_boltz.statistics._edge_inclusion import EdgeInclusion, edge_inclusion
from sklearn_boltz.statistics._groups import GroupComparison, compare_groups
from sklearn_boltz.statistics._inference import PairwiseInference
from sklearn_boltz.statistics._physics import (
    autocorrelation_time,
    estimate_inverse_temperature,
    local_minima,
    r_hat,
    swendsen_wang,
    thermodynamics,
)
from sklearn_boltz.statistics._stability import StabilitySelection, stability_selection
from sklearn_boltz.statistics._standard_errors import inference
from sklearn_boltz.statistics.covariance._tests import HypothesisTest

__all__ = [
    "CentralityStability",
    "EdgeInclusion",
    "GroupComparison",
    "HypothesisTest",
    "NetworkBootstrap",
    "PairwiseInference",
    "StabilitySelection",
    "aic",
    "autocorrelation_time",
    "bic",
    "bootstrap",
    "centrality",
    "centrality_stability",
    "compare_groups",
    "ebic",
    "edge_inclusion",
    "estimate_inverse_temperature",
    "inference",
    "joint_network",
    "likelihood_ratio",
    "local_minima",
    "r_hat",
    "stability_selection",
    "swendsen_wang",
    "thermodynamics",
    "to_bqm",
    "to_ising",
    "to_networkx",
]
