"""ln Z of an RBM and samples of it by a ladder of models, new or that of a training."""

from copy import deepcopy

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.numerics._arrays import (
    as_numpy,
    concatenated,
    copied,
    like,
    numpy_dtype,
    taken,
)
from sklearn_boltz.partition._estimates import distrust
from sklearn_boltz.partition._ladder import Exchanges
from sklearn_boltz.partition._ladder_record import Record
from sklearn_boltz.restricted.model._model import check_normalisable
from sklearn_boltz.restricted.sampling._rungs import (
    RBMRung,
    begin_ladder,
    insert_between,
    laid_out,
    log_densities_of,
    saved,
)
from sklearn_boltz.restricted.sampling._samples import chain_samples

# Rungs at most, beside those that the ladder of a training has.
MOST_RUNGS = 200
# Rounds before acceptances are looked at, how often this is done, and what acceptance is wanted.
TRIAL, MOST_TRIALS, WANTED = 6, 40, 0.25
# Rounds for each rung before those that count, as for this many rungs at least; and how often rungs
# are looked for and left to settle.
SETTLING, LEAST_RUNGS, MOST_SETTLINGS = 2, 15, 5
# Unless told otherwise, a ladder ends at the standard error TOL in nats, or after MOST_ROUNDS. For
# what takes a few seconds, in multiplications, it makes more rounds, until it is at FINE; but after
# LEAST_ROUNDS it takes no more than this SHARE of those of the training.
TOL, MOST_ROUNDS, FINE, CHEAP, LEAST_ROUNDS, SHARE = 0.05, 1000, 0.02, 1e11, 400, 0.4
# Transitions of chains that look for modes of the model by themselves, and how many there are for
# each one of a rung. Chains times weights up to which a ladder is built by default if a training
# has not saved one: it then takes a few seconds.
N_EXPLORING, EXPLORERS, AFFORDABLE = 20, 10, 4e6


def ladder_to(model, base, former, n_chains, stream):
    """A ladder that leads to a model, whose chains have yet to settle.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units, ideally fitted to the data.
    former : Ladder or None
        Of a training that led to the model, or near it; it is not changed.
    n_chains : int
        At each rung.
    stream : Stream

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
            ladder.insert(len(ladder) - 1, RBMRung(saved(top.model), copied(top.states)))
        ladder.rungs[-1].model = model
    return ladder


def explore(ladder, workers):
    """Let every second chain begin at what chains of the model find far from independent units.

    A hidden unit whose weights are multiplied by the number of all has a pattern of its own: there
    half of these chains start, and the others at uniform visible units. As chains of different
    numbers never meet, what only these find stays where it is, and shows in `Ladder.n_left`.

    Parameters
    ----------
    ladder : Ladder
        Changed in place.
    workers : Workers

    Returns
    -------
    V : ndarray of shape (EXPLORERS * n_chains, n_visible)
        What was found; the first rows are where they begin.
    """
    model, n_chains = ladder.rungs[-1].model, len(ladder.rungs[0])
    n_starts = EXPLORERS * n_chains
    H, numbers = np.zeros((n_starts, len(model.hidden))), np.arange(0, n_starts, 2)
    H[numbers, numbers // 2 % H.shape[1]] = H.shape[1]
    field = model.visible_field(like(model.weights, H.astype(numpy_dtype(model.weights))))
    V = model.visible.base().sample(field, ladder.stream)
    V = chain_samples(model, V, N_EXPLORING, ladder.stream, workers)
    for rung in ladder.rungs[1:]:
        rung.states[1::2, ...] = V[: n_chains // 2, ...]
    ladder.explored = np.arange(n_chains) % 2 == 1
    return V


def sum_over(model, *states):
    """ln Σ exp(−F(v)) over the different rows among some states: ln Z is not less.

    −∞ for densities.
    """
    if not np.isfinite(model.visible.state_counts).all():
        return -np.inf
    rows = np.unique(np.concatenate([as_numpy(V) for V in states]), axis=0)
    return float(logsumexp(log_densities_of(model, like(model.weights, rows))))


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
    ladder.origins = [np.zeros(n_chains, dtype=np.int8) for _ in ladder.rungs]
    return ladder


def same_parameters(one, other):
    """Whether two models have the same parameters."""
    mine, theirs = (list(map(as_numpy, model.parameters())) for model in (one, other))
    return len(mine) == len(theirs) and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True)
    )


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


def ladder_estimate(ladder, tol, max_rounds, workers, work=np.inf):
    """ln Z of the model at the top.

    Parameters
    ----------
    ladder : Ladder
        Changed in place.
    tol : float or None
        The standard error that is wanted, in nats; None for `TOL`, or `FINE` where it is cheap.
    max_rounds : int or None
    workers : Workers
    work : float
        Multiplications of the training.

    Returns
    -------
    estimate : Bunch
        Of `Record.estimate`; `states` are those at the top.
    """
    explored, n_before = explore(ladder, workers), ladder.n_rounds
    settle(ladder, workers)
    n_cheap, is_fine = int(CHEAP / ladder.cost()), tol is None
    tol = TOL if is_fine else tol
    affordable = SHARE * work / ladder.cost() - (ladder.n_rounds - n_before)
    affordable = max(LEAST_ROUNDS, affordable)
    max_rounds = max_rounds or int(min(max(MOST_ROUNDS, n_cheap), affordable))
    for n_left in reversed(range(MOST_SETTLINGS)):
        record = Record(ladder, workers)
        reached = record.run_until(tol, max_rounds)
        if not n_left or (record.acceptances() >= WANTED / 2).all():
            break
        settle(ladder, workers)  # a mode has been found late
    if is_fine and reached:
        record.run_until(FINE, min(max_rounds, n_cheap))
    estimate = record.estimate(tol, reached)
    top = ladder.rungs[-1]
    estimate.states = copied(top.states)
    floor = sum_over(top.model, explored, top.states)
    if floor > estimate.high:
        why = f"over the few states in which chains have been, the sum alone is {floor:.1f}"
        distrust(estimate, f"{len(ladder)} {record.rungs}", why)
    estimate.update(low=max(estimate.low, floor), value=max(estimate.value, floor))
    return estimate


def ladder_samples(ladder, n_samples, n_steps, workers):
    """States of the top after `n_steps` rounds, repeated if there are more samples than chains.

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
    settle(ladder, workers)
    found, n_chains = [], len(ladder.rungs[0])
    for _ in range(-(-n_samples // n_chains)):
        for _ in range(max(1, n_steps // len(ladder))):
            ladder.round(workers)
        found.append(copied(ladder.rungs[-1].states))
    return concatenated(found)[:n_samples, ...]
