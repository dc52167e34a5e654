"""Messages of the meta-estimators and about labels: they name the cause and the right remedy."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import KBinsDiscretizer

from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    RBMClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TWO = BoltzmannMixture([("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood())])
META = [BoltzmannClassifier(), BoltzmannImputer(), BoltzmannOutlierDetector(), TWO]
Y = np.arange(40) % 2

every_meta = pytest.mark.parametrize("model", META, ids=lambda model: type(model).__name__)


def levels(seed=0):
    """A table of numbers from 0 to 2."""
    return np.random.default_rng(seed).integers(3, size=(40, 3)).astype(float)


def named(X):
    return pd.DataFrame(X, columns=["a", "b", "c"])


def refusal(call):
    """The message of the ValueError that a call raises."""
    with pytest.raises(ValueError) as caught:
        call()
    return str(caught.value)


def warning(call):
    """The message of the only UserWarning of a call, beside those about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (found,) = (w for w in caught if w.category is UserWarning)
    return str(found.message)


@every_meta
@pytest.mark.parametrize(("make", "title"), [(np.asarray, "2"), (named, "'c'")])
def test_infinite_numbers(model, make, title):
    X = levels()
    X[3, 2] = np.inf
    expected = (
        f"{type(model).__name__}: column {title} has the value inf in row 3. Replace it by a "
        "finite one."
    )
    assert refusal(lambda: model.fit(make(X), Y)) == expected
    model.fit(make(levels()), Y)
    method = model.transform if hasattr(model, "transform") else model.score_samples
    assert refusal(lambda: method(make(X))) == expected


@pytest.mark.parametrize("estimator", [None, SDCPRBM(2, max_iter=1)])
def test_cells_that_the_imputer_refuses(estimator):
    X = named(levels())
    X.loc[5, "b"] = -np.inf
    expected = "BoltzmannImputer: column 'b' has the value -inf in row 5"
    assert expected in refusal(lambda: BoltzmannImputer(estimator).fit(X))
    dates = named(levels()).assign(a=pd.Timestamp("2025-01-01"))
    expected = "BoltzmannImputer: column 'a' contains datetimes"
    assert expected in refusal(lambda: BoltzmannImputer(estimator).fit(dates))


@every_meta
def test_tables_without_rows_or_columns(model):
    name, X = type(model).__name__, named(levels())
    expected = f"{name}: X has 0 rows (shape (0, 3)), and there must be at least one."
    assert refusal(lambda: model.fit(X[:0], Y[:0])) == expected
    expected = f"{name}: X has 0 columns (shape (40, 0)), and there must be at least one."
    assert refusal(lambda: model.fit(X[[]], Y)) == expected


@pytest.mark.parametrize("model", [BoltzmannClassifier(), BoltzmannOutlierDetector()])
def test_columns_without_a_value(model):
    X, name = named(levels()).assign(a=np.nan), type(model).__name__
    expected = f"{name}: column 'a' without an observed value is left out."
    assert warning(lambda: model.fit(X, Y)) == expected
    expected = f"{name}: columns 'a', 'c' without an observed value are left out."
    assert warning(lambda: model.fit(X.assign(c=None), Y)) == expected


# Labels.


@pytest.mark.parametrize("y", [[0, np.nan, 0], [0, None, 0], [0, 0, 0], ["a", None, "a"]])
def test_a_single_class_without_minus_one(y):
    message = refusal(lambda: RBMClassifier().fit([[0, 1], [1, 0], [0, 0]], y))
    assert message.endswith(
        f"y has only one class, {y[0]!r}. Give rows of at least two classes; None and NaN stand "
        "for rows without a label."
    )


@pytest.mark.parametrize("y", [[2, -1, 2], [2.0, -1.0, np.nan], [None, -1, 2]])
def test_a_single_class_and_minus_one(y):
    message = refusal(lambda: RBMClassifier().fit([[0, 1], [1, 0], [0, 0]], y))
    assert "If -1 is a class and not a missing label, pass y == 2 as y." in message


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


@pytest.mark.parametrize("model", [RBMClassifier(2), BoltzmannClassifier()])
def test_masked_labels(model):
    y = np.ma.masked_array(Y, np.arange(40) == 7)
    message = refusal(lambda: model.fit(levels() % 2, y))
    assert message.startswith(
        f"{type(model).__name__}: y is masked in 1 row, the first of which is row 7."
    )
    model.set_params(**({"max_iter": 1} if isinstance(model, RBMClassifier) else {}))
    assert model.fit(levels() % 2, np.ma.masked_array(Y)).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [
        (2, ": [str(label) for label in y]."),
        (
            None,
            ", and leave missing labels None: [None if label is None else str(label) for label in "
            "y].",
        ),
        (
            np.nan,
            ", and leave missing labels None: [None if pandas.isna(label) else str(label) for "
            "label in y].",
        ),
    ],
)
def test_labels_of_several_types(missing, remedy):
    X, y = [[0, 1], [1, 0], [0, 0], [1, 1]], np.array(["a", 1, "a", missing], dtype=object)
    expected = "RBMClassifier: y has labels of the types int and str. Make them all of one type"
    assert refusal(lambda: RBMClassifier().fit(X, y)) == expected + remedy
    code = remedy[remedy.index("[") : -1]
    mended = eval(code, {"y": y, "pandas": pd})
    model = RBMClassifier(2, max_iter=1, early_stopping=False).fit(X, mended)
    assert model.classes_.tolist() == (["1", "2", "a"] if missing == 2 else ["1", "a"])


