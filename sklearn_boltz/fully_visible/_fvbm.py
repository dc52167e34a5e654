"""FVBMPseudoLikelihood: the network of pairs of binary or categorical variables."""

import re
import warnings
from copy import copy
from functools import cache
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options, StrOptions

from sklearn_boltz._base import (
    find_stack_level,
    fingerprint,
    unchanged_on_error,
)
from sklearn_boltz._batches import as_batches
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._unseen import Unseen
from sklearn_boltz.fully_visible._drawing import Drawing
from sklearn_boltz.fully_visible._inferring import Inference, blas_threads
from sklearn_boltz.fully_visible._likelihoods import Likelihoods
from sklearn_boltz.fully_visible._thermodynamics import Thermodynamics
from sklearn_boltz.fully_visible.fitting._rows import Rows, read, read_batches
from sklearn_boltz.fully_visible.fitting._tasks import make_task, ordered_columns
from sklearn_boltz.fully_visible.fitting._ways import choose_way
from sklearn_boltz.fully_visible.higher_order._options import has_terms
from sklearn_boltz.fully_visible.model._interaction_model import Terms
from sklearn_boltz.fully_visible.training._strength import choose_strength

# With fewer parameters the matrices of a fit are so small that threads of BLAS mostly wait for
# each other.
MIN_THREADED_FIT = 20_000


