"""Physics of networks, and of Markov chains."""

from numbers import Integral, Real

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import Bunch, check_array
from sklearn.utils._param_validation import Interval

from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.sampling._figures import (
    MAX_ROUNDS,
    TOL,
    descend,
    distinct_minima,
    thermal_figures,
)
from sklearn_boltz.networks.sampling._tempering import N_CHAINS
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.statistics._arguments import of_network

# The window of an autocorrelation time, and the least length of a chain, in units of that time.
WINDOW, LEAST_LENGTH = 5, 50
# Log-probabilities that differ by less do not differ.
FLAT = 1e-12
# Pairs of spins, of all chains together, whose bonds are drawn at once.
MAX_BONDS = 2**22


@of_network(
    {
        "temperatures": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "n_chains": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }
)
def thermodynamics(
    network,
    temperatures=1.0,
    *,
    n_chains=N_CHAINS,
    tol=TOL,
    max_rounds=MAX_ROUNDS,
    random_state=None,
):
    """Return ln Z, energy, entropy and specific heat at some temperatures.

    The model at temperature T is P(x)^(1/T) / Z_T, with the energy of its method `energy`.
    Boltzmann's constant is 1. The results are exact up to 2**26 joint states of connected
    variables. Beyond that, all are means over one ladder: Gibbs chains that exchange states, at
    these temperatures and at others between them, up to an infinite one.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    temperatures : float or array-like of float, default=1.0
        T > 0.
    n_chains : int, default=100
        Number of chains at each temperature.
    tol : float, default=0.05
        The ladder ends when the standard errors of ln Z and of the entropy, in nats, are at
        most this at all temperatures.
    max_rounds : int, default=5000
        Maximum number of rounds of the ladder. A round is a sweep at every temperature, and
        exchanges.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.

    Returns
    -------
    figures : Bunch
        Arrays with an entry for each temperature: `temperature`; `log_partition`,
        ln Σ_x exp(-E(x)/T); `energy`, the mean U of E; `entropy`, S = ln Z + U/T, in nats; and
        `specific_heat`, C = Var(E)/T², of the whole model. `std_err` is a Bunch of the
        standard errors of these four, 0 where they are exact. `method` is ``"exact"`` or
        ``"ladder"``. `trusted` and `verdict` say whether an estimate can be trusted, and why.

    Warns
    -----
    UserWarning
        If an estimate is not to be trusted.

    Notes
    -----
    The standard errors are those of the mean of `n_chains` independent simulations. They do
    not include modes that no chain has found.

    References
    ----------
    M. E. J. Newman and G. T. Barkema, "Monte Carlo Methods in Statistical Physics",
    Oxford University Press, 1999, sections 1.2 (fluctuations) and 6.4 (parallel tempering).

    Examples
    --------
    The model is a chain of 20 spins. Its entropy rises from ln 2, that of its two ground
    states.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> steps = rng.choice([-1, 1], size=(500, 20), p=[0.1, 0.9])
    >>> model = FVBMPseudoLikelihood(alpha=0.1).fit(np.cumprod(steps, axis=1))
    >>> figures = statistics.thermodynamics(model, [0.1, 1, 10])
    >>> bool((np.diff(figures.entropy) > 0).all())
    True
    >>> figures.method
    'exact'
    """
    generator = make_generator(random_state)
    return thermal_figures(network._model(), temperatures, generator, n_chains, tol, max_rounds)


