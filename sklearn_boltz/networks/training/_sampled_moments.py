"""Moments of a network by samples: its terms, the chains that follow it, and what they say."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from sklearn_boltz.networks.sampling._tempering import Path, Rung, connected_ladder, refine
from sklearn_boltz.networks.training._likelihood import Further
from sklearn_boltz.numerics._random import spins_of_sampler
from sklearn_boltz.partition._ladder import Ladder
from sklearn_boltz.partition._ladder_record import mean_and_error, ratios_by_chain

# Chains of a temperature, in groups whose differences tell the error of a moment.
N_CHAINS, N_GROUPS = 200, 20
# Rounds of the ladder whose states tell the moments of the first model; before them, a share that
# is not used.
FIRST_ROUNDS, WARM_UP = 64, 0.25
# Sweeps of the chains that look for other modes.
N_EXPLORING = 50
# Rounds of a block, whose ratios of constants are found together. The chains of all temperatures
# take part in one of this many rounds, and those of the model, which are few of them, in each.
BLOCK, EVERY = 32, 4
# Rounds that are not used, at most: there are more than their share until only this share of the
# states at the top is left.
MAX_WARM_UP, LEFT = 2**10, 0.1
# States that are kept for the covariances, in float32 numbers.
KEPT_NUMBERS = 2**22
# Iterations of the mean field for a bound.
N_FIELD = 20


class Statistics:
    """The terms of a pairwise network, (x_j - μ_j) and (x_j - μ_j)(x_k - μ_k), and further ones.

    With the means μ of the data taken off, terms of one and of two columns hardly go together,
    which makes moments less noisy and steps longer. θ are the parameters of these terms.

    Parameters
    ----------
    problem : PseudoLikelihood or StreamedPseudoLikelihood
        Of complete rows.
    further : Further, default=None
        Of a problem that is not streamed. None for pairs only.

    Attributes
    ----------
    moments, variances : ndarray of shape (n_parameters,)
        Means of the terms over the rows, and their variances.
    mean : ndarray of shape (d,)
        μ.
    """

    def __init__(self, problem, further=None):
        d = len(problem.means)
        self.further, self.upper = further or Further(d), np.triu_indices(d, 1)
        self.total, products, sums = self.further.sums(problem)
        self.alpha, self.mean = problem.penalty / self.total, problem.means / self.total
        means = np.outer(self.mean, self.mean)
        covariance = products / self.total - means
        # (x - μ)² = 1 - μ² - 2 μ (x - μ), as x² = 1.
        alone = 1 - self.mean**2
        both = np.outer(alone, alone) + 4 * means * covariance - covariance**2
        pairs, sums = self.pack(np.zeros_like(self.mean), covariance), sums / self.total
        self.n_pairs, self.moments = len(pairs), np.append(pairs, sums)
        n_terms, self.ridge = len(self.further.terms), np.zeros(len(self.moments))
        self.ridge[d : self.n_pairs + n_terms] = self.alpha
        squares = np.append(np.ones(n_terms), sums[n_terms:])
        self.variances = np.append(self.pack(alone, both), squares - sums**2)

    def pack(self, single, pair):
        """One vector, from numbers of columns and of pairs."""
        return np.concatenate([single, pair[self.upper]])

    def theta(self, coupling, intercept):
        """θ of a pairwise network."""
        pairs = self.pack(intercept + coupling @ self.mean, coupling)
        return np.append(pairs, np.zeros(len(self.further)))

    def parameters(self, theta):
        """Couplings and intercepts of θ."""
        d = len(self.mean)
        coupling = np.zeros((d, d))
        coupling[self.upper] = theta[d : self.n_pairs]
        coupling += coupling.T
        return coupling, theta[:d] - coupling @ self.mean

    def model(self, theta):
        """The distribution."""
        return self.further.model(*self.parameters(theta), theta[self.n_pairs :])

    def _of_further(self, states):
        """The further terms of states with the means taken off."""
        return self.further.values(np.sign(states + self.mean.astype(states.dtype)))

    def log_weights(self, theta, states):
        """Σ θ·terms of states with the means taken off, up to a number that depends on θ."""
        d = len(self.mean)
        half = np.zeros((d, d), dtype=states.dtype)
        half[self.upper] = theta[d : self.n_pairs]
        own = states @ half + theta[:d].astype(states.dtype)
        sums = np.einsum("ij,ij->i", own, states, dtype=np.float64)
        return sums + self._of_further(states) @ theta[self.n_pairs :] if self.further else sums

    def covariances_with(self, values, states):
        """Covariances of the terms with a number of each state."""
        centred = values - values.mean()
        scaled = centred.astype(states.dtype) / len(values)
        weighted = states * scaled[:, np.newaxis]
        pairs = self.pack(weighted.sum(axis=0), weighted.T @ states).astype(np.float64)
        if not self.further:
            return pairs
        return np.append(pairs, centred / len(values) @ self._of_further(states))

    def of_independent(self, means):
        """Means of the terms where columns are independent, with means of -1 and 1 if `further`."""
        centred = means - self.mean
        pairs = self.pack(centred, np.outer(centred, centred))
        return np.append(pairs, self._of_further(centred[np.newaxis])[0]) if self.further else pairs

    def sums(self, states, conditional):
        """Sums of the terms over each group of states, (n_groups, n_parameters).

        By conditional means: E[x_j x_k] = E[x_j E(x_k | others)] has less noise.
        """
        pair = states.transpose(0, 2, 1) @ conditional
        pair = (pair + pair.transpose(0, 2, 1)) / 2
        single = conditional.sum(axis=1)
        sums = np.array([self.pack(*sums) for sums in zip(single, pair, strict=True)], np.float64)
        if not self.further:
            return sums
        return np.hstack([sums, self._of_further(states).sum(axis=1, dtype=np.float64)])

    def square_of_sum(self):
        """Mean of (Σ x_j)²."""
        covariances = self.moments[len(self.mean) : self.n_pairs]
        return (1 - self.mean**2).sum() + self.mean.sum() ** 2 + 2 * covariances.sum()

    def penalty(self, theta):
        """½ α (Σ m_jk² + Σ θ_t²)."""
        return np.vdot(self.ridge * theta, theta) / 2

    def log_likelihood(self, theta, log_partition):
        """The mean of the rows, less the penalty."""
        coupling, intercept = self.parameters(theta)
        at_mean = (intercept + coupling @ self.mean / 2) @ self.mean
        return at_mean + theta @ self.moments - log_partition - self.penalty(theta)

    def name(self, place, label):
        """Name of a term in messages."""
        d = len(self.mean)
        if place < d:
            return f"the mean of {label(place)}"
        if place < self.n_pairs:
            j, k = (label(places[place - d]) for places in self.upper)
            return f"the covariance of {j} and {k}"
        place -= self.n_pairs
        if place < len(self.further.terms):
            return f"the product of {', '.join(map(label, self.further.terms[place]))}"
        return f"P(K = {self.further.counts[place - len(self.further.terms)]})"


class Visit(NamedTuple):
    """A model where the search was, and what chains say about it.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,)
    expected, errors : ndarray of shape (n_parameters,)
        Moments of the model, and their standard errors.
    states : ndarray of float32 of shape (N_GROUPS, n, d)
        Some states, with the means of the data taken off.
    n_rounds : int
        How many rounds count.
    log_likelihood, error : float
        The mean of the rows, and its standard error. NaN of a user's sampler.
    ladder : Ladder or None
        The chains; None of a user's sampler.
    """

    theta: np.ndarray
    expected: np.ndarray
    errors: np.ndarray
    states: np.ndarray
    n_rounds: int
    log_likelihood: float = np.nan
    error: float = np.nan
    ladder: Ladder | None = None

    @classmethod
    def of_groups(cls, theta, groups, *rest):
        """From the moments of groups of states, (N_GROUPS, n_parameters)."""
        errors = groups.std(axis=0, ddof=1) / np.sqrt(N_GROUPS)
        return cls(theta, groups.mean(axis=0), errors, *rest)


class Bound(NamedTuple):
    """A bound of the log-likelihood by a distribution q of the states: ln Z ≥ E_q[w] + H(q).

    Attributes
    ----------
    statistics : Statistics
    slope : ndarray of shape (n_parameters,)
        Moments of the data less those of q.
    entropy : float
        H(q).
    """

    statistics: Statistics
    slope: np.ndarray
    entropy: float

    @classmethod
    def of_path(cls, statistics, path):
        """The lowest for a model, of those by independent columns near the states that were found.

        It is that of mean fields, or of single states where there is more than pairs.
        """
        model, means = path.model, 2.0 * path.found - 1
        if statistics.further:
            values, entropy = model.chains(path.found, 0).log_weight(model.intercept), 0 * means
        else:
            for _ in range(N_FIELD):
                means += np.tanh(model.intercept + means @ model.coupling)
                means /= 2
            values = ((means @ model.coupling / 2 + model.intercept) * means).sum(axis=1)
            entropy = entr((1 + means) / 2) + entr((1 - means) / 2)
        entropy = entropy.sum(axis=1)
        best = int((values + entropy).argmax())
        slope = statistics.moments - statistics.of_independent(means[best])
        return cls(statistics, slope, float(entropy[best]))

    def at(self, theta):
        """Upper bound of the log-likelihood of a model."""
        return theta @ self.slope - self.entropy - self.statistics.penalty(theta)


class Sampler:
    """Tempered chains that follow a model as its parameters change.

    A mode may appear where no chain that began at the data comes. So other chains look for modes of
    each model. Where they find several for the first time, there is a new ladder, whose first rung
    prefers none of them.

    Parameters
    ----------
    statistics : Statistics
    base : ndarray of shape (d,)
        Intercepts of independent columns with the rates of the data.
    generator : Generator
    workers : Workers
    """

    def __init__(self, statistics, base, generator, workers):
        self.statistics, self.base = statistics, np.ascontiguousarray(base)
        self.generator, self.workers = generator, workers

    def explore(self, theta):
        """The path to a model, with states that chains of it find."""
        model = self.statistics.model(theta)
        return Path.from_model(model, self.base, self.generator, N_EXPLORING)

    def visit(self, theta, n_rounds, path, ladder=None):
        """The moments of a model, by the chains of a ladder or by new ones.

        Some rounds before do not count.
        """
        ladder = self._ladder(path, ladder)
        n_rounds = self._warm_up(ladder, n_rounds)
        groups, kept, log_z = 0.0, [], []
        n_blocks = n_rounds // BLOCK
        every = -(-n_rounds * N_CHAINS * len(self.base) // KEPT_NUMBERS)
        for _ in range(n_blocks):
            states, conditional, ratios = self._rounds(ladder)
            groups = groups + self.statistics.sums(states, conditional)
            kept.append(states[:, ::every])
            log_z.append(ladder.first_log_partition + ratios.sum(axis=0))
        groups *= N_GROUPS / (n_rounds * N_CHAINS)
        log_z, error = mean_and_error(np.mean(log_z, axis=0))
        value = self.statistics.log_likelihood(theta, log_z)
        states = np.concatenate(kept, axis=1)
        return Visit.of_groups(theta, groups, states, n_rounds, value, error, ladder)

    def _ladder(self, path, ladder):
        """The chains of a ladder, as they go on, or a new one where modes appear."""
        before = ladder and ladder.rungs[0].path
        if before and (before.has_modes or not path.has_modes):
            return self._moved(ladder, Path(path.model, before.base, path.found, before.has_modes))
        return connected_ladder(path, (0.0, 1.0), N_CHAINS, [1.0], self.generator, self.workers)

    def _moved(self, ladder, path):
        """A copy of a ladder with the states of its chains, for another model."""
        ladder, model = deepcopy(ladder), path.model
        ladder.rungs = [
            Rung(path, rung.beta, model.chains(rung.chains.codes, 0)) for rung in ladder.rungs
        ]
        for _ in range(FIRST_ROUNDS // 4):
            ladder.round(self.workers)
        refine(ladder, {1.0})
        return ladder

    def _warm_up(self, ladder, n_rounds):
        """Make rounds until few states at the top are left; -> how many rounds should count.

        If it takes long until states of the first rung come to the top, so it does until modes have
        their shares.
        """
        for origins in ladder.origins:
            origins[:] = 0
        for n in range(MAX_WARM_UP):
            ladder.arrivals()
            if n >= WARM_UP * n_rounds and ladder.n_left() <= LEFT * N_CHAINS:
                break
            ladder.round(self.workers)
        return max(n_rounds, -(-n * EVERY // BLOCK) * BLOCK)

    def _rounds(self, ladder):
        """A block of rounds.

        Returns
        -------
        states, conditional : ndarray of float32 of shape (N_GROUPS, n, d)
            Both after each round, less the means of the data.
        ratios : ndarray of shape (n_pairs, N_CHAINS)
            As of `ratios_by_chain`.
        """
        model, d = ladder.rungs[-1].path.model, len(self.base)
        states, conditional = np.empty((2, BLOCK, N_CHAINS, d), dtype=np.float32)
        sides = [[] for _ in ladder.pairs]
        for t in range(BLOCK):
            if t % EVERY:
                ladder.move(len(ladder) - 1, 1, self.workers)
            else:
                for i, differences in ladder.round(self.workers).items():
                    sides[i].append(differences)
            chains = ladder.rungs[-1].chains
            states[t], conditional[t] = chains.spins, chains.means(model.intercept)
        mean = self.statistics.mean.astype(np.float32)
        groups = (
            (a - mean).reshape(BLOCK, N_GROUPS, -1, d).swapaxes(0, 1).reshape(N_GROUPS, -1, d)
            for a in (states, conditional)
        )
        ratios = [ratios_by_chain(*np.swapaxes(rounds, 0, 1)[:, np.newaxis])[0] for rounds in sides]
        return *groups, np.array(ratios)


class UsersSampler:
    """A user's sampler in place of chains: one state of each group in a round.

    Parameters
    ----------
    draw : callable
        As of `spins_of_sampler`.
    statistics : Statistics
    generator : Generator
    """

    def __init__(self, draw, statistics, generator):
        self.draw, self.statistics, self.generator = draw, statistics, generator

    def explore(self, theta):
        """Nothing: the sampler may be costly."""

    def visit(self, theta, n_rounds, path=None, ladder=None):
        """The moments of a model."""
        model, n = self.statistics.model(theta), n_rounds * N_GROUPS
        spins = spins_of_sampler(self.draw, model.coupling, model.intercept, n, self.generator)
        states = (spins - self.statistics.mean).astype(np.float32)
        states = states.reshape(N_GROUPS, n_rounds, -1)
        groups = self.statistics.sums(states, states) / n_rounds
        return Visit.of_groups(theta, groups, states, n_rounds)
