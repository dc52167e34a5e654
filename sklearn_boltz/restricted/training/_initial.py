"""Where a training begins: at the parameters of another model of the same columns.

A coupling of two bits v and w has the effect of one hidden unit. With spins s = 2v − 1 and t, and
K = 4J the coupling of the bits, ln 2 cosh(a (s + t)) is J s t up to a constant if
cosh(2a) = exp(2J); and ln(1 + exp(x)) = x / 2 + ln 2 cosh(x / 2) makes that a hidden unit with the
field x = 2a (s + t). If J is negative, t changes its sign.
"""

from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.restricted.model._layout import rescaled
from sklearn_boltz.restricted.model._units import published, with_published
from sklearn_boltz.restricted.training._rows import evenly_spaced
from sklearn_boltz.restricted.training._streamed_rows import StreamedRows
from sklearn_boltz.restricted.training._visits import of_some
from sklearn_boltz.tables._coded import uncoded
from sklearn_boltz.tables._phrases import join_columns
from sklearn_boltz.units import Bernoulli

# What the parameter `init` may be, except for a model: the standard deviation of the weights, or
# "scaled", with which the inputs of a unit do not grow with the size of the other layer.
INITIAL_SCALE = [Interval(Real, 0, None, closed="left"), StrOptions({"scaled"})]

# Number of rows of batches to which visible units are fitted before training.
FIRST_ROWS = 10_000


def is_model(init):
    """Whether the parameter `init` is an estimator."""
    return init is not None and not isinstance(init, (Real, str))


def initial_visible(layout, X, weights=None):
    """Visible units where a training begins, fitted to rows of numbers."""
    if isinstance(X, StreamedRows) and not layout.is_binary:
        # The fitted units are only the start of the training.
        rows = evenly_spaced(X, FIRST_ROWS)
        X, weights = X[rows], of_some(weights, rows)
    return layout.initial_units(X, weights)


def fit_init(estimator, X=None, sample_weight=None):
    """Set `init_`, the fitted network or RBM that the parameter `init` stands for.

    If it is not fitted, that is a clone fitted to the rows.
    """
    model = getattr(estimator.init, "estimator", estimator.init)  # of a FrozenEstimator
    name, layout = type(estimator).__name__, estimator._encoder.coding
    if not (_is_rbm(model) or _is_network(model)):
        raise ValueError(
            f"{name}: init must be an RBM of this library with one hidden layer, such as SDCPRBM, "
            f"or a network, such as FVBMPseudoLikelihood, got {type(model).__name__}."
        )
    kinds = [kind if isinstance(kind, type) else type(kind) for kind in layout.kinds]
    real = [j for j, kind in enumerate(kinds) if kind is not Bernoulli and not layout.one_hot[j]]
    if _is_network(model) and real:
        raise ValueError(
            f"{name}: a network as init is for columns of finitely many values, and the units of "
            f"{join_columns(estimator._encoder.columns[j].title for j in real)} take real ones."
        )
    if not (hasattr(model, "components_") or hasattr(model, "coupling_")):
        if X is None:
            raise ValueError(f"{name}: in partial_fit, init must be fitted already.")
        model = clone(model).fit(uncoded(X), sample_weight=sample_weight)
    is_elsewhere = is_foreign(getattr(model, "components_", None))
    estimator.init_ = model.move_to(np) if is_elsewhere else model


def _is_rbm(model):
    """Whether an estimator, fitted or not, is an RBM with visible and hidden units only."""
    deep_or_labelled = hasattr(model, "hidden_layer_sizes") or hasattr(model, "predict")
    return hasattr(model, "sample_visible") and not deep_or_labelled


def _is_network(model):
    return hasattr(model, "interaction_scores")


def n_units_of(model):
    """Number of hidden units that a model, as of `fit_init`, makes."""
    if _is_rbm(model):
        return len(model.components_)
    return int(np.count_nonzero(np.triu(model.coupling_, 1)))


def begin_at_init(estimator, weights, visible, hidden):
    """Begin at the parameters of `init_`; hidden units beyond its own stay as they are.

    Parameters
    ----------
    estimator : BaseRBM
    weights : ndarray of shape (n_hidden, n_numbers)
        Changed in place.
    visible, hidden : UnitType
        Of `hidden`, the biases are changed in place.

    Returns
    -------
    visible : UnitType
    """
    model, name, table = estimator.init_, type(estimator).__name__, estimator._encoder
    if not hidden.is_binary:
        raise ValueError("init is for binary hidden units: set hidden='bernoulli'.")
    names = estimator._column_labels() or ()
    for own, other in zip(names, model._column_labels() or names, strict=False):
        if own != other:
            raise ValueError(
                f"{name}: X has the column {own!r} where the table that init was fitted to has "
                f"{other!r}. Fit to X[list(init.columns_)]."
            )
    start, layout = None, table.coding
    if model.n_features_in_ == len(layout.kinds) and _same_categories(table, model._encoder):
        find = _of_network if _is_network(model) else _of_rbm
        start = find(model, name, layout, len(hidden))
    if start is None:
        raise ValueError(
            f"{name}: init was fitted to other columns, or to other categories or units of them. "
            "Fit it to a table like X, with the same `columns`."
        )
    its_weights, hidden_bias, of_visible = start
    weights[: len(hidden_bias)], hidden.intercept[: len(hidden_bias)] = its_weights, hidden_bias
    return with_published(visible, of_visible, weights.dtype).astype(weights.dtype)


