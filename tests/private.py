"""Private names of the package that tests use, and where each of them lives.

A room that moves changes this file, not the tests.
"""

# ruff: noqa: F401

from sklearn_boltz._methods import dense
from sklearn_boltz.datasets import _fetch, _files
from sklearn_boltz.loglinear import (
    _distribution,
    _dual_table,
    _dual_update,
    _factor,
    _given,
    _search,
    _size,
)
from sklearn_boltz.loglinear import _fit as _loglinear_fit
from sklearn_boltz.loglinear import _incomplete as _loglinear_incomplete
from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._dual_table import DualTable
from sklearn_boltz.meta import _default, _few_numbers
from sklearn_boltz.meta._calibration import calibrate
from sklearn_boltz.meta._completed import left_out
from sklearn_boltz.meta._linear import LinearMeans
from sklearn_boltz.missing import _completion
from sklearn_boltz.networks import _rows as network_rows
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.features._basis import hats_at, of_cycle, of_order, of_values
from sklearn_boltz.networks.features._lines import gather, scatter
from sklearn_boltz.networks.features._network import FeatureNetwork
from sklearn_boltz.networks.features._objective import FeatureObjective
from sklearn_boltz.networks.features._prior import CouplingPrior
from sklearn_boltz.networks.features._residuals import residuals
from sklearn_boltz.networks.features._rows import FeatureRows
from sklearn_boltz.networks.location import _fit as location_fit
from sklearn_boltz.networks.location import _gaussians as location_gaussians
from sklearn_boltz.networks.location import _model as location_model
from sklearn_boltz.networks.location._classes import fit_classes
from sklearn_boltz.networks.location._joint import JointLayout, joint_network
from sklearn_boltz.networks.model import _gauge, _gibbs, _interaction_gibbs, _model, _potts_model
from sklearn_boltz.networks.model import _incomplete as _network_incomplete
from sklearn_boltz.networks.model._categorical_gibbs import categorical_sweeps, draw_missing
from sklearn_boltz.networks.model._enumeration import enumerate_rows, importance_weights
from sklearn_boltz.networks.model._gauge import to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel, room
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling import _sampling, _tempering
from sklearn_boltz.networks.sparse import _network as _sparse_network
from sklearn_boltz.networks.sparse._descent import descend
from sklearn_boltz.networks.sparse._path import price
from sklearn_boltz.networks.sparse._penalty import Penalty as SparsePenalty
from sklearn_boltz.networks.training import (
    _bslm,
    _em,
    _likelihood,
    _objective,
    _sampled_likelihood,
    _sampled_moments,
    _strength,
    _terms,
)
from sklearn_boltz.networks.training import _fit as _network_fit
from sklearn_boltz.networks.training._objective import PseudoLikelihood
from sklearn_boltz.numerics import _bar, _memory, _random_kernel
from sklearn_boltz.numerics._arrays import as_numpy, namespace_of
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._random_arrays import uniform as uniform_of_arrays
from sklearn_boltz.numerics._random_kernel import normal, register_bytes, uniform
from sklearn_boltz.numerics._threads import Workers, _blas, _disown_blas, limit_blas
from sklearn_boltz.partition import _estimates, _ladder
from sklearn_boltz.partition._estimates import temperature_ladder
from sklearn_boltz.restricted.mean_field import _second_order, _solutions, _tap, _vamp
from sklearn_boltz.restricted.mean_field._clamped import MeanFieldModel, clamp
from sklearn_boltz.restricted.mean_field._inference import by_tap, parts_of
from sklearn_boltz.restricted.mean_field._tap import TAP
from sklearn_boltz.restricted.model import _coded_rows, _enumeration
from sklearn_boltz.restricted.model._class_kernel import class_gradients, class_log_weights
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.model._enumeration import (
    all_states,
    exact_log_partition,
)
from sklearn_boltz.restricted.model._layered import Layered, Stacked
from sklearn_boltz.restricted.model._model import Model as RBMModel
from sklearn_boltz.restricted.model._model import check_normalisable, log_pseudo_likelihood
from sklearn_boltz.restricted.sampling import (
    _annealing,
    _climb,
    _completions,
    _gibbs_kernel,
    _modes,
    _observed,
)
from sklearn_boltz.restricted.sampling._annealing import annealed_importance_sampling
from sklearn_boltz.restricted.sampling._array_chains import filled_by_chains
from sklearn_boltz.restricted.sampling._conditional import impute
from sklearn_boltz.restricted.sampling._fitted_rbm import FittedRBM
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.sampling._samples import tempered_samples
from sklearn_boltz.restricted.training import (
    _auto,
    _cluster,
    _discriminative,
    _frank_wolfe,
    _gaps,
    _labelled_rows,
    _mixing,
    _progress,
    _schedule,
    _tap_steps,
    _tracker,
    _tree,
    _visits,
)
from sklearn_boltz.restricted.training._epochs import Plan
from sklearn_boltz.restricted.training._monitor import independent_log_likelihood
from sklearn_boltz.restricted.training._optimizers import SGD, Adam
from sklearn_boltz.restricted.training._rows import divided
from sklearn_boltz.restricted.training._sdcp import SHAPE_RATE, SDCPLearner, SDCPScheme
from sklearn_boltz.statistics._bootstrap import NetworkBootstrap
from sklearn_boltz.statistics._inference import holm
from sklearn_boltz.statistics.covariance import _completed, _separation
from sklearn_boltz.statistics.covariance._categorical import as_parameters
from sklearn_boltz.statistics.covariance._completed import CompletedRows
from sklearn_boltz.statistics.covariance._curvature import Regressions, fitted_curvature, row_scores
from sklearn_boltz.statistics.covariance._mixed import Mixed, ScoreColumn, levels_of, normal_scores
from sklearn_boltz.statistics.covariance._numbers import NumberEstimates
from sklearn_boltz.statistics.covariance._profile import Profile, Side
from sklearn_boltz.statistics.covariance._tests import wald_test, weighted_chi2_sf
from sklearn_boltz.tables import _batches, _counts, _dask, _sample
from sklearn_boltz.tables._bins import Bins
from sklearn_boltz.tables._categories import Categories
from sklearn_boltz.tables._coded import Coded
from sklearn_boltz.tables._column import Plain
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._grid import Grid
from sklearn_boltz.tables._kinds import Need
from sklearn_boltz.tables._numbers import Binned, Scored
from sklearn_boltz.tables._values import find_places, form_of
from sklearn_boltz.units import _bernoulli_kernel
from sklearn_boltz.units._bernoulli_kernel import bernoulli_mean
from sklearn_boltz.units._truncated import tilted_moments
from sklearn_boltz.units._truncated_kernel import truncated_quantile
