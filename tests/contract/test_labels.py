"""Columns of a data frame go by their labels, whatever these are; those of an array by position."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from contract.estimators import META, OF_ANY_TABLE, by_turns, each, name_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from sklearn_boltz import (
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
    statistics,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAMES = ["p", "q", "r"]
ONE = st.sampled_from("abc")
LABELS = {
    "whole numbers": st.integers(-3, 9),
    "floats": st.integers(-3, 9).map(lambda k: k + 0.5),
    "tuples": st.tuples(ONE, ONE),
    "tuples of numbers": st.tuples(st.integers(0, 3), ONE),
    "dates": st.dates().map(pd.Timestamp),
    "strings": st.text("01x", min_size=1),
}


def labels(kind):
    return st.lists(LABELS[kind], min_size=3, max_size=3, unique=True)


def table(n=60):
    rng = np.random.default_rng(0)
    one = rng.choice(["x", "y", "z"], n)
    other = np.where(rng.random(n) < 0.8, one, "y")
    return pd.DataFrame({"p": one, "q": other, "r": rng.integers(0, 2, n)})


def labelled(X, names):
    is_level = isinstance(names[0], tuple)
    return X.set_axis(pd.MultiIndex.from_tuples(names) if is_level else names, axis=1)


def fit(estimator, X, **parameters):
    return (
        clone(estimator).set_params(**parameters).fit(X, *[by_turns(X)] * is_classifier(estimator))
    )


QUICK = [FVBMPseudoLikelihood(max_iter=5), FSLLDensity()]


@each(QUICK)
@pytest.mark.parametrize("kind", LABELS)
@settings(max_examples=cases(1))
@given(data=st.data())
def test_a_label_means_what_a_name_means(estimator, kind, data):
    X, new = table(), data.draw(labels(kind))
    with_names = fit(estimator, X, columns={"q": "nominal"})
    model = fit(estimator, labelled(X, new), columns={new[1]: "nominal"})
    assert dict(zip(NAMES, model.columns_.values(), strict=True)) == with_names.columns_
    assert list(model.columns_) == new
    Z = labelled(X, new)
    for name, label in zip(NAMES, new, strict=True):
        p = model.predict_column_proba(Z, label)
        np.testing.assert_array_equal(p, with_names.predict_column_proba(X, name))
    both = model.predict_column_proba(Z[:3], [new[2], new[0]])
    np.testing.assert_array_equal(both, with_names.predict_column_proba(X[:3], ["r", "p"]))
    np.testing.assert_array_equal(model.marginal([new[1]]), with_names.marginal(["q"]))
    drawn = model.sample(9, random_state=0, given={new[2]: 1, new[0]: "z"})
    assert list(drawn.columns) == new and drawn.columns.nlevels == Z.columns.nlevels
    assert drawn.to_numpy().tolist() == with_names.sample(
        9, random_state=0, given={"r": 1, "p": "z"}
    ).to_numpy().tolist()  # fmt: skip
    with pytest.raises(ValueError, match="There is no column 77"):
        model.sample(given={77: 1})


@each([*OF_ANY_TABLE, *META])
def test_all_estimators_take_labels(estimator):
    X, new = table(), [3, 1, 2]
    Z = labelled(X, new)
    Z.loc[::7, 1] = None
    X.loc[::7, "q"] = None
    model, with_names = fit(estimator, Z), fit(estimator, X)
    for verb in ("score_samples", "predict_proba", "explain", "impute", "transform"):
        if hasattr(model, verb):
            result, expected = (getattr(m, verb)(T) for m, T in ((model, Z), (with_names, X)))
            same = pd.DataFrame(np.asarray(result)).equals(pd.DataFrame(np.asarray(expected)))
            assert same, verb
            if isinstance(result, pd.DataFrame):
                assert list(result.columns) == new, verb
    if hasattr(model, "predict_column_proba"):
        p, q = (m.predict_column_proba(T, c) for m, T, c in ((model, Z, 1), (with_names, X, "q")))
        np.testing.assert_array_equal(p, q)
        assert model.predict_column_proba(Z[:2], [2, 3]).shape == (2, 2, 3)
        assert list(model.sample(3, random_state=0, given={1: "y"})[1]) == ["y"] * 3
    if hasattr(model, "predict_cell_proba"):
        assert list(model.predict_cell_proba(Z)) == [1]
    assert all(type(name) is str for name in getattr(model, "get_feature_names_out", list)())
    with pytest.raises(ValueError, match="X has the columns 1, 2, 3, but .* had 3, 1, 2"):
        getattr(
            model, "transform" if name_of(estimator) == "BoltzmannImputer" else "score_samples"
        )(Z[[1, 2, 3]])


def test_labels_of_a_frame_are_no_positions():
    """A frame with labels 1, 2, 3: none of them is a place."""
    X = labelled(table(), [1, 2, 3])
    model = FVBMPseudoLikelihood(max_iter=5).fit(X)
    with pytest.raises(ValueError, match="There is no column 0; there are 1, 2, 3"):
        model.predict_column_proba(X, 0)
    p, q = (model.predict_column_proba(X, one) for one in (3, 2))
    assert p.shape[1] == 2 and q.shape[1] == 3
    of_array = FVBMPseudoLikelihood(max_iter=5).fit(X.to_numpy())
    np.testing.assert_array_equal(of_array.predict_column_proba(X.to_numpy(), 2), p)


def test_pairs_terms_and_results_of_labels():
    rng, new = np.random.default_rng(0), [("a", "u"), ("a", "v"), ("b", "u"), ("b", "v")]
    X = labelled(pd.DataFrame(rng.integers(0, 2, (200, 4))), new)
    model = SparseFVBM(penalty="l2", alpha=0.01, edges=[(new[0], new[3])]).fit(X)
    assert np.argwhere(np.triu(model.coupling_)).tolist() == [[0, 3]]
    model = MaximumEntropy(terms=[new[1:]], random_state=0).fit(X)
    assert model.terms_ == [(1, 2, 3)] if isinstance(model.terms_, list) else len(model.terms_) == 1
    model = FVBMPseudoLikelihood().fit(X)
    result = statistics.inference(model, X)
    assert list(result.feature_names) == new
    assert list(result.to_frame().index) == list(combinations(new, 2))
    assert result.wald_test([(new[2], new[0])]).df == 1
    assert list(statistics.centrality(model).index) == new
    pytest.importorskip("networkx")
    graph = statistics.to_networkx(model, result)
    assert set(graph) == set(new) and all("intercept" in graph.nodes[one] for one in new)


def test_messages_name_labels():
    X = labelled(table(), [7, 5, 9])
    X[5] = [f"n{k}" for k in range(60)]
    with pytest.raises(ValueError, match="column 5 has 60 different strings"):
        FVBMPseudoLikelihood().fit(X)
    FVBMPseudoLikelihood(columns={5: "nominal"}, max_iter=3).fit(X)  # the remedy


@pytest.mark.filterwarnings("ignore:.*without an observed value")
@settings(max_examples=cases(12))
@given(data=st.data())
def test_flags_overwrite_nothing_and_mark_all_gaps(data):
    """Also of columns that are called like flags, and of one without any cell."""
    kind = data.draw(st.sampled_from(sorted(LABELS)))
    new = data.draw(labels(kind))
    taken = f"missing_{new[0]}"
    if kind == "tuples":
        taken = (f"missing_{new[0][0]}", new[0][1])
    if kind in ("tuples", "strings") and taken not in new[:2]:
        new[2] = taken
    X = labelled(table(), new)
    gaps = {new[0]: 7, new[1]: data.draw(st.sampled_from([1, 5]))}
    for label, step in gaps.items():
        X.loc[::step, label] = None
    imputer = BoltzmannImputer(add_indicator=True, random_state=0)
    filled = imputer.fit_transform(X)
    kept = [label for label in new if gaps.get(label) != 1]
    assert filled.columns.is_unique and list(filled.columns)[: len(kept)] == kept
    assert len(filled.columns) == len(kept) + 2
    assert filled[new[2]].tolist() == X[new[2]].tolist()
    for place, label in enumerate(new[:2]):
        assert filled.iloc[:, len(kept) + place].tolist() == X[label].isna().tolist()
    assert list(imputer.get_feature_names_out()) == list(map(str, filled.columns))
    as_pandas = clone(imputer).set_output(transform="pandas")
    assert list(as_pandas.fit(X).transform(X).columns) == list(filled.columns)


def test_flags_of_an_array_have_places():
    X = np.array([[0, 1, np.nan], [1, np.nan, np.nan], [1, 1, np.nan], [0, 0, np.nan]] * 9)
    with pytest.warns(UserWarning, match="column 2 without"):
        filled = BoltzmannImputer(add_indicator=True).fit_transform(X)
    assert filled.shape == (36, 4)
    assert filled[:, 2].tolist() == [0, 1, 0, 0] * 9 and filled[:, 3].all()


def test_explanations_of_a_detector_have_labels():
    X = labelled(table(), [3, 1, 2])
    detector = BoltzmannOutlierDetector(FVBMPseudoLikelihood(), random_state=0).fit(X)
    assert list(detector.explain(X).columns) == [3, 1, 2]
