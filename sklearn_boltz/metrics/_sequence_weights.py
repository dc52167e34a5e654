"""Weights for similar rows, such as related sequences of an alignment."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array

from sklearn_boltz.metrics._similar_rows import BLOCK, count_similar
from sklearn_boltz.tables._distinct import find_distinct
from sklearn_boltz.tables._values import is_missing

# Number of rows that stay in the first-level cache while all others are compared with them.
TILE_ROWS = 128


def sequence_weights(X, identity=0.8):
    """Weight each row by 1 / (number of rows similar to it, including itself).

    The sequences of an alignment are related: some groups of organisms were sequenced many times,
    others once. With these weights, a group of rows that agree in a fraction `identity` of their
    sites counts approximately as a single row [1]_. Pass the weights as ``sample_weight`` to
    ``fit``, which goes by their ratios (:ref:`weights`). Their sum is called the effective number
    of sequences.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        A table of codes: integers, letters or any other values that can be compared. A missing
        cell, such as NaN or None, equals only another missing cell of its column. This is also how
        other programs treat gaps.
    identity : float, default=0.8
        Two rows are similar if at least this fraction of their columns is equal, in (0, 1]. With
        1, equal rows together count as one.

    Returns
    -------
    weights : ndarray of float64 of shape (n_samples,)
        Weights from ``1 / n_samples`` to 1.

    Raises
    ------
    ValueError
        If `identity` is not above 0 and at most 1.

    See Also
    --------
    sklearn_boltz.datasets.read_alignment : Reads an alignment from a file.

    Notes
    -----
    All pairs of distinct rows are compared, by a compiled loop in one thread. 10,000 rows of 200
    columns take less than a second; ten times as many rows take 100 times as long.

    References
    ----------
    .. [1] F. Morcos, A. Pagnani, B. Lunt, A. Bertolino, D. S. Marks, C. Sander, R. Zecchina,
       J. N. Onuchic, T. Hwa, M. Weigt (2011). "Direct-coupling analysis of residue coevolution
       captures native contacts across many protein families". PNAS 108(49), E1293-E1301.

    Examples
    --------
    >>> from sklearn_boltz.metrics import sequence_weights
    >>> X = [list("MKVLA"), list("MKVLG"), list("MKVIG"), list("TRCDE")]
    >>> sequence_weights(X)
    array([0.5       , 0.33333333, 0.5       , 1.        ])
    """
    if not isinstance(identity, Real) or not 0 < identity <= 1:
        raise ValueError(f"identity must be a number above 0 and at most 1, got {identity!r}.")
    X = check_array(X, dtype=None, ensure_all_finite="allow-nan", input_name="X")
    n_samples, n_columns = X.shape
    # The smallest number of equal sites whose share is at least `identity`, with its rounding.
    enough = np.searchsorted(np.arange(n_columns + 1) / n_columns, identity)
    rows, first, inverse = find_distinct(_byte_codes(X))
    rows, multiplicity = rows[first], np.bincount(inverse)
    counts = multiplicity.copy()
    for begin in range(0, len(rows), TILE_ROWS):
        end = min(begin + TILE_ROWS, len(rows))
        count_similar(rows, multiplicity, counts, begin, end, n_columns - enough)
    return (1 / counts)[inverse]


def _byte_codes(X):
    """Codes from 0, of one byte if possible, padded to a multiple of a block of columns."""
    if X.dtype.kind in "iu" and int(X.max()) - int(X.min()) <= 255:
        # Differences that overflow are still correct in their last byte.
        columns, largest = (X - X.min()).T, 255
    else:
        columns = [_column_codes(column) for column in X.T]
        largest = max(codes.max() for codes in columns)
    n_columns = -(-X.shape[1] // BLOCK) * BLOCK
    out = np.zeros((len(X), n_columns), dtype=np.uint8 if largest <= 255 else np.uint32)
    for j, codes in enumerate(columns):
        out[:, j] = codes
    return out


def _column_codes(column):
    """The code of each value in the column; a missing cell is a value."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1]
    numbers = {}
    return np.array(
        [numbers.setdefault(None if is_missing(v) else v, len(numbers)) for v in column]
    )