@pytest.mark.parametrize("first", ["a", 1])
@pytest.mark.parametrize("make", [np.asarray, pd.Series])
def test_classes_of_several_types(first, make):
    y = np.array(["a", 1] * 20 if first == "a" else [1, "a"] * 20, dtype=object)
    message = refusal(lambda: BoltzmannClassifier().fit(levels(), make(y)))
    assert message == (
        "BoltzmannClassifier: y has labels of the types int and str. Make them all of one type: "
        "[str(label) for label in y]."
    )
    model = BoltzmannClassifier().fit(levels(), [str(label) for label in y])
    assert model.classes_.tolist() == ["1", "a"]


def test_no_classes():
    message = refusal(lambda: BoltzmannClassifier().fit(levels(), None))
    assert message == (
        "BoltzmannClassifier requires y to be passed, but the target y is None. Give the class of "
        "each row."
    )


def test_a_single_class_of_positive_weight():
    model, X = BoltzmannClassifier(), levels()
    message = refusal(lambda: model.fit(X, Y, sample_weight=1 - Y))
    assert message == (
        "BoltzmannClassifier: the rows with a positive weight have only one class, 0, but at least "
        "two are needed."
    )
    message = refusal(lambda: model.fit(X, 0 * Y, sample_weight=1 - Y))
    assert "y has only one class, 0, but at least two are needed. BoltzmannOutlierD" in message


# A joint density.


def joint(estimator):
    return BoltzmannClassifier(estimator, joint=True)


@pytest.mark.parametrize("estimator", [FVBMPseudoLikelihood(), FSLLDensity(), TWO])
def test_a_joint_density_of_real_numbers(estimator):
    X = named(levels())
    X["b"] = np.random.default_rng(1).random(40)
    name = "FSLLDensity" if estimator is TWO else type(estimator).__name__
    assert refusal(lambda: joint(estimator).fit(X, Y)) == (
        f"BoltzmannClassifier: joint=True with {name} needs columns of categories or codes, and "
        "column 'b' has real numbers. Bin it, for example by KBinsDiscretizer(encode='ordinal'), "
        "or set estimator=None."
    )
    X["b"] = KBinsDiscretizer(encode="ordinal").fit_transform(X[["b"]])
    joint(estimator).fit(X, Y)


@pytest.mark.parametrize(
    ("column", "number"), [(np.arange(40), 39), (np.arange(40) % 30 - 10, -10),
                           (np.arange(40) % 3 - 1, -1), (np.r_[Y[:39], 99], 99)],
)  # fmt: skip
def test_a_joint_density_of_whole_numbers_that_are_no_codes(column, number):
    X, model = named(levels()).assign(a=column), joint(FVBMPseudoLikelihood())
    message = refusal(lambda: model.fit(X, Y))
    assert f"column 'a' has the whole number {number}; codes go from 0 to 20. If that" in message
    assert "real numbers" not in message


@pytest.mark.parametrize(
    ("estimator", "remedy"),
    [
        (FVBMPseudoLikelihood(n_values=[3, 3, 3]), "Leave `n_values` at 'auto'."),
        (FVBMPseudoLikelihood(n_values=np.array([3, 3, 3])), "Leave `n_values` at 'auto'."),
        (SDCPRBM(2, visible="gaussian", max_iter=1), "Leave `visible` at 'auto'."),
        (FSLLDensity(binarize=0.5), "Leave `binarize` at None.*Binarizer.threshold=0.5.."),
        (KernelDensity(), "Set joint=False."),
    ],
)
def test_estimators_without_a_joint_density(estimator, remedy):
    with pytest.raises(
        ValueError, match=rf"(?s)as it adds the class as a column; got .*\). {remedy}$"
    ):
        joint(estimator).fit(levels(), Y)


def test_numbers_of_values_as_an_array():
    """They are compared with "auto"."""
    model = BoltzmannClassifier(FVBMPseudoLikelihood(n_values=np.array([3, 3, 3])))
    assert len(model.fit(levels(), Y).estimators_) == 2


@pytest.mark.parametrize(
    ("estimator", "can_be_joint"),
    [
        (None, True),
        (FVBMPseudoLikelihood(), True),
        (FVBMPseudoLikelihood(n_values=[3, 3, 3]), False),
        (SDCPRBM(2, visible="categorical", max_iter=1), False),
    ],
)
def test_classes_with_too_few_cells_or_rows(estimator, can_be_joint):
    X, y = levels(), np.repeat([0, 1], [39, 1])
    X[Y == 1, 0] = np.nan
    model = BoltzmannClassifier(estimator, joint=False, calibration=False)
    message = refusal(lambda: model.fit(X, Y))
    start = "Set joint=True, leave" if can_be_joint else "Leave"
    assert f"column 0. {start} out the column or the class, or fill its missing" in message
    message = warning(lambda: model.fit(levels(), y))
    remedy = "or leave this class out." if can_be_joint else "density. Leave this class out."
    assert message.endswith(remedy)
    assert ("joint=True" in message) == can_be_joint
    if can_be_joint:
        model.set_params(joint=True).fit(X, Y)


# A mixture.


def test_columns_that_a_mixture_does_not_have():
    X = named(levels())
    model = BoltzmannMixture(TWO.estimators, random_state=0).fit(X)
    for column in ("z", 3):
        message = refusal(lambda column=column: model.predict_column_proba(X, column))
        assert message == (
            f"BoltzmannMixture.predict_column_proba: there is no column {column!r}; the columns "
            "are a, b, c."
        )
    assert "`given` has the column 'z'; there are a, b, c." in refusal(
        lambda: model.sample(given={"z": 1})
    )