def _same_categories(one, other):
    """Whether two tables have the same values in their columns.

    The whole numbers from 0 on are codes for a network, and categories for an RBM.
    """
    for pair in zip(one.columns, other.columns, strict=True):
        found = [column.categories for column in pair if column.categories is not None]
        if len(found) == 1:
            found.append(np.arange(len(found[0])))
        if found and not np.array_equal(*found):
            return False
    return True


def _of_rbm(model, name, mine, n_units):
    """Weights, biases of the hidden units and parameters of the visible ones, if columns agree."""
    (_, (visible, hidden)), other = model._layered(), model._encoder.coding
    if not hidden.is_binary:
        raise ValueError(f"{name}: the hidden units of init must be Bernoulli ones.")
    if len(hidden) > n_units:
        raise ValueError(
            f"{name}: n_components is {n_units}, but init has {len(hidden)} "
            f"components. Set n_components={len(hidden)} or more."
        )
    own, its = ([k if isinstance(k, type) else type(k) for k in of.kinds] for of in (mine, other))
    if own != its or not np.array_equal(mine.widths, other.widths):
        return None
    weights, visible, hidden = rescaled(model.components_, visible, hidden, other, mine)
    return weights, hidden.intercept, published(visible)


def _of_network(model, name, layout, n_units):
    """Weights and biases of an RBM whose hidden units reproduce a network's couplings."""
    for j, n_values in enumerate(model.n_values_.tolist()):
        one_hot, width = layout.one_hot[j], layout.widths[j]
        if width != (n_values if one_hot else 1) or (n_values > 2 and not one_hot):
            return None
    coupling, bias = _of_numbers(model, layout)
    weights, hidden_bias, bias = units_of_pairs(coupling, bias, n_units)
    return weights, hidden_bias, {"intercept": bias}


def _of_numbers(model, layout):
    """Couplings and biases of a network between the numbers of the visible units, all 0 or 1."""
    coupling, bias = model.coupling_, model.intercept_
    # What the network has is T v + t.
    T, t = np.zeros((len(bias), layout.n_numbers)), np.zeros(len(bias))
    if hasattr(model, "values_"):  # in values -1 and 1: as bits
        coupling, bias = 4 * coupling, 2 * (bias - coupling.sum(axis=1))
        if layout.is_plain:
            return coupling, bias
        T[np.arange(len(bias)), layout.starts[1:] - 1] = 1  # of two categories, the second
    else:  # one-hot columns: of a column of two values, 1 - v and v
        ends = np.cumsum(model.n_values_)
        for j, (first, end) in enumerate(zip(ends - model.n_values_, ends, strict=True)):
            numbers = layout.numbers_of(j)
            if layout.one_hot[j]:
                T[first:end, numbers] = np.eye(end - first)
            else:
                T[first:end, numbers], t[first] = [[-1], [1]], 1
    return T.T @ coupling @ T, T.T @ (bias + coupling @ t)


def units_of_pairs(coupling, bias, n_units):
    """Hidden units with the effect of the strongest couplings of bits.

    Parameters
    ----------
    coupling : ndarray of shape (n_numbers, n_numbers)
        K, symmetric; the log-weight of bits v is ½ vᵀ K v + bias · v.
    bias : ndarray of shape (n_numbers,)
    n_units : int
        Units at most. Couplings beyond them are left out.

    Returns
    -------
    weights : ndarray of shape (n_pairs, n_numbers)
    hidden_bias : ndarray of shape (n_pairs,)
    visible_bias : ndarray of shape (n_numbers,)
    """
    first, second = np.triu_indices(len(bias), 1)
    strength = np.abs(coupling[first, second])
    order = np.argsort(-strength, kind="stable")[:n_units]
    order = order[strength[order] > 0]
    first, second = first[order], second[order]
    J, sign = strength[order] / 4, np.sign(coupling[first, second])
    # arccosh(exp(2J)) / 2, in which exp(2J) would overflow.
    a = J + np.log1p(np.sqrt(-np.expm1(-4 * J))) / 2
    units, weights = np.arange(len(order)), np.zeros((len(order), len(bias)))
    weights[units, first], weights[units, second] = 4 * a, 4 * a * sign
    # The field is 2a (s + sign t), of which half is in the visible biases already.
    visible_bias = bias - weights.sum(axis=0) / 2
    for one in (first, second):
        np.add.at(visible_bias, one, 2 * J * sign)
    return weights, -2 * a * (1 + sign), visible_bias
