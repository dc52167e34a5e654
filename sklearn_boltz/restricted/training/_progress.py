"""Decisions from the progress of a training: the best epoch, slower steps, the end."""

from copy import deepcopy
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import copied
from sklearn_boltz.restricted.training._schedule import FALL

# Epochs over which an uncertain log-likelihood is averaged before it is compared, and how many of
# those in which it was measured, at least.
AVERAGED, LEAST_AVERAGED = 5, 3
# The figure that epochs have in which the likelihood was measured.
FOLLOWED = "log_likelihood_std_err"
# A log-likelihood counts as lower than another one if it is so by this many nats, where both are
# measured by slow annealing.
MISSED = 0.1


def tell_figures(name, of, number, figures):
    """Print figures of an epoch of the estimator of a name."""
    figures = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    print(f"[{name}] {of} {number}: {figures}")


def this_epoch(training, score, has_started, is_held_out, gap=None):
    """State of the last epoch to keep, if it is the best one."""
    return {
        "score": score, "epoch": training.n_epochs, "waiting_since": training.n_epochs,
        "has_started": has_started, "is_held_out": is_held_out, "gap": gap,
        "parameters": [copied(a) for a in training.learner.parameters()],
        "tracker": deepcopy(training.tracker),
    }  # fmt: skip


def remember_best(training, monitor, plan, workers):
    """Compare what is of interest, of held-out rows if there are any, with the best so far."""
    figures, best = training.figures(training.n_epochs), training.best
    is_held_out = plan.patience is not None
    if best is not None and best["is_held_out"] != is_held_out:
        best = None  # scores of other rows cannot be compared
    now = monitor.of_interest(figures)
    least = -np.inf if best is None else best["score"] + plan.tol
    uncertain = training.tracker is not None and figures["log_likelihood_std_err"] > 0
    postponed = False
    if now > least and uncertain and (plan.keep_best or plan.patience):
        model = training.learner.model()
        can_wait = best is not None and not plan.keep_best
        tracked = training.tracker.verified(model.sides(), workers, can_wait)
        postponed = tracked is None
        if not postponed:
            now = monitor.verified(model, tracked, now, workers)
    # A plateau at the start is no reason to end, however long; to fall back to it later is.
    started = monitor.has_started(figures) or (best is not None and best["has_started"])
    if postponed:  # it may be progress
        best = {**best, "waiting_since": training.n_epochs}
    elif now > least:
        best = this_epoch(training, now, started, is_held_out)
    elif not started:
        best = {**best, "waiting_since": training.n_epochs}
    training.best = best


def return_to(training, epoch):
    """Give the learner the parameters of an epoch."""
    assign(training.learner, epoch["parameters"])
    training.tracker, training.of_epoch = deepcopy(epoch["tracker"]), epoch["epoch"]


def assign(learner, parameters):
    """Give the learner other parameters."""
    for mine, other in zip(learner.parameters(), parameters, strict=True):
        mine[...] = other


class Mean(NamedTuple):
    """The mean of the parameters in a last stage, after `n_epochs` of it."""

    n_epochs: int = 0
    n_averaged: int = 0
    parameters: list | None = None

    def updated(self, parameters, n_most):
        """The mean after one more epoch, of `n_most`."""
        n_epochs = self.n_epochs + 1
        if 3 * n_epochs <= n_most:
            return Mean(n_epochs)
        if not self.n_averaged:
            return Mean(n_epochs, 1, [copied(now) for now in parameters])
        n_averaged = self.n_averaged + 1
        pairs = zip(self.parameters, parameters, strict=True)
        return Mean(n_epochs, n_averaged, [mean + (now - mean) / n_averaged for mean, now in pairs])

    def moved(self, convert):
        """The mean with its arrays elsewhere: `convert` is for each of them."""
        moved = None if self.parameters is None else [convert(a) for a in self.parameters]
        return self._replace(parameters=moved)


def end_stage(training, monitor, plan, workers):
    """End a stage if it is time, and go on with smaller steps.

    The log-likelihood of an epoch is uncertain, and of many epochs the one whose ln Z is most
    underestimated looks like the best: often a model that has mass far from the data. So a stage
    ends with its last epoch, whose smaller steps leave less of such mass, unless it has overfitted.
    That is seen without ln Z: the free energy of rows held out has risen against that of others.

    Parameters
    ----------
    training : Training
        Changed in place.
    monitor : RBMMonitor, TAPMonitor or ClassMonitor
    plan : Plan
    workers : Workers

    Returns
    -------
    converged : bool
        Whether this was the last stage. `training.best` is then the epoch that counts.
    """
    if training.mean is not None:
        return end_last_stage(training, monitor, plan, workers)
    stages, stage, now = plan.stages, training.stage, training.n_epochs
    figures = training.figures(now)
    if FOLLOWED not in figures:
        return False
    is_exact = training.tracker is None or not figures[FOLLOWED]
    n_averaged, least = (1, 1) if is_exact else (AVERAGED, LEAST_AVERAGED)
    epochs = range(now, training.fallen_at, -1)
    last = list(measured(training, epochs[:n_averaged]))
    if len(last) < least:
        last = list(islice(measured(training, epochs), least))
    if len(last) < least or len(epochs) < n_averaged:
        return False
    started = monitor.has_started(figures) or (stage is not None and stage["has_started"])
    score = np.mean([monitor.of_interest(figures) for figures in last])
    gap = np.mean([figures["free_energy_gap"] for figures in last])
    if stage is None or score > stage["score"] + plan.tol:
        stage = this_epoch(training, score, started, True, gap)
    elif not started and now < stages.plateau:  # a plateau at the beginning is no reason to end
        stage = {**stage, "waiting_since": now}
    training.stage = stage
    patience = min(stages.patience, stages.later) if training.n_stages else stages.patience
    is_over = started and len(epochs) >= stages.longest
    if now - stage["waiting_since"] < patience and not is_over:
        return False
    here = this_epoch(training, score, started, True, gap)
    former = training.best if training.n_stages else None  # that of another fit has no stages
    training.best = latest([former, stage, here], plan.tol)
    return_to(training, training.best)
    training.rate_factor *= FALL
    training.fallen_at, training.stage = now, None
    training.n_stages += 1
    if training.n_stages < stages.n_stages:
        return False
    if not stages.last_epochs:
        return True
    training.mean, training.learner.chains = Mean(), None
    training.learner.turn_persistent()
    return False


