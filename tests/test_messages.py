"""Messages of errors and warnings name the cell, and a remedy that works."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from private import learn_table
from sklearn_boltz import (
    SDCPRBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    RBMClassifier,
)
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Categorical, TruncatedGaussian

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def bits(n=40, d=4, seed=0):
    return np.random.default_rng(seed).integers(2, size=(n, d)).astype(float)


def refusal(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return str(caught.value)


def frame(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.integers(2, size=n), "b": rng.choice(["p", "q", "r"], n)})


def test_the_remedy_is_about_the_column_of_the_error():
    X = pd.DataFrame(bits(), columns=list("abcd"))
    X.loc[0, "b"], X.loc[2, "a"] = 3.7, 5.2
    message = refusal(lambda: SDCPRBM(2).fit(X))
    assert "column 'b', but row 0 has the value 3.7" in message
    assert "first of 2 such values in columns 'a', 'b'." in message
    assert "visible={'b': 'gaussian', 'a': 'gaussian'}" in message


@pytest.mark.parametrize("column", [np.arange(40) / 23, np.arange(40.0)])
def test_the_remedy_for_amounts_comes_first(column):
    message = refusal(lambda: SDCPRBM(2).fit(pd.DataFrame({"rate": column})))
    assert message.endswith(
        "For amounts, set visible={'rate': 'gaussian'}; for categories, 'categorical'. For bits, "
        "set `binarize` to a threshold. Grey levels become probabilities of a 1 by "
        "sklearn.preprocessing.MinMaxScaler(clip=True)."
    )


@pytest.mark.parametrize("model", [FSLLDensity, FVBMPseudoLikelihood])
def test_models_of_whole_numbers_are_not_offered_fractions(model):
    X = bits()
    X[3, 1] = 2
    grey = 255 * bits()
    for call in (lambda: model(n_values=2).fit(X), lambda: model(n_values=16).fit(grey)):
        message = refusal(call)
        assert "MinMaxScaler" not in message and "Divide" not in message
        assert "n_values" in message or "binarize" in message


def test_missing_cells_of_sparse_rows():
    X = csr_array(bits())
    model = SDCPRBM(2, max_iter=1).fit(X)
    X.data[0] = np.nan
    for call in (lambda: SDCPRBM(2).fit(X), lambda: model.score_samples(X)):
        assert "pass X.toarray(), in which NaN is a missing cell" in refusal(call)
    assert np.isfinite(model.score_samples(X.toarray())).all()


def test_names_of_columns_that_do_not_exist():
    X = pd.DataFrame(bits(d=12), columns=[f"price{j}" for j in range(12)])
    message = refusal(lambda: SDCPRBM(2, visible={"prise3": "gaussian"}).fit(X))
    assert "no variable 'prise3'; there are 'price" in message and "(12 in all)" in message
    message = refusal(lambda: SDCPRBM(2, visible={"zz": "gaussian"}).fit(X))
    assert "'price0', 'price1', 'price2', 'price3', 'price4', ... (12 in all)" in message
    message = refusal(lambda: SDCPRBM(2, visible={12: "gaussian"}).fit(X.to_numpy()))
    assert "no variable 12 among 12, which are numbered from 0" in message


def test_the_range_of_truncated_units():
    X = 1 + 5 * np.random.default_rng(0).random((50, 2))
    X[0, 0] = np.nan
    kind = "truncated_gaussian"
    message = refusal(lambda: TAPRBM(2, visible=kind, max_iter=1).fit(X))
    low, high = np.nanmin(X), np.nanmax(X)
    assert f"Set visible_range to the range of the data, here ({low:.6g}, {high:.6g})" in message
    TAPRBM(2, visible=kind, visible_range=(low, high), max_iter=1).fit(X)
    # The interval of this type contains 0.
    kind = "truncated_gauss_bernoulli"
    message = refusal(lambda: TAPRBM(2, visible=kind, max_iter=1).fit(X))
    assert f"here (0, {high:.6g})" in message
    TAPRBM(2, visible=kind, visible_range=(0, high), max_iter=1).fit(X)
    # A class takes no visible_range.
    message = refusal(lambda: TAPRBM(2, visible=TruncatedGaussian, max_iter=1).fit(X))
    assert "Set the range of the units to" in message


def test_codes_of_categorical_units():
    X = np.random.default_rng(0).integers(3, size=(40, 2)).astype(float)
    model = SDCPRBM(2, visible={0: Categorical([3]), 1: "categorical"}, max_iter=1).fit(X)
    bad = X.copy()
    bad[4, 0] = 1.5
    message = refusal(lambda: SDCPRBM(2, visible={0: Categorical([3])}).fit(bad))
    assert "whole numbers from 0 to 2 in column 0, but row 4 has the value 1.5" in message
    assert "Give these codes, or set visible={0: 'categorical'}" in message
    with pytest.warns(UserWarning, match=r"set to the nearest of these; the first is 1.5"):
        model.transform(bad)


def test_clipped_values_that_may_be_missing_ones():
    X = bits()
    model = SDCPRBM(2, max_iter=1).fit(X)
    X[3, 2] = -1
    with pytest.warns(UserWarning, match="stands for a missing value, write it as NaN") as caught:
        model.score_samples(X)
    assert "impute" not in str(caught[0].message)


def test_damping_is_offered_where_there_is_one():
    model = SDCPRBM(30, max_iter=1, random_state=0).fit(bits(d=30))
    W = 3 * np.random.default_rng(0).normal(size=(30, 30))  # a spin glass
    model.components_ = W
    model.intercept_visible_, model.intercept_hidden_ = -W.sum(axis=0) / 2, -W.sum(axis=1) / 2
    with pytest.warns(match=r"Use method='ais'\.") as caught:
        model.log_partition("tap", n_chains=3, random_state=0)
    assert not any("damping" in str(warning.message) for warning in caught)


def test_sizes_that_do_not_continue():
    y = np.arange(40) % 2
    model = RBMClassifier(2, max_iter=1, warm_start=True).fit(bits(), y)
    message = refusal(lambda: model.set_params(n_components=5).fit(bits(), y))
    assert "model to continue from has 2 components. Set n_components=2" in message


def test_values_that_were_not_seen_where_none_may_be_missing():
    table = frame()
    model = SDCPRBM(2, max_iter=1, unseen="missing").fit(table)
    table.loc[1, "b"] = "zz"
    message = refusal(lambda: model.gibbs(table))
    assert "column 'b' has the value 'zz' in row 1, which no row of the training" in message
    table.loc[1, "b"] = None
    assert "column 'b' has no value (NaN) in row 1" in refusal(lambda: model.gibbs(table))


def test_columns_of_numbers_with_a_few_texts():
    texts = [str(j) for j in range(59)] + ["?"]
    message = refusal(lambda: learn_table(pd.DataFrame({"age": texts})))
    assert "All but '?' are numbers" in message and "errors='coerce'" in message
    numbers = pd.to_numeric(pd.DataFrame({"age": texts})["age"], errors="coerce")
    learn_table(numbers.to_frame())
    cells = pd.DataFrame({"c": [*np.linspace(0, 1, 59), "oops"]}, dtype=object)
    message = refusal(lambda: learn_table(cells))
    assert "column 'c' has 59 different numbers, and the text 'oops' in row 59" in message


@pytest.mark.parametrize("model", [SDCPRBM(2, max_iter=1), FVBMPseudoLikelihood(alpha=0.1)])
def test_batches_are_for_fit(model):
    X = bits()
    message = refusal(lambda: model.fit(X).score_samples(Batches([X])))
    assert "which only `fit` and `partial_fit` of density models can read" in message


@pytest.mark.parametrize("model", [FSLLDensity(), InfiniteRBM(2), SDCPRBM(2, max_iter=1)])
def test_weights_that_are_refused(model):
    X, weights = bits(), np.ones(40)
    weights[7] = -2
    message = refusal(lambda: model.fit(X, sample_weight=weights))
    assert "sample_weight is -2 in row 7. Weights must be finite and not negative" in message
    weights[7] = np.nan
    assert "sample_weight is NaN in row 7" in refusal(lambda: model.fit(X, sample_weight=weights))
    message = refusal(lambda: model.fit(X, sample_weight=0 * np.ones(40)))
    assert "sample_weight is 0 for all rows" in message


def test_weights_of_batches():
    X = bits()
    model = SDCPRBM(2, max_iter=1)
    message = refusal(lambda: model.fit(Batches([X]), sample_weight=np.ones(7)))
    assert "one weight for each of the 40 rows of all batches, in their order, and has 7" in message
    message = refusal(lambda: model.fit(Batches([X]), sample_weight=-np.ones(40)))
    assert "sample_weight is -1 in row 0" in message
    # A number is the weight of all rows.
    model = SDCPRBM(2, max_iter=1, random_state=0)
    expected = model.fit(Batches([X])).components_
    assert_array_equal(model.fit(Batches([X]), sample_weight=2.0).components_, expected)


# All columns at once.


def seven(cells, **others):
    """A table with seven columns of the same cells, and others before and after them."""
    some = {f"c{k}": cells for k in range(7)}
    bits = np.arange(len(cells)) % 2
    return pd.DataFrame({"fine": bits, **some, **others})


FIVE = "columns 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more"
BOTH = [SDCPRBM(2, max_iter=1), FVBMPseudoLikelihood(), FSLLDensity()]
every_kind = pytest.mark.parametrize("model", BOTH, ids=lambda m: type(m).__name__)
DAYS = pd.date_range("2026-01-01", periods=40)


@every_kind
def test_columns_of_dates_and_of_names(model):
    message = refusal(lambda: model.fit(seven(DAYS)))
    assert message == (
        f"{type(model).__name__}: {FIVE} contain datetimes, which are not supported. Drop them, or "
        "convert them to numbers (for example days since a date)."
    )
    names = [f"n{k}" for k in range(40)]
    message = refusal(lambda: model.fit(seven(names)))
    assert message == (
        f"{type(model).__name__}: column 'c0' has 40 different texts in 40 rows. This looks like "
        "an ID column: it carries no information about other rows. Drop it. The same holds for "
        "columns 'c1', 'c2', 'c3', 'c4', 'c5' and 1 more."
    )
    message = refusal(lambda: model.fit(seven(np.arange(40) % 2, id=names)))
    assert message.endswith(
        "column 'id' has 40 different texts in 40 rows. This looks like an ID column: it carries "
        "no information about other rows. Drop it."
    )


@every_kind
def test_infinite_and_missing_cells_and_columns(model):
    cells = np.where(np.arange(40) < 2, np.inf, np.arange(40) % 2)
    message = refusal(lambda: model.fit(seven(cells)))
    assert message == (
        f"{type(model).__name__}: column 'c0' has the value inf in row 0, the first of 14 infinite "
        f"ones in {FIVE}. Replace them by finite ones."
    )
    with pytest.warns(UserWarning, match="no row that counts has a value in " + re.escape(FIVE)):
        model.fit(seven(np.full(40, np.nan)))
    if not isinstance(model, SDCPRBM):
        fitted = model.fit(seven(np.arange(40) % 2))
        gaps = seven(np.where(np.arange(40) < 2, np.nan, np.arange(40) % 2))
        message = refusal(lambda: fitted.energy(gaps))
        assert "'c0' has no value (NaN) in row 0, the first of 14 missing cells" in message
        assert FIVE in message


@every_kind
def test_values_out_of_range(model):
    message = refusal(lambda: model.fit(seven(np.arange(40) / 4 + 0.1)))
    first = "row 4 has the value 1.1, the first of 252"
    if not isinstance(model, SDCPRBM):
        first = "row 0 has the value 0.1, the first of 280"
    assert f"column 'c0', but {first} such values in {FIVE}. " in message
    if isinstance(model, SDCPRBM):
        entries = ", ".join(f"'c{k}': 'gaussian'" for k in range(5))
        assert f"For amounts, set visible={{{entries}, ...}}; for categories" in message


def test_columns_with_more_than_two_values():
    model = FVBMPseudoLikelihood(objective="likelihood")
    message = refusal(lambda: model.fit(seven(np.arange(40) % 3)))
    assert f"is for binary columns, and {FIVE} have more than two values" in message
    model = FVBMPseudoLikelihood(n_values=2)
    message = refusal(lambda: model.fit(seven(np.resize(["x", "y", "z"], 40))))
    assert "'c0' has 3 categories ('x', 'y', 'z'), but n_values allows 2; columns 'c1'" in message
    assert "'c5' and 1 more have too many, too." in message
    fitted = FVBMPseudoLikelihood().fit(np.arange(40)[:, None] % [3, 3, 4])
    message = refusal(lambda: fitted.score_samples([[0, 3, 0], [0, 0, 0], [0, 0, 5]]))
    assert "column 1, but row 0 has the value 3, the first of 2 such values in columns 1, 2. " in (
        message
    )
