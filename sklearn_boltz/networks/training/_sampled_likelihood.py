"""Maximum likelihood of a network that is too large for a table of its states.

Tempered chains, or a user's sampler, estimate the moments of the model, and Newton's method
corrects the parameters until these are the moments of the data. The chains go on from one model to
the next. A step is kept if the likelihood rises, as estimated from the states of the new model;
else it is tried again with more damping, as by Levenberg and Marquardt.
"""

from copy import copy, deepcopy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._sampling import strange_columns
from sklearn_boltz.networks.sampling._tempering import Path, Rung, refine
from sklearn_boltz.networks.training._likelihood import Further
from sklearn_boltz.networks.training._solvers import Monitor
from sklearn_boltz.numerics._random import Stream, spins_of_sampler
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._estimates import estimate_from_weights
from sklearn_boltz.partition._ladder import Exchanges, Ladder, bennett

# Chains of a temperature, in groups whose differences tell the error of a moment.
N_CHAINS, N_GROUPS = 200, 20
# Rounds of the ladder whose states tell the moments: of the first model, and at most; then moments
# are averaged over visits. Before the rounds, a share that is not used.
FIRST_ROUNDS, MAX_ROUNDS, WARM_UP = 64, 2**11, 0.25
# States that are kept for the covariances, in float32 numbers.
KEPT_NUMBERS = 2**22
# The rounds are doubled where the squared differences are no more than this many times their noise.
NOISY = 2.0
# The penalty of the pseudo-likelihood whose maximum is the initial model; it is raised so often
# by the factor while the rates of the columns are not those of the data.
FIRST_ALPHA, ALPHA_FACTOR, N_ALPHAS = 0.2, 5.0, 4
# Its fit ends when an iteration gains less than this many nats a row, or after this many.
ROUGH, MAX_FIRST_ITER = 1e-5, 500
# Damping: a ridge on the squares of all parameters, per row. A step is kept if the states of both
# models could be exchanged with this probability; above the second one, damping is halved.
FIRST_RIDGE, LEAST_OVERLAP, GOOD_OVERLAP = 0.1, 0.6, 0.8
# A loss of this share of what the noise of the data costs, half a nat a parameter, is no reason to
# go back.
SMALL_LOSS = 0.01
# Iterations of conjugate gradients for a step, and how exact it is.
MAX_CG, CG_TOL = 50, 0.05


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

    def penalty(self, theta):
        """½ α (Σ m_jk² + Σ θ_t²)."""
        return np.vdot(self.ridge * theta, theta) / 2

    def log_likelihood(self, theta, log_partition):
        """The mean of the rows, less the penalty."""
        coupling, intercept = self.parameters(theta)
        at_mean = (intercept + coupling @ self.mean / 2) @ self.mean
        return at_mean + theta @ self.moments - log_partition - self.penalty(theta)

    def name(self, place, label):
        """What a message calls a term."""
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
    states : ndarray of float32 of shape (n, d)
        Some states, with the means of the data taken off.
    ladder : Ladder or None
        The chains; None of a user's sampler.
    """

    theta: np.ndarray
    expected: np.ndarray
    errors: np.ndarray
    states: np.ndarray
    ladder: Ladder | None = None

    @classmethod
    def of_groups(cls, theta, groups, *rest):
        """From the moments of groups of states, (N_GROUPS, n_parameters)."""
        errors = groups.std(axis=0, ddof=1) / np.sqrt(N_GROUPS)
        return cls(theta, groups.mean(axis=0), errors, *rest)


class Sampler:
    """Tempered chains that follow a model as its parameters change.

    Parameters
    ----------
    statistics : Statistics
    base : ndarray of shape (d,)
        Intercepts of the independent columns that the highest temperature has.
    generator : Generator
    workers : Workers
    """

    def __init__(self, statistics, base, generator, workers):
        self.statistics, self.base = statistics, np.ascontiguousarray(base)
        self.workers = workers
        model = SpinModel(np.zeros((len(base), len(base))), self.base)
        path = Path(model, self.base, None)
        rungs = [Rung(path, beta, path.independent(N_CHAINS, generator)) for beta in (0.0, 1.0)]
        self.first = Ladder(rungs, path.log_partition(), Stream.from_generator(generator))
        self.first.pairs = [Exchanges()]

    def visit(self, theta, n_rounds, ladder=None):
        """Move the chains of a ladder to a model, or the first ones; -> its moments.

        Some rounds before do not count.
        """
        path = Path(self.statistics.model(theta), self.base, None)
        ladder = deepcopy(self.first if ladder is None else ladder)
        ladder.rungs = [
            Rung(path, rung.beta, path.model.chains(rung.chains.codes, 0)) for rung in ladder.rungs
        ]
        for _ in range(max(FIRST_ROUNDS // 4, int(WARM_UP * n_rounds))):
            ladder.round(self.workers)
        refine(ladder, {1.0})
        n_blocks = -(-n_rounds * N_CHAINS * len(self.base) // KEPT_NUMBERS)
        groups, kept = 0.0, []
        for block in np.array_split(np.arange(n_rounds), min(n_blocks, n_rounds)):
            states, conditional = self._rounds(ladder, len(block))
            groups = groups + self.statistics.sums(states, conditional)
            kept.append(states.reshape(-1, len(self.base))[::n_blocks])
        groups *= N_GROUPS / (n_rounds * N_CHAINS)
        return Visit.of_groups(theta, groups, np.concatenate(kept), ladder)

    def _rounds(self, ladder, n_rounds):
        """States and conditional means after each round less the means of the data, by group."""
        d, intercept = len(self.base), ladder.rungs[-1].path.model.intercept
        states, conditional = np.empty((2, n_rounds, N_CHAINS, d), dtype=np.float32)
        for t in range(n_rounds):
            ladder.round(self.workers)
            chains = ladder.rungs[-1].chains
            states[t] = chains.spins
            conditional[t] = chains.means(intercept)
        mean = self.statistics.mean.astype(np.float32)
        return (
            (a - mean).reshape(n_rounds, N_GROUPS, -1, d).swapaxes(0, 1).reshape(N_GROUPS, -1, d)
            for a in (states, conditional)
        )

    def log_partition(self, ladder):
        """ln Z of the model of a ladder by Bennett's ratios of neighbouring temperatures."""
        found = {}
        for _ in range(4 * FIRST_ROUNDS):
            for i, pair in ladder.round(self.workers).items():
                found.setdefault(i, []).append(pair)
        ratios = [bennett(*np.concatenate(pairs, axis=1))[0] for pairs in found.values()]
        return ladder.first_log_partition + float(np.sum(ratios))


