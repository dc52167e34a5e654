"""Values that a later fit is the first to see: learned where the model can grow, else told."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract.estimators import MODELS, OF_ANY_TABLE, each, each_with, name_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_boltz import (
    SDCPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    RBMClassifier,
    SparseFVBM,
)
from sklearn_boltz.batches import Batches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GROWING = (FSLLDensity, FVBMPseudoLikelihood, MaximumEntropy, SparseFVBM)


def answers(cities, seed=0, n=60):
    rng = np.random.default_rng(seed)
    columns = {"city": cities, "vote": ["no", "yes"], "won": [False, True]}
    return pd.DataFrame({name: rng.choice(values, n) for name, values in columns.items()})


FIRST, LATER = answers(["Bonn", "Rome"]), answers(["Athens", "Bonn", "Oslo"], seed=1, n=40)
SHARE = (LATER["city"] != "Bonn").mean()


def continued(estimator, how, rows):
    """Fitted to `FIRST`, then to other rows."""
    model = clone(estimator).fit(FIRST)
    if how == "partial_fit":
        return model.partial_fit(rows)
    model.set_params(warm_start=True)
    if how == "warm_start":
        return model.fit(rows)
    batches = Batches([rows[:25], rows[25:]])
    return model.fit(batches, np.arange(len(rows)) % 2) if hasattr(model, "classes_") else (
        model.fit(batches)
    )  # fmt: skip


def ways(estimator):
    found = ["partial_fit"] * hasattr(estimator, "partial_fit")
    found += ["warm_start"] * ("warm_start" in estimator.get_params())
    return found + ["batches"] * (len(found) == 2)


def each_of(cases):
    ids = [f"{name_of(e)}-{how}" for e, how in cases]
    return pytest.mark.parametrize(("estimator", "how"), cases, ids=ids)


each_way = each_of([(e, how) for e in MODELS for how in ways(e)])
a_way_of_each = each_of([(e, ways(e)[k % len(ways(e))]) for k, e in enumerate(MODELS)])


def message_of(call):
    """The one warning of a call; None if there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(w.message) for w in caught if w.category is UserWarning]
    assert len(texts) < 2
    return texts[0] if texts else None


@each_way
def test_new_categories_are_learned_or_told(estimator, how):
    found = []
    message = message_of(lambda: found.append(continued(estimator, how, LATER)))
    (model,) = found
    assert np.isfinite(model.score_samples(LATER)).all()
    assert model.categories_[1].tolist() == ["no", "yes"]
    if isinstance(estimator, GROWING):
        assert message is None
        assert model.categories_[0].tolist() == ["Athens", "Bonn", "Oslo", "Rome"]
        p = model.predict_column_proba(LATER[:1].assign(city=None), "city")
        assert p.shape == (1, 4) and (p > 0).all()
        assert "Oslo" in set(model.sample(500, random_state=0)["city"])
        return
    assert model.categories_[0].tolist() == ["Bonn", "Rome"]
    for part in (name_of(estimator), "column 'city'", "'Oslo'", "'Athens'", f"{100 * SHARE:.2g} %"):
        assert part in message
    assert "warm_start=False" in message


@a_way_of_each
def test_rows_without_new_values_are_taken_in_silence(estimator, how):
    assert message_of(lambda: continued(estimator, how, FIRST)) is None


@a_way_of_each
def test_unseen_decides(estimator, how):
    with pytest.raises(ValueError, match="column 'city' has the value '(Athens|Oslo)'"):
        continued(clone(estimator).set_params(unseen="error"), how, LATER)
    model = clone(estimator).set_params(unseen="missing")
    message = message_of(lambda: continued(model, how, LATER))
    assert "column 'city'" in message
    assert ("leave `unseen` at 'smooth'" in message) == isinstance(estimator, GROWING)


@a_way_of_each
def test_names_of_columns_stay_those_of_the_first_fit(estimator, how):
    with pytest.raises(ValueError, match="[Ff]eature names|In batch 0"):
        continued(estimator, how, FIRST.rename(columns={"city": "town"}))


