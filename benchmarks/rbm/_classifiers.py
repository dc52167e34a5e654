"""What the benchmarks of classifiers share: a fit, its errors and seconds."""

from time import process_time

import numpy as np
from _common import unconverged_is_fine
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
