"""Probabilities of a few values whose sums are estimated by annealed chains."""

import numpy as np
from scipy.special import softmax

# The standard error that is wanted; chains of each value at first, and their temperatures, which
# are doubled while weights of these chains vary by more than their mean times SPREAD; transitions
# for each value, in `n_steps`, at most.
MAX_ERROR, FIRST_CHAINS, LEAST_TEMPERATURES, SPREAD, BUDGET = 0.01, 32, 32, 1.0, 50
# More chains than the error asks for, as it is an estimate itself: it takes this number of chains,
# times the square of the spread.
MARGIN, CHAINS_OF_SPREAD = 1.4, 200


def shares_by_chains(known, weights_of_chains, n_steps):
    """The shares of sums that annealed chains estimate, until their errors are small.

    Chains seldom pass between values of a column to which all others are coupled. So each value has
    chains of its own. `known` is what the logarithm of each sum has besides. `weights_of_chains`
    makes of numbers of chains and of temperatures log-weights, (n_values, n_chains), the means of
    whose exponentials are unbiased for the sums. Each value has at most 50 `n_steps` transitions.
    The second result is the greatest standard error.
    """
    left, n_temperatures, n_more = BUDGET * n_steps, LEAST_TEMPERATURES, FIRST_CHAINS
    log_weights = np.empty((len(known), 0))
    while True:
        n_more = int(np.clip(n_more, 2, max(2, left // n_temperatures)))
        left -= n_more * n_temperatures
        more = weights_of_chains(n_more, n_temperatures)
        log_weights = np.hstack([log_weights, more])
        p, error, spread = _shares_of_sums(known, log_weights)
        n_chains, enough = log_weights.shape[1], CHAINS_OF_SPREAD * spread**2
        is_certain = error <= MAX_ERROR and n_chains >= enough
        if is_certain or left < FIRST_CHAINS * n_temperatures:
            return p, error
        if spread > SPREAD and n_chains == FIRST_CHAINS:
            # Chains of better weights take the place of these.
            n_temperatures, n_more = 2 * n_temperatures, FIRST_CHAINS
            log_weights = log_weights[:, :0]
        else:
            n_more = max(MARGIN * (error / MAX_ERROR) ** 2 * n_chains, enough) - n_chains


def _shares_of_sums(known, log_weights):
    """The shares, their greatest error, and the spread of weights."""
    peak = log_weights.max(axis=1)
    weights = np.exp(log_weights - peak[:, np.newaxis])
    means = weights.mean(axis=1)
    p, spread = softmax(known + peak + np.log(means)), weights.std(axis=1, ddof=1) / means
    errors = softmax_errors(p, spread / np.sqrt(log_weights.shape[1]))
    return p, errors.max(), p @ spread


def chosen_chains(log_weights, n, generator):
    """Numbers of n chains a row, drawn by their weights, evenly spread over them."""
    up_to = np.cumsum(softmax(log_weights, axis=1), axis=1)
    places = (generator.random((len(up_to), 1)) + np.arange(n)) / n * up_to[:, -1:]
    found = [np.searchsorted(*pair, side="right") for pair in zip(up_to, places, strict=True)]
    return np.minimum(found, log_weights.shape[1] - 1)


def softmax_errors(p, log_errors):
    """Standard errors of normalised weights, by the delta method, from those of their logs."""
    # d p_a / d ln w_b = p_a (δ_ab - p_b).
    slopes = p[:, None] * (np.eye(len(p)) - p)
    return np.sqrt(slopes**2 @ log_errors**2)


def message_of_errors(name, column, errors, n_steps):
    """Warning that the probabilities of some rows are uncertain, or None.

    `name` is what was asked, and `column` of which column.
    """
    n_uncertain = int((errors > MAX_ERROR).sum())
    if not n_uncertain:
        return None
    return (
        f"{name}: the probabilities of {column} have standard errors of more than {MAX_ERROR:g}, "
        f"up to {errors.max():.2g}, in {n_uncertain:,} of {len(errors):,} rows, where too many "
        f"cells are missing to sum over all their values. Increase n_steps ({n_steps:,})."
    )
