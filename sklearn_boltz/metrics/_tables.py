"""How like the rows of two tables are: real rows, and rows drawn from a model of them."""

from collections import Counter
from numbers import Real

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import Bunch, check_random_state

from sklearn_boltz.metrics._rules import rules_of
from sklearn_boltz.tables._bins import Bins
from sklearn_boltz.tables._cells import as_array, as_numbers
from sklearn_boltz.tables._dates import as_dates, unit_of_dates
from sklearn_boltz.tables._form import holds_numbers
from sklearn_boltz.tables._frames import (
    cells_of,
    declared_values,
    frame_or_bunch,
    is_frame,
    names_of,
)
from sklearn_boltz.tables._values import is_missing

# Values of a category that the boosting tells apart; rarer ones count as one.
MOST_VALUES = 255
# Bins of a number for its associations, and distances that are computed at once.
N_BINS, CHUNK = 8, 2**20


def c2st_score(real, synthetic, *, cv=5, random_state=None):
    """Two-sample score of synthetic rows: 1 if they pass for real ones, 0 if all are recognised.

    Gradient boosting learns to distinguish the rows of two tables, and is evaluated on held-out
    rows [1]_. With the area A under its ROC curve, the score is 2 - 2 max(A, ½).

    Parameters
    ----------
    real : array-like or data frame of shape (n_real, n_features)
        Real rows that the model was not fitted to: compared with its training rows, a model that
        repeats them would look best.
    synthetic : array-like or data frame of shape (n_synthetic, n_features)
        Rows with the same columns, as many as the real ones if possible.
    cv : int, default=5
        The number of folds.
    random_state : int, RandomState instance or None, default=None
        The source of randomness of the folds and of the boosting.

    Returns
    -------
    score : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If the tables have different columns, or if one has fewer rows than there are folds.

    See Also
    --------
    compare_tables : Figures for each column and each pair of columns.
    nearest_record_share : Whether synthetic rows repeat training rows.

    Notes
    -----
    Columns of numbers and dates count as numbers, all others as categories. A missing cell counts
    as a value of its own, so that rows with gaps differ from rows without. Values that a column
    cannot have are recognised at once: round both tables in the same way.

    With n rows in each table, the standard error is about 0.8 / √n, and the mean score of other
    real rows is about 1 - 0.3 / √n.

    References
    ----------
    .. [1] D. Lopez-Paz and M. Oquab, "Revisiting Classifier Two-Sample Tests", International
       Conference on Learning Representations, 2017. https://arxiv.org/abs/1610.06545

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.metrics import c2st_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(2000, 4))
    >>> X[:, 3] = X[:, 0] & X[:, 1]
    >>> model = FVBMPseudoLikelihood(alpha=0.01).fit(X[:1000])
    >>> synthetic = model.sample(1000, random_state=0)
    >>> c2st_score(X[1000:], synthetic, random_state=0) > 0.9
    True
    >>> independent = rng.permuted(X[:1000], axis=0)
    >>> c2st_score(X[1000:], independent, random_state=0) < 0.8
    True
    """
    _, cells, is_category = _together(real, synthetic)
    n_real, generator = len(cells[0]), check_random_state(random_state)
    few = min(map(len, cells))
    if few < cv:
        raise ValueError(
            f"c2st_score: a table has {few} rows, fewer than the {cv} folds. Use more rows, or a "
            "smaller cv."
        )
    rows = np.concatenate(cells)
    # All known cells of a column may be in one fold, and the boosting refuses a column without any.
    is_scarce = cv * (~np.isnan(rows)).sum(axis=0) <= len(rows)
    beyond = np.fmax.reduce(rows, axis=0, initial=0) + 1
    rows = np.where(np.isnan(rows) & is_scarce, beyond, rows)
    rows[:, is_category] = np.minimum(rows[:, is_category], MOST_VALUES - 1)
    is_synthetic = np.arange(len(rows)) >= n_real
    boosting = HistGradientBoostingClassifier(
        categorical_features=is_category, random_state=generator.randint(2**31)
    )
    folds = StratifiedKFold(cv, shuffle=True, random_state=generator.randint(2**31))
    p = cross_val_predict(boosting, rows, is_synthetic, cv=folds, method="predict_proba")
    return float(2 - 2 * max(roc_auc_score(is_synthetic, p[:, 1]), 0.5))


