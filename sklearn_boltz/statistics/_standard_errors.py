"""Standard errors of the couplings and intercepts of a network."""

from dataclasses import replace
from functools import cache, partial
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_boltz._warnings import warn
from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.networks import SparseFVBM
from sklearn_boltz.networks.categorical._objective import block_starts
from sklearn_boltz.networks.training._solvers import MAX_NEWTON_PARAMETERS, blas_threads
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.statistics._arguments import counted, of_network
from sklearn_boltz.statistics._inference import FIGURES, PairwiseInference, parameter_names
from sklearn_boltz.statistics.covariance._categorical import as_parameters
from sklearn_boltz.statistics.covariance._completed import draws
from sklearn_boltz.statistics.covariance._falls import falls
from sklearn_boltz.statistics.covariance._few import FEW, few_rows
from sklearn_boltz.statistics.covariance._mixed import Mixed, levels_of
from sklearn_boltz.statistics.covariance._network import N_DRAWS, check_pairwise, find_curvature
from sklearn_boltz.statistics.covariance._numbers import NumberEstimates
from sklearn_boltz.statistics.covariance._profile import Profile
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._values import as_objects
from sklearn_boltz.tables._weights import checked_weights, row_weights

# How a pair is tested where Wald's test fails.
CELL, SEPARATED = "empty cell: exact test", "separated: score test or likelihood ratio"
RARE = "rare values: score test or likelihood ratio"
DETERMINED = "no test: the other columns determine one of these"
# Draws of incomplete rows, for tests by the regressions of single columns: at most about so many
# rows together.
MOST_DRAWN = 4000
# With fewer parameters threads of BLAS mostly wait for each other.
MIN_THREADED_INFERENCE = 500


