"""What physics asks of a network: entropy, specific heat at any temperature, local minima."""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import find_stack_level, validate_arguments
from sklearn_boltz._ladder_record import mean_and_error
from sklearn_boltz._random import make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.fully_visible.sampling._descent import descend, distinct_minima
from sklearn_boltz.fully_visible.sampling._tempering import (
    N_CHAINS,
    Path,
    ThermalRecord,
    find_betas,
    make_ladder,
)

# Below this temperature, for log-weights of the order of 1, rounding errors are greater than a nat.
COLDEST = 1e-13
# The figures of `thermodynamics`, in the order of `_figures`.
NAMES = "log_partition", "energy", "entropy", "specific_heat"


class Thermodynamics:
    """Methods of an estimator that has `_model`, with P(x)^(1/T) at temperature T."""

    @validate_arguments({"temperature": [Interval(Real, 0, None, closed="neither")]})
    def entropy(self, temperature=1.0):
        """Return the entropy of the model.

        Parameters
        ----------
        temperature : float, default=1.0
            T > 0: the model is P(x)^(1/T).

        Returns
        -------
        entropy : float
            -Σ_x P(x) ln P(x), in nats. It is exact up to 2**26 joint states of connected variables.
            Otherwise it is estimated by `thermodynamics` with a fixed seed; call that method for
            the standard error.

        Warns
        -----
        UserWarning
            If an estimate is not to be trusted.
        """
        check_is_fitted(self)
        model = self._model().tempered(temperature)
        if model.is_enumerable():
            return self._cached("entropy", model.entropy, np.array([temperature]))
        return self._thermodynamics_at(temperature).entropy[0]

    @validate_arguments({"temperature": [Interval(Real, 0, None, closed="neither")]})
    def specific_heat(self, temperature=1.0):
        """Return the specific heat of the model: how its mean energy rises with the temperature.

        Parameters
        ----------
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
        """
        check_is_fitted(self)
        return self._thermodynamics_at(temperature).specific_heat[0]

    def _thermodynamics_at(self, temperature):
        return self._cached(
            "thermodynamics",
            lambda: self.thermodynamics(temperature, random_state=0),
            np.array([temperature]),
        )

    @validate_arguments(
        {
            "temperatures": [Interval(Real, 0, None, closed="neither"), "array-like"],
            "n_chains": [Interval(Integral, 2, None, closed="left")],
            "tol": [Interval(Real, 0, None, closed="neither")],
            "max_rounds": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
        }
    )
    def thermodynamics(
        self, temperatures=1.0, *, n_chains=N_CHAINS, tol=0.05, max_rounds=5000, random_state=None
    ):
        """Return ln Z, energy, entropy and specific heat at some temperatures.

        The model at temperature T is P(x)^(1/T) / Z_T, with the energy of `energy`. Boltzmann's
        constant is 1. The results are exact up to 2**26 joint states of connected variables.
        Beyond that, all are means over one ladder: Gibbs chains that exchange states, at these
        temperatures and at others between them, up to an infinite one.

        Parameters
        ----------
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
        >>> from sklearn_boltz import FVBMPseudoLikelihood
        >>> rng = np.random.default_rng(0)
        >>> steps = rng.choice([-1, 1], size=(500, 20), p=[0.1, 0.9])
        >>> model = FVBMPseudoLikelihood(alpha=0.1).fit(np.cumprod(steps, axis=1))
        >>> figures = model.thermodynamics([0.1, 1, 10])
        >>> bool((np.diff(figures.entropy) > 0).all())
        True
        >>> figures.method
        'exact'
        """
        check_is_fitted(self)
        T = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
        if T.ndim != 1 or not len(T) or not (np.isfinite(T) & (T > 0)).all():
            raise ValueError(
                f"{type(self).__name__}.thermodynamics: temperatures must be positive numbers."
            )
        model = self._model()
        if (T < COLDEST * model.scale).any():
            raise ValueError(
                f"{type(self).__name__}.thermodynamics: at the temperature {T.min():g} "
                "log-weights are too large for double precision. Use "
                f"{COLDEST * model.scale:.2g} or more; at that temperature only the most probable "
                "states are left."
            )
        betas, place = np.unique(1 / T, return_inverse=True)
        if model.is_enumerable():
            log_z, weight, variance = model.cumulants(betas)
            found = np.array([log_z, -weight, log_z - betas * weight, betas**2 * variance])
            errors, worth = np.zeros_like(found), ("exact", True, "Exact, by enumeration.")
        else:
            found, errors, worth = by_ladder(
                model, betas, n_chains, tol, max_rounds, make_generator(random_state)
            )
        method, trusted, verdict = worth
        if not trusted:
            warnings.warn(verdict, stacklevel=find_stack_level())
        return Bunch(
            temperature=T,
            **dict(zip(NAMES, found[:, place], strict=True)),
            std_err=Bunch(**dict(zip(NAMES, errors[:, place], strict=True))),
            method=method, trusted=trusted, verdict=verdict,
        )  # fmt: skip

    @validate_arguments(
        {
            "X": ["array-like", None],
            "n_starts": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
        }
    )
    def local_minima(self, X=None, *, n_starts=1000, random_state=None):
        """Return local minima of the energy, and the basin that each row belongs to.

        Starting at each row, the cell whose change lowers the energy most is changed. This is
        repeated until no change of a single cell lowers the energy. The rows that end at the same
        minimum are its basin.

        Parameters
        ----------
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
        >>> from sklearn_boltz import FVBMPseudoLikelihood
        >>> rng = np.random.default_rng(0)
        >>> patterns = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
        >>> kind = rng.choice(2, size=500, p=[0.6, 0.4])
        >>> X = np.where(rng.random((500, 5)) < 0.1, 1 - patterns[kind], patterns[kind])
        >>> minima = FVBMPseudoLikelihood(alpha=0.01).fit(X).local_minima(X)
        >>> minima.states[:2]
        array([[1, 1, 1, 0, 0],
               [0, 0, 1, 1, 1]])
        >>> bool((minima.basin == kind).mean() > 0.9)
        True
        """
        check_is_fitted(self)
        model = self._model()
        if X is None:
            nothing = np.full((n_starts, self.n_features_in_), -1)
            uniform = np.zeros_like(model.intercept)
            codes = model.fill(uniform, nothing, make_generator(random_state))
        else:
            codes = self._complete_codes(X)
        states, log_weight, basin = distinct_minima(model, descend(model, codes))
        return Bunch(
            states=self._table.decode(self._coding.decode(states)),
            energy=-log_weight,
            count=np.bincount(basin, minlength=len(states)),
            basin=basin,
        )