def compare_tables(real, synthetic):
    """Compare the columns of two tables, and the association of each pair of columns.

    Parameters
    ----------
    real : array-like or data frame of shape (n_real, n_features)
        Real rows.
    synthetic : array-like or data frame of shape (n_synthetic, n_features)
        Rows with the same columns.

    Returns
    -------
    figures : Bunch
        `columns`, the names of the columns; `distance`, ndarray of shape (n_features,): for numbers
        the Kolmogorov distance between the distributions of the observed cells, for categories half
        the sum of the absolute differences of all shares (total variation), both from 0 to 1;
        `missing`, ndarray of the same shape, by how much the share of missing cells is greater in
        the synthetic rows; `association` and `synthetic_association`, ndarrays of shape
        (n_features, n_features), Cramér's V of each pair of columns, from 0 to 1, with numbers in
        eight bins; `worst`, the pair of columns whose associations differ most, None if there is a
        single column; and `broken_rules`, a data frame, or a Bunch without pandas, of the rules
        that all real rows obey and some synthetic ones break: the `rule`, its `kind` ("order",
        "sum", "one-hot" or "dependency"), and the `share` of the synthetic rows that break it,
        greatest first.

    Raises
    ------
    ValueError
        If the tables have different columns, or fewer than two rows.

    See Also
    --------
    c2st_score : A score for whole rows, which also reveals what no pair of columns shows.

    Notes
    -----
    Cramér's V is corrected for the bias that few rows give it [1]_. A missing cell is a value of
    its own there.

    Rules are order relations of two columns of numbers or dates; sums of columns, of which each
    counts once, that are constant or another sum, to rounding errors; columns of 0 and 1 of which
    each row has one; and columns that determine another one, as a city its state. A rule that holds
    by chance in more than 1 of 1,000 tables with independent columns is none. Rows with a missing
    cell break no rule of its column.

    References
    ----------
    .. [1] W. Bergsma, "A bias-correction for Cramér's V and Tschuprow's T", Journal of the Korean
       Statistical Society 42(3), 323–328, 2013. https://doi.org/10.1016/j.jkss.2012.10.002

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.metrics import compare_tables
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(1000, 3))
    >>> X[:, 2] = X[:, 0]
    >>> figures = compare_tables(X, rng.permuted(X, axis=0))
    >>> figures.distance
    array([0., 0., 0.])
    >>> figures.association.round(1)
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    >>> figures.worst
    (0, 2)

    Synthetic trips that end before they begin:

    >>> start = rng.integers(0, 300, 500)
    >>> trips = np.column_stack([start, start + rng.integers(0, 60, 500)])
    >>> compare_tables(trips, rng.permuted(trips, axis=0)).broken_rules.round(1)
         rule   kind  share
    0  0 <= 1  order    0.4
    """
    names, cells, is_category = _together(real, synthetic)
    distance = list(map(_distance, *(table.T for table in cells), is_category))
    missing = [np.isnan(table).mean(axis=0) for table in cells]
    codes = _binned(np.concatenate(cells), is_category)
    real_v, synthetic_v = map(_associations, np.split(codes, [len(cells[0])]))
    pairs = np.triu_indices(len(names), 1)
    off = np.abs(synthetic_v - real_v)[pairs]
    worst = tuple(names[j[off.argmax()]] for j in pairs) if len(off) else None
    return Bunch(
        columns=names, distance=np.array(distance), missing=missing[1] - missing[0],
        association=real_v, synthetic_association=synthetic_v,
        worst=worst, broken_rules=_broken(names, *cells, is_category),
    )  # fmt: skip


