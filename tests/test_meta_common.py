"""What the estimators over densities have in common; labels of classes."""

import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from contract.estimators import name_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier

from private import Binned, Categories, Plain, Scored
from sklearn_boltz import (
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    RBMClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NETWORK = FVBMPseudoLikelihood(alpha=0.1)


class Network(FVBMPseudoLikelihood):
    """A network that remembers in which threads it worked."""

    threads = set()

    def fit(self, X, y=None, sample_weight=None, **initial):
        self.threads.add(threading.get_ident())
        return super().fit(X, y, sample_weight, **initial)

    def impute(self, X, **options):
        self.threads.add(threading.get_ident())
        return super().impute(X, **options)


def estimators(network):
    return [
        BoltzmannClassifier(network, calibration=True, random_state=0),
        BoltzmannOutlierDetector(network, contamination=0.1, random_state=0),
        BoltzmannImputer(network, how="sample", random_state=0),
    ]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(60, 4)).astype(float)
    X[:, 1] = np.where(rng.random(60) < 0.1, X[:, 1], X[:, 0])
    y = X[:, 0].copy()
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 0] = rng.integers(2, size=60)
    return X, y


def answers(estimator, X, y):
    """All numbers that a fitted estimator gives."""
    estimator = clone(estimator).fit(X, y)
    methods = ["predict_proba", "score_samples", "decision_function", "transform"]
    return {name: getattr(estimator, name)(X) for name in methods if hasattr(estimator, name)}


@pytest.mark.parametrize("estimator", estimators(Network(alpha=0.1)), ids=name_of)
def test_jobs_are_done_elsewhere_and_give_the_bits_of_a_sequence(estimator, table):
    main = threading.get_ident()
    Network.threads.clear()
    one = answers(estimator, *table)
    assert Network.threads == {main} and one
    Network.threads.clear()
    with joblib.parallel_config("threading"):
        other = answers(clone(estimator).set_params(n_jobs=2), *table)
    assert Network.threads - {main}
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert_array_equal(other[name], values, err_msg=name)


STAGES = [
    ["class 0.0: ", "class 1.0: ", "calibration: "],
    ["density of all rows: ", *(f"density without part {k + 1}: " for k in range(10)), "offset: "],
    ["FVBMPseudoLikelihood: "],
    ["joint density: "],
]


@pytest.mark.parametrize(
    ("estimator", "stages"),
    list(zip([*estimators(NETWORK), BoltzmannClassifier()], STAGES, strict=True)),
)
def test_a_line_for_each_stage(estimator, stages, table, capsys):
    clone(estimator).fit(*table)
    assert not capsys.readouterr().out
    clone(estimator).set_params(verbose=1).fit(*table)
    for line, stage in zip(capsys.readouterr().out.splitlines(), stages, strict=True):
        assert line.startswith(f"[{name_of(estimator)}] {stage}")
        assert stage != "joint density: " or "rows 60" in line


@pytest.mark.parametrize("given", [None, NETWORK, FSLLDensity()])
@pytest.mark.parametrize(
    ("kind", "verbs"),
    [
        (BoltzmannClassifier, ["predict_proba", "score_samples"]),
        (BoltzmannImputer, ["transform", "predict_cell_proba"]),
        (BoltzmannOutlierDetector, ["score_samples", "explain"]),
    ],
)
def test_a_table_is_encoded_once(kind, verbs, given, monkeypatch):
    """But numbers in bins of each of three folds, or of two classes; and completions of rows."""
    rng, made = np.random.default_rng(0), []
    X = pd.DataFrame({"a": list("xyz") * 30, "b": rng.normal(size=90), "c": [True, False] * 45})
    X.loc[::9, "b"] = None
    for treatment in (Binned, Categories, Plain, Scored):
        encode = treatment.encode

        def counting(self, cells, unseen, encode=encode):
            made.append(len(cells))
            return encode(self, cells, unseen)

        monkeypatch.setattr(treatment, "encode", counting)
    estimator = kind(given, random_state=0)
    n, gaps = len(X), X[X["b"].isna()].drop_duplicates()
    is_detector, is_by_class = kind is BoltzmannOutlierDetector, given and is_classifier(estimator)
    completed = 3 * 10 * len(gaps) * (is_detector and isinstance(given, FSLLDensity))
    estimator.fit(X, *[list("uv") * 45] * is_classifier(estimator))
    assert sum(made) == 3 * n + (3 * n + 4 * completed) * is_detector + n * bool(is_by_class)
    for verb in verbs:
        made.clear()
        getattr(estimator, verb)(X)
        more = completed * (verb == "score_samples") + 2 * n * bool(is_by_class)
        assert sum(made) == 3 * n + more, verb
    if given:
        made.clear()
        clone(given).fit(X).impute(X, how="mean")
        assert sum(made) == 2 * 3 * n


