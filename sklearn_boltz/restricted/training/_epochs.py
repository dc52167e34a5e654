"""The training: the loop over epochs and mini-batches, and all that it changes."""

from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import all_finite, is_foreign
from sklearn_boltz.restricted.training._auto import LEAST_RATE, LEVEL
from sklearn_boltz.restricted.training._cluster import Parts, learn_in_parts
from sklearn_boltz.restricted.training._gaps import Incomplete, seed_of_batch
from sklearn_boltz.restricted.training._progress import (
    Stages,
    end_stage,
    ends_last_stage,
    lower_rate,
    measured,
    remember_best,
    return_to,
    take_up,
)

# Whether anything overflowed is seen in the parameters, which are checked.
QUIET = partial(np.errstate, over="ignore", invalid="ignore")


class Training:
    """All that a fit changes, from one epoch to the next and from one fit to the next.

    Parameters
    ----------
    learner : Learner
        The parameters, with their `dtype` and the methods `parameters`, `model`, `in_memory` and
        `learn`.
    rng : Generator
        Of the order of the rows.
    seen : NamedTuple
        What is kept of the data, with a method `more`.
    base : UnitType
        Independent units of the visible side, fitted to the data.
    evaluation_seed : int, default=None
        Of estimates that must be the same each time; None to draw one.

    Attributes
    ----------
    dtype : dtype
        Type that the model computes in.
    n_passes : int
        Number of epochs begun and of calls of `partial_fit`, for the learning rate.
    n_epochs : int
        Number of complete epochs.
    history : dict of list
        What was measured after each epoch; NaN where a figure was not.
    best : dict or None
        The epoch in which held-out rows had the largest log-likelihood, or what else a monitor
        takes for the score, with its parameters.
    stage : dict or None
        The best epoch of a stage, likewise.
    kept : KeptValues or None
        Values of the missing cells between visits.
    tracker : Tracker or None
        Of the normalising constant; None where it is exact or not looked at.
    n_rows : int
        By which ``"auto"`` parameters are chosen; of rows with weights, how many effectively.
    rate_factor : float
        What the learning rate is multiplied by, after falls of it.
    fallen_at : int
        The epoch after which it fell.
    n_stages : int
        Number of stages that have ended.
    mean : Mean or None
        In the last stage, the mean of its parameters.
    before : list of dict
        Histories of what came before the first epoch, as the pre-training of layers.
    """

    def __init__(self, learner, rng, seen, base, evaluation_seed=None):
        self.learner, self.rng, self.seen, self.base = learner, rng, seen, base
        self.dtype = learner.dtype
        drawn = evaluation_seed is None
        self.evaluation_seed = int(rng.integers(2**31)) if drawn else evaluation_seed
        self.n_passes = self.n_epochs = self.n_rows = 0
        self.history, self.best, self.kept, self.tracker = {}, None, None, None
        self.rate_factor, self.fallen_at, self.n_stages = 1.0, 0, 0
        self.stage = self.mean = None
        self.before = []

    def see(self, X, weights):
        """Take more rows into account."""
        self.seen, self.base = self.seen.more(X, weights, self.base)

    def learn(self, V, rate, workers):
        """Learn from a mini-batch, and go after its ln Z."""
        tracker, rung = self.tracker, None
        if tracker is not None and tracker.keep:
            rung = tracker.top(self.learner.model())
            self.learner.tempered = rung.states
        if isinstance(V, Incomplete) and self.learner.draws_gaps and np.isnan(V.V).any():
            V = V.completed(self.learner.model(), seed_of_batch(self.learner.stream), workers)
        V = V.V if isinstance(V, Incomplete) else V
        if isinstance(V, Parts):
            self.learner = learn_in_parts(self.learner, V, rate, workers)
        else:
            self.learner.learn(self.learner.in_memory(V), rate, workers)
        if rung is not None:
            rung.states = self.learner.tempered
        # To look at the parameters would wait for a device: a ladder that lies there does without.
        if tracker is None:
            return
        if not tracker.has_ladder() or is_foreign(V) or self.is_finite():
            n_rows = V.shape[0] if is_foreign(V) else len(V)
            tracker.follow(self.learner.model().sides(), self.learner.work(n_rows), workers)

    def copy(self):
        """The training as it is now, in a copy that no one else changes."""
        other = copy(self)
        other.learner, other.rng, other.tracker = deepcopy((self.learner, self.rng, self.tracker))
        other.kept = None if self.kept is None else self.kept.copy()
        other.history = {name: list(values) for name, values in self.history.items()}
        return other

    def is_finite(self):
        """Whether all parameters are."""
        return all(map(all_finite, self.learner.parameters()))

    def moved(self, convert):
        """The training with the arrays of the learner elsewhere, without its ladder."""
        other = copy(self)
        other.learner, other.tracker = self.learner.moved(convert), None
        for name in ("best", "stage"):
            kept = getattr(self, name)
            if kept is not None:
                parameters = [convert(a) for a in kept["parameters"]]
                setattr(other, name, {**kept, "parameters": parameters, "tracker": None})
        other.mean = None if self.mean is None else self.mean.moved(convert)
        return other

    def record(self, figures):
        """Add what was measured after the last epoch."""
        for name in {**self.history, **figures}:
            values = self.history.setdefault(name, [np.nan] * (self.n_epochs - 1))
            values.append(figures.get(name, np.nan))

    def figures(self, epoch):
        """What was measured after an epoch."""
        found = {name: values[epoch - 1] for name, values in self.history.items()}
        return {name: value for name, value in found.items() if not np.isnan(value)}

    def measured(self, epoch):
        """The figures of an epoch, or of the last one before in which the model was measured."""
        return next(measured(self, range(epoch, 0, -1)), {})