def by_ladder(model, betas, n_chains, tol, max_rounds, generator):
    """The figures at some inverse temperatures, their standard errors, and what they are worth."""
    path = Path.of_temperatures(model, betas[-1], generator)

    def estimates(record):
        """(4, n_betas, n_chains)"""
        places = np.searchsorted(record.betas, betas)
        beta = betas[:, np.newaxis]
        log_z = record.log_partitions()[places]
        weight, variance = (moment[places] for moment in record.moments())
        return np.array([log_z, -weight, log_z - beta * weight, beta**2 * variance])

    with Workers() as workers:
        ladder = make_ladder(path, find_betas(path, betas, generator, workers), n_chains, generator)
        record = ThermalRecord(ladder, workers)
        reached = record.run_until(tol, max_rounds, lambda record: estimates(record)[[0, 2]])
    found, errors = mean_and_error(estimates(record))
    against = None if reached else record.objection(errors[[0, 2]].max())
    if against:
        n = len(record.betas)
        verdict = f"The estimates by {n} temperatures are not to be trusted: {against}."
    else:
        verdict = f"There is nothing against the estimates: {record.figures()}."
        if not reached:
            verdict += f" Standard errors are up to {errors[[0, 2]].max():.2g} nats."
    return found, errors, ("ladder", against is None, verdict)
