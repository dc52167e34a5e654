"""A ladder of models whose chains exchange states: samples across barriers, and ln Z.

A rung is a model with a population of Markov chains. Neighbours exchange states as in parallel
tempering, so that a chain which cannot leave a mode at the top can do so further down. The
differences of log-weights that an exchange looks at tell the ratio of two normalising constants
as well, by Bennett's acceptance ratio. The first rung has a known constant.
"""

import math
from collections import deque
from copy import copy, deepcopy
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch

from sklearn_boltz._estimates import MAX_STD_ERR

# Rounds of a block: ratios are computed block by block, and their errors from the blocks.
BLOCK_ROUNDS = 8
# Blocks of which a ladder in a training keeps the ratios: what lies further back may be of chains
# that had not settled.
KEPT_BLOCKS = 32
# Of fewer blocks, the error is that of independent chains.
LEAST_BLOCKS = 6
# Rounds of a block of a record; blocks before the first look at them; and the share of all
# blocks, at the beginning, that is not used.
RECORD_ROUNDS, FIRST_LOOK, BURN_IN = 16, 8, 0.25
# States that came from the first rung to the top: with fewer, the shares of modes are unknown.
MIN_ARRIVALS = 20
# Standard errors by which two halves of a record may differ.
SETTLED = 4.0
# Below this acceptance of exchanges, two neighbours are not connected: no ratio is to be trusted.
BROKEN = 0.02


def bennett(forward, backward):
    """ln(Z_b / Z_a) by Bennett's acceptance ratio, for as many samples of both models.

    Parameters
    ----------
    forward : ndarray of float64 of shape (..., n_samples)
        ln(f_b / f_a) at samples of a, of unnormalised densities f.
    backward : ndarray of float64 of shape (..., n_samples)
        ln(f_a / f_b) at samples of b.

    Returns
    -------
    log_ratio, std_err : ndarray of float64 of shape (...)
        The standard error is that of independent samples.

    References
    ----------
    C. H. Bennett, "Efficient estimation of free energy differences from Monte Carlo data",
    Journal of Computational Physics 22, 1976, equation 12.
    """
    # Σ expit(forward − x) falls with x and Σ expit(backward + x) rises: they meet between the ends.
    ends = np.concatenate([forward, -backward], axis=-1)
    low, high = ends.min(axis=-1), ends.max(axis=-1)
    while True:
        middle = (low + high) / 2
        x = middle[..., np.newaxis]
        f, b = expit(forward - x), expit(backward + x)
        if ((high - low) <= 1e-9 * (1 + abs(middle))).all():
            break
        too_low = f.sum(axis=-1) > b.sum(axis=-1)
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return middle, np.sqrt((_relative_variance(f) + _relative_variance(b)) / forward.shape[-1])


def _relative_variance(values):
    """⟨x²⟩ / ⟨x⟩² − 1; infinite where all are 0."""
    mean = values.mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = (values**2).mean(axis=-1) / mean**2 - 1
    return np.where(mean > 0, np.maximum(relative, 0), np.inf)


class Pair:
    """What is known of two neighbours.

    Attributes
    ----------
    forward, backward : list of ndarray
        As of `bennett`, of the rounds of the block that is not complete.
    ratios : deque of float
        Of the complete blocks.
    acceptances : deque of float
        Mean probability of an exchange, of the last rounds.
    """

    def __init__(self):
        self.forward, self.backward = [], []
        self.ratios, self.acceptances = deque(maxlen=KEPT_BLOCKS), deque(maxlen=2 * BLOCK_ROUNDS)

    def copy(self):
        """What is known now."""
        other = copy(self)
        other.forward, other.backward = list(self.forward), list(self.backward)
        other.ratios, other.acceptances = copy(self.ratios), copy(self.acceptances)
        return other

    def add(self, forward, backward):
        """Take in the differences of log-weights of one round."""
        self.forward.append(forward)
        self.backward.append(backward)
        self.acceptances.append(float(np.exp(np.minimum(forward + backward, 0)).mean()))
        if len(self.forward) == BLOCK_ROUNDS:
            self.ratios.append(float(self._open_block()[0]))
            self.forward, self.backward = [], []

    def _open_block(self):
        return bennett(np.concatenate(self.forward), np.concatenate(self.backward))

    @property
    def acceptance(self):
        """Mean probability of an exchange in the last rounds; 0 if there was none."""
        return float(np.mean(self.acceptances)) if self.acceptances else 0.0

    def log_ratio(self):
        """ln of the ratio of the constants, and its standard error."""
        ratios = np.array(self.ratios)
        if len(ratios) >= LEAST_BLOCKS:
            return ratios.mean(), ratios.std(ddof=1) / np.sqrt(len(ratios))
        if not self.forward:
            if not len(ratios):
                return np.nan, np.inf
            return ratios.mean(), ratios.std() if len(ratios) > 1 else 0.1
        value, error = self._open_block()
        shares = np.append(np.full(len(ratios), BLOCK_ROUNDS), len(self.forward))
        shares = shares / shares.sum()
        return shares @ np.append(ratios, value), error * np.sqrt(shares[-1])


