"""Tables of any type, layout and size: the model of the same numbers in a plain array."""

import functools
import tempfile
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from conftest import cases
from contract.estimators import (
    ALL,
    DENSITIES,
    MACHINES,
    MODELS,
    each,
    each_with,
    name_of,
    short,
)
from contract.frames import ODD, REFUSED, all_states, bits
from contract.test_messages import said
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, FSLLDensity, InfiniteRBM

# Hardly any rows separate variables, and extreme weights diverge: there are warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The AIS estimate"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]
RANGED = [*MACHINES, TAPRBM(4, columns="truncated_gaussian", max_iter=2, random_state=0)]


def assert_finite(values):
    assert np.isfinite(np.asarray(values, dtype=np.float64)).all()


def exercise(model, X):
    """All that a model can do, on legal dense rows of 0 and 1."""
    for method in ("score_samples", "transform", "log_pseudo_likelihood"):
        assert_finite(getattr(model, method)(X))
    missing = np.array(X, dtype=np.float64)
    missing[::2, 0] = missing[-1] = np.nan
    for how in ("mean", "mode", "sample"):
        assert_finite(model.impute(missing, how=how, random_state=0))
    samples = np.asarray(model.sample(3, random_state=0), dtype=float)
    assert set(samples.ravel()) <= {0.0, 1.0}
    total = np.exp(model.score_samples(all_states(X.shape[1]))).sum()
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


def mapped(X):
    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, X)
    return np.load(file.name, mmap_mode="r")


def of_arrow(X):
    X = X.astype(np.float64) if X.dtype == np.longdouble else X  # Arrow has no such numbers
    return pa.table({f"c{j}": X[:, j].tolist() for j in range(X.shape[1])})


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": wide,
    "negative": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": frozen,
    "unaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), X.dtype, X.size, 1).reshape(X.shape),
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
    "list": lambda X: X.tolist(),
    "memory map": mapped,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X.astype(X.dtype.newbyteorder("=")).tolist(), orient="row"),
    "PyArrow": of_arrow,
}
# Floats of any type are float64 in a list, and codes in a frame are float32.
FLOATS = {"list": np.float64} | dict.fromkeys(["pandas", "polars", "PyArrow"], np.float32)
# Where objects have no bytes of their own.
OF_BYTES = {"unaligned", "memory map"}


def rows(most_rows=12, most_features=5):
    shapes = st.tuples(st.integers(1, most_rows), st.integers(1, most_features))
    return shapes.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1)))


@each(DENSITIES)
@settings(max_examples=cases(6))
@given(X=rows(), dtype=st.sampled_from(DTYPES), layout=st.sampled_from(sorted(LAYOUTS)))
def test_any_type_and_layout(estimator, X, dtype, layout):
    if np.dtype(dtype) == object and layout in OF_BYTES:
        layout = "C"
    X = X.astype(dtype)
    table = LAYOUTS[layout](X)
    plain = np.array(X[:1].repeat(len(X), axis=0) if layout == "broadcast" else X, order="C")
    if layout in FLOATS and plain.dtype.kind == "f":
        plain = plain.astype(FLOATS[layout])  # a last bit may decide on what InfiniteRBM draws
    # In a frame, "any other" value has a share of its own.
    model = clone(estimator).set_params(unseen="missing").fit(table)
    exercise(model, plain.astype(np.int64))
    found, expected = model.score_samples(table), clone(estimator).fit(plain).score_samples(plain)
    if layout in ("read-only", "memory map"):
        assert_array_equal(found, expected)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@each(MODELS)
@settings(max_examples=cases(5))
@given(
    X=rows(),
    layout=st.sampled_from(SPARSE),
    dtype=st.sampled_from([np.float64, np.float32, np.int32, np.bool_]),
    container=st.sampled_from(["array", "matrix"]),
)
def test_every_sparse_format(estimator, X, layout, dtype, container):
    """It is as good as dense rows, or refused in words."""
    assume(len(X) > 1 or not is_classifier(estimator))  # which wants two classes
    table = getattr(sp, f"{layout}_{container}")(X.astype(dtype))
    model = clone(estimator)
    if not model.__sklearn_tags__().input_tags.sparse:
        with pytest.raises(TypeError, match="[Ss]parse.*dense"):
            model.fit(table)
        assert not hasattr(model, "n_features_in_")
        return
    model.fit(table)
    exercise(model, X)
    scores = model.score_samples(X)
    assert_allclose(model.score_samples(table), scores, atol=1e-5)
    assert_allclose(model.transform(table), model.transform(X), atol=1e-5)
    if isinstance(model, InfiniteRBM):
        return  # a last bit of a sum decides on which bits are drawn
    assert_allclose(scores, clone(model).fit(X.astype(dtype)).score_samples(X), atol=1e-4)


