"""What a user asks of terms of three columns and more, checked."""

from itertools import pairwise
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz._cells import listed
from sklearn_boltz.fully_visible.training._objective import PseudoLikelihood


def has_terms(estimator):
    """Whether terms of three columns and more are wanted, given or to be chosen."""
    return estimator.max_order > 2 or estimator.terms is not None


def checked_terms(estimator, task, rows, is_sparse):
    """The terms that a user gives, as sorted tuples of columns; None if they are to be chosen.

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood
    task : Task or CodesTask
    rows : Rows
    is_sparse : bool
        Whether pairs are to be chosen, too.

    Returns
    -------
    terms : list of tuples of int, or None
    """
    _check_combination(estimator, is_sparse)
    _check_rows(estimator, task, rows)
    if estimator.terms is None:
        return None
    return sorted({_checked(estimator, term) for term in estimator.terms})


def _check_combination(estimator, is_sparse):
    if estimator.terms is not None and estimator.max_order > 2:
        _refuse("`terms` gives the terms, and max_order > 2 chooses them", "Use one of the two.")
    if is_sparse:
        _refuse(
            "Terms of three columns come with penalty='l2' on all pairs",
            _plain_remedy(estimator),
        )
    if estimator.solver in ("bslm", "ga"):
        _refuse(
            f"solver={estimator.solver!r} is for pairs",
            "With terms of three columns use solver='newton' or 'lbfgs'; 'lbfgs' runs.",
        )
    if estimator.objective != "pseudo-likelihood" and estimator.max_order > 2:
        _refuse(
            f"objective={estimator.objective!r} does not choose terms",
            "Give `terms`, for example those that objective='pseudo-likelihood' has chosen.",
        )


def _plain_remedy(estimator):
    """What to change for the penalty l2 on all pairs."""
    steps = {
        "set penalty='l2'": estimator.penalty != "l2",
        "give a number as alpha": estimator.alpha in ("ebic", "cv"),
        "leave out `edges`": estimator.edges is not None,
        "set nodewise=False": estimator.nodewise,
    }
    text = ", ".join(step for step, needed in steps.items() if needed)
    return f"{text[0].upper()}{text[1:]}."


def _pairs_remedy(estimator):
    """What to change for a network of pairs."""
    steps = {
        "set max_order=2": estimator.max_order > 2,
        "leave out `terms`": estimator.terms is not None,
        "set count_potential=False": estimator.count_potential,
    }
    return " and ".join(step for step, needed in steps.items() if needed)


def _check_rows(estimator, task, rows):
    name = type(estimator).__name__
    if not rows.coding.is_binary:
        many = np.flatnonzero(rows.coding.n_values > 2)
        raise ValueError(
            f"{name}: terms of three columns are for binary columns, and {estimator._have(many)} "
            "more than two values. Use FSLLDensity or one-hot columns, or "
            f"{_pairs_remedy(estimator)}."
        )
    if not isinstance(task.problem, PseudoLikelihood):
        raise ValueError(
            f"{name} keeps all distinct rows in memory for terms of three columns, and these "
            f"batches have too many. Use fewer rows, or {_pairs_remedy(estimator)}."
        )
    if not rows.is_complete and estimator.missing == "em":
        missing = np.flatnonzero((rows.codes < 0).any(axis=0))
        remedy = "With terms of three columns use missing='observed'."
        if estimator.objective == "likelihood":  # which missing="observed" is not for
            remedy = "Fill them, for example by BoltzmannImputer, or leave out these rows."
        raise ValueError(
            f"{name}: missing='em' is for networks of pairs, and {estimator._have(missing)} "
            f"missing cells (NaN). {remedy}"
        )


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


def has_further(estimator):
    """Whether the likelihood of more than pairs is wanted."""
    if estimator.count_potential and estimator.objective != "likelihood":
        _refuse(
            "count_potential=True is for objective='likelihood'",
            "The pseudo-likelihood of rare counts has no maximum in general. Set "
            "objective='likelihood', or count_potential=False.",
        )
    return estimator.objective == "likelihood" and (
        estimator.terms is not None or estimator.count_potential
    )


def checked_further(estimator, task, rows, is_sparse):
    """The terms for the likelihood of more than pairs."""
    terms = checked_terms(estimator, task, rows, is_sparse)
    if not rows.is_complete:
        missing = np.flatnonzero((rows.codes < 0).any(axis=0))
        raise ValueError(
            f"{type(estimator).__name__}: with objective='likelihood', terms and count_potential "
            f"are for complete rows, and {estimator._have(missing)} missing cells (NaN). Fill them."
        )
    if estimator.count_potential and len(task.varying) < rows.codes.shape[1]:
        constant = np.setdiff1d(np.arange(rows.codes.shape[1]), task.varying)
        raise ValueError(
            f"{type(estimator).__name__}: count_potential=True needs columns that vary, and "
            f"{listed(map(estimator._column, constant))} "
            f"{'is constant. Leave it' if len(constant) == 1 else 'are constant. Leave them'} out."
        )
    return terms or []
