"""Arrays of other libraries than NumPy: the same numbers, in the same place.

They run where ``array_api_strict``, PyTorch or CuPy is installed and SCIPY_ARRAY_API=1 is set, as
scikit-learn wants it for arrays to be dispatched: `make test-array-api`.
"""

import math
import os
import pickle
from inspect import signature

import numpy as np
import pytest
import sklearn
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils import _array_api, estimator_checks

from sklearn_boltz.networks import FVBMPseudoLikelihood
from sklearn_boltz.restricted import SDCPRBM, TAP, TAPRBM, InfiniteRBM, RBMClassifier

if os.environ.get("SCIPY_ARRAY_API") != "1":
    pytest.skip("SCIPY_ARRAY_API=1 is not set", allow_module_level=True)

from contract.estimators import random_spins

from private import Stream, as_numpy, namespace_of
from private import uniform_of_arrays as uniform

LIBRARIES = ["array_api_strict", "torch", "torch-cuda", "cupy"]
FITS = {
    "CS-DCP": {},
    "S-DCP": {"centered": False},
    "CD-2": {"n_inner": 1, "n_gibbs": 2, "centered": False},
    "PCD-1": {"n_inner": 1, "n_gibbs": 1, "chains": "persistent", "centered": False},
    "decay": {"alpha": 1e-3},
    "not tracked": {"n_components": 15, "track_likelihood": False},
    "early stopping": {"early_stopping": True, "n_components": 15, "n_inner": 2},
    "last stage": dict(
        early_stopping=True, max_iter=1000, batch_size=300, learning_rate=1.0, n_inner=1, n_gibbs=1
    ),
    "another model": {"init": SDCPRBM(5, max_iter=2, random_state=0)},
}
TAP_FITS = {
    "TAP": {},
    "short TAP": {"inference": TAP(max_iter=2, n_gibbs=0)},
    "naive mean field": {"inference": "naive"},
    "persistent TAP": {"persistent": True},
    "TAP with l1": {"penalty": "l1", "alpha": 0.01},
    "TAP with early stopping": {"early_stopping": True, "n_components": 15},
}

CLASS_FITS = {
    "hybrid": {},
    "discriminative": {"generative": 0},
    "generative": {"generative": np.inf, "n_gibbs": 2},
    "decay": {"alpha": 1e-3, "sparsity": 1e-4, "early_stopping": False},
    "accuracy": {"scoring": "accuracy", "class_weight": "balanced"},
    "as they are": {"dynamic_binarization": False},
}

# A validation score still rose, or the labels were predicted no better than by their frequencies.
SHORT = pytest.mark.filterwarnings("ignore:.*(predicted|still rising)")


class Library:
    """A library whose arrays are made on one device."""

    def __init__(self, name):
        name, _, device = name.partition("-")
        self.module = pytest.importorskip(name)
        self.__name__, self.device = name, device or ("cpu" if name == "torch" else None)
        if (device == "cuda" or name == "cupy") and not self.module.cuda.is_available():
            pytest.skip("no GPU")

    def asarray(self, array):
        return namespace_of(self.module.empty(0)).asarray(array, device=self.device)

    def has(self, estimator):
        """The estimator with its arrays there."""
        return estimator.move_to(self.module, self.device)


@pytest.fixture(params=LIBRARIES)
def xp(request):
    """A library of arrays, and scikit-learn set to dispatch."""
    library = Library(request.param)
    with sklearn.config_context(array_api_dispatch=True):
        yield library


