# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin


class CentralityStability:
    def __init__(self, statistic: str, shares: Any, correlations: Any, threshold: float) -> None: ...
    statistic: str
    shares: Any
    correlations: Any
    threshold: float
    coefficient: Any
    probability: Any
    def to_frame(self) -> Any: ...

class EdgeInclusion:
    def __init__(self, samples: Any, edge_prior: float, feature_names: Any) -> None: ...
    samples: Any
    edge_prior: float
    feature_names: Any
    bayes_factor: Any
    interaction: Any
    probability: Any
    r_hat: Any
    std: Any
    std_err: Any
    def to_frame(self) -> Any: ...

class GroupComparison:
    def __init__(self, groups: Any, coupling: Any, difference: Any, p_value: Any, adjusted_p_value: Any, max_difference: float, max_difference_p_value: float, strength: Any, strength_p_value: float, n_permutations: int, is_exact: bool, feature_names: Any) -> None: ...
    groups: Any
    coupling: Any
    difference: Any
    p_value: Any
    adjusted_p_value: Any
    max_difference: float
    max_difference_p_value: float
    strength: Any
    strength_p_value: float
    n_permutations: int
    is_exact: bool
    feature_names: Any
    def to_frame(self) -> Any: ...

class HypothesisTest:
    def __init__(self, statistic: float, df: int, p_value: float, weights: Any) -> None: ...
    statistic: float
    df: int
    p_value: float
    weights: Any

class NetworkBootstrap:
    def __init__(self, estimate: Any, resamples: Any, converged: Any, separated: Any, names: Any, confidence_level: float, n_values: Any, seed: int, source: str) -> None: ...
    estimate: Any
    resamples: Any
    converged: Any
    separated: Any
    names: Any
    confidence_level: float
    n_values: Any
    seed: int
    source: str
    columns: Any
    couplings: Any
    edge_frequency: Any
    std_err: Any
    def coupling_matrix(self, values: Any) -> NDArray[Any]: ...
    def interval(self, method: Literal["bias-corrected", "percentile"] = ...) -> NDArray[Any]: ...
    def to_frame(self) -> Any: ...

class PairwiseInference:
    def __init__(self, estimate: Any, limit_covariance: Any, directions: Any, names: Any, null: Any, confidence_level: float, n_samples: float, n_values: Any, method: Literal["jackknife", "sandwich"], feature_names: Any, objective: Literal["pseudo-likelihood", "likelihood"], reasons: Any, untested: Any, falls: Any, figures: Any, rows: Any) -> None: ...
    estimate: Any
    limit_covariance: Any
    directions: Any
    names: Any
    null: Any
    confidence_level: float
    n_samples: float
    n_values: Any
    method: Literal["jackknife", "sandwich"]
    feature_names: Any
    objective: Literal["pseudo-likelihood", "likelihood"]
    reasons: Any
    untested: Any
    falls: Any
    figures: Any
    rows: Any
    ci_high: Any
    ci_low: Any
    columns: Any
    covariance: Any
    p_value: Any
    separated: Any
    std_err: Any
    z: Any
    def adjusted_p_value(self, method: Literal["fdr_bh", "holm"] = ...) -> NDArray[Any]: ...
    def contrast(self, weights: dict[Any, Any]) -> Self: ...
    def coupling_matrix(self, values: Any) -> NDArray[Any]: ...
    def pair_p_value(self) -> NDArray[Any]: ...
    def to_frame(self, method: Literal["fdr_bh", "holm"] = ..., *, parameters: bool = ...) -> Any: ...
    def wald_test(self, parameters: Any) -> HypothesisTest: ...

class StabilitySelection:
    def __init__(self, alphas: Any, path: Any, threshold: float, max_edges: int, max_false: float, feature_names: Any) -> None: ...
    alphas: Any
    path: Any
    threshold: float
    max_edges: int
    max_false: float
    feature_names: Any
    probability: Any
    selected: Any
    def to_frame(self) -> Any: ...

def aic(network: Any, X: Any, sample_weight: Any = ...) -> float: ...

def autocorrelation_time(x: Any) -> float: ...

def bic(network: Any, X: Any, sample_weight: Any = ...) -> float: ...

def bootstrap(network: Any, X: Any, n_resamples: int = ..., *, sample_weight: Any = ..., method: Literal["nonparametric", "parametric"] = ..., reselect: bool = ..., previous: Any = ..., confidence_level: float = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ..., verbose: int = ...) -> NetworkBootstrap: ...

def centrality(network: Any, *, communities: Any = ...) -> Any: ...

def centrality_stability(estimator: Any, X: Any, *, statistic: Literal["strength", "closeness", "betweenness", "bridge_strength"] = ..., communities: Any = ..., shares: Any = ..., n_samples: int = ..., correlation: float = ..., sample_weight: Any = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ..., verbose: int = ...) -> CentralityStability: ...

def compare_groups(estimator: Any, X: Any, groups: Any, n_permutations: int = ..., *, adjust: Literal["holm", "fdr_bh", "max"] = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ..., verbose: int = ...) -> GroupComparison: ...

def ebic(network: Any, X: Any, sample_weight: Any = ..., *, gamma: float = ...) -> float: ...

def edge_inclusion(network: Any, X: Any, *, sample_weight: Any = ..., edge_prior: float = ..., interaction_scale: float = ..., likelihood_power: float = ..., n_sweeps: int = ..., n_chains: int = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ...) -> EdgeInclusion: ...

def estimate_inverse_temperature(network: Any, X: Any) -> Any: ...

def inference(network: Any, X: Any, *, sample_weight: Any = ..., null: Any = ..., confidence_level: float = ..., covariance: Literal["auto", "jackknife", "sandwich"] = ..., split: Any = ..., verbose: int = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ...) -> PairwiseInference: ...

def joint_network(network: Any) -> Any: ...

def likelihood_ratio(network: Any, X: Any, other: Any, sample_weight: Any = ...) -> HypothesisTest: ...

def local_minima(network: Any, X: Any = ..., *, n_starts: int = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ...) -> Any: ...

def r_hat(x: Any) -> float: ...

def stability_selection(estimator: Any, X: Any, *, n_pairs: int = ..., threshold: float = ..., max_false: float = ..., alphas: Any = ..., sample_weight: Any = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ..., verbose: int = ...) -> StabilitySelection: ...

def swendsen_wang(J: Any, h: Any, n_samples: int, rng: np.random.Generator, *, n_sweeps: int = ...) -> NDArray[Any]: ...

def thermodynamics(network: Any, temperatures: Any = ..., *, n_chains: int = ..., tol: float = ..., max_rounds: int = ..., random_state: int | np.random.RandomState | np.random.Generator | None = ...) -> Any: ...

def to_bqm(model: Any) -> Any: ...

def to_ising(model: Any, *, coding: Literal["spins", "bits"] = ...) -> Any: ...

def to_networkx(network: Any, inference: Any = ...) -> Any: ...
