"""Data of any kind and shape, and parameters of any value: no crash, no NaN, clear errors."""

import inspect
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.utils._param_validation import (
    InvalidParameterError,
    generate_invalid_param_val,
    make_constraint,
)
from test_common import DEFAULTS, DENSITIES

from private import MOST_CHAINS, rows_to_start_at
from sklearn_boltz import TAPDBM, TAPRBM, InfiniteRBM

# Hardly any rows separate variables, and extreme parameters diverge: there are warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The AIS estimate"),
    pytest.mark.filterwarnings("ignore:With step_size > 1"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


def name_of(estimator):
    return type(estimator).__name__


# A classifier needs a row of each of two classes.
every_estimator = pytest.mark.parametrize("estimator", DENSITIES, ids=name_of)


def quick(estimator):
    """A clone that can be fitted to a single row, in no time."""
    estimator = clone(estimator)
    for name, value in [("early_stopping", False), ("n_model_samples", 32)]:
        if name in estimator.get_params():
            estimator.set_params(**{name: value})
    return estimator


def assert_finite(values):
    assert np.isfinite(np.asarray(values, dtype=np.float64)).all()


def exercise(model, X):
    """All that a model can do, on legal dense rows of 0 and 1."""
    for method in ("score_samples", "transform", "log_pseudo_likelihood"):
        if hasattr(model, method):  # a log-linear model has no pseudo-likelihood
            assert_finite(getattr(model, method)(X))
    missing = np.array(X, dtype=np.float64)
    missing[::2, 0] = missing[-1] = np.nan
    for how in ("mean", "mode", "sample"):
        assert_finite(model.impute(missing, how=how, random_state=0))
    samples = np.asarray(model.sample(3, random_state=0), dtype=float)
    assert set(samples.ravel()) <= {0.0, 1.0}
    states = np.array(list(itertools.product([0.0, 1.0], repeat=X.shape[1])))
    total = np.exp(model.score_samples(states)).sum()
    n_values = getattr(model, "n_values_", np.array([2]))
    # Of a deep machine, the log-probability of a row is an approximation.
    if (n_values == 2).all() and not isinstance(model, TAPDBM):
        assert total == pytest.approx(1, rel=1e-4)


# Layouts, types and containers.

DTYPES = [bool, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64,
          np.float16, np.float32, np.float64, np.longdouble, object, ">f4", ">i8"]  # fmt: skip
SPARSE = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


def wide(X):
    """A view of every second row and column of a larger array."""
    larger = np.full((2 * X.shape[0], 2 * X.shape[1]), X.dtype.type(1))
    larger[::2, ::2] = X
    return larger[::2, ::2]


def frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": wide,
    "negative": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": frozen,
    "unaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), X.dtype, X.size, 1).reshape(X.shape),
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
}


def rows(most_rows=12, most_features=5):
    shapes = st.tuples(st.integers(1, most_rows), st.integers(1, most_features))
    return shapes.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1)))


@every_estimator
@settings(max_examples=cases(12))
@given(X=rows(), dtype=st.sampled_from(DTYPES), layout=st.sampled_from(sorted(LAYOUTS)))
def test_any_type_and_layout(estimator, X, dtype, layout):
    """The model is that of the same numbers in a plain array."""
    if np.dtype(dtype) == object and layout == "unaligned":
        layout = "C"
    X = X.astype(dtype)
    given = LAYOUTS[layout](X)
    plain = np.array(X[:1].repeat(len(X), axis=0) if layout == "broadcast" else X, order="C")
    # In a frame, "any other" value has a share of its own.
    model, reference = quick(estimator).set_params(unseen="missing"), quick(estimator)
    model.fit(given)
    exercise(model, plain.astype(np.int64))
    reference.fit(plain)
    np.testing.assert_allclose(
        model.score_samples(given), reference.score_samples(plain), rtol=1e-5, atol=1e-5
    )


@every_estimator
@settings(max_examples=cases(6))
@given(X=rows(), dtype=st.sampled_from([np.float32, np.float64, np.int64, np.bool_]))
def test_memory_maps(estimator, X, dtype, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X.astype(dtype))
    mapped = np.load(path, mmap_mode="r")
    model = quick(estimator).fit(mapped)
    exercise(model, X)
    np.testing.assert_array_equal(
        model.score_samples(mapped), quick(estimator).fit(X.astype(dtype)).score_samples(X)
    )


