"""Weights of rows that resemble each other, such as the sequences of an alignment."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array

from sklearn_boltz.metrics._similar_rows import BLOCK, count_similar

# Rows that stay in the first cache while all others are compared with them.
TILE_ROWS = 128


def sequence_weights(X, identity=0.8):
    """Weigh each row by 1 / the number of rows that are similar to it, itself included.

    Sequences of an alignment have a common descent: some families of organisms were sequenced many
    times, others once. Rows that share a part of `identity` of their sites then count as one, or
    nearly [1]_. Pass the weights as ``sample_weight`` to ``fit``. Their sum is known as the
    effective number of sequences.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        A table of codes: integers, letters, any values that are equal or not. A missing cell, such
        as NaN or None, is equal to another missing cell of its column, and to nothing else: so
        does a gap equal a gap in the programs of the field.
    identity : float, default=0.8
        Two rows are similar if at least this part of their columns is equal, in (0, 1]. With 1,
        equal rows together count as one.

    Returns
    -------
    weights : ndarray of shape (n_samples,), float64
        From ``1 / n_samples`` to 1.

    Notes
    -----
    All pairs of rows are compared, by a compiled loop in one thread: 10,000 rows of 200 columns
    take less than a second, ten times as many rows 100 times as long. Equal rows are compared
    once.

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
    # The least number of equal sites whose share, as it is rounded, is `identity` or more.
    enough = np.searchsorted(np.arange(n_columns + 1) / n_columns, identity)
    rows, inverse, multiplicity = _distinct_rows(_byte_codes(X))
    counts = multiplicity.copy()
    for begin in range(0, len(rows), TILE_ROWS):
        end = min(begin + TILE_ROWS, len(rows))
        count_similar(rows, multiplicity, counts, begin, end, n_columns - enough)
    return (1 / counts)[inverse]


def _byte_codes(X):
    """Codes from 0, of one byte where that is enough, in columns to a multiple of a block."""
    if X.dtype.kind in "iu" and int(X.max()) - int(X.min()) <= 255:
        # Differences that overflow are right all the same in their last byte.
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
    """The number of each value in the column, a missing cell being a value."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1]
    numbers = {}
    return np.array(
        [numbers.setdefault(None if _is_missing(v) else v, len(numbers)) for v in column]
    )


def _is_missing(value):
    if isinstance(value, str):
        return False
    # pandas may not be there: its NA, and its NaT, are known by what they print.
    return value is None or str(value) in ("nan", "<NA>", "NaT")


def _distinct_rows(codes):
    """The rows without repetitions, the place of each, and how often each occurs."""
    bytes_of_rows = codes.view(f"V{codes.shape[1] * codes.itemsize}").ravel()
    _, first, inverse, multiplicity = np.unique(
        bytes_of_rows, return_index=True, return_inverse=True, return_counts=True
    )
    return codes[first], inverse, multiplicity.astype(np.int64)
