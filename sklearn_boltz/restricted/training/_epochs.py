"""The training: the loop over epochs and mini-batches, and all that it changes."""

from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import all_finite, is_foreign
from sklearn_boltz.restricted.training._progress import (
    end_stage,
    higher,
    measured,
    remember_best,
    return_to,
)
from sklearn_boltz.restricted.training._schedule import FALL, Stages

# Whether anything overflowed is seen in the parameters, which are checked.
QUIET = partial(np.errstate, over="ignore", invalid="ignore")


class Diverged(Exception):
    """Parameters or figures are not finite."""


class Training:
    """All that a fit changes, from one epoch to the next and from one fit to the next.

    Parameters
    ----------
    learner : SDCPLearner, TAPLearner or ClassLearner
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
    of_epoch : int
        The epoch that the parameters are of.
    history : dict of list
        What was measured after each epoch; NaN where a figure was not.
    best : dict or None
        The epoch in which held-out rows had the largest log-likelihood, or the best of another
        score of the monitor, with what the plan keeps of it: its parameters, or its learner.
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
    tempered : bool
        Whether states of the negative phase come from a ladder because chains did not mix.
    start : object or None
        While fitting, the learner before the first epoch, and before any pre-training, if the
        training may begin anew: pre-training has the modes of chains that do not mix.
    peak : Training or None
        While fitting, as it was after the epoch in which held-out rows were most probable.
    """

    def __init__(self, learner, rng, seen, base, evaluation_seed=None):
        self.learner, self.rng, self.seen, self.base = learner, rng, seen, base
        self.dtype = learner.dtype
        drawn = evaluation_seed is None
        self.evaluation_seed = int(rng.integers(2**31)) if drawn else evaluation_seed
        self.n_passes = self.n_epochs = self.of_epoch = self.n_rows = 0
        self.history, self.best, self.kept, self.tracker = {}, None, None, None
        self.rate_factor, self.fallen_at, self.n_stages = 1.0, 0, 0
        self.stage = self.mean = None
        self.before, self.tempered, self.start, self.peak = [], False, None, None

    def learn(self, batch, rate, workers):
        """Learn from a `MiniBatch`, or one in `Parts` on a cluster, and follow ln Z."""
        tracker = self.tracker
        if tracker is not None and tracker.keep:
            self.learner.take_states(tracker.top(self.learner.model().sides()).states)
        self.learner = batch.teach(self.learner, rate, workers)
        if tracker is None:
            return
        model = self.learner.model().sides()
        # Reading the parameters would wait for the device; a ladder on the device does without it.
        if not tracker.has_ladder() or is_foreign(model.weights) or self.is_finite():
            tracker.follow(model, self.learner.work(len(batch)), workers)

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
        """Add what was measured after the last epoch, of which the parameters now are."""
        self.of_epoch, n_before = self.n_epochs, len(self.history.get("seconds", ()))
        for name in {**self.history, **figures}:
            values = self.history.setdefault(name, [np.nan] * n_before)
            values.append(figures.get(name, np.nan))

    def figures(self, epoch):
        """Measurements after an epoch."""
        place = epoch - self.n_epochs - 1  # from the end: there may be an entry for the start
        found = {name: values[place] for name, values in self.history.items()}
        return {name: value for name, value in found.items() if not np.isnan(value)}

    def measured(self, epoch):
        """The values of an epoch, or of the last one before in which the model was measured."""
        first = self.n_epochs - len(self.history.get("seconds", ()))
        return next(measured(self, range(epoch, first, -1)), {})


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
    may_temper : bool
        Whether the training begins anew, with states from a ladder, if its chains do not mix.
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
    may_temper: bool = False
    prepare: Callable | None = None

    name = "epoch"

    def begin(self, training, rows, monitor, workers):
        """Prepare a training, which may have had another plan; -> what epochs learn from."""
        training.start = deepcopy(training.learner) if self.may_temper else None
        if self.prepare is not None and not training.n_passes and not training.before:
            self.prepare(training, rows, workers)
        if self.fall_after is None and self.stages is None:
            training.rate_factor = 1.0
        if self.keep_best and not self.patience:
            training.best = None  # only epochs of this fit are compared
        if self.stages is None or not self.stages.last_epochs:
            training.mean = None
        if training.mean is not None:
            training.learner.turn_persistent()
        return rows

    def epoch(self, training, rows, monitor, workers, is_last):
        """Make an epoch, and measure the model if it is time; -> whether it is the end."""
        start = perf_counter()
        training.n_passes += 1
        rate = training.rate_factor if training.mean is None else self.stages.last_rate
        rate *= self.rate
        with QUIET():
            for batch in rows.mini_batches(self.batch_size, training.rng):
                training.learn(batch, rate, workers)
            finite = training.is_finite()  # which waits for a device to come to the end
            seconds = perf_counter() - start
            if not finite:
                raise Diverged
            figures = self.figures(training, monitor, workers, is_last)
        if not np.isfinite(list(figures.values())).all():
            raise Diverged
        training.n_epochs += 1
        if training.tracker is not None:
            figures = {"log_likelihood": np.nan} | figures  # also where it was not measured
        training.record({**figures, "learning_rate": rate, "seconds": seconds})
        return self.ends(training, monitor, workers, is_last)

    def figures(self, training, monitor, workers, is_last):
        """Figures of the model: its likelihood as the cost allows, and after the last epoch.

        Others are those of each epoch, but in stages, which are many epochs.
        """
        model, tracker, stages = training.learner.model(), training.tracker, self.stages
        is_time = tracker is None or tracker.can_measure(model.sides(), stages is not None)
        if stages is not None:
            mean = training.mean  # of which the next epoch may be the end
            is_end = mean is not None and mean.n_epochs + 1 >= stages.last_epochs
            return monitor().measure(model, workers, tracker) if is_time or is_end else {}
        if not is_time:
            # A fit that goes on from here has the same figures later: the tracker is not changed.
            tracker = deepcopy(tracker) if is_last else None
        return monitor().measure(model, workers, tracker)

    def ends(self, training, monitor, workers, is_last):
        """Whether more epochs would be in vain; the learner then has the best parameters."""
        converged = False
        if self.stages is not None:
            converged = end_stage(training, monitor(), self, workers)
        elif self.patience or self.keep_best or self.fall_after:
            remember_best(training, monitor(), self, workers)
            waited = training.n_epochs - training.best["waiting_since"]
            converged = bool(self.patience) and waited >= self.patience
            since = max(training.best["waiting_since"], training.fallen_at)
            if self.fall_after is not None and training.n_epochs - since >= self.fall_after:
                training.rate_factor *= FALL
                training.fallen_at = training.n_epochs
        if converged or (self.keep_best and is_last):
            return_to(training, training.best)
        return converged

    def end(self, training, status):
        """Choose the model that is kept."""
        if status == "interrupted" and self.keep_best and training.best is not None:
            return_to(training, training.best)


