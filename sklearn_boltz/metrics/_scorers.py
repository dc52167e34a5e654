"""Scorers for model selection: log-likelihoods of held-out rows."""


def log_likelihood(estimator, X, y=None):
    """Score an estimator by its mean log-likelihood per row.

    Pass this function as ``scoring`` to :class:`~sklearn.model_selection.GridSearchCV` or
    :func:`~sklearn.model_selection.cross_val_score`.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator with a method `score_samples`, or a :class:`~sklearn.pipeline.Pipeline`
        with such a last step.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        Mean over the rows, in nats. Higher is better.

    See Also
    --------
    log_pseudo_likelihood : Score that needs no normalising constant.
    tap_log_likelihood : Score of mean-field models.

    Notes
    -----
    The likelihood of a column of real numbers is a density, so it depends on the scale of the
    column. Compare scores only between models of the same columns in the same scale.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_boltz import FSLLDensity
    >>> from sklearn_boltz.datasets import make_shifting_bar
    >>> from sklearn_boltz.metrics import log_likelihood
    >>> X = make_shifting_bar(4, n_samples=60, random_state=0)
    >>> grid = {"alpha": [0.5, 50]}
    >>> search = GridSearchCV(FSLLDensity(), grid, scoring=log_likelihood, cv=3)
    >>> search.fit(X).best_params_
    {'alpha': 0.5}
    """
    return float(estimator.score_samples(X).mean())


def log_pseudo_likelihood(estimator, X, y=None):
    """Score an estimator by its mean log pseudo-likelihood per row.

    The log pseudo-likelihood of a row is the sum of the log-probabilities of its values, each given
    all other values of the row [1]_. It needs no normalising constant and is therefore fast. In
    rows without missing cells it is exact, except for deep models with many hidden units. All
    columns must have finitely many values.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator with a method `log_pseudo_likelihood`, or a
        :class:`~sklearn.pipeline.Pipeline` with such a last step.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        Mean over the rows, in nats. Higher is better.

    See Also
    --------
    log_likelihood : Score by the likelihood of whole rows.

    References
    ----------
    .. [1] J. Besag, "Statistical Analysis of Non-Lattice Data", The Statistician 24(3), 179–195,
       1975. https://doi.org/10.2307/2987782

    Examples
    --------
    >>> from sklearn_boltz import FSLLDensity
    >>> from sklearn_boltz.datasets import make_shifting_bar
    >>> from sklearn_boltz.metrics import log_pseudo_likelihood
    >>> X = make_shifting_bar(4, n_samples=60, random_state=0)
    >>> model = FSLLDensity().fit(X)
    >>> log_pseudo_likelihood(model, X) > -4
    True
    """
    X, estimator = _last_step(estimator, X)
    return float(estimator.log_pseudo_likelihood(X).mean())


def tap_log_likelihood(estimator, X, y=None):
    """Score an estimator by its mean log-likelihood per row in mean field (TAP).

    The normalising constant is that of the mean-field solutions of Thouless, Anderson and Palmer
    (TAP) [1]_. It is an approximation, so the score can be higher or lower than the log-likelihood.
    It needs no Markov chains. Do not choose between models by it: it may prefer the one with
    the larger error.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator with a method `tap_log_likelihood`, such as
        :class:`~sklearn_boltz.TAPRBM` or :class:`~sklearn_boltz.TAPDBM`, or a
        :class:`~sklearn.pipeline.Pipeline` with such a last step.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        Mean over the rows, in nats. Higher is better.

    See Also
    --------
    log_likelihood : Score by the exact or estimated likelihood.
    sklearn_boltz.TAPRBM.tap_log_likelihood : The same for each row.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. https://doi.org/10.1103/PhysRevX.8.041006

    Examples
    --------
    >>> from sklearn_boltz import TAPRBM
    >>> from sklearn_boltz.datasets import make_shifting_bar
    >>> from sklearn_boltz.metrics import tap_log_likelihood
    >>> X = make_shifting_bar(4, n_samples=60, random_state=0)
    >>> model = TAPRBM(4, max_iter=5, random_state=0).fit(X)
    >>> tap_log_likelihood(model, X) > -4
    True
    """
    X, estimator = _last_step(estimator, X)
    return float(estimator.tap_log_likelihood(X).mean())


def _last_step(estimator, X):
    """The rows transformed by all steps of a pipeline but the last, and the last step."""
    if hasattr(estimator, "steps"):
        for _, step in estimator.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        estimator = estimator.steps[-1][1]
    return X, estimator
