"""Private names of the package that tests use, and where each of them lives.

A room that moves changes this file, not the tests.
"""

# ruff: noqa: F401

from sklearn_boltz._estimator import dense
from sklearn_boltz.datasets import _fetch, _files
from sklearn_boltz.loglinear import _distribution, _dual_update, _factor, _given, _search, _size
from sklearn_boltz.loglinear import _fit as _loglinear_fit
from sklearn_boltz.loglinear import _incomplete as _loglinear_incomplete
from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._dual_table import DualTable
from sklearn_boltz.meta._calibration import calibrate
from sklearn_boltz.meta._completed import left_out
from sklearn_boltz.meta._linear import LinearMeans
from sklearn_boltz.meta._mixture import likeliest_weights
from sklearn_boltz.missing import _completion
from sklearn_boltz.networks import _rows as network_rows
from sklearn_boltz.networks.categorical._block_penalty import metrics
from sklearn_boltz.networks.categorical._cells import find_patterns
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._kernel import measure_blocks
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.location import _fit as location_fit
from sklearn_boltz.networks.location import _gaussians as location_gaussians
from sklearn_boltz.networks.location import _joint
from sklearn_boltz.networks.location import _model as location_model
from sklearn_boltz.networks.location._classes import fit_classes
from sklearn_boltz.networks.model import _incomplete as _network_incomplete
from sklearn_boltz.networks.model import _model
from sklearn_boltz.networks.model._categorical_gibbs import categorical_sweeps
from sklearn_boltz.networks.model._enumeration import enumerate_rows, importance_weights
from sklearn_boltz.networks.model._gauge import (
    average_product_correction,
    frobenius_scores,
    state_offsets,
    to_zero_sum,
)
from sklearn_boltz.networks.model._gibbs import gibbs_sweeps, row_fields
from sklearn_boltz.networks.model._incomplete import cell_probabilities
from sklearn_boltz.networks.model._interaction_gibbs import (
    add_term_fields,
    interaction_sweeps,
    sum_terms,
)
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._sampling import (
    TOLERANCE,
    annealed_log_partition,
    gibbs_sample,
    strange_columns,
)
from sklearn_boltz.networks.sampling._tempering import (
    Path,
    ThermalRecord,
    draw,
    find_betas,
    ladder_log_partition,
    make_ladder,
)
from sklearn_boltz.networks.sampling._tempering import Rung as NetworkRung
from sklearn_boltz.networks.sparse._descent import descend
from sklearn_boltz.networks.sparse._path import price
from sklearn_boltz.networks.sparse._penalty import Penalty as SparsePenalty
from sklearn_boltz.networks.training import _em, _objective, _sampled_likelihood
from sklearn_boltz.networks.training import _fit as _network_fit
from sklearn_boltz.networks.training._bslm import N_LANES, bslm_sweep, evaluate_fields
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._likelihood import Further, Likelihood
from sklearn_boltz.networks.training._objective import PseudoLikelihood, distinct_rows
from sklearn_boltz.networks.training._sampled_likelihood import Sampler, Statistics
from sklearn_boltz.networks.training._solvers import Monitor as SolverMonitor
from sklearn_boltz.networks.training._solvers import bslm
from sklearn_boltz.networks.training._strength import (
    MAX_ALPHA,
    choose_strength,
    least_strength,
    next_strength,
    next_weights,
)
from sklearn_boltz.networks.training._terms import (
    InteractionPseudoLikelihood,
    best_triples,
    gains,
    heirs,
    refit,
)
from sklearn_boltz.numerics import _memory, _random_kernel
from sklearn_boltz.numerics._arrays import _compiled, as_numpy, namespace_of
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._random_arrays import uniform as uniform_of_arrays
from sklearn_boltz.numerics._random_kernel import normal, uniform
from sklearn_boltz.numerics._threads import (
    Workers,
    _blas,
    _disown_blas,
    limit_blas,
)
from sklearn_boltz.partition import _estimates, _ladder, _ladder_record
from sklearn_boltz.partition._estimates import temperature_ladder
from sklearn_boltz.partition._ladder import Ladder
from sklearn_boltz.partition._ladder_record import mean_and_error
from sklearn_boltz.restricted import _rbm_classifier
from sklearn_boltz.restricted.mean_field import _second_order, _spread_kernel
from sklearn_boltz.restricted.mean_field._clamped import clamp
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._second_order import Features
from sklearn_boltz.restricted.mean_field._tap import (
    TAP,
    Evidence,
    Layer,
    distinct,
    fields,
    free_energy,
    grouped,
    mean_squared_change,
    solve,
    total_log_partition,
)
from sklearn_boltz.restricted.mean_field._vamp import iterate, mean_covariance
from sklearn_boltz.restricted.model import _class_arrays, _enumeration
from sklearn_boltz.restricted.model._class_kernel import class_gradients, class_log_weights
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.model._columns import (
    kinds_of,
    learn_layout,
    published,
    with_published,
)
from sklearn_boltz.restricted.model._enumeration import (
    all_states,
    enumerated,
    exact_entropy,
    exact_free_energy,
    exact_log_partition,
    n_enumerated,
)
from sklearn_boltz.restricted.model._layered import BlockWeights, Layered, Stacked, stacked
from sklearn_boltz.restricted.model._model import Model as RBMModel
from sklearn_boltz.restricted.model._model import check_normalisable, log_pseudo_likelihood
from sklearn_boltz.restricted.sampling import _annealing, _observed
from sklearn_boltz.restricted.sampling._annealing import (
    annealed_importance_sampling,
    annealed_within,
    base_log_partition,
    reverse_importance_sampling,
)
from sklearn_boltz.restricted.sampling._array_chains import filled_by_chains
from sklearn_boltz.restricted.sampling._climb import (
    ladder_estimate,
    ladder_to,
    same_parameters,
    sum_over,
)
from sklearn_boltz.restricted.sampling._conditional import column_probabilities, impute
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import (
    anneal,
    gibbs_chains,
    learn_rows,
    log_densities,
    moments,
)
from sklearn_boltz.restricted.sampling._modes import coordinate_ascent, expectation_maximisation
from sklearn_boltz.restricted.sampling._rungs import (
    IndependentRung,
    RBMRung,
    begin_ladder,
    between,
    insert_between,
    with_hidden,
)
from sklearn_boltz.restricted.sampling._samples import tempered_samples
from sklearn_boltz.restricted.training import _auto, _cluster, _rows, _tracker
from sklearn_boltz.restricted.training._adam_kernel import adam_step
from sklearn_boltz.restricted.training._discriminative import ClassObjective as Objective
from sklearn_boltz.restricted.training._discriminative import gradient
from sklearn_boltz.restricted.training._epochs import Plan, Training
from sklearn_boltz.restricted.training._frank_wolfe import (
    SCALES,
    ChainSample,
    Enumeration,
    GrowingLearner,
    Sample,
    best_change,
    find_unit,
    linear_minimum,
    linearised_objective,
    match_means,
    rescaled,
    starting_points,
)
from sklearn_boltz.restricted.training._gaps import Incomplete, KeptValues, complete
from sklearn_boltz.restricted.training._initial import units_of_pairs
from sklearn_boltz.restricted.training._labelled_rows import ENOUGH_LABELS, LabelledRows, stratified
from sklearn_boltz.restricted.training._monitor import Comparison, independent_log_likelihood
from sklearn_boltz.restricted.training._monitor import RBMMonitor as TrainingMonitor
from sklearn_boltz.restricted.training._optimizers import SGD, Adam, _adam_step_of_arrays
from sklearn_boltz.restricted.training._progress import Mean, Stages, end_stage, latest
from sklearn_boltz.restricted.training._rows import ChosenRows, ColumnSums, divided, visits
from sklearn_boltz.restricted.training._sdcp import SHAPE_RATE, SDCPLearner, SDCPScheme, reshape
from sklearn_boltz.restricted.training._tap_monitor import TAPMonitor
from sklearn_boltz.restricted.training._tap_steps import (
    TAPLearner,
    TAPScheme,
    Workspace,
    difference,
)
from sklearn_boltz.restricted.training._tracker import Tracker
from sklearn_boltz.statistics import _edge_inclusion, _physics
from sklearn_boltz.statistics._bootstrap import NetworkBootstrap, quantiles
from sklearn_boltz.statistics._inference import holm
from sklearn_boltz.statistics.covariance import _completed, _numbers, _separation
from sklearn_boltz.statistics.covariance._categorical import as_parameters
from sklearn_boltz.statistics.covariance._completed import Coordinates, completed_curvature
from sklearn_boltz.statistics.covariance._curvature import Regressions, fitted_curvature, row_scores
from sklearn_boltz.statistics.covariance._tests import wald_test, weighted_chi2_sf
from sklearn_boltz.tables import _batches, _counts
from sklearn_boltz.tables._bins import Bins
from sklearn_boltz.tables._kinds import Need
from sklearn_boltz.tables._table import Table
from sklearn_boltz.units import _bernoulli_arrays
from sklearn_boltz.units._bernoulli_kernel import (
    bernoulli_draw,
    bernoulli_mean,
    bernoulli_sample,
    softplus_sums,
)
from sklearn_boltz.units._truncated import tilted_moments
from sklearn_boltz.units._truncated_kernel import truncated_moments, truncated_quantile
from sklearn_boltz.units._unit import observed_sums
