"""An RBM that grows a hidden unit at a time: the loop around Frank-Wolfe's steps."""

from copy import deepcopy
from time import perf_counter
from typing import NamedTuple

import numpy as np

from sklearn_boltz._estimator import dense
from sklearn_boltz.restricted.model._enumeration import n_bits
from sklearn_boltz.restricted.sampling._gibbs import draw
from sklearn_boltz.restricted.training._epochs import QUIET
from sklearn_boltz.restricted.training._frank_wolfe import (
    BURN_IN,
    ChainSample,
    Enumeration,
    IncompleteSample,
    Sample,
    find_unit,
    match_means,
)

# Rows that a unit is fitted to; of more, this many are drawn for each unit. A unit has one
# weight a feature, and the samples of the model are fewer: more rows would not add to it.
FITTED_ROWS = 10_000
# How many times `n_bias_steps` there may be at the start.
FIRST_BIAS_STEPS = 10
# Searches without success before the fit ends: their initial units may have been poor, or the
# penalty may have kept every unit out.
TRIES = 5
# The joint training of the corrective mode: rows of a mini-batch, and learning rate.
CORRECTIVE_ROWS, CORRECTIVE_RATE = 100, 0.05


class GrowthPlan(NamedTuple):
    """How to grow: the parameters of `InfiniteRBM` of the same names, and what is fixed.

    Attributes
    ----------
    n_bias_steps : int
        Steps of the visible biases after each insertion, at most. They end earlier where the means
        of the model equal those of the data within the noise of the chains.
    n_iter_no_change : int
        Units without improvement after which early stopping ends the training.
    """

    max_components: int
    alpha: float
    mode: str
    learning_rate: float
    n_model_samples: int
    n_gibbs: int
    n_corrective: int
    early_stopping: bool | float
    tol: float
    n_bias_steps: int = 30
    n_iter_no_change: int = 10


def grow(growth, data, monitor, plan, workers, end_unit):
    """Insert units until no more are needed (Algorithm 1).

    Parameters
    ----------
    growth : Training
        Whose learner grows, and which has measured the start and each of `n_epochs` insertions.
        Changed in place.
    data : Sample
        The rows to train on.
    monitor : Monitor
    plan : GrowthPlan
    workers : Workers
    end_unit : callable
        Called with a copy of the growth after each insertion; returns whether to stop.

    Returns
    -------
    growth : Training
        Of the best model, or, if it was interrupted, after the last complete insertion.
    status : {"ended", "diverged", "interrupted"}
    kept : int
        The place in the history of the model that is kept, counted from 1; 0 for the last one.
    """
    best, last, status = None, growth.copy(), "ended"
    try:
        with QUIET():
            begin(growth, data, monitor, plan, workers)
        best, last = remembered(growth, None, plan), growth.copy()
        while growth.learner.n_units < plan.max_components:
            with QUIET():
                inserted = insert_unit(growth, data, monitor, plan, workers)
            if not inserted:
                break
            best, last = remembered(growth, best, plan), growth.copy()
            if end_unit(last) or has_stopped_rising(growth, best, plan):
                break
    except FloatingPointError:
        status = "diverged"
    except KeyboardInterrupt:
        return last, "interrupted", 0
    if best is None:
        return last, status, 0
    last.learner, last.tracker = best["state"]
    return last, status, best["n_epochs"] + 1


def begin(growth, data, monitor, plan, workers):
    """Prepare the sample of the model, and measure the model."""
    fill(growth, data, workers)
    if growth.learner.sample is None:
        growth.learner.sample = initial_sample(growth, data, plan, workers)
        # Where means are off, units would be spent on them. A start from elsewhere may be
        # far off.
        n_steps = FIRST_BIAS_STEPS * plan.n_bias_steps
        _match_means(growth, data, plan, n_steps, workers)
    if not growth.history:
        record(growth, monitor, workers, 0.0)


def fill(growth, data, workers):
    """Draw the missing cells of the data given the others, if there are any."""
    if isinstance(data, IncompleteSample):
        data.follow(growth.learner, workers)


def initial_sample(growth, data, plan, workers):
    """A sample of the distribution of the model."""
    learner = growth.learner
    if n_bits(learner.visible) <= np.log2(plan.n_model_samples):
        return Enumeration.of(learner)
    if learner.n_units == 0:
        shape = plan.n_model_samples, len(learner.visible)
        field = np.zeros(shape, dtype=learner.weights.dtype)
        return ChainSample(learner.model().visible.sample(field, learner.stream))
    rows = dense(data.rows[data.draw(growth.rng, plan.n_model_samples)])
    if learner.visible.is_binary:
        rows = draw(np.ascontiguousarray(rows), learner.stream)
    chains = ChainSample(rows)
    chains.follow(learner, BURN_IN, workers)
    return chains


