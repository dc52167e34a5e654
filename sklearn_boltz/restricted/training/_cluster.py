"""Mini-batches whose rows lie on several machines: each computes sums over its rows.

Parameters go out and sums come in, once for each step; the rows stay where they are. The
algorithms are those of `_sdcp.SDCPLearner.learn` and `_tap_steps.TAPLearner.learn`, with the same
mini-batches and random numbers; what differs is how a mini-batch computes its sums.
"""

import pickle
from copy import copy, deepcopy
from functools import partial, reduce
from operator import getitem, itemgetter
from typing import NamedTuple

import numpy as np

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.mean_field._clamped import visible_side
from sklearn_boltz.restricted.sampling._gibbs import rows_to_start_at, run_chains
from sklearn_boltz.restricted.training import _discriminative, _sdcp, _tap_steps
from sklearn_boltz.restricted.training._discriminative import gradient
from sklearn_boltz.restricted.training._gaps import complete, seed_of_batch
from sklearn_boltz.restricted.training._labelled_rows import LabelledRows
from sklearn_boltz.restricted.training._sdcp import (
    draw_hidden,
    has_shape,
    mixed_slopes,
    no_slopes,
    shape_slopes,
)
from sklearn_boltz.restricted.training._tap_steps import Workspace, difference
from sklearn_boltz.tables._dask import current_client, gathered, outlive_workers, workers_of

# Dask advises against tasks that hold more than 10 MB; parameters of any size have to travel.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
# Sums that are added in one place, at most.
MOST_MEETING = 8


def find_cluster():
    """The Dask cluster that is in use, or None."""
    client = current_client()
    return None if client is None else Cluster(client)