@pytest.fixture
def X():
    """Rows of two kinds."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 20)) < 0.3).astype(np.float64)
    X[:150, :10] = 1 - X[:150, :10]
    return X


@pytest.fixture
def y(X):
    """Labels of three classes, that of a row told by two of its columns."""
    return X[:, 0].astype(int) + X[:, 12].astype(int)


def machine(kind=SDCPRBM, **changes):
    settings = {"n_components": 8, "max_iter": 5, "batch_size": 32, "random_state": 0}
    return kind(**{**settings, **changes})


def assert_close(found, wanted, atol=1e-10):
    """Numbers on a device beside those of NumPy."""
    np.testing.assert_allclose(as_numpy(found), as_numpy(wanted), rtol=0, atol=atol)


def assert_same_parameters(mine, reference):
    names = "components_", "intercept_hidden_", "intercept_visible_"
    if isinstance(reference, RBMClassifier):
        names += "components_classes_", "intercept_classes_"
        np.testing.assert_array_equal(as_numpy(mine.classes_), as_numpy(reference.classes_))
    for name in names:
        assert_close(getattr(mine, name), getattr(reference, name))


def assert_same_history(mine, reference, names):
    for name in names:
        assert_close(mine.history_[name], reference.history_[name])


def assert_same_draws(found, wanted):
    assert (as_numpy(found) == as_numpy(wanted)).all()


def assert_same_methods(mine, reference, rows, X, names, atol):
    """Results lie where the rows do, and are of their type; the rows stay as they are."""
    for name in names:
        found, wanted = getattr(mine, name)(rows), getattr(reference, name)(X)
        assert isinstance(found, type(rows))
        assert str(wanted.dtype) in str(found.dtype)
        assert_close(found, wanted, atol)
    assert_same_draws(rows, X)


def assert_same_samples(mine, reference, rows, X, **more):
    for options in ({}, {"temperature": 2.0}, {"init": True}, {"given": {0: 1}}, more):
        ours = {**options, "init": rows} if "init" in options else options
        theirs = {**options, "init": X} if "init" in options else options
        found = mine.sample(7, 3, n_steps=10, **ours)
        assert isinstance(found, type(rows))
        assert_same_draws(found, reference.sample(7, 3, n_steps=10, **theirs))


def assert_same_partition_function(mine, reference, **settings):
    for method in ("ais", "raise", "ladder", "tap", "exact"):
        found, wanted = (
            model.log_partition(method, random_state=0, tol=1.0, **settings)
            for model in (mine, reference)
        )
        assert found.value == pytest.approx(wanted.value, abs=1e-8)
        if method == "ais":
            assert_close(found.log_weights, wanted.log_weights, 1e-9)
    found, wanted = (m.sample(10, 0, n_steps=20, init="ladder") for m in (mine, reference))
    assert_same_draws(found, wanted)


@SHORT
@pytest.mark.parametrize(
    "kind, options",
    [(SDCPRBM, options) for options in FITS.values()]
    + [(TAPRBM, options) for options in TAP_FITS.values()],
    ids=[*FITS, *TAP_FITS],
)
def test_a_fit_is_that_of_numpy(xp, X, kind, options):
    rows = xp.asarray(X)
    mine, reference = machine(kind, **options).fit(rows), machine(kind, **options).fit(X)
    assert isinstance(mine.components_, type(rows))
    assert_same_parameters(mine, reference)
    names = ["reconstruction_error", "log_pseudo_likelihood"]
    if kind is TAPRBM:
        names = ["tap_log_likelihood", "n_solutions", "free_energy", "share_converged"]
        found, wanted = mine.tap_solutions(rows), reference.tap_solutions(X)
        for field in wanted:
            assert_close(found[field], wanted[field], 1e-9)
    exact = ["log_likelihood"] if reference.n_components < 12 else []
    assert_same_history(mine, reference, [*names, *exact])


def test_what_mean_field_infers_is_that_of_numpy(xp, X):
    reference = machine(TAPRBM, learning_rate=0.2, max_iter=20).fit(X)
    mine, gaps = xp.has(reference), X.copy()
    gaps[::2, 3:15] = np.nan
    names = "transform", "free_energy", "score_samples", "tap_log_likelihood"
    assert_same_methods(mine, reference, xp.asarray(X), X, names, 1e-9)
    for how in ("mean", "mode"):
        found, wanted = mine.impute(xp.asarray(gaps), how=how), reference.impute(gaps, how=how)
        assert_close(found, wanted, 1e-9)
    found, wanted = mine.denoise(xp.asarray(X), 0.1), reference.denoise(X, 0.1)
    assert_close(found, wanted, 1e-9)
    draws = as_numpy(mine.impute(xp.asarray(gaps), how="sample", n_steps=5, random_state=0))
    assert (
        set(np.unique(draws)) == {0, 1} and (draws[~np.isnan(gaps)] == gaps[~np.isnan(gaps)]).all()
    )


@given(
    seed=st.integers(0, 2**64 - 1), step=st.integers(0, 2**40), first_row=st.integers(0, 2**40),
    n_rows=st.integers(1, 5), n_columns=st.integers(1, 300),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
@settings(max_examples=cases(100))
def test_random_numbers_have_the_same_bits_everywhere(
    seed, step, first_row, n_rows, n_columns, dtype
):
    stream, shape = Stream(seed), (n_rows, n_columns)
    stream.step = step
    wanted = stream.uniform(shape, dtype, first_row)
    for name in LIBRARIES:
        try:
            array = Library(name).asarray(np.zeros(1, dtype))
        except pytest.skip.Exception:
            continue
        parts = stream.numbers(array).parts(step, shape, first_row)
        u = uniform(*parts, dtype == np.float64, namespace_of(array))
        assert (as_numpy(u) == wanted).all()
        assert as_numpy(u).dtype == dtype


METHODS = "transform", "free_energy", "score_samples", "log_pseudo_likelihood", "mean_hidden"


@pytest.mark.parametrize("dtype, atol", [("float64", 1e-10), ("float32", 2e-4)])
def test_methods_are_those_of_numpy(xp, X, dtype, atol):
    X = X.astype(dtype)
    reference = machine(learning_rate=0.3, max_iter=20).fit(X)
    mine, rows = xp.has(reference), xp.asarray(X)
    assert_same_methods(mine, reference, rows, X, METHODS, atol)
    assert mine.score(rows) == pytest.approx(reference.score(X), abs=atol)
    H = mine.sample_hidden(rows, random_state=1)
    np.testing.assert_allclose(
        as_numpy(mine.energy(rows, H)), reference.energy(X, as_numpy(H)), atol=50 * atol
    )
    for name in ("mean_visible", "inverse_transform"):
        wanted = getattr(reference, name)(as_numpy(H))
        assert_close(getattr(mine, name)(H), wanted, atol)
    if dtype == "float64":  # the same random numbers
        for name in ("sample_hidden", "gibbs"):
            found = getattr(mine, name)(rows, random_state=2)
            assert (as_numpy(found) == getattr(reference, name)(X, random_state=2)).all()
        assert_same_samples(mine, reference, rows, X)
        assert_same_partition_function(mine, reference, n_temperatures=50, n_chains=30)


def test_states_climb_a_ladder_as_with_numpy(xp, X):
    reference = machine(max_iter=1).fit(X)
    reference.components_ = 2 * np.random.default_rng(0).normal(size=reference.components_.shape)
    found, wanted = (
        model.log_partition("ladder", random_state=0, tol=9.0, n_chains=10)
        for model in (xp.has(reference), reference)
    )
    assert found.verdict == wanted.verdict  # with the number of states that have come to the top


@SHORT
@pytest.mark.parametrize("kind", [SDCPRBM, RBMClassifier])
def test_impute(xp, X, y, kind):
    """Means and draws against the exact ones of NumPy; false alarms in less than 1e-6 of runs."""
    options = {"generative": 1} if kind is RBMClassifier else {"learning_rate": 0.3}
    reference = machine(kind, max_iter=20, early_stopping=False, **options).fit(X, y)
    gaps = X[[0, 200]].copy()
    gaps[:, [1, 4, 12]] = np.nan
    exact = reference.impute(gaps)
    mine, n_copies = xp.has(reference), 2000
    rows = xp.asarray(np.repeat(gaps, n_copies, axis=0))
    known = ~np.isnan(gaps)
    # Hoeffding: 6 means of 2,000 draws, each off by t with a probability of 2 exp(−2 · 2000 t²).
    bound = math.sqrt(math.log(2 * 6 / 1e-7) / (2 * n_copies))
    for how in ("sample", "mean"):
        found = as_numpy(mine.impute(rows, how=how, n_steps=50, random_state=0))
        means = found.reshape(2, n_copies, -1).mean(axis=1)
        assert (means[known] == gaps[known]).all()
        assert np.abs(means - exact)[~known].max() < bound
    # Of eight states, a hundred transitions meet the best.
    mode = as_numpy(mine.impute(xp.asarray(gaps), how="mode", n_steps=400, random_state=0))
    np.testing.assert_array_equal(mode, reference.impute(gaps, how="mode"))


@SHORT
@pytest.mark.parametrize("kind", [SDCPRBM, TAPRBM, RBMClassifier])
def test_partial_fit_and_weights(xp, X, y, kind):
    weights = np.random.default_rng(2).integers(0, 3, len(X))
    options, classes = {}, {}
    if kind is RBMClassifier:
        options, classes = {"alpha": 0.1, "early_stopping": False}, {"classes": [0, 1, 2]}
        y = np.where(np.arange(len(y)) % 3, y, -1)
    here, there = (X, y, weights), [xp.asarray(array) for array in (X, y, weights)]

    def whole(X, y, weights):
        return machine(kind, **options).fit(X, y, sample_weight=weights)

    def twice(X, y, weights):
        model = machine(kind, **options).partial_fit(X, y, **classes)
        return model.partial_fit(X, y, sample_weight=weights)

    for fit in (whole, twice):
        assert_same_parameters(fit(*there), fit(*here))


@SHORT
@pytest.mark.parametrize("kind, options", [(SDCPRBM, FITS["PCD-1"]), (RBMClassifier, {})])
def test_a_fit_goes_on_where_it_ended(xp, X, y, kind, options):
    options = {**options, "early_stopping": False, "warm_start": True}
    rows, labels = xp.asarray(X), xp.asarray(y)
    whole = machine(kind, **options, max_iter=6).fit(rows, labels)
    parts = machine(kind, **options, max_iter=3).fit(rows, labels)
    parts = pickle.loads(pickle.dumps(parts)).fit(rows, labels)
    assert_same_draws(parts.components_, whole.components_)
    home = machine(kind, **options, max_iter=3).fit(rows, labels).move_to(np).fit(X, y)
    assert_same_parameters(whole, home)


def test_scikit_learn_moves_estimators(xp, X):
    move_to = getattr(_array_api, "move_estimator_to", None)
    if move_to is None:
        pytest.skip("this scikit-learn moves no estimators")
    rows, reference = xp.asarray(X), machine(TAPRBM).fit(X)
    there = move_to(reference, namespace_of(rows), rows.device)
    assert isinstance(there.components_, type(rows))
    found = as_numpy(there.transform(rows))
    np.testing.assert_allclose(found, reference.transform(X), rtol=0, atol=1e-12)
    back = move_to(there, _array_api.get_namespace(X)[0], "cpu")
    assert (back.transform(X) == reference.transform(X)).all()


@pytest.fixture
def tables_of_bits(monkeypatch):
    """The tables of scikit-learn's checks, cut at 0: on a device, columns are Bernoulli units."""

    def made(*args, **options):
        X, y = make_classification(*args, **options)
        return (X > 0).astype(X.dtype), y

    monkeypatch.setattr(estimator_checks, "make_classification", made)


