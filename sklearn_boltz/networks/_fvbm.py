"""FVBMPseudoLikelihood: the pairwise network of binary or categorical variables."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._methods import fingerprint
from sklearn_boltz._warnings import warn
from sklearn_boltz.networks._network import CONSTRAINTS, Network
from sklearn_boltz.networks._rows import Rows, no_errors_of_ordered
from sklearn_boltz.networks.features._task import FeatureTask, has_order, smooth_columns
from sklearn_boltz.networks.sparse._network import Functions
from sklearn_boltz.networks.training._em import kept_newton
from sklearn_boltz.networks.training._solvers import newton
from sklearn_boltz.networks.training._strength import choose_strength
from sklearn_boltz.tables._bins import CELLS

# Solvers of [1], which need all distinct rows in memory, and binary columns.
OF_PAPER = ("bslm", "ga")


def _checked_couplings(J, h):
    """Finite couplings and fields whose shapes match; fields may be a row or a column."""
    J = check_array(J, dtype=np.float64, input_name="J")
    n = len(J)
    h = (
        np.zeros(n)
        if h is None
        else check_array(np.atleast_1d(h), dtype=np.float64, ensure_2d=False, input_name="h")
    )
    if h.shape in ((1, n), (n, 1)):
        h = h.ravel()
    if J.shape != (n, n) or h.shape != (n,):
        raise ValueError(
            "J must have the shape (n, n), and h the shape (n,), a field for each column; "
            f"got {J.shape} and {h.shape}."
        )
    with np.errstate(over="ignore"):
        largest = np.abs(J).sum() / 2 + np.abs(h).sum()
    if not np.isfinite(largest):
        raise ValueError(
            "J and h are so large that energies are beyond the range of floats, 1.8e308. Divide "
            "both by a number."
        )
    if not np.allclose(J, J.T, rtol=1e-12, atol=0) or J.diagonal().any():
        raise ValueError(
            "J must be symmetric with a zero diagonal. For a triangle of couplings, give "
            "J + J.T; the diagonal of bits belongs to h."
        )
    return J, h


class FVBMPseudoLikelihood(Network):
    """Fully visible Boltzmann machine, fitted by maximum pseudo-likelihood.

    A network of pairwise interactions of discrete variables. With binary variables it is the Ising
    model: with x in {-1, 1}^d,

        P(x) = exp(½ xᵀ M x + bᵀ x) / Z.

    If some variables have more values, it is the Potts model: the same with one-hot x, where M has
    a block for each pair of variables. Rows may have missing cells.

    The maximum pseudo-likelihood estimate needs no normalising constant. It is consistent and
    asymptotically normal, so each coupling has a standard error: see
    :func:`~sklearn_boltz.statistics.inference`.

    Parameters
    ----------
    columns : str, list or dict, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"cyclic"``,
        ``"count"``, ``"number"``, ``"binned"`` or the list of its values; see :ref:`kinds`. A
        string is the kind of all columns. A dict names some, as in ``{"age": "number", "city":
        ["Oslo", "Rome"]}``, by name or number, and a list has an entry for each. ``"auto"`` looks
        at the table.

        Couplings of ``"ordinal"`` and ``"cyclic"`` columns and of numbers, which are put into up to
        64 bins, are smooth functions of the values, see Notes. With ``alpha=0``, orders do not
        count, and there are up to 32 bins.

    alpha : float or "auto", default="auto"
        Strength α of the penalty ½ α Σ_{j<k} m_jk², which is subtracted from the mean log
        pseudo-likelihood of the rows; 0 is the plain maximum. With ``alpha > 0`` the maximum exists
        for all data; where it counts the order of some column, there are no standard errors.
        ``"auto"`` estimates the strength from the rows, and where some column has more than two
        values, one for each pair of columns: see Notes. Standard errors, tests, criteria and the
        bootstrap are then those of the estimate without the penalty, in ``"ordinal"`` columns with
        a trend for each pair, see `inference`; the bootstrap of numbers chooses a penalty for each
        resample.

    missing : {"em", "observed"}, default="em"
        How `fit` learns from rows with missing cells (NaN), which must be missing at random.
        ``"em"`` replaces such a row by all its completions, weighted by their probabilities given
        the observed cells, and fits the model again until nothing changes. A row with more than
        4,096 completions is completed by `n_draws` draws, new ones in each of 20 rounds. If all
        completions together have more than 524,288 cells, so are the rows with the most
        completions. With smooth functions or ``alpha="auto"`` and columns of more than two values,
        all incomplete rows are completed by draws, in 30 rounds, or up to 60 while the objective
        rises, and the result is the mean of the last ten.
        ``"observed"`` leaves out the terms of missing cells and their contributions to others. It
        is faster, as it needs a single fit, and slightly biased. Rows without an observed cell are
        ignored.

    n_draws : int, default=10
        With ``missing="em"``, the most draws, in each round, for each row that has too many
        completions. The more rows there are, the fewer draws of each suffice: a round has about
        8,192, or where all incomplete rows are completed by draws 1,024, but at least one of each
        row.

    solver : {"newton", "lbfgs", "bslm", "ga"}, default="newton"
        ``"newton"`` is Newton's method with a line search. With more than 3,000 parameters (77
        variables), ``"lbfgs"`` takes its place. ``"bslm"`` is block successive lower-bound
        maximisation, the algorithm of [1]_: no step lowers the objective. ``"ga"`` is gradient
        ascent, the same with all steps multiplied by `step_size`. All reach the same, unique
        maximum. ``"bslm"`` and ``"ga"`` are for binary columns. With smooth functions, or
        ``alpha="auto"`` and columns of more than two values, the solver is ``"lbfgs"``.

    step_size : float, default=1.0
        Factor μ on the steps of ``solver="ga"``. Above 1, the objective may fall, and the fit need
        not converge.

    tol : float, default=1e-5
        The fit ends when an iteration, or a round of EM, raises the objective, summed over the
        rows, by less than this, in nats. At 0.05 nats below the maximum, an estimate is off by less
        than a third of its standard error.

    max_iter : int, default=None
        Maximum number of iterations. None means 100 for ``"newton"``, 5,000 for ``"lbfgs"``, and
        10,000 sweeps for ``"bslm"`` and ``"ga"``. With missing cells and ``missing="em"``, the
        number of rounds, each of which is a fit; None means 500. With smooth functions, or
        ``alpha="auto"`` and columns of more than two values, the number of rounds of up to 25
        steps; None means 60.

    warm_start : bool, default=False
        Whether `fit` begins at the parameters of the previous fit.
        Columns stay as they are: rows have the columns of the first fit, with its kinds and bins.
        Categories that it did not see are added, and the fit then begins anew.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        How to treat values after `fit` that did not occur in `fit`: see :ref:`unseen`.
        ``"smooth"`` gives them a small probability in `score_samples` and treats the cells as
        missing elsewhere; ``"missing"`` does so in `score_samples`, too; ``"error"`` raises an
        error. In an array of numbers, other values are always an error.

    verbose : int, default=0
        If positive, print the kinds of the columns and a line at the end of a fit; if 1, show a
        bar after two seconds, with the time left where the number of iterations is known; if
        greater, print a line for each iteration. `predict_column_proba` has a bar of blocks of
        rows, too.

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

    n_values_ : ndarray of int64 of shape (n_features,)
        Number of values of each variable.

    ordered_ : ndarray of bool of shape (n_features,)
        The variables whose order counts: ordinal ones and bins, and with a number as `alpha` cyclic
        ones.

    values_ : ndarray of shape (2,)
        The coding of binary data: -1 and 1, or 0 and 1 (also where -1 does not occur). It does not
        exist if some variable has more than two values.

    alpha_ : float or ndarray of shape (n_features, n_features)
        The strength of the penalty that was used, given or chosen. Chosen where some column has
        more than two values, an array: 1 / (N v) for N rows and the variance v of the couplings of
        each pair, see Notes; 0 on the diagonal.

    solver_ : str
        The solver that ran.

    n_iter_ : int
        Number of iterations (sweeps of ``"bslm"`` and ``"ga"``, or rounds of EM).

    converged_ : bool
        Whether the fit ended because of `tol`, and no sign was found that the maximum does not
        exist. With draws for missing cells, the end of all rounds counts as convergence.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"log_pseudo_likelihood"``, the objective after each iteration: the mean over the rows in
        nats, less the penalty; and ``"seconds"`` of each iteration. With missing cells and
        ``missing="em"`` there is an entry for each round, for the rows as completed in it.

    log_partition_ : float
        ln Z, the logarithm of the normalising constant, in nats. It is computed at first access;
        Notes say when it is exact.

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
    SparseFVBM : Selects pairs, and terms of three and more variables.
    MaximumEntropy : Maximises the likelihood: slower, with samples that resemble the data more.
    FSLLDensity : Chooses interactions of any order; exact likelihood.
    sklearn_boltz.statistics : Standard errors, tests and statistics of a fitted network.

    Notes
    -----
    Equal rows are merged first. In `sample_weight`, whole numbers are counts: a row of weight 2 is
    the same as two rows. Other numbers are relative (:ref:`weights`).

    A constant column carries no information on its couplings, which stay 0. Its intercept is that
    of the data plus one observation spread evenly over its values. The same holds for a value that
    never occurs.

    Intercepts are never penalised. If some variable has more than two values, the penalty is α/8
    times the sum of the squares of all entries of the blocks j < k. For binary variables this is
    the same.

    The penalty is a normal prior of the couplings, and ``alpha="auto"`` estimates its variance s:
    with N rows of d binary columns, α is 2 (d - 1) / N, and larger where couplings are weak.
    For independent columns, αN is 2/s, as each pair enters the pseudo-likelihood twice. In general
    the 2 is the variance of the scores of the couplings over the information on them. The first fit
    has s = 1 / (d - 1): with this variance, the other columns together move the field of each
    column with a variance of 1. If the couplings found are smaller than that, the next s explains
    the sum of their squares, the errors of the estimates included [3]_. There are at most two fits
    with such an s. s is never made larger: where few rows separate columns, the couplings grow for
    that reason alone. A column of q values counts 2 (1 - 1/q) times in d - 1. αN is bounded as the
    number of rows grows, so the effect of the penalty vanishes, unless all couplings are 0. In
    simulations and on real tables the held-out pseudo-likelihood is near the best of a grid, and
    with few rows far better than without a penalty.

    If some columns have more than two values, the couplings of a pair are those of functions of
    both columns, J(a, b) = φ(a)ᵀ K ψ(b). Columns without an order have a function for each value.
    Columns with an order, and numbers, have up to 15 (with n > 4,096 rows about the cube root of n,
    to 24) that are linear between knots at quantiles, uncorrelated, and the smoothest first. A
    function of roughness ρ, the sum of its squared second differences at the knots, has the
    variance 1 / (1 + 0.3 ρ). The prior of K_mm' is normal, with variance v r_m r_m': v is that of
    the pair, and r_m that of the m-th smoothest functions, of all columns with an order. Both are
    estimated with the couplings, as means of K² and of the variance of K given the data [4]_. So
    the few strong pairs of a table are shrunk less than the many weak ones, and couplings are as
    smooth as the table suggests. The fit goes on to the maximum of the pseudo-likelihood with these
    variances, or until 25 steps gain less than a nat; with more than 65,536 distinct rows, or
    missing cells, the estimate is the mean of ten rounds with different rows and completions. Where
    columns nearly determine each other, the pseudo-likelihood says nothing about the frequencies of
    their values: intercepts of strongly coupled columns are then changed until the two, drawn
    together given the others, have their shares in the rows.

    With a number as `alpha`, the penalty of K_11 is ½ α (3 K_11)². 3 K_11 is the coupling of the
    ends of two trends with equal steps, and m_jk that of two values ±1. The m-th smoothest
    functions cost m (m + 1) / 2 times as much, as polynomials do for which neighbouring levels are
    alike. Numbers of a frame that have few values and no declared order are then categories.

    The estimate from rows with missing cells solves an unbiased equation: the expected score given
    the observed cells is 0. `score_samples` and `log_pseudo_likelihood` are those of
    the observed cells. The draws of ``missing="em"`` have a fixed seed.

    The pseudo-likelihood compares each row with those that differ from it in one variable. It
    ignores states far from all rows. If the data do not come from a pairwise model, the estimate
    may have nearly all its mass there. This is common where rare values have common causes: 20
    columns can be enough, and more rows do not help. `sample` and, beyond 26 connected variables,
    `log_partition_` compare the rate of each column with that in the training data and warn. There
    are three remedies: a large penalty, an `alpha` of 0.05 to 0.5 in our measurements, chosen by
    the held-out `score`; fewer columns; or `MaximumEntropy`, which takes all states into account.

    Up to 26 connected binary variables, or 2**26 joint states, everything is exact:
    `log_partition_`, `score_samples`, `marginal`, independent samples from `sample`. Beyond that,
    samples, the normalising constant and `entropy` come from Gibbs chains at several temperatures
    that exchange states. `log_partition_` and `entropy` then have a fixed seed and a standard error
    of 0.05 nats or less, if 5,000 rounds are enough. `log_partition` reports how far to trust an
    estimate, and warns if it is not to be trusted.

    There is no `n_jobs`: a fit spends its time in BLAS, which has its own threads.

    References
    ----------
    .. [1] H. D. Nguyen and I. A. Wood, "A Block Successive Lower-Bound Maximization Algorithm
       for the Maximum Pseudo-Likelihood Estimation of Fully Visible Boltzmann Machines",
       Neural Computation 28(3), 485–492, 2016. https://doi.org/10.1162/NECO_a_00813
    .. [2] H. D. Nguyen and I. A. Wood, "Asymptotic Normality of the Maximum Pseudolikelihood
       Estimator for Fully Visible Boltzmann Machines", IEEE Transactions on Neural Networks
       and Learning Systems 27(4), 897–902, 2016. https://doi.org/10.1109/TNNLS.2015.2425898
    .. [3] B. Efron and C. Morris, "Stein's Estimation Rule and Its Competitors: An Empirical Bayes
       Approach", Journal of the American Statistical Association 68(341), 117–130, 1973.
       https://doi.org/10.1080/01621459.1973.10481350
    .. [4] D. J. C. MacKay, "Bayesian Interpolation", Neural Computation 4(3), 415–447, 1992.
       https://doi.org/10.1162/neco.1992.4.3.415

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
    """

    _parameter_constraints = CONSTRAINTS | {
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "missing": [StrOptions({"em", "observed"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"newton", "lbfgs", *OF_PAPER})],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        columns="auto",
        alpha="auto",
        missing="em",
        n_draws=10,
        solver="newton",
        step_size=1.0,
        tol=1e-5,
        max_iter=None,
        warm_start=False,
        unseen="smooth",
        verbose=0,
    ):
        self.columns = columns
        self.alpha = alpha
        self.missing = missing
        self.n_draws = n_draws
        self.solver = solver
        self.step_size = step_size
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.unseen = unseen
        self.verbose = verbose

    @classmethod
    def from_couplings(cls, J, h=None, *, coding="spins"):
        """Return a network with given couplings and fields, as if it had been fitted.

        Parameters
        ----------
        J : array-like of shape (n_features, n_features)
            The couplings, symmetric with a zero diagonal: p(x) ∝ exp(½ x·Jx + h·x).
        h : array-like of shape (n_features,), (1, n_features) or (n_features, 1), default=None
            The fields; None for zeros.
        coding : {"spins", "bits"}, default="spins"
            Whether the values of x are -1 and 1 or 0 and 1.

        Returns
        -------
        network : FVBMPseudoLikelihood
            `coupling_` and `intercept_` refer to spins; rows and samples have the given coding.
            The energy is E(x) = -½ x·Jx - h·x in this coding, and with it ln Z.

        Raises
        ------
        ValueError
            If the couplings are not symmetric, the shapes do not match, or a number or the energy
            of a row is not finite.

        Examples
        --------
        Two spins: the energies are -0.5 where they agree and 0.5 where they differ. Two bits: the
        energy is -0.5 where both are 1.

        >>> from sklearn_boltz import FVBMPseudoLikelihood
        >>> network = FVBMPseudoLikelihood.from_couplings([[0, 0.5], [0.5, 0]])
        >>> network.energy([[1, 1], [1, -1]])
        array([-0.5,  0.5])
        >>> bits = FVBMPseudoLikelihood.from_couplings([[0, 0.5], [0.5, 0]], coding="bits")
        >>> bits.energy([[1, 1]])
        array([-0.5])
        """
        if coding not in ("spins", "bits"):
            raise ValueError(f"coding must be 'spins' or 'bits', got {coding!r}.")
        (J, h), is_spins = _checked_couplings(J, h), coding == "spins"
        first = np.full(len(J), -1 if is_spins else 0)
        network = cls(alpha=1.0).fit([first, np.ones_like(first)]).set_params(alpha="auto")
        network.coupling_, network.intercept_ = J, h
        if not is_spins:
            # With bits x = (1 + s) / 2.
            network.coupling_, network.intercept_ = J / 4, h / 2 + J.sum(axis=1) / 4
            network._constant = float(J.sum() / 8 + h.sum() / 2)
        network._seen = tuple(rows[:0] for rows in network._seen)
        return network

    @property
    def _need(self):
        # Smooth functions of a number, which are penalised, take finer bins.
        return Network._need if self.alpha == 0 else Network._need._replace(most_bins=CELLS)

    def _plan(self, rows, batches, initial):
        if self.solver in OF_PAPER:
            self._check_solver(rows)
        alpha, table = self.alpha, self._encoder
        ordered = smooth_columns(table, rows.coding, alpha, by_kind=alpha != "auto")
        if ordered.any() or alpha == "auto" and not rows.coding.is_binary:
            n_draws = self.n_draws if self._completes(rows) else 0
            given = None if alpha == "auto" else float(alpha)
            plan = self._plan_of_features(rows, initial, n_draws, alpha=given)
            ordered &= has_order(table) | (alpha != "auto")
            if self.solver in OF_PAPER:
                plan[0].method(self.solver)  # refuses more than two values
            plan[-1]["ordered_"] = ordered
            return plan
        alpha = 0.0 if alpha == "auto" else alpha
        task = self._task(rows, batches, alpha)
        first = task.method("newton")
        if self.alpha == "auto":
            # Without second derivatives if so asked: on ALARM, in a third of the time.
            quick = task.method("lbfgs") if self.solver == "lbfgs" else first
            alpha, initial = choose_strength(task, quick, initial)
        found = {"alpha_": alpha, "ordered_": ordered}
        solver = kept_newton() if self._completes(rows) else newton
        method = task.method(self.solver, self.step_size, solver)
        steps, max_iter = self._steps(rows, task, method, initial, first, self.n_draws)
        return task, method.name, steps, self._monitor(max_iter), found

    def _check_solver(self, rows):
        """Refuse rows that the solvers of the paper do not take, and warn of long steps."""
        if self.solver == "ga" and self.step_size > 1:
            warn(
                "With step_size > 1 gradient ascent may lower the pseudo-likelihood and need "
                "not converge."
            )
        if rows.codes is None:
            raise ValueError(
                f"solver={self.solver!r} keeps all distinct rows in memory, and these batches "
                "have too many. Use solver='newton' or 'lbfgs'."
            )
        if rows.coding.is_binary and self.missing == "observed" and not rows.is_complete:
            raise ValueError(
                f"solver={self.solver!r} needs complete rows. Use solver='newton' or 'lbfgs', "
                "or missing='em', which completes them."
            )

    def _no_errors(self):
        # Of levels, they are those of the estimate without the penalty. Bins are too many for it;
        # statistics.inference has scores of numbers instead.
        ordered = self.ordered_ & (self._encoder.is_binned | (not self._is_chosen()))
        remedy = "Fit with alpha='auto', and `inference` is about trends without a penalty."
        if self.alpha == "auto":
            remedy = "Compare models by `score` of other rows."
        return no_errors_of_ordered(self._have, ordered, remedy)

    def _functions(self, codes, weights):
        if self.alpha != "auto" and self.ordered_.any():
            rows = Rows(self._encoder.coding, self._sample_dtype, codes, weights)
            task = FeatureTask.of_rows(rows, self._encoder, alpha=float(self.alpha))
            found = []
            for n, basis in zip(task.n_fitted, task.bases(), strict=True):
                functions, degrees = Functions.of(n, basis, False, most=n), basis.order + 1
                if not basis.is_nominal:
                    functions = functions._replace(costs=3 * degrees * (degrees + 1) / 2)
                found.append(functions)
            return found

    def _is_chosen(self):
        return self.alpha == "auto" and fingerprint(self._parameters()) == self._estimate

    def _unpenalised(self, codes, weights):
        if not self._is_chosen():
            return self
        rows = (codes, weights) if self._seen is None else self._seen_rows()
        # Scores of numbers add to the couplings of two columns what is no trend.
        trends = self.ordered_ if self.ordered_.any() and self._gaussians is None else None
        refitted = partial(self._refitted, *rows, alpha=0.0, _trends=trends)
        return self._cached("without_penalty", refitted, *rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "em" or self.solver not in OF_PAPER
        return tags