@each_with("dtype", [np.int64, np.float32, object], ALL)
def test_masked_cells_are_missing(estimator, dtype):
    X, mask = bits(30), np.random.default_rng(0).random((30, 5)) < 0.1
    masked = np.ma.masked_array(X.astype(dtype), mask)
    kind = np.float64 if dtype is np.int64 else dtype
    holes = np.where(mask, None if dtype is object else np.nan, X.astype(kind)).astype(kind)
    models = [clone(estimator).fit(table) for table in (masked, holes)]
    name = "predict_proba" if is_classifier(estimator) else "score_samples"
    methods = [(name, {})] if hasattr(estimator, name) else [("transform", {})]
    if hasattr(estimator, "impute"):
        methods.append(("impute", {"random_state": 0}))
    for method, options in methods:
        found, expected = (
            getattr(model, method)(table, **options)
            for model, table in zip(models, (masked, holes), strict=True)
        )
        assert not np.ma.isMaskedArray(found)
        assert_array_equal(found, expected)
    assert_array_equal(masked.mask, mask)


NAN = np.nan
HARDLY = [
    [[0, 1, NAN]] * 3 + [[NAN, NAN, 1]], [[0, NAN], [NAN, 1]], [[1, 1], [1, NAN], [NAN, NAN]],
    [[0], [NAN], [1]], [[0, NAN], [NAN, 1], [1, NAN], [NAN, 0]] * 9,
]  # fmt: skip


@each(DENSITIES)
@pytest.mark.filterwarnings("ignore:.*no row has both")
def test_hardly_a_cell_is_observed(estimator):
    for table, weight in zip(HARDLY, [1.0, 1e-3, 1e3, 1.0, 1e3], strict=True):
        X = np.array(table)
        model = clone(estimator).fit(X, sample_weight=np.full(len(X), weight))
        for values in (model.score_samples(X), model.transform(X), model.impute(X, how="mode")):
            assert_finite(values)


# What comes back, and values out of range.


@pytest.mark.parametrize("estimator", RANGED, ids=repr)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_out_of_range_are_clipped_with_one_warning(estimator, container):
    X = np.random.default_rng(0).random((40, 4))
    model = clone(estimator).fit(X)
    outside, clipped = X.copy(), X.copy()
    outside[3, 2], outside[5, 2], outside[7, 0] = 1.25, -0.5, 3.5
    clipped[3, 2], clipped[5, 2], clipped[7, 0] = 1, 0, 1
    outside, clipped = container(outside), container(clipped)
    pattern = r"3 values in 2 columns .* first is 1.25 in column 2, row 3\. .*MinMaxScaler"
    for method in ("transform", "score_samples", "mean_hidden", "free_energy"):
        with pytest.warns(UserWarning, match=pattern) as told:
            result = getattr(model, method)(outside)
        assert len(told) == 1 and told[0].filename == __file__
        for one, other in zip(result, getattr(model, method)(clipped), strict=True):
            assert_array_equal(one, other)
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match="column 2"):
                getattr(clone(model).set_params(columns="probability"), method)(outside)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_errors_of_scaling_are_no_errors(dtype):
    X = bits()
    rows = (X * np.nextafter(dtype(1), dtype(2))).astype(dtype)
    assert rows.max() > 1
    model = SDCPRBM(2, max_iter=2, random_state=0).fit(rows)
    reference = SDCPRBM(2, max_iter=2, random_state=0).fit(X.astype(dtype))
    assert_array_equal(model.components_, reference.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(rows)


# What is refused, and what gives a warning.


def legal(estimator, table, **parameters):
    """What `fit` says, except for the name of the estimator."""

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clone(estimator).set_params(**parameters).fit(table)

    return said(fit).replace(name_of(estimator), "SDCPRBM")


@functools.cache
def of_sdcp(what):
    return legal(SDCPRBM(2, max_iter=0), (REFUSED | ODD)[what])


@each(ALL)
def test_all_estimators_refuse_tables_in_the_same_words(estimator):
    """Those of messages.txt."""
    for what, table in REFUSED.items():
        assert legal(estimator, table) == of_sdcp(what), what


@each(MACHINES)
def test_all_machines_refuse_tables_in_the_same_words(estimator):
    for what, table in ODD.items():
        assert legal(short(estimator), table) == of_sdcp(what), what


@pytest.mark.parametrize("code", [9, 99])
def test_the_remedies_for_missing_codes_work(code):
    answers = bits()
    answers[4:9, 1] = answers[7, 3] = code
    for model, table in [
        (FSLLDensity(columns=dict.fromkeys([1, 3], [0, 1, code])), answers),
        (FSLLDensity(), np.where(answers == code, np.nan, answers)),
        (FSLLDensity(columns=range(3)), bits() + 1),
        (FSLLDensity(), pd.DataFrame(bits() + 1)),
    ]:
        assert said(lambda model=model, table=table: model.fit(table)) == ""
    assert model.n_values_.tolist() == [2] * 5
