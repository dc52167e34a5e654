"""Where a pairwise network is too large to enumerate: Gibbs sampling and AIS.

And whether a fitted model has mass far from the data. The pseudo-likelihood compares the rows with
states that differ from them in one variable, and says nothing of states that are far from all rows.
Where the data are no sample of any such model, its maximum may put nearly all mass there.
"""

from itertools import pairwise

import numpy as np
from scipy.special import logsumexp, rel_entr

from sklearn_boltz.partition._estimates import estimate_from_weights
from sklearn_boltz.partition._shares import chosen_chains

# Rates that differ by no more are those of the data: it is more than the estimate of a model that
# is right moves them, and less than a second mode does.
TOLERANCE = 0.05
# Probability of a warning, at most, where no rate of the model differs by more.
FALSE_ALARM = 1e-4
# Annealed chains of a row with missing cells.
N_ANNEALED = 20


def draw_seed(generator):
    """A key for the chains of a model."""
    return int(generator.integers(2**63))


def gibbs_sample(model, n_samples, n_steps, generator):
    """One row from each of `n_samples` chains, which begin at independent columns.

    Parameters
    ----------
    model : DiscreteModel
    n_samples, n_steps : int
    generator : Generator

    Returns
    -------
    codes : ndarray of int of shape (n_samples, d)
    """
    nothing = np.full((n_samples, len(model.n_values)), -1)
    return model.draws(nothing, n_steps, generator)


def gibbs_complete(model, codes, n_steps, generator):
    """Chains whose missing cells are drawn given the others, after `n_steps` sweeps."""
    initial = model.begin(codes, generator)
    chains = model.chains(initial, draw_seed(generator), codes < 0)
    chains.sweep(model.intercept, n_steps)
    return chains


def chains_of_each(model, codes, n_chains, n_steps, generator):
    """Chains, `n_chains` for each row, one after another, with random numbers that rows share."""
    drawn = gibbs_sample(model, n_chains, 0, generator)
    codes, drawn = np.repeat(codes, n_chains, axis=0), np.tile(drawn, (len(codes), 1))
    chains = model.chains(np.where(codes < 0, drawn, codes), draw_seed(generator), codes < 0)
    chains.rows %= n_chains
    chains.sweep(model.intercept, n_steps)
    return chains


def gibbs_mode(model, codes, n_steps, generator):
    """The most probable rows that are met in `n_steps` sweeps, after as many."""
    chains = gibbs_complete(model, codes, n_steps, generator)
    best, best_weight = chains.codes.copy(), np.full(len(codes), -np.inf)
    for _ in range(n_steps):
        chains.sweep(model.intercept)
        weight = chains.log_weight(model.intercept)
        better = weight > best_weight
        best[better], best_weight[better] = chains.codes[better], weight[better]
    return best


