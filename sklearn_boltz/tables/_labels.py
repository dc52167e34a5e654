"""Labels of rows: their classes, their codes, and rows without a label."""

from numbers import Real

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._arrays import as_numpy, is_foreign
from sklearn_boltz.tables._phrases import some_of
from sklearn_boltz.tables._values import is_missing

# The code of a row without a label, and what stands for it among labels that are numbers.
UNLABELLED = -1


def split_labels(y, name="y"):
    """Labels as numbers, texts or objects, and which rows have one: None and NaN are missing.

    `name` is that of the estimator in messages.
    """
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None. Give the label of each "
            "row; -1 stands for a row without one."
        )
    check_unmasked(y, name)
    if isinstance(y, list | tuple):
        words = any(isinstance(label, str) for label in y)
        y = np.array(y, dtype=object if words and any(map(is_missing, y)) else None)  # no "nan"
    y = column_or_1d(as_numpy(y) if is_foreign(y) else y, warn=True)
    present = np.ones(len(y), dtype=bool)
    if y.dtype.kind == "O":
        present = ~np.fromiter(map(is_missing, y), bool, len(y))
        labels = y[present].tolist()
        if labels and all(isinstance(label, Real) for label in labels):
            labels = np.array(labels)
            y = np.full(len(y), UNLABELLED, labels.dtype)
            y[present] = labels
    elif y.dtype.kind == "f":
        present = ~np.isnan(y)
        assert_all_finite(y[present], input_name="y")
        whole = np.where(present, y, UNLABELLED)
        if not present.all() and (whole == np.rint(whole)).all():
            y = whole.astype(np.int64)  # numbers with a fraction for the sake of NaN only
    return y, present


def check_unmasked(y, name):
    """Refuse masked labels, of which scikit-learn takes what lies under the mask."""
    rows = np.flatnonzero(np.ma.getmask(y))
    if len(rows):
        raise ValueError(
            f"{name}: y is masked in {len(rows):,} row{'s'[: len(rows) > 1]}, the first of which "
            f"is row {rows[0]}. Leave out the rows without a label; RBMClassifier takes them if "
            "the label is None or NaN."
        )


def check_one_type(labels, name, missing=()):
    """Refuse labels of several types, such as texts and numbers, which have no order.

    `missing` is what stands for a label in rows without one.
    """
    kinds = set(map(type, labels.tolist())) if labels.dtype.kind == "O" else ()
    if len(kinds) < 2 or all(issubclass(kind, Real) for kind in kinds):
        return
    remedy = ": [str(label) for label in y]"
    if len(missing):
        # str(None) would be a class.
        is_none = all(label is None for label in missing)
        remedy = (
            ", and leave missing labels None: [None if "
            f"{'label is None' if is_none else 'pandas.isna(label)'} else str(label) for label in "
            "y]"
        )
    shown = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(
        f"{name}: y has labels of the types {shown}. Make them all of one type{remedy}."
    )


def learn_classes(y, present, name="y"):
    """The classes among the labels, in order.

    Among numbers, -1 is no class, but in labels that are -1 and 1 only or beside other negative
    ones.
    """
    known = y[present]
    check_one_type(known, name, y[~present])
    if len(known):
        check_classification_targets(known)
    labels, counts = np.unique(known, return_counts=True)
    classes = labels
    if labels.dtype.kind in "if":
        # Beside 1 only, or other negative labels, -1 can only be a class like others.
        is_a_class = np.array_equal(labels, [UNLABELLED, 1]) or (labels < UNLABELLED).any()
        classes = labels if is_a_class else labels[labels != UNLABELLED]
    if not len(classes):
        raise ValueError(
            f"{name}: no row has a label, but there must be at least two classes: -1, None and NaN "
            "stand for rows without a label. SDCPRBM learns from rows alone."
        )
    if len(classes) == 1:
        remedy = "Give rows of at least two classes; None and NaN stand for rows without a label."
        if (known == UNLABELLED).any():
            remedy = f"If -1 is a class and not a missing label, pass y == {classes[0]} as y."
        raise ValueError(f"{name}: y has only one class, {classes.tolist()[0]!r}. {remedy}")
    if len(classes) < len(labels) and not _is_no_class(classes, counts):
        warn(
            f"{name}: y has -1 in {counts[0]:,} rows, beside the {len(classes)} classes "
            f"{some_of(classes.tolist())}: these rows are taken for rows without a label. If they "
            "are, write None or NaN for -1; if -1 is a class, give texts as labels: "
            "np.asarray(y).astype(str)."
        )
    return classes


def _is_no_class(classes, counts):
    """Whether -1, the first of the counts, can hardly be a class.

    Beside the codes of three classes or more it is scikit-learn's sign for a row without a label,
    if more rows have it than any class. Beside 0 and 1 it may as well be a third class.
    """
    are_codes = np.array_equal(classes, np.arange(len(classes)))
    return len(classes) > 2 and are_codes and counts[0] > counts[1:].max()


def is_labelled(y, present, classes):
    """Which rows have a label: among numbers, -1 is none, unless it is a class."""
    if y.dtype.kind in "if" and (classes.dtype.kind not in "iufb" or UNLABELLED not in classes):
        return present & (y != UNLABELLED)
    return present


def encode_labels(y, present, classes, name="y", remedy="Give labels that are in classes_."):
    """Numbers of the classes of rows, and -1 where a row has no label.

    `remedy` is a sentence: what to do about a label that is none of the classes.
    """
    labelled, numbers = is_labelled(y, present, classes), classes.dtype.kind in "iufb"
    codes, known = np.full(len(y), UNLABELLED, dtype=np.intp), y[labelled]
    if not len(known):
        return codes
    if (known.dtype.kind in "iufb") != numbers:
        _refuse_label(known[0], classes, name, remedy)
    places = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
    found = classes[places] == known
    if not found.all():
        _refuse_label(known[np.argmin(found)], classes, name, remedy)
    codes[labelled] = places
    return codes


def _refuse_label(label, classes, name, remedy):
    label = label.item() if isinstance(label, np.generic) else label
    n_classes, shown = len(classes), some_of(classes.tolist())
    among = f"classes {shown}" if n_classes <= 5 else f"{n_classes} classes ({shown})"
    raise ValueError(f"{name}: y has the label {label!r}, which is none of the {among}. {remedy}")
