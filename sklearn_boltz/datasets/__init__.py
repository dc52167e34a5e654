"""Synthetic data with a known distribution, and data sets of the literature."""

from sklearn_boltz.datasets._alignment import read_alignment
from sklearn_boltz.datasets._fetch import (
    fetch_caltech101_silhouettes,
    fetch_density_benchmark,
    fetch_mnist,
    fetch_omniglot,
)
from sklearn_boltz.datasets._potts import make_alignment
from sklearn_boltz.datasets._real import (
    load_bird_strikes,
    load_house_votes,
    load_masculinity_survey,
    load_penguins,
    load_sam_riboswitch,
)
from sklearn_boltz.datasets._synthetic import (
    make_bars_and_stripes,
    make_bayesian_network,
    make_ising_grid,
    make_shifting_bar,
)

__all__ = [
    "fetch_caltech101_silhouettes",
    "fetch_density_benchmark",
    "fetch_mnist",
    "fetch_omniglot",
    "load_bird_strikes",
    "load_house_votes",
    "load_masculinity_survey",
    "load_penguins",
    "load_sam_riboswitch",
    "make_alignment",
    "make_bars_and_stripes",
    "make_bayesian_network",
    "make_ising_grid",
    "make_shifting_bar",
    "read_alignment",
]