def _broken(names, real, synthetic, is_category):
    """The rules of real rows that synthetic ones break, those broken most often first."""
    rules = list(rules_of(names, real, is_category))
    shares = np.array([rule.is_broken(synthetic).mean() for rule in rules])
    order = [k for k in np.argsort(-shares, kind="stable") if shares[k] > 0]
    return frame_or_bunch({
        "rule": [rules[k].text for k in order], "kind": [rules[k].kind for k in order],
        "share": shares[order] if order else np.zeros(0),
    })  # fmt: skip


def nearest_record_share(training, held_out, synthetic, *, random_state=None):
    """Share of the synthetic rows that are closer to a training row than to a held-out row.

    About ½ if the model has learned what all rows have in common, near 1 if it repeats its training
    rows. A row equally near to both counts ½.

    Parameters
    ----------
    training : array-like or data frame of shape (n_training, n_features)
        The rows that the model was fitted to.
    held_out : array-like or data frame of shape (n_held_out, n_features)
        Rows of the same population that it was not fitted to.
    synthetic : array-like or data frame of shape (n_synthetic, n_features)
        Rows drawn from the model.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for drawing rows of the larger of the first two tables, of which as
        many are used as the smaller one has.

    Returns
    -------
    share : float
        From 0 to 1, with a standard error of about 0.5 / √n_synthetic and more.

    Raises
    ------
    ValueError
        If the tables have different columns, or fewer than two rows.

    See Also
    --------
    c2st_score : Whether synthetic rows look real.

    Notes
    -----
    A column of numbers adds to the distance of two rows the difference of their ranks among the
    rows of all tables, as a share. Any other column adds 1 if the values differ. A missing cell
    differs by 1 from any value.

    A share of ½ does not prove that the rows are safe to publish. It is an average: individuals,
    above all unusual ones, may still be recognised, and someone who knows some columns of a person
    may learn others. Only a guarantee of the method, such as differential privacy, excludes that,
    and this package gives none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.metrics import nearest_record_share
    >>> training, held_out, fresh = np.random.default_rng(0).normal(size=(3, 500, 4))
    >>> nearest_record_share(training, held_out, training + 0.01)
    1.0
    >>> nearest_record_share(training, held_out, fresh) < 0.6
    True
    """
    _, cells, is_category = _together(training, held_out, synthetic)
    rows = np.concatenate(cells)
    numbers = rows[:, ~is_category]
    rows[:, ~is_category] = rankdata(numbers, axis=0, nan_policy="omit") / len(rows)
    *known, drawn = np.split(rows, np.cumsum([len(table) for table in cells[:-1]]))
    generator, n = check_random_state(random_state), min(map(len, known))
    known = [table[generator.permutation(len(table))[:n]] for table in known]
    to_training, to_held_out = (_least_distances(drawn, table) for table in known)
    is_nearer = np.sign(np.round(to_held_out - to_training, 9))
    return float(0.5 + is_nearer.mean() / 2)


def _together(*tables):
    """Names of the columns; numbers and codes of each table, NaN if missing; which are codes."""
    columns = [_columns(X) for X in tables]
    names = list(columns[0])
    odd = sorted({str(name) for own in columns for name in own.keys() ^ columns[0].keys()})
    if odd:
        raise ValueError(
            f"The tables have different columns: not all have {', '.join(odd[:5])}"
            f"{', ...' * (len(odd) > 5)}. Drop those, or rename them."
        )
    n_rows = [len(own[names[0]]) for own in columns]
    if min(n_rows) < 2:
        raise ValueError(f"The tables have {n_rows} rows. Each needs two or more.")
    first = np.cumsum(n_rows[:-1])
    found = [_coded(name, [own[name] for own in columns]) for name in names]
    rows = np.column_stack([own for own, _ in found])
    return names, np.split(rows, first), np.array([is_category for _, is_category in found])


