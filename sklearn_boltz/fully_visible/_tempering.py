"""Where a network of pairs is too large to enumerate: a ladder of temperatures.

From independent columns to the network, with a population of Gibbs chains at each temperature
that exchange states with their neighbours. Chains at the top then come right where they could not
pass from mode to mode by themselves, and the differences of log-weights give ln Z.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch

from sklearn_boltz._estimates import MAX_STD_ERR, temperature_ladder
from sklearn_boltz._ladder import BROKEN, Ladder, Pair, bennett
from sklearn_boltz._random import Stream
from sklearn_boltz._threads import Workers
from sklearn_boltz.fully_visible._sampling import draw_seed

# Chains of a rung; rungs at most, and chains that find them.
N_CHAINS, MAX_RUNGS, N_PILOT = 100, 200, 100
# Neighbours that accept fewer exchanges get a rung between them; a rung goes where its neighbours
# would accept as many without it.
SPARSE, DENSE = 0.3, 0.45
# The first guess: steps of the inverse temperature, in standard deviations of the log-weight, at
# which normal ones are accepted with a probability of .4; and sweeps at each.
STEP, N_ANNEALING = 1.2, 5
# Sweeps of the chains that look for modes of the model by themselves; the rates of independent
# columns that are fitted to them are no less.
N_EXPLORING, LEAST_RATE = 200, 1e-3
# Standard deviation of their probabilities in a direction, from which on they are several modes.
LEAST_SPREAD = 1.0
# Rounds before the acceptances are looked at, and how often this is done.
N_TRIAL, MAX_TRIALS = 32, 12
# Rounds of a block, whose ratios are computed together; blocks before the first look at them.
BLOCK, FIRST_LOOK = 16, 8
# Of all blocks, this share at the beginning is not used.
BURN_IN = 0.25
# States that came from independent columns: with fewer, the shares of modes are unknown.
MIN_ARRIVALS = 20
# Standard errors by which two halves of the rounds may differ.
SETTLED = 4.0
# Chains of a sample at most. The share of n_steps that counts as rounds before the first one.
MAX_CHAINS, WARM_UP = 1000, 0.5


class Path:
    """From independent columns to a network of pairs: w_β(x) = (1 − β) g(x) + β w(x).

    Here w is the log-weight of the model and g that of independent columns.

    Parameters
    ----------
    model : PairwiseModel
    base : ndarray
        Intercepts of the independent columns. Those of 0 make β an inverse temperature: any
        β > 0 is then the model p(x)^β, also above 1.
    found : ndarray of int of shape (n, d)
        Codes of states that chains of the model itself have found, wherever they began. Half of
        the chains of a ladder begin there, the others at independent columns: where it makes a
        difference, the chains differ, and standard errors are large.
    """

    def __init__(self, model, base, found):
        self.model, self.base = model, np.ascontiguousarray(base, dtype=np.float64)
        self.found = found
        self.nowhere = np.full(len(model.n_values), -1)

    @classmethod
    def from_model(cls, model, base, generator):
        """The path from columns with the rates of the model, as far as chains find them.

        Half of these chains begin at columns with the intercepts `base`, half at uniform ones.
        What they found has modes in any shares; intercepts that prefer one to another would
        suppress the other half-way, where chains can pass between them. So those have no part in
        the directions in which the chains differ.
        """
        chains = explore(model, base, 1.0, generator)
        p = chains.probabilities(model.intercept)
        rates = p.mean(axis=0)
        log_rates = np.log(np.maximum(rates, LEAST_RATE))
        _, spread, directions = np.linalg.svd((p - rates) / math.sqrt(len(p)), full_matrices=False)
        directions = directions[spread > LEAST_SPREAD]
        log_rates -= directions.T @ (directions @ log_rates)
        return cls(model, model.independent_intercept(log_rates), chains.codes)

    @classmethod
    def of_temperatures(cls, model, top, generator):
        """The path from uniform columns, at which β is an inverse temperature up to `top`."""
        base = np.zeros_like(model.intercept)
        return cls(model, base, explore(model, model.intercept, top, generator).codes)

    def log_partition(self):
        """ln Z of the independent columns."""
        return float(self.model.independent_log_sum(self.base, self.nowhere))

    def independent(self, n_chains, generator):
        """Chains whose states are draws of the independent columns."""
        codes = self.model.fill(self.base, np.tile(self.nowhere, (n_chains, 1)), generator)
        return self.model.chains(codes, 0)


class Rung:
    """One inverse temperature with its chains, as `Ladder` needs them.

    Parameters
    ----------
    path : Path
    beta : float
    chains : Chains

    Attributes
    ----------
    log_weight : ndarray of float64 of shape (n_chains,)
        w of the states.
    rise : ndarray of float64 of shape (n_chains,)
        w − g of the states.
    from_below : ndarray of bool of shape (n_chains,)
        Whether a state was at the first rung after it was last at the top.
    """

    def __init__(self, path, beta, chains):
        self.path, self.beta, self.chains = path, beta, chains
        self.offset = (1 - beta) * path.base + beta * path.model.intercept
        self.from_below = np.zeros(len(chains.local), dtype=bool)
        self._measure()

    def __len__(self):
        return len(self.chains.local)

    def at(self, beta):
        """A copy at another inverse temperature."""
        return Rung(self.path, beta, self.chains.copy())

    def copy(self):
        """A rung with states of its own."""
        other = self.at(self.beta)
        other.from_below = self.from_below.copy()
        return other

    @property
    def cost(self):
        """Multiplications of a sweep, or what takes as long."""
        return self.chains.local.size * (10 + len(self.offset) / 4)

    def move(self, n_steps, stream, first_row):
        """Sweeps of Gibbs sampling; without couplings, one is a new draw."""
        chains = self.chains
        chains.seed, chains.n_sweeps = stream.seed, stream.take(n_steps)
        chains.first_row = first_row
        chains.sweep(self.offset, n_steps if self.beta else 1, scale=self.beta)
        self._measure()

    def _measure(self):
        self.log_weight = self.chains.log_weight(self.path.model.intercept)
        self.rise = self.log_weight - self.chains.field_weight(self.path.base)

    def log_weights(self, other):
        """w_β at the states of another rung."""
        return other.log_weight - (1 - self.beta) * other.rise

    def swap(self, other, chains):
        """Exchange the states of some chains."""
        self.chains.swap(other.chains, chains)
        for name in ("log_weight", "rise", "from_below"):
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[chains], theirs[chains] = theirs[chains], mine[chains]


class Exchanges(Pair):
    """What is known of two neighbours: acceptances alone, since `Record` finds the ratios."""

    def add(self, forward, backward):
        """Take in the differences of log-weights of one round."""
        self.acceptances.append(float(np.exp(np.minimum(forward + backward, 0)).mean()))


def explore(model, base, beta, generator):
    """Gibbs chains of p(x)^β from independent columns, half of them uniform, half with `base`."""
    nowhere = np.full((N_PILOT // 2, len(model.n_values)), -1)
    starts = [model.fill(b, nowhere, generator) for b in (base, np.zeros_like(base))]
    chains = model.chains(generator.permutation(np.concatenate(starts)), draw_seed(generator))
    chains.sweep(beta * model.intercept, N_EXPLORING, scale=beta)
    return chains


def make_ladder(path, betas, n_chains, generator):
    """A ladder of given inverse temperatures.

    Every second chain is annealed from independent columns up, the others from the states that
    chains of the model have found down.
    """
    stream = Stream.from_generator(generator)
    rungs = [Rung(path, 0.0, path.independent(n_chains, generator))]
    for beta in betas[1:]:
        rungs.append(rungs[-1].at(beta))
        rungs[-1].move(N_ANNEALING, stream, 0)
    found = path.found[np.arange(n_chains) % len(path.found)]
    down = Rung(path, betas[-1], path.model.chains(found, 0))
    for rung in reversed(rungs[1:]):
        down = down.at(rung.beta)
        down.move(N_ANNEALING, stream, 0)
        rung.swap(down.copy(), np.arange(1, n_chains, 2))
    ladder = Ladder(rungs, path.log_partition(), stream)
    ladder.pairs = [Exchanges() for _ in rungs[1:]]
    return ladder


def find_betas(path, targets, generator, workers):
    """Inverse temperatures between which states are exchanged.

    Parameters
    ----------
    path : Path
    targets : sequence of float
        Inverse temperatures that must be among them, from small to large; the last is the top.
    generator : Generator
    workers : Workers

    Returns
    -------
    betas : ndarray of float64
        From 0 to the top.
    """
    ladder = make_ladder(path, _first_guess(path, targets, generator), N_PILOT, generator)
    for _ in range(MAX_TRIALS):
        for _ in range(N_TRIAL):
            ladder.round(workers)
        if not _refine(ladder, set(targets)):
            break
    return np.array([rung.beta for rung in ladder.rungs])


def _first_guess(path, targets, generator):
    """Steps by the spread of the log-weights, and where they would be too many by factors."""
    stream = Stream.from_generator(generator)
    rungs = [Rung(path, 0.0, path.independent(N_PILOT, generator))]
    room = max(MAX_RUNGS // 2, len(targets))
    for target in targets:
        while (beta := rungs[-1].beta) < target:
            step = STEP / _spread(rungs[-1].rise)
            if beta:
                factor = (targets[-1] / beta) ** (1 / max(room - len(rungs), 1))
                step = max(step, beta * (factor - 1))
            rungs.append(rungs[-1].at(float(min(beta + step, target))))
            rungs[-1].move(N_ANNEALING, stream, 0)
    return [rung.beta for rung in rungs]


def _spread(values):
    """Standard deviation, also of huge numbers; never 0."""
    scale = max(np.abs(values).max(), 1e-300)
    return max(np.std(values / scale) * scale, 1e-300)


def _refine(ladder, targets):
    """Insert rungs where few exchanges are accepted, remove them where many are; -> if any."""
    changed, rungs = False, ladder.rungs
    for i in reversed(range(len(rungs) - 1)):
        if ladder.pairs[i].acceptance < SPARSE and len(rungs) < MAX_RUNGS:
            middle = _between(rungs[i].beta, rungs[i + 1].beta)
            if rungs[i].beta < middle < rungs[i + 1].beta:
                ladder.insert(i + 1, rungs[i].at(middle))
                changed = True
    i = 1
    while i < len(rungs) - 1:
        around = rungs[i - 1], rungs[i + 1]
        if rungs[i].beta not in targets and _acceptance(*around) > DENSE:
            ladder.remove(i)
            changed = True
        i += 1  # the neighbours of a rung that goes stay for now
    return changed


def _between(low, high):
    """The mean of two inverse temperatures, the geometric one where they are far apart."""
    return math.sqrt(low * high) if 0 < 4 * low < high else (low + high) / 2


def _acceptance(low, high):
    """Mean probability of an exchange, were the two neighbours."""
    with np.errstate(over="ignore"):
        return np.exp(np.minimum((high.beta - low.beta) * (low.rise - high.rise), 0)).mean()


@dataclass
class Block:
    """What is kept of some rounds, each array with a column for each chain.

    ratios : (n_rungs − 1, n_chains), ln of the ratio of neighbouring constants by Bennett's
        ratio of all chains, plus what each chain contributes to its error: their mean is the
        estimate, and their spread its error.
    sums, squares : (n_rungs, n_chains), means of w less `centre`, and of its square.
    acceptances : (n_rungs − 1,).
    n_arrivals : how many states came to the top from the first rung.
    """

    ratios: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    acceptances: np.ndarray
    n_arrivals: int


class Record:
    """Rounds of a ladder, and the figures that follow from them.

    Exchanges are between chains of the same number, so that the populations of a number are one
    simulation, independent of all others. Standard errors are those of the mean of these: they
    account for the correlation of rounds and of temperatures.

    Parameters
    ----------
    ladder : Ladder
        Of `Rung`.
    workers : Workers
    """

    def __init__(self, ladder, workers):
        self.ladder, self.workers, self.blocks = ladder, workers, []
        self.betas = np.array([rung.beta for rung in ladder.rungs])
        self.centre = np.array([rung.log_weight.mean() for rung in ladder.rungs])[:, np.newaxis]

    @property
    def n_rounds(self):
        """All of them."""
        return BLOCK * len(self.blocks)

    def run(self, n_blocks):
        """Make rounds."""
        for _ in range(n_blocks):
            self.blocks.append(self._block())

    def _block(self):
        ladder, n_arrivals = self.ladder, 0
        shape = len(ladder), BLOCK, len(ladder.rungs[0])
        rise, weights = np.empty(shape), np.empty(shape)
        for t in range(BLOCK):
            n_arrivals += one_round(ladder, self.workers)
            for k, rung in enumerate(ladder.rungs):
                rise[k, t], weights[k, t] = rung.rise, rung.log_weight
        weights -= self.centre[:, np.newaxis]
        steps = np.diff(self.betas)[:, np.newaxis, np.newaxis]
        forward, backward = steps * rise[:-1], -steps * rise[1:]
        with np.errstate(over="ignore"):
            accepted = np.exp(np.minimum(forward + backward, 0)).mean(axis=(1, 2))
            squares = (weights**2).mean(axis=1)
        return Block(
            _ratios(forward, backward), weights.mean(axis=1), squares, accepted, n_arrivals
        )

    def kept(self):
        """The blocks that count."""
        return self.blocks[int(BURN_IN * len(self.blocks)) :]

    def acceptances(self):
        """Mean probabilities of exchanges between neighbours, (n_rungs − 1,)."""
        return np.mean([block.acceptances for block in self.kept()], axis=0)

    def n_arrivals(self):
        """How many states came from independent columns to the top."""
        return sum(block.n_arrivals for block in self.kept())

    def log_partitions(self, blocks=None):
        """ln Z of each rung by each simulation, (n_rungs, n_chains): the mean is the estimate."""
        ratios = np.mean([block.ratios for block in blocks or self.kept()], axis=0)
        first = np.full((1, ratios.shape[1]), self.ladder.first_log_partition)
        return np.cumsum(np.concatenate([first, ratios]), axis=0)

    def log_partition(self):
        """ln Z of the top by each simulation, (n_chains,)."""
        return self.log_partitions()[-1]

    def moments(self):
        """Mean and variance of w at each rung by each simulation, (n_rungs, n_chains) each."""
        sums = np.mean([block.sums for block in self.kept()], axis=0)
        squares = np.mean([block.squares for block in self.kept()], axis=0)
        mean = sums.mean(axis=1, keepdims=True)
        return self.centre + sums, squares - 2 * mean * sums + mean**2

    def is_settled(self):
        """Whether both halves of the rounds say the same of ln Z."""
        blocks = self.kept()
        half = len(blocks) // 2
        first, second = (self.log_partitions(part)[-1] for part in (blocks[:half], blocks[half:]))
        _, error = mean_and_error(first - second)
        return abs((first - second).mean()) <= SETTLED * error + 1e-9

    def run_until(self, tol, max_rounds, figures):
        """Make rounds until the standard errors of some figures are within `tol`; -> if they are.

        `figures` is a function of this record, whose result has the figures by each simulation,
        (..., n_chains).
        """
        max_blocks = max(FIRST_LOOK, max_rounds // BLOCK)
        look = FIRST_LOOK
        while True:
            self.run(look - len(self.blocks))
            error = mean_and_error(figures(self))[1].max()
            enough = self.n_arrivals() >= max(MIN_ARRIVALS, len(self.ladder.rungs[0]))
            if error <= tol and enough and self.is_settled():
                return True
            if look >= max_blocks or self.is_broken():
                return False
            look = min(look + look // 2, max_blocks)

    def is_broken(self):
        """Whether neighbours somewhere hardly exchange states."""
        return bool((self.acceptances() < BROKEN).any())


def one_round(ladder, workers):
    """A sweep and exchanges; -> how many states came to the top from the first rung."""
    ladder.round(workers)
    first, top = ladder.rungs[0], ladder.rungs[-1]
    first.from_below[:] = True
    n_arrivals = int(top.from_below.sum())
    top.from_below[:] = False
    return n_arrivals


def _ratios(forward, backward):
    """Bennett's ratios with the contributions of the chains, (n_pairs, n_chains)."""
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


