"""Mini-batches whose rows lie on several machines: each computes sums over its rows.

Parameters go out and sums come in, once for each step; the rows stay where they are. What is
done with the sums is the algorithm of one process: `_sdcp.learn_batch` and
`_tap_learning.learn_batch`, in other words, with the same mini-batches and random numbers.
"""

import asyncio
import concurrent.futures
import sys
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from sklearn_boltz._base import dense
from sklearn_boltz._random import Stream
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field._clamped import clamp, visible_side
from sklearn_boltz.restricted.sampling._gibbs import draw, rows_to_start_at, run_chains
from sklearn_boltz.restricted.training._tap_steps import (
    _follow,
    all_binary,
    gradients_at_rows,
    gradients_at_solutions,
)

# How often a mini-batch is tried, and what Dask raises where something cannot be made again.
ATTEMPTS = 5
LOST = asyncio.CancelledError, concurrent.futures.CancelledError


def find_cluster():
    """The Dask cluster that is in use, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else Cluster(distributed.default_client())
    except ValueError:
        return None


class Cluster:
    """The workers of a Dask cluster, in a fixed order.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client):
        self.client = client
        self.workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self._blocks = None

    def blocks(self, batches):
        """The batches as futures in the memory of the cluster, loaded once."""
        if self._blocks is None:
            self._blocks = batches.futures(self.client)
        return self._blocks

    def submit(self, worker, function, *args):
        """A future of function(*args), by that worker while it lives."""
        return self.client.submit(
            function, *args, workers=[worker], allow_other_workers=True, pure=False
        )

    def share(self, value):
        """Send a value to all workers."""
        # In a list: of a tuple, each item would be sent by itself.
        return self.client.scatter([value], broadcast=True, hash=False)[0]


class Parts:
    """A mini-batch in parts, one for each lane, on the worker of that lane.

    Parameters
    ----------
    cluster : Cluster
    check : callable
        From rows of a batch to legal values.
    pieces : list of (int, Future, ndarray of int)
        The lane, a batch and numbers of rows in it.
    """

    def __init__(self, cluster, check, pieces):
        self.cluster = cluster
        self.workers = [cluster.workers[k % len(cluster.workers)] for k, _, _ in pieces]
        self.lengths = np.array([len(rows) for _, _, rows in pieces])
        self._check, self._pieces = check, pieces
        self.begin()

    def begin(self):
        """Have the rows picked; also again, after something was lost."""
        self.rows = [
            self.cluster.submit(worker, _rows, self._check, block, np.sort(rows))
            for worker, (_, block, rows) in zip(self.workers, self._pieces, strict=True)
        ]
        # Held until the end, so that what is lost with its worker can be made again.
        self._shared = []

    def __len__(self):
        return int(self.lengths.sum())

    def map(self, function, shared, *arguments):
        """Futures of function(shared, ...), one for each part, with its items of the arguments.

        A function returns a pair: sums, and what stays with the worker.
        """
        self._shared.append(self.cluster.share(shared))
        return [
            self.cluster.submit(worker, function, self._shared[-1], *mine)
            for worker, *mine in zip(self.workers, *arguments, strict=True)
        ]

    def total(self, futures):
        """The sum of the first items over all parts; each worker adds up its own."""
        by_worker = {}
        for worker, future in zip(self.workers, futures, strict=True):
            by_worker.setdefault(worker, []).append(future)
        totals = [self.cluster.submit(w, _total, *mine) for w, mine in sorted(by_worker.items())]
        return _sum(self.cluster.client.gather(totals))

    def second(self, futures):
        """The second items, row after row."""
        own = [
            self.cluster.submit(worker, _second, future)
            for worker, future in zip(self.workers, futures, strict=True)
        ]
        return np.concatenate(self.cluster.client.gather(own))

    def all_rows(self):
        """The rows of the mini-batch, brought here."""
        return np.concatenate(self.cluster.client.gather(self.rows))


def outliving(learn, learner, parts, *settings):
    """Learn from a mini-batch; from its start again, where a worker died with what only it had.

    Parameters
    ----------
    learn : callable
        Of a learner, parts and the settings.
    learner : Learner
    parts : Parts

    Returns
    -------
    learner : Learner
        Another one: that which was given is as it was.
    """
    for attempt in range(ATTEMPTS):
        changed = deepcopy(learner)
        try:
            learn(changed, parts, *settings)
            return changed
        except LOST:
            if attempt == ATTEMPTS - 1:
                raise
            parts.begin()