class Plan(NamedTuple):
    """How long and how fast to train.

    Attributes
    ----------
    n_epochs : int
        At most.
    batch_size : int
    rate : float
        The learning rate, before any fall of it.
    patience : int or None
        Epochs without progress of held-out rows after which to stop; None not to look.
    tol : float
        What counts as progress, in nats, or on the scale of the score.
    keep_best : bool
        Whether the model of the largest score is kept, also without patience.
    fall_after : int or None
        Epochs without progress after which the learning rate falls; None for never.
    stages : Stages or None
        A training in stages, which decide on rates and on the end in the place of `patience` and
        `fall_after`.
    prepare : callable or None
        What comes before the first epoch of a new training: called with the training, its rows and
        the workers, it fills `before` of the training.
    """

    n_epochs: int
    batch_size: int
    rate: float
    patience: int | None = None
    tol: float = 0.0
    keep_best: bool = False
    fall_after: int | None = None
    stages: Stages | None = None
    prepare: Callable | None = None

    def adapted(self, independence):
        """The plan for rows whose columns are independent or not, as tests have it."""
        if independence.is_likely:  # there is nothing to learn: stay near the initial model
            return self._replace(n_epochs=1, rate=LEAST_RATE)
        if self.stages is None:
            return self
        # What pairs have in common is learned soon, and orders above perhaps after a long plateau.
        plateau = 0 if independence.pairs <= LEVEL else np.inf
        return self._replace(stages=self.stages._replace(plateau=plateau))


def train(training, rows, monitor, plan, workers, end_epoch):
    """Make the epochs of a fit.

    Parameters
    ----------
    training : Training
        Changed in place.
    rows : ChosenRows or StreamedRows
    monitor : callable
        Returns a `Monitor`; called after the first epoch.
    plan : Plan
    workers : Workers
    end_epoch : callable
        Called with a copy of the training after each epoch; returns whether to stop.

    Returns
    -------
    training : Training
        As it was after the last complete epoch, or after the best one if `status` says
        "converged" or the plan is to keep the best.
    status : {"max_iter", "converged", "asked", "diverged", "interrupted"}
        Why it ended.
    """
    if plan.prepare is not None and not training.n_passes and not training.before:
        plan.prepare(training, rows, workers)
    take_up(training, plan)
    last, n_epochs = training.copy(), training.n_epochs + plan.n_epochs
    try:
        for _ in range(plan.n_epochs):
            is_last = training.n_epochs + 1 == n_epochs
            if not learn_epoch(training, rows, monitor, plan, workers, is_last):
                return last, "diverged"
            converged = False
            if plan.stages is not None:
                converged = end_stage(training, monitor(), plan, workers)
            elif plan.patience or plan.keep_best or plan.fall_after:
                remember_best(training, monitor(), plan, workers)
                waited = training.n_epochs - training.best["waiting_since"]
                converged = bool(plan.patience) and waited >= plan.patience
                lower_rate(training, plan.fall_after)
            ended = converged or training.n_epochs == n_epochs
            if converged or (plan.keep_best and ended):
                return_to(training, training.best)
            last = training.copy()
            if end_epoch(last):
                return last, "asked"
            if converged:
                return last, "converged"
    except KeyboardInterrupt:
        if plan.keep_best and last.best is not None:
            return_to(last, last.best)
        return last, "interrupted"
    return last, "max_iter"


def learn_epoch(training, rows, monitor, plan, workers, is_last):
    """Make an epoch, and measure the model if it is time; -> whether all is finite."""
    start = perf_counter()
    training.n_passes += 1
    rate = training.rate_factor if training.mean is None else plan.stages.last_rate
    rate *= plan.rate
    with QUIET():
        for V in rows.mini_batches(plan.batch_size, training.rng):
            training.learn(V, rate, workers)
        finite = training.is_finite()  # which waits for a device to come to the end
        seconds = perf_counter() - start
        if not finite:
            return False
        figures = measured_now(training, monitor, plan, workers, is_last)
    if not np.isfinite(list(figures.values())).all():
        return False
    training.n_epochs += 1
    if training.tracker is not None:
        figures = {"log_likelihood": np.nan} | figures  # an entry also where it was not measured
    training.record({**figures, "learning_rate": rate, "seconds": seconds})
    return True


def measured_now(training, monitor, plan, workers, is_last):
    """Figures of the model: its likelihood as the cost allows, and after the last epoch.

    Others are those of each epoch, but in stages, which are many epochs.
    """
    model, tracker, stages = training.learner.model(), training.tracker, plan.stages
    is_time = tracker is None or tracker.can_measure(model.sides(), stages is not None)
    if stages is not None:
        is_time = is_time or ends_last_stage(training, stages)
        return monitor().measure(model, workers, tracker) if is_time else {}
    if not is_time:
        # A fit that goes on from here has the same figures later, so the tracker is not changed.
        tracker = deepcopy(tracker) if is_last else None
    return monitor().measure(model, workers, tracker)