def annealed_chains(model, base, codes, n_kept, n_steps, generator):
    """Annealed chains of each row, of which some are kept by their weights.

    A single chain may stay in one mode for good. Those that are kept are in the modes in the right
    proportions. All chains of a row take `n_steps` sweeps together.

    Returns
    -------
    chains : Chains
        `n_kept` for each row, one after another.
    """
    rows = np.repeat(codes, N_ANNEALED, axis=0)
    betas = np.linspace(0, 1, max(1, n_steps // N_ANNEALED) + 1)
    log_weights, chains = _annealed(model, base, betas, rows, generator)
    chosen = chosen_chains(log_weights.reshape(-1, N_ANNEALED), n_kept, generator)
    chosen = (chosen + N_ANNEALED * np.arange(len(codes))[:, None]).ravel()
    return model.chains(chains.codes[chosen], draw_seed(generator), rows[chosen] < 0)


def annealed_draws(model, base, codes, n_steps, generator):
    """A draw of the missing cells of each row."""
    chains = annealed_chains(model, base, codes, 1, n_steps, generator)
    chains.sweep(model.intercept, n_steps // 2)
    return chains.codes


def annealed_probabilities(model, base, codes, n_steps, generator):
    """Means of p(x_j = a | the others), one-hot, of chains that go on for `n_steps` together."""
    chains = annealed_chains(model, base, codes, N_ANNEALED, n_steps, generator)
    n_sweeps = max(1, n_steps // N_ANNEALED)
    sums = chains.sums(model.intercept, n_sweeps)
    return sums.reshape(len(codes), N_ANNEALED, -1).mean(axis=1) / n_sweeps


def gibbs_probabilities(model, codes, n_steps, generator):
    """Means of p(x_j = a | the others), one-hot, over `n_steps` sweeps after as many."""
    chains = gibbs_complete(model, codes, n_steps, generator)
    return chains.sums(model.intercept, n_steps) / n_steps


def annealed_log_partition(model, base, betas, n_chains, generator, row=None):
    """ln Z by annealed importance sampling.

    The path leads from independent columns with the intercepts `base`, whose constant is known,
    to the model: intercepts (1 - β) base + β h and couplings β J.

    Parameters
    ----------
    model : DiscreteModel
    base : ndarray
        Like the intercepts of the model.
    betas : ndarray of float64
        Inverse temperatures from 0 to 1.
    n_chains : int
    generator : Generator
    row : ndarray of int of shape (d,), default=None
        Codes: the sum is over the values of the missing cells, -1. None sums over all columns.

    Returns
    -------
    estimate : Bunch
        Of `estimate_from_weights`; `states` are the codes in which the chains end.
    """
    row = np.full(len(model.n_values), -1) if row is None else row
    log_weights, chains = _annealed(model, base, betas, np.tile(row, (n_chains, 1)), generator)
    log_weights += model.independent_log_sum(base, row)
    return estimate_from_weights("ais", log_weights, 1, chains.codes)


def annealed_log_sums(model, base, betas, n_chains, generator, codes):
    """ln of the sums over the missing cells of rows, by as many chains of each.

    The random numbers are the same for every row.
    """
    nothing = np.full((n_chains, codes.shape[1]), -1)
    drawn = np.tile(model.fill(base, nothing, generator), (len(codes), 1))
    rows = np.repeat(codes, n_chains, axis=0)
    chains = model.chains(np.where(rows < 0, drawn, rows), draw_seed(generator), rows < 0)
    chains.rows %= n_chains
    log_weights = _anneal(chains, base, betas).reshape(len(codes), n_chains)
    of_base = [model.independent_log_sum(base, row) for row in codes]
    return of_base + logsumexp(log_weights, axis=1) - np.log(n_chains)


def _annealed(model, base, betas, codes, generator):
    """Log-weights of annealed chains, one a row, without the constant of the base; and these."""
    chains = model.chains(model.fill(base, codes, generator), draw_seed(generator), codes < 0)
    return _anneal(chains, base, betas), chains


def _anneal(chains, base, betas):
    """Anneal chains that begin at independent columns; -> their log-weights."""
    intercept, log_weights = chains.model.intercept, 0.0
    for low, high in pairwise(betas.tolist()):
        log_weights += (high - low) * chains.log_weight(intercept - base)
        chains.sweep((1 - high) * base + high * intercept, scale=high)
    return log_weights


def strange_columns(rates, expected, n):
    """Columns whose rate is too far from the expected one to be chance.

    Of n independent draws of probability p, a share of x or more occurs with a probability of at
    most exp(-n KL(x || p)) if x > p, and a share of x or less if x < p (Chernoff's bound). A
    column is found if that is below `FALSE_ALARM` / (2 d) for all p within `TOLERANCE` of the
    expected rate.

    Parameters
    ----------
    rates : ndarray of shape (d,)
        Means of n draws of 0 and 1.
    expected : ndarray of shape (d,)
    n : float
        Number of draws, or an effective one.

    Returns
    -------
    columns : ndarray of int
        The greatest difference first.
    """
    nearest = np.clip(rates, expected - TOLERANCE, expected + TOLERANCE)
    divergence = rel_entr(rates, nearest) + rel_entr(1 - rates, 1 - nearest)
    found = np.flatnonzero(n * divergence > np.log(2 * len(rates) / FALSE_ALARM))
    return found[np.argsort(-np.abs(rates - expected)[found], kind="stable")]


def spurious_message(where, rates, expected, columns, label):
    """Warning about columns whose chains differ from the data, if any."""
    j, more = columns[0], len(columns) - 1
    # Of a column with several values, each has a rate.
    others = f" ({more} more rate{'s differ' if more > 1 else ' differs'}, too)" if more else ""
    return (
        f"{where} {label(j)} with a rate of {rates[j]:.2g}, against {expected[j]:.2g} "
        f"in the training data{others}. The model has mass far from the data, which the "
        "pseudo-likelihood does not see: samples do not resemble the data, and the likelihood "
        "is low. More rows do not help. What does: MaximumEntropy; a much larger alpha, from 0.05 "
        "to 0.5, chosen by held-out `score`; or fewer columns."
    )