class Ladder:
    """Models in a row, each with its population of chains.

    Parameters
    ----------
    rungs : list
        Each has the methods `move(n_steps, stream, first_row)`, which makes transitions of its
        chains; `log_weights(other)`, its unnormalised log-densities at the states of another
        rung, (n_chains,) float64; `swap(other, chains)`, which exchanges the states of some
        chains; and `len`, their number. `copy` gives one with states of its own.
    log_partition : float
        ln Z of the first rung.
    stream : Stream
    """

    def __init__(self, rungs, log_partition, stream):
        self.rungs, self.stream = rungs, stream
        self.first_log_partition = log_partition
        self.pairs = [Pair() for _ in rungs[1:]]
        self.n_rounds = 0
        # Whether each state was at the first rung after it was last at the top.
        self.from_below = [np.zeros(len(rung), dtype=bool) for rung in rungs]

    def __deepcopy__(self, memo):
        other = copy(self)
        other.rungs = [rung.copy() for rung in self.rungs]
        other.pairs = [pair.copy() for pair in self.pairs]
        other.from_below = deepcopy(self.from_below)
        other.stream = deepcopy(self.stream, memo)  # others may take numbers from it as well
        return other

    def __len__(self):
        return len(self.rungs)

    def round(self, workers, n_steps=1, first=0):
        """Make transitions of all chains from rung `first` on, then exchanges of neighbours.

        Parameters
        ----------
        workers : Workers
            Results do not depend on the number of threads.
        n_steps : int
            Transitions of each chain.
        first : int
            The rungs below stay as they are.

        Returns
        -------
        differences : dict of int to pair of ndarray
            Of each pair that exchanged states, what `differences` gave before.
        """
        rungs = self.rungs[first:]
        blocks = [slice(k, k + 1) for k in range(len(rungs))]
        steps = self.stream

        def move(block):
            own = copy(steps)
            rungs[block.start].move(n_steps, own, block.start * len(rungs[0]))
            return own.step

        cost = self.cost(first)
        steps.step = max(workers.map(move, blocks, cost))
        # Every second pair, and the others in the next round.
        pairs = range(first, len(self.pairs))
        lower = pairs[self.n_rounds % 2 :: 2] or pairs
        u = steps.uniform((len(lower), len(rungs[0])))

        def exchange(block):
            return self._exchange(lower[block.start], u[block.start])

        found = workers.map(exchange, blocks[: len(lower)], cost)
        self.n_rounds += 1
        return dict(zip(lower, found, strict=True))

    def _exchange(self, i, u):
        """Exchange states of rungs i and i + 1 with the probability of Metropolis."""
        forward, backward = self.differences(i, i + 1)
        with np.errstate(over="ignore"):
            chains = np.flatnonzero(np.log(u) < forward + backward)
        self.rungs[i].swap(self.rungs[i + 1], chains)
        mine, theirs = self.from_below[i], self.from_below[i + 1]
        mine[chains], theirs[chains] = theirs[chains], mine[chains]
        self.pairs[i].add(forward, backward)
        return forward, backward

    def arrivals(self):
        """How many states came from the first rung to the top since this was asked last."""
        self.from_below[0][:] = True
        n_arrivals = int(self.from_below[-1].sum())
        self.from_below[-1][:] = False
        return n_arrivals

    def differences(self, i, j):
        """What `bennett` wants of two rungs, from their states as they are."""
        low, high = self.rungs[i], self.rungs[j]
        forward = high.log_weights(low) - low.log_weights(low)
        return forward, low.log_weights(high) - high.log_weights(high)

    def pair(self, i, j):
        """What the states as they are tell of two rungs."""
        pair = Pair()
        pair.add(*self.differences(i, j))
        return pair

    def cost(self, first=0):
        """Multiplications of a round, or what takes as long."""
        return sum(rung.cost for rung in self.rungs[first:])

    def insert(self, place, rung, below=None):
        """Put a rung before another.

        Parameters
        ----------
        place : int
            Its number from now on.
        rung : object
        below : Pair, default=None
            What is known of it and its lower neighbour; None for their states as they are.
        """
        self.rungs.insert(place, rung)
        self.from_below.insert(place, np.zeros(len(rung), dtype=bool))
        self.pairs[place - 1 : place] = [
            below or self.pair(place - 1, place),
            self.pair(place, place + 1),
        ]

    def remove(self, place, gap=None):
        """Take a rung out.

        Parameters
        ----------
        place : int
        gap : Pair, default=None
            What is known of its neighbours as a pair, if it was looked at.
        """
        gap = gap or self.pair(place - 1, place + 1)
        del self.rungs[place], self.from_below[place]
        self.pairs[place - 1 : place + 1] = [gap]

    def complete(self):
        """Look at the pairs of which nothing is known."""
        for i, pair in enumerate(self.pairs):
            if not pair.acceptances:
                pair.add(*self.differences(i, i + 1))

    @property
    def acceptances(self):
        """Mean probabilities of exchanges between neighbours, (n_rungs − 1,)."""
        return np.array([pair.acceptance for pair in self.pairs])

    def is_broken(self):
        """Whether neighbours somewhere hardly exchange states."""
        return bool((self.acceptances < BROKEN).any())

    def log_partitions(self):
        """ln Z of each rung and its standard error, (n_rungs,) float64 each."""
        ratios = np.array([pair.log_ratio() for pair in self.pairs]).reshape(-1, 2)
        values = self.first_log_partition + np.append(0, np.cumsum(ratios[:, 0]))
        return values, np.sqrt(np.append(0, np.cumsum(ratios[:, 1] ** 2)))


