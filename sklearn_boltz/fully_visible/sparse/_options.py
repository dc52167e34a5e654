"""What a user asks of a sparse network, checked: what goes together, and what takes its place."""

import warnings

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz._base import N_NAMES, find_stack_level
from sklearn_boltz.fully_visible.higher_order._options import has_terms
from sklearn_boltz.fully_visible.sparse._dependent import LEVEL, dependent_pairs
from sklearn_boltz.fully_visible.sparse._task import Choice, SparseTask


def wanted_alpha(estimator):
    """What an estimator asks for: a number, "ebic", "cv", or "auto", of which this is the rest.

    That is the strength of the l2 penalty on all pairs, chosen by the data.
    """
    if estimator.alpha != "auto":
        return estimator.alpha
    if estimator.penalty != "l2":
        return "ebic"
    is_plain = (
        estimator.objective == "pseudo-likelihood"
        and estimator.edges is None
        and not estimator.nodewise
        and not has_terms(estimator)
    )
    return "auto" if is_plain else 0.0


def is_sparse(estimator):
    """Whether the sparse solver is wanted: the others know no penalty but l2, on all pairs."""
    alpha = wanted_alpha(estimator)
    selects = estimator.penalty != "l2" and alpha != 0
    chooses = alpha in ("ebic", "cv")
    return selects or chooses or estimator.nodewise or estimator.edges is not None


def ridge(estimator):
    """The strength of the l2 penalty of the other solvers; 0 where it is yet to be chosen."""
    alpha = wanted_alpha(estimator)
    return 0.0 if is_sparse(estimator) or alpha == "auto" else alpha


def sparse_task(estimator, task, rows):
    """The task with the penalty of an estimator.

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood
    task : Task or CodesTask
    rows : Rows
        As they were read, in their order.

    Returns
    -------
    task : SparseTask
    found : dict
        The attributes `alpha_` and, if it was chosen, `alphas_` and `path_`.
    """
    check(estimator, rows)
    sparse = SparseTask(
        task,
        penalty=estimator.penalty,
        alpha=0.0,
        l1_ratio=estimator.l1_ratio,
        edges=checked_edges(estimator),
        nodewise=estimator.nodewise,
        rule=estimator.rule,
        standardize=estimator.standardize,
        tol=estimator.tol,
    )
    alpha = wanted_alpha(estimator)
    if not isinstance(alpha, str):
        sparse.alpha = float(alpha)
        return sparse, {"alpha_": sparse.alpha}
    if len(task.varying) < 2:
        return sparse, sparse.without_pairs()
    choice = Choice(alpha, estimator.ebic_gamma, estimator.n_alphas, estimator.cv)
    found = sparse.choose(choice, rows.codes, rows.weights)
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


def check(estimator, rows):
    """Refuse what does not go together, and say what does."""
    penalty, alpha = estimator.penalty, wanted_alpha(estimator)
    if estimator.objective == "likelihood":
        given = _given(estimator)
        it = "it" if len(given) == 1 and estimator.edges is None else "them"
        _refuse(
            f"objective='likelihood' does not take {', '.join(given)}",
            f"Leave {it} out, or use objective='pseudo-likelihood'.",
        )
    if estimator.solver != "newton":
        _refuse(
            f"solver={estimator.solver!r} knows no penalty but l2, on all pairs",
            "Leave solver at 'newton': a proximal version of it runs.",
        )
    if penalty == "l2" and alpha == "ebic":
        _refuse(
            "alpha='ebic' compares sets of pairs, and penalty='l2' keeps all",
            f"Use penalty={'l1' if rows.coding.is_binary else 'group'!r}, or alpha='cv'.",
        )
    if penalty in ("l1", "elasticnet") and not rows.coding.is_binary:
        _refuse(
            f"penalty={penalty!r} is for binary columns: which entries of a larger block are 0 "
            "depends on how values are compared",
            "Use penalty='group', which selects whole pairs of columns.",
        )
    if np.any(estimator.ordered) and estimator.ordered is not False:
        _refuse(
            f"ordered={estimator.ordered!r} is for penalty='l2' on all pairs",
            "Set ordered=False.",
        )
    if rows.codes is None:
        raise ValueError(
            "Sparse networks keep all distinct rows in memory, and these batches have too many. "
            "Use fewer rows, or penalty='l2' with a number as alpha, without edges and nodewise."
        )
    if alpha == "cv" and not rows.in_order:
        raise ValueError(
            "alpha='cv' needs the rows one by one; of batches and with partial_fit, only the "
            "distinct rows are kept. Use alpha='ebic', or fit one table."
        )
    if estimator.nodewise and estimator.missing == "em" and not rows.is_complete:
        _refuse(
            "nodewise=True fits each column by itself, and there is no model of all to complete "
            "rows by",
            "Use missing='observed', or nodewise=False.",
        )


def _given(estimator):
    """What asks for a sparse network, as in the call."""
    alpha = wanted_alpha(estimator)
    asks = {
        f"penalty={estimator.penalty!r}": estimator.penalty != "l2" and alpha != 0,
        f"alpha={estimator.alpha!r}": estimator.alpha in ("ebic", "cv"),
        "`edges`": estimator.edges is not None,
        "nodewise=True": estimator.nodewise,
    }
    return [name for name, is_given in asks.items() if is_given]


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