def _rows(check, block, rows):
    return np.ascontiguousarray(dense(check(block[rows])))


def _total(*pairs):
    return _sum([sums for sums, _ in pairs])


def _second(pair):
    return pair[1]


def _sum(items):
    """The sum of tuples of arrays and dicts of arrays, item by item."""
    first = items[0]
    if isinstance(first, dict):
        return {name: _sum([item[name] for item in items]) for name in first}
    if isinstance(first, (tuple, list)):
        added = [_sum(list(column)) for column in zip(*items, strict=True)]
        return type(first)(*added) if hasattr(first, "_fields") else type(first)(added)
    return sum(items[1:], first)


def _split(n_rows, lengths):
    """Cut `n_rows` in proportion to lengths; -> the ends of the parts, from 0 on."""
    return np.round(np.append(0, np.cumsum(lengths)) * (n_rows / lengths.sum())).astype(int)


# S-DCP and CS-DCP.


class PairSums(NamedTuple):
    """Sums over rows of states v and h."""

    n_rows: int
    visible: np.ndarray
    hidden: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, V, H):
        """The sums of some rows."""
        return cls(len(V), V.sum(axis=0), H.sum(axis=0), H.T @ V)

    def means(self):
        """Means of v and of h."""
        return self.visible / self.n_rows, self.hidden / self.n_rows

    def gradient(self, visible_offset, hidden_offset):
        """The mean of (h − λ) (v − μ)ᵀ."""
        (v, h), mu, lam = self.means(), visible_offset, hidden_offset
        return self.products / self.n_rows - np.outer(lam, v - mu) - np.outer(h, mu)


def _hidden_means(model, V):
    H = np.empty((len(V), len(model.hidden)), model.dtype)
    with Workers(1) as workers:
        run_chains(model, V, H, 0, Stream(0), workers)
    return PairSums.of(V, H), H


def _transitions(model, n_steps, seed, step, first_row, before, V):
    """From rows or from the states of chains, to (sums, (V, H)).

    `before` is the pair of the transitions before, or hidden states to start at, or None.
    """
    from_hidden = isinstance(before, np.ndarray)
    if from_hidden:
        V, H = np.empty((len(before), len(model.visible)), model.dtype), before.copy()
    else:
        V = (V if before is None else before[1][0]).copy()
        H = np.empty((len(V), len(model.hidden)), model.dtype)
    stream = Stream(seed)
    stream.step = step
    if len(V):
        with Workers(1) as workers:
            run_chains(
                model, V, H, n_steps, stream, workers, from_hidden=from_hidden, first_row=first_row
            )
    return PairSums.of(V, H), (V, H)


def _hidden_states(pair):
    return None, pair[1][1]


def learn_sdcp_batch(learner, parts, scheme, rate):
    """Do what `sklearn_boltz.restricted._sdcp.learn_batch` does.

    Parameters
    ----------
    learner : Learner
    parts : Parts
    scheme : Scheme
    rate : float
        Learning rate.
    """
    found = parts.map(_hidden_means, deepcopy(learner.model()), parts.rows)
    data = parts.total(found)
    means, stream, seed = data.means(), learner.stream, learner.stream.seed
    if scheme.persistent and learner.chains is None:
        starts = rows_to_start_at(scheme.n_chains, len(parts))
        learner.chains = draw(parts.second(found)[starts], stream)
    ends = _split(len(learner.chains) if scheme.persistent else len(parts), parts.lengths)
    states = [None] * len(parts.rows)
    for inner in range(scheme.n_inner):
        if scheme.persistent:
            states = [learner.chains[a:b] for a, b in zip(ends, ends[1:], strict=False)]
        step = stream.take(2 * scheme.n_gibbs)
        same = [[value] * len(states) for value in (scheme.n_gibbs, seed, step)]
        states = parts.map(
            _transitions, deepcopy(learner.model()), *same, ends[:-1], states, parts.rows
        )
        fantasy = parts.total(states)
        if scheme.centered:
            learner.slide_offsets(*means, scheme.offset_rate)
        offsets = (learner.visible_offset, learner.hidden_offset) if scheme.centered else (
            np.zeros_like(learner.visible_offset), np.zeros_like(learner.hidden_offset)
        )  # fmt: skip
        if inner == 0:
            ascent = rate * data.gradient(*offsets)
        change = ascent - rate * fantasy.gradient(*offsets)
        change -= rate * scheme.weight_decay * learner.weights
        biases = [rate * (d - f) for d, f in zip(means, fantasy.means(), strict=True)]
        if scheme.persistent:
            H = parts.second(
                [parts.cluster.submit(w, _hidden_states, f)
                 for w, f in zip(parts.workers, states, strict=True)]
            )  # fmt: skip
            learner.chains = draw(H, stream)
        learner.move(learner.optimizer.steps([change, *biases]), scheme.centered)


