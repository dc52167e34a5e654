"""What physics asks of a network: its figures at any temperature, and local minima."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval

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


@of_network({"temperature": [Interval(Real, 0, None, closed="neither")]})
def specific_heat(network, temperature=1.0):
    """Return the specific heat of the model: how its mean energy rises with the temperature.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    temperature : float, default=1.0
        T > 0: the model is P(x)^(1/T).

    Returns
    -------
    specific_heat : float
        The slope dU/dT = Var(E) / T² of the mean energy U, in nats per unit of temperature. It
        is that of the whole model; divide by the number of variables for a value per variable.
        It is exact up to 2**26 joint states of connected variables. Otherwise it is estimated
        from the variance of the energy by `thermodynamics` with a fixed seed; call that method
        for the standard error.

    Warns
    -----
    UserWarning
        If an estimate is not to be trusted.

    Examples
    --------
    The spins of a chain. Its specific heat has a maximum where order gives way to disorder.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = np.cumprod(rng.choice([-1, 1], size=(500, 20), p=[0.1, 0.9]), axis=1)
    >>> model = FVBMPseudoLikelihood(alpha=0.1).fit(X)
    >>> [round(statistics.specific_heat(model, T), 1) for T in (0.25, 0.5, 1, 2)]
    [0.4, 5.1, 9.7, 3.6]
    """
    return float(network._figures_at(temperature).specific_heat[0])


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
        `states`, the distinct minima, the lowest energy first, as a table like the training
        data; `energy` of each, as of `energy`; `count`, how many rows arrived at each; and
        `basin`, of shape (n_samples,), the number of the minimum of each row.

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
        states=network._table.decode(network._coding.decode(states)),
        energy=-log_weight,
        count=np.bincount(basin, minlength=len(states)),
        basin=basin,
    )
