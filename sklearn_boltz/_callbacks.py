"""Progress through scikit-learn's callbacks; the one file that knows their API.

The API is experimental and exists from scikit-learn 1.9 on. Below that version the mixin
is empty, the decorator returns its argument and the iterations are not reported.
"""

from contextlib import contextmanager

import numpy as np

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method):
        """Return `method` as it is."""
        return method


@contextmanager
def iterations(estimator, X, y, *, name, max_iter=None):
    """Report the iterations of a fit to the callbacks of an estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator whose `fit`, decorated by `with_callbacks`, is running.
    X, y : array-like
        What `fit` was given.
    name : str
        What an iteration is called, for example ``"move"`` or ``"epoch"``.
    max_iter : int, default=None
        Number of iterations at most, if it is known.

    Yields
    ------
    end_iteration : callable
        To be called at the end of each iteration, with a function that returns the fitted
        attributes as they are then; it returns whether a callback asks to stop. The attributes
        are only computed for callbacks that look at them.
    """
    # Without callbacks a fit must not pay for them.
    if not getattr(estimator, "_skl_callbacks", None):
        yield lambda attributes: False
        return
    if y is None and hasattr(X, "shape"):
        # scikit-learn's ScoringMonitor scores only where there is a target. Ours ignore it.
        y = np.zeros(X.shape[0])
    context = estimator._init_callback_context(max_subtasks=max_iter)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def end_iteration(attributes):
        step = context.subcontext(task_name=name)
        step.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        return bool(
            step.call_on_fit_task_end(
                estimator=estimator, X=X, y=y, reconstruction_attributes=attributes
            )
        )

    yield end_iteration
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes={})
