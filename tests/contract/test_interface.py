"""One name for one thing: what every estimator has, under the same names, kinds and shapes."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract.estimators import ALL, MODELS, as_public, each, each_with, fitted, labels, name_of
from contract.frames import all_states, bits
from contract.state import arrays_of, assert_same
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import sklearn_boltz
from sklearn_boltz import TAPDBM, FVBMPseudoLikelihood, InfiniteRBM, statistics, units

BUNCH = {"value", "std_err", "low", "high", "ess", "method", "trusted", "verdict", "log_weights",
         "states"}  # fmt: skip

# One signature for each verb, in all models,
VERBS = {
    "score_samples": "(X)",
    "score": "(X, y=None, sample_weight=None)",
    "energy": "(X)",
    "free_energy": "(X)",
    "log_pseudo_likelihood": "(X)",
    "entropy": "(temperature=1.0)",
    "log_partition": (
        "(method='auto', *, n_chains=None, n_temperatures=None, temperature=1.0, tol=None, "
        "max_rounds=None, random_state=None)"
    ),
    "sample": (
        "(n_samples=1, random_state=None, *, given=None, where=None, temperature=1.0, "
        "n_steps=1000, n_temperatures=None)"
    ),
    "impute": "(X, *, how='mean', n_steps=1000, random_state=None)",
    "predict_column_proba": "(X, column, *, n_steps=1000, random_state=None)",
    "predict_column_quantiles": (
        "(X, column, quantiles=(0.05, 0.5, 0.95), *, n_steps=1000, random_state=None)"
    ),
}
# except for these, and why.
FURTHER = {
    ("score_samples", "y"): "of a classifier, rows with their labels",
    ("free_energy", "y"): "of a classifier, rows with their labels",
    ("sample", "y"): "of a classifier, rows of a class",
    ("energy", "H"): "hidden units are a part of the state",
    ("sample", "init"): "chains of a machine may start at rows, or at earlier models",
    ("sample", "sampler"): "an annealer draws from spins without hidden units",
    ("log_partition", "X"): "chains of a machine that run backwards start at rows",
    ("impute", "method"): "mean field beside chains, where the training is by mean field",
}


def test_every_public_estimator_is_in_the_list():
    public = {
        name
        for name, value in vars(sklearn_boltz).items()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }
    assert {name_of(estimator) for estimator in ALL} == public and len(ALL) == 12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each(ALL)
def test_parameters_are_documented_and_constrained(estimator):
    estimator = as_public(estimator)
    doc = inspect.cleandoc(type(estimator).__doc__)  # which Python 3.13 has done already
    names = inspect.signature(type(estimator)).parameters
    assert set(names) == set(estimator._parameter_constraints)
    X = np.tile(np.eye(4, dtype=int), (3, 1))
    attributes = list(vars(estimator.fit(X, *labels(estimator, X))))
    for name in [*names, *(name for name in attributes if name.endswith("_"))]:
        assert f"\n{name} : " in doc, name


@each(ALL)
def test_html_representation_links_to_the_documentation(estimator):
    page = f"sklearn_boltz.{name_of(estimator)}.html"
    assert page in as_public(estimator)._repr_html_()


@each(MODELS)
def test_all_models_have_the_same_methods(estimator):
    model = fitted(estimator)
    for verb, signature in VERBS.items():
        if verb == "score" and is_classifier(model):  # the accuracy, of labels
            continue
        own = list(inspect.signature(getattr(model, verb)).parameters.values())
        shared = [parameter for parameter in own if (verb, parameter.name) not in FURTHER]
        assert str(inspect.Signature(shared)) == signature, verb
        assert own[: len(shared)] == shared, "what one family needs stands last"
    assert set(model.log_partition()) >= BUNCH
    assert isinstance(type(model).log_partition_, property)


@each(MODELS)
def test_histories_have_one_entry_an_iteration(estimator):
    model = fitted(estimator)
    # That of InfiniteRBM has the model without hidden units besides.
    n_entries = model.n_iter_ + isinstance(model, InfiniteRBM)
    assert model.n_iter_ > 0 and "seconds" in model.history_
    for name, values in model.history_.items():
        assert isinstance(values, np.ndarray) and values.shape == (n_entries,), name
        if name.endswith("likelihood"):  # means over rows of five bits
            assert (-5 < values).all() and (values < 0).all(), name
    assert (model.history_["seconds"] >= 0).all()


@each(MODELS)
def test_columns_conditions_and_weights(estimator):
    model, X = fitted(estimator), bits(150)
    p = model.predict_column_proba(X[:7], 1)
    assert p.shape == (7, 2)
    assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    other = X[:7].copy()
    other[:, 1] = 1 - other[:, 1]
    assert_allclose(model.predict_column_proba(other, 1), p, atol=1e-6)
    drawn = model.sample(20, random_state=0, given={1: 1})
    assert drawn.shape == (20, 5) and (drawn[:, 1] == 1).all()
    with pytest.raises(ValueError, match="9"):
        model.sample(2, given={9: 1})
    assert model.sample(3, random_state=0, temperature=2.0).shape == (3, 5)
    assert model.entropy() <= 5 * np.log(2) + 1e-6
    assert model.entropy(temperature=1e9) == pytest.approx(5 * np.log(2))
    n_bits = 5 + np.hstack(getattr(model, "intercept_hidden_", [[]])).size + is_classifier(model)
    assert model.log_partition(temperature=1e9).value == pytest.approx(n_bits * np.log(2))
    if is_classifier(model):
        return  # the score is the accuracy
    scores, weights = model.score_samples(X), np.arange(150.0)
    assert model.score(X) == pytest.approx(scores.mean(), abs=1e-12)
    assert model.score(X, sample_weight=weights) == pytest.approx(
        np.average(scores, weights=weights)
    )


@each_with("dtype", [bool, np.uint8, np.int64, np.float32, np.float64], MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_types_of_parameters_features_and_samples(estimator, dtype):
    X = bits(dtype=dtype)
    kept = {np.dtype(np.float64 if dtype == np.float64 else np.float32)}
    model = clone(estimator).fit(X)
    if hasattr(model, "components_"):
        assert {a.dtype for a in arrays_of(model)} == {model.transform(X).dtype} == kept
    assert model.score_samples(X).dtype == np.float64
    for seed in (0, np.random.RandomState(3), np.random.default_rng(3)):
        drawn = model.sample(10, random_state=seed)
        assert drawn.dtype == dtype and drawn.shape == (10, 5)
    assert_array_equal(model.sample(10, random_state=0), model.sample(10, 0))


@each_with("container", ["pandas", "polars", "PyArrow"], MODELS)
def test_set_output_and_feature_names(estimator, container):
    names, X = [f"pixel{i}" for i in range(5)], bits(150)
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "PyArrow": pa.table}[container](
        dict(zip(names, X.T, strict=True))
    )
    if container == "PyArrow":  # to which scikit-learn sets no output
        model = clone(estimator).fit(frame)
        assert list(model.feature_names_in_) == names
        assert_array_equal(model.transform(frame), fitted(estimator).transform(X))
        return
    model = clone(estimator).set_output(transform=container).fit(frame)
    assert list(model.feature_names_in_) == names
    out = model.transform(frame)
    assert isinstance(out, type(frame))
    assert list(out.columns) == list(model.get_feature_names_out())
    assert_array_equal(np.asarray(out), fitted(estimator).transform(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each(MODELS)
def test_scikit_learns_scoring_monitor_records(estimator):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    frame = pd.DataFrame(bits(), columns=list("abcde"))
    monitor = callback.ScoringMonitor(
        scoring={"score": lambda model, X, y: model.score_samples(X).mean()}
    )
    model = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # names of columns, for example
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(monitor).fit(frame)
    log = monitor.get_logs().data_as_pandas
    of_fit, of_steps = (log["score"][(log["task_name"] == "fit") == of_fit] for of_fit in (1, 0))
    assert of_fit.tolist() == [pytest.approx(model.score_samples(frame).mean(), rel=1e-6)]
    assert len(of_steps) == model.n_iter_ and len(set(of_steps)) >= 2
    assert np.isfinite(of_steps).all()
    assert_same(model, clone(estimator).fit(frame))


def test_unit_laws_are_named_by_their_public_module():
    for name in units.__all__:
        assert getattr(units, name).__module__ == "sklearn_boltz.units"


PARAMETERS = {
    "FSLLDensity": ["theta_"],
    **dict.fromkeys(("FVBMPseudoLikelihood", "SparseFVBM", "MaximumEntropy"), ["intercept_"]),
    "TAPDBM": ["intercept_visible_"],
}


@each(MODELS)
def test_scores_follow_the_parameters(estimator):
    default = ["components_", "intercept_hidden_", "intercept_visible_"]
    default += ["components_classes_", "intercept_classes_"] * is_classifier(estimator)
    for name in PARAMETERS.get(name_of(estimator), default):
        for change in ("all", "one"):
            model = fitted(estimator)
            before = model.log_partition_
            array = np.array(getattr(model, name))
            setattr(model, name, array)
            if not name.startswith("components_"):
                array += 0.1  # some are zero
            model.log_partition_  # noqa: B018 - to be kept
            if change == "all":
                array *= 1.5
            else:
                array[(0,) * array.ndim] += 0.5
            assert model.log_partition_ != before
            if not isinstance(model, TAPDBM):  # the log-probability of a row is approximate
                total = np.exp(model.score_samples(all_states(5))).sum()
                assert total == pytest.approx(1, abs=1e-5)


def test_scores_follow_couplings():
    X = bits(200)
    model = FVBMPseudoLikelihood(alpha=1.0).fit(X)
    assert model.log_partition_ == model.log_partition_
    model.coupling_ = 3 * model.coupling_
    assert np.exp(model.score_samples(all_states(5))).sum() == pytest.approx(1)
    assert model.log_partition().std_err == 0
    covariance = statistics.inference(model, X).limit_covariance
    assert statistics.inference(model, X).limit_covariance is covariance
    with pytest.warns(UserWarning, match="not the rows and weights of the fit"):
        assert statistics.inference(model, X[:100]).limit_covariance is not covariance
    model.coupling_ *= 0.5
    assert not np.array_equal(statistics.inference(model, X).limit_covariance, covariance)