def insert_unit(growth, data, monitor, plan, workers):
    """Insert a unit; -> whether there is one with a gain."""
    start, learner = perf_counter(), growth.learner
    change = find_gain(growth, data, plan, workers)
    if change is None:
        return False
    learner.insert(change.unit, change.scale, change.shift)
    learner.sample.follow(learner, plan.n_gibbs, workers)
    follow(growth, 2 * plan.n_gibbs * len(learner.sample) * learner.weights.size, workers)
    if plan.mode == "corrective":
        train_together(growth, data, plan, workers)
    _match_means(growth, data, plan, plan.n_bias_steps, workers)
    fill(growth, data, workers)
    growth.n_epochs += 1
    record(growth, monitor, workers, perf_counter() - start, change)
    return True


def find_gain(growth, data, plan, workers):
    """The unit to insert, or None if there is none with a gain."""
    for k in range(TRIES):
        plain = plan.mode == "plain"
        alpha = plan.alpha if plain else plan.alpha / 4**k
        subset, sample = _subset(growth, data), growth.learner.sample
        options = {"plain": plain, "n_failed": k}
        change = find_unit(data, subset, sample, alpha, growth.rng, workers, **options)
        if change is not None and (change.gain > plan.tol or plain):
            return change
        sample.follow(growth.learner, plan.n_gibbs, workers)
    return None


def _subset(growth, data):
    """The rows that a unit is fitted to."""
    if len(data) <= FITTED_ROWS:
        return data
    if data.probability is not None:
        return Sample(data.rows[data.draw(growth.rng, FITTED_ROWS)])
    return Sample(data.rows[growth.rng.choice(len(data), FITTED_ROWS, replace=False)])


def train_together(growth, data, plan, workers):
    """Some mini-batches of CS-DCP on all units (the fully corrective step)."""
    learner = growth.learner
    for _ in range(plan.n_corrective):
        chosen = np.sort(data.draw(growth.rng, CORRECTIVE_ROWS))
        learner.learn(learner.in_memory(dense(data.rows[chosen])), CORRECTIVE_RATE, workers)
        follow(growth, learner.work(len(chosen)), workers)
    learner.sample.follow(learner, plan.n_gibbs, workers)


def _match_means(growth, data, plan, n_steps, workers):
    learner = growth.learner
    match_means(learner, learner.sample, data, plan.learning_rate, n_steps, workers)


def follow(growth, work, workers):
    """Go after ln Z of a model that has changed."""
    if growth.tracker is not None:
        growth.tracker.follow(growth.learner.model(), work, workers)


def record(growth, monitor, workers, seconds, change=None):
    """Measure the model; an error if it is not finite."""
    learner = growth.learner
    if not all(np.isfinite(a).all() for a in learner.parameters()):
        raise FloatingPointError("The parameters are not finite.")
    entry = {
        "n_components": learner.n_units,
        **monitor.measure(learner.model(), workers, growth.tracker),
        "gain": 0.0 if change is None else change.gain,
        "ess": 1.0 if change is None else change.ess,
        "scale": 0.0 if change is None else change.scale,
        "norm": 0.0 if change is None else float(change.scale * np.linalg.norm(change.unit)),
        "seconds": seconds,
    }
    if not np.isfinite(list(entry.values())).all():
        raise FloatingPointError("The likelihood is not finite.")
    for name, value in entry.items():
        growth.history.setdefault(name, []).append(value)


def remembered(growth, best, plan):
    """The state of largest log-likelihood of the held-out rows: the best so far, or now."""
    if not plan.early_stopping:
        return None
    figures = growth.figures(0)
    now = figures["validation_log_likelihood"]
    if best is not None and not now > best["log_likelihood"] + plan.tol:
        return best
    state = deepcopy((growth.learner, growth.tracker))
    gap = figures["free_energy_gap"]
    return {"log_likelihood": now, "gap": gap, "n_epochs": growth.n_epochs, "state": state}


def has_stopped_rising(growth, best, plan):
    """Whether units came in vain, and the training rows profited from them."""
    if best is None:
        return False
    widened = growth.figures(0)["free_energy_gap"] > best["gap"]
    return widened and growth.n_epochs - best["n_epochs"] >= plan.n_iter_no_change
