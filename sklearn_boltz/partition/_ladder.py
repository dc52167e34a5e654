"""A ladder of models whose chains exchange states: samples across barriers, and ln Z.

A rung is a model with a population of Markov chains. Neighbours exchange states as in parallel
tempering, so that a chain which cannot leave a mode at the top can do so further down. The
differences of log-weights that an exchange looks at tell the ratio of two normalising constants
as well, by Bennett's acceptance ratio. The first rung has a known constant.
"""

from copy import copy, deepcopy

import numpy as np
from scipy.special import expit

# Rounds of a block: ratios are computed block by block, and their errors from the blocks.
BLOCK_ROUNDS = 8
# Blocks of which a ladder in a training keeps the ratios: what lies further back may be of chains
# that had not settled.
KEPT_BLOCKS = 32
# Of fewer blocks, the error is that of independent chains.
LEAST_BLOCKS = 6
# Below this acceptance of exchanges, two neighbours are not connected: no ratio is to be trusted.
BROKEN = 0.05


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


class Exchanges:
    """How often two neighbours exchange states: enough where a record finds the ratios.

    Attributes
    ----------
    acceptances : list of float
        Mean probability of an exchange, of the last rounds.
    """

    def __init__(self):
        self.acceptances = []

    def copy(self):
        """Return a snapshot of the current estimates."""
        return copy(self)  # its list is never changed

    def add(self, forward, backward):
        """Take in the differences of log-weights of one round."""
        accepted = float(np.exp(np.minimum(forward + backward, 0)).mean())
        self.acceptances = [*self.acceptances, accepted][-2 * BLOCK_ROUNDS :]

    @property
    def acceptance(self):
        """Mean probability of an exchange in the last rounds; 0 if there was none."""
        return float(np.mean(self.acceptances)) if self.acceptances else 0.0