def measured(training, epochs):
    """The values of those of some epochs in which the model was measured, one by one."""
    found = map(training.figures, epochs)
    return (figures for figures in found if training.tracker is None or FOLLOWED in figures)


def end_last_stage(training, monitor, plan, workers):
    """End the last stage if it is time, with the mean of its parameters.

    Where that is clearly worse than the model before the last stage, by its log-likelihood and by
    its free energies, the model before is kept.

    Parameters
    ----------
    training, monitor, plan, workers
        As of `end_stage`.

    Returns
    -------
    converged : bool
        Whether the stage has ended. `training.best` is then the epoch that counts.
    """
    n_epochs = plan.stages.last_epochs
    training.mean = training.mean.updated(training.learner.parameters(), n_epochs)
    if training.mean.n_epochs < n_epochs:
        return False
    measure = partial(measure_slowly, training, monitor, workers)
    before = {**training.best, **measure(training.best["parameters"])}
    mean = measure(training.mean.parameters)
    now = {**this_epoch(training, None, before["has_started"], True), **mean}
    training.best = latest([before, now], max(plan.tol, MISSED if mean["std_err"] else 0.0))
    training.mean, training.fallen_at = None, training.n_epochs
    return True


def measure_slowly(training, monitor, workers, parameters):
    """Measure a model with other parameters, by slow annealing where it is not exact.

    The learner has these parameters afterwards.

    Returns
    -------
    known : dict
        The score, the gap of the free energies, the standard error and a copy of the parameters.
    """
    assign(training.learner, parameters)
    figures = monitor.measure_slowly(training.learner.model(), training.tracker, workers)
    return {
        "score": monitor.of_interest(figures), "gap": figures["free_energy_gap"],
        "std_err": figures["log_likelihood_std_err"], "parameters": [copied(a) for a in parameters],
    }  # fmt: skip


# An epoch was better than another one if by this many standard errors.
CLEARLY = 2


def held_out(training):
    """The log-likelihood of held-out rows by the model, and its error; NaN if not known."""
    figures, best = training.figures(training.of_epoch), training.best
    if "validation_log_likelihood" not in training.history:
        return np.nan, np.nan
    if best is not None and best["epoch"] == training.of_epoch:
        return best["score"], figures.get(FOLLOWED, 0.0)
    return tuple(figures.get(name, np.nan) for name in ("validation_log_likelihood", FOLLOWED))


def higher(peak, training):
    """The copy of a training with the largest log-likelihood of held-out rows so far, or None."""
    score, error = held_out(training)
    if training.of_epoch != training.n_epochs or np.isnan(score):
        return peak
    return training if peak is None or score - CLEARLY * error > held_out(peak)[0] else peak


def fall_back(training, peak, monitor, workers):
    """Give a training the parameters of its best epoch, if what it has is clearly worse.

    The log-likelihood of held-out rows decides, with its errors by ln Z and by the rows. Of many
    epochs, the one whose ln Z is most underestimated looks like the best, so both are measured
    again, by slow annealing.

    Parameters
    ----------
    training : Training
        At its end; changed in place.
    peak : Training or None
        After the epoch with the largest log-likelihood.
    monitor : callable
        As of `train`.
    workers : Workers
    """
    if peak is None or peak.of_epoch == training.of_epoch:
        return
    score, error = held_out(peak)
    if held_out(training)[0] >= score - CLEARLY * error:
        return
    models = peak.learner.model(), training.learner.model()
    gain, error = monitor().difference(models, training.tracker, workers)
    if gain > CLEARLY * error:
        training.learner, training.tracker = deepcopy((peak.learner, peak.tracker))
        training.of_epoch = peak.of_epoch


def latest(epochs, tol):
    """The last of some epochs that has not overfitted in comparison with one before."""
    best = None
    for epoch in filter(None, epochs):
        if best is None or min(best["score"] - epoch["score"], epoch["gap"] - best["gap"]) <= tol:
            best = epoch
    return best
