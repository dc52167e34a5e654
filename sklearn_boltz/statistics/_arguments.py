"""Checks of the arguments of functions of a fitted network: the network, and its rows."""

from functools import wraps
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._warnings import warn
from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.networks._network import Network
from sklearn_boltz.tables._weights import checked_weights

# Of functions that fit or sample again and again, in processes.
REPEATED = {
    "X": ["array-like"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "random_state": ["random_state", np.random.Generator],
}


def of_network(constraints, *, fitted=True, numbers=False):
    """Check the arguments of a function of a network, as scikit-learn does.

    `numbers` says whether it is about numbers with normal scores, too.
    """

    def decorate(function):
        checked = validate_params(constraints, prefer_skip_nested_validation=False)(function)

        @wraps(function)
        def with_network(network, *args, **kwargs):
            if not isinstance(network, Network):
                raise TypeError(
                    f"{function.__name__} takes a fitted FVBMPseudoLikelihood, SparseFVBM or "
                    f"MaximumEntropy; got {type(network).__name__}."
                )
            if fitted:
                check_is_fitted(network)
                if not numbers:
                    network._warn_of_scores()
            return checked(network, *args, **kwargs)

        return with_network

    return decorate


def warn_of_other_rows(network, codes, weights):
    """Warn of rows, or of weights, that the estimates do not come from."""
    if network._seen is None:
        return

    def has_seen():
        seen, counts = distinct_incomplete(*informative(*network._seen_rows()))
        found, own = distinct_incomplete(codes, weights)
        return np.array_equal(seen, found) and np.allclose(counts, own)

    if not network._cached("is_same", has_seen, codes, weights):
        warn(
            f"{type(network).__name__}: these are not the rows and weights of the fit, for which "
            "standard errors, tests and criteria hold. Use the X and sample_weight of `fit`."
        )


def counted(network, X, sample_weight):
    """The codes of rows that count, and their weights; a warning if they are not the fit's."""
    codes = network._codes(X)
    codes, weights = informative(codes, checked_weights(sample_weight, codes))
    codes[:, network.n_values_ == 1] = 0  # also where the number is missing
    warn_of_other_rows(network, codes, weights)
    return codes, weights
