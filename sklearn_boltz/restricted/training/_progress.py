"""What follows from the progress of a training: which epoch is the best, slower steps, the end."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from sklearn_boltz._arrays import copied

# Epochs over which an uncertain log-likelihood is averaged before it is compared.
AVERAGED = 5


class Fall(NamedTuple):
    """A fall of the learning rate: after how many epochs without progress, and by what factor."""

    patience: int
    factor: float


class Stages(NamedTuple):
    """A training in stages, each of which ends after so many epochs without progress.

    Attributes
    ----------
    patience : int
        Epochs without progress that end a stage.
    factor : float
        By which the learning rate is multiplied from one stage to the next.
    n_stages : int
    """

    patience: int
    factor: float
    n_stages: int


def this_epoch(training, score, has_started, is_held_out, gap=None):
    """What is kept of the last epoch, if it is the best one."""
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
        postponed = can_wait and not training.tracker.can_verify(model.sides())
        if not postponed:
            now = monitor.verified(model, training.tracker.verified(model.sides(), workers), now)
    # A plateau at the start is no reason to end, however long; to fall back to it later is.
    started = monitor.has_started(figures) or (best is not None and best["has_started"])
    if postponed:  # it may be progress
        best = {**best, "waiting_since": training.n_epochs}
    elif now > least:
        best = this_epoch(training, now, started, is_held_out)
    elif not started:
        best = {**best, "waiting_since": training.n_epochs}
    training.best = best


def lower_rate(training, fall):
    """Lower the learning rate, if it is time."""
    since = max(training.best["waiting_since"], training.fallen_at)
    if fall is not None and training.n_epochs - since >= fall.patience:
        training.rate_factor *= fall.factor
        training.fallen_at = training.n_epochs


def return_to(training, epoch):
    """Give the learner the parameters of an epoch."""
    for mine, other in zip(training.learner.parameters(), epoch["parameters"], strict=True):
        mine[...] = other
    training.tracker = deepcopy(epoch["tracker"])


def end_stage(training, monitor, plan):
    """End a stage if it is time, and go on with smaller steps.

    The log-likelihood of an epoch is uncertain, and of many epochs the one whose ln Z is most
    underestimated looks like the best: often a model that has mass far from the data. So a stage
    ends with its last epoch, whose smaller steps leave less of such mass, unless it has overfitted.
    That is seen without ln Z: the free energy of rows held out has risen against that of others.

    Parameters
    ----------
    training : Training
        Changed in place.
    monitor : Monitor
    plan : Plan

    Returns
    -------
    converged : bool
        Whether this was the last stage. `training.best` is then the epoch that counts.
    """
    stages, stage, now = plan.stages, training.stage, training.n_epochs
    figures = training.figures(now)
    is_exact = training.tracker is None or not figures["log_likelihood_std_err"]
    n_averaged = 1 if is_exact else AVERAGED
    if now - training.fallen_at < n_averaged:
        return False
    started = monitor.has_started(figures) or (stage is not None and stage["has_started"])
    last = [training.figures(epoch) for epoch in range(now - n_averaged + 1, now + 1)]
    score = np.mean([monitor.of_interest(figures) for figures in last])
    gap = np.mean([figures["free_energy_gap"] for figures in last])
    if stage is None or score > stage["score"] + plan.tol:
        stage = this_epoch(training, score, started, True, gap)
    elif not started:  # a plateau at the beginning is no reason to end, however long
        stage = {**stage, "waiting_since": now}
    training.stage = stage
    if now - stage["waiting_since"] < stages.patience:
        return False
    here = this_epoch(training, score, started, True, gap)
    former = training.best if training.n_stages else None  # that of another fit has no stages
    training.best = latest([former, stage, here], plan.tol)
    return_to(training, training.best)
    training.rate_factor *= stages.factor
    training.fallen_at, training.stage = now, None
    training.n_stages += 1
    return training.n_stages >= stages.n_stages


def latest(epochs, tol):
    """The last of some epochs that has not overfitted in comparison with one before."""
    best = None
    for epoch in filter(None, epochs):
        if best is None or min(best["score"] - epoch["score"], epoch["gap"] - best["gap"]) <= tol:
            best = epoch
    return best