# TAP.


class Slopes(NamedTuple):
    """Parts of the derivatives by the weights and by the parameters of the units, by layer."""

    weights: list
    units: list


def _solutions(shared, share, share_of_starts, starts, V):
    """-> slopes, and the visible sides of the solutions that began at some starts."""
    machine, scheme = shared
    order = scheme.iteration.order
    with Workers(1) as workers:
        clamped = clamp(machine, V, scheme.iteration, workers)
        if starts is None:
            starts = clamped.visible_side()
        elif not len(starts):  # fewer solutions than parts
            starts, share_of_starts = clamped.visible_side()[:1], 0.0
        found, _ = _follow(machine, starts, scheme, workers, _new_array)
    free = (
        machine.split(found.visible_mean, found.hidden_mean),
        machine.split(found.visible_variance, found.hidden_variance),
    )
    at_rows = _products(machine, clamped.means(), clamped.variances(), order)
    at_solutions = _products(machine, *free, order)
    weights = [share * d - share_of_starts * m for d, m in zip(at_rows, at_solutions, strict=True)]
    if all_binary(machine):
        pair = [
            [{"intercept": a.mean(axis=0)} for a in means] for means in (clamped.means(), free[0])
        ]
    else:
        pair = gradients_at_rows(clamped, order), gradients_at_solutions(machine, found, order)
    units = [
        {name: share * data[name] - share_of_starts * model[name] for name in data}
        for data, model in zip(*pair, strict=True)
    ]
    sides = found.visible_mean if share_of_starts else found.visible_mean[:0]
    return Slopes(weights, units), sides


def _products(machine, means, variances, order):
    """⟨a a + W c c⟩ over rows, between each layer and the one above."""
    found = []
    for k, W in enumerate(machine.weights):
        n_rows = W.dtype.type(len(means[k]))
        products = means[k + 1].T @ means[k]
        if order == 2 and variances[k] is not None:
            products += W * (variances[k + 1].T @ variances[k])
        found.append(products / n_rows)
    return found


def _new_array(name, shape, dtype):
    return np.empty(shape, dtype)


def learn_tap_batch(learner, parts, scheme, rate):
    """Do what `sklearn_boltz.restricted._tap_learning.learn_batch` does.

    Parameters
    ----------
    learner : Learner
    parts : Parts
    scheme : Scheme
    rate : float
        Learning rate.
    """
    machine, n_rows, starts = learner.model(), len(parts), [None] * len(parts.rows)
    share = share_of_starts = [length / n_rows for length in parts.lengths.tolist()]
    if scheme.persistent:
        if learner.starts is None:
            first = parts.all_rows()[rows_to_start_at(scheme.n_solutions, n_rows)]
            with Workers(1) as workers:
                learner.starts = visible_side(machine, first, scheme.iteration, workers)
        starts = np.array_split(learner.starts, len(parts.rows))
        share_of_starts = [len(part) / len(learner.starts) for part in starts]
    shared = deepcopy(machine), scheme
    found = parts.map(_solutions, shared, share, share_of_starts, starts, parts.rows)
    slopes = parts.total(found)
    if scheme.persistent:
        learner.starts = parts.second(found)
    steps = []
    for W, step in zip(learner.weights, slopes.weights, strict=True):
        if scheme.penalty is not None:
            step -= scheme.alpha * (W if scheme.penalty == "l2" else np.sign(W))
        steps.append(rate * step)
    for W, step in zip(learner.weights, learner.optimizer.steps(steps), strict=True):
        W += step
    for units, slope in zip(learner.layers, slopes.units, strict=True):
        units.ascend(slope, rate)
