"""An RBM that grows a hidden unit at a time: an epoch inserts one, by Frank-Wolfe's steps."""

from copy import deepcopy
from time import perf_counter
from typing import NamedTuple

import numpy as np

from sklearn_boltz._methods import dense
from sklearn_boltz.restricted.model._enumeration import n_bits
from sklearn_boltz.restricted.sampling._gibbs import draw
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._epochs import QUIET, Diverged
from sklearn_boltz.restricted.training._frank_wolfe import (
    BURN_IN,
    FITTED_ROWS,
    ChainSample,
    Enumeration,
    IncompleteSample,
    Sample,
    find_unit,
    match_means,
    without_codes,
)
from sklearn_boltz.restricted.training._gaps import MiniBatch

# Searches without success before the fit ends: their initial units may have been poor, or the
# penalty may have kept every unit out.
TRIES = 5
# Units without improvement after which early stopping ends the training.
PATIENCE = 10
# The joint training of the corrective mode: rows of a mini-batch, and learning rate.
CORRECTIVE_ROWS, CORRECTIVE_RATE = 100, 0.05


class GrowthPlan(NamedTuple):
    """How to grow (Algorithm 1): parameters of `InfiniteRBM` by their names, and what is fixed.

    Attributes
    ----------
    n_epochs : int
        Units to insert, at most.
    """

    n_epochs: int
    alpha: float
    mode: str
    learning_rate: float
    n_model_samples: int
    n_gibbs: int
    n_corrective: int
    early_stopping: bool | float
    tol: float

    name = "unit"

    def begin(self, growth, rows, monitor, workers):
        """Prepare the sample of the model, and measure the model; -> the rows as a `Sample`."""
        # Row after row in memory, however a table lies there.
        V = rows.source[rows.numbers]
        V = without_codes(V) if V.shape[0] <= FITTED_ROWS else V
        weights, learner, monitor = rows.weights, growth.learner, monitor()
        kind = Sample if rows_with_gaps(V) is None else IncompleteSample
        data = kind(V, None if weights is None else weights / weights.sum())
        growth.kept = None  # `data` has the missing cells
        start = growth.copy()
        try:
            with QUIET():
                fill(growth, data, workers)
                if learner.sample is None:
                    learner.sample = initial_sample(growth, data, self, workers)
                    # Where means are off, units would be spent on them. A start from elsewhere may
                    # be far off.
                    match_means(learner, learner.sample, data, self.learning_rate, workers)
                if not growth.history:
                    record(growth, monitor, workers, 0.0)
        except Diverged:
            vars(growth).update(vars(start))
            raise
        growth.best = None
        self.remember_best(growth)
        return data

    def epoch(self, growth, data, monitor, workers, is_last):
        """Insert a unit; -> whether it is the end.

        It is if there is none with a gain, or if units came in vain, and the training rows
        profited from them.
        """
        with QUIET():
            if not insert_unit(growth, data, monitor(), self, workers):
                return True
        self.remember_best(growth)
        best = growth.best
        if best is None or growth.n_epochs - best["since"] < PATIENCE:
            return False
        return growth.figures(growth.n_epochs)["free_energy_gap"] > best["gap"]

    def end(self, growth, status):
        """Choose the model that is kept: the best one, or the last one after Ctrl-C."""
        best, growth.best = growth.best, None
        if best is not None and status != "interrupted":
            growth.learner, growth.tracker = best["state"]
            growth.of_epoch = best["epoch"]

    def remember_best(self, growth):
        """Keep the state of largest log-likelihood of the held-out rows."""
        if not self.early_stopping:
            return
        # A fit that goes on begins with the model that the last one has kept.
        epoch, best = growth.of_epoch, growth.best
        figures = growth.figures(epoch)
        score, gap = figures["validation_log_likelihood"], figures["free_energy_gap"]
        if best is None or score > best["score"] + self.tol:
            state = deepcopy((growth.learner, growth.tracker))
            growth.best = {
                "score": score, "gap": gap, "epoch": epoch, "since": growth.n_epochs,
                "state": state,
            }  # fmt: skip


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
    if growth.tracker is not None:
        work = 2 * plan.n_gibbs * len(learner.sample) * learner.weights.size
        growth.tracker.follow(learner.model(), work, workers)
    if plan.mode == "corrective":  # mini-batches of CS-DCP on all units
        for _ in range(plan.n_corrective):
            chosen = np.sort(data.draw(growth.rng, CORRECTIVE_ROWS))
            growth.learn(MiniBatch(dense(data.rows[chosen])), CORRECTIVE_RATE, workers)
        learner.sample.follow(learner, plan.n_gibbs, workers)
    match_means(learner, learner.sample, data, plan.learning_rate, workers)
    fill(growth, data, workers)
    record(growth, monitor, workers, perf_counter() - start, change)
    return True


def find_gain(growth, data, plan, workers):
    """The unit to insert, or None if there is none with a gain."""
    for k in range(TRIES):
        plain = plan.mode == "plain"
        alpha = plan.alpha if plain else plan.alpha / 4**k
        subset, sample = _subset(growth, data), growth.learner.sample
        options = {"plain": plain, "n_failed": k}
        change = find_unit(data, subset, sample, alpha, growth.rng, **options)
        if change is not None and (change.gain > plan.tol or plain):
            return change
        sample.follow(growth.learner, plan.n_gibbs, workers)
    return None


def _subset(growth, data):
    """The rows that a unit is fitted to."""
    if len(data) <= FITTED_ROWS:
        return data
    if data.probability is not None:
        chosen = data.draw(growth.rng, FITTED_ROWS)
    else:
        chosen = growth.rng.choice(len(data), FITTED_ROWS, replace=False)
    return Sample(without_codes(data.rows[chosen]))


def record(growth, monitor, workers, seconds, change=None):
    """Measure the model, after one more unit if there is a change."""
    learner = growth.learner
    if not growth.is_finite():
        raise Diverged
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
        raise Diverged
    growth.n_epochs += change is not None
    growth.record(entry)
