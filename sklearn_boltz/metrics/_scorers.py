"""Scorers for model selection: how probable held-out rows are."""


def log_likelihood(estimator, X, y=None):
    """Score an estimator by the mean log-probability of rows.

    Parameters
    ----------
    estimator : estimator
        Fitted, with a method `score_samples`; the last step of a
        :class:`~sklearn.pipeline.Pipeline` may be it.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        In nats; more is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_boltz import FSLLDensity
    >>> from sklearn_boltz.datasets import make_shifting_bar
    >>> from sklearn_boltz.metrics import log_likelihood
    >>> X = make_shifting_bar(4, n_samples=60, random_state=0)
    >>> search = GridSearchCV(FSLLDensity(), {"alpha": [0.5, 50]}, scoring=log_likelihood, cv=3)
    >>> search.fit(X).best_params_
    {'alpha': 0.5}
    """
    return float(estimator.score_samples(X).mean())


def log_pseudo_likelihood(estimator, X, y=None):
    """Score an estimator by the mean log pseudo-likelihood of rows.

    It needs no normalising constant: fast, and exact where the likelihood is an estimate.

    Parameters
    ----------
    estimator : estimator
        Fitted, with a method `log_pseudo_likelihood`; in a
        :class:`~sklearn.pipeline.Pipeline`, the last step.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        In nats; more is better.

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
    """Score a :class:`~sklearn_boltz.TAPRBM` by the mean TAP log-likelihood of rows.

    Parameters
    ----------
    estimator : estimator
        Fitted, with a method `tap_log_likelihood`; in a
        :class:`~sklearn.pipeline.Pipeline`, the last step.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : Ignored
        Present for API consistency.

    Returns
    -------
    score : float
        In nats; more is better.

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
    """Rows as they reach the last step of a pipeline, and that step."""
    if hasattr(estimator, "steps"):
        for _, step in estimator.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        estimator = estimator.steps[-1][1]
    return X, estimator
