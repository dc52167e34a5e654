"""The digits of scikit-learn with 50 labels: do the other rows help?

The split is that of the page "Classify with few labels": 1,347 rows, 50 of them with a label, and
450 test rows. `RBMClassifier` learns from all rows, with `generative` .1, and from the labelled
ones alone, beside `LabelSpreading` and logistic regression.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script, unconverged_is_fine
from _data import load_classes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading

from sklearn_boltz import RBMClassifier

N_LABELS = 50
# Estimators, and whether each gets the rows without a label, too.
MODELS = {
    "all rows, generative .1": (
        RBMClassifier(100, generative=0.1, max_iter=20, random_state=0), True
    ),
    "labelled rows alone": (RBMClassifier(100, generative=0, random_state=0), False),
    "LabelSpreading": (LabelSpreading(kernel="knn", n_neighbors=7), True),
    "logistic regression": (LogisticRegression(max_iter=500), False),
}  # fmt: skip


@script
def main():
    args = make_parser(__doc__, seeds=10).parse_args()
    X, y = load_classes("digits", args.data)
    X, y = X.to_numpy(), y.astype(int)
    X, X_test, y, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
    with report(args.output / "rbm_few_labels.txt", "Digits with 50 labels: test errors"):
        rows = []
        for name, (model, takes_all) in MODELS.items():
            errors = []
            for seed in range(args.seeds):
                labelled, _ = train_test_split(
                    np.arange(len(y)), train_size=N_LABELS, stratify=y, random_state=seed
                )
                few = np.full(len(y), -1)
                few[labelled] = y[labelled]
                chosen = slice(None) if takes_all else labelled
                # In the graph, a row that no label reaches has the probabilities 0 / 0.
                with unconverged_is_fine(), np.errstate(invalid="ignore"):
                    model.fit(X[chosen], few[chosen])
                errors.append(np.mean(model.predict(X_test) != y_test))
            rows.append([name, " ".join(f"{error:.3f}" for error in errors), np.mean(errors)])
        print_table(["model", "errors by choice of the labels", "mean"], rows, ",.3f")
