"""scikit-learn's common checks: of every estimator, and over drawn parameters.

Each of 66 estimators with drawn parameters undergoes two of the checks, those that were drawn
least so far. SKLEARN_BOLTZ_FUZZ multiplies the numbers: with 50, each undergoes all checks.
"""

from collections import Counter

import numpy as np
import pytest
from conftest import cases
from contract.estimators import DENSITIES, each, name_of, stochastic_checks
from contract.frames import bits
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import sklearn_boltz
from sklearn_boltz import (
    SDCPRBM,
    TAP,
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
    SparseFVBM,
)

N_DRAWN = 66


class MaximumEntropy(sklearn_boltz.MaximumEntropy):
    """Of bits: scikit-learn's checks feed numbers, which a threshold makes binary."""

    def _validate(self, X, **options):
        X = super()._validate(X, **options)
        return np.where(np.isnan(X), X, X > 0).astype(X.dtype)


# Any number goes into a bin. RBMClassifier is in test_rbm_classifier.py.
OF_NUMBERS = [clone(e).set_params(columns="binned") for e in DENSITIES[:-2]]
OF_NUMBERS.append(SparseFVBM(alpha=1.0, columns="binned"))  # which selects few of many pairs
OF_NUMBERS.append(MaximumEntropy(random_state=0))
NETWORK = FVBMPseudoLikelihood(alpha=0.1, columns="binned")
OVER_DENSITIES = [
    BoltzmannClassifier(),
    BoltzmannClassifier(NETWORK),
    BoltzmannImputer(SDCPRBM(3, max_iter=2, columns="binned")),
    BoltzmannImputer(NETWORK, how="mean"),
    BoltzmannMixture([("other", clone(NETWORK).set_params(alpha=1.0)), ("pairs", NETWORK)]),
    BoltzmannOutlierDetector(),
    BoltzmannOutlierDetector(NETWORK, contamination=0.1),
]
# A parameter with a good and a bad value, for the searches.
TUNED = {
    "FSLLDensity": ("alpha", 0.5, 50.0),
    "FVBMPseudoLikelihood": ("alpha", 0.005, 50.0),
    "MaximumEntropy": ("alpha", 0.005, 50.0),
    "SDCPRBM": ("alpha", 0.0, 10.0),
    "SparseFVBM": ("alpha", 0.005, 50.0),
    "InfiniteRBM": ("alpha", 0.01, 50.0),
    "TAPDBM": ("init", 0.01, 1.5),
    "TAPRBM": ("init", 0.01, 3.0),
}


# Small real-valued data, cut at a threshold, often separate a variable.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [*OF_NUMBERS, FSLLDensity(solver="greedy", columns="binned")],
    expected_failed_checks=stochastic_checks,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def of_outliers(estimator):
    """Checks that want the share of outliers from `predict` for the rows of the fit, too."""
    if not isinstance(estimator, BoltzmannOutlierDetector):
        return {}
    reason = "contamination is the share of new rows, and of the held-out scores of fit_predict"
    return dict.fromkeys(("check_outliers_train", "check_outliers_fit_predict"), reason)


@pytest.mark.filterwarnings("ignore")  # of models with mass far from 10 rows, of single rows
@parametrize_with_checks(OVER_DENSITIES, expected_failed_checks=of_outliers)
def test_scikit_learn_over_densities(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [BoltzmannClassifier(joint=False), BoltzmannOutlierDetector(contamination=0.1)],
    expected_failed_checks=of_outliers,
)
def test_scikit_learn_at_length(estimator, check):
    check(estimator)


# What is bad on purpose may have diverged.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each(OF_NUMBERS)
def test_grid_search_maximises_the_likelihood_in_a_pipeline(estimator):
    X = bits(200)
    parameter, good, bad = TUNED[name_of(estimator)]
    parameter = f"{name_of(estimator).lower()}__{parameter}"
    pipeline = make_pipeline(StandardScaler(), estimator)
    search = GridSearchCV(pipeline, {parameter: [good, bad]}, cv=3).fit(X)
    assert search.best_params_[parameter] == good
    best = search.best_estimator_
    assert np.isclose(best.score(X), best[-1].score_samples(best[0].transform(X)).mean())


# Drawn parameters.

# Legal and sensible values; without warm_start, as the checks fit again. They feed real numbers, so
# most models have a threshold.
TERMS = {
    "alpha": [0.5, 2.0], "max_order": [2, None], "solver": ["greedy", "newton"],
    "dtype": [np.float32, np.float64], "max_basis": [3, None],
    "unseen": ["smooth", "error", "missing"],
}  # fmt: skip
# Without terms of three and nodewise: their tag is that of `fit`, while their methods take NaN.
PAIRS = {
    "alpha": [0.01, 1.0, "auto"], "solver": ["newton", "lbfgs"],
    "missing": ["em", "observed"], "unseen": ["smooth", "error", "missing"],
}  # fmt: skip
MACHINE = {
    "learning_rate": [0.01, 0.1], "batch_size": ["auto", 5, 100],
    "early_stopping": [False, True, 0.3], "init": [0.01, "scaled"],
    "unseen": ["smooth", "error", "missing"], "track_likelihood": [False, True],
}  # fmt: skip
UNITS = {
    "columns": ["binned", "gaussian"],
    "hidden": ["bernoulli", ("categorical", 3)],
    "n_components": [1, 4],
}
FIELDS = {"inference": ["tap", "naive", TAP(max_iter=10, n_gibbs=0)], "penalty": [None, "l2"]}
SHORT = {"max_iter": 3, "columns": "binned", "random_state": 0}