def visit_by(draw, statistics, generator, theta, n_rounds, ladder=None):
    """Draw states of a model by a user's sampler, one of each group in a round; -> its moments.

    `draw` is as of `spins_of_sampler`.
    """
    model, n = statistics.model(theta), n_rounds * N_GROUPS
    spins = spins_of_sampler(draw, model.coupling, model.intercept, n, generator)
    states = (spins - statistics.mean).astype(np.float32)
    groups = states.reshape(N_GROUPS, n_rounds, -1)
    return Visit.of_groups(theta, statistics.sums(groups, groups) / n_rounds, states)


class Search:
    """Newton's method by samples.

    Parameters
    ----------
    statistics : Statistics
    visit : callable
        `Sampler.visit`, or like it.
    first : Visit
    log_partition : float
        ln Z of the first model.
    tolerance : float
        The search ends where no moment differs from that of the data by more standard errors of
        the latter.

    Attributes
    ----------
    here : Visit
    log_likelihood : float
        The mean of the rows less the penalty.
    """

    def __init__(self, statistics, visit, first, log_partition, tolerance):
        self.statistics, self.visit, self.tolerance = statistics, visit, tolerance
        self.here, self.n_rounds, self.ridge = first, FIRST_ROUNDS, FIRST_RIDGE
        self._visits = []  # those of the most rounds
        self.log_likelihood = statistics.log_likelihood(first.theta, log_partition)
        # A moment that is the same in all rows is known to about one row.
        variances = np.maximum(statistics.variances, 1 / statistics.total)
        self._errors = np.sqrt(variances / statistics.total)

    def gradient(self):
        """Moments of the data less those of the model, less the slope of the penalty."""
        statistics, here = self.statistics, self.here
        difference = statistics.moments - here.expected
        return difference - statistics.ridge * here.theta

    def differences(self):
        """The gradient in standard errors of the moments of the data."""
        return self.gradient() / self._errors

    def step(self):
        """Try a step, and keep it if the likelihood rises."""
        noise = self.here.errors / self._errors
        is_noisy = np.mean(self.differences() ** 2) < NOISY * np.mean(noise**2)
        if is_noisy and self.n_rounds < MAX_ROUNDS:
            self.n_rounds *= 2
        direction = newton_direction(self.statistics, self.here, self.gradient(), self.ridge)
        there = self.visit(self.here.theta + direction, self.n_rounds, self.here.ladder)
        rise, error, overlap = compare(self.statistics, self.here, there)
        loss = max(2 * error, SMALL_LOSS * len(direction) / (2 * self.statistics.total))
        if overlap >= LEAST_OVERLAP and rise >= -loss:
            self._go(there)
            self.log_likelihood += rise
            if overlap > GOOD_OVERLAP:
                self.ridge /= 2
            return
        self.ridge *= 4
        if is_noisy:
            self._go(self.visit(self.here.theta, self.n_rounds, self.here.ladder))

    def _go(self, visit):
        """Go to a model; once the rounds are the most, to the mean of the later half of them."""
        self.here = visit
        if self.n_rounds == MAX_ROUNDS:
            self._visits.append(visit)
            self.here = averaged(self._visits[len(self._visits) // 2 :])


def averaged(visits):
    """The mean of several models, whose moments are to first order the means of theirs."""
    errors = np.sqrt(np.mean([visit.errors**2 for visit in visits], axis=0) / len(visits))
    expected = np.mean([visit.expected for visit in visits], axis=0)
    theta = np.mean([visit.theta for visit in visits], axis=0)
    return visits[-1]._replace(theta=theta, expected=expected, errors=errors)


def newton_direction(statistics, visit, gradient, ridge):
    """The step of Newton's method, damped.

    The covariances of the terms are those of the states, with which they are multiplied without a
    matrix. As far as the states are too few to tell them, the variances are raised.
    """
    states = visit.states
    damping = ridge + statistics.ridge + len(gradient) / len(states) * statistics.variances

    def product(direction):
        values = statistics.log_weights(direction, states)
        return statistics.covariances_with(values, states) + damping * direction

    shape = len(gradient), len(gradient)
    scale = 1 / (damping + statistics.variances)
    return cg(
        LinearOperator(shape, matvec=product, dtype=np.float64),
        gradient,
        rtol=CG_TOL,
        maxiter=MAX_CG,
        M=LinearOperator(shape, matvec=lambda r: scale * r, dtype=np.float64),
    )[0]


def compare(statistics, here, there):
    """By how much the log-likelihood of a row rises, its standard error, and the overlap.

    The overlap is the mean probability with which states of both would be exchanged.
    """
    step = there.theta - here.theta
    n = min(len(here.states), len(there.states))
    forward = statistics.log_weights(step, here.states[:n])
    backward = -statistics.log_weights(step, there.states[:n])
    # By the states of the new model alone: those of the old one, whose noise the step follows,
    # would make a step seem to rise too much.
    ratio = estimate_from_weights("raise", backward, -1, None)
    rise = step @ statistics.moments - ratio.value
    rise -= statistics.penalty(there.theta) - statistics.penalty(here.theta)
    overlap = np.exp(np.minimum(forward + backward, 0)).mean()
    return float(rise), ratio.std_err, float(overlap)


def first_visit(problem, solve, statistics, sampler):
    """The initial model: a maximum of the penalised pseudo-likelihood that resembles the data.

    Where the penalty is small, such a model may have mass far from the data. If a large one does
    not help, the initial columns are independent.
    """
    d, problem, expected = len(statistics.mean), copy(problem), (1 + statistics.mean) / 2
    independent = np.zeros((d, d)), sampler.base
    point = problem.at(problem.pack(*independent))
    for k in range(N_ALPHAS):
        problem.set_alpha(max(statistics.alpha, FIRST_ALPHA * ALPHA_FACTOR**k))
        monitor = Monitor(ROUGH * problem.total, MAX_FIRST_ITER)
        point, _ = solve(problem, point, monitor)
        visit = sampler.visit(statistics.theta(*problem.unpack(point.theta)), FIRST_ROUNDS)
        rates = expected + visit.expected[:d] / 2
        if not len(strange_columns(rates, expected, N_CHAINS)):
            return visit
    return sampler.visit(statistics.theta(*independent), FIRST_ROUNDS)


def maximise_by_sampling(task, initial, generator, further, draw, monitor):
    """Find the model with the moments of the data; -> what a user should know about the end.

    Parameters
    ----------
    task : Task
        Of complete rows.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    generator : Generator
    further : Further or None
        Of all columns that vary; None for pairs only.
    draw : callable or None
        A user's sampler, as of `spins_of_sampler`; None for chains.
    monitor : Monitor
        With the tolerance of `Search`.
    """
    statistics, problem = Statistics(task.problem, further), task.problem
    monitor.status = "max_iter"
    with Workers() as workers:
        sampler = Sampler(statistics, task.base[task.varying], generator, workers)
        if initial[0] is None and initial[1] is None:
            first = first_visit(problem, task.method("newton").run, statistics, sampler)
        else:
            theta = statistics.theta(*problem.unpack(task.initial(*initial)))
            first = sampler.visit(theta, FIRST_ROUNDS)
        log_partition, visit = sampler.log_partition(first.ladder), sampler.visit
        if draw is not None:
            visit = partial(visit_by, draw, statistics, generator)
            first = visit(first.theta, FIRST_ROUNDS)
        search = Search(statistics, visit, first, log_partition, monitor.tol)
        while monitor.status == "max_iter" and len(monitor.values) < monitor.max_iter:
            search.step()
            _record(monitor, search)
            if monitor.stop():
                monitor.status = "asked"
            elif np.abs(search.differences()).max() <= search.tolerance:
                monitor.status = "converged"
    return _message(task, search, monitor)


def _record(monitor, search):
    """Record an iteration: the likelihood, and the largest difference of moments."""
    value, largest = search.log_likelihood, np.abs(search.differences()).max()
    line = (
        f"iteration {len(monitor.values) + 1}: log-likelihood {value:.4f} a row, "
        f"largest difference {largest:.2f} standard errors"
    )
    model = search.statistics.model(search.here.theta)
    monitor.add(value, model, line, largest_difference=largest)


def _message(task, search, monitor):
    """What a user should know about the end, or None."""
    reason = task.no_maximum()
    if reason is not None or monitor.status != "max_iter":
        return reason
    differences = search.differences()
    worst = int(np.abs(differences).argmax())
    moment = search.statistics.name(worst, task.named)
    return (
        f"The fit ended at max_iter={monitor.n_kept}, while {moment} still differs from that of "
        f"the model by {abs(differences[worst]):.2g} of its standard errors in the data, more than "
        f"moment_tol={search.tolerance:g}. Raise max_iter or moment_tol, or draw the couplings "
        "nearer to 0 by a larger alpha."
    )
