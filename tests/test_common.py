"""scikit-learn's common checks on every public estimator, and what they leave out."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

import sklearn_boltz
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
)


class RBMClassifier(sklearn_boltz.RBMClassifier):
    """The classifier for tests that have no labels: rows are of two classes by turns."""

    __doc__ = sklearn_boltz.RBMClassifier.__doc__

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, by_turns(X) if y is None else y, sample_weight)

    def partial_fit(self, X, y=None, classes=(0, 1), sample_weight=None):
        y = by_turns(X) if y is None else y
        return super().partial_fit(X, y, classes, sample_weight)

    def _trouble(self, status, comparison):
        return super()._trouble(status, None)  # they cannot be told from the columns


def by_turns(X):
    """Labels for a table."""
    return np.arange(X.shape[0] if hasattr(X, "shape") else len(X)) % 2


# The estimators want discrete data: scikit-learn's checks feed real values, which a
# threshold makes binary.
ESTIMATORS = [
    FSLLDensity(binarize=0.0),
    FSLLDensity(binarize=0.0, solver="greedy"),
    FVBMPseudoLikelihood(binarize=0.0),
    FVBMPseudoLikelihood(binarize=0.0, solver="bslm"),
    SDCPRBM(n_components=5, max_iter=3, binarize=0.0),
    TAPRBM(n_components=5, max_iter=3, binarize=0.0),
    TAPDBM(hidden_layer_sizes=(5, 3), pretrain_max_iter=2, max_iter=3, binarize=0.0),
    InfiniteRBM(max_components=3, n_model_samples=100, binarize=0.0),
]
DEFAULTS = [
    FSLLDensity(),
    FVBMPseudoLikelihood(),
    SDCPRBM(n_components=4, max_iter=3, random_state=0),
    TAPRBM(n_components=4, max_iter=3, random_state=0),
    TAPDBM(hidden_layer_sizes=(4, 3), pretrain_max_iter=2, max_iter=3, random_state=0),
    InfiniteRBM(max_components=3, random_state=0),
    RBMClassifier(n_components=4, max_iter=3, early_stopping=False, random_state=0),
]
# A parameter with a good and a bad value, for the searches.
TUNED = {
    "FSLLDensity": ("alpha", 0.5, 50.0),
    "FVBMPseudoLikelihood": ("alpha", 0.005, 50.0),
    "SDCPRBM": ("weight_decay", 0.0, 10.0),
    "InfiniteRBM": ("alpha", 0.01, 50.0),
    "TAPDBM": ("weights_init", 0.01, 1.5),
    "TAPRBM": ("weights_init", 0.01, 3.0),
}
# Whose score is a mean log-probability.
DENSITIES = [estimator for estimator in DEFAULTS if not is_classifier(estimator)]


every_density = pytest.mark.parametrize(
    "estimator", DENSITIES, ids=lambda estimator: type(estimator).__name__, indirect=True
)


@pytest.fixture(params=DEFAULTS, ids=lambda estimator: type(estimator).__name__)
def estimator(request):
    return clone(request.param)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(200, 6))
    X[:, 1] = X[:, 0] ^ (rng.random(200) < 0.1)
    X[:, 5] = X[:, 2] ^ X[:, 3] ^ (rng.random(200) < 0.1)
    return X


def stochastic_checks(estimator):
    """Checks that ask for the same numbers from rows of weight 2 and rows that stand twice.

    Mini-batches are drawn: there they have the same distribution, see test_rbm_weights.py.
    """
    if "batch_size" not in estimator.get_params():
        return {}
    reason = "mini-batches are drawn by the weights"
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")
    }


# Small real-valued data, cut at a threshold, often separate a variable.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=stochastic_checks)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_every_public_estimator_is_tested():
    public = {
        value
        for value in vars(sklearn_boltz).values()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }
    # In test_imputer.py and test_meta_*.py.
    public -= {BoltzmannClassifier, BoltzmannImputer, BoltzmannMixture, BoltzmannOutlierDetector}
    assert {kind.__name__ for kind in public} == {type(e).__name__ for e in DEFAULTS}
    public -= {sklearn_boltz.RBMClassifier}  # in test_rbm_classifier.py
    assert public == {type(estimator) for estimator in ESTIMATORS}
    assert {kind.__name__ for kind in public} == set(TUNED)


def test_parameters_out_of_their_domain(estimator, X):
    for name in estimator.get_params():
        with pytest.raises((InvalidParameterError, ValueError), match=name):
            clone(estimator).set_params(**{name: object()}).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parameters_are_documented_and_constrained(estimator):
    doc = inspect.cleandoc(type(estimator).__doc__)  # which Python 3.13 has done already
    assert set(estimator.get_params()) == set(estimator._parameter_constraints)
    fitted = [name for name in vars(estimator.fit(np.eye(4, dtype=int))) if name.endswith("_")]
    for name in [*estimator.get_params(), *fitted]:
        assert f"\n{name} : " in doc, name


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_and_feature_names(estimator, X, container):
    names = [f"pixel{i}" for i in range(X.shape[1])]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[container](
        dict(zip(names, X.T, strict=True))
    )
    estimator.set_output(transform=container).fit(frame)
    assert list(estimator.feature_names_in_) == names
    out = estimator.transform(frame)
    assert isinstance(out, type(frame))
    assert list(out.columns) == list(estimator.get_feature_names_out())
    reference = clone(estimator).set_output(transform="default").fit(X)
    np.testing.assert_array_equal(np.asarray(out), reference.transform(X))


def test_unknown_column_is_named(estimator, X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    estimator.set_params(unseen="error").fit(frame)
    # Machines with a range of values clip outside of `fit`, see test_first_contact.py, and take a
    # third whole number for a category.
    machine = hasattr(estimator, "early_stopping")
    bad = frame.astype(float)
    bad.loc[3, "d"] = 7.5 if machine else 7
    refuse = clone(estimator).fit if machine else estimator.score_samples
    with pytest.raises(ValueError, match="column 'd', but row 3 has the value 7"):
        refuse(bad)


# What is bad on purpose may have diverged.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_density
def test_grid_search_maximises_the_likelihood_in_a_pipeline(estimator, X):
    estimator.set_params(binarize=0.0)
    name = type(estimator).__name__
    parameter, good, bad = TUNED[name]
    parameter = f"{name.lower()}__{parameter}"
    pipeline = make_pipeline(StandardScaler(), estimator)
    search = GridSearchCV(pipeline, {parameter: [good, bad]}, cv=3).fit(X)
    assert search.best_params_[parameter] == good
    best = search.best_estimator_
    assert np.isclose(best.score(X), best[-1].score_samples(best[0].transform(X)).mean())


def test_pickle_and_clone(estimator, X):
    estimator.fit(X)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.score_samples(X), estimator.score_samples(X))
    assert not hasattr(clone(estimator), "n_features_in_")


def test_html_representation_links_to_the_documentation(estimator):
    html = getattr(sklearn_boltz, type(estimator).__name__)()._repr_html_()
    assert f"sklearn_boltz.{type(estimator).__name__}" in html


@every_density
def test_score_is_the_mean_log_probability(estimator, X):
    estimator.fit(X)
    assert estimator.score(X) == pytest.approx(estimator.score_samples(X).mean(), abs=1e-12)