class Pair(Exchanges):
    """Estimates for two neighbours, including the ratio of their constants.

    Attributes
    ----------
    forward, backward : list of ndarray
        As of `bennett`, of the rounds of the block that is not complete.
    ratios : list of float
        Of the complete blocks.
    """

    def __init__(self):
        super().__init__()
        self.forward, self.backward = [], []
        self.ratios = []

    def copy(self):
        """Return a snapshot of the current estimates."""
        other = copy(self)  # arrays of a round, and lists of floats, are never changed
        other.forward, other.backward = list(self.forward), list(self.backward)
        return other

    def add(self, forward, backward):
        """Take in the differences of log-weights of one round."""
        super().add(forward, backward)
        self.forward.append(forward)
        self.backward.append(backward)
        if len(self.forward) == BLOCK_ROUNDS:
            self.ratios = [*self.ratios, float(self._open_block()[0])][-KEPT_BLOCKS:]
            self.forward, self.backward = [], []

    def _open_block(self):
        return bennett(np.concatenate(self.forward), np.concatenate(self.backward))

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
    kind : type, default=Pair
        What is known of two neighbours: `Exchanges` where a record finds the ratios.
    """

    def __init__(self, rungs, log_partition, stream, kind=Pair):
        self.rungs, self.stream, self.kind = rungs, stream, kind
        self.first_log_partition = log_partition
        self.pairs = [kind() for _ in rungs[1:]]
        self.n_rounds = 0
        self.explored = None  # which numbers of chains began far from the others, if some did
        # Of each state: 1 if it was at the first rung after it was last at the top, 2 if it came to
        # the top since then, and 0 if it has never been at the first rung.
        self.origins = [np.zeros(len(rung), dtype=np.int8) for rung in rungs]

    def __deepcopy__(self, memo):
        other = copy(self)
        other.rungs = [rung.copy() for rung in self.rungs]
        other.pairs = [pair.copy() for pair in self.pairs]
        other.origins = deepcopy(self.origins)
        other.stream = deepcopy(self.stream, memo)  # others may take numbers from it as well
        return other

    def __len__(self):
        return len(self.rungs)

    def round(self, workers, n_steps=1, first=0):
        """Make transitions of all chains from rung `first` on, then exchanges of neighbours.

        The rungs below `first` stay as they are; such a part of a round does not change whose turn
        it is to exchange in the next whole one. -> a dict: of each pair that exchanged states, what
        `differences` gave before. Results do not depend on the number of threads.
        """
        self.move(first, n_steps, workers)
        # Every second pair, and the others in the next round.
        pairs = range(first, len(self.pairs))
        lower = pairs[self.n_rounds % 2 :: 2] or pairs
        u = self.stream.uniform((len(lower), len(self.rungs[0])))
        # States climb the ladder only where the two kinds of pairs take turns.
        self.n_rounds += first == 0
        return self._exchange_all(lower, u, workers)

    def move(self, first, n_steps, workers):
        """Make transitions of all chains from a rung on."""
        rungs, steps = self.rungs[first:], self.stream

        def move(block):
            own = copy(steps)
            rungs[block.start].move(n_steps, own, block.start * len(rungs[0]))
            return own.step

        blocks = [slice(k, k + 1) for k in range(len(rungs))]
        steps.step = max(workers.map(move, blocks, self.cost(first)))

    def _exchange_all(self, lower, u, workers):
        """Exchange states of pairs, given their lower rungs; -> what they gave, of each pair."""

        def exchange(block):
            return self._exchange(lower[block.start], u[block.start])

        blocks = [slice(k, k + 1) for k in range(len(lower))]
        found = workers.map(exchange, blocks, self.cost(lower[0]))
        return dict(zip(lower, found, strict=True))

    def _exchange(self, i, u):
        """Exchange states of rungs i and i + 1 with the probability of Metropolis."""
        forward, backward = self.differences(i, i + 1)
        with np.errstate(over="ignore"):
            chains = np.flatnonzero(np.log(u) < forward + backward)
        self.rungs[i].swap(self.rungs[i + 1], chains)
        mine, theirs = self.origins[i], self.origins[i + 1]
        mine[chains], theirs[chains] = theirs[chains], mine[chains]
        self.pairs[i].add(forward, backward)
        return forward, backward

    def arrivals(self):
        """How many states came from the first rung to the top since this was asked last."""
        self.origins[0][:] = 1
        arrived = self.origins[-1] == 1
        self.origins[-1][arrived] = 2
        return int(arrived.sum())

    def n_left(self):
        """How many states at the top have never been at the first rung since arrivals count."""
        return int((self.origins[-1] == 0).sum())

    def leaves_alike(self):
        """Whether half of the chains or more have left, and those that began far away as easily.

        At most two standard deviations more of these are left: a mode that nothing connects holds
        those that it has.
        """
        if self.explored is None:
            return False
        is_left = self.origins[-1] == 0
        far, near = is_left[self.explored].sum(), is_left[~self.explored].sum()
        return bool(near <= (~self.explored).sum() / 2 and far - near <= 2 * np.sqrt(far + near))

    def differences(self, i, j):
        """Arguments of `bennett` for two rungs, from their current states."""
        low, high = self.rungs[i], self.rungs[j]
        forward = high.log_weights(low) - low.log_weights(low)
        return forward, low.log_weights(high) - high.log_weights(high)

    def pair(self, i, j):
        """Estimate for two rungs from their current states."""
        pair = self.kind()
        pair.add(*self.differences(i, j))
        return pair

    def cost(self, first=0):
        """Multiplications of a round, or what takes as long."""
        return sum(rung.cost for rung in self.rungs[first:])

    def insert(self, place, rung, below=None):
        """Put a rung at a place; `below` is the pair of it and its lower neighbour, if known."""
        self.rungs.insert(place, rung)
        self.origins.insert(place, np.zeros(len(rung), dtype=np.int8))
        self.pairs[place - 1 : place] = [
            below or self.pair(place - 1, place),
            self.pair(place, place + 1),
        ]

    def remove(self, place, gap=None):
        """Take a rung out; `gap` is the pair of its neighbours, if it was looked at."""
        gap = gap or self.pair(place - 1, place + 1)
        del self.rungs[place], self.origins[place]
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
