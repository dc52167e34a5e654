# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin


class ContactMapDisplay:
    def __init__(self, *, scores: Any, contacts: Any = ..., distances: Any = ..., max_distance: float = ..., positions: Any = ..., min_separation: int = ..., n_pairs: int | None = ...) -> None: ...
    scores: Any
    contacts: Any
    distances: Any
    max_distance: float
    positions: Any
    min_separation: int
    n_pairs: int
    pairs_: Any
    is_contact_: Any
    precision_: float
    chance_: float
    ax_: Any
    figure_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, contacts: Any = ..., *, apc: bool = ..., ignore: Any = ..., ax: Any = ..., **display_kw: Any) -> Self: ...
    def plot(self, *, ax: Any = ...) -> Self: ...

class CouplingDisplay:
    def __init__(self, *, coupling: Any, names: Any, significant: Any = ..., value_names: Any = ..., untested: Any = ..., norms: Any = ...) -> None: ...
    coupling: Any
    names: Any
    significant: Any
    value_names: Any
    untested: Any
    norms: Any
    ax_: Any
    figure_: Any
    image_: Any
    colorbar_: Any
    edges_: Any
    pairs_: Any
    positions_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = ..., *, kind: Literal["heatmap", "graph"] = ..., significance_level: float = ..., method: Literal["fdr_bh", "holm"] = ..., sample_weight: Any = ..., ax: Any = ..., **plot_kw: Any) -> Self: ...
    def plot(self, *, kind: Literal["heatmap", "graph"] = ..., ax: Any = ..., cmap: Any = ..., limit: float | None = ..., colorbar: bool = ..., legend: bool = ..., groups: Any = ..., min_coupling: float = ..., n_edges: Literal["auto"] | int | None = ..., layout: Any = ..., random_state: int | np.random.RandomState = ...) -> Self: ...

class HistoryDisplay:
    def __init__(self, *, values: Any, key: str, label: str | None = ..., at: Any = ..., against: str = ..., std_err: Any = ...) -> None: ...
    values: Any
    key: str
    label: str
    at: Any
    against: str
    std_err: Any
    ax_: Any
    increase_ax_: Any
    figure_: Any
    line_: Any
    band_: Any
    increase_line_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, key: str | None = ..., *, against: Literal["iteration", "seconds"] = ..., show_increase: bool = ..., label: str | None = ..., ax: Any = ..., **line_kw: Any) -> Self: ...
    def plot(self, *, show_increase: bool = ..., ax: Any = ..., **line_kw: Any) -> Self: ...

class LadderDisplay:
    def __init__(self, estimate: Any) -> None: ...
    estimate: Any
    axes_: Any
    figure_: Any
    bars_: Any
    broken_: Any
    line_: Any
    band_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, *, random_state: int | np.random.RandomState | np.random.Generator | None = ..., ax: Any = ..., **kwargs: Any) -> Self: ...
    def plot(self, *, ax: Any = ...) -> Self: ...

class LandscapeDisplay:
    def __init__(self, *, solutions: Any, history: Any, row_map: Any, solution_map: Any, y: Any = ...) -> None: ...
    solutions: Any
    history: Any
    row_map: Any
    solution_map: Any
    y: Any
    axes_: Any
    figure_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, y: Any = ..., n_neighbors: int = ..., **plot_kw: Any) -> Self: ...
    def plot(self, *, bins: int = ..., cmap: Any = ...) -> Self: ...

class MomentsDisplay:
    def __init__(self, moments: Any) -> None: ...
    moments: Any
    axes_: Any
    figure_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, n_samples: int = ..., n_triplets: int = ..., random_state: int | np.random.RandomState | None = ..., ax: Any = ...) -> Self: ...
    def plot(self, *, ax: Any = ...) -> Self: ...
    def z_scores(self, panel: Literal["mean", "covariance", "triplet"]) -> NDArray[Any]: ...

class PairEffectDisplay:
    def __init__(self, *, effect: Any, values: Any, names: Any, is_ordered: Any, band: Any = ...) -> None: ...
    effect: Any
    values: Any
    names: Any
    is_ordered: Any
    band: Any
    ax_: Any
    figure_: Any
    lines_: Any
    image_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, columns: Any, *, intervals: Any = ..., ax: Any = ..., **plot_kw: Any) -> Self: ...
    def plot(self, *, ax: Any = ..., cmap: Any = ..., limit: float | None = ...) -> Self: ...

class ReceptiveFieldDisplay:
    def __init__(self, *, weights: Any, image_shape: Any = ..., units: Any = ..., rank: Any = ...) -> None: ...
    weights: Any
    image_shape: Any
    units: Any
    rank: Any
    ax_: Any
    figure_: Any
    images_: Any
    colorbar_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = ..., *, image_shape: Any = ..., n_units: int = ..., order: Literal["spread", "activity"] | None = ..., ax: Any = ..., **plot_kw: Any) -> Self: ...
    def plot(self, *, ax: Any = ..., n_columns: int | None = ..., cmap: Any = ..., limit: float | None = ..., colorbar: bool = ...) -> Self: ...

class SampleDisplay:
    def __init__(self, *, rows: Any, image_shape: Any = ..., names: Any = ...) -> None: ...
    rows: Any
    image_shape: Any
    names: Any
    ax_: Any
    figure_: Any
    images_: Any
    @classmethod
    def from_estimator(cls, estimator: Any, n_samples: int = ..., *, image_shape: Any = ..., random_state: int | np.random.RandomState | None = ..., sample_kw: dict[Any, Any] | None = ..., ax: Any = ..., **plot_kw: Any) -> Self: ...
    @classmethod
    def from_rows(cls, X: Any, *, image_shape: Any = ..., ax: Any = ..., **plot_kw: Any) -> Self: ...
    def plot(self, *, ax: Any = ..., n_columns: int | None = ..., cmap: Any = ..., limits: Any = ..., missing: Any = ...) -> Self: ...

def plot_logo(heights: Any, letters: Any, *, positions: Any = ..., ax: Any = ...) -> Any: ...