@every_estimator
@settings(max_examples=cases(8))
@given(
    X=rows(),
    layout=st.sampled_from(SPARSE),
    dtype=st.sampled_from([np.float64, np.float32, np.int32, np.bool_]),
    container=st.sampled_from(["array", "matrix"]),
)
def test_every_sparse_format(estimator, X, layout, dtype, container):
    """It is as good as dense rows, or refused in words."""
    given = getattr(sp, f"{layout}_{container}")(X.astype(dtype))
    model = quick(estimator)
    if not model.__sklearn_tags__().input_tags.sparse:
        with pytest.raises(TypeError, match="[Ss]parse.*dense"):
            model.fit(given)
        assert not hasattr(model, "n_features_in_")
        return
    model.fit(given)
    exercise(model, X)
    np.testing.assert_allclose(model.score_samples(given), model.score_samples(X), atol=1e-5)
    if isinstance(model, InfiniteRBM):
        return  # a last bit of a sum decides on which bits are drawn
    np.testing.assert_allclose(
        model.score_samples(X), quick(estimator).fit(X.astype(dtype)).score_samples(X), atol=1e-4
    )


@every_estimator
def test_polars(estimator):
    X = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = quick(estimator).set_params(unseen="missing").fit(frame)
    np.testing.assert_array_equal(model.score_samples(frame), quick(model).fit(X).score_samples(X))


@every_estimator
@settings(max_examples=cases(8))
@given(X=rows(30, 4), data=st.data())
def test_weights(estimator, X, data):
    """Counts are rows that are repeated, and a row of weight 0 is not there."""
    if "sample_weight" not in inspect.signature(estimator.fit).parameters:
        pytest.skip("no weights")
    weights = data.draw(st.sampled_from([
        np.arange(len(X)) % 3, np.full(len(X), 1e-6), np.full(len(X), 1e12), np.ones(len(X)),
        np.where(np.arange(len(X)) == 0, 1e-300, 0.0),
    ]))  # fmt: skip
    model = quick(estimator)
    if not weights.any():
        with pytest.raises(ValueError, match="0 for all rows|at least one non-zero"):
            model.fit(X, sample_weight=weights)
        return
    model.fit(X, sample_weight=weights)
    if type(model).__name__ != "FSLLDensity" or (weights < 3).all():
        exercise(model, X)
    assert_finite(model.score_samples(X))
    if weights.dtype.kind == "i" and "random_state" not in model.get_params():
        # Where samples are drawn: see test_rbm_weights.py.
        repeated = quick(estimator).fit(np.repeat(X, weights, axis=0))
        np.testing.assert_allclose(model.score_samples(X), repeated.score_samples(X), atol=1e-6)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"[Nn]egative|NaN|infinity"):
            quick(estimator).fit(X, sample_weight=np.full(len(X), bad))


@settings(max_examples=cases(30))
@given(X=arrays(np.int8, st.tuples(st.integers(1, 20), st.integers(1, 4)),
                elements=st.integers(0, 6)), declared=st.booleans())  # fmt: skip
def test_any_cardinalities(X, declared):
    (estimator,) = [e for e in DEFAULTS if "max_states" in e.get_params()]
    model = clone(estimator).set_params(n_values=8 if declared else "auto").fit(X)
    assert (model.n_values_ >= X.max(axis=0) + 1).all()
    for how in ("mean", "mode", "sample"):
        missing = X.astype(float)
        missing[0] = np.nan
        assert_finite(model.impute(missing, how=how, random_state=0))
    if model.n_values_.prod() <= 2**12:
        states = np.array(list(itertools.product(*map(range, model.n_values_))))
        assert np.exp(model.score_samples(states)).sum() == pytest.approx(1, rel=1e-9)


BAD_DATA = {
    "one axis": np.zeros(3),
    "three axes": np.zeros((2, 2, 2)),
    "no row": np.zeros((0, 3)),
    "no column": np.zeros((3, 0)),
    "infinity": np.array([[0.0, np.inf]]),
    "complex": np.zeros((2, 2), complex),
    "dictionaries": np.array([["a", {}], ["b", {}]], dtype=object),
    "names of rows": np.array([[f"name {i}", "x"] for i in range(30)]),
    "None": None,
    "dates": np.full((2, 2), np.datetime64("2020-01-01")),
    "ragged": [[0, 1], [1]],
    "far outside": np.array([[0.0, 1e300], [1.0, 0.0]]),
    "a little outside": np.array([[0.0, 1.0 + 1e-3], [1.0, -1e-3]]),
    "negative": np.array([[0, -7], [1, 0]]),
    "sparse outside": sp.csr_array(np.array([[0, 7.5], [1, 0]])),
    "sparse NaN": sp.csr_array(np.array([[0, np.nan], [1, 0]])),
}


@every_estimator
@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_are_refused_in_words_and_change_nothing(estimator, kind):
    model = quick(estimator)
    for _ in range(2):
        before = vars(model).copy()
        with pytest.raises((ValueError, TypeError)) as caught:
            model.fit(BAD_DATA[kind])
        assert len(str(caught.value)) > 20
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        model.fit([[0, 1], [1, 1], [0, 0]])
    if ("outside" in kind or kind == "negative") and hasattr(model, "early_stopping"):
        with pytest.warns(UserWarning, match="the nearer end"):
            assert_finite(model.score_samples(BAD_DATA[kind]))
        return
    with pytest.raises((ValueError, TypeError)):
        model.score_samples(BAD_DATA[kind])


# Parameters.


