"""Densities for classification: one of columns and class together, or one for each class."""

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.meta._default import timed_fit
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.tables._coded import Coded
from sklearn_boltz.tables._column import Plain
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._frames import with_constant
from sklearn_boltz.tables._remedies import Place

# Number of transitions for a row whose missing cells have too many joint states.
N_STEPS = 200
# Largest error of ln Z, in nats, for which no rows are held out to correct it.
MAX_ERROR = 0.1
# Smallest probability of which a logarithm is taken.
TINY = np.finfo(np.float64).tiny


class JointDensity:
    """The joint density p(x, y), where y is one more column of codes.

    Parameters
    ----------
    density : estimator
        An estimator with `predict_column_proba`; it need not be fitted.
    shares : ndarray of float64 of shape (n_classes,)
        Shares of the classes in the training rows.
    seed : int
        Seed for rows with too many missing cells.
    """

    def __init__(self, density, shares, seed):
        self.density, self.shares, self.seed = density, shares, seed

    def fit(self, rows, y, weights, n_jobs):
        """Fit the density to rows of codes and their classes; -> seconds. Weights may be None."""
        table = Encoder([*rows.table.columns, Plain(Place(None, "the class"))])
        codes = _with_class(rows, y)
        fitted, seconds = timed_fit(self.density, Coded(table, codes, codes), weights)
        self.fitted = [fitted]
        return [seconds]

    def are_uncertain(self):
        """False: errors of ln Z are the same for all classes."""
        return False

    def log_likelihoods(self, rows):
        """ln p(x | y) plus a constant, (n, n_classes); no row depends on the others."""
        rows, options = _with_class(rows), {"n_steps": N_STEPS, "random_state": self.seed}
        p = self.fitted[0].predict_column_proba(rows, rows.shape[1] - 1, **options)
        return np.log(np.maximum(p, TINY)) - np.log(self.shares)

    def score_samples(self, rows, log_priors):
        """ln p(x) of each row."""
        ratios = self.log_likelihoods(rows) + log_priors
        return self.fitted[0].score_samples(_with_class(rows)) + logsumexp(ratios, axis=1)


class FittedJoint:
    """A joint density p(x, y) that is fitted already, and whose last column is the class.

    Parameters
    ----------
    density : estimator
        Fitted, with `score_samples`.
    classes : ndarray of shape (n_classes,)
        As the density has them.
    shares : ndarray of float64 of shape (n_classes,)
        Shares of the classes in the training rows.
    """

    def __init__(self, density, classes, shares):
        self.fitted, self.classes, self.shares = [density], classes, shares

    def fit(self, rows, y, weights, n_jobs):
        """Return that the fit took no time."""
        return [0.0]

    def are_uncertain(self):
        """False: errors of ln Z are the same for all classes."""
        return False

    def log_likelihoods(self, rows):
        """ln p(x | y) plus a constant, of shape (n, n_classes)."""
        density = self.fitted[0]
        name = getattr(density, "feature_names_in_", [None])[-1]
        tables = [with_constant(rows.X, name, c) for c in self.classes.tolist()]
        found = list(map(density.score_samples, tables))
        return np.column_stack(found) - np.log(self.shares)

    def score_samples(self, rows, log_priors):
        """ln p(x) of each row."""
        return logsumexp(self.log_likelihoods(rows) + log_priors, axis=1)


class DensityOfEachClass:
    """A density p(x | y) for each class, fitted to its own rows.

    Parameters
    ----------
    density : estimator
        An estimator with `score_samples`; it need not be fitted.
    """

    def __init__(self, density):
        self.density = density

    def fit(self, rows, y, weights, n_jobs):
        """Fit the densities to rows and their classes; -> seconds of each. Weights may be None."""
        tasks = []
        for some in (np.flatnonzero(y == c) for c in range(y.max() + 1)):
            own = None if weights is None else weights[some]
            part = rows.some(some)
            part = part.by(part.own_table(own)) if rows.is_own else part
            tasks.append((self.density, part, own))
        self.fitted, seconds = map(list, zip(*in_parallel(timed_fit, tasks, n_jobs), strict=True))
        return seconds

    def are_uncertain(self):
        """Whether errors of ln Z matter when classes are compared."""
        return any(map(_is_uncertain, self.fitted))

    def log_likelihoods(self, rows):
        """ln p(x | y), of shape (n, n_classes)."""
        return np.column_stack([d.score_samples(_taken(rows, d)) for d in self.fitted])

    def score_samples(self, rows, log_priors):
        """ln p(x) of each row."""
        return logsumexp(self.log_likelihoods(rows) + log_priors, axis=1)


def _taken(rows, density):
    """The rows as the density of a class takes them."""
    return rows.by(density._encoder) if rows.is_own else rows.taken


def _is_uncertain(density):
    """Whether the error of ln Z is unknown or too large."""
    if not hasattr(density, "log_partition"):
        return False
    estimate = density.log_partition(random_state=0)
    return estimate.method != "exact" and not (estimate.trusted and estimate.std_err <= MAX_ERROR)


def _with_class(rows, y=np.nan):
    """Codes of rows with one more column, the class."""
    y = np.broadcast_to(np.asarray(y, dtype=np.float64), len(rows.codes))
    return np.column_stack([rows.codes, y])