@SHORT
@pytest.mark.usefixtures("tables_of_bits")
@pytest.mark.parametrize(
    ("estimator", "check", "dtype"),
    [(SDCPRBM(8), "check_array_api_input", "float32"),
     (TAPRBM(8), "check_array_api_input_and_values", "float64"),
     (RBMClassifier(8, early_stopping=False), "check_array_api_input_and_values", "float32"),
     (RBMClassifier(8, early_stopping=True), "check_array_api_input", "float64")],
)  # fmt: skip
def test_checks_of_scikit_learn(xp, estimator, check, dtype):
    estimator = clone(estimator).set_params(max_iter=3, random_state=0)
    check = getattr(estimator_checks, check)
    weights = {"check_sample_weight": True}
    weights = weights if weights.keys() & signature(check).parameters else {}  # scikit-learn 1.6
    check("", estimator, xp.__name__, xp.device, dtype, **weights)


# Classes.


@SHORT
@pytest.mark.parametrize("options", [*CLASS_FITS.values(), FITS["another model"]], ids=str)
def test_a_classifier_is_that_of_numpy(xp, X, y, options):
    some = options not in (CLASS_FITS["hybrid"], CLASS_FITS["accuracy"])  # rows without a label
    X[::7] = 0.25 + X[::7] / 2  # probabilities, which are drawn
    y = np.where(np.arange(len(y)) % 4 == 0, y, -1) if some else y
    mine, reference = (machine(RBMClassifier, **options) for _ in range(2))
    mine.fit(xp.asarray(X), xp.asarray(y))
    reference.fit(X, y)
    assert isinstance(mine.components_, type(xp.asarray(X)))
    assert_same_parameters(mine, reference)
    names = ["log_loss", "error"]
    if reference.do_early_stopping_:
        names += ["validation_log_loss", "validation_error"]
    assert_same_history(mine, reference, names)


