"""Stability selection: which couplings are selected again and again from halves of the rows."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, validate_params

from sklearn_boltz.networks import SparseFVBM
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.statistics._arguments import REPEATED
from sklearn_boltz.statistics._refits import (
    Refits,
    codes_and_scores,
    n_divisible,
    random_part,
    refuse_scores,
)
from sklearn_boltz.statistics._results import pair_frame
from sklearn_boltz.tables._values import as_objects
from sklearn_boltz.tables._weights import checked_weights

# From the least penalty without a coupling down to its hundredth.
N_ALPHAS, LEAST_SHARE = 50, 0.01


@dataclass(frozen=True, repr=False)
class StabilitySelection:
    """Frequency with which each pair of variables is coupled in networks of half the rows.

    The result of `stability_selection`.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The penalties, falling.
    path : ndarray of shape (n_alphas, n_features, n_features)
        The share of the halves that have selected each pair with this penalty, or a larger one.
    threshold : float
        The smallest share of the halves with which a pair is selected.
    max_edges : int
        The number of pairs at which the path of each half ends.
    max_false : float
        The bound on the expected number of falsely selected pairs.
    feature_names : ndarray of str of shape (n_features,)
        Names of the variables.

    See Also
    --------
    stability_selection : The selection, with its references.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM
    >>> from sklearn_boltz.statistics import stability_selection
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(200, 4))
    >>> X[:, 1] = X[:, 0]
    >>> X[::9, 1] *= -1
    >>> model = SparseFVBM()
    >>> stability_selection(model, X, n_pairs=5, random_state=0)
    StabilitySelection: 1 pair in at least 75% of the halves, at most 0.33 false pairs expected
    """

    alphas: np.ndarray
    path: np.ndarray
    threshold: float
    max_edges: int
    max_false: float
    feature_names: np.ndarray

    @property
    def probability(self):
        """The share of the halves that have selected each pair, (n_features, n_features)."""
        return self.path[-1]

    @property
    def selected(self):
        """Which pairs are selected, ndarray of bool of shape (n_features, n_features)."""
        return self.probability >= self.threshold

    def to_frame(self):
        """Return a table of all pairs, the most often selected first; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each pair of variables, with their names as the index.
        """
        matrices = {"probability": self.probability, "selected": self.selected}
        frame = pair_frame(self.feature_names, matrices)
        return frame.sort_values("probability", ascending=False, kind="stable")

    def __repr__(self):
        n_edges = np.triu(self.selected, 1).sum()
        return (
            f"StabilitySelection: {n_edges} {'pair' if n_edges == 1 else 'pairs'} in at least "
            f"{self.threshold:.0%} of the halves, at most {self.max_false:.2g} false pairs expected"
        )


@validate_params(
    REPEATED
    | {
        "estimator": [BaseEstimator],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "max_false": [Interval(Real, 0, None, closed="neither")],
        "alphas": ["array-like", None],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=False,
)
def stability_selection(
    estimator,
    X,
    *,
    n_pairs=50,
    threshold=0.75,
    max_false=1.0,
    alphas=None,
    sample_weight=None,
    n_jobs=None,
    random_state=None,
    verbose=0,
):
    """Select the couplings that occur in most networks of random halves of the rows.

    The rows are divided at random into two halves [2]_, again and again. For each half, the penalty
    falls along a path until a given number of pairs is selected. A pair is then selected if at
    least a share `threshold` of all halves selected it [1]_.

    Parameters
    ----------
    estimator : SparseFVBM
        An estimator with a penalty that selects. Its `alpha` is not used. It is not changed.
    X : array-like of shape (n_samples, n_features)
        The data; NaN is a missing cell.
    n_pairs : int, default=50
        Number of random divisions into two halves.
    threshold : float, default=0.75
        The share π of the halves, above 0.5.
    max_false : float, default=1.0
        The bound on the expected number of false pairs, see Notes. The number of pairs at which a
        path ends follows from it.
    alphas : array-like of shape (n_alphas,), default=None
        The penalties. None means 50 values, from the smallest with which a fit to all rows has no
        coupling, down to a hundredth of it.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts; None for once each. Of counts, copies of rows are divided; other
        rows have their weight in one of the halves (:ref:`weights`).
    n_jobs : int, default=None
        Number of fits at a time, in processes of joblib. None means 1, unless in a context of
        :class:`joblib.parallel_config`. The result does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.
    verbose : int, default=0
        If positive, show a bar with the time left, after two seconds.

    Returns
    -------
    selection : StabilitySelection
        How often each pair was selected, and which pairs reach the threshold.

    Raises
    ------
    ValueError
        If the penalty does not select, if numbers have normal scores, or if the bound is so small
        that no pair could be selected.

    See Also
    --------
    sklearn_boltz.SparseFVBM : The network of a table.
    compare_groups : Tests whether two groups of rows have the same network.

    Notes
    -----
    Let q be the number of pairs at which a path ends, and p the number of all pairs, or of those
    that `edges` allows. Call a pair rare if a half selects it with a probability of no more than
    q / p. The expected number of rare pairs that are selected is at most q² / ((2π - 1) p) [2]_,
    without assumptions about the data. If false pairs are exchangeable and a half does better than
    at random, this is a bound on the number of false pairs [1]_. Hence
    q = √((2π - 1) p `max_false`), rounded down.

    References
    ----------
    .. [1] N. Meinshausen and P. Bühlmann, "Stability Selection", Journal of the Royal Statistical
       Society B 72(4), 417–473, 2010. https://doi.org/10.1111/j.1467-9868.2010.00740.x
    .. [2] R. D. Shah and R. J. Samworth, "Variable Selection with Error Control: Another Look at
       Stability Selection", Journal of the Royal Statistical Society B 75(1), 55–80, 2013.
       https://doi.org/10.1111/j.1467-9868.2011.01034.x

    Examples
    --------
    The third column mostly repeats the first.

    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM
    >>> from sklearn_boltz.statistics import stability_selection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(300, 5))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=300, p=[0.2, 0.8])
    >>> model = SparseFVBM()
    >>> selection = stability_selection(model, X, n_pairs=10, random_state=0)
    >>> np.argwhere(np.triu(selection.selected))
    array([[0, 2]])
    """
    if not isinstance(estimator, SparseFVBM):
        raise TypeError(f"stability_selection takes a SparseFVBM; got {type(estimator).__name__}.")
    if estimator.penalty == "l2":
        raise ValueError(
            "stability_selection needs a penalty that sets couplings to 0, and penalty='l2' does "
            "not: set penalty='group', 'l1' or 'elasticnet'."
        )
    model = clone(estimator).set_params(alpha="ebic").fit(X, sample_weight=sample_weight)
    reason = "stability_selection: a penalty selects among categories alone"
    refuse_scores(model, reason, "Set columns='binned'.")
    if len(model._varying) < 2:
        raise ValueError(
            "stability_selection chooses among pairs of columns that vary, so it needs two such "
            f"columns. Columns in X: {model.n_features_in_}; of these vary: {len(model._varying)}."
        )
    codes, z = codes_and_scores(model, X)
    weights = checked_weights(sample_weight, codes)
    allowed = model._allowed_pairs()
    allowed = np.ones((model.n_features_in_,) * 2) if allowed is None else allowed
    n_possible = int(np.triu(allowed, 1).sum())
    max_edges = int(np.sqrt((2 * threshold - 1) * n_possible * max_false))
    if max_edges < 1:
        raise ValueError(
            f"stability_selection: with max_false={max_false:g} and threshold={threshold:g}, no "
            f"half may select even one of the {n_possible} pairs. Raise max_false or threshold."
        )
    if alphas is None:
        first = np.nanmax(model.alphas_)
        alphas = np.geomspace(first, LEAST_SHARE * first, N_ALPHAS)
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    refits, generator = Refits(model, codes, z), make_generator(random_state)
    halves = []
    for _ in range(n_pairs):
        one = random_part(weights, n_divisible(weights) // 2, generator)
        halves += [one, random_part(weights - one, n_divisible(weights) // 2, generator)]
    tasks = ((refits, half, alphas, max_edges) for half in halves)
    bar = progress_bar("stability selection", len(halves), verbose)
    entered = np.array(in_parallel(path_entries, tasks, n_jobs, bar))
    return StabilitySelection(
        alphas=alphas,
        path=np.array([(entered <= k).mean(axis=0) for k in range(len(alphas))]),
        threshold=threshold,
        max_edges=max_edges,
        max_false=max_edges**2 / ((2 * threshold - 1) * n_possible),
        feature_names=as_objects(model._input_names()),
    )


def path_entries(refits, half, alphas, max_edges):
    """At which number of a path each pair is selected first, (d, d); the end if never.

    The path ends before a penalty by which more than `max_edges` pairs would have been selected.
    """
    d, initial = refits.rows.shape[1], (None, None)
    entered = np.full((d, d), len(alphas))
    for k, alpha in enumerate(alphas):
        own = refits._replace(params={"alpha": float(alpha)})
        model = own.fit(half, initial)
        initial = model.coupling_, model.intercept_
        coupled = (model._pair_norms() > 0) & (entered == len(alphas))
        if np.triu(coupled | (entered < len(alphas)), 1).sum() > max_edges:
            break
        entered[coupled] = k
    return entered
