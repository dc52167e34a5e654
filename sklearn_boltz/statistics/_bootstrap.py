"""The bootstrap: how much a network varies when the rows are drawn again."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy.stats import norm
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._methods import fingerprint
from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.statistics._arguments import REPEATED, counted, of_network
from sklearn_boltz.statistics._refits import Refits, refuse_scores, resampled
from sklearn_boltz.statistics._results import NetworkParameters, parameter_frame
from sklearn_boltz.statistics._standard_errors import (
    estimates,
    named_parameters,
    separated_directions,
)
from sklearn_boltz.statistics.covariance._categorical import places_of_categories
from sklearn_boltz.statistics.covariance._curvature import changed
from sklearn_boltz.tables._weights import are_counts, checked_weights

# Sweeps of the chains that draw rows, where there are too many states to enumerate.
N_STEPS = 200


@dataclass(frozen=True, repr=False)
class NetworkBootstrap(NetworkParameters):
    """Estimates from resampled rows.

    The result of :func:`~sklearn_boltz.statistics.bootstrap`. Parameters are in the order of
    `PairwiseInference`.

    Parameters
    ----------
    estimate : ndarray of shape (n_parameters,)
        The estimates from the rows themselves.
    resamples : ndarray of shape (n_resamples, n_parameters)
        The estimates from each resample.
    converged : ndarray of bool of shape (n_resamples,)
        Whether the fit of each resample converged.
    separated : ndarray of bool of shape (n_parameters,)
        The parameters that the rows themselves separate, see `PairwiseInference`. They have neither
        standard errors nor intervals.
    names : ndarray of str of shape (n_parameters,)
        ``b[x0]`` for an intercept, ``m[x0,x1]`` for a coupling.
    confidence_level : float
        Level of the confidence intervals.
    n_values : ndarray of shape (n_features,) or None
        Number of values of each variable; None if all are binary.
    seed : int
        The random numbers of a resample are made from this seed and the number of the resample.
    source : str
        A digest of the rows and of how they were resampled.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(1)
    >>> X = rng.choice([-1, 1], size=(300, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=300, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> result = statistics.bootstrap(model, X, 100, confidence_level=0.99, random_state=0)
    >>> low, high = result.interval()
    >>> result.names[(low > 0) | (high < 0)]
    array(['m[x0,x2]'], dtype=object)

    100 more resamples give the same result as 200 in a single call:

    >>> result = statistics.bootstrap(model, X, 100, previous=result)
    >>> result.resamples.shape
    (200, 6)
    """

    estimate: np.ndarray
    resamples: np.ndarray
    converged: np.ndarray
    separated: np.ndarray
    names: np.ndarray
    confidence_level: float
    n_values: np.ndarray | None
    seed: int
    source: str

    @property
    def couplings(self):
        """The couplings of each resample, ndarray of shape (n_resamples, \\*coupling_.shape)."""
        return np.nan_to_num([self.coupling_matrix(values) for values in self.resamples])

    @property
    def edge_frequency(self):
        """The share of the resamples in which each pair of variables has a coupling.

        An ndarray of shape (n_features, n_features), symmetric, 0 on the diagonal. Without a
        penalty that sets couplings to 0, all are 1.
        """
        first, second = self.columns
        n_features = int(second.max()) + 1
        frequency = np.zeros((n_features, n_features))
        numbers = first * n_features + second
        for number in np.unique(numbers[first < second]):
            j, k = divmod(number, n_features)
            share = self.resamples[:, numbers == number].any(axis=1).mean()
            frequency[j, k] = frequency[k, j] = share
        return frequency

    @property
    def std_err(self):
        """Standard deviations over the resamples, ndarray of shape (n_parameters,)."""
        self._check_number()
        return np.where(self.separated, np.nan, self.resamples.std(axis=0, ddof=1))

    def interval(self, method="bias-corrected"):
        """Return confidence intervals of the parameters.

        Parameters
        ----------
        method : {"bias-corrected", "percentile"}, default="bias-corrected"
            ``"percentile"`` takes quantiles of the resamples. ``"bias-corrected"`` shifts these
            quantiles, to correct for the median of the resamples not being the estimate [1]_.

        Returns
        -------
        low, high : ndarray of shape (n_parameters,)
            The ends of the intervals; NaN where the rows separate a parameter.

        Raises
        ------
        ValueError
            If there is one resample only.

        Notes
        -----
        With a penalty, intervals are for the mean of the penalised estimate, which is closer to 0
        than the truth. Read them as a measure of stability.

        References
        ----------
        .. [1] B. Efron, "Nonparametric Standard Errors and Confidence Intervals", Canadian Journal
           of Statistics 9(2), 139–158, 1981. https://doi.org/10.2307/3314608
        """
        if method not in ("bias-corrected", "percentile"):
            raise ValueError(f"method must be 'bias-corrected' or 'percentile', got {method!r}.")
        self._check_number()
        z, shift = norm.ppf((1 + self.confidence_level) / 2), 0.0
        if method == "bias-corrected":
            below = (self.resamples < self.estimate).sum(axis=0)
            equal = (self.resamples == self.estimate).sum(axis=0)
            # Between 0 and 1, also where all resamples are on one side.
            shift = norm.ppf((below + equal / 2 + 0.5) / (len(self.resamples) + 1))
        ordered = np.sort(np.where(self.separated, np.nan, self.resamples), axis=0)
        return tuple(quantiles(ordered, norm.cdf(2 * shift + side * z)) for side in (-1, 1))

    def to_frame(self):
        """Return a table of the couplings; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each coupling, with its name as the index: the estimate, its standard error,
            the bias-corrected interval, and how often its pair is coupled.

        Raises
        ------
        ImportError
            If pandas is not installed. Without it, use the attributes and `interval`.
        ValueError
            If there is one resample only.
        """
        first, second = self.columns
        pairs = first < second
        low, high = self.interval()
        columns = {
            "estimate": self.estimate,
            "std_err": self.std_err,
            "ci_low": low,
            "ci_high": high,
            "edge_frequency": self.edge_frequency[first, second],
        }
        columns = {name: values[pairs] for name, values in columns.items()}
        return parameter_frame(self.names[pairs], columns)

    def _check_number(self):
        if len(self.resamples) < 2:
            raise ValueError(
                "NetworkBootstrap: standard errors and intervals need at least two resamples, and "
                "there is one. Add more: bootstrap(network, X, 200, previous=result)."
            )

    def __repr__(self):
        return (
            f"NetworkBootstrap of {len(self.estimate)} parameters, {len(self.resamples)} resamples"
        )


def quantiles(ordered, levels):
    """The quantile of each column of sorted values, linear between values."""
    place = np.broadcast_to(levels, ordered.shape[1:]) * (len(ordered) - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, len(ordered) - 1)
    ends = [np.take_along_axis(ordered, k[None], axis=0)[0] for k in (low, high)]
    return ends[0] + (place - low) * (ends[1] - ends[0])


@of_network(
    REPEATED
    | {
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
        "method": [StrOptions({"nonparametric", "parametric"})],
        "reselect": ["boolean"],
        "previous": [NetworkBootstrap, None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    },
    numbers=True,
)
def bootstrap(
    network,
    X,
    n_resamples=200,
    *,
    sample_weight=None,
    method="nonparametric",
    reselect=True,
    previous=None,
    confidence_level=0.95,
    n_jobs=None,
    random_state=None,
    verbose=0,
):
    """Fit resampled rows, to assess the uncertainty of couplings and edges.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    X : array-like of shape (n_samples, n_features)
        The training data; NaN is a missing cell.
    n_resamples : int, default=200
        Number of resamples; with `previous`, of additional resamples.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the fit. As many rows are drawn as the weights sum to.
    method : {"nonparametric", "parametric"}, default="nonparametric"
        ``"nonparametric"`` draws rows from `X` with replacement. ``"parametric"`` draws rows
        from the model, with the missing cells and weights of `X`.
    reselect : bool, default=True
        Whether the penalty is chosen again for each resample, if `SparseFVBM` has chosen it, as in
        bootnet [1]_. If not, all have the same: that is faster, and leaves out the uncertainty of
        the choice. With ``FVBMPseudoLikelihood(alpha="auto")`` neither the estimate nor the
        resamples have a penalty, as in `inference`; but with bins of numbers all have one, each its
        own.
    previous : NetworkBootstrap, default=None
        The result of an earlier call for the same rows, to which resamples are added. The
        result is the same as if all had been asked for at once; `random_state` is not used.
    confidence_level : float, default=0.95
        Level of the confidence intervals.
    n_jobs : int, default=None
        Number of fits at a time, in processes of joblib. None means 1, unless in a context of
        :class:`joblib.parallel_config`. The result does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.
    verbose : int, default=0
        If positive, show a bar with the time left, after two seconds.

    Returns
    -------
    result : NetworkBootstrap
        With `couplings` and `edge_frequency`; its method `interval` has intervals.

    Raises
    ------
    ValueError
        If `previous` belongs to other rows, another fit or another method; if
        ``reselect=False`` although a penalty was chosen for each variable; or if numbers have
        normal scores and `method` is ``"parametric"``.

    Warns
    -----
    UserWarning
        If fits of resamples did not converge, for example because there was no maximum.

    Notes
    -----
    Where numbers have normal scores, parameters are those of
    :func:`~sklearn_boltz.statistics.joint_network`, and all resamples have the scores of the fit.

    References
    ----------
    .. [1] S. Epskamp, D. Borsboom and E. I. Fried, "Estimating Psychological Networks and Their
       Accuracy", Behavior Research Methods 50(1), 195–212, 2018.
       https://doi.org/10.3758/s13428-017-0862-1

    Examples
    --------
    How often is each pair selected again from resampled rows? The third column mostly repeats the
    first; the others are independent.

    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(200, 4))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=200, p=[0.2, 0.8])
    >>> model = SparseFVBM().fit(X)
    >>> result = statistics.bootstrap(model, X, 20, random_state=0)
    >>> result.edge_frequency[np.triu_indices(4, 1)]
    array([0.05, 1.  , 0.1 , 0.05, 0.1 , 0.1 ])
    """
    if method == "parametric":
        reason = "bootstrap: method='parametric' draws categories alone"
        refuse_scores(network, reason, "Leave `method` out.")
    codes, weights = counted(network, X, sample_weight)
    model, z = resampled(network, codes, weights), np.empty((len(codes), 0))
    separated = changed(separated_directions(model, codes, weights))
    if model._gaussians is not None:
        codes, z, weights = scored_rows(model, X, sample_weight)
        places = places_of_categories(model._encoder.coding, model._layout())
        separated = np.where(places < 0, False, separated[places])
    refits = refits_of(model, codes, z, reselect)
    parameters = named_parameters(model)
    if z.shape[1]:
        parameters["estimate"] = estimates(refits.fit(weights))
    options = np.array([method == "parametric", reselect])
    source = fingerprint([codes, weights, parameters["estimate"], options])
    if previous is not None and previous.source != source:
        raise ValueError(
            "bootstrap: `previous` is of other rows or weights, another "
            "fit, or another method. Give the same, or begin anew without `previous`."
        )
    seed = int(make_generator(random_state).integers(2**63))
    seed = seed if previous is None else previous.seed
    done = 0 if previous is None else len(previous.resamples)
    tasks = ((model, refits, codes, weights, method, [seed, done + k]) for k in range(n_resamples))
    bar = progress_bar("bootstrap", n_resamples, verbose)
    found = in_parallel(fit_resample, tasks, n_jobs, bar)
    resamples, converged = (np.array(part) for part in zip(*found, strict=True))
    if previous is not None:
        resamples = np.concatenate([previous.resamples, resamples])
        converged = np.concatenate([previous.converged, converged])
    if not converged.all():
        warn(
            f"The fits of {(~converged).sum()} of {len(converged)} resamples did not converge, "
            "for example as a value of one column never occurs together with one of another. "
            "With alpha > 0 the maximum exists."
        )
    parameters.pop("feature_names")
    return NetworkBootstrap(
        resamples=resamples,
        converged=converged,
        separated=separated,
        confidence_level=confidence_level,
        seed=seed,
        source=source,
        **parameters,
    )


def scored_rows(network, X, sample_weight):
    """Codes, normal scores and weights of rows that count."""
    rows = network._rows_of(X, network._known_cells(X))
    weights = checked_weights(sample_weight, rows.codes)
    kept = weights > 0
    return rows.codes[kept], rows.scores[kept, :, 0], weights[kept]


def refits_of(network, codes, z, reselect):
    """Fits like this one, with the penalty that was chosen unless it is to be chosen again."""
    refits = Refits(network, codes, z)
    if reselect or not hasattr(network, "path_"):
        return refits
    if np.ndim(network.alpha_):
        raise ValueError(
            f"bootstrap: alpha={network.alpha!r} has chosen a penalty for "
            "each variable, and resamples cannot have these. Leave out reselect=False, or fit "
            "with a number as alpha."
        )
    return refits._replace(params={"alpha": network.alpha_, "_given_norms": network._norms})


def fit_resample(model, refits, codes, weights, method, seed):
    """The parameters of a fit to resampled rows, and whether it converged."""
    generator = np.random.default_rng(seed)
    if method == "parametric":
        drawn = model._model().sample(len(codes), generator, N_STEPS)
        refits = refits._replace(rows=np.where(codes < 0, -1, drawn))
    else:
        total, n = weights.sum(), len(weights)
        if are_counts(weights):
            weights = generator.multinomial(round(total), weights / total).astype(np.float64)
        else:  # a row is drawn with its weight
            weights = weights * generator.multinomial(n, np.full(n, 1 / n))
            weights *= total / weights.sum()
    fitted = refits.fit(weights, (model.coupling_, model.intercept_))
    return estimates(fitted), fitted.converged_
