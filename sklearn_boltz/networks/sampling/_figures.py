"""ln Z, energy, entropy and specific heat at some temperatures; local minima of the energy."""

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.sampling._tempering import (
    N_CHAINS,
    Path,
    ThermalRecord,
    find_betas,
    make_ladder,
)
from sklearn_boltz.numerics._threads import Workers, slices_of_rows
from sklearn_boltz.partition._ladder_record import mean_and_error

# Below this temperature, for log-weights of the order of 1, rounding errors are greater than a nat.
COLDEST = 1e-13
# Standard error in nats at which the chains end, and their rounds at most.
TOL, MAX_ROUNDS = 0.05, 5000
# The figures, in the order of `by_ladder`.
NAMES = "log_partition", "energy", "entropy", "specific_heat"
# Rows that go down together: their fields are one table.
ROWS = 2**12
# Differences of the energy, and shares of its scale, that are rounding errors: no way down.
ROUNDING, RELATIVE_ROUNDING = 1e-9, 1e-13


def thermal_figures(
    model, temperatures, generator, n_chains=N_CHAINS, tol=TOL, max_rounds=MAX_ROUNDS
):
    """The figures, exact where states can be enumerated; a warning if they are not to be trusted.

    Parameters
    ----------
    model : DiscreteModel
    temperatures : float or array-like of float
    generator : Generator
    n_chains, tol, max_rounds
        As of `statistics.thermodynamics`.

    Returns
    -------
    figures : Bunch
    """
    T = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
    if T.ndim != 1 or not len(T) or not (np.isfinite(T) & (T > 0)).all():
        raise ValueError("thermodynamics: temperatures must be positive numbers.")
    if (T < COLDEST * model.scale).any():
        raise ValueError(
            f"thermodynamics: at the temperature {T.min():g} "
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
        found, errors, worth = by_ladder(model, betas, n_chains, tol, max_rounds, generator)
    method, trusted, verdict = worth
    if not trusted:
        warn(verdict)
    return Bunch(
        temperature=T,
        **dict(zip(NAMES, found[:, place], strict=True)),
        std_err=Bunch(**dict(zip(NAMES, errors[:, place], strict=True))),
        method=method, trusted=trusted, verdict=verdict,
    )  # fmt: skip


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


def descend(model, codes):
    """Go down to local minima of the energy.

    In each step the cell of a row is changed whose change lowers the energy most; the row
    has arrived where no change of one cell lowers it.

    Parameters
    ----------
    model : DiscreteModel
    codes : ndarray of int of shape (n, d)
        Complete rows.

    Returns
    -------
    codes : ndarray of int of shape (n, d)
    """
    minima = np.array(codes, dtype=np.int64)
    column = np.repeat(np.arange(len(model.n_values)), model.n_values)
    least = max(ROUNDING, RELATIVE_ROUNDING * model.scale)
    for rows in slices_of_rows(len(minima), 1, ROWS):
        codes = minima[rows]
        active = np.arange(len(codes))
        while len(active):
            # Of all values, given the others: their differences are those of the energy.
            log_p = model.log_conditionals(codes[active])
            own = np.take_along_axis(log_p, model.starts[:-1] + codes[active], axis=1)
            gains = log_p - own[:, column]
            best = gains.argmax(axis=1)
            rises = gains[np.arange(len(active)), best] > least
            active, best = active[rises], best[rises]
            codes[active, column[best]] = best - model.starts[column[best]]  # in place
    return minima


def distinct_minima(model, minima):
    """The distinct rows, the lowest energy first.

    Returns
    -------
    distinct : ndarray of int of shape (n_minima, d)
    log_weight : ndarray of float64 of shape (n_minima,)
    basin : ndarray of int of shape (n,)
        Which of them each row is.
    """
    distinct, basin = np.unique(minima, axis=0, return_inverse=True)
    log_weight = model.log_weight(distinct)
    order = np.argsort(-log_weight, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return distinct[order], log_weight[order], place[basin.ravel()]