class Cluster:
    """The workers of a Dask cluster, in a fixed order.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client):
        self.client = client
        self.workers = workers_of(client)
        self._blocks = None

    def blocks(self, batches):
        """The batches as futures in the memory of the cluster, loaded once."""
        if self._blocks is None:
            self._blocks = batches.blocks.futures(self.client)
        return self._blocks

    def submit(self, worker, function, *args):
        """A future of function(*args), by that worker while it lives."""
        return self.client.submit(
            function, *args, workers=[worker], allow_other_workers=True, pure=False
        )

    def revive(self, blocks):
        """Have those of the blocks loaded again that were given up when workers died."""
        failed = [block for block in blocks if block.status == "error"]
        if failed:
            self.client.retry(failed)

    def share(self, value):
        """Send a value to the workers."""
        # As a task, which the scheduler repeats where its result is lost, and not by `scatter`,
        # whose data are lost with the worker. As bytes, which the scheduler need not read.
        import cloudpickle  # of which Dask makes use, too
        import dask

        with dask.config.set(QUIET):
            return self.client.submit(pickle.loads, cloudpickle.dumps(value), pure=False)


class Parts:
    """A mini-batch in parts, one for each lane, on the worker of that lane.

    Parameters
    ----------
    cluster : Cluster
    check : callable
        From rows of a batch to legal values.
    pieces : list of (int, Future, ndarray of int)
        The lane, a batch and numbers of rows in it.
    has_gaps : bool
        Whether cells may be missing.

    Attributes
    ----------
    firsts : list of int
        The place of the first row of each part in the mini-batch.
    labels : list of (ndarray of intp, ndarray of float64)
        Of each part, the classes of its rows, if they have such, and their weights.
    """

    def __init__(self, cluster, check, pieces, has_gaps=False):
        self.cluster, self.has_gaps = cluster, has_gaps
        self.workers = [cluster.workers[k % len(cluster.workers)] for k, _, _ in pieces]
        self.lengths = np.array([len(rows) for _, _, rows in pieces])
        self.firsts = (np.cumsum(self.lengths) - self.lengths).tolist()
        self._check, self._pieces = check, pieces

    def begin(self):
        """Have the rows picked; also again, after workers have died."""
        self.cluster.revive([block for _, block, _ in self._pieces])
        self.rows = [
            self.cluster.submit(worker, _rows, self._check, block, np.sort(rows))
            for worker, (_, block, rows) in zip(self.workers, self._pieces, strict=True)
        ]

    def __len__(self):
        return int(self.lengths.sum())

    def complete(self, model, seed):
        """Have the missing cells drawn, with the random numbers of the whole mini-batch."""
        self.rows = self.map(_completed, (deepcopy(model), seed), self.firsts, self.rows)

    def map(self, function, shared, *arguments):
        """Futures of function(shared, ...), one for each part, with its items of the arguments.

        A function returns a pair: sums, and what stays with the worker.
        """
        shared = self.cluster.share(shared)
        return [
            self.cluster.submit(worker, function, shared, *mine)
            for worker, *mine in zip(self.workers, *arguments, strict=True)
        ]

    def total(self, futures):
        """The sum of the first items over all parts.

        Each worker adds up its own, and some of them those of others, so that not all sums meet
        here however many workers there are.
        """
        by_worker = {}
        for worker, future in zip(self.workers, futures, strict=True):
            by_worker.setdefault(worker, []).append(future)
        totals = [(w, self.cluster.submit(w, _total, *mine)) for w, mine in by_worker.items()]
        totals.sort(key=itemgetter(0))
        while len(totals) > MOST_MEETING:
            groups = [totals[i : i + MOST_MEETING] for i in range(0, len(totals), MOST_MEETING)]
            totals = [
                (worker, self.cluster.submit(worker, _sum, [sums, *(other for _, other in others)]))
                for (worker, sums), *others in groups
            ]
        return _sum(gathered(self.cluster.client, [sums for _, sums in totals]))

    def gathered(self, futures, *place):
        """Concatenate the entries at one place of several results, such as (1, 0)."""
        own = [
            self.cluster.submit(worker, reduce, getitem, place, future)
            for worker, future in zip(self.workers, futures, strict=True)
        ]
        return np.concatenate(gathered(self.cluster.client, own))

    def all_rows(self):
        """The rows of the mini-batch, brought here."""
        return np.concatenate(gathered(self.cluster.client, self.rows))

    def labelled(self, labels):
        """The mini-batch with classes and weights of the rows of each part."""
        self.labels = labels
        return self

    def teach(self, learner, rate, workers):
        """Have a copy of a learner learn from it; -> the copy.

        Where workers of the cluster die, and it does not repeat their tasks by itself, the
        mini-batch starts again.
        """

        def changed():
            other = deepcopy(learner)
            self.begin()
            if self.has_gaps and other.draws_gaps:
                self.complete(other.model(), seed_of_batch(other.stream))
            other.learn(ON_CLUSTER[type(other)](self), rate, workers)
            return other

        taught = outlive_workers(changed)
        if getattr(learner, "tempered", None) is not None:  # states of a ladder, which go on there
            learner.tempered[...] = taught.tempered
        return taught


def _rows(check, block, rows):
    return np.ascontiguousarray(dense(check(block[rows])))


def _completed(shared, first_row, V):
    model, seed = shared
    with Workers(1) as workers:
        return complete(model, V, np.isnan(V), seed, workers, first_row)


def _total(*pairs):
    return _sum([sums for sums, _ in pairs])


def _sum(items):
    """The sum of tuples of arrays and dicts of arrays, item by item."""
    first = items[0]
    if isinstance(first, dict):
        return {name: _sum([item[name] for item in items]) for name in first}
    if isinstance(first, (tuple, list)):
        added = [_sum(list(column)) for column in zip(*items, strict=True)]
        return type(first)(*added) if hasattr(first, "_fields") else type(first)(added)
    return sum(items[1:], first)


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


def _shape_sums(model, rows):
    """Sums over rows V, or those of a pair of `_transitions`, of `_sdcp.shape_slopes`."""
    V = rows if isinstance(rows, np.ndarray) else rows[1][0]
    slopes = shape_slopes(model, V) if len(V) else no_slopes(model)
    sums = [{name: len(V) * slope for name, slope in part.items()} for part in slopes]
    return (len(V), *sums), None


class PairsOnCluster:
    """A mini-batch of S-DCP on a cluster: the methods of `_sdcp.ArrayBatch`, by sums.

    Parameters
    ----------
    parts : Parts
    """

    learns_at_once = False  # sums come from several places

    def __init__(self, parts):
        self.parts, self._states = parts, [None] * len(parts.rows)

    def positive(self, learner, workers):
        """Compute E[h | v]; -> means of the visible and of the hidden units."""
        parts, scheme = self.parts, learner.scheme
        found = parts.map(_hidden_means, deepcopy(learner.model()), parts.rows)
        self._data = parts.total(found)
        if scheme.goes_on and learner.chains is None:
            starts = rows_to_start_at(scheme.n_chains, len(parts))
            rows = parts.all_rows()[starts] if not learner.hidden.is_binary else None
            learner.chains = draw_hidden(learner, rows, parts.gathered(found, 1)[starts])
        n_chains = len(learner.chains) if scheme.goes_on else len(parts)
        # Of the chains of each part, in proportion to its rows.
        ends = np.append(0, np.cumsum(parts.lengths)) * (n_chains / len(parts))
        self._ends = np.round(ends).astype(int)
        return self._data.means()

    def negative(self, learner, workers):
        """Make transitions of the chains; -> means of the visible and of the hidden units."""
        parts, scheme, ends = self.parts, learner.scheme, self._ends
        if scheme.sampler is not None:
            self._chains = [(1.0, PairSums.of(*learner.sampled(len(parts))))]
            return self._chains[0][1].means()
        if scheme.goes_on:
            self._states = [learner.chains[a:b] for a, b in zip(ends, ends[1:], strict=False)]
        model, step = learner.model(), learner.stream.step
        same = [[v] * len(self._states) for v in (scheme.n_gibbs, learner.stream.seed, step)]
        self._states = parts.map(
            _transitions, deepcopy(model), *same, ends[:-1], self._states, parts.rows
        )
        # A chain here, too, for the number of steps that it takes of the stream.
        V, H = (np.zeros((1, len(units)), model.dtype) for units in (model.visible, model.hidden))
        run_chains(model, V, H, scheme.n_gibbs, learner.stream, workers, from_hidden=scheme.goes_on)
        self._chains = [(1 - scheme.tempered, parts.total(self._states))]
        if scheme.tempered:  # few chains, which stay here
            V = learner.tempered
            H = np.empty((len(V), len(learner.hidden)), V.dtype)
            run_chains(model, V, H, 1, learner.stream, workers)
            self._chains.append((scheme.tempered, PairSums.of(V, H)))
        return tuple(sum(part * pairs.means()[k] for part, pairs in self._chains) for k in range(2))

    def hidden_states(self, learner):
        """Draw the hidden units of the chains."""
        means, rows = self.parts.gathered(self._states, 1, 1), None
        if not learner.hidden.is_binary:
            rows = self.parts.gathered(self._states, 1, 0)
        return draw_hidden(learner, rows, means)

    def shape_slopes(self, learner, chains):
        """Derivatives by the parameters of the units at the rows or at the chains."""
        model, parts = learner.model(), self.parts
        if not (has_shape(model.visible) or has_shape(model.hidden)):
            return {}, {}
        rows = self._states if chains else parts.rows
        n_rows, *sums = parts.total(parts.map(_shape_sums, deepcopy(model), rows))
        slopes = tuple({name: total / n_rows for name, total in part.items()} for part in sums)
        fraction = learner.scheme.tempered
        if not (chains and fraction):
            return slopes
        here = shape_slopes(model, learner.tempered)
        return mixed_slopes([(1 - fraction, slopes), (fraction, here)])

    def gradient(self, learner, rate, inner, workers):
        """The step of the weights: the rate times the gradient, of which inner step 0 keeps g's."""
        offsets = learner.visible_offset, learner.hidden_offset
        if not learner.scheme.centered:
            offsets = tuple(np.zeros_like(offset) for offset in offsets)
        if inner == 0:
            self._ascent = rate * self._data.gradient(*offsets)
        return self._ascent - rate * sum(
            part * pairs.gradient(*offsets) for part, pairs in self._chains
        )


