"""Classes of tables: `BoltzmannClassifier` and `RBMClassifier` beside scikit-learn's classifiers.

Accuracy, and the mean of -ln p of the right class, on held-out rows of stratified folds (5), of
`--seeds` partitions. As some methods call a class impossible, all probabilities are mixed with
1/1000 of equal ones. scikit-learn's classifiers have the imputation that they need: random forests
(500 trees), logistic regression and naive Bayes get the most frequent word or the median for
missing cells, and one-hot columns of words; naive Bayes is Gaussian for numbers and Bernoulli for
one-hot columns; gradient boosting knows missing cells and categories by itself. Seconds are those
of a fit and its predictions on one core. For example

    python bench_classify.py --data DIR
    python bench_classify.py --data DIR --sets vote wine --methods BoltzmannClassifier

With some of the methods only, the figures of the others are those of the run before.

Claims: first or second in accuracy and in log-loss, among forests, boosting and naive Bayes, on
three of the digits, the wines, soybean, primary_tumor and vote.
"""

import csv
import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, save_table
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
HEADER = ["table", "method", "seed", "fold", "accuracy", "log-loss", "seconds"]
# Those in the claim.
ASKED, RIVALS = ["digits", "wine", "soybean", "primary_tumor", "vote"], [
    "naive Bayes", "forest", "boosting",
]  # fmt: skip
# Tables in which a class has no value in some column, so that it has no density of its own; and
# the digits, where these take minutes.
WITHOUT_EACH = ["soybean", "primary_tumor", "digits"]
OURS = ["BoltzmannClassifier", "a density for each class", "RBMClassifier"]


def numbers():
    return make_column_selector(dtype_include="number")


def words():
    return make_column_selector(dtype_exclude="number")


def complete(*steps):
    """Numbers and one-hot columns without missing cells."""
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), *steps), numbers()),
        (make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), one_hot),
         words()),
    )  # fmt: skip


def naive_bayes(X, seed):
    return make_pipeline(complete(), GaussianNB() if are_numbers(X) else BernoulliNB())


def logistic_regression(X, seed):
    return make_pipeline(complete(StandardScaler()), LogisticRegression(max_iter=1000))


def forest(X, seed):
    return make_pipeline(complete(), RandomForestClassifier(500, random_state=seed))


def boosting(X, seed):
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    model = HistGradientBoostingClassifier(
        categorical_features=None if are_numbers(X) else list(range(X.shape[1])), random_state=seed
    )
    return model if are_numbers(X) else make_pipeline(codes, model)


def restricted(X, seed):
    if not are_numbers(X):
        return RBMClassifier(unseen="missing", random_state=seed)
    if X.shape[1] == 64:  # grey levels from 0 to 16
        return make_pipeline(FunctionTransformer(grey_levels), RBMClassifier(random_state=seed))
    return RBMClassifier(visible="gaussian", random_state=seed)


def grey_levels(X):
    return X / 16


METHODS = {
    "naive Bayes": naive_bayes,
    "logistic regression": logistic_regression,
    "forest": forest,
    "boosting": boosting,
    "BoltzmannClassifier": lambda X, seed: BoltzmannClassifier(random_state=seed),
    "a density for each class": lambda X, seed: BoltzmannClassifier(joint=False, random_state=seed),
    "RBMClassifier": restricted,
}


def are_numbers(X):
    return all(dtype.kind != "O" for dtype in X.dtypes)


def measure(name, method, seed, X, y):
    """Rows of results, one for each fold."""
    classes, rows = np.unique(y), []
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Of classes with fewer rows than folds, of convergence, of constant columns in a fold.
        warnings.simplefilter("ignore")
        for fold, (train, test) in enumerate(folds.split(X, y)):
            start = time.process_time()
            model = METHODS[method](X, seed).fit(X.iloc[train], y[train])
            known = model.predict_proba(X.iloc[test])
            seconds = time.process_time() - start
            p = np.zeros((len(test), len(classes)))
            p[:, np.searchsorted(classes, model.classes_)] = known
            places = np.searchsorted(classes, y[test])
            accuracy = np.mean(p.argmax(axis=1) == places)
            p = (1 - MIXED) * p + MIXED / len(classes)
            loss = -np.log(p[np.arange(len(test)), places]).mean()
            rows.append([name, method, str(seed), str(fold), f"{accuracy:.5f}", f"{loss:.5f}",
                         f"{seconds:.2f}"])  # fmt: skip
    return rows


def kept_rows(path, args):
    """Rows of an earlier run which this one does not measure."""
    if not path.is_file():
        return []
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return [row for row in rows if row[0] not in args.sets or row[1] not in args.methods]


def summary(rows, name):
    """By method: accuracy, log-loss, the standard errors of both over the folds, and seconds."""
    result = {}
    for method in METHODS:
        mine = np.array([row[4:] for row in rows if row[:2] == [name, method]], dtype=float)
        if len(mine):
            errors = mine[:, :2].std(axis=0, ddof=1) / np.sqrt(len(mine))
            result[method] = [*mine[:, :2].mean(axis=0), *errors, mine[:, 2].mean(), len(mine)]
    return result


def rank(of_set, k, sign):
    """The place of our best among the rivals, by figure k; and which it is."""
    ours = max((m for m in OURS if m in of_set), key=lambda m: sign * of_set[m][k])
    rivals = [of_set[m][k] for m in RIVALS]
    return 1 + sum(sign * (x - of_set[ours][k]) > 0 for x in rivals), ours


def tell(rows):
    """Print the means, and what was asked for beside them."""
    found = {name: summary(rows, name) for name in CLASSES}
    lines = []
    for name, of_set in found.items():
        for method, (accuracy, loss, error, loss_error, seconds, n) in of_set.items():
            lines.append([
                name, method, f"{accuracy:.4f} ± {error:.4f}", f"{loss:.3f} ± {loss_error:.3f}",
                f"{seconds:.2f}", n,
            ])  # fmt: skip
    print_table(["table", "method", "accuracy", "-ln p", "seconds", "folds"], lines)
    print("Standard errors are those of the mean over the folds, which share rows.\n")
    whole = [name for name in ASKED if set(RIVALS) <= set(found[name])]
    for k, sign, what in ((0, 1, "accuracy"), (1, -1, "-ln p")):
        ranks = []
        for name in whole:
            place, ours = rank(found[name], k, sign)
            ranks.append(place)
            print(f"         {name}, {what}: place {place} of 4, by {ours}")
        print_check(f"{what}, first or second", ">= 3 tables of 5",
                    f"{sum(place <= 2 for place in ranks)} of {len(ranks)}",
                    sum(place <= 2 for place in ranks) >= 3)  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="+", choices=list(CLASSES), default=list(CLASSES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    args = parser.parse_args()
    path = args.output / "tables_classify.csv"
    tables = {name: load_classes(name, args.data) for name in args.sets}
    with report(args.output / "tables_classify.txt", "Classes of tables, held-out rows"):
        rows = kept_rows(path, args)
        for name, (X, y) in tables.items():
            for method in args.methods:
                if method == OURS[1] and name in WITHOUT_EACH:
                    continue
                for seed in range(args.seeds):
                    rows += measure(name, method, seed, X, y)
                    save_table(path, HEADER, rows)
        tell(rows)


if __name__ == "__main__":
    run_script(main)
