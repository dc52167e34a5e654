"""The digits of scikit-learn with 50 to 400 labels: do other rows and early stopping help?

The split is that of the page "Classify with few labels": 1,347 rows, some of them with a label,
and 450 test rows. `RBMClassifier` learns from all rows, with `generative` .1, and from the labelled
ones alone, beside `LabelSpreading` and logistic regression; then with `generative` .01, with and
without early stopping, which sets labelled rows aside.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, run_script, unconverged_is_fine
from _data import load_classes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading

from sklearn_boltz import RBMClassifier


def models(n_labels):
    """-> {name: (estimator, whether it gets the rows without a label, too)}"""
    if n_labels > 50:
        options = dict(generative=0.01, max_iter=20, random_state=0)
        return {
            f"all rows, {text}": (RBMClassifier(100, early_stopping=early, **options), True)
            for early, text in ((False, "no early stopping"), (True, "early stopping"))
        }
    all_rows = RBMClassifier(100, generative=0.1, max_iter=20, random_state=0)
    return {
        "all rows, generative .1": (all_rows, True),
        "labelled rows alone": (RBMClassifier(100, generative=0, random_state=0), False),
        "LabelSpreading": (LabelSpreading(kernel="knn", n_neighbors=7), True),
        "logistic regression": (LogisticRegression(max_iter=500), False),
    }


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="choices of the labels")
    args = parser.parse_args()
    X, y = load_classes("digits", args.data)
    X, y = X.to_numpy(), y.astype(int)
    X, X_test, y, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
    with report(args.output / "rbm_few_labels.txt", "Digits with few labels: test errors"):
        rows = []
        for n_labels in (50, 100, 200, 400):
            for name, (model, takes_all) in models(n_labels).items():
                errors = []
                for seed in range(args.seeds):
                    labelled, _ = train_test_split(
                        np.arange(len(y)), train_size=n_labels, stratify=y, random_state=seed
                    )
                    few = np.full(len(y), -1)
                    few[labelled] = y[labelled]
                    chosen = slice(None) if takes_all else labelled
                    # In the graph, a row that no label reaches has the probabilities 0 / 0.
                    with unconverged_is_fine(), np.errstate(invalid="ignore"):
                        model.fit(X[chosen], few[chosen])
                    errors.append(np.mean(model.predict(X_test) != y_test))
                each = " ".join(f"{error:.3f}" for error in errors)
                rows.append([n_labels, name, each, f"{np.mean(errors):.3f}"])
        header = ["labels", "model", "errors by choice of the labels", "mean"]
        print_table(header, rows)


if __name__ == "__main__":
    run_script(main)
