"""Where a pairwise network is too large to enumerate: a ladder of temperatures.

From independent columns to the network, with a population of Gibbs chains at each temperature
that exchange states with their neighbours. Chains at the top then come right where they could not
pass from mode to mode by themselves, and the differences of log-weights give ln Z.
"""

import math

import numpy as np

from sklearn_boltz.networks.sampling._sampling import draw_seed
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._estimates import temperature_ladder
from sklearn_boltz.partition._ladder import Exchanges, Ladder
from sklearn_boltz.partition._ladder_record import RECORD_ROUNDS, Record, ratios_by_chain

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
# Chains of a sample at most. The share of n_steps that counts as rounds before the first one.
MAX_CHAINS, WARM_UP = 1000, 0.5


class Path:
    """From independent columns to a pairwise network: w_β(x) = (1 − β) g(x) + β w(x).

    Here w is the log-weight of the model and g that of independent columns.

    Parameters
    ----------
    model : DiscreteModel
    base : ndarray
        Intercepts of the independent columns. Those of 0 make β an inverse temperature: any
        β > 0 is then the model p(x)^β, also above 1.
    found : ndarray of int of shape (n, d)
        Codes of states that chains of the model itself have found, wherever they began. Half of
        the chains of a ladder begin there, the others at independent columns: where it makes a
        difference, the chains differ, and standard errors are large.
    has_modes : bool, default=False
        Whether these chains differ as if there were several modes.
    """

    def __init__(self, model, base, found, has_modes=False):
        self.model, self.base = model, np.ascontiguousarray(base, dtype=np.float64)
        self.found, self.has_modes = found, has_modes
        self.nowhere = np.full(len(model.n_values), -1)

    @classmethod
    def from_model(cls, model, base, generator, n_sweeps=N_EXPLORING):
        """The path from columns with the rates of the model, as far as chains find them.

        Half of these chains begin at columns with the intercepts `base`, half at uniform ones.
        What they found has modes in any shares; intercepts that prefer one to another would
        suppress the other half-way, where chains can pass between them. So those have no part in
        the directions in which the chains differ.
        """
        chains = explore(model, base, 1.0, generator, n_sweeps)
        p = chains.probabilities(model.intercept)
        rates = p.mean(axis=0)
        log_rates = np.log(np.maximum(rates, LEAST_RATE))
        _, spread, directions = np.linalg.svd((p - rates) / math.sqrt(len(p)), full_matrices=False)
        directions = directions[spread > LEAST_SPREAD]
        log_rates -= directions.T @ (directions @ log_rates)
        base = model.independent_intercept(log_rates)
        return cls(model, base, chains.codes, len(directions) > 0)

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
    """

    def __init__(self, path, beta, chains):
        self.path, self.beta, self.chains = path, beta, chains
        self.offset = (1 - beta) * path.base + beta * path.model.intercept
        self._measure()

    def __len__(self):
        return len(self.chains.local)

    def at(self, beta):
        """A copy at another inverse temperature."""
        return Rung(self.path, beta, self.chains.copy())

    def copy(self):
        """A rung with states of its own."""
        return self.at(self.beta)

    @property
    def cost(self):
        """Multiplications of a sweep, or what takes as long."""
        return self.chains.local.size * (10 + len(self.offset) / 4)

    def move(self, n_steps, stream, first_row):
        """Sweeps of Gibbs sampling; without couplings, one is a new draw."""
        chains = self.chains
        chains.seed, chains.n_sweeps = stream.seed, stream.take(n_steps)
        chains.rows = np.arange(first_row, first_row + len(self), dtype=np.uint64)
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
        for name in ("log_weight", "rise"):
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[chains], theirs[chains] = theirs[chains], mine[chains]


def explore(model, base, beta, generator, n_sweeps=N_EXPLORING):
    """Gibbs chains of p(x)^β from independent columns, half of them uniform, half with `base`."""
    nowhere = np.full((N_PILOT // 2, len(model.n_values)), -1)
    starts = [model.fill(b, nowhere, generator) for b in (base, np.zeros_like(base))]
    chains = model.chains(generator.permutation(np.concatenate(starts)), draw_seed(generator))
    chains.sweep(beta * model.intercept, n_sweeps, scale=beta)
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
    return Ladder(rungs, path.log_partition(), stream, Exchanges)


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
    betas = _first_guess(path, targets, generator)
    ladder = connected_ladder(path, betas, N_PILOT, targets, generator, workers)
    return np.array([rung.beta for rung in ladder.rungs])


def connected_ladder(path, betas, n_chains, targets, generator, workers):
    """A ladder after some rounds, with more or fewer rungs where the exchanges ask for it.

    Parameters are those of `make_ladder` and `find_betas`.
    """
    ladder = make_ladder(path, betas, n_chains, generator)
    for _ in range(MAX_TRIALS):
        for _ in range(N_TRIAL):
            ladder.round(workers)
        if not refine(ladder, set(targets)):
            break
    return ladder


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


def refine(ladder, targets):
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


class ThermalRecord(Record):
    """A record that knows the energies, too.

    Parameters
    ----------
    ladder : Ladder
        Of `Rung`.
    workers : Workers
    """

    rungs = "temperatures"
    remedy = "Let n_temperatures be chosen; there may be modes that no temperature connects"

    def __init__(self, ladder, workers):
        super().__init__(ladder, workers)
        self.betas = np.array([rung.beta for rung in ladder.rungs])
        self.centre = np.array([rung.log_weight.mean() for rung in ladder.rungs])[:, np.newaxis]
        # Of each block, means of w less `centre` and of its square, (n_rungs, n_chains).
        self._sums, self._squares = [], []

    def _block(self):
        ladder, n_arrivals = self.ladder, 0
        shape = len(ladder), RECORD_ROUNDS, len(ladder.rungs[0])
        rise, weights = np.empty(shape), np.empty(shape)
        for t in range(RECORD_ROUNDS):
            ladder.round(self.workers)
            n_arrivals += ladder.arrivals()
            for k, rung in enumerate(ladder.rungs):
                rise[k, t], weights[k, t] = rung.rise, rung.log_weight
        weights -= self.centre[:, np.newaxis]
        # The differences are known of all pairs, not only of those that exchanged states.
        steps = np.diff(self.betas)[:, np.newaxis, np.newaxis]
        forward, backward = steps * rise[:-1], -steps * rise[1:]
        with np.errstate(over="ignore"):
            accepted = np.exp(np.minimum(forward + backward, 0)).mean(axis=(1, 2))
            self._squares.append((weights**2).mean(axis=1))
        self._sums.append(weights.mean(axis=1))
        return ratios_by_chain(forward, backward), accepted, n_arrivals

    def moments(self):
        """Mean and variance of w at each rung by each simulation, (n_rungs, n_chains) each."""
        first = len(self.blocks) - len(self.kept())
        sums, squares = (np.mean(a[first:], axis=0) for a in (self._sums, self._squares))
        mean = sums.mean(axis=1, keepdims=True)
        return self.centre + sums, squares - 2 * mean * sums + mean**2

    def estimate(self, tol, reached):
        """ln Z at the top, with the inverse temperatures."""
        estimate = super().estimate(tol, reached)
        estimate.update(betas=self.betas, states=self.ladder.rungs[-1].chains.codes)
        return estimate


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
        Of `Record.estimate`.
    """
    with Workers() as workers:
        if n_temperatures is None:
            betas = find_betas(path, [1.0], generator, workers)
        else:
            betas = temperature_ladder(n_temperatures)
        record = ThermalRecord(make_ladder(path, betas, n_chains, generator), workers)
        reached = record.run_until(tol, max_rounds)
    return record.estimate(tol, reached)


def draw(path, betas, n_samples, n_steps, generator, workers, is_shown):
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
    is_shown : bool
        Whether there is a bar of the rounds.

    Returns
    -------
    codes : ndarray of int of shape (n_samples, d)
    is_broken : bool
        Whether neighbours somewhere hardly exchange states.
    """
    n_chains = min(n_samples, MAX_CHAINS)
    ladder = make_ladder(path, betas, n_chains, generator)
    n_draws, interval = -(-n_samples // n_chains), -(-n_steps // len(betas))
    rounds = [max(interval, int(WARM_UP * n_steps))] + [interval] * (n_draws - 1)
    found = []
    with progress_bar("rounds of chains", sum(rounds), is_shown) as bar:
        for n_rounds in rounds:
            for _ in range(n_rounds):
                ladder.round(workers)
                bar.update()
            found.append(ladder.rungs[-1].chains.codes.copy())
    return np.concatenate(found)[:n_samples], ladder.is_broken()
