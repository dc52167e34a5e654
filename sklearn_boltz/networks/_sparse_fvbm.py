"""SparseFVBM: the network of the pairs that matter."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
)

from sklearn_boltz._warnings import warn
from sklearn_boltz.networks._network import CONSTRAINTS, Network, refuse
from sklearn_boltz.networks._rows import Rows, no_errors_of_ordered
from sklearn_boltz.networks.features._task import FeatureTask, smooth_columns
from sklearn_boltz.networks.sparse._path import neighbours
from sklearn_boltz.networks.sparse._task import (
    LEAST_ROWS,
    LEVEL,
    SparseTask,
    dependent_pairs,
    rare_columns,
)
from sklearn_boltz.networks.training._strength import least_strength
from sklearn_boltz.networks.training._terms import MAX_ROUNDS, fit_terms
from sklearn_boltz.tables._bins import CELLS
from sklearn_boltz.tables._phrases import N_NAMES

# Bins of a column of numbers without a penalty, and where tests look at it.
MOST_BINS = 5
# Of the EBIC.
GAMMA = 0.25


class SparseFVBM(Network):
    """Fully visible Boltzmann machine that selects which variables interact.

    The model and the pseudo-likelihood are those of `FVBMPseudoLikelihood`. A penalty sets weak
    couplings to exactly 0: the lasso, or for variables with more than two values the group lasso
    [1]_. With `max_order`, terms of three and more binary variables are selected, too.

    Parameters
    ----------
    penalty : {"group", "l1", "elasticnet", "l2"} or object, default="group"
        What is subtracted from the mean log pseudo-likelihood of the rows. Intercepts are never
        penalised. ``"group"``: the block of a pair is kept or set to 0 as a whole; with binary
        variables it is ``"l1"``, α Σ_{j<k} w_jk abs(m_jk). ``"elasticnet"``: α Σ_{j<k} [ρ w_jk
        abs(m_jk) + (1 - ρ)/2 w_jk² m_jk²] with ρ = `l1_ratio`. Both of these are for binary
        variables. ``"l2"``: ½ α Σ_{j<k} m_jk², which selects nothing, for `edges`, `nodewise` and
        `max_order`. The weights w are those of `standardize`. An object of your own with methods
        `value` and `prox` is a penalty of blocks, too: see :ref:`own_penalty`.

    alpha : float, "auto", "ebic" or "cv", default="auto"
        Strength α of the penalty, per row. With 0, `edges` are fitted without a penalty. Otherwise
        α is chosen from a path of 100 values, see Notes.

        ``"auto"`` looks for the true edges, by the adaptive lasso [6]_: pairs are selected twice,
        the second time with a penalty that shrinks weak couplings most and a price of edges that
        limits the share of false ones. Columns that have the same value in all but fewer than five
        rows get no edge, and a warning. ``"ebic"`` selects once, by the extended Bayesian
        information criterion [2]_, as IsingFit and bootnet do; where many pairs interact, it keeps
        many others besides. ``"cv"`` maximises the log pseudo-likelihood of held-out rows, and
        keeps most.

    l1_ratio : float, default=0.5
        The share ρ of L1 in ``penalty="elasticnet"``, above 0 and at most 1.

    standardize : bool, default=True
        Whether penalties that select pairs are weighted by how much the columns vary, so that pairs
        with a rare value are not left out for that reason alone. With the standard deviations σ of
        the columns, coded as -1 and 1, w_jk = σ_j σ_k. With `nodewise`, w_jk is the σ of the
        regressor alone, as in glmnet; this is the lasso with standardised columns. For a variable
        with q values, σ² is (1 - Σ p²) / (1 - 1/q). False means w_jk = 1. A group has the factor
        √((q_j - 1)(q_k - 1)) in any case. The second penalty of ``alpha="auto"`` has other weights,
        see Notes.

    ebic_gamma : float, default=None
        The γ of ``alpha="ebic"``. 0 is the BIC; larger values give sparser networks. None means
        0.25. With a number, ``alpha="auto"`` means ``"ebic"``.

    cv : int, cross-validation generator or iterable, default=5
        The folds of ``alpha="cv"``, as in scikit-learn. A number splits the rows in their order; if
        they are sorted, use ``KFold(5, shuffle=True)``.

    edges : array-like of pairs, or of bool of shape (n_features, n_features), default=None
        The variables that may be connected: pairs of their labels, in an array of their numbers, as
        in ``[("age", "income"), (0, 3)]``, or an array of such pairs of shape (n_pairs, 2); or a
        symmetric mask, whose diagonal is ignored. All other couplings are 0. None means all pairs.

    nodewise : {False, "and", "or"}, default=False
        With ``"and"`` and ``"or"``, each variable is fitted by itself, by its regression on all
        others (eLasso, the algorithm of the R package IsingFit [3]_). If α is chosen, each variable
        has its own. A pair then has two estimates. ``"and"`` keeps it if both differ from 0,
        ``"or"`` if one does; `coupling_` is their mean, or 0. With ``alpha="ebic",
        nodewise="and"`` the result for binary columns is that of IsingFit, whose λ is α/2 and whose
        weights, for 0 and 1, are 4 m_jk. Its thresholds are those of each regression by itself, see
        Notes.

    relax : bool, default=False
        Whether the selected pairs are fitted again without a penalty, so that `coupling_` is not
        shrunk: the estimate with these pairs as `edges` and ``alpha=0``, which is joint with
        `nodewise`, too. If some values of a pair never occur together, there may be no maximum,
        which gives a warning.

    max_order : int, default=2
        Largest number of (binary) variables in a term. With 3, those terms of three variables are
        added whose gain exceeds their description length. With 4 and more, a larger term may be
        chosen if all its sub-terms with one variable less have been chosen. The pairs that the
        penalty has selected are then fitted again with the terms, with a weak penalty on squares;
        with ``penalty="l2"`` all pairs are, with the penalty, as are the terms. If no term is
        chosen, the estimate is that with 2. See Notes.

    term_price : float, default=1.0
        Factor on the description length that the gain of a term must exceed. With 1, hardly any
        term is chosen by chance. Smaller values give more terms, some of them by chance; the
        held-out `score` is often best with 0.2 to 0.5.

    columns : str, list or dict, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"binned"`` or the list of its values; see :ref:`kinds`. A string is the kind
        of all columns. A dict names some, as in ``{"age": "number", "city": ["Oslo", "Rome"]}``, by
        name or number, and a list has an entry for each. ``"auto"`` looks at the table.

        Couplings of columns with an order and of numbers are smooth functions of their values. With
        ``alpha="auto"`` and ``"ebic"``, a pair may be selected as a trend alone. See Notes. With
        ``alpha=0`` numbers have 5 bins, and orders do not count.

    missing : {"em", "observed"}, default="em"
        How `fit` learns from rows with missing cells, as in `FVBMPseudoLikelihood`. `nodewise` and
        ``max_order > 2`` need ``"observed"``.

    tol : float, default=1e-5
        The fit ends where no derivative of the mean log pseudo-likelihood is further than this from
        the subdifferential of the penalty (the KKT conditions). EM and fits with terms end as in
        `FVBMPseudoLikelihood`.

    max_iter : int, default=None
        Maximum number of iterations; None means 1,000. With missing cells and ``missing="em"``, the
        number of rounds, each of which is a fit; None means 500. With terms of three, the number of
        rounds, each of which appends terms, fits all parameters and removes terms; None means 100.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        How to treat values after `fit` that did not occur in `fit`: see :ref:`unseen`.

    verbose : int, default=0
        If positive, print the kinds of the columns and a line at the end of a fit; if 1, show a
        bar after two seconds, with the time left where the number of iterations is known; if
        greater, print a line for each iteration. `predict_column_proba` has a bar of blocks of
        rows, too.

    Attributes
    ----------
    coupling_ : ndarray of shape (n_features, n_features) or (Σ n_values, Σ n_values)
        M, as in `FVBMPseudoLikelihood`.

    intercept_ : ndarray of shape (n_features,) or (Σ n_values,)
        b, in the same coding.

    terms_ : list of tuples of int
        The terms of three variables and more.

    term_weights_ : ndarray of shape (n_terms,)
        The weights θ_t of `terms_`: with variables of -1 and 1, the log-weight of a row is
        ½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i.

    term_gains_ : ndarray of shape (n_terms,)
        What each of `terms_` gains beside all others, in nats: half the square of its score in
        standard deviations. Terms were kept whose gain exceeds `term_price` times their description
        length, ½ ln N + ln C(d, 3) for three of d variables in N rows; see Notes.

    n_values_ : ndarray of int64 of shape (n_features,)
        Number of values of each variable.

    ordered_ : ndarray of bool of shape (n_features,)
        The variables whose couplings are smooth functions: only those with more than two values.

    values_ : ndarray of shape (2,)
        The coding of binary data: -1 and 1, or 0 and 1 (also where -1 does not occur). It does not
        exist if some variable has more than two values.

    alpha_ : float or ndarray of shape (n_features,)
        The strength of the penalty that was used, given or chosen: with ``alpha="auto"``, that of
        the second penalty. If it was chosen with `nodewise`, that of each variable, NaN if its
        column is constant.

    alphas_ : ndarray of shape (n,) or (n, n_features)
        With ``alpha="auto"``, ``"ebic"`` or ``"cv"``, the path: n <= 100 falling values. With
        ``"auto"`` it is that of the second penalty; if the first has selected no pair, n is 1. With
        `nodewise` each variable has its own path, with NaN after its end. If fewer than two
        columns vary, there is no pair to choose: n is 0, `alpha_` is 0, and there is no `path_`.

    path_ : Bunch
        The fits along the path, with a row for each value. ``alphas``, as above; ``coupling`` and
        ``intercept`` of the shapes (n, \\*coupling_.shape) and (n, \\*intercept_.shape);
        ``n_edges``, the number of pairs, of shape (n,); and what was chosen by: ``criterion`` with
        ``alpha="auto"`` or ``ebic``, which are minimised, or ``cv_score``, the mean of held-out
        rows in nats. Of tables with numbers in bins, a path has no ``coupling`` and ``intercept``,
        which would be large. With `nodewise`, row j of a coupling
        has the coefficients of the regression of variable j, so it is not symmetric. ``n_edges``
        then counts the neighbours of each variable, and is, like the criterion, of shape (n,
        n_features). A fit on the path ends within a 1,000th of α, or within `tol` if that is
        larger.

    solver_ : {"prox-newton", "lbfgs"}
        The solver that ran: ``"lbfgs"`` with terms of three.

    n_iter_ : int
        Number of iterations at `alpha_`, after larger penalties that lead to it; or of rounds.

    converged_ : bool
        Whether the fit ended because of `tol`, and no sign was found that the maximum does not
        exist. With draws for missing cells, the end of all rounds counts as convergence.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"log_pseudo_likelihood"``, the objective after each iteration: the mean over the rows in
        nats, less the penalty; and ``"seconds"`` of each iteration. With EM and with terms of three
        there is an entry for each round, with terms also ``"n_terms"``.

    log_partition_ : float
        ln Z, the logarithm of the normalising constant, in nats. It is computed at first access.

    columns_ : dict
        The kind of each column, by label or number, as `columns` calls it: declared, or found.

    categories_ : list of length `n_features_in_`
        For each column, its values in the order of their codes 0, 1, 2, ...: an array, or None for
        a column of numbers.

    n_features_in_ : int
        Number of variables.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the variables, if `X` had names.

    See Also
    --------
    FVBMPseudoLikelihood : Keeps all pairs, and shrinks them; standard errors without a split.
    sklearn_boltz.statistics.stability_selection : Pairs that are selected in most halves of rows.
    sklearn.covariance.GraphicalLassoCV : Sparse network of real-valued variables.

    Notes
    -----
    Networks are fitted by a proximal Newton method [4]_. Each iteration expands the log
    pseudo-likelihood to second order in a working set of pairs, and maximises this expansion less
    the penalty by coordinate descent, block by block. All pairs are checked in each iteration.
    Along a path each fit starts from the previous one, and keeps its second derivatives as long as
    they are accurate enough.

    The path begins with the smallest α that leaves no pair, and ends at a 10,000th of it, or at a
    100th if there are fewer rows than parameters. It ends earlier if 15 values in a row have not
    improved the criterion. With missing cells α and the pairs are chosen as with
    ``missing="observed"``, also if EM follows, which estimates these.

    ``alpha="ebic"`` minimises -2 ℓ + κ [ln N + 2 γ ln(d - 1)], for a binary variable with the
    log-likelihood ℓ given the others, κ neighbours, N rows and d columns. With ``nodewise=False``
    it is the sum of these over the variables, in which each pair counts at both of its ends.

    If some variable has more than two values, the criterion compares fits of the selected pairs
    without the penalty, which shrinks large blocks most: ℓ is the largest after a quarter, half or
    all of one Newton step in these pairs, from the smallest of the values of α in a row that select
    them; this α is the one that is taken, as it shrinks least. A block of k = (q_j - 1)(q_k - 1)
    couplings adds c_k with P(χ²_k > c_k) = P(χ²_1 > c_1), c_1 = ln N + 2 γ ln(d - 1): without an
    effect, it lowers -2 ℓ by c_k as often as a single coupling does by c_1.
    A price of k ln N leaves most networks of Likert items empty, and so, with a few hundred rows,
    does ln N for each of the effective degrees of freedom of the group lasso, 1 + (k - 1) ‖β‖ /
    ‖β_LS‖ for a block ([1]_, eq. 6.3); see ``benchmarks/fvbm/bench_likert.py``.

    Columns with an order, and numbers, have the three smoothest functions of those that
    `FVBMPseudoLikelihood` has, the first of which is a trend, and all if there are five values or
    fewer; a block is J = Φ_j K Φ_kᵀ, with the
    values of the functions in Φ. Its norm is that of K, where a function has half of its variance,
    as the contrasts of two values have. In the weights, σ is 1, and the sum of the variances of the
    functions, of which that of a trend is 1, takes the place of q - 1. A block is still kept or set
    to 0 as a whole.
    The criterion takes a block for a trend, one coupling in place of k, where its other couplings
    add less to -2 ℓ than to the price. For this choice, c_1 is 2 ln 2 larger.

    ``alpha="auto"`` first fits the regression of each column on all others by the EBIC, as
    ``nodewise="or"`` does. In the second penalty, the K pairs that these select have the weights
    w_jk = k / ‖J_jk‖, with the larger of two norms, 5 at most, and others are left out. Strong
    couplings are then hardly shrunk, so that no other pairs have to make up for what they lose, as
    with the lasso [6]_. The criterion is that of refits, as above, also of binary variables, but
    with the price c_1 by the false discovery rate: P(χ²_1 > c_1) = q (K / P) K / (K + 4). Here
    q K / P is the threshold of Benjamini and Hochberg for K of P pairs [7]_, with q = 0.05, or
    0.075 with ``nodewise="and"``, which asks for both ends of a pair. The last factor is below 1
    since the first step may have selected a few pairs by chance alone. Last, pairs are left out one
    by one while -2 ℓ of the refit, of which the other couplings go on by its second derivatives,
    rises by less than their price. A large block is dear and comes in late on the path, and what
    chance brought in before it would stay.

    IsingFit's threshold of column j is that of its regression: 2 (b_j - Σ_k m_jk) of row j of
    ``path_.intercept`` and ``path_.coupling`` at `alpha_`. `intercept_` belongs to the network that
    both regressions of each pair make.

    Couplings that were selected by the same rows have no ordinary standard errors; see
    :func:`~sklearn_boltz.statistics.inference` for a fit to other rows, and
    :func:`~sklearn_boltz.statistics.bootstrap`. Information criteria count the couplings of all
    values, and there are none where columns have fewer smooth functions.

    With ``max_order=3``, the scores of all triples are found at once by products of matrices. The
    gain of a term is half the square of its score in standard deviations, adjusted for the
    parameters of its parts. The term is chosen if its gain exceeds ½ ln N + ln C(d, 3) nats, its
    description length in a table of N rows and d variables. The standard deviations are those of
    the scores of the rows [5]_, since the information of a pseudo-likelihood is too large. Terms
    are appended, all parameters are fitted jointly, and terms that are no longer worth their
    description length are removed, until nothing changes. With ``penalty="l2"``, `alpha` penalises
    the weights θ_t as it does the couplings. Otherwise, both have such a penalty of strength
    2 (d - 1) / N, unless `alpha` is 0: where values never occur together, there is no maximum
    without one. Among selected pairs, or without a penalty, a term is eligible only if all joint
    values of its columns occur in at least five rows. Standard errors and information criteria are
    for pairs only.

    References
    ----------
    .. [1] M. Yuan and Y. Lin, "Model Selection and Estimation in Regression with Grouped
       Variables", Journal of the Royal Statistical Society B 68(1), 49–67, 2006.
       https://doi.org/10.1111/j.1467-9868.2005.00532.x
    .. [2] J. Chen and Z. Chen, "Extended Bayesian Information Criteria for Model Selection with
       Large Model Spaces", Biometrika 95(3), 759–771, 2008. https://doi.org/10.1093/biomet/asn034
    .. [3] C. D. van Borkulo et al., "A New Method for Constructing Networks from Binary Data",
       Scientific Reports 4, 5918, 2014. https://doi.org/10.1038/srep05918
    .. [4] J. D. Lee, Y. Sun and M. A. Saunders, "Proximal Newton-Type Methods for Minimizing
       Composite Functions", SIAM Journal on Optimization 24(3), 1420–1443, 2014.
       https://doi.org/10.1137/130921428
    .. [5] C. Varin, N. Reid and D. Firth, "An Overview of Composite Likelihood Methods",
       Statistica Sinica 21(1), 5–42, 2011, section 2.
    .. [6] H. Zou, "The Adaptive Lasso and Its Oracle Properties", Journal of the American
       Statistical Association 101(476), 1418–1429, 2006.
       https://doi.org/10.1198/016214506000000735
    .. [7] F. Abramovich, Y. Benjamini, D. L. Donoho and I. M. Johnstone, "Adapting to Unknown
       Sparsity by Controlling the False Discovery Rate", Annals of Statistics 34(2), 584–653,
       2006. https://doi.org/10.1214/009053606000000074

    Examples
    --------
    The third column mostly repeats the first. The other pairs are too weak to be selected.

    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> SparseFVBM().fit(X).coupling_.round(1) + 0.0
    array([[0. , 0. , 0.7],
           [0. , 0. , 0. ],
           [0.7, 0. , 0. ]])

    Answers to four questions, with an order. The last is near the first.

    >>> words = np.array(["never", "seldom", "often", "always"])
    >>> answers = rng.integers(4, size=(200, 4))
    >>> answers[:, 3] = np.clip(answers[:, 0] + rng.integers(-1, 2, size=200), 0, 3)
    >>> model = SparseFVBM(columns=("ordinal", words.tolist())).fit(words[answers])
    >>> model.categories_[0].tolist()
    ['never', 'seldom', 'often', 'always']
    >>> np.argwhere(np.triu(model.interaction_scores(apc=False)))
    array([[0, 3]])
    """

    _parameter_constraints = CONSTRAINTS | {
        "penalty": [StrOptions({"group", "l1", "elasticnet", "l2"}), HasMethods(["value", "prox"])],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto", "ebic", "cv"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "standardize": ["boolean"],
        "ebic_gamma": [Interval(Real, 0, None, closed="left"), None],
        "cv": ["cv_object"],
        "edges": ["array-like", None],
        "nodewise": [Options(bool, {False}), StrOptions({"and", "or"})],
        "relax": ["boolean"],
        "max_order": [Interval(Integral, 2, None, closed="left")],
        "term_price": [Interval(Real, 0, None, closed="neither")],
        "missing": [StrOptions({"em", "observed"})],
    }

    def __init__(
        self,
        *,
        penalty="group",
        alpha="auto",
        l1_ratio=0.5,
        standardize=True,
        ebic_gamma=None,
        cv=5,
        edges=None,
        nodewise=False,
        relax=False,
        max_order=2,
        term_price=1.0,
        columns="auto",
        missing="em",
        tol=1e-5,
        max_iter=None,
        unseen="smooth",
        verbose=0,
    ):
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.standardize = standardize
        self.ebic_gamma = ebic_gamma
        self.cv = cv
        self.edges = edges
        self.nodewise = nodewise
        self.relax = relax
        self.max_order = max_order
        self.term_price = term_price
        self.columns = columns
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen
        self.verbose = verbose

    _further = "terms_", "term_weights_"
    # Of the first penalty, with a number as alpha: those of a fit of other rows.
    _given_norms = None

    @property
    def _need(self):
        # Smooth functions of a number take finer bins; of all functions of few there are errors.
        return Network._need._replace(most_bins=MOST_BINS if self.alpha == 0 else CELLS)

    def _plan(self, rows, batches, initial):
        self._check_rows(rows)
        ordered = smooth_columns(self._encoder, rows.coding, self.alpha)
        smooth = ordered.any()
        task = FeatureTask.of_rows(rows, self._encoder) if smooth else self._task(rows, batches)
        sparse, found = self._sparse_task(task, rows)
        found = {"_norms": None, "ordered_": ordered, "term_gains_": np.zeros(0)} | found
        select, max_iter = self._steps(rows, task, sparse.method, initial)
        solver = sparse.method.name

        def relaxed(monitor):
            """Without a penalty, for the pairs that have been selected."""
            first = self._monitor(max_iter)
            message, pairs = select(first), task.network(first.last)[:2]
            again = SparseTask(task, tol=self.tol, remedy="relax=False")
            again.keep_pairs(pairs[0])
            refit, _ = self._steps(rows, task, again.method, pairs)
            return refit(monitor) or message

        fit_pairs = relaxed if self.relax else select

        def with_terms(monitor):
            """With terms of three columns and more besides the pairs selected, or these alone."""
            first = self._monitor(max_iter)
            pairs_message, begin = fit_pairs(first), task.network(first.last)[:2]
            message = add_terms(monitor, (begin, begin[0] != 0))
            if monitor.last.terms:
                return message
            monitor.keep(first.last)
            return pairs_message

        def add_terms(monitor, pairs):
            task.problem.set_alpha(self._ridge_of_terms(task.problem, found["alpha_"]))
            message, found["term_gains_"] = fit_terms(
                task, *pairs, self.max_order, self.term_price, monitor
            )
            return message

        if self.max_order == 2:
            return task, solver, fit_pairs, self._monitor(max_iter), found
        has_all = self.penalty == "l2" and self.edges is None
        steps = partial(add_terms, pairs=(initial, None)) if has_all else with_terms
        return task, "lbfgs", steps, self._monitor(MAX_ROUNDS), found

    def _ridge_of_terms(self, problem, alpha):
        """The strength of the penalty on squares where terms are fitted."""
        if self.penalty == "l2" or self.alpha == 0 or not len(problem.n_values):
            return alpha
        # Where values never occur together, there is no maximum without one.
        return least_strength(problem.n_values) / problem.total

    def _sparse_task(self, task, rows):
        """The task with the penalty, and the attributes of its strength."""
        alpha, edges = self._alpha(), self._allowed_pairs()
        if alpha == "auto":
            edges = self._without_rare(rows, edges)
        sparse = SparseTask(
            task, tol=self.tol, remedy="alpha > 0, for example alpha=0.01", penalty=self.penalty,
            l1_ratio=self.l1_ratio, edges=edges, nodewise=self.nodewise,
            standardize=self.standardize, keeps_path=not self._encoder.is_binned.any(),
        )  # fmt: skip
        if not isinstance(alpha, str):
            sparse.alpha = float(alpha)
            if self._given_norms is not None:
                sparse.norms = self._given_norms[np.ix_(task.varying, task.varying)]
            return sparse, {"alpha_": sparse.alpha}
        if len(task.varying) < 2:
            return sparse, sparse.without_pairs()
        gamma = GAMMA if self.ebic_gamma is None else self.ebic_gamma
        found = sparse.choose(
            rows.codes, rows.weights, how=alpha, gamma=gamma, cv=self.cv, verbose=self.verbose
        )
        if sparse.norms is not None:
            found["_norms"] = np.zeros((self.n_features_in_,) * 2)
            found["_norms"][np.ix_(task.varying, task.varying)] = sparse.norms
        if alpha != "cv":
            pairs = neighbours(sparse.network, sparse.start)  # where the fit begins
            if not pairs.any():
                self._warn_of_empty(sparse, rows)
            # With the same alpha, EM would find others by chance, and what is left out come back.
            if alpha == "auto" or self._completes(rows):
                sparse.edges = pairs
        return sparse, found

    def _alpha(self):
        """`alpha`, or "ebic" where a γ is given for it."""
        by_ebic = self.alpha == "auto" and self.ebic_gamma is not None
        return "ebic" if by_ebic else self.alpha

    def _without_rare(self, rows, edges):
        """The mask of pairs without those of columns that hardly vary, of which it tells."""
        rare = rare_columns(rows.codes, rows.weights)
        if not rare.any():
            return edges
        warn(
            f"SparseFVBM: {self._have(np.flatnonzero(rare))} the same value in all but fewer than "
            f"{LEAST_ROWS} rows, too few to tell an edge from chance, and so alpha='auto' gives no "
            "edge there. Leave the column out, or set alpha='ebic'."
        )
        return ~(rare | rare[:, np.newaxis]) & (True if edges is None else edges)

    def _warn_of_empty(self, sparse, rows):
        """Tell of pairs that Pearson's chi-squared test finds where no pair has been selected."""
        pairs, n = sparse.candidates(), rows.coding.n_values
        of_bins = np.where(
            self._encoder.is_binned, rows.codes * np.minimum(MOST_BINS, n) // n, rows.codes
        )
        found = dependent_pairs(of_bins, rows.weights, pairs)
        if found:
            named = [" and ".join(map(self._column, pair)) for pair in found[:N_NAMES]]
            more = f"; and {len(found) - N_NAMES} more" if len(found) > N_NAMES else ""
            warn(
                f"alpha={self._alpha()!r} has selected no pair, and yet Pearson's chi-squared test "
                f"with Holm's adjustment finds {len(found)} of {len(pairs)} pairs dependent at "
                f"{LEVEL:.0%}: {'; '.join(named)}{more}. Use alpha='cv'."
            )

    def _check_rows(self, rows):
        """Refuse what the rows do not allow, and say what goes."""
        penalty, alpha, is_binary = self.penalty, self.alpha, rows.coding.is_binary
        if penalty == "l2" and alpha in ("auto", "ebic"):
            refuse(
                f"alpha={alpha!r} compares sets of pairs, and penalty='l2' keeps all",
                "Use penalty='group', alpha='cv', or a number as alpha.",
            )
        if penalty == "l2" and alpha != 0 and self.relax:
            refuse(
                "relax=True fits the pairs that a penalty has selected, and penalty='l2' keeps all",
                "Use penalty='group', or relax=False.",
            )
        if penalty in ("l1", "elasticnet") and not is_binary:
            refuse(
                f"penalty={penalty!r} is for binary columns: which entries of a larger block are 0 "
                "depends on how values are compared",
                "Use penalty='group', which selects whole pairs of columns.",
            )
        if rows.scores and self.max_order > 2:
            raise ValueError(
                "SparseFVBM: terms of three columns are for tables without normal scores of "
                "numbers. Leave max_order at 2, or take numbers in bins."
            )
        if rows.codes is None:
            raise ValueError(
                "SparseFVBM keeps all distinct rows in memory, and these batches have too many. "
                "Use fewer rows, or FVBMPseudoLikelihood."
            )
        if alpha == "cv" and not rows.in_order:
            other = "a number as alpha" if penalty == "l2" else "alpha='auto'"
            raise ValueError(
                "alpha='cv' needs the rows one by one; of batches and with partial_fit, only the "
                f"distinct rows are kept. Use {other}, or fit one table."
            )
        is_completed = self._completes(rows)
        if self.nodewise and is_completed:
            refuse(
                "nodewise fits each column by itself, and there is no model of all to complete "
                "rows by",
                "Use missing='observed', or nodewise=False.",
            )
        if self.max_order > 2 and not is_binary:
            raise ValueError(
                f"SparseFVBM: terms of three columns are for binary columns, and "
                f"{self._have(rows.coding.larger_columns)} more than two values. Use FSLLDensity "
                "or one-hot columns, or max_order=2."
            )
        if self.max_order > 2 and is_completed:
            missing = self._have(rows.incomplete_columns)
            raise ValueError(
                f"SparseFVBM: missing='em' is for pairwise networks, and {missing} missing cells "
                "(NaN). With terms of three columns use missing='observed'."
            )

    def _allowed_pairs(self):
        """The mask that `edges` stands for; None for all pairs."""
        edges = self.edges
        if edges is None:
            return None
        if are_pairs(edges):
            return self._mask_of_pairs(edges)
        d, mask = self.n_features_in_, as_array(edges)
        if mask.dtype.kind in "iu" and mask.shape[1:] == (2,):
            return self._mask_of_pairs(mask.tolist())
        if mask.shape != (d, d) or mask.dtype.kind != "b":
            raise InvalidParameterError(
                "edges must be pairs of columns, a list or an array of shape (n, 2), or an array "
                f"of bool of shape {(d, d)}, True where two may be connected; got {mask.dtype} of "
                f"shape {mask.shape}."
            )
        if not np.array_equal(mask, mask.T):
            j, k = np.argwhere(mask != mask.T)[0]
            raise InvalidParameterError(
                f"edges must be symmetric, and edges[{j}, {k}] is {mask[j, k]} but edges[{k}, {j}] "
                f"is {mask[k, j]}. Use edges | edges.T, or edges & edges.T."
            )
        return mask

    def _mask_of_pairs(self, edges):
        """Where the two columns of a pair meet."""
        mask = np.zeros((self.n_features_in_,) * 2, dtype=bool)
        for pair in edges:
            try:
                j, k = map(self._variable, pair)
            except (TypeError, ValueError) as error:
                raise InvalidParameterError(
                    f"edges has the pair {tuple(pair)!r}. {error}"
                ) from error
            if j == k:
                refuse(
                    f"edges has the pair {tuple(pair)!r} of {self._column(j)} with itself",
                    "Leave it out.",
                )
            mask[[j, k], [k, j]] = True
        return mask

    def _ridge(self):
        return 0.0 if self._has_selected() else self.alpha_

    def _has_selected(self):
        # On a path, also where α is 0, as no pair was left.
        return self.penalty != "l2" and (hasattr(self, "path_") or np.any(self.alpha_ != 0))

    def _functions(self, codes, weights):
        if self.ordered_.any():
            rows = Rows(self._encoder.coding, self._sample_dtype, codes, weights)
            task = FeatureTask.of_rows(rows, self._encoder)
            return SparseTask(task, tol=self.tol, remedy="").functions

    def _no_errors(self):
        if self._has_selected():
            return (
                f"the penalty {self.penalty!r} has selected couplings by these rows, and so "
                "ordinary standard errors would be too small. Let one half of the rows select and "
                "the other estimate by statistics.inference(model, X, split=0.5), or use "
                "statistics.bootstrap."
            )
        if self.nodewise:
            return (
                "there are no standard errors with nodewise, whose couplings are the means of two "
                "estimates. Fit with nodewise=False, or use statistics.bootstrap."
            )
        remedy = "Use FVBMPseudoLikelihood(), of which `inference` tests trends without a penalty."
        return no_errors_of_ordered(self._have, self.ordered_, remedy)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        is_pairwise = self.max_order == 2 and not self.nodewise
        tags.input_tags.allow_nan = self.missing == "observed" or is_pairwise
        return tags


def are_pairs(edges):
    """Whether edges are given as a list of pairs of names or numbers of columns."""
    return isinstance(edges, (list, tuple)) and all(
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and not any(isinstance(column, (bool, np.bool_)) for column in pair)
        for pair in edges
    )


def as_array(edges):
    try:
        return np.asarray(edges)
    except ValueError as error:
        raise InvalidParameterError(
            "edges must be a list of pairs of columns or an array of bool, and its rows are of "
            "different lengths."
        ) from error
