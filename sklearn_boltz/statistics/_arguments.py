"""Checks of the arguments of functions of a fitted network."""

from functools import wraps

from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.networks._network import Network


def of_network(constraints):
    """Check the arguments of a function of a fitted network, as scikit-learn does."""

    def decorate(function):
        checked = validate_params(constraints, prefer_skip_nested_validation=False)(function)

        @wraps(function)
        def with_network(network, *args, **kwargs):
            if not isinstance(network, Network):
                raise TypeError(
                    f"{function.__name__} takes a fitted FVBMPseudoLikelihood, SparseFVBM or "
                    f"MaximumEntropy; got {type(network).__name__}."
                )
            check_is_fitted(network)
            return checked(network, *args, **kwargs)

        return with_network

    return decorate
