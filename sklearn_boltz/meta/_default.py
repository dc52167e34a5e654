"""What meta-estimators share: how they take a table, and the density model that they choose."""

from contextlib import contextmanager

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklearn_boltz._cells import MOST_LEVELS, as_array, is_frame, is_whole, unusable_cell
from sklearn_boltz._tables import learn_table
from sklearn_boltz.fully_visible import FVBMPseudoLikelihood
from sklearn_boltz.restricted import SDCPRBM
from sklearn_boltz.units import Categorical

# The end of the fit of a network, in nats.
TOL = 0.1
# Rows times pairs of columns, up to which the network takes no more than a minute or so.
MOST_WORK = 1e8
# Cells of a table, above which a round of EM makes one draw of a row, and not ten.
MANY_CELLS = 2**14
# Hidden units of the RBM.
N_HIDDEN = 64


def checked_table(estimator, X, reset):
    """The table as a frame or an array, with as many columns as in `fit`.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set, or compared.
    X : array-like or data frame of shape (n_samples, n_features)
    reset : bool
        Whether it is the table of `fit`.

    Returns
    -------
    X : ndarray or data frame
    """
    if not is_frame(X):
        X = check_array(
            as_array(X) if isinstance(X, (list, tuple)) else X,
            dtype=None,
            ensure_all_finite="allow-nan",
            input_name="X",
            estimator=estimator,
        )
    elif X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"Found array with 0 sample(s) or feature(s) (shape={X.shape}).")
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


@contextmanager
def named(estimator):
    """Put the name of an estimator in front of what is said of a table, as a context."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{type(estimator).__name__}: {error}") from error.__cause__


def check_cells(estimator, X):
    """Refuse dates, times and infinite numbers."""
    description = unusable_cell(X, None)
    if description is not None:
        raise ValueError(f"{type(estimator).__name__}: {description}")


def choose_density(n_values, ordered, n_rows, alpha, **options):
    """A density model for a table of codes, by its size and the kinds of its columns.

    Parameters
    ----------
    n_values : ndarray of int of shape (n_columns,)
        Number of values of each column, 0 for real numbers.
    ordered : ndarray of bool of shape (n_columns,)
        Which columns have ordered values.
    n_rows : int
    alpha : float
        Strength of the penalty of the network.
    **options : dict
        Other parameters of the network.

    Returns
    -------
    density : FVBMPseudoLikelihood or SDCPRBM
        The network of all pairs of columns; the RBM if it has real numbers, or is too large.
    """
    if n_values.all() and n_rows * len(n_values) ** 2 <= MOST_WORK:
        # Words are codes by now, so that the network cannot see which columns have an order.
        return FVBMPseudoLikelihood(
            n_values=np.maximum(n_values, 2), ordered=ordered, alpha=alpha, tol=TOL, **options
        )
    visible = [_unit(n) for n in n_values]
    return SDCPRBM(N_HIDDEN, visible=visible, early_stopping=n_rows >= 100)


def draws_of(codes):
    """How often EM completes rows of a table of codes in a round, as a parameter of a network."""
    return {"n_draws": 1} if codes.size > MANY_CELLS else {}


def with_values(estimator, X, n_classes=0):
    """A clone of a density model that knows the values of all columns of a table.

    Fitted to some of the rows, it would know of the values in these rows alone.

    Parameters
    ----------
    estimator : estimator
    X : data frame or array
    n_classes : int
        If positive, the number of values of one more column.

    Returns
    -------
    estimator : estimator
        With parameters `n_values` or `visible` for codes, if it has any of them, at ``"auto"``.
    table : Table or None
        What codes the rows for it; None if it is to have them as they are.
    """
    estimator, parameters = clone(estimator), estimator.get_params(deep=False)
    told = [name for name in ("n_values", "visible") if parameters.get(name) == "auto"]
    if not told or parameters.get("binarize") is not None:
        return estimator, None
    table = learn_table(X)
    codes, n_values = table.encode(X, "missing"), table.n_categories
    for j in np.flatnonzero([column.categories is None for column in table.columns]):
        n_values[j] = _n_codes(codes[:, j].astype(np.float64), told == ["visible"])
    if told == ["n_values"] and not n_values.all():
        return estimator, None  # which has an error for numbers that are no codes
    n_values = np.append(n_values, [n_classes] * (n_classes > 0)).astype(np.int64)
    values = np.maximum(n_values, 2) if told == ["n_values"] else [_unit(n) for n in n_values]
    return estimator.set_params(**{told[0]: values}), table


def _n_codes(numbers, probabilities):
    """How many codes there are in a column of 0, 1, 2, ...; 0 for other numbers.

    Numbers from 0 to 1 are two, if they may be `probabilities` of a 1.
    """
    numbers = numbers[~np.isnan(numbers)]
    largest = numbers.max(initial=0)
    if probabilities and numbers.min(initial=0) >= 0 and largest <= 1:
        return 2
    return int(largest) + 1 if is_whole(numbers).all() and largest <= MOST_LEVELS else 0


def _unit(n_values):
    """A visible unit for a column of so many values, 0 for numbers."""
    return (
        ("gaussian", "bernoulli", "bernoulli")[n_values]
        if n_values < 3
        else Categorical([n_values])
    )
