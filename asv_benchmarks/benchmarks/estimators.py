"""One epoch, or the like, of each estimator's `fit` on small data, and its evaluation."""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import sklearn_boltz
from benchmarks._common import DTYPES, bits, generator
from sklearn_boltz.datasets import make_ising_grid


class Exact:
    """Estimators whose fit ends by itself, on 20,000 rows of 12 magnets."""

    params = ["FSLLDensity", "FVBMPseudoLikelihood", "MaximumEntropy", "SparseFVBM"]
    param_names = ["estimator"]

    def setup(self, name):
        self.X = make_ising_grid(n_rows=4, n_columns=3, n_samples=20_000, random_state=0)
        self.estimator = getattr(sklearn_boltz, name)()
        self.fitted = getattr(sklearn_boltz, name)().fit(self.X)

    def time_fit(self, name):
        self.estimator.fit(self.X)

    def time_score_samples(self, name):
        self.fitted.score_samples(self.X)


class OneRow:
    """The score of a single row, where checks and codes take longer than sums, and a small fit."""

    params = (["FSLLDensity", "FVBMPseudoLikelihood", "SDCPRBM"], ["bits", "frame"])
    param_names = ["estimator", "table"]

    def setup(self, name, table):
        warnings.simplefilter("ignore", ConvergenceWarning)
        X = bits(200, 8, "float64", 0.4)
        self.X = X if table == "bits" else pd.DataFrame(np.where(X > 0, "yes", "no"))
        options = {"random_state": 0, "max_iter": 5} if name == "SDCPRBM" else {}
        self.estimator = getattr(sklearn_boltz, name)(**options)
        self.fitted = clone(self.estimator).fit(self.X)
        self.row = self.X[:1]
        self.fitted.score_samples(self.row)  # ln Z is computed once

    def time_score_samples(self, name, table):
        self.fitted.score_samples(self.row)

    def time_fit(self, name, table):
        self.estimator.fit(self.X)


EPOCH = {
    "SDCPRBM": dict(n_components=64, max_iter=1),
    "SDCPRBM, PCD-1": dict(n_components=64, max_iter=1, n_inner=1, n_gibbs=1, chains="persistent"),
    "TAPRBM": dict(n_components=64, max_iter=1),
    "TAPRBM, truncated Gaussian": dict(n_components=64, max_iter=1, columns="truncated_gaussian"),
    "TAPDBM": dict(hidden_layer_sizes=(64, 32), max_iter=1, pretrain_max_iter=0),
    "InfiniteRBM": dict(max_components=3),
}


class Epoch:
    """An epoch over 2,000 rows of 256 pixels, or three units."""

    params = (list(EPOCH), DTYPES)
    param_names = ["estimator", "dtype"]

    def setup(self, name, dtype):
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = bits(2000, 256, dtype)
        if "Gaussian" in name:
            self.X *= generator().random(self.X.shape, dtype)
        kind = getattr(sklearn_boltz, name.split(",")[0])
        self.estimator = kind(random_state=0, **EPOCH[name])
        self.fitted = kind(random_state=0, **EPOCH[name]).fit(self.X)

    def time_fit(self, name, dtype):
        self.estimator.fit(self.X)

    def time_log_partition(self, name, dtype):
        self.fitted.log_partition(n_temperatures=200)

    def time_sample(self, name, dtype):
        self.fitted.sample(100, random_state=0, n_steps=50)