class Block(NamedTuple):
    """What is kept of some rounds.

    Attributes
    ----------
    ratios : ndarray of shape (n_rungs − 1, n_chains)
        ln of the ratio of neighbouring constants by all chains, plus what each chain contributes
        to its error: their mean is the estimate, and their spread its error.
    acceptances : ndarray of shape (n_rungs − 1,)
    n_arrivals : int
        How many states came from the first rung to the top.
    """

    ratios: np.ndarray
    acceptances: np.ndarray
    n_arrivals: int


class Record:
    """Rounds of a ladder of models that do not change, and the figures that follow from them.

    Exchanges are between chains of the same number, so that the populations of a number are one
    simulation, independent of all others. Standard errors are those of the mean of these: they
    account for the correlation of rounds and of rungs.

    Parameters
    ----------
    ladder : Ladder
    workers : Workers
    """

    def __init__(self, ladder, workers):
        self.ladder, self.workers, self.blocks = ladder, workers, []

    @property
    def n_rounds(self):
        """All of them."""
        return RECORD_ROUNDS * len(self.blocks)

    def run(self, n_blocks):
        """Make rounds."""
        for _ in range(n_blocks):
            self.blocks.append(self._block())

    def _block(self):
        works, n_arrivals = [[] for _ in self.ladder.pairs], 0
        for _ in range(RECORD_ROUNDS):
            for i, differences in self.ladder.round(self.workers).items():
                works[i].append(differences)
            n_arrivals += self.ladder.arrivals()
        ratios, accepted = [], []
        for rounds in works:
            forward, backward = (np.array(side) for side in zip(*rounds, strict=True))
            ratios.append(ratios_by_chain(forward[np.newaxis], backward[np.newaxis])[0])
            accepted.append(np.exp(np.minimum(forward + backward, 0)).mean())
        return Block(np.array(ratios), np.array(accepted), n_arrivals)

    def kept(self):
        """The blocks that count."""
        return self.blocks[int(BURN_IN * len(self.blocks)) :]

    def acceptances(self):
        """Mean probabilities of exchanges between neighbours, (n_rungs − 1,)."""
        return np.mean([block.acceptances for block in self.kept()], axis=0)

    def n_arrivals(self):
        """How many states came from the first rung to the top."""
        return sum(block.n_arrivals for block in self.kept())

    def log_partitions(self, blocks=None):
        """ln Z of each rung by each simulation, (n_rungs, n_chains): the mean is the estimate."""
        ratios = np.mean([block.ratios for block in blocks or self.kept()], axis=0)
        first = np.full((1, ratios.shape[1]), self.ladder.first_log_partition)
        return np.cumsum(np.concatenate([first, ratios]), axis=0)

    def log_partition(self):
        """ln Z of the top by each simulation, (n_chains,)."""
        return self.log_partitions()[-1]

    def is_settled(self):
        """Whether both halves of the rounds say the same of ln Z."""
        blocks = self.kept()
        half = len(blocks) // 2
        first, second = (self.log_partitions(part)[-1] for part in (blocks[:half], blocks[half:]))
        _, error = mean_and_error(first - second)
        return abs((first - second).mean()) <= SETTLED * error + 1e-9

    def run_until(self, tol, max_rounds):
        """Make rounds until the standard error of ln Z is within `tol`; -> whether it is."""
        max_blocks = max(FIRST_LOOK, max_rounds // RECORD_ROUNDS)
        look = FIRST_LOOK
        while True:
            self.run(look - len(self.blocks))
            error = mean_and_error(self.log_partition())[1]
            enough = self.n_arrivals() >= max(MIN_ARRIVALS, len(self.ladder.rungs[0]))
            if error <= tol and enough and self.is_settled():
                return True
            if look >= max_blocks or self.is_broken():
                return False
            look = min(look + look // 2, max_blocks)

    def is_broken(self):
        """Whether neighbours somewhere hardly exchange states."""
        return bool((self.acceptances() < BROKEN).any())

    def estimate(self, tol, reached):
        """ln Z at the top, in the form of an estimate.

        Parameters
        ----------
        tol : float
        reached : bool
            Whether the error is what was asked for.

        Returns
        -------
        estimate : Bunch
        """
        values, errors = mean_and_error(self.log_partitions())
        value, std_err = float(values[-1]), float(errors[-1])
        estimate = Bunch(
            value=value, std_err=std_err, low=value - 2 * std_err, high=value + 2 * std_err,
            ess=float(self.n_arrivals()), log_weights=None, method="ladder", states=None,
            acceptances=self.acceptances(), log_partitions=values, n_rounds=self.n_rounds,
            trusted=True,
            verdict="The ladder's estimate of the log-partition has nothing against it: "
            f"{self._figures()}, and the standard error is {std_err:.2g} nats.",
        )  # fmt: skip
        against = None if reached else self._objection(std_err)
        if against:
            estimate.update(trusted=False, low=-math.inf, high=math.inf)
            estimate.verdict = (
                f"The estimate of the log-partition by a ladder of {len(self.ladder)} models, "
                f"{value:.7g}, is not to be trusted: {against}."
            )
        elif std_err > tol:
            estimate.verdict += f" More than {tol:.2g} after {self.n_rounds} rounds, though."
        return estimate

    def _figures(self):
        """What tells how well the rungs are connected, in words."""
        return (
            f"between {len(self.ladder)} models {self.acceptances().min():.2f} of the exchanges "
            f"and more are accepted, and {self.n_arrivals()} states came from independent columns "
            "to the model"
        )

    def _objection(self, std_err):
        """What speaks against the figures; None for nothing."""
        if self.is_broken():
            lowest = self.acceptances().min()
            return (
                f"of the exchanges between two of them only {lowest:.1g} are accepted. There may "
                "be modes that nothing connects"
            )
        if self.n_arrivals() < MIN_ARRIVALS:
            return (
                f"in {self.n_rounds} rounds only {self.n_arrivals()} states came from independent "
                "columns to the model. Use more (max_rounds)"
            )
        if not self.is_settled():
            return "the two halves of the rounds differ. Use more (max_rounds)"
        if not std_err <= MAX_STD_ERR:
            return (
                f"the standard error is {std_err:.2g} nats. Use more rounds (max_rounds) or chains"
            )
        return None


def ratios_by_chain(forward, backward):
    """Bennett's ratios with the contributions of the chains.

    Parameters
    ----------
    forward, backward : ndarray of float64 of shape (n_pairs, n_rounds, n_chains)
        As of `bennett`.

    Returns
    -------
    ratios : ndarray of float64 of shape (n_pairs, n_chains)
    """
    n_pairs = len(forward)
    value, _ = bennett(forward.reshape(n_pairs, -1), backward.reshape(n_pairs, -1))
    x = value[:, np.newaxis, np.newaxis]
    f, b = expit(forward - x), expit(backward + x)
    # The root x of mean(f) − mean(b), and how it moves with what each chain adds.
    slope = (f * (1 - f) + b * (1 - b)).mean(axis=(1, 2))
    share = (f - b).mean(axis=1)
    share -= share.mean(axis=1, keepdims=True)
    return value[:, np.newaxis] + share / np.maximum(slope, 1e-300)[:, np.newaxis]


def mean_and_error(values):
    """Mean over the last axis, and its standard error."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / math.sqrt(values.shape[-1])
