"""Labels of rows: their classes, their codes, and rows without a label."""

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from sklearn_boltz._cells import is_missing

# The code of a row without a label, and what stands for one among labels that are numbers.
UNLABELLED = -1


def split_labels(y, name="y"):
    """Tell rows with a label from rows without.

    A row has no label where it is None or NaN or, among labels that are numbers, -1.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    name : str
        What messages call the estimator.

    Returns
    -------
    y : ndarray of shape (n_rows,)
        Of numbers, texts or objects.
    labelled : ndarray of bool of shape (n_rows,)
    """
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None. Give the label of each "
            "row; -1 stands for a row without one."
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        labelled = ~np.fromiter(map(is_missing, y), bool, len(y))
        if all(isinstance(label, (int, float, np.number)) for label in y[labelled]):
            numbers = np.full(len(y), np.nan)
            numbers[labelled] = y[labelled]
            y = numbers if len(y) and not labelled.all() else y.astype(np.result_type(*y))
    if y.dtype.kind == "f":
        labelled = ~np.isnan(y)
    elif y.dtype.kind != "O":
        labelled = np.ones(len(y), dtype=bool)
    if y.dtype.kind in "if":
        labelled = labelled & (y != UNLABELLED)
    return y, labelled


def learn_classes(y, labelled, name="y"):
    """The classes among the labels, in order.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
    labelled : ndarray of bool of shape (n_rows,)
    name : str
        What messages call the estimator.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    """
    known = y[labelled]
    if not len(known):
        raise ValueError(
            f"{name}: no row has a label: -1, None and NaN stand for rows without one. To learn "
            "from rows alone, use SDCPRBM."
        )
    if known.dtype.kind == "O" and not all(isinstance(label, str) for label in known):
        kinds = sorted({type(label).__name__ for label in known})
        if len(kinds) > 1:
            raise ValueError(
                f"{name}: y has labels of the types {' and '.join(kinds)}. Make them all of one "
                "type, for example by y.astype(str)."
            )
    check_classification_targets(known)
    classes = np.unique(known)
    if (
        known.dtype.kind == "f"
        and (classes == classes.astype(np.int64)).all()
        and (len(known) < len(y))
    ):
        classes = classes.astype(np.int64)  # floats only for the sake of NaN
    if len(classes) == 1:
        minus = y.dtype.kind in "if" and bool((y == UNLABELLED).any())
        remedy = (
            f"If -1 is a class, and not a row without a label, write y == {classes[0]}."
            if minus
            else "There must be two at least."
        )
        raise ValueError(f"{name}: y has only one class, {classes[0]!r}. {remedy}")
    return classes


def encode_labels(y, labelled, classes, name="y"):
    """Numbers of the classes of rows, and -1 where a row has no label.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
    labelled : ndarray of bool of shape (n_rows,)
    classes : ndarray of shape (n_classes,)
        In order.
    name : str
        What messages call the estimator.

    Returns
    -------
    codes : ndarray of intp of shape (n_rows,)
    """
    codes, known = np.full(len(y), UNLABELLED, dtype=np.intp), y[labelled]
    try:
        places = np.searchsorted(classes, known)
        found = classes[np.minimum(places, len(classes) - 1)] == known
    except TypeError:  # of another type
        places, found = np.zeros(len(known), np.intp), np.zeros(len(known), bool)
    if not np.all(found):
        label = known[np.argmin(found)] if np.ndim(found) else known[0]
        shown = ", ".join(map(repr, classes[:5].tolist())) + ", ..." * (len(classes) > 5)
        raise ValueError(
            f"{name}: y has the label {getattr(label, 'item', lambda: label)()!r}, which is none "
            f"of the classes {shown}. Name all classes in the first call of partial_fit, by "
            "`classes`, or fit anew."
        )
    codes[labelled] = places
    return codes