@of_network(
    {
        "X": ["array-like"],
        "sample_weight": ["array-like", None],
        "null": ["array-like", Real, None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "covariance": [StrOptions({"auto", "jackknife", "sandwich"})],
        "split": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
    },
    fitted=False,
    numbers=True,
)
def inference(
    network,
    X,
    *,
    sample_weight=None,
    null=None,
    confidence_level=0.95,
    covariance="auto",
    split=None,
    verbose=0,
    random_state=None,
):
    """Test all pairs of columns, with standard errors and confidence intervals.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network. With `split` only its parameters are used, and it need not be fitted.
    X : array-like of shape (n_samples, n_features)
        The training data; NaN is a missing cell.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the fit.
    null : float or array-like of shape (n_parameters,), default=None
        Values of the parameters under the null hypotheses, in the order b_1, ..., b_d,
        m_12, m_13, ..., m_{d-1,d}. If some variable has more than two values, each b_j and
        m_jk is an array, whose entries follow row by row. None means 0.
    confidence_level : float, default=0.95
        Level of the confidence intervals.
    covariance : {"auto", "jackknife", "sandwich"}, default="auto"
        ``"sandwich"`` is the asymptotic covariance H⁻¹ J H⁻¹, with J the sum over rows of w s sᵀ, s
        the score of a row, if weights are counts, and of w² s sᵀ if not. ``"jackknife"`` sums the
        squared changes of the estimate when each row is left out, by one step of Newton's method.
        It is accurate for few rows, too. ``"auto"`` is the jackknife, or with `MaximumEntropy`,
        where there is none, the sandwich.
    split : float or array-like of bool of shape (n_samples,), default=None
        For a penalty that selects couplings: the share of the rows, drawn at random, that select
        them; or a mask of these rows, for example to keep rows of the same person together. From
        the other rows the selected couplings are estimated without the penalty, and all results are
        about this estimate. Rows are kept whole: where weights count equal rows, repeat these.
    verbose : int, default=0
        With 1, there is a bar of the steps if they take more than two seconds; most are tests of
        pairs with rare values.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness of `split`.

    Returns
    -------
    inference : PairwiseInference
        It prints as the table of pairs, which ``to_frame`` returns: couplings, tests, and p values
        adjusted for the number of pairs. It also has ``estimate, std_err, z, p_value, ci_low,
        ci_high, names, covariance`` of all parameters. Entries are NaN where a column was constant
        in the fit, a value never occurred, or a coupling is not in the model. Where the data
        separate a parameter, for example because two values never occur together, its maximum is
        at infinity: all but the estimate, at which the fit ended, is NaN. The pair still has a
        test. For variables with more than two values, the parameters are those of the zero-sum
        gauge: how a value differs from the mean over all values, ``b[x0=2]``, and a pair of values
        from the means over both, ``m[x0=2,x1=0]``.

        A number has a single entry, its normal score, in units of its standard deviation given all
        else: ``m[x0,x1]`` is the partial correlation of two numbers, and ``m[x0=2,x1]`` the
        coupling of a value and a number.

    Raises
    ------
    ValueError
        If the network has `terms_` or a `count_potential_`, if with a number `alpha` the penalty
        made couplings smooth functions (`ordered_`), if a sparse penalty has selected the
        couplings and there is no `split`, if the rows do not determine all parameters, if other
        columns determine a number, if the covariance does not fit into memory, if
        ``covariance="jackknife"`` is asked for where there is none, or with `MaximumEntropy` if
        there are missing cells, or more than 25 columns that vary.

    Warns
    -----
    UserWarning
        If pairs have too few rows for a test: fewer than 3 for each free value of the regression
        of one column on the others, or 20 without the jackknife; or if these are not the rows and
        weights of the fit.
    ConvergenceWarning
        If ``alpha="auto"`` chose a penalty, and there is no maximum without it.

    Notes
    -----
    With ``alpha="auto"``, `fit` shrinks the couplings towards 0, so that the model predicts other
    rows well. Intervals around such estimates would cover the truth less often than they should. So
    the network is fitted to these rows again, without the penalty, and all results refer to this
    estimate: ``inference.estimate`` is not `coupling_`.

    The sandwich is H⁻¹ J H⁻¹ with the information H and the products of the scores J (reference 2
    of the class), both summed over the rows. With few rows it is too small, as the scores are those
    at an estimate that was fitted to the same rows. The jackknife has the scores H (H - H_i)⁻¹ s_i
    instead, with H_i the information of the row itself [1]_. So it is the sum of the squared
    changes of the estimate when a row is left out, by one step of Newton's method. In simulations
    of sparse networks with 10 to 40 columns, 95 % intervals of the jackknife covered the truth in
    95 to 97 % of the cases with 5 and more rows per column. Those of the sandwich did so in 88 %
    with 5 rows per column, and in 93 to 94 % with 10 to 20. The user guide has the table.

    With a number ``alpha > 0`` H contains the penalty; intervals then do not account for the
    bias of the estimates. With `MaximumEntropy` H and J are those of the likelihood, and the
    covariance is always the sandwich.

    Couplings that were selected on the same rows look significant because they were selected. With
    `split`, the other rows give the estimates, and p values and intervals are valid given the
    selection [3]_. They refer to the network of the selected pairs alone: a true coupling that was
    not selected changes what the others estimate. Another split may select other pairs. Splitting
    again until the result is welcome would invalidate it.

    With missing cells and ``missing="em"``, the scores are the expected ones given the observed
    cells. From H the information of the missing cells is subtracted: the covariance of the
    scores with the sufficient statistics of the model, given the observed cells. Both are sums
    over the completions of a row, or over 64 draws, with a fixed seed, where it has more. For
    the jackknife, H_i is the information of the mean of the completions.

    Parameters are separated if the objective never falls as they grow in some direction [2]_. The
    directions are found by linear programming, and the errors of all other parameters are those in
    the limit. Rows that EM has completed count as 10 draws of their missing cells. With
    `MaximumEntropy`, only pairs of values that never occur together are looked for. If a program
    would have more than 300,000 entries, all parameters that could be separated count as such. With
    a number ``alpha > 0``, there is a maximum, but couplings of columns with values that never
    occur together have no errors, either: the scores of such a coupling hardly vary, and Wald's
    test would nearly always reject.

    Two binary columns with an empty cell are tested by its probability, if there is no coupling,
    given the sums of one column and of its products with all others: by the saddlepoint
    approximations of the conditional distribution [5]_, without other columns Fisher's. The p value
    is twice that, as an excess would be as surprising, and the interval ends where the probability
    is half of what the intervals leave. Each of the two columns gives one. Their geometric mean is
    weighted by the share of the variance of each that the others leave. Other pairs that are
    separated have the score test of their couplings in the regression of a column on the others or,
    if it is less, the likelihood ratio, weighted likewise. With a single pair these are Pearson's
    X² and G², times 1 - 1/N. In simulations of independent columns of 2 to 5 values, some with 2 %
    of 200 rows, tests of pairs at 5 % rejected 1 to 3 %.

    With ``"ordinal"`` columns or numbers and ``alpha="auto"``, the rows are fitted without the
    penalty to a network of trends: two such columns have a single coupling φ, by which x_j = a and
    x_k = b change the logarithm of the probability by φ times the scores of both. Those of levels
    are equally spaced and centred, as in linear-by-linear association models [4]_. Those of numbers
    are normal scores of their ranks, so that huge values and units do not matter, and given the
    other columns they are normal, as in mixed graphical models [6]_. An ordinal column or a number
    and another column have one coupling for each value of the latter. So the test of a pair has one
    degree of freedom. In simulations with 300 answers from 1 to 5, the test found a trend in 85 %
    of the tables, like a rank correlation, and the joint test of all 16 couplings in 12 %; without
    an interaction, it rejected in 5 % (:doc:`/user_guide/fvbm`). A dependence that is not a trend
    may be missed, or appear between others. The score test of all couplings in the table
    (``joint_p_value``) finds it, with numbers in five groups; it assumes that other columns act by
    trends, too. The middle one of an odd number of levels has neither a coupling nor an error.
    A ``"cyclic"`` column has no trend: it is tested like a nominal one, by all its couplings.

    Incomplete rows with numbers are drawn 20 times, or 5 where they are many, by `impute` from the
    network itself, with a fixed seed; their numbers then twice from the estimates. Tests by the
    regressions of single columns take the first of these draws, about 4,000 rows. The errors of
    values of fewer than 20 rows vary too much for Wald's test: their pairs with trends have the
    score test above. Declared as ``"nominal"``, or with ``alpha=0``, all couplings of levels and
    bins are tested.

    There are no intervals with a number ``alpha > 0`` and smooth functions: the penalty shrinks
    them towards trends, far more than it lets them vary, and intervals would be too narrow.

    References
    ----------
    .. [1] L. A. Mancl and T. A. DeRouen, "A Covariance Estimator for GEE with Improved
       Small-Sample Properties", Biometrics 57(1), 126–134, 2001.
       https://doi.org/10.1111/j.0006-341X.2001.00126.x
    .. [2] C. J. Geyer, "Likelihood Inference in Exponential Families and Directions of
       Recession", Electronic Journal of Statistics 3, 259–289, 2009.
       https://doi.org/10.1214/08-EJS349
    .. [3] D. R. Cox, "A Note on Data-Splitting for the Evaluation of Significance Levels",
       Biometrika 62(2), 441–444, 1975. https://doi.org/10.1093/biomet/62.2.441
    .. [4] L. A. Goodman, "Simple Models for the Analysis of Association in Cross-Classifications
       Having Ordered Categories", Journal of the American Statistical Association 74, 537–552,
       1979. https://doi.org/10.1080/01621459.1979.10481650
    .. [5] I. M. Skovgaard, "Saddlepoint Expansions for Conditional Distributions", Journal of
       Applied Probability 24(4), 875–887, 1987. https://doi.org/10.2307/3214212
    .. [6] J. D. Lee and T. J. Hastie, "Learning the Structure of Mixed Graphical Models", Journal
       of Computational and Graphical Statistics 24(1), 230–253, 2015.
       https://doi.org/10.1080/10618600.2014.900500

    Examples
    --------
    The third column mostly repeats the first.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> print(statistics.inference(model, X))
    Fully visible Boltzmann machine, maximum pseudo-likelihood
    500 samples, 6 parameters, jackknife errors
    <BLANKLINE>
    pair    coupling  std err      95 % interval  df        p  adjusted p
    x0, x1    0.0739   0.0566  [-0.0371, 0.1848]   1     0.19        0.29
    x0, x2    0.6977   0.0569   [0.5862, 0.8092]   1  1.4e-34     4.1e-34
    x1, x2   -0.0003   0.0565  [-0.1111, 0.1105]   1        1           1

    If one half of the rows selects, the errors are those of an estimate from the other half:

    >>> result = statistics.inference(SparseFVBM(), X, split=0.5, random_state=0)
    >>> result.names[result.p_value < 0.01]
    array(['m[x0,x2]'], dtype=object)
    """
    has_split = split is not None
    if has_split:
        network, X, sample_weight = selected(network, X, sample_weight, split, random_state)
    else:
        check_is_fitted(network)
    has_scores = tests_numbers(network, has_split)
    if not has_scores or isinstance(network, SparseFVBM):
        check_unselected(network)
    codes, weights = counted(network, X, sample_weight)
    jackknife = wants_jackknife(network, covariance)
    bar = progress_bar("inference", None, verbose)
    n_features = np.maximum(network._layout().sizes - 1, 1).sum()
    with blas_threads(n_features, MIN_THREADED_INFERENCE), bar:
        if has_scores:
            found, rows = of_numbers(network, X, sample_weight, jackknife, bar)
        else:
            network = network._unpenalised(codes, weights)
            bar.update()
            found, rows = of_codes(network, codes, weights, jackknife)
        bar.update()
        return tested(network, found, rows, null, confidence_level, weights, jackknife, bar)


def tested(network, found, rows, null, confidence_level, weights, jackknife, bar):
    """The result, from arguments of `PairwiseInference` and what makes its `rows`."""
    null = np.zeros(()) if null is None else np.asarray(null, dtype=np.float64)
    shape = found["names"].shape
    if null.shape not in ((), shape):
        raise ValueError(f"null must be a number or of shape {shape}: {null.shape}.")
    warn_of_few_rows(found["reasons"])
    if null.any():
        found["falls"] = np.ones_like(found["falls"])
    result = PairwiseInference(
        **found,
        null=np.broadcast_to(null, shape),
        confidence_level=confidence_level,
        n_samples=weights.sum(),
        method="jackknife" if jackknife else "sandwich",
        objective=network._objective,
        untested=found["reasons"] != "",
        figures={},
    )
    return with_profiles(result, rows, bar)


def tests_numbers(network, has_split):
    """Whether the results are about numbers by their scores, and not by their bins."""
    bins = network._encoder.is_binned & (network.n_values_ > 2)
    by_default = has_split or network._is_chosen()
    return network._encoder.is_scored.any() or (bins.any() and by_default)


def of_codes(network, codes, weights, jackknife):
    """Arguments of `PairwiseInference` for a network of codes, and what makes its `rows`."""
    found = network._cached(
        "covariance",
        lambda: covariance_of(network, codes, weights, jackknife),
        *(codes, weights, jackknife),
    )
    rows, free = cache(partial(rows_of_codes, network, codes, weights)), allowed_pairs(network)
    sizes = np.array([len(np.unique(column[column >= 0])) - 1 for column in codes.T])
    has_trends = network._trends is not None
    sizes = np.where(network._trends if has_trends else False, np.minimum(sizes, 1), sizes)
    reasons = few_rows(codes >= 0, weights, sizes, free, jackknife)
    found = found | {"reasons": reasons, "rows": rows() if has_trends else None}
    return found | named_parameters(network), rows


def rows_of_codes(network, codes, weights):
    """The rows of a network of codes, those that EM has completed as draws."""
    codes, weights = distinct_incomplete(*informative(codes, weights))
    known = codes >= 0
    if not known.all() and network.missing == "em":
        n_draws = max(1, min(N_DRAWS, MOST_DRAWN // len(codes)))
        codes, weights = draws(codes, weights, network._model(), n_draws)
        known = np.tile(known, (n_draws, 1))
    trends = np.zeros(len(known.T), dtype=bool) if network._trends is None else network._trends
    columns = [levels_of(*column) for column in zip(codes.T, known.T, trends, strict=True)]
    kept = np.flatnonzero([column is not None for column in columns])
    mixed = Mixed([columns[j] for j in kept], weights, allowed_pairs(network)[np.ix_(kept, kept)])
    return Profile(mixed, known[:, kept], kept)


def of_numbers(network, X, sample_weight, jackknife, bar):
    """Arguments of `PairwiseInference` for a table with numbers, and what makes its `rows`."""
    weights, free = checked_weights(sample_weight, network._codes(X)), allowed_pairs(network)
    estimates = NumberEstimates.of(network, X, weights, free, jackknife, bar)
    estimate, covariance, directions = estimates.results()
    names, entries = network._input_names(), entries_of(network, estimates.sizes)
    few, places = estimates.mixed.some_draws(estimates.first, MOST_DRAWN)
    rows = Profile(few, estimates.known[places], estimates.kept)
    mixed, sizes = estimates.mixed, np.zeros(len(names), dtype=np.int64)
    sizes[estimates.kept] = [column.coupled.sum() for column in mixed.columns]
    known = np.ones((len(mixed.weights), len(names)), dtype=bool)
    known[:, estimates.kept] = estimates.known
    found = {
        "estimate": estimate,
        "names": parameter_names(entries, estimates.sizes),
        "n_values": estimates.sizes,
        "feature_names": as_objects(names),
        "limit_covariance": covariance,
        "directions": directions,
        "falls": falls(estimates.curvature, len(names)),
        "reasons": few_rows(known, mixed.weights, sizes, free, jackknife),
        "rows": rows,
    }
    return found, lambda: rows


def entries_of(network, sizes):
    """Names of the entries of columns, a list each: ``city=Rome``, and ``age``."""
    found = []
    for j, (name, size) in enumerate(zip(network._input_names(), sizes, strict=True)):
        labels = network._encoder.labels(j, np.arange(size))[:size]
        is_number = network._encoder.is_number[j]
        found.append([f"{name}"] if is_number else [f"{name}={label}" for label in labels])
    return found


def allowed_pairs(network):
    """Which columns have couplings, an array of bool; those of numbers with scores all have."""
    d, free = network.n_features_in_, network._free_pairs()
    scored = network._encoder.is_scored
    return np.ones((d, d), dtype=bool) if free is None else free | scored | scored[:, None]


def with_profiles(result, rows, bar):
    """The result with other tests of pairs that the data separate, or that have rare values."""
    if result.rows is None and not result.separated.any():
        return result
    profile = rows()
    place = {column: i for i, column in enumerate(profile.kept)}
    figures = {name: np.full(result.reasons.shape, np.nan) for name in FIGURES}
    reasons, chosen = result.reasons.copy(), []
    for block in result._blocks():
        j, k = result.columns[:, block[0]]
        if j == k or result.untested[j, k] or not {j, k} <= place.keys():
            continue
        pair, is_separated = (place[j], place[k]), result.separated[block].any()
        if not result.null[block].any() and (is_separated or profile.is_rare(*pair)):
            chosen.append((j, k, pair, is_separated))
    bar.total = bar.n + len(chosen)
    for j, k, pair, is_separated in chosen:
        of_pair, note = profile_of_pair(profile, pair, result, is_separated)
        bar.update()
        reasons[j, k] = reasons[k, j] = note
        for name, value in of_pair.items():
            figures[name][j, k] = figures[name][k, j] = value
    return replace(result, figures=figures, reasons=reasons)


def profile_of_pair(profile, columns, result, is_separated):
    """Test of a pair by the regressions of single columns, and its name."""
    levels = [getattr(profile.network.columns[i], "basis", ()) for i in columns]
    is_bits = is_separated and all(len(own) == 2 for own in levels)
    cell = profile.empty_cell(*columns) if is_bits else None
    if cell is None:
        test, note = profile.score_test(*columns), SEPARATED if is_separated else RARE
        note = note if test.df else DETERMINED
        return {"df": test.df, "statistic": test.statistic, "p_value": test.p_value}, note
    # Odds ratios are four couplings m, and the norm of a block of them is twice as large.
    factor = (4 if result.n_values is None else 2) * (1 if cell.is_equal else -1)
    bound = cell.side.bound((1 - result.confidence_level) / 2) / factor
    ends = (-np.inf, bound) if cell.is_equal else (bound, np.inf)
    of_pair = {"df": 1, "statistic": cell.statistic, "p_value": cell.p_value}
    return of_pair | {"ci_low": ends[0], "ci_high": ends[1]}, CELL


def covariance_of(network, codes, weights, jackknife):
    """Covariance (NaN where a parameter is not estimated), separated directions, and falls."""
    curvature, spread = find_curvature(network, codes, weights, jackknife=jackknife)
    return {
        "limit_covariance": spread.covariance(curvature),
        "directions": spread.directions(curvature),
        "falls": falls(curvature, network.n_features_in_),
    }


def separated_directions(network, codes, weights):
    """The directions that the data separate, as far as fits look for them."""
    n_values = network.n_values_
    n_parameters = len(n_values) * (len(n_values) + 1) // 2
    if not network._encoder.coding.is_binary:
        n_parameters = block_starts(n_values)[1]
    # Where there is no maximum, a fit has not converged.
    may_be = not (network.converged_ or network._ridge() or network._no_errors())
    terms, _, potential = network._beyond_pairs()
    if not may_be or terms or potential.any() or n_parameters > MAX_NEWTON_PARAMETERS:
        return np.zeros((n_parameters, 0))
    curvature, spread = find_curvature(network, codes, weights)
    return spread.directions(curvature)


def estimates(network):
    """All parameters of a network in the order of `PairwiseInference`, also those of numbers."""
    if network._gaussians is not None:
        return as_parameters(*network._joint_network(), network._layout().sizes)
    if not network._encoder.coding.is_binary:
        return as_parameters(network.coupling_, network.intercept_, network.n_values_)
    pairs = network.coupling_[np.triu_indices(len(network.coupling_), 1)]
    return np.concatenate([network.intercept_, pairs])


def named_parameters(network):
    """The estimates, and what they are called."""
    names, layout = network._input_names(), network._layout()
    is_plain = network._encoder.coding.is_binary and network._gaussians is None
    n_values = None if is_plain else layout.sizes
    entries = names if is_plain else layout.entry_names(names, network._encoder)
    return {
        "estimate": estimates(network),
        "names": parameter_names(entries, n_values),
        "n_values": n_values,
        "feature_names": as_objects(names),
    }


def check_unselected(network):
    """Refuse standard errors of estimates whose distribution is not known."""
    reason = network._no_errors()
    if reason is not None:
        raise ValueError(f"{type(network).__name__}: {reason}")


def selected(network, X, sample_weight, split, random_state):
    """The couplings that some rows select, fitted to the others; these, and their weights."""
    if not isinstance(network, SparseFVBM) or network.penalty == "l2" or network.alpha == 0:
        raise ValueError(
            f"{type(network).__name__}: split is for a penalty that selects couplings, and there "
            "is none. Give a fitted network and leave out split, or take SparseFVBM()."
        )
    if isinstance(split, Real):
        order = make_generator(random_state).permutation(_num_samples(X))
        selects = np.isin(np.arange(len(order)), order[: round(split * len(order))])
    else:
        selects = column_or_1d(split)
        if selects.dtype != bool or len(selects) != _num_samples(X):
            raise ValueError(
                "split must be a share of the rows, or a boolean for each of the "
                f"{_num_samples(X)} rows; got {len(selects)} values of type {selects.dtype}."
            )
    parts = [np.flatnonzero(part) for part in (selects, ~selects)]
    if not all(map(len, parts)):
        raise ValueError(
            f"split leaves none of the {len(selects)} rows to "
            f"{'estimate' if len(parts[0]) else 'select'}. Give a share closer to 0.5, or more "
            "rows."
        )
    (one, w), (other, v) = (
        [
            None if rows is None else some_rows(rows, part)
            for rows in (X, row_weights(sample_weight))
        ]
        for part in parts
    )
    selector = clone(network).fit(one, sample_weight=w)
    check_pairwise(selector)
    pairs = selector._pair_norms() > 0
    free = {
        "penalty": "l2",
        "alpha": 0.0,
        "nodewise": False,
        "max_order": 2,
        "edges": pairs,
        "relax": False,
    }
    return clone(network).set_params(**free).fit(other, sample_weight=v), other, v


def warn_of_few_rows(reasons):
    """Warn of pairs that have no test."""
    few = [reason.startswith(FEW) for reason in reasons[np.triu_indices(len(reasons), 1)]]
    if any(few):
        warn(
            f"{sum(few)} of {len(few)} pairs of columns have too few rows for a test, and no p "
            "value: the column `note` of `to_frame()` says how many they need. Merge values that "
            "hardly occur, or leave out columns."
        )


def wants_jackknife(network, covariance):
    """Whether the covariance that a user asks for is the jackknife's."""
    if network._objective == "likelihood" and covariance == "jackknife":
        raise ValueError(
            f"{type(network).__name__}: there is no jackknife of the likelihood. Use "
            "covariance='auto' or 'sandwich', or statistics.bootstrap."
        )
    return network._objective != "likelihood" and covariance != "sandwich"