def _columns(X):
    """Cells of the columns of a table, by name or number."""
    if is_frame(X):
        return {name: X[name] for name in names_of(X)}
    X = as_array(X)
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"A table has rows and columns; got an array of shape {X.shape}.")
    return dict(enumerate(X.T))


def _coded(name, columns):
    """Numbers or codes of a column in several tables as one, and whether they are codes.

    Frequent values have the least codes. Dates are numbers of microseconds.
    """
    in_frames = [column for column in columns if not isinstance(column, np.ndarray)]
    has_levels = any(declared_values(column)[0] is not None for column in in_frames)
    cells = [c if isinstance(c, np.ndarray) else cells_of(c) for c in columns]
    if all(unit_of_dates(own) is not None for own in cells):
        cells = [as_dates(own, "us") for own in cells]
        numbers = [np.where(np.isnat(own), np.nan, own.astype(np.float64)) for own in cells]
        return np.concatenate(numbers), False
    if not has_levels and all(map(holds_numbers, cells)):
        numbers = [as_numbers(own) if own.dtype.kind == "O" else own for own in cells]
        return np.concatenate(numbers).astype(np.float64), False
    numbers, others = set(), set()
    for own in cells:
        known = {value for value in own.tolist() if not is_missing(value)}
        (numbers if all(isinstance(value, Real) for value in known) else others).update(known)
    if numbers and others and numbers.isdisjoint(others):
        raise ValueError(
            f"Column {name!r} holds numbers in one table and other values in another, so that no "
            "cell would be like one of the other. Give both the same type, for example by .astype."
        )
    values = [value for own in cells for value in own.tolist()]
    counts = Counter(value for value in values if not is_missing(value))
    codes = {value: code for code, (value, _) in enumerate(counts.most_common())}
    return np.array([np.nan if is_missing(v) else codes[v] for v in values], np.float64), True


def _distance(real, synthetic, is_category):
    """Between the distributions of the observed cells of a column, from 0 to 1."""
    cells = [own[~np.isnan(own)] for own in (real, synthetic)]
    if not all(map(len, cells)):
        return float(any(map(len, cells)))  # cells in one table alone
    values = np.unique(np.concatenate(cells))
    shares = [np.bincount(np.searchsorted(values, own), minlength=len(values)) / len(own)
              for own in cells]  # fmt: skip
    off = shares[0] - shares[1]
    return np.abs(off).sum() / 2 if is_category else np.abs(np.cumsum(off)).max()


def _binned(rows, is_category):
    """Codes of all cells, with numbers in bins; a missing cell is a level, too."""
    codes = np.empty(rows.shape, dtype=np.intp)
    for own, code, has_codes in zip(rows.T, codes.T, is_category, strict=True):
        if not has_codes and not np.isnan(own).all():
            own = Bins.learn(own, most=N_BINS).encode(own)
        code[:] = np.nan_to_num(own, nan=np.nanmax(own, initial=-1) + 1)
    return codes


def _associations(codes):
    """Cramér's V of each pair of columns of codes, without its bias."""
    d = codes.shape[1]
    found = np.zeros((d, d))
    for j in range(d):
        for k in range(j, d):
            found[j, k] = found[k, j] = _association(codes[:, j], codes[:, k])
    return found


def _association(one, other):
    """Cramér's V of two columns; 0 if one is constant."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    n, sizes = len(one), np.array(table.shape)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    bias = (sizes - 1).prod() / (n - 1)
    square = np.square(table - expected) / expected
    most = (sizes - 1 - (sizes - 1) ** 2 / (n - 1)).min()
    return np.sqrt(max(square.sum() / n - bias, 0) / most) if most > 0 else 0.0


def _least_distances(rows, others):
    """The distance of each row to the nearest one of others."""
    found, step = np.empty(len(rows)), max(1, CHUNK // len(others))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        total = np.zeros((len(part), len(others)))
        for own, other in zip(part.T, others.T, strict=True):
            total += np.nan_to_num(np.minimum(np.abs(own[:, None] - other), 1), nan=1)
        found[start : start + step] = total.min(axis=1)
    return found