def ladder_log_partition(path, n_temperatures, n_chains, tol, max_rounds, generator):
    """ln Z by a ladder.

    Parameters
    ----------
    path : Path
    n_temperatures : int, array-like or None
        As of `temperature_ladder`; None chooses inverse temperatures by the acceptance.
    n_chains : int
    tol : float
    max_rounds : int
    generator : Generator

    Returns
    -------
    estimate : Bunch
        Of `estimate_from_record`.
    """
    with Workers() as workers:
        if n_temperatures is None:
            betas = find_betas(path, [1.0], generator, workers)
        else:
            betas = temperature_ladder(n_temperatures)
        record = Record(make_ladder(path, betas, n_chains, generator), workers)
        reached = record.run_until(tol, max_rounds, Record.log_partition)
    return estimate_from_record(record, tol, reached)


def estimate_from_record(record, tol, reached):
    """ln Z at the top, in the form of an estimate.

    Parameters
    ----------
    record : Record
    tol : float
    reached : bool
        Whether the error is what was asked for.

    Returns
    -------
    estimate : Bunch
    """
    value, std_err = map(float, mean_and_error(record.log_partition()))
    estimate = Bunch(
        value=value, std_err=std_err, low=value - 2 * std_err, high=value + 2 * std_err,
        ess=float(record.n_arrivals()), log_weights=None, method="ladder",
        states=record.ladder.rungs[-1].chains.codes, acceptances=record.acceptances(),
        betas=record.betas, n_rounds=record.n_rounds, trusted=True,
        verdict=f"The ladder's estimate of the log-partition has nothing against it: "
        f"{figures(record)}, and the standard error is {std_err:.2g} nats.",
    )  # fmt: skip
    against = None if reached else objection(record, std_err)
    if against:
        distrust(estimate, against)
    elif std_err > tol:
        estimate.verdict += f" More than {tol:.2g} after {record.n_rounds} rounds, though."
    return estimate


