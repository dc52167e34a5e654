"""Prior probabilities of classes, as a user gives them."""

import numpy as np

from sklearn_boltz.tables._phrases import some_of


def checked_priors(priors, classes, shares, name):
    """Check the probabilities of the classes; -> one for each.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), dict or None
        In the order of the classes, or by their names; None for the shares.
    classes : ndarray of shape (n_classes,)
    shares : ndarray of float64 of shape (n_classes,)
        Of the classes in the training rows.
    name : str
        Name of the estimator in messages.

    Returns
    -------
    priors : ndarray of float64 of shape (n_classes,)
    """
    if priors is None:
        return shares
    names = classes.tolist()
    values = _in_order(priors, names, name) if isinstance(priors, dict) else priors
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # no numbers
        values = np.full(len(names), np.nan)
    right_shape = values.shape == (len(names),)
    if not right_shape or not (values >= 0).all() or not np.isclose(values.sum(), 1):
        raise ValueError(
            f"{name}: priors must be {len(names)} probabilities with sum 1, for the classes "
            f"{some_of(names)}; got {priors!r}."
        )
    return values


def _in_order(priors, names, name):
    """The values of a dict in the order of the classes."""
    for label in names:
        if label not in priors:
            raise ValueError(f"{name}: priors has no probability for class {label!r}.")
    for label in priors:
        if label not in names:
            raise ValueError(
                f"{name}: priors has a probability for {label!r}, which is not a class in y."
            )
    return [priors[label] for label in names]
