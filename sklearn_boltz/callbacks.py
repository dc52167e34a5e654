"""Callbacks: checkpoints, and progress through those of scikit-learn.

The one file that knows scikit-learn's API of callbacks, which is experimental and exists from
version 1.9 on. Below that version the mixin is empty, the decorator returns its argument and the
iterations are not reported.
"""

import os
from contextlib import contextmanager
from copy import copy
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import joblib
import numpy as np

from sklearn_boltz._warnings import warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method):
        """Return `method` as it is."""
        return method


__all__ = ["Checkpoint"]

SECONDS = {"s": 1, "min": 60, "h": 3600}


class Checkpoint:
    """Save the model of a running fit to a file from time to time.

    A fit that was killed continues from the last saved model with ``warm_start=True``, with the
    same result as if it had not been interrupted. The file is written next to its final place and
    then renamed, so that it always holds a complete model, whose checksum is compared when it is
    loaded. Where the file cannot be written, for example on a full disk, the fit warns, keeps the
    file of before and goes on.

    Parameters
    ----------
    path : str or path-like
        The file, which :func:`joblib.load` reads.

    every : str or float, default="10 min"
        The time between two saved models, in seconds, or with a unit, ``"s"``, ``"min"`` or
        ``"h"``. A model is saved at the end of an epoch or another iteration; 0 saves each of them.

    Raises
    ------
    OSError
        When a fit begins, if no file can be written to the folder of `path`, or it is a folder.

    Notes
    -----
    Callbacks need scikit-learn 1.9 or later. RBMs, :class:`~sklearn_boltz.InfiniteRBM` and networks
    have `warm_start`. A number `max_iter` counts the epochs of each fit: see the example. A fit
    with `tempered` keeps the best epoch since it was last started.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import joblib
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_boltz import SDCPRBM
    >>> from sklearn_boltz.callbacks import Checkpoint
    >>> X = load_digits().data > 7
    >>> folder = TemporaryDirectory()
    >>> path = f"{folder.name}/digits.joblib"
    >>> model = SDCPRBM(16, max_iter=3, random_state=0)
    >>> model.set_callbacks(Checkpoint(path, every=0)).fit(X).n_iter_
    3

    Later, up to 5 epochs in all:

    >>> saved = joblib.load(path)
    >>> saved.set_params(warm_start=True, max_iter=5 - saved.n_iter_).fit(X).n_iter_
    5
    >>> folder.cleanup()
    """

    def __init__(self, path, every="10 min"):
        self.path, self.every = path, every

    def setup(self, estimator, context):
        """Start the clock; called when a fit begins."""
        self._seconds, self._saved = _seconds(self.every), monotonic()
        path = Path(self.path)
        if path.is_dir():
            raise IsADirectoryError(f"Checkpoint: {str(path)!r} is a folder. Give it a file name.")
        try:
            TemporaryDirectory(dir=path.parent, prefix=path.name).cleanup()
        except OSError as error:
            raise type(error)(
                f"Checkpoint: no file can be written to the folder of {str(path)!r} "
                f"({error.strerror}). Create the folder, or choose another."
            ) from error

    def teardown(self, estimator, context):
        """Nothing; called when a fit has ended."""

    def on_fit_task_begin(self, estimator, context):
        """Nothing; called before each epoch."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        """Save the model if it is time; called after each epoch, and at the end of a fit."""
        if context.task_name != "fit" and monotonic() - self._saved >= self._seconds:
            try:
                _save(fitted_estimator, Path(self.path))
            except OSError as error:
                warn(
                    f"Checkpoint: the model could not be saved as {str(self.path)!r} "
                    f"({error.strerror}). The file of before is as it was, and the fit goes on."
                )
            self._saved = monotonic()


def _seconds(time):
    """A time such as "10 min" in seconds."""
    number, _, unit = str(time).partition(" ")
    try:
        return float(number) * SECONDS[unit or "s"]
    except (KeyError, ValueError):
        raise ValueError(
            f"Checkpoint: every={time!r} is not a time. Give seconds, or a number with the unit s, "
            "min or h, such as '10 min'."
        ) from None


def _save(estimator, path):
    """Write an estimator without its callbacks to a file, all of it or nothing."""
    estimator = copy(estimator)
    for name in [name for name in vars(estimator) if "callback" in name]:
        delattr(estimator, name)
    with TemporaryDirectory(dir=path.parent, prefix=path.name) as folder:
        written = Path(folder) / path.name
        with written.open("wb") as file:
            joblib.dump(Checked(estimator), file)
            file.flush()
            os.fsync(file.fileno())  # before the name, also if the machine loses power
        os.replace(written, path)


class Checked:
    """An estimator that is pickled with a checksum, and comes back as itself."""

    def __init__(self, estimator):
        self.estimator = estimator

    def __reduce__(self):
        buffer = BytesIO()
        joblib.dump(self.estimator, buffer)
        pickled = buffer.getvalue()
        return restored, (pickled, sha256(pickled).hexdigest())


def restored(pickled, checksum):
    """The estimator of a file, if the checksum is right."""
    if sha256(pickled).hexdigest() != checksum:
        raise ValueError(
            "The file of this checkpoint is damaged: its checksum is wrong. Restore it from a "
            "backup, or begin the fit again."
        )
    return joblib.load(BytesIO(pickled))


def context_of_fit(estimator):
    """Attributes that scikit-learn needs to tear down the callbacks of the running fit.

    They are set together, or, after Ctrl-C between them, of no use.
    """
    names = "_callback_fit_ctx", "_skl_callbacks_to_teardown"
    context = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
    return context if len(context) == len(names) else {}


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
