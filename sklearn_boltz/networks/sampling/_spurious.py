"""Whether a fitted model has mass far from the data.

The pseudo-likelihood compares the rows of the data with states that differ from them in one
variable, and says nothing of states that are far from all rows. Where the data are no sample of
any such model, its maximum may put nearly all mass there.
"""

import numpy as np
from scipy.special import rel_entr

# Rates that differ by no more are those of the data: it is more than the estimate of a model that
# is right moves them, and less than a second mode does.
TOLERANCE = 0.05
# Probability of a warning, at most, where no rate of the model differs by more.
FALSE_ALARM = 1e-4


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
    """What a user should know if there are strange columns."""
    j, more = columns[0], len(columns) - 1
    # Of a column with several values, each has a rate.
    others = f" ({more} more rate{'s differ' if more > 1 else ' differs'}, too)" if more else ""
    return (
        f"{where} {label(j)} with a rate of {rates[j]:.2g}, in the training data of "
        f"{expected[j]:.2g}{others}. The model has mass far from the data, which the "
        "pseudo-likelihood does not see: samples do not resemble the data, and the likelihood "
        "is low. More rows do not help. What does: MaximumEntropy, for binary columns; a much "
        "larger alpha, from 0.05 to 0.5, chosen by held-out `score`; or fewer columns."
    )