@each([e for e in OF_ANY_TABLE if hasattr(e, "partial_fit") and type(e) in GROWING])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_rows_in_parts_are_learned_as_all_at_once(estimator, gaps):
    """Old codes move: a new value stands between them, and a column of bits gets a third one."""
    one, other = answers(["Bonn", "Rome"], 2), answers(["Athens", "Bonn", "Oslo", "Rome"], 3)
    one["kids"], other["kids"] = np.arange(60) % 2, np.arange(60) % 4
    one["same"], other["same"] = "b", np.where(np.arange(60) < 30, "a", "b")
    if gaps:
        one.loc[:4, "city"] = other.loc[5:9, "vote"] = None
    every = pd.concat([one, other], ignore_index=True)
    settings = {"alpha": 0.1, "max_iter": 500} if hasattr(estimator, "missing") else {}
    settings |= {"missing": "observed"} if hasattr(estimator, "missing") else {}
    parts = clone(estimator).set_params(**settings).fit(one).partial_fit(other)
    whole = clone(estimator).set_params(**settings).fit(every)
    assert_allclose(parts.score_samples(every), whole.score_samples(every), atol=2e-3)
    for found, expected in zip(parts.categories_, whole.categories_, strict=True):
        assert found is expected is None or found.tolist() == expected.tolist()
    assert_array_equal(parts.n_values_, whole.n_values_)


@each_with("library", [pd.DataFrame, pl.from_pandas], [FSLLDensity(), FVBMPseudoLikelihood()])
def test_the_order_of_a_type_is_kept(estimator, library):
    """A type that declares more levels gives their order; where none does, they are told."""
    levels = ["mild", "warm", "hot"]

    def rows(cells, order):
        return library(pd.DataFrame({
            "heat": pd.Categorical(cells, order, ordered=True), "x": np.arange(len(cells)) % 2
        }))  # fmt: skip

    model = clone(estimator).fit(rows(levels * 10, levels))
    grown = clone(model).fit(rows(levels * 10, levels))
    grown.partial_fit(rows(["cold", "hot"] * 5, ["cold", *levels]))
    if grown.columns_["heat"] == "ordinal":  # an Enum of polars has no order that means something
        assert grown.categories_[0].tolist() == ["cold", *levels]
        message = message_of(lambda: model.partial_fit(rows(["cold", "hot"] * 5, ["hot", "cold"])))
        assert "50 % of the rows have values in column 'heat'" in message and "'cold'" in message
        assert model.categories_[0].tolist() == levels
    assert set(np.asarray(grown.sample(300, random_state=0)["heat"])) == {"cold", *levels}


def test_what_the_warning_names():
    """Of many values and columns the first five; the share of rows that count, of all batches."""
    first = pd.DataFrame({f"c{k}": ["a", "b"] * 20 for k in range(7)})
    later = pd.DataFrame({f"c{k}": [*"abcdefgh"] * 5 for k in range(7)})
    model = SDCPRBM(2, max_iter=1, random_state=0).fit(first)
    message = message_of(lambda: model.partial_fit(later))
    assert "75 % of the rows have values in column 'c0'" in message
    assert "'c', 'd', 'e', 'f', 'g', ..." in message
    assert message.endswith("The same holds for columns 'c1', 'c2', 'c3', 'c4', 'c5' and 1 more.")
    weights = np.tile([1, 1, 1, 0, 0, 0, 0, 0], 5)
    message = message_of(lambda: model.partial_fit(later, sample_weight=weights))
    assert "33 % of the rows" in message and "'c'. They" in message
    # Bits that become codes, in a frame.
    bits = pd.DataFrame({"n": [0, 1] * 20, "word": ["a", "b"] * 20})
    model = SDCPRBM(2, max_iter=1, random_state=0).fit(bits)
    message = message_of(lambda: model.partial_fit(bits.assign(n=[0, 1, 2, 3] * 10)))
    assert (
        "50 % of the rows have values in column 'n' that fits before did not see, 2, 3" in message
    )


@each([FVBMPseudoLikelihood(), MaximumEntropy(random_state=0), SDCPRBM(2, max_iter=1)])
def test_a_column_that_has_no_value_any_more_is_refused(estimator):
    model = clone(estimator).fit(FIRST).set_params(warm_start=True)
    with pytest.raises(ValueError, match="column 'vote' has no value in any row, apart from rows"):
        model.fit(FIRST.assign(vote=None))
    assert np.isfinite(model.score(FIRST))


def test_labels_of_batches_do_not_hide_new_values():
    rows = [(LATER[:20], [0, 1] * 10), (LATER[20:], [0, 1] * 10)]
    model = RBMClassifier(2, max_iter=1, random_state=0, warm_start=True)
    model.fit(FIRST, np.arange(60) % 2)
    assert "column 'city'" in message_of(lambda: model.fit(Batches(rows)))
