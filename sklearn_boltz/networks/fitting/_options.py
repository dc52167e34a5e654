"""What a user asks of sparse networks and of terms: what goes together, and what is done."""

import warnings
from itertools import pairwise
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.networks.sparse._task import LEVEL, SparseTask, dependent_pairs
from sklearn_boltz.tables._cells import N_NAMES


def sparse_task(estimator, task, rows):
    """The task with the penalty of an estimator.

    Parameters
    ----------
    estimator : SparseFVBM
    task : Task or CodesTask
    rows : Rows
        As they were read, in their order.

    Returns
    -------
    task : SparseTask
    found : dict
        The attributes `alpha_` and, if it was chosen, `alphas_` and `path_`.
    """
    sparse = SparseTask(
        task,
        penalty=estimator.penalty,
        l1_ratio=estimator.l1_ratio,
        edges=checked_edges(estimator),
        nodewise=estimator.nodewise,
        standardize=estimator.standardize,
        tol=estimator.tol,
        remedy="alpha > 0, for example alpha=0.01",
    )
    alpha = estimator.alpha
    if not isinstance(alpha, str):
        sparse.alpha = float(alpha)
        return sparse, {"alpha_": sparse.alpha}
    if len(task.varying) < 2:
        return sparse, sparse.without_pairs()
    options = {"how": alpha, "gamma": estimator.ebic_gamma, "cv": estimator.cv}
    found = sparse.choose(rows.codes, rows.weights, **options)
    if alpha == "ebic" and not sparse.has_pairs():
        _warn_of_empty(estimator, sparse, rows)
    return sparse, found


def _warn_of_empty(estimator, sparse, rows):
    """Tell of pairs that Pearson's chi-squared test finds where no pair has been selected."""
    pairs = sparse.candidates()
    found = dependent_pairs(rows.codes, rows.weights, pairs)
    if found:
        named = [" and ".join(map(estimator._column, pair)) for pair in found[:N_NAMES]]
        more = f"; and {len(found) - N_NAMES} more" if len(found) > N_NAMES else ""
        warnings.warn(
            f"alpha='ebic' has selected no pair, and yet Pearson's chi-squared test with Holm's "
            f"adjustment finds {len(found)} of {len(pairs)} pairs dependent at {LEVEL:.0%}: "
            f"{'; '.join(named)}{more}. Use alpha='cv'.",
            stacklevel=find_stack_level(),
        )


def check_rows(estimator, rows):
    """Refuse what the rows do not allow, and say what goes."""
    penalty, alpha, is_binary = estimator.penalty, estimator.alpha, rows.coding.is_binary
    if penalty == "l2" and alpha == "ebic":
        _refuse(
            "alpha='ebic' compares sets of pairs, and penalty='l2' keeps all",
            "Use penalty='group', alpha='cv', or a number as alpha.",
        )
    if penalty == "l2" and alpha != 0 and estimator.relax:
        _refuse(
            "relax=True fits the pairs that a penalty has selected, and penalty='l2' keeps all",
            "Use penalty='group', or relax=False.",
        )
    if penalty in ("l1", "elasticnet") and not is_binary:
        _refuse(
            f"penalty={penalty!r} is for binary columns: which entries of a larger block are 0 "
            "depends on how values are compared",
            "Use penalty='group', which selects whole pairs of columns.",
        )
    if rows.codes is None:
        raise ValueError(
            "SparseFVBM keeps all distinct rows in memory, and these batches have too many. "
            "Use fewer rows, or FVBMPseudoLikelihood."
        )
    if alpha == "cv" and not rows.in_order:
        raise ValueError(
            "alpha='cv' needs the rows one by one; of batches and with partial_fit, only the "
            "distinct rows are kept. Use alpha='ebic', or fit one table."
        )
    is_completed = estimator.missing == "em" and not rows.is_complete
    if estimator.nodewise and is_completed:
        _refuse(
            "nodewise fits each column by itself, and there is no model of all to complete rows by",
            "Use missing='observed', or nodewise=False.",
        )
    if estimator.max_order > 2 and not is_binary:
        raise ValueError(
            f"SparseFVBM: terms of three columns are for binary columns, and "
            f"{estimator._have(rows.coding.larger_columns)} more than two values. Use FSLLDensity "
            "or one-hot columns, or max_order=2."
        )
    if estimator.max_order > 2 and is_completed:
        missing = estimator._have(rows.incomplete_columns)
        raise ValueError(
            f"SparseFVBM: missing='em' is for networks of pairs, and {missing} missing cells "
            "(NaN). With terms of three columns use missing='observed'."
        )


def _refuse(reason, remedy):
    raise InvalidParameterError(f"{reason}. {remedy}")


def checked_edges(estimator):
    """The pairs that may be connected, as a mask; None for all."""
    edges = estimator.edges
    if edges is None:
        return None
    if _are_pairs(edges):
        return _mask_of_pairs(estimator, edges)
    d, mask = estimator.n_features_in_, _as_array(edges)
    if mask.dtype.kind in "iu" and mask.shape[1:] == (2,):
        return _mask_of_pairs(estimator, mask.tolist())
    if mask.shape != (d, d) or mask.dtype.kind != "b":
        raise InvalidParameterError(
            "edges must be pairs of columns, a list or an array of shape (n, 2), or an array of "
            f"bool of shape {(d, d)}, True where two may be connected; got {mask.dtype} of shape "
            f"{mask.shape}."
        )
    if not np.array_equal(mask, mask.T):
        j, k = np.argwhere(mask != mask.T)[0]
        raise InvalidParameterError(
            f"edges must be symmetric, and edges[{j}, {k}] is {mask[j, k]} but edges[{k}, {j}] is "
            f"{mask[k, j]}. Use edges | edges.T, or edges & edges.T."
        )
    return mask


def _are_pairs(edges):
    """Whether edges are given as a list of pairs of names or numbers of columns."""
    return isinstance(edges, (list, tuple)) and all(
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and not any(isinstance(column, (bool, np.bool_)) for column in pair)
        for pair in edges
    )


def _mask_of_pairs(estimator, edges):
    """Where the two columns of a pair meet."""
    mask = np.zeros((estimator.n_features_in_,) * 2, dtype=bool)
    for pair in edges:
        try:
            j, k = map(estimator._variable, pair)
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(f"edges has the pair {tuple(pair)!r}. {error}") from error
        if j == k:
            _refuse(
                f"edges has the pair {tuple(pair)!r} of {estimator._column(j)} with itself",
                "Leave it out.",
            )
        mask[[j, k], [k, j]] = True
    return mask


def _as_array(edges):
    try:
        return np.asarray(edges)
    except ValueError as error:
        raise InvalidParameterError(
            "edges must be a list of pairs of columns or an array of bool, and its rows are of "
            "different lengths."
        ) from error


def checked_terms(estimator, terms):
    """Terms as sorted tuples of numbers of columns, each once."""
    return sorted({_checked_term(estimator, term) for term in terms})


def _checked_term(estimator, term):
    _check_form_of_term(estimator, term)
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


def _check_form_of_term(estimator, term):
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