@every_estimator
def test_every_parameter_is_constrained(estimator):
    X = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    parameters = inspect.signature(type(estimator)).parameters
    assert set(parameters) == set(estimator._parameter_constraints)
    for name, constraints in estimator._parameter_constraints.items():
        bad = [object()]
        for constraint in constraints:
            # Some have no value that is bad for sure.
            try:
                bad.append(generate_invalid_param_val(make_constraint(constraint)))
            except NotImplementedError:
                continue
        bad += [np.nan, -np.inf, np.inf, -1, 10**400, "", [], {}]
        allowed = [make_constraint(constraint) for constraint in constraints]
        for value in bad:
            if any(constraint.is_satisfied_by(value) for constraint in allowed):
                continue
            model = quick(estimator).set_params(**{name: value})
            with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of"):
                model.fit(X)
            if hasattr(model, "partial_fit"):
                with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of"):
                    model.partial_fit(X)
            assert not hasattr(model, "n_features_in_")


@every_estimator
def test_arguments_of_methods(estimator):
    X = np.array([[0.0, 1], [1, 1], [0, 0], [1, np.nan]])
    model = quick(estimator).fit(X[:3])
    calls = [("sample", {"n_samples": 0}), ("sample", {"n_samples": 1.5}),
             ("sample", {"random_state": "a"}), ("impute", {"X": X, "how": "median"}),
             ("impute", {"X": X, "random_state": -1}),
             ("impute", {"X": X, "n_steps": 0}), ("sample", {"n_steps": -1}),
             ("sample", {"temperature": 0.0}), ("sample", {"given": 3}),
             ("impute", {"X": X, "method": "magic"}), ("gibbs", {"V": X[:3], "n_steps": -1}),
             ("log_partition", {"method": "magic"}), ("log_partition", {"n_chains": 0}),
             ("log_partition", {"n_temperatures": 0}), ("tap_solutions", {"max_iter": 0}),
             ("inference", {"X": X[:3], "confidence_level": 1.0})]  # fmt: skip
    for method, arguments in calls:
        known = getattr(model, method, None)
        (name,) = arguments.keys() - {"X", "V"}
        if not callable(known) or name not in inspect.signature(known).parameters:
            continue
        with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of"):
            known(**arguments)


@pytest.mark.parametrize(
    "estimator", [e for e in DEFAULTS if hasattr(e, "persistent")], ids=name_of
)
def test_batches_without_end_and_persistent_chains(estimator):
    """As many chains as the batch has rows would fill all memory."""
    X = np.random.default_rng(0).integers(2, size=(20, 4))
    model = quick(estimator).set_params(batch_size=10**12, persistent=True, max_iter=2)
    assert_finite(model.fit(X).score_samples(X))
    assert rows_to_start_at(10**12, 20).shape == (MOST_CHAINS,)
    assert rows_to_start_at(10**12, 10**5).shape == (10**5,)
    assert rows_to_start_at(5, 3).tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    "estimator", [e for e in DENSITIES if hasattr(e, "weights_init")], ids=name_of
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_the_type_cannot_hold(estimator, dtype):
    """Nor sums of their products: one row is enough for a NaN."""
    model = clone(estimator).set_params(weights_init=1e300)
    with pytest.raises(
        ValueError, match=rf"weights_init=1e\+300 is too large.* in {dtype.__name__}"
    ):
        model.fit(np.array([[0, 1]], dtype))
    assert not hasattr(model, "components_")
    model.set_params(weights_init=1e8).fit(np.array([[0, 1]], dtype))
    assert_finite(model.score_samples(np.array([[0, 1]], dtype)))


@pytest.mark.parametrize("estimator", [e for e in DENSITIES if hasattr(e, "power_t")], ids=name_of)
@pytest.mark.parametrize("power_t", [1e300, 5000])
def test_learning_rates_that_fall_to_zero(estimator, power_t):
    """The first epoch has the full rate, and all others change nothing."""
    X = np.array([[0.0, 1], [1, 1], [0, 0], [1, 1]])
    model = quick(estimator).set_params(learning_rate_schedule="invscaling", max_iter=1)
    more = {"momentum": 0.0, "pretrain_max_iter": 1}
    model.set_params(**{name: more[name] for name in more.keys() & model.get_params()})
    expected = clone(model).fit(X).components_
    found = clone(model).set_params(power_t=power_t, max_iter=3).fit(X).components_
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_parameters_that_do_not_go_together_are_named():
    X = np.array([[0.0, 1], [1, 1], [0, 0]])
    for visible_range in [(1.0, 0.0), (0.0,), (0.0, np.nan), ("a", "b"), (0.0, np.inf)]:
        with pytest.raises(ValueError, match="visible_range"):
            TAPRBM(2, visible="truncated_gaussian", visible_range=visible_range).fit(X)
    with pytest.raises(ValueError, match="visible_range"):
        TAPRBM(2, visible_range=(0.0, 2.0)).fit(X)
