"""MaximumEntropy: the pairwise network with the moments of the rows."""

from functools import partial
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

from sklearn_boltz.networks._network import CONSTRAINTS, Network, refuse
from sklearn_boltz.networks.training._em import N_DRAWS, kept_newton
from sklearn_boltz.networks.training._fit import MAX_ITER
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.networks.training._sampled_likelihood import maximise_by_sampling
from sklearn_boltz.networks.training._solvers import newton
from sklearn_boltz.networks.training._terms import further_of, message
from sklearn_boltz.numerics._random import fixed, make_generator
from sklearn_boltz.tables._bins import CELLS
from sklearn_boltz.tables._phrases import join_columns


class MaximumEntropy(Network):
    """Pairwise network with the moments of the rows, fitted by maximum likelihood.

    Of binary columns it has the means and correlations, and is the distribution of maximum entropy
    among all that do [1]_: with x in {-1, 1}^d,

        P(x) = exp(½ xᵀ M x + bᵀ x + Σ_t θ_t ∏_{i ∈ t} x_i + V(K)) / Z,

    where the terms t of three or more variables, and the potential V of the number K of variables
    at their higher value, are optional. Up to 25 binary columns the fit is exact, from a table of
    all states; beyond that, the moments are estimated by Gibbs chains at several temperatures.

    If some columns have more values, the network is that of `FVBMPseudoLikelihood`, with the same
    prior of its couplings, fitted to the likelihood instead of the pseudo-likelihood. It is slower,
    but gives no probability to states far from the data, as pseudo-likelihood fits sometimes do.
    Where columns determine each other, rows that are drawn from it resemble the data more.

    Parameters
    ----------
    terms : list of tuples of int or str, default=None
        Terms of three or more variables, by label or number, to be fitted beside all pairs.

    count_potential : bool, default=False
        Whether the model has the potential V(K) (K-pairwise model [2]_). The model then has the
        distribution of K in the rows, with one more row spread evenly over all K. With more than
        25 columns the fit by chains is slow.

    alpha : float or "auto", default="auto"
        Strength α of the penalty ½ α (Σ_{j<k} m_jk² + Σ_t θ_t²), which is subtracted from the mean
        log-likelihood of the rows. With ``alpha > 0`` the maximum exists for all data. ``"auto"``
        is 0 if all columns are binary; else the strength of each pair of columns is estimated, as
        in `FVBMPseudoLikelihood`, and a number is refused.

    columns : str, list or dict, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"cyclic"``,
        ``"count"``, ``"binned"`` or the list of its values; see :ref:`kinds`. A string is the kind
        of all columns. A dict names some columns, by label or number, and a list has an entry for
        each. ``"auto"`` looks at the table.

    tol : float, default=1e-5
        Of up to 25 binary columns, the fit ends when an iteration, or a round of EM, raises the
        log-likelihood, summed over the rows, by less than this, in nats. Of columns of more values
        it is that of the pseudo-likelihood fit where this one begins.

    moment_tol : float, default=0.5
        With a sampler or more than 25 binary columns, the fit ends when each mean and each
        covariance differs from that of the data by at most this many of its standard errors in the
        data.

    max_iter : int, default=None
        Maximum number of iterations. None means 100, and 300 by chains or a sampler. With missing
        cells, the number of rounds of EM, each of which is a fit; None means 500. Of columns of
        more than two values, the number of rounds; None means 140, of which 80 are of the
        likelihood.

    warm_start : bool, default=False
        Whether `fit` begins at the parameters of the previous fit.
        Columns stay as they are: rows have the columns of the first fit, with its values, and a
        warning tells of other values, which count as missing.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        How to treat values after `fit` that did not occur in `fit`: see :ref:`unseen`.

    sampler : callable, default=None
        A function that estimates the moments in place of the chains, such as an annealer, with any
        number of columns. ``sampler(J, h, n, rng)`` returns n independent states, an array of -1
        and 1 of shape (n, d), with probabilities proportional to exp(½ s·Js + h·s); `rng` is a
        NumPy generator for its random numbers. In `fit`, d is the number of columns that vary, and
        n is 1,280 or more. See :ref:`annealer`.

    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness with a sampler, more than 25 columns, or columns of more than two
        values. With None, fits of the same rows agree, as with 0. All other fits are
        deterministic.

    verbose : int, default=0
        If positive, print the kinds of the columns and a line at the end of a fit; if 1, show a
        bar after two seconds, with the time left where the number of iterations is known; if
        greater, print a line for each iteration. `predict_column_proba` has a bar of blocks of
        rows, too.

    Attributes
    ----------
    coupling_ : ndarray of shape (n_features, n_features) or (n_entries, n_entries)
        M, symmetric with a zero diagonal, for values -1 and 1, whatever the coding of the data. If
        some columns have more values, it has a block for each pair of columns, as in
        `FVBMPseudoLikelihood`.

    intercept_ : ndarray of shape (n_features,) or (n_entries,)
        b, in the same coding.

    terms_ : list of tuples of int
        The terms of three variables and more.

    term_weights_ : ndarray of shape (n_terms,)
        The weights θ_t of `terms_`.

    count_potential_ : ndarray of shape (n_features + 1,)
        V(0), ..., V(n_features). Pairs and intercepts can represent any quadratic of K, so V is set
        to 0 at the three most frequent K, or with ``alpha > 0`` at two. All 0 without
        `count_potential`.

    n_values_ : ndarray of int64 of shape (n_features,)
        Number of values of each variable.

    values_ : ndarray of shape (2,)
        The coding of the data: -1 and 1, or 0 and 1 (also where -1 does not occur). Only if all
        columns are binary.

    alpha_ : float or ndarray of shape (n_features, n_features)
        The strength of the penalty, or that of each pair of columns.

    solver_ : {"newton", "sampling"}
        The solver that ran: ``"sampling"`` by chains or a sampler.

    n_iter_ : int
        Number of iterations, or of rounds of EM.

    converged_ : bool
        Whether the fit ended because of `tol` or `moment_tol`, and no sign was found that the
        maximum does not exist.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"log_likelihood"``, the objective after each iteration: the mean over the rows in nats,
        less the penalty; and ``"seconds"`` of each iteration. With ``"sampling"``, the
        log-likelihood is an estimate, ``"log_likelihood_error"`` is its standard error, and
        ``"largest_difference"`` is that of the moments, in standard errors of the data. Of columns
        of more than two values, ``"log_pseudo_likelihood"`` takes its place.

    log_partition_ : float
        ln Z, the logarithm of the normalising constant, in nats. It is computed at first access.

    columns_ : dict
        The kind of each column, by label or number, as `columns` calls it: declared, or found.

    categories_ : list of length `n_features_in_`
        For each column, its values in the order of their codes: an array, or None for a column of
        numbers.

    n_features_in_ : int
        Number of variables.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the variables, if `X` had names.

    See Also
    --------
    FVBMPseudoLikelihood : Much faster, with standard errors for columns of any number of values.
    FSLLDensity : Chooses interactions of any order by itself, for up to about 20 columns.
    sklearn_boltz.inspection.MomentsDisplay : Compares the moments of rows and samples.

    Notes
    -----
    Missing cells (NaN) must be missing at random. Up to 25 columns that vary, rows are completed by
    EM as in `FVBMPseudoLikelihood`. `terms` and `count_potential` need complete rows.

    Beyond 25 columns the likelihood is maximised by Newton's method. The moments, and ln Z of each
    model, come from 200 chains at each of a few temperatures, which exchange states. The initial
    model is the likelier one of that of the penalised pseudo-likelihood and that in which all pairs
    have the same coupling. A step is turned away from states that would become too likely, such as
    that of all ones, as a mean field at states that other chains find there shows. It is accepted
    if the likelihood rises. The number of states is doubled when the differences of moments are
    within their noise. The more rows there are, the longer it takes, as their moments are known
    more precisely. A `sampler` takes the place of the chains once these have found the initial
    model and its ln Z.

    Columns of more than two values have the smooth functions of `FVBMPseudoLikelihood`. From the
    network that it finds, rounds of Newton's method go on, with moments and second derivatives from
    2,000 to 4,096 Gibbs chains that begin at rows and continue from round to round [3]_. No step
    changes the distribution by more than 0.05 nats, about. With missing cells, each round draws
    them anew. The result is the mean of the last 25 rounds: its couplings differ between two values
    of `random_state` by a part of their standard errors.

    Equal rows are merged first. In `sample_weight`, whole numbers are counts, and others relative
    (:ref:`weights`). A constant column carries no information on its couplings, which stay 0. A
    term with such a column is left out.

    References
    ----------
    .. [1] E. Schneidman, M. J. Berry, R. Segev and W. Bialek, "Weak pairwise correlations imply
       strongly correlated network states in a neural population", Nature 440, 1007–1012, 2006,
       equation 3. https://doi.org/10.1038/nature04701
    .. [2] G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
       Neurons", PLoS Computational Biology 10(1), e1003408, 2014, equation 5.
       https://doi.org/10.1371/journal.pcbi.1003408
    .. [3] L. Younes, "On the convergence of Markovian stochastic algorithms with rapidly decreasing
       ergodicity rates", Stochastics 65, 177–228, 1999. https://doi.org/10.1080/17442509908834179

    Examples
    --------
    The model has the means and correlations of the rows:

    >>> import numpy as np
    >>> from sklearn_boltz import MaximumEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = MaximumEntropy().fit(X)
    >>> table = model.interactions()
    >>> table["term"][0], round(float(table["expectation"][0]), 4)
    ('x0*x2', 0.6)
    >>> round(float(np.mean(X[:, 0] * X[:, 2])), 4)
    0.6
    """

    _need = Network._need._replace(most_bins=CELLS, scored=())
    _objective = "likelihood"
    _further = "terms_", "term_weights_", "count_potential_"

    _parameter_constraints = CONSTRAINTS | {
        "terms": [list, tuple, None],
        "count_potential": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "moment_tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "sampler": [callable, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        *,
        terms=None,
        count_potential=False,
        alpha="auto",
        columns="auto",
        tol=1e-5,
        moment_tol=0.5,
        max_iter=None,
        warm_start=False,
        unseen="smooth",
        sampler=None,
        random_state=None,
        verbose=0,
    ):
        self.terms = terms
        self.count_potential = count_potential
        self.alpha = alpha
        self.columns = columns
        self.tol = tol
        self.moment_tol = moment_tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.unseen = unseen
        self.sampler = sampler
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self, rows, batches, initial):
        if not rows.coding.is_binary:
            self._check_options(rows)
            generator = make_generator(fixed(self.random_state))
            return self._plan_of_features(rows, initial, N_DRAWS, generator)
        alpha = 0.0 if self.alpha == "auto" else self.alpha
        task, found = self._task(rows, batches, alpha), {"alpha_": alpha}
        task.objective, further = Likelihood.name, None
        if self._has_further():
            further = further_of(task, self._terms_of(task, rows), self.count_potential)
        elif self.sampler is not None and len(task.varying):
            self._check_complete(rows, "`sampler` is")
        elif not task.is_exact:
            self._check_few(task, rows)
        if not task.is_exact or (self.sampler is not None and len(task.varying)):
            generator = make_generator(fixed(self.random_state))
            steps = partial(maximise_by_sampling, task, initial, generator, further, self.sampler)
            monitor = self._monitor(MAX_ITER["sampling"], self.moment_tol)
            return task, "sampling", steps, monitor, found
        first = task.method("newton")
        if rows.is_complete:
            task.problem = Likelihood(task.problem, further)
            method = first._replace(run=newton, message=partial(message, task))
        else:
            method = task.method("newton", newton=kept_newton())
        steps, max_iter = self._steps(rows, task, method, initial, first)
        return task, method.name, steps, self._monitor(max_iter), found

    def _has_further(self):
        """Whether there is more than pairs."""
        return self.terms is not None or self.count_potential

    def _check_options(self, rows):
        """Refuse options that are for binary columns."""
        leave = "Leave the option or the columns out, or compare them with a threshold."
        for is_given, option, remedy in (
            (self._has_further(), "`terms` and `count_potential` are", leave),
            (self.sampler is not None, "`sampler` is", leave),
            (self.alpha != "auto", "a number as `alpha` is", "Use alpha='auto'."),
        ):
            if is_given:
                raise ValueError(
                    f"MaximumEntropy: {option} for binary columns, and "
                    f"{self._have(rows.coding.larger_columns)} more than two values. {remedy}"
                )

    def _check_few(self, task, rows):
        if not rows.is_complete:
            raise ValueError(
                "MaximumEntropy learns from missing cells, as "
                f"{self._have(rows.incomplete_columns)}, only up to {MAX_COLUMNS} columns that "
                f"vary; there are {len(task.varying)}. Use FVBMPseudoLikelihood, or fill the cells "
                "by `impute(X, how='sample')` of such a model."
            )

    def _check_complete(self, rows, options):
        if not rows.is_complete:
            raise ValueError(
                f"MaximumEntropy: {options} for complete rows, and "
                f"{self._have(rows.incomplete_columns)} missing cells (NaN). Fill them, for "
                "example by BoltzmannImputer."
            )

    def _terms_of(self, task, rows):
        """The terms, where the rows and the sampler allow them and a potential."""
        if self.sampler is not None:
            raise ValueError(
                "MaximumEntropy: a sampler draws from pairwise networks. With `terms` or "
                "`count_potential` use sampler=None."
            )
        if rows.codes is None:
            raise ValueError(
                "MaximumEntropy keeps all distinct rows in memory for `terms` and "
                "`count_potential`, and these batches have too many. Use fewer rows."
            )
        self._check_complete(rows, "`terms` and `count_potential` are")
        if self.count_potential and len(task.varying) < self.n_features_in_:
            constant = np.setdiff1d(np.arange(self.n_features_in_), task.varying)
            raise ValueError(
                f"MaximumEntropy: count_potential=True needs columns that vary, and "
                f"{join_columns(map(self._column, constant))} "
                f"{'is constant. Leave it' if len(constant) == 1 else 'are constant. Leave them'} "
                "out."
            )
        # As sorted tuples of numbers of columns, each once.
        return sorted({self._checked_term(term) for term in self.terms or []})

    def _checked_term(self, term):
        self._check_form_of_term(term)
        try:
            columns = tuple(sorted(map(self._variable, term)))
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(
                "terms must be a list of tuples of columns, by name or number, each once: "
                f"{term!r}. {error}"
            ) from error
        twice = [j for j, k in pairwise(columns) if j == k]
        if twice:
            refuse(
                f"{self._column(twice[0])} is named twice in the term {term!r}",
                "Name each column of a term once.",
            )
        if len(columns) < 3:
            refuse(
                f"terms must have three or more columns, and {term!r} has {len(columns)}",
                "All pairs are in the model anyway.",
            )
        return columns

    def _check_form_of_term(self, term):
        """Refuse what is no tuple of names and numbers."""
        if isinstance(term, str):
            names = tuple(name.strip() for name in term.split("*"))
            refuse(f"terms must be a list of tuples, and {term!r} is a string", f"Give {names!r}.")
        if isinstance(term, Integral):
            refuse("terms must be a list of tuples", f"Give {[tuple(self.terms)]!r}.")
        negative = [one for one in np.ravel(term) if isinstance(one, Integral) and one < 0]
        if negative and self._column_labels() is None:
            refuse(
                f"terms must not have negative numbers, and {term!r} has {negative[0]}",
                "Count columns from 0.",
            )

    def _no_errors(self):
        if self._encoder.coding.is_binary:
            return None
        larger = self._encoder.coding.larger_columns
        return (
            f"there are no standard errors of the likelihood where {self._have(larger)} more than "
            "two values. Use FVBMPseudoLikelihood."
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self._has_further() and self.sampler is None
        return tags