def figures(record):
    """What tells how well the temperatures are connected, in words."""
    return (
        f"between {len(record.betas)} temperatures {record.acceptances().min():.2f} of the "
        f"exchanges and more are accepted, and {record.n_arrivals()} states came from independent "
        "columns to the model"
    )


def distrust(estimate, why):
    """Say that an estimate is not to be trusted, which then has no bounds."""
    estimate.trusted, estimate.low, estimate.high = False, -math.inf, math.inf
    estimate.verdict = (
        f"The estimate of the log-partition by {len(estimate.betas)} temperatures, "
        f"{estimate.value:.7g}, is not to be trusted: {why}."
    )


def objection(record, std_err):
    """What speaks against the figures of a ladder; None for nothing."""
    if record.is_broken():
        lowest = record.acceptances().min()
        return (
            f"of the exchanges between two of them only {lowest:.1g} are accepted. Let "
            "n_temperatures be chosen; there may be modes that no temperature connects"
        )
    if record.n_arrivals() < MIN_ARRIVALS:
        return (
            f"in {record.n_rounds} rounds only {record.n_arrivals()} states came from independent "
            "columns to the model. Use more (max_rounds)"
        )
    if not record.is_settled():
        return "the two halves of the rounds differ. Use more (max_rounds)"
    if not std_err <= MAX_STD_ERR:
        return f"the standard error is {std_err:.2g} nats. Use more rounds (max_rounds) or chains"
    return None


def draw(path, betas, n_samples, n_steps, generator, workers):
    """States of the top rung.

    Parameters
    ----------
    path : Path
    betas : ndarray
    n_samples : int
    n_steps : int
        Sweeps for a sample, those of all temperatures together; half as many rounds come
        before the first one.
    generator : Generator
    workers : Workers

    Returns
    -------
    codes : ndarray of int of shape (n_samples, d)
    is_broken : bool
        Whether neighbours somewhere hardly exchange states.
    """
    n_chains = min(n_samples, MAX_CHAINS)
    ladder = make_ladder(path, betas, n_chains, generator)
    n_draws, interval = -(-n_samples // n_chains), -(-n_steps // len(betas))
    found = []
    for k in range(n_draws):
        for _ in range(interval if k else max(interval, int(WARM_UP * n_steps))):
            ladder.round(workers)
        found.append(ladder.rungs[-1].chains.codes.copy())
    return np.concatenate(found)[:n_samples], ladder.is_broken()