@of_network(
    {
        "X": ["array-like", None],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }
)
def local_minima(network, X=None, *, n_starts=1000, random_state=None):
    """Return local minima of the energy, and the basin that each row belongs to.

    Starting at each row, the cell whose change lowers the energy most is changed. This is
    repeated until no change of a single cell lowers the energy. The rows that end at the same
    minimum are its basin.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    X : array-like of shape (n_samples, n_features), default=None
        The rows to start from, without missing cells. None starts from random states, all
        equally likely.
    n_starts : int, default=1000
        Number of random states, without `X`.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness, without `X`.

    Returns
    -------
    minima : Bunch
        `states`, the distinct minima, the lowest energy first, as a table like the training data;
        `energy` of each, as returned by the method `energy`; `count`, how many rows arrived at
        each; and `basin`, of shape (n_samples,), the number of the minimum of each row.

    References
    ----------
    G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
    Neurons", PLoS Computational Biology 10(1), e1003408, 2014.
    https://doi.org/10.1371/journal.pcbi.1003408

    Examples
    --------
    The rows are copies of two patterns of five columns, with a tenth of the cells changed.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> patterns = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
    >>> kind = rng.choice(2, size=500, p=[0.6, 0.4])
    >>> X = np.where(rng.random((500, 5)) < 0.1, 1 - patterns[kind], patterns[kind])
    >>> minima = statistics.local_minima(FVBMPseudoLikelihood(alpha=0.01).fit(X), X)
    >>> minima.states[:2]
    array([[1, 1, 1, 0, 0],
           [0, 0, 1, 1, 1]])
    >>> bool((minima.basin == kind).mean() > 0.9)
    True
    """
    model = network._model()
    if X is None:
        nothing = np.full((n_starts, network.n_features_in_), -1)
        uniform = np.zeros_like(model.intercept)
        codes = model.fill(uniform, nothing, make_generator(random_state))
    else:
        codes = network._complete_codes(X)
    states, log_weight, basin = distinct_minima(model, descend(model, codes))
    return Bunch(
        states=network._encoder.decode(network._encoder.coding.decode(states)),
        energy=-log_weight,
        count=np.bincount(basin, minlength=len(states)),
        basin=basin,
    )