def parts():
    return [
        FSLLDensity(columns="binned"),
        FVBMPseudoLikelihood(alpha=0.1, columns="binned"),
        SDCPRBM(3, max_iter=2, columns="binned", random_state=0),
    ]


# Of each class, an estimator and what is drawn.
DRAWN = [
    (FSLLDensity(columns="binned"), TERMS),
    (FVBMPseudoLikelihood(columns="binned"), PAIRS),
    (
        SDCPRBM(4, **SHORT),
        {**MACHINE, **UNITS, "tempered": [0, 0.5], "n_inner": [1, 3],
         "centered": [False, True], "chains": ["data", "persistent"]},
    ),
    (TAPRBM(4, **SHORT), {**MACHINE, **UNITS, **FIELDS, "persistent": [False, True]}),
    (
        TAPDBM((4, 3), pretrain_max_iter=2, **SHORT),
        {**MACHINE, **FIELDS, "output_layer": ["all", 0, -1]},
    ),
    (
        InfiniteRBM(max_components=2, n_model_samples=20, columns="binned", random_state=0),
        {"mode": ["plain", "safeguarded", "corrective"], "early_stopping": [False, True],
         "unseen": ["smooth", "error", "missing"], "alpha": [0.01, 0.1]},
    ),
    (
        RBMClassifier(4, early_stopping=False, **SHORT),
        {"n_components": [1, 6], "generative": [0.0, 0.1], "columns": ["binned", "gaussian"],
         "batch_size": [5, 100],
         "unseen": ["smooth", "error", "missing"]},
    ),
    (
        BoltzmannClassifier(random_state=0),
        {"estimator": [None, *parts()], "joint": [False, "auto"],
         "calibration": [False, True, "auto"], "validation_fraction": [0.2, 0.5]},
    ),
    (
        BoltzmannImputer(parts()[1], random_state=0),
        {"estimator": parts(), "how": ["sample", "mean", "mode"], "add_indicator": [False, True]},
    ),
    (
        BoltzmannMixture([("terms", parts()[0]), ("pairs", parts()[1])], random_state=0),
        {"weights": ["auto", "uniform"], "validation_fraction": [0.2, 0.5],
         "estimators": [[("units", parts()[2])], [(f"part{k}", p) for k, p in enumerate(parts())]]},
    ),
    (
        BoltzmannOutlierDetector(random_state=0),
        {"estimator": [None, *parts()], "contamination": ["auto", 0.1]},
    ),
]  # fmt: skip


def left_out(estimator):
    """Checks that ask for what these parameters do not promise, with the reasons."""
    reasons = stochastic_checks(estimator)
    if isinstance(estimator, (RBMClassifier, BoltzmannClassifier)):
        reasons["check_classifiers_train"] = "few epochs, and two values a column, learn little"
        reasons["check_class_weight_classifiers"] = "it sets max_iter to 1,000"
    if getattr(estimator, "calibration", False) is True:
        for kind in ("dense", "sparse"):
            name = f"check_sample_weight_equivalence_on_{kind}_data"
            reasons[name] = "calibration draws the rows that it holds out"
    return reasons | of_outliers(estimator)


def drawn():
    """Titles of estimators with drawn parameters, and these; the same at each call."""
    rng = np.random.default_rng(0)
    for number in range(min(cases(N_DRAWN), 200)):
        estimator, values = DRAWN[number % len(DRAWN)]
        parameters = {
            name: some[rng.integers(len(some))] for name, some in values.items()
            if rng.random() < 0.4
        }  # fmt: skip
        shown = ", ".join(f"{name}={value!r:.40}" for name, value in parameters.items())
        title = f"{number} {type(estimator).__name__}({shown})"
        yield title, type(estimator)(**{**estimator.get_params(deep=False), **parameters})


def checks():
    """Pairs of these estimators and checks."""
    rng, n_times = np.random.default_rng(0), Counter()
    for title, estimator in drawn():
        found = [(check.func.__name__, check) for _, check in estimator_checks_generator(estimator)]
        left = left_out(estimator)
        found = [pair for pair in found if pair[0] not in left]
        rng.shuffle(found)
        for name, check in sorted(found, key=lambda pair: n_times[pair[0]])[: cases(2)]:
            n_times[name] += 1
            yield pytest.param(estimator, check, id=f"{title} {name}")


@pytest.mark.hypothesis  # by `make fuzz`, too
@pytest.mark.filterwarnings("ignore")  # of small tables, of few epochs
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_with_drawn_parameters(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [pytest.param(e, id=title) for title, e in drawn()])
def test_tags_tell_whether_cells_may_be_missing(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), np.arange(40) % 2
    X[rng.random((40, 4)) < 0.05] = np.nan
    if get_tags(estimator).input_tags.allow_nan:
        clone(estimator).fit(X, y)
    else:
        with pytest.raises(ValueError, match="NaN"):
            clone(estimator).fit(X, y)