def train(training, rows, monitor, plan, workers, end_epoch):
    """Make the epochs of a fit.

    Parameters
    ----------
    training : Training
        Changed in place.
    rows : ChosenRows, StreamedRows or LabelledRows
    monitor : callable
        Returns the monitor of the fit; called where the model is measured.
    plan : Plan or GrowthPlan
    workers : Workers
    end_epoch : callable
        Called with a copy of the training after each epoch; returns whether to stop.

    Returns
    -------
    training : Training
        As it was after the last complete epoch, or after the best one if `status` says
        "converged" or the plan is to keep the best; with its `peak`.
    status : {"max_iter", "converged", "asked", "diverged", "interrupted"}
        Why it ended.
    """
    last, peak, status = training, None, "max_iter"
    try:
        rows = plan.begin(training, rows, monitor, workers)
        last = training.copy()
        for n_left in reversed(range(plan.n_epochs)):
            converged = plan.epoch(training, rows, monitor, workers, is_last=not n_left)
            if training.n_epochs > last.n_epochs:
                last = training.copy()
                peak = peak if converged else higher(peak, last)
                if end_epoch(last):
                    status = "asked"
                    break
            if converged:
                status = "converged"
                break
    except Diverged:
        status = "diverged"
    except KeyboardInterrupt:
        status = "interrupted"
    plan.end(last, status)
    last.peak = peak
    return last, status