CLASS_METHODS = (
    "predict_proba", "predict_log_proba", "decision_function", "transform", "free_energy",
    "score_samples", "log_pseudo_likelihood",
)  # fmt: skip


@SHORT
@pytest.mark.parametrize(
    ("n_classes", "dtype", "atol"), [(3, "float64", 1e-10), (2, "float32", 2e-4)]
)
def test_what_a_classifier_computes_is_that_of_numpy(xp, X, y, n_classes, dtype, atol):
    X, y = X.astype(dtype), np.minimum(y, n_classes - 1)
    reference = machine(RBMClassifier, max_iter=20, early_stopping=False).fit(X, y)
    mine, rows, labels = xp.has(reference), xp.asarray(X), xp.asarray(y)
    assert_same_methods(mine, reference, rows, X, CLASS_METHODS, atol)
    for name in ("free_energy", "score_samples"):
        y[::5] = -1
        found, wanted = getattr(mine, name)(rows, xp.asarray(y)), getattr(reference, name)(X, y)
        assert_close(found, wanted, atol)
    np.testing.assert_array_equal(as_numpy(mine.predict(rows)), reference.predict(X))
    assert mine.score(rows, labels) == reference.score(X, as_numpy(labels))
    assert mine.score(rows, xp.asarray(y)) == reference.score(X, y)
    H = (reference.transform(X) < 0.5).astype(dtype)
    found, wanted = mine.energy(rows, xp.asarray(H)), reference.energy(X, H)
    assert_close(found, wanted, 50 * atol)
    if dtype == "float64":  # the same random numbers
        assert_same_samples(mine, reference, rows, X, y=1)
        assert_same_draws(mine.sample_hidden(rows, 1), reference.sample_hidden(X, 1))