def swendsen_wang(J, h, n_samples, rng, *, n_sweeps=100):
    """Draw spins by cluster moves, which stay fast where a ferromagnet becomes critical.

    It can be the `sampler` of :class:`~sklearn_boltz.MaximumEntropy` and of the method `sample` of
    networks.

    Parameters
    ----------
    J : ndarray of shape (n_spins, n_spins)
        The couplings, symmetric with a zero diagonal: p(s) ∝ exp(½ s·Js + h·s).
    h : ndarray of shape (n_spins,)
        The fields.
    n_samples : int
        Number of samples, each of which is the end of a chain of its own.
    rng : Generator
        The source of randomness.
    n_sweeps : int, default=100
        Number of sweeps of each chain, which begins at random spins.

    Returns
    -------
    spins : ndarray of int8 of shape (n_samples, n_spins)
        -1 and 1.

    Notes
    -----
    A sweep connects spins whose product has the sign of their coupling J with probability
    1 - exp(-2 abs(J)), and flips each cluster of connected spins with probability ½ [1]_. A field
    is a coupling to one more spin. On a periodic 16 x 16 lattice at the critical temperature, the
    `autocorrelation_time` of the energy is 7 sweeps, and 500 samples take 1/20 of the time of
    `sample` without a sampler. Where no state agrees with all couplings, as in a spin glass, a
    cluster may have nearly all spins, and chains are slow.

    References
    ----------
    .. [1] R. H. Swendsen and J.-S. Wang, "Nonuniversal critical dynamics in Monte Carlo
       simulations", Physical Review Letters 58, 86–88, 1987.
       https://doi.org/10.1103/PhysRevLett.58.86

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.statistics import swendsen_wang
    >>> network = FVBMPseudoLikelihood.from_couplings([[0, 1], [1, 0]])
    >>> X = network.sample(1000, random_state=0, sampler=swendsen_wang)
    >>> bool(abs((X[:, 0] * X[:, 1]).mean() - np.tanh(1)) < 0.1)
    True
    """
    d = len(h)
    coupling = np.block([[np.triu(J), np.reshape(h, (d, 1))], [np.zeros((1, d + 1))]])
    j, k = coupling.nonzero()
    n_blocks = -(-n_samples * max(len(j), 1) // MAX_BONDS)
    found, signs = [], np.array([-1, 1], dtype=np.int8)
    for block in np.array_split(np.empty(n_samples), n_blocks):
        s = rng.choice(signs, (len(block), d + 1))
        first = (d + 1) * np.arange(len(block))[:, np.newaxis]
        for _ in range(n_sweeps):
            strength = np.maximum(s[:, j] * s[:, k] * coupling[j, k], 0)
            connected = rng.random(strength.shape) < -np.expm1(-2 * strength)
            ends = (first + j)[connected], (first + k)[connected]
            graph = coo_array((np.ones(len(ends[0]), bool), ends), shape=(s.size, s.size))
            n_clusters, cluster = connected_components(graph, directed=False)
            s *= rng.choice(signs, n_clusters)[cluster].reshape(s.shape)
        found.append(s[:, :d] * s[:, d:])
    return np.concatenate(found)


@of_network({"X": ["array-like"]})
def estimate_inverse_temperature(network, X):
    """Estimate the inverse temperature at which rows of a network have been drawn.

    Rows of P(x)^β / Z_β have the inverse temperature β. That of an annealer is not known
    beforehand.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    X : array-like of shape (n_samples, n_features)
        The rows that were drawn, at least two, without missing cells.

    Returns
    -------
    beta : float
        The maximum of the pseudo-likelihood in β [1]_. It is infinite if each cell of each row has
        its most probable value given the others, and minus infinite if each has the least probable.
    std_err : float
        Its standard error if the rows are independent, and NaN where β is infinite. For states of a
        chain, multiply it by the root of their `autocorrelation_time`.

    Raises
    ------
    ValueError
        If all states have the same energy, or there is a single row.

    References
    ----------
    .. [1] J. Raymond, S. Yarkoni and E. Andriyash, "Global Warming: Temperature Estimation in
       Annealers", Frontiers in ICT 3, 23, 2016. https://doi.org/10.3389/fict.2016.00023

    Examples
    --------
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> chain = FVBMPseudoLikelihood.from_couplings([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> X = chain.sample(1000, temperature=2, random_state=0)
    >>> beta, std_err = statistics.estimate_inverse_temperature(chain, X)
    >>> bool(abs(beta - 0.5) < 3 * std_err)
    True
    """
    model, codes = network._model(), network._complete_codes(X)
    # At β, p(x_j | the others) is this to the power β, normalised.
    log_p, first = model.log_conditionals(codes), model.starts[:-1]
    own = np.take_along_axis(log_p, first + codes, axis=1)
    least, greatest = (f.reduceat(log_p, first, axis=1) for f in (np.minimum, np.maximum))
    if len(codes) < 2 or not (greatest - least > FLAT).any():
        reason = "there is a single row" if len(codes) < 2 else "all states have the same energy"
        raise ValueError(f"estimate_inverse_temperature: {reason}, which fits any temperature.")
    for values, beta in (greatest, np.inf), (least, -np.inf):
        if (own == values).all():
            return beta, np.nan

    def probabilities(beta):
        return np.exp(model.log_softmax(beta * log_p))

    def scores(beta):
        return own.sum(axis=1) - (probabilities(beta) * log_p).sum(axis=1)

    low, high = -1.0, 1.0
    while scores(low).sum() < 0:
        low *= 2
    while scores(high).sum() > 0:
        high *= 2
    beta = brentq(lambda beta: scores(beta).sum(), low, high)
    p = probabilities(beta)
    mean, square = (np.add.reduceat(p * log_p**k, first, axis=1) for k in (1, 2))
    std_err = np.sqrt(len(codes) * scores(beta).var(ddof=1)) / (square - mean**2).sum()
    return float(beta), float(std_err)


def autocorrelation_time(x):
    """Return the integrated autocorrelation time of Markov chains.

    Parameters
    ----------
    x : array-like of shape (n_steps,) or (n_chains, n_steps)
        A figure of the state, such as the energy or the magnetisation, at each step of one or more
        chains in equilibrium.

    Returns
    -------
    tau : float
        The time τ = 1 + 2 Σ_t ρ(t), in steps: the mean over N steps is as precise as that of N / τ
        independent states. Some authors call ½ τ by this name. The sum ends at the first t of at
        least 5 and 5 τ [1]_. NaN if x is constant.

    Raises
    ------
    ValueError
        If x has another shape, or numbers that are not finite.

    Warns
    -----
    UserWarning
        If a chain is shorter than 50 τ: τ may then be too low.

    See Also
    --------
    r_hat : Whether chains have forgotten where they began.

    References
    ----------
    .. [1] A. D. Sokal, "Monte Carlo Methods in Statistical Mechanics: Foundations and New
       Algorithms", in Functional Integration, NATO ASI Series 361, 131–192, 1997.
       https://doi.org/10.1007/978-1-4899-0319-8_6

    Examples
    --------
    In these autoregressive chains, τ is (1 + 0.5) / (1 - 0.5) = 3.

    >>> import numpy as np
    >>> from scipy.signal import lfilter
    >>> from sklearn_boltz.statistics import autocorrelation_time
    >>> x = lfilter([1], [1, -0.5], np.random.default_rng(0).normal(size=(8, 20_000)))
    >>> round(autocorrelation_time(x), 1)
    3.0
    """
    x = _checked_chains("autocorrelation_time", x)
    n_steps = x.shape[1]
    # Twice as long, with zeros at the end, so that a chain does not meet its own beginning.
    spectrum = np.abs(np.fft.rfft(x - x.mean(), 2 * n_steps, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum.mean(axis=0))[:n_steps]
    if not x.std():
        return np.nan
    tau = 2 * np.cumsum(covariance / covariance[0]) - 1
    ends = np.flatnonzero(np.arange(n_steps) >= WINDOW * np.maximum(tau, 1))
    found = float(tau[ends[0] if len(ends) else -1])
    if n_steps < LEAST_LENGTH * found:
        warn(
            f"autocorrelation_time: {n_steps} steps are few for a time of {found:.3g}, which may "
            f"be too low. Run chains of at least {LEAST_LENGTH} times that length."
        )
    return found


def r_hat(x):
    """Return R̂, which is near 1 if Markov chains agree with each other.

    Parameters
    ----------
    x : array-like of shape (n_chains, n_steps)
        A figure of the state, such as the energy or the magnetisation, at each of at least 4 steps
        of chains that began at different states.

    Returns
    -------
    r_hat : float
        The chains are split into halves. R̂² is the variance of all states, as estimated from the
        means of the halves and the variances within them, over the mean variance within them
        [1]_. Above 1.01, chains have not forgotten where they began. NaN if x is constant.

    Raises
    ------
    ValueError
        If x has another shape, or numbers that are not finite.

    See Also
    --------
    autocorrelation_time : How many steps are worth an independent state.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian Data Analysis", 3rd edition, CRC Press, 2013,
       section 11.4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.statistics import r_hat
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(r_hat(x), 2), round(r_hat(x + [[0], [0], [0], [3]]), 2)
    (1.0, 1.74)
    """
    x = _checked_chains("r_hat", x)
    n_steps = x.shape[1] // 2
    halves = np.concatenate([x[:, :n_steps], x[:, -n_steps:]])
    within, between = halves.var(axis=1, ddof=1).mean(), halves.mean(axis=1).var(ddof=1)
    return float(np.sqrt(1 - 1 / n_steps + between / within)) if within else np.nan


def _checked_chains(function, x):
    """Finite numbers, (n_chains, n_steps)."""
    x = check_array(np.atleast_2d(x), dtype=np.float64, input_name="x")
    if x.shape[1] < 4:
        raise ValueError(
            f"{function}: x must have the shape (n_chains, n_steps) with 4 steps or more, got "
            f"{x.shape}."
        )
    return x