class FVBMPseudoLikelihood(Drawing, Inference, Thermodynamics, Likelihoods):
    """Fully visible Boltzmann machine, fitted by maximum pseudo-likelihood.

    A network of pairwise interactions of discrete variables. With binary variables it is the Ising
    model: with x in {-1, 1}^d,

        P(x) = exp(½ xᵀ M x + bᵀ x) / Z.

    If some variables have more values, it is the Potts model: the same with one-hot x, where M has
    a block for each pair of variables. Rows may have missing cells.

    The maximum pseudo-likelihood estimate needs no normalising constant. It is consistent and
    asymptotically normal, so each coupling has a standard error: see `inference`.

    Parameters
    ----------
    n_values : "auto", int or array-like of int of shape (n_features,), default="auto"
        Number of values of each variable. The values are 0, 1, ..., n_values - 1. ``"auto"`` takes
        one more than the largest value of the column, and at least 2; a column of words or levels
        has as many values as it has categories, and at least 2. A column with more than 64 values
        is then an error; a number for `n_values` allows it. If all variables have two values,
        these may also be -1 and 1.

    max_order : int, default=2
        Largest number of (binary) variables in a term. With 3, the model has all pairs, and those
        terms of three variables whose gain exceeds their description length. With 4 and more, a
        larger term may be chosen if all its sub-terms with one variable less have been chosen. See
        Notes.

    term_price : float, default=1.0
        Factor on the description length that the gain of a term must exceed. With 1, hardly any
        term is chosen by chance. Smaller values give more terms, some of them by chance; the
        held-out `score` is often best with 0.2 to 0.5.

    terms : list of tuples of int or str, default=None
        Terms of three or more binary variables, by number or name, to be fitted besides all pairs,
        with either objective. No other terms are chosen.

    count_potential : bool, default=False
        Whether the model has a potential V(K) of the number K of variables at their higher value
        (K-pairwise model [4]_), with ``objective="likelihood"``. The model then has the
        distribution of K in the rows, with one more row spread evenly over all K. With more than
        25 columns the fit by chains is slow.

    missing : {"em", "observed"}, default="em"
        How `fit` learns from rows with missing cells (NaN), which must be missing at random.
        ``"em"`` replaces such a row by all its completions, weighted by their probabilities given
        the observed cells, and fits the model again until nothing changes. A row with more than
        4,096 completions is completed by `n_draws` draws, new ones in each of 20 rounds. If all
        completions together have more than 524,288 cells, so are the rows with the most
        completions.
        ``"observed"`` leaves out the terms of missing cells and their contributions to others. It
        is faster, as it needs a single fit, and slightly biased. Rows without an observed cell are
        ignored.

    n_draws : int, default=10
        With ``missing="em"``, the number of draws, in each round, for each row that has too many
        completions. With fewer draws, a fit is faster and the estimates vary more. In large tables,
        the completions of fewer rows are then enumerated.

    objective : {"pseudo-likelihood", "likelihood"}, default="pseudo-likelihood"
        What is maximised. ``"likelihood"``, for binary columns, gives the model of maximum entropy
        with the means and the correlations of the rows [3]_. Up to 25 columns it is exact, from a
        table of all states; beyond, the moments are estimated by Gibbs chains at several
        temperatures. It does not put mass far from the data, as the pseudo-likelihood may (see
        Notes), and takes longer.

    solver : {"newton", "lbfgs", "bslm", "ga"}, default="newton"
        ``"newton"`` is Newton's method with a line search. With more than 3,000 parameters (77
        variables), and with terms of three, ``"lbfgs"`` takes its place. ``"bslm"`` is block
        successive lower-bound maximisation, the algorithm of [1]_: no step lowers the objective.
        ``"ga"`` is gradient ascent, the same with all steps multiplied by `step_size`. All reach
        the same, unique maximum. Penalties that select, `edges` and `nodewise` have their own
        solver, a proximal form of ``"newton"``: see Notes.

    step_size : float, default=1.0
        Factor μ on the steps of ``solver="ga"``. Above 1, the objective may fall, and the fit need
        not converge.

    penalty : {"l2", "l1", "elasticnet", "group"}, default="l2"
        What is subtracted from the mean log pseudo-likelihood of the rows. Intercepts are never
        penalised. ``"l2"``: ½ α Σ_{j<k} m_jk², all pairs. The others select pairs: weak couplings
        are exactly 0. ``"l1"``: α Σ_{j<k} w_jk abs(m_jk). ``"elasticnet"``: α Σ_{j<k} [ρ w_jk
        abs(m_jk) + (1 - ρ)/2 w_jk² m_jk²] with ρ = `l1_ratio`. ``"group"``, for tables with columns
        of more than two values: the block of a pair is kept or set to 0 as a whole [5]_; with
        binary variables it is ``"l1"``. The weights w are those of `standardize`. See Notes for the
        solver.

    alpha : float, "auto", "ebic" or "cv", default="auto"
        Strength α of the penalty, per row. With ``"l2"`` and ``alpha > 0`` the maximum exists for
        all data. If some variable has more than two values, the ``"l2"`` penalty is α/8 times the
        sum of the squares of all entries of the blocks j < k. For binary variables this is the
        same.

        ``"auto"`` estimates the variance of the couplings from the rows: with N rows of d binary
        columns, α is 2 (d - 1) / N, and larger where couplings are weak; see Notes. `inference`,
        tests, criteria and `bootstrap` are then those of the estimate without the penalty. With
        penalties that select, ``"auto"`` is ``"ebic"``. With ``penalty="l2"`` and any of `edges`,
        `nodewise`, terms of three, or ``objective="likelihood"``, it is 0.

        ``"ebic"`` and ``"cv"`` choose α from a path of `n_alphas` values. The path begins with the
        smallest α that leaves no pair, and ends at a 10,000th of it, or at a 100th if there are
        fewer rows than parameters. It ends earlier if 15 values in a row have not improved the
        criterion. ``"ebic"`` minimises the extended Bayesian information criterion [6]_: -2 ℓ +
        k ln N + 2 γ κ ln(d - 1), for a variable with the log-likelihood ℓ given the others, κ
        neighbours and k couplings to them (κ = k if they are binary), N rows and d columns. With
        ``nodewise=False`` it is the sum of these over the variables, in which each pair counts at
        both of its ends. ``"cv"`` maximises the log pseudo-likelihood of held-out rows. With
        missing cells α is chosen as with ``missing="observed"``, also if EM follows.

    l1_ratio : float, default=0.5
        The share ρ of L1 in ``penalty="elasticnet"``, above 0 and at most 1.

    standardize : bool, default=True
        Whether penalties that select pairs are weighted by how much the columns vary, so that pairs
        with a rare value are not left out for that reason alone. With the standard deviations σ of
        the columns, coded as -1 and 1, w_jk = σ_j σ_k. With `nodewise`, w_jk is the σ of the
        regressor alone, as in glmnet; this is the lasso with standardised columns. For a variable
        with q values, σ² is (1 - Σ p²) / (1 - 1/q). False means w_jk = 1. A group has the factor
        √((q_j - 1)(q_k - 1)) in any case.

    ebic_gamma : float, default=0.25
        The γ of ``alpha="ebic"``. 0 is the BIC; larger values give sparser networks.

    n_alphas : int, default=100
        Length of the path of ``alpha="ebic"`` and ``alpha="cv"``.

    cv : int, cross-validation generator or iterable, default=5
        The folds of ``alpha="cv"``, as in scikit-learn. A number splits the rows in their order; if
        they are sorted, use ``KFold(5, shuffle=True)``.

    edges : array-like of pairs, or of bool of shape (n_features, n_features), default=None
        The variables that may be connected: pairs of their names or numbers, as in
        ``[("age", "income"), (0, 3)]``, or an array of such numbers of shape (n_pairs, 2), as of
        `numpy.argwhere`; or a symmetric mask, whose diagonal is ignored. All other couplings are 0.
        None means all pairs.

    nodewise : bool, default=False
        Whether each variable is fitted by itself, by its regression on all others (eLasso, the
        algorithm of the R package IsingFit [7]_). If α is chosen, each variable has its own. A pair
        then has two estimates; `coupling_` is their mean, or 0 by `rule`. With ``penalty="l1",
        alpha="ebic", nodewise=True`` the result is that of IsingFit, whose λ is α/2 and whose
        weights, for 0 and 1, are 4 m_jk.

    rule : {"and", "or"}, default="and"
        With ``nodewise=True``, whether a pair is kept if both estimates differ from 0, or if one
        does.

    ordered : "auto", bool or array-like of bool of shape (n_features,), default=False
        Which variables have ordered values. The penalty then prefers similar parameters for
        neighbouring values. This matters for variables with more than two values and
        ``alpha > 0``. For two such variables, a block that is a trend, linear in the positions of
        both values, is penalised 5 times less than `alpha` says, and one that jumps up and down in
        both 24 times more. ``"auto"`` takes whole numbers, and categories declared as ordered. The
        solver is ``"lbfgs"``, and `inference` has no standard errors.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere, except in columns of words. If None, columns of numbers must consist of -1 and
        1, of bool, or of integers from 0 on.

    tol : float, default=1e-5
        The fit ends when an iteration, or a round of EM, raises the objective, summed over the
        rows, by less than this, in nats. At 0.05 nats below the maximum, an estimate is off by less
        than a third of its standard error. With penalties that select, `edges` or `nodewise`, the
        fit ends where no derivative of the mean log pseudo-likelihood is further than this from the
        subdifferential of the penalty (the KKT conditions).

    moment_tol : float, default=0.5
        With ``objective="likelihood"`` and more than 25 columns, the fit ends when each mean and
        each covariance differs from that of the data by at most this many of its standard errors in
        the data.

    max_iter : int, default=None
        Number of iterations at most. None means 100 for ``"newton"``, 5,000 for ``"lbfgs"``, 300
        for the likelihood by chains, 10,000 sweeps for ``"bslm"`` and ``"ga"``, and 1,000 for
        sparse networks. With missing cells and ``missing="em"``, the number of rounds, each of
        which is a fit; None means 500. With terms of three, the number of rounds, each of which
        appends terms, fits all parameters and removes terms; None means 100.

    warm_start : bool, default=False
        Whether `fit` begins at the parameters of the previous fit. This has no effect if α is
        chosen from a path (``"ebic"`` or ``"cv"``).

    unseen : {"smooth", "error", "missing"}, default="smooth"
        What to do, after `fit`, with values that did not occur in `fit`: see :ref:`unseen`.
        ``"smooth"`` gives them a small probability in `score_samples` and treats the cells as
        missing elsewhere; ``"missing"`` does so in `score_samples`, too; ``"error"`` raises an
        error. In an array of numbers, others are always an error.

    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness of ``objective="likelihood"`` with more than 25 columns. All other
        fits are deterministic.

    verbose : int, default=0
        If positive, print a line at the end of a fit; if greater than 1, for each iteration.

    Attributes
    ----------
    coupling_ : ndarray of shape (n_features, n_features) or (Σ n_values, Σ n_values)
        M, symmetric with a zero diagonal. If all variables are binary, it refers to values -1 and
        1, whatever the coding of the data. Otherwise it refers to one-hot columns, the values of
        all variables one after another, as `get_feature_names_out` names them. The rows and columns
        of each block sum to 0, and the blocks on the diagonal are 0.

    intercept_ : ndarray of shape (n_features,) or (Σ n_values,)
        b, in the same coding. If a variable has more than two values, the entries of each variable
        sum to 0.

    terms_ : list of tuples of int
        The terms of three variables and more.

    count_potential_ : ndarray of shape (n_features + 1,)
        V(0), ..., V(n_features). Pairs and intercepts can represent any quadratic of K, so V is set
        to 0 at the three most frequent K, or with ``alpha > 0`` at two. All 0 without
        `count_potential`.

    term_weights_ : ndarray of shape (n_terms,)
        The weights θ_t of `terms_`: with variables of -1 and 1, the log-weight of a row is
        ½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i.

    n_values_ : ndarray of int64 of shape (n_features,)
        Number of values of each variable.

    ordered_ : ndarray of bool of shape (n_features,)
        The variables whose order the penalty took into account.

    values_ : ndarray of shape (2,)
        The coding of binary data: -1 and 1, or 0 and 1 (also where -1 does not occur). It does not
        exist if some variable has more than two values.

    alpha_ : float or ndarray of shape (n_features,)
        The strength of the penalty that was used, given or chosen. If it was chosen with
        ``nodewise=True``, that of each variable, NaN if its column is constant.

    alphas_ : ndarray of shape (n,) or (n, n_features)
        With ``alpha="ebic"`` or ``"cv"``, the path: n <= `n_alphas` falling values. With
        ``nodewise=True`` each variable has its own path, with NaN after its end. If fewer than two
        columns vary, there is no pair to choose: n is 0, `alpha_` is 0, and there is no `path_`.

    path_ : Bunch
        The fits along the path, with a row for each value. ``alphas``, as above; ``coupling`` and
        ``intercept`` of the shapes (n, \\*coupling_.shape) and (n, \\*intercept_.shape);
        ``n_edges``, the number of pairs, of shape (n,); and the criterion, ``ebic`` or
        ``cv_score``, the mean of held-out rows in nats. With ``nodewise=True``, row j of a coupling
        has the coefficients of the regression of variable j, so it is not symmetric. ``n_edges``
        then counts the neighbours of each variable, and is, like the criterion, of shape (n,
        n_features). A fit on the path ends within a 1,000th of α, or within `tol` if that is
        larger.

    solver_ : str
        The solver that ran: one of those of `solver`, ``"prox-newton"`` for a sparse network, or
        ``"sampling"`` for the likelihood by chains.

    n_iter_ : int
        Number of iterations (sweeps of ``"bslm"`` and ``"ga"``, or rounds of EM). With a penalty
        that selects pairs, those at `alpha_`, after larger penalties that lead to it.

    converged_ : bool
        Whether the fit ended because of `tol` or `moment_tol`, and no sign was found that the
        maximum does not exist. With draws for missing cells, the end of all rounds counts as
        convergence.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"log_pseudo_likelihood"`` or ``"log_likelihood"``, the objective after each iteration:
        the mean over the rows in nats, less the penalty; and ``"seconds"`` of each iteration. With
        missing cells and ``missing="em"`` there is an entry for each round, for the rows as
        completed in it. With terms of three there is an entry for each round, and also
        ``"n_terms"``. With the likelihood by chains, the log-likelihood is an estimate, and
        ``"largest_difference"`` is that of the moments, in standard errors of the data.

    log_partition_ : float
        ln Z, the logarithm of the normalising constant, in nats. It is computed at first access;
        Notes say when it is exact.

    categories_ : list of length `n_features_in_`
        For each column, its values in the order of their codes 0, 1, 2, ...: an array, or None for
        a column of numbers.

    n_features_in_ : int
        Number of variables.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the variables, if `X` had names.

    See Also
    --------
    FSLLDensity : Chooses interactions of any order; exact likelihood.
    sklearn.covariance.GraphicalLasso : Network of real-valued variables.

    Notes
    -----
    Equal rows are merged first. `sample_weight` are counts: a row of weight 2 is the same as two
    rows.

    A constant column carries no information on its couplings, which stay 0. Its intercept is that
    of the data plus one observation spread evenly over its values. The same holds for a value that
    never occurs.

    The penalty ``"l2"`` is a normal prior of the couplings, and ``alpha="auto"`` estimates its
    variance s. For independent columns, αN is 2/s, as each pair enters the pseudo-likelihood
    twice. In general the 2 is the variance of the scores of the couplings over the information on
    them. The first fit has s = 1 / (d - 1): with this variance, the other columns together move the
    field of each column with a variance of 1. If the couplings found are smaller than that, the
    next s explains the sum of their squares, the errors of the estimates included [10]_. There are
    at most two fits with such an s. s is never made larger: where few rows separate columns, the
    couplings grow for that reason alone. A column of q values counts 2 (1 - 1/q) times in d - 1.
    αN is bounded as the number of rows grows, so the effect of the penalty vanishes, unless all
    couplings are 0. In simulations and on real tables the held-out pseudo-likelihood is near the
    best of a grid, and with few rows far better than without a penalty.

    Sparse networks are fitted by a proximal Newton method [9]_. Each iteration expands the log
    pseudo-likelihood to second order in a working set of pairs, and maximises this expansion less
    the penalty by coordinate descent, block by block. All pairs are checked in each iteration.
    Along a path each fit starts from the previous one, and keeps its second derivatives as long as
    they are accurate enough. `inference` gives no standard errors for couplings that were selected
    by the same rows.

    The estimate from rows with missing cells solves an unbiased equation: the expected score given
    the observed cells is 0. `score_samples` and `log_pseudo_likelihood` are those of
    the observed cells. The draws of ``missing="em"`` have a fixed seed.

    With ``max_order=3``, the scores of all triples are found at once by products of matrices. The
    gain of a term is half the square of its score in standard deviations, adjusted for the
    parameters of its parts. The term is chosen if its gain exceeds ½ ln N + ln C(d, 3) nats, its
    description length in a table of N rows and d variables. The standard deviations are those of
    the scores of the rows [8]_, since the information of a pseudo-likelihood is too large. Terms
    are appended, all parameters are fitted jointly, and terms that are no longer worth their
    description length are removed, until nothing changes. `alpha` penalises the weights θ_t as it
    does the couplings. With ``alpha=0``, a term is eligible only if all joint values of its columns
    occur in at least five rows. Standard errors and information criteria are for pairs only.

    The pseudo-likelihood compares each row with those that differ from it in one variable. It
    ignores states far from all rows. If the data do not come from a pairwise model, the estimate
    may have nearly all its mass there. This is common where rare values have common causes: 20
    columns can be enough, and more rows do not help. `sample` and, beyond 26 connected variables,
    `log_partition_` compare the rate of each column with that in the training data and warn. There
    are three remedies: a large penalty, an `alpha` of 0.05 to 0.5 in our measurements, chosen by
    the held-out `score`; fewer columns; or ``objective="likelihood"``, which takes all states into
    account.

    Beyond 25 columns the likelihood is maximised by Newton's method. The moments come from 200
    chains at each of a few temperatures, which exchange states. The penalised pseudo-likelihood
    gives the initial model. The number of states is doubled when the differences of moments are
    within their noise. A step is accepted if the likelihood rises, by Bennett's acceptance ratio.
    The more rows there are, the longer it takes, as their moments are known more precisely.

    Up to 26 connected binary variables, or 2**26 joint states, everything is exact:
    `log_partition_`, `score_samples`, `marginal`, independent samples from `sample`. Beyond,
    samples, the normalising constant, `entropy` and `specific_heat` come from Gibbs chains at
    several temperatures that exchange states. `log_partition_` and `entropy` then have a fixed seed
    and a standard error of 0.05 nats or less, if 5,000 rounds are enough. `log_partition` and
    `thermodynamics` report how far to trust an estimate, and warn if it is not to be trusted.

    There is no `n_jobs`: a fit spends its time in BLAS, which has its own threads.

    References
    ----------
    .. [1] H. D. Nguyen and I. A. Wood, "A Block Successive Lower-Bound Maximization Algorithm
       for the Maximum Pseudo-Likelihood Estimation of Fully Visible Boltzmann Machines",
       Neural Computation 28(3), 485–492, 2016. https://doi.org/10.1162/NECO_a_00813
    .. [2] H. D. Nguyen and I. A. Wood, "Asymptotic Normality of the Maximum Pseudolikelihood
       Estimator for Fully Visible Boltzmann Machines", IEEE Transactions on Neural Networks
       and Learning Systems 27(4), 897–902, 2016. https://doi.org/10.1109/TNNLS.2015.2425898
    .. [3] E. Schneidman, M. J. Berry, R. Segev and W. Bialek, "Weak pairwise correlations imply
       strongly correlated network states in a neural population", Nature 440, 1007–1012, 2006,
       equation 3. https://doi.org/10.1038/nature04701
    .. [4] G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
       Neurons", PLoS Computational Biology 10(1), e1003408, 2014, equation 5.
       https://doi.org/10.1371/journal.pcbi.1003408
    .. [5] M. Yuan and Y. Lin, "Model Selection and Estimation in Regression with Grouped
       Variables", Journal of the Royal Statistical Society B 68(1), 49–67, 2006.
       https://doi.org/10.1111/j.1467-9868.2005.00532.x
    .. [6] J. Chen and Z. Chen, "Extended Bayesian Information Criteria for Model Selection with
       Large Model Spaces", Biometrika 95(3), 759–771, 2008. https://doi.org/10.1093/biomet/asn034
    .. [7] C. D. van Borkulo et al., "A New Method for Constructing Networks from Binary Data",
       Scientific Reports 4, 5918, 2014. https://doi.org/10.1038/srep05918
    .. [8] C. Varin, N. Reid and D. Firth, "An Overview of Composite Likelihood Methods",
       Statistica Sinica 21(1), 5–42, 2011, section 2.
    .. [9] J. D. Lee, Y. Sun and M. A. Saunders, "Proximal Newton-Type Methods for Minimizing
       Composite Functions", SIAM Journal on Optimization 24(3), 1420–1443, 2014.
       https://doi.org/10.1137/130921428
    .. [10] B. Efron and C. Morris, "Stein's Estimation Rule and Its Competitors: An Empirical Bayes
       Approach", Journal of the American Statistical Association 68(341), 117–130, 1973.
       https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    The third column mostly repeats the first.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> model.coupling_.round(1) + 0.0
    array([[0. , 0.1, 0.7],
           [0.1, 0. , 0. ],
           [0.7, 0. , 0. ]])

    The other pairs are too weak for a sparse network.

    >>> sparse = FVBMPseudoLikelihood(penalty="l1", alpha="ebic").fit(X)
    >>> sparse.coupling_.round(1) + 0.0
    array([[0. , 0. , 0.6],
           [0. , 0. , 0. ],
           [0.6, 0. , 0. ]])
    """

    _takes_codes = _takes_signs = True

    _parameter_constraints = {
        "n_values": [
            StrOptions({"auto"}),
            Interval(Integral, 2, None, closed="left"),
            "array-like",
        ],
        "max_order": [Interval(Integral, 2, None, closed="left")],
        "term_price": [Interval(Real, 0, None, closed="neither")],
        "terms": [list, tuple, None],
        "count_potential": ["boolean"],
        "missing": [StrOptions({"em", "observed"})],
        "objective": [StrOptions({"pseudo-likelihood", "likelihood"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"newton", "lbfgs", "bslm", "ga"})],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "penalty": [StrOptions({"l2", "l1", "elasticnet", "group"})],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto", "ebic", "cv"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "standardize": ["boolean"],
        "ebic_gamma": [Interval(Real, 0, None, closed="left")],
        "n_alphas": [Interval(Integral, 2, None, closed="left")],
        "cv": ["cv_object"],
        "edges": ["array-like", None],
        "nodewise": ["boolean"],
        "rule": [StrOptions({"and", "or"})],
        "ordered": [StrOptions({"auto"}), "boolean", "array-like"],
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "moment_tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "unseen": [StrOptions({"smooth", "error", "missing"})],
        "random_state": ["random_state", Options(type, {np.random.Generator})],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_values="auto",
        max_order=2,
        term_price=1.0,
        terms=None,
        count_potential=False,
        missing="em",
        n_draws=10,
        objective="pseudo-likelihood",
        solver="newton",
        step_size=1.0,
        penalty="l2",
        alpha="auto",
        l1_ratio=0.5,
        standardize=True,
        ebic_gamma=0.25,
        n_alphas=100,
        cv=5,
        edges=None,
        nodewise=False,
        rule="and",
        ordered=False,
        binarize=None,
        tol=1e-5,
        moment_tol=0.5,
        max_iter=None,
        warm_start=False,
        unseen="smooth",
        random_state=None,
        verbose=0,
    ):
        self.n_values = n_values
        self.max_order = max_order
        self.term_price = term_price
        self.terms = terms
        self.count_potential = count_potential
        self.missing = missing
        self.n_draws = n_draws
        self.objective = objective
        self.solver = solver
        self.step_size = step_size
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.standardize = standardize
        self.ebic_gamma = ebic_gamma
        self.n_alphas = n_alphas
        self.cv = cv
        self.edges = edges
        self.nodewise = nodewise
        self.rule = rule
        self.ordered = ordered
        self.binarize = binarize
        self.tol = tol
        self.moment_tol = moment_tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.unseen = unseen
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, coupling_init=None, intercept_init=None):
        """Find the maximum pseudo-likelihood estimate.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or batches
            Words, truth values, levels, integers from 0 on, or -1 and 1: see :ref:`tables`. Any
            real numbers if `binarize` is set. NaN, None and pandas.NA are missing cells. From
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, the distinct
            rows are kept in memory if they have no more than four million entries. If they have
            more, there is a pass over the batches for each evaluation of the objective. Rows with
            missing cells or more than two values per column are always kept.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.
        coupling_init : array-like of the shape of `coupling_`, default=None
            Initial couplings, symmetric. None means 0, or with `warm_start` those of
            the previous fit.
        intercept_init : array-like of the shape of `intercept_`, default=None
            Initial intercepts. None means those of independent variables, or with
            `warm_start` those of the previous fit.

        Returns
        -------
        self : FVBMPseudoLikelihood
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, if all cells are missing, or if parameters do not go
            together. With missing cells, `nodewise`, `terms` and ``max_order > 2`` need
            ``missing="observed"``; ``objective="likelihood"`` needs ``missing="em"`` and at most 25
            columns that vary, and takes neither `terms` nor `count_potential`.

        Warns
        -----
        ConvergenceWarning
            If there is no maximum, without a penalty, because the data separate a variable; if
            `max_iter` ends the fit; or if the maximum is still far when `tol` ends it.
        UserWarning
            If ``alpha="ebic"`` selects no pair, though Pearson's chi-squared test with Holm's
            adjustment finds dependent pairs at a level of 1 %.

        Notes
        -----
        After Ctrl-C the estimator has the parameters of the last complete iteration. If there is
        none, it is as before the fit. With `warm_start`, the next fit continues from there.
        """
        if self.solver == "ga" and self.step_size > 1:
            warnings.warn(
                "With step_size > 1 gradient ascent may lower the pseudo-likelihood and need "
                "not converge.",
                stacklevel=find_stack_level(),
            )
        with unchanged_on_error(self):
            batches = as_batches(X, sample_weight)
            rows = read(self, X, sample_weight) if batches is None else read_batches(self, batches)
            initial = self._initial(rows.coding, coupling_init, intercept_init)
            status = self._fit(rows, batches, X, y, initial)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to those seen before, and fit all of them.

        The result is that of `fit` on all rows at once. The distinct rows seen before and their
        weights are kept, at 1 bit per entry if all are complete and binary. The fit begins at the
        parameters of the last one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            More rows, in the coding of the first ones.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        self : FVBMPseudoLikelihood
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, or if the estimator was fitted to batches with so
            many distinct rows that they were not kept.

        Warns
        -----
        ConvergenceWarning
            As `fit` does.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "coupling_")
            rows = read(self, X, sample_weight, None if first else self._coding)
            initial = (None, None) if first else (self.coupling_, self.intercept_)
            if not first:
                rows = self._with_rows_before(rows)
            # Interrupted, the estimator goes back to the rows of before.
            if self._fit(rows, None, X, y, initial) == "interrupted":
                raise KeyboardInterrupt
        return self

    def _fit(self, rows, batches, X, y, initial):
        """Fit rows, and set all fitted attributes at once; -> how the fit ended."""
        with blas_threads(self.n_features_in_, MIN_THREADED_FIT):
            task, found = make_task(self, rows, batches)
            way = choose_way(self, task, rows)

            def attributes(*network):
                return self._attributes(rows, task, *network) | {"_unseen": unseen()}

            @cache
            def unseen():
                if rows.codes is None:
                    return None
                # In a table of signs, other numbers are errors.
                n_values = np.where(rows.coding.low < 0, -1, rows.coding.n_values)
                n_values = self._n_values_of_codes(n_values)
                return Unseen.learn(rows.codes, rows.weights, n_values)

            def label(j, value=None):
                if value is None:
                    return self._column(j)
                place = (value + 1) // 2 if rows.coding.is_binary else value
                return f"{self._column(j)} = {self._labels(j, rows.coding.values(j))[place]}"

            if isinstance(found["alpha_"], str):
                has_order = ordered_columns(self, rows.coding).any()
                found["alpha_"], initial = choose_strength(
                    task, initial, label, estimate=not has_order
                )
            data, limit = X if batches is None else batches, way.max_iter
            with iterations(self, data, y, name="iteration", max_iter=limit) as end_iteration:
                result = way.run(
                    task,
                    initial,
                    label,
                    lambda *network: end_iteration(lambda: attributes(*network)),
                )
                for name in ("values_", "alphas_", "path_"):
                    vars(self).pop(name, None)
                vars(self).update(
                    attributes(*result.network),
                    **found,
                    solver_=way.solver,
                    n_iter_=result.n_iter,
                    converged_=result.status == "converged" and result.message is None,
                    history_={
                        re.sub("[ -]", "_", task.objective): result.objective,
                        "seconds": result.seconds,
                    }
                    | result.history,
                )
        if self.verbose:
            last = "" if not result.n_iter else f"{result.objective[-1]:.8f} a row, "
            alpha = f", alpha={found['alpha_']:.3g}" if np.ndim(found["alpha_"]) == 0 else ""
            print(
                f"{way.solver}: {result.n_iter} iterations, {task.objective} "
                f"{last}{result.status}{alpha}"
            )
        if result.message:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=find_stack_level())
        return result.status

    def _attributes(self, rows, task, coupling, intercept, terms=(), weights=(), potential=()):
        """The fitted attributes that make a model."""
        potential = potential if len(potential) else np.zeros(self.n_features_in_ + 1)
        values = {"values_": rows.coding.values(0)} if rows.coding.is_binary else {}
        return values | {
            "n_values_": rows.coding.n_values,
            "ordered_": ordered_columns(self, rows.coding),
            "coupling_": coupling,
            "intercept_": intercept,
            "terms_": list(terms),
            "term_weights_": np.array(weights, dtype=np.float64),
            "count_potential_": potential,
            "_coding": rows.coding,
            "_n_features_out": len(intercept),
            "_base": task.base,
            "_estimate": fingerprint([coupling, intercept, *Terms.of(terms, weights), potential]),
            "_sample_dtype": rows.dtype,
            "_seen": task.seen,
            "_varying": task.varying,
        }

    def _with_rows_before(self, rows):
        """All rows since the first fit."""
        if self._seen is None:
            raise ValueError(
                "The batches of the last fit had so many distinct rows that they were not "
                "kept, so there is nothing to add rows to. Fit Batches of all rows."
            )
        before, counts = self._seen_rows()
        return Rows(
            self._coding,
            self._sample_dtype,
            np.concatenate([before, rows.codes]),
            np.concatenate([counts, rows.weights]),
        )

    def _seen_rows(self):
        """Codes of the distinct rows of the fit, and how often each counts."""
        codes, counts = self._seen
        if codes.dtype == np.uint8:
            codes = np.unpackbits(codes, axis=1, count=self.n_features_in_).view(np.int8)
        return codes, counts

    def _refitted_without_penalty(self, codes, weights):
        """A copy with the estimate from these rows without a penalty, as ``alpha=0`` finds it."""
        other = copy(self)
        for name in ("_derived", "_skl_callbacks"):
            vars(other).pop(name, None)
        vars(other).update(alpha=0.0, verbose=0)
        rows = Rows(self._coding, self._sample_dtype, codes, weights)
        other._fit(rows, None, None, None, (None, None))
        return other

    def _initial(self, coding, coupling, intercept):
        """Initial couplings and intercepts; None where the user leaves them open."""
        d = self.n_features_in_ if coding.is_binary else int(coding.n_values.sum())
        if self.warm_start and hasattr(self, "coupling_"):
            if len(self._coding.n_values) != self.n_features_in_:
                raise ValueError(
                    f"With warm_start, X must have the {len(self._coding.n_values)} features of "
                    f"the fit before; it has {self.n_features_in_}."
                )
            if len(self.coupling_) != d:
                raise ValueError(
                    "With warm_start, the columns must have as many values as in the fit before. "
                    "Set n_values to the true numbers of values."
                )
            coupling = self.coupling_ if coupling is None else coupling
            intercept = self.intercept_ if intercept is None else intercept
        if coupling is not None:
            coupling = np.array(coupling, dtype=np.float64)
            if (
                coupling.shape != (d, d)
                or not np.isfinite(coupling).all()
                or not np.array_equal(coupling, coupling.T)
                or coupling.diagonal().any()
            ):
                raise ValueError(
                    f"coupling_init must be a finite symmetric matrix of shape {(d, d)} with a "
                    "zero diagonal."
                )
        if intercept is not None:
            intercept = np.array(intercept, dtype=np.float64)
            if intercept.shape != (d,) or not np.isfinite(intercept).all():
                raise ValueError(f"intercept_init must be a finite vector of shape {(d,)}.")
        return coupling, intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # With a threshold, anything real is legal.
        tags.input_tags.categorical = self.binarize is None
        if self.objective == "likelihood":
            allow_nan = self.missing == "em" and self.terms is None and not self.count_potential
        elif self.missing == "em":
            allow_nan = not (has_terms(self) or self.nodewise)
        else:
            allow_nan = self.solver not in ("bslm", "ga")
        tags.input_tags.allow_nan = allow_nan
        return tags
