"""Classes of tables: `BoltzmannClassifier` and `RBMClassifier` beside scikit-learn's classifiers.

Accuracy, and the mean of -ln p of the right class, on held-out rows of stratified folds (5), of
`--seeds` partitions. As some methods call a class impossible, all probabilities are mixed with
1/1000 of equal ones. scikit-learn's classifiers have the imputation that they need: random forests
(500 trees), logistic regression and naive Bayes get the most frequent word or the median for
missing cells, and one-hot columns of strings; naive Bayes is Gaussian for numbers and Bernoulli for
one-hot columns; gradient boosting knows missing cells and categories by itself. Seconds are those
of a fit and its predictions on one core.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, processor_timed, report, script
from _data import CLASSES, load_classes
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from sklearn_boltz import BoltzmannClassifier, RBMClassifier

N_FOLDS, MIXED = 5, 1e-3
# Tables in which a class has no value in some column, so that it has no density of its own; and
# the digits, where these take minutes.
WITHOUT_EACH = ["soybean", "primary_tumor", "digits"]
EACH = "a density for each class"


def complete(*steps):
    """Numbers and one-hot columns without missing cells."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), *steps)
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=None),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )


def boosting(X, seed):
    if are_numbers(X):
        return HistGradientBoostingClassifier(random_state=seed)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    words = list(range(X.shape[1]))
    return make_pipeline(
        codes, HistGradientBoostingClassifier(categorical_features=words, random_state=seed)
    )


def restricted(X, seed):
    if not are_numbers(X):
        return RBMClassifier(unseen="missing", random_state=seed)
    if X.shape[1] == 64:  # grey levels from 0 to 16
        grey = FunctionTransformer(lambda X: X / 16)
        return make_pipeline(grey, RBMClassifier(columns="probability", random_state=seed))
    return RBMClassifier(columns="gaussian", random_state=seed)


METHODS = {
    "naive Bayes": lambda X, seed: make_pipeline(
        complete(), GaussianNB() if are_numbers(X) else BernoulliNB()
    ),
    "logistic regression": lambda X, seed: make_pipeline(
        complete(StandardScaler()), LogisticRegression(max_iter=1000)
    ),
    "forest": lambda X, seed: make_pipeline(
        complete(), RandomForestClassifier(500, random_state=seed)
    ),
    "boosting": boosting,
    "BoltzmannClassifier": lambda X, seed: BoltzmannClassifier(random_state=seed),
    EACH: lambda X, seed: BoltzmannClassifier(joint=False, random_state=seed),
    "RBMClassifier": restricted,
}


def are_numbers(X):
    return all(dtype.kind != "O" for dtype in X.dtypes)


def measure(method, seed, X, y):
    """Accuracy, the mean of -ln p, and seconds of each fold."""
    classes, rows = np.unique(y), []
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(X, y):
        model, seconds = processor_timed(METHODS[method](X, seed).fit, X.iloc[train], y[train])
        known, more = processor_timed(model.predict_proba, X.iloc[test])
        p = np.zeros((len(test), len(classes)))
        p[:, np.searchsorted(classes, model.classes_)] = known
        places = np.searchsorted(classes, y[test])
        accuracy = np.mean(p.argmax(axis=1) == places)
        p = (1 - MIXED) * p + MIXED / len(classes)
        rows.append([accuracy, -np.log(p[np.arange(len(test)), places]).mean(), seconds + more])
    return rows


@script
def main():
    args = make_parser(__doc__, seeds=2, sets=CLASSES).parse_args()
    # Of classes with fewer rows than folds, of convergence, of constant columns in a fold.
    warnings.simplefilter("ignore")
    with report(args.output / "tables_classify.txt", "Classes of tables, held-out rows"):
        lines = []
        for name in args.sets:
            X, y = load_classes(name, args.data)
            for method in METHODS:
                if method == EACH and name in WITHOUT_EACH:
                    continue
                found = sum((measure(method, seed, X, y) for seed in range(args.seeds)), [])
                accuracy, loss, seconds = np.mean(found, axis=0)
                error, loss_error, _ = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
                lines.append([
                    name, method, f"{accuracy:.4f} ± {error:.4f}", f"{loss:.3f} ± {loss_error:.3f}",
                    f"{seconds:.2f}", len(found),
                ])  # fmt: skip
        print_table(["table", "method", "accuracy", "-ln p", "seconds", "folds"], lines)
        print("Standard errors are those of the mean over the folds, which share rows.")