# TAP.


def solutions_on_cluster(parts, learner, rate, workers):
    """`_tap_steps.slopes_in_memory` of `Parts`, by sums."""
    scheme, layered = learner.scheme, learner.model()
    if parts.has_gaps:  # perhaps not in all parts, but all of them do the same
        scheme = scheme._replace(tap=scheme.tap._replace(n_gibbs=0, adaptive=False))
    n_rows, starts = len(parts), [None] * len(parts.rows)
    share = share_of_starts = [length / n_rows for length in parts.lengths.tolist()]
    if scheme.persistent:
        first = learner.starts
        if first is None:
            first = parts.all_rows()[rows_to_start_at(scheme.n_solutions, n_rows)]
            first = visible_side(layered, first, scheme.tap, workers)
        starts = np.array_split(first, len(parts.rows))
        share_of_starts = [len(part) / len(first) for part in starts]
    n_starts = parts.lengths if starts[0] is None else [len(part) for part in starts]
    firsts = np.append(0, np.cumsum(n_starts))[:-1].tolist()
    shared = deepcopy(layered), scheme, rate, learner.stream.seed, learner.stream.step
    found = parts.map(_slopes, shared, share, share_of_starts, firsts, starts, parts.rows)
    n_steps, slopes = parts.total(found)
    learner.stream.take(n_steps // len(firsts))
    return slopes, parts.gathered(found, 1) if scheme.persistent else None


def _slopes(shared, share, share_of_starts, first_row, starts, V):
    """-> steps of the stream and slopes, and where the solutions or chains ended."""
    layered, scheme, rate, seed, step = shared
    stream = Stream(seed)
    stream.step = step
    with Workers(1) as workers:
        if starts is not None and not len(starts):  # fewer solutions than parts
            starts = visible_side(layered, V[:1], scheme.tap, workers)
            share_of_starts = 0.0
        n_starts = len(V) if starts is None else len(starts)
        workspace = Workspace(layered, len(V), n_starts, scheme.tap.order)
        shares = share, share_of_starts
        rates = rate * share, rate * share_of_starts
        slopes, sides = difference(
            layered, V, starts, scheme, rates, shares, stream, workers, workspace, first_row
        )
    return (stream.step - step, slopes), sides if share_of_starts else sides[:0]


# Classes.


def classes_on_cluster(parts, learner, workers):
    """`_discriminative.gradient_in_memory` of `Parts` with labels, by sums."""
    stream = copy(learner.stream)
    seed = seed_of_batch(stream) if parts.has_gaps else None
    objective, share = learner.objective, 1 / len(parts)
    shared = deepcopy(learner.model()), objective, share, stream.seed, stream.step, seed
    found = parts.map(_class_gradient, shared, parts.firsts, parts.labels, parts.rows)
    n_steps, gradient = parts.total(found)
    learner.stream.take(n_steps // len(parts.rows))
    return gradient


def _class_gradient(shared, first_row, labels, V):
    model, objective, share, seed, step, gaps = shared
    stream, rows = Stream(seed), LabelledRows(V, *labels)
    stream.step = step
    with Workers(1) as workers:
        found = gradient(model, rows, objective, share, stream, gaps, workers, first_row)
    return (stream.step - step, found), None


# From the parts of a mini-batch to what a learner takes for a batch.
ON_CLUSTER = {
    _sdcp.SDCPLearner: PairsOnCluster,
    _tap_steps.TAPLearner: partial(partial, solutions_on_cluster),
    _discriminative.ClassLearner: partial(partial, classes_on_cluster),
}
