"""What the benchmarks of classifiers share: fits one by one, kept in a table."""

import csv
from time import process_time

import numpy as np
from _common import save_table, unconverged_is_fine
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits


def measure(model, X, y, X_test, y_test):
    """Fit a classifier and predict test rows, in one thread.

    Returns
    -------
    error : float
        Part of the test rows.
    loss : float
        NaN where there are no probabilities.
    fit_seconds, predict_seconds : float
        Of the processor.
    n_iter : float
        Epochs, or iterations of another kind; NaN where there are none.
    """
    with unconverged_is_fine(), threadpool_limits(1):
        start = process_time()
        model.fit(X, y)
        fitted = process_time()
        if hasattr(model, "predict_proba"):
            probability = model.predict_proba(X_test)
            label, loss = model.classes_[probability.argmax(axis=1)], log_loss(y_test, probability)
        else:
            label, loss = model.predict(X_test), np.nan
        end = process_time()
    n_iter = np.max(getattr(model, "n_iter_", np.nan))
    return np.mean(label != y_test), loss, fitted - start, end - fitted, n_iter


def read(path, n_keys):
    """The fits that were kept: rows of the table by their first `n_keys` cells."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {tuple(row[:n_keys]): row for row in list(csv.reader(file))[1:]}


def keep(path, header, key, figures):
    """Add one fit to the table, or put it in the place of an older one."""
    row = [*key, *(f"{value:.5g}" for value in figures)]
    print(*row, flush=True)
    # Read once more: another process may have added a row.
    save_table(path, header, (read(path, len(key)) | {tuple(key): row}).values())


def fits_to_make(keys, path, again):
    """Yield the keys that the table does not have, or all of them."""
    for key in keys:
        if again or key not in read(path, len(key)):
            yield key
