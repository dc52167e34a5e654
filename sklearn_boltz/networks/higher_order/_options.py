"""The terms of three columns and more that a user gives, checked."""

from itertools import pairwise
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError


def checked_terms(estimator, terms):
    """Terms as sorted tuples of numbers of columns, each once."""
    return sorted({_checked(estimator, term) for term in terms})


def _checked(estimator, term):
    _check_form(estimator, term)
    try:
        columns = tuple(sorted(map(estimator._variable, term)))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"terms must be a list of tuples of columns, by name or number, each once: {term!r}. "
            f"{error}"
        ) from error
    twice = [j for j, k in pairwise(columns) if j == k]
    if twice:
        _refuse(
            f"{estimator._column(twice[0])} is named twice in the term {term!r}",
            "Name each column of a term once.",
        )
    if len(columns) < 3:
        _refuse(
            f"terms must have three columns and more, and {term!r} has {len(columns)}",
            "All pairs are in the model anyway.",
        )
    return columns


def _check_form(estimator, term):
    """Refuse what is no tuple of names and numbers."""
    if isinstance(term, str):
        names = tuple(name.strip() for name in term.split("*"))
        _refuse(f"terms must be a list of tuples, and {term!r} is a word", f"Give {names!r}.")
    if isinstance(term, Integral):
        _refuse("terms must be a list of tuples", f"Give {[tuple(estimator.terms)]!r}.")
    negative = [one for one in np.ravel(term) if isinstance(one, Integral) and one < 0]
    if negative:
        _refuse(
            f"terms must not have negative numbers, and {term!r} has {negative[0]}",
            "Count columns from 0.",
        )


def _refuse(reason, remedy):
    raise InvalidParameterError(f"{reason}. {remedy}")