@pytest.mark.parametrize(
    "estimator", [BoltzmannClassifier(), BoltzmannOutlierDetector(random_state=0)]
)
def test_columns_without_a_value_are_left_out(estimator, animals):
    table, _, y = animals
    empty = table.assign(nothing=np.nan)
    with pytest.warns(UserWarning, match="'nothing' without"):
        model = clone(estimator).fit(empty, y)
    other = clone(estimator).fit(table, y)
    assert_allclose(model.score_samples(empty), other.score_samples(table))
    if isinstance(estimator, BoltzmannClassifier):
        assert_allclose(model.predict_proba(empty), other.predict_proba(table))


@pytest.mark.parametrize(
    "estimator", [BoltzmannClassifier(), BoltzmannOutlierDetector(), BoltzmannImputer()]
)
def test_kinds_of_columns_of_the_default_model(estimator):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({
        "empty": np.nan,
        "zone": rng.choice([10, 20, 30], 90),
        "plan": rng.choice([1, 2, 3], 90),
        "size": rng.choice(["low", "high"], 90),
        "pay": rng.lognormal(size=90),
        "stars": rng.integers(1, 6, 90),
    })  # fmt: skip
    columns = {
        "zone": "nominal", -3: ("ordinal", ["low", "mid", "high"]), "pay": "number",
        "stars": [5, 4, 3, 2, 1, 0],
    }  # fmt: skip
    fits = []
    for kinds in (columns, "auto"):
        with pytest.warns(UserWarning, match="'empty' without an observed value"):
            fits.append(clone(estimator).set_params(columns=kinds).fit(X, rng.integers(2, size=90)))
    said, seen = (vars(fit).get("estimators_", [vars(fit).get("estimator_")])[0] for fit in fits)
    assert seen.ordered_[:5].tolist() == [True, True, False, True, True]
    assert said.ordered_[:5].tolist() == [False, True, True, True, False]
    assert seen.n_values_[[0, 1, 2, 4]].tolist() == [3, 3, 2, 5]
    assert said.n_values_[[0, 1, 2, 4]].tolist() == [3, 3, 3, 6]
    assert said.n_values_[3] == seen.n_values_[3] >= 8


@pytest.mark.parametrize(
    ("labels", "classes", "beside"),
    [
        ([-1, 0, 1], [0, 1], "2 classes 0, 1"),  # opinions, or two classes and no label
        ([-1.0, 0.0, 1.0], [0, 1], "2 classes 0.0, 1.0"),
        ([-1, 1, 2], [1, 2], "2 classes 1, 2"),
        ([-1, 0, 1, 2], [0, 1, 2], "3 classes 0, 1, 2"),  # -1 is no more frequent
        ([-1, *range(3, 10)], list(range(3, 10)), "7 classes 3, 4, 5, 6, 7, ..."),
        ([-1, -1, 0, 1, 2], [0, 1, 2], None),  # as in sklearn.semi_supervised
        ([None, 0, 1], [0, 1], None),
        ([np.nan, 0, 1], [0, 1], None),
        ([-1, 1], [-1, 1], None),
        ([-2, -1, 0, 1, 2], [-2, -1, 0, 1, 2], None),
        (["-1", "0", "1"], ["-1", "0", "1"], None),
    ],
)
def test_no_class_is_lost_in_silence(labels, classes, beside):
    y = np.resize(np.array(labels), 40)
    model = RBMClassifier(2, max_iter=1, early_stopping=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        model.fit(np.eye(40)[:, :3], y)
    assert model.classes_.tolist() == classes
    found = [str(w.message) for w in found if "y has" in str(w.message)]
    n_rows = int((y == -1).sum()) if beside else 0
    expected = (
        f"RBMClassifier: y has -1 in {n_rows} rows, beside the {beside}: these rows are taken for "
        "rows without a label. If they are, write None or NaN for -1; if -1 is a class, give "
        "texts as labels: np.asarray(y).astype(str)."
    )
    assert found == ([expected] if beside else [])


@pytest.mark.parametrize("last", [2, None, np.nan])
def test_the_remedy_for_labels_of_several_types_works(last):
    X, y = [[0, 1], [1, 0], [0, 0], [1, 1]], np.array(["a", 1, "a", last], dtype=object)
    for model in (RBMClassifier(2, max_iter=1), BoltzmannClassifier())[: 1 + (last == 2)]:
        with pytest.raises(ValueError, match="y has labels of the types int and str") as caught:
            model.fit(X, y)
        message = str(caught.value)
        mended = eval(message[message.index("[") : -1], {"y": y, "pandas": pd})
        assert model.fit(X, mended).classes_.tolist() == ["1", *["2"] * (last == 2), "a"]
