"""Fit every estimator on real data that needs no network, and print two tables.

Run it with ``make demo``, or as ``python examples/quick_start.py``. With ``--data FOLDER``,
a folder that holds ``nltcs.npz``, a survey of the elderly is added to the digits.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    RBMClassifier,
)


def digits():
    """Handwritten digits, 4 x 4 pixels, ink or no ink."""
    images = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4))
    return train_test_split((images > 5).astype(np.uint8).reshape(-1, 16), random_state=0)


def survey(folder):
    """National long-term care survey: which of 16 daily activities a person can do."""
    with np.load(folder / "nltcs.npz") as file:
        return file["train"], file["test"]


def independent(train, test):
    """Mean log-likelihood if all columns were independent (add-one smoothing)."""
    p = (train.sum(axis=0) + 1) / (len(train) + 2)
    return np.log(np.where(test, p, 1 - p)).sum(axis=1).mean()


def models():
    """Yield (name, estimator, what it learned)."""
    yield "FSLLDensity", FSLLDensity(), _terms
    yield "FSLLDensity(greedy)", FSLLDensity(solver="greedy"), _terms
    yield "FSLLDensity(alpha=0.2)", FSLLDensity(alpha=0.2), _terms
    yield "FVBMPseudoLikelihood", FVBMPseudoLikelihood(alpha=0.01), _couplings
    yield "SDCPRBM", SDCPRBM(n_components=16, random_state=0), _epochs
    yield "TAPRBM", TAPRBM(n_components=16, random_state=0), _epochs
    yield "TAPDBM", TAPDBM((16, 8), random_state=0), _layers
    yield "InfiniteRBM", InfiniteRBM(max_components=16, random_state=0), _units
    parts = [("full-span", FSLLDensity(alpha=0.2)), ("network", FVBMPseudoLikelihood(alpha=0.01))]
    yield "BoltzmannMixture", BoltzmannMixture(parts), _weights


def _terms(model):
    orders = np.bincount((model.basis_ > 0).sum(axis=1))[1:]
    return f"{len(model.theta_)} terms, of order 1, 2, ...: {', '.join(map(str, orders))}"


def _couplings(model):
    couplings = model.coupling_[np.triu_indices_from(model.coupling_, 1)]
    return f"{len(couplings)} couplings from {couplings.min():.2f} to {couplings.max():.2f}"


def _epochs(model):
    return f"{len(model.components_)} hidden units in {model.n_iter_} epochs"


def _layers(model):
    sizes = ", ".join(str(len(weights)) for weights in model.components_)
    return f"layers of {sizes} hidden units, {model.n_iter_} epochs together"


def _units(model):
    return f"{model.n_components_} hidden units"


def _weights(model):
    shares = zip(model.weights_, (name for name, _ in model.estimators), strict=True)
    return ", ".join(f"{weight:.0%} {name}" for weight, name in shares)


def tasks():
    """Yield (estimator, what its figure is, the figure, what it is compared with, that figure)."""
    images, labels = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split((images > 7).astype(float), labels, random_state=0)
    rng = np.random.default_rng(0)

    linear = LogisticRegression(max_iter=500).fit(X, y).score(X_test, y_test)
    for classifier in (RBMClassifier(random_state=0), BoltzmannClassifier()):
        right = classifier.fit(X, y).score(X_test, y_test)
        yield classifier, "share of right labels", right, "logistic regression", linear

    hidden = rng.random(X_test.shape) < 0.25
    imputer = BoltzmannImputer().fit(X)
    filled = imputer.transform(np.where(hidden, np.nan, X_test))
    right = (filled == X_test)[hidden].mean()
    frequent = ((X.mean(axis=0) > 0.5) == X_test)[hidden].mean()
    yield imputer, "hidden pixels found", right, "most frequent value", frequent

    unlike = rng.permuted(X_test, axis=0)  # each pixel from another digit
    detector = BoltzmannOutlierDetector().fit(X)
    order = detector.score_samples(np.vstack([X_test, unlike]))
    area = roc_auc_score(np.repeat([1, 0], len(X_test)), order)
    yield detector, "area under the ROC curve", area, "chance", 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with nltcs.npz")
    folder = parser.parse_args().data
    tables = {"digits": digits()}
    if (folder / "nltcs.npz").exists():
        tables["survey"] = survey(folder)

    line = "{:8} {:24} {:>12} {:>8}  {}"
    print("\nMean log-probability of held-out rows, in nats (more is better)\n")
    print(line.format("data", "model", "held-out", "seconds", "learned"))
    for name, (train, test) in tables.items():
        score = f"{independent(train, test):.3f}"
        print(line.format(name, "independent columns", score, "", f"{train.shape[1]} means"))
        for title, model, describe in models():
            start = time.perf_counter()
            model.fit(train)
            seconds = f"{time.perf_counter() - start:.2f}"
            print(line.format(name, title, f"{model.score(test):.3f}", seconds, describe(model)))

    print("\nOther tasks, on the digits of 64 pixels: held-out rows\n")
    line = "{:26} {:24} {:>5}   {}"
    for estimator, what, figure, peer, other in tasks():
        compared = f"{peer} {other:.3f}"
        print(line.format(type(estimator).__name__, what, f"{figure:.3f}", compared))

    train, test = tables["digits"]
    model = FSLLDensity().fit(train)
    print("\nThe strongest interactions of pixels in the digits:")
    terms = model.interactions()
    products = [
        (term, weight)
        for term, weight in zip(terms["term"], terms["weight"], strict=True)
        if "*" in term
    ]
    for term, weight in products[:5]:
        print(f"  {weight:+.2f}  {term}")
    half = test[0].astype(float)
    half[8:] = np.nan
    print("\nA digit, its upper half, the lower half imputed, and a sample of the model:")
    for rows in zip(*map(_picture, (test[0], half, model.impute([half], how="mode")[0],
                                    model.sample(random_state=0)[0])), strict=True):  # fmt: skip
        print("    ".join(("", *rows)))


def _picture(pixels):
    return ["".join("░░" if np.isnan(p) else "██" if p else "  " for p in row)
            for row in np.reshape(pixels, (4, 4))]  # fmt: skip


if __name__ == "__main__":
    main()