@SHORT
def test_a_classifier_draws_a_class_where_it_lies(xp, X, y):
    """By chains of more hidden units than are summed out, with the random numbers of NumPy."""
    settings = {"n_components": 15, "max_iter": 10, "early_stopping": False}
    reference = machine(RBMClassifier, **settings).fit(X, y)
    mine, options = xp.has(reference), {"y": np.arange(7) % 3, "n_steps": 10}
    found = mine.sample(7, 3, init=xp.asarray(X), **options)
    assert_same_draws(found, reference.sample(7, 3, init=X, **options))
    found, wanted = (one.log_partition("tap", random_state=0) for one in (mine, reference))
    assert found.value == pytest.approx(wanted.value, abs=1e-8)


@SHORT
def test_labels_lie_anywhere_and_are_anything(xp, X, y):
    """NumPy's labels for rows on a device, the other way round, and words."""
    rows, settings = xp.asarray(X), {"max_iter": 20, "early_stopping": False}
    reference = machine(RBMClassifier, **settings).fit(X, y)
    mine = machine(RBMClassifier, **settings).fit(rows, y)
    assert_same_parameters(mine, reference)
    assert isinstance(mine.classes_, np.ndarray) and isinstance(mine.predict(rows), type(rows))
    mine = machine(RBMClassifier, **settings).fit(X, xp.asarray(y))
    assert_same_parameters(mine, reference)
    assert isinstance(mine.classes_, type(rows)) and isinstance(mine.predict(X), np.ndarray)
    words = np.array(["no", "perhaps", "yes"])[y]
    mine = machine(RBMClassifier, **settings).fit(rows, words)
    np.testing.assert_array_equal(
        mine.predict(rows), np.array(["no", "perhaps", "yes"])[reference.predict(X)]
    )
    assert mine.score(rows, words) == reference.score(X, y)
    back = mine.move_to(np)
    assert (back.predict(X) == mine.predict(rows)).all()


# Errors.


ONLY_BITS = "only Bernoulli units are supported"
OF_NUMPY = "computes with NumPy arrays only"


@pytest.mark.parametrize(
    "kind, options, message",
    [
        (SDCPRBM, {"hidden": "gaussian"}, ONLY_BITS),
        (SDCPRBM, {"tempered": 0.5}, "tempered=0"),
        (SDCPRBM, {"chains": random_spins}, "chains='auto'"),
        (TAPRBM, {"inference": "adaptive"}, "inference='tap'"),
        (InfiniteRBM, {}, f"InfiniteRBM {OF_NUMPY}"),
        (FVBMPseudoLikelihood, {}, f"FVBMPseudoLikelihood {OF_NUMPY}"),
    ],
)
def test_what_is_there_for_numpy_only(xp, X, y, kind, options, message):
    rows, labels = xp.asarray(X), xp.asarray(y)
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(rows, labels)
    if kind is InfiniteRBM:
        with pytest.raises(ValueError, match=message):
            xp.has(InfiniteRBM(1, random_state=0).fit(X))
    if "chains" in options:  # also in a fit that goes on
        model = machine().fit(rows).set_params(**options, warm_start=True)
        for train in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=message):
                train(rows)


def test_rows_that_lie_elsewhere(xp, X):
    there, here = machine().fit(xp.asarray(X)), machine().fit(X)
    with pytest.raises(ValueError, match=r"these rows lie on NumPy.*move_to"):
        there.transform(X)
    with pytest.raises(ValueError, match=r"was fitted on NumPy.*move_to"):
        here.transform(xp.asarray(X))
    bad, gaps = X.copy(), X.copy()
    bad[3, 5], gaps[3, 5] = 2, np.nan
    with pytest.raises(ValueError, match=r"column 5, but row 3 has the value 2"):
        machine().fit(xp.asarray(bad))
    with pytest.raises(ValueError, match="SDCPRBM: rows on a device must be complete"):
        there.transform(xp.asarray(gaps))
