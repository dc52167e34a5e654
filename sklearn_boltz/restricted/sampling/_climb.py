"""ln Z of an RBM and samples of it by a ladder of models, new or that of a training."""

from copy import deepcopy

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy, concatenated, copied, taken
from sklearn_boltz.partition._ladder import Exchanges
from sklearn_boltz.partition._ladder_record import Record
from sklearn_boltz.restricted.model._model import check_normalisable
from sklearn_boltz.restricted.sampling._rungs import (
    Rung,
    begin_ladder,
    insert_between,
    laid_out,
    saved,
)

# Rungs at most, beside those that the ladder of a training has.
MOST_RUNGS = 200
# Rounds before acceptances are looked at, how often this is done, and what acceptance is wanted.
TRIAL, MOST_TRIALS, WANTED = 6, 40, 0.25
# Rounds for each rung before those that count, as for so many rungs at least; and how often rungs
# are looked for and left to settle.
SETTLING, LEAST_RUNGS, MOST_SETTLINGS = 2, 15, 5
# Unless told otherwise, a ladder ends at the standard error TOL in nats, or after MOST_ROUNDS. For
# what takes a few seconds, in multiplications, it makes more rounds, until it is at FINE.
TOL, MOST_ROUNDS, FINE, CHEAP = 0.05, 1000, 0.02, 1e11


def ladder_to(model, base, former, n_chains, stream, workers):
    """A ladder that leads to a model, whose neighbours exchange states.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units, by rights fitted to the data.
    former : Ladder or None
        Of a training that led to the model, or near it; it is not changed.
    n_chains : int
        At each rung.
    stream : Stream
    workers : Workers

    Returns
    -------
    ladder : Ladder
    """
    check_normalisable(model)
    model = saved(laid_out(model))
    if former is None:
        ladder = begin_ladder(model, base, n_chains, stream)
    else:
        ladder = of_size(deepcopy(former), n_chains)
        ladder.stream = stream
        top = ladder.rungs[-1]
        if not same_parameters(top.model, model):
            # The training ended elsewhere: its last model becomes a rung.
            ladder.insert(len(ladder) - 1, Rung(saved(top.model), copied(top.states)))
        ladder.rungs[-1].model = model
    settle(ladder, workers)
    return ladder


def settle(ladder, workers):
    """Connect all neighbours, and make rounds that do not count."""
    for _ in range(MOST_SETTLINGS):
        ladder.pairs = [Exchanges() for _ in ladder.pairs]
        connect(ladder, workers)
        for _ in range(SETTLING * max(len(ladder), LEAST_RUNGS)):
            ladder.round(workers)
        # Where chains have fallen into a mode meanwhile, exchanges may have become few.
        if (ladder.acceptances >= WANTED / 2).all():
            return


def of_size(ladder, n_chains):
    """A ladder with another number of chains, which begin where those that there are stand."""
    chosen = np.arange(n_chains) % len(ladder.rungs[0])
    for rung in ladder.rungs:
        rung.states = taken(rung.states, chosen)
    ladder.from_below = [np.zeros(n_chains, dtype=bool) for _ in ladder.rungs]
    return ladder


def same_parameters(one, other):
    """Whether two models have the same parameters."""
    mine, theirs = (
        list(
            map(
                as_numpy,
                [
                    model.weights,
                    *model.visible.parameters().values(),
                    *model.hidden.parameters().values(),
                ],
            )
        )
        for model in (one, other)
    )
    if len(mine) != len(theirs):
        return False
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True))


def connect(ladder, workers):
    """Put models between neighbours until all exchange states often enough."""
    for _ in range(MOST_TRIALS):
        for _ in range(TRIAL):
            ladder.round(workers)
        few = np.flatnonzero(ladder.acceptances < WANTED)
        if not len(few):
            return
        for i in few[::-1]:
            if len(ladder) < MOST_RUNGS:
                insert_between(ladder, i + 1)
        ladder.pairs = [Exchanges() for _ in ladder.pairs]


def ladder_estimate(ladder, tol, max_rounds, workers):
    """ln Z of the model at the top.

    Parameters
    ----------
    ladder : Ladder
        Changed in place.
    tol : float or None
        The standard error that is wanted, in nats; None for `TOL`, or `FINE` where it is cheap.
    max_rounds : int or None
    workers : Workers

    Returns
    -------
    estimate : Bunch
        Of `Record.estimate`; `states` are those at the top.
    """
    n_cheap, is_fine = int(CHEAP / ladder.cost()), tol is None
    tol = TOL if is_fine else tol
    max_rounds = max_rounds or max(MOST_ROUNDS, n_cheap)
    for n_left in reversed(range(MOST_SETTLINGS)):
        record = Record(ladder, workers)
        reached = record.run_until(tol, max_rounds)
        if not n_left or (record.acceptances() >= WANTED / 2).all():
            break
        settle(ladder, workers)  # a mode has been found late
    if is_fine and reached:
        record.run_until(FINE, min(max_rounds, n_cheap))
    estimate = record.estimate(tol, reached)
    estimate.states = copied(ladder.rungs[-1].states)
    return estimate


def ladder_samples(ladder, n_samples, n_steps, workers):
    """States of the top after so many rounds, and if there are more samples than chains, so often.

    Parameters
    ----------
    ladder : Ladder
        Changed in place.
    n_samples, n_steps : int
    workers : Workers

    Returns
    -------
    V : ndarray of shape (n_samples, n_visible)
    """
    found, n_chains = [], len(ladder.rungs[0])
    for _ in range(-(-n_samples // n_chains)):
        for _ in range(max(1, n_steps // len(ladder))):
            ladder.round(workers)
        found.append(copied(ladder.rungs[-1].states))
    return concatenated(found)[:n_samples, ...]
