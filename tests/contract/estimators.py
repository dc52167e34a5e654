"""All estimators, once: with quick settings, and legal values of their parameters."""

import pickle

import numpy as np
import pytest
from contract.frames import bits
from contract.once import once
from sklearn.base import clone, is_classifier
from sklearn.utils._param_validation import make_constraint

import sklearn_boltz
from sklearn_boltz import (
    SDCPRBM,
    TAP,
    TAPDBM,
    TAPRBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    MaximumEntropy,
    SparseFVBM,
)


def by_turns(X):
    """Labels for a table that has none: rows are of two classes by turns."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0
    return np.arange(n_rows) % 2


class RBMClassifier(sklearn_boltz.RBMClassifier):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, by_turns(X) if y is None else y, sample_weight)

    def partial_fit(self, X, y=None, classes=(0, 1), sample_weight=None):
        y = by_turns(X) if y is None else y
        return super().partial_fit(X, y, classes, sample_weight)

    def _failure_message(self, status, comparison):
        return super()._failure_message(status, None)  # they cannot be told from the columns


class BoltzmannClassifier(sklearn_boltz.BoltzmannClassifier):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, by_turns(X) if y is None else y, sample_weight)


class Location(FVBMPseudoLikelihood):
    """A network whose numbers have normal scores."""

    _need = FVBMPseudoLikelihood(alpha=0)._need._replace(scored=("number", "auto"))


SHORT = {"max_iter": 3, "early_stopping": False, "random_state": 0}
DENSITIES = [
    FSLLDensity(),
    FVBMPseudoLikelihood(),
    SDCPRBM(n_components=4, **SHORT),
    TAPRBM(n_components=4, **SHORT),
    TAPDBM(hidden_layer_sizes=(4, 3), pretrain_max_iter=1, **SHORT),
    InfiniteRBM(
        max_components=2, n_model_samples=32, n_corrective=4, early_stopping=False, random_state=0
    ),
    SparseFVBM(alpha=0.1),
    MaximumEntropy(random_state=0),
]
# With all methods of a model; META has estimators that use one.
MODELS = [*DENSITIES, RBMClassifier(n_components=4, **SHORT)]
# Maximum entropy reads tables as FVBMPseudoLikelihood does, and its chains take longer.
OF_ANY_TABLE = [e for e in MODELS if not isinstance(e, MaximumEntropy)]
META = [
    BoltzmannClassifier(joint=False, calibration=True, random_state=0),
    BoltzmannOutlierDetector(FVBMPseudoLikelihood(alpha=0.1), random_state=0),
    BoltzmannImputer(random_state=0),
]
ALL = [*MODELS, *META]
# Of bits or of values in a range, which they take for probabilities.
MACHINES = [estimator for estimator in MODELS if hasattr(estimator, "early_stopping")]
# Those of mini-batches, and all that have no labels.
OF_BATCHES, UNLABELLED = MACHINES[:3], MACHINES[:4]


def name_of(estimator):
    return type(estimator).__name__


def each(estimators):
    """A test of each of some estimators."""
    return pytest.mark.parametrize("estimator", estimators, ids=name_of)


def each_with(name, values, estimators):
    """Each estimator with one of some values in turn, and the first two with all of them.

    What is between a table and the codes of its cells is the same for all.
    """
    values = list(values)
    pairs = [
        (estimator, value)
        for k, estimator in enumerate(estimators)
        for value in (values if k < 2 else [values[k % len(values)]])
    ]
    ids = [f"{name_of(e)}-{getattr(v, '__name__', v)}" for e, v in pairs]
    return pytest.mark.parametrize(("estimator", name), pairs, ids=ids)


@once
def _fitted():
    return {name_of(e): pickle.dumps(pickle.loads(pickle.dumps(e)).fit(bits(150))) for e in ALL}


def fitted(estimator):
    """A copy of an estimator of this list that was fitted to bits(150)."""
    return pickle.loads(_fitted()[name_of(estimator)])


def as_public(estimator):
    """The classifiers without labels of their own."""
    kind = getattr(sklearn_boltz, name_of(estimator))
    return kind(**estimator.get_params(deep=False))


def short(estimator):
    """With the least training, which a test does not look at."""
    least = {"max_iter": 1, "pretrain_max_iter": 1, "max_components": 1}
    known = least.keys() & estimator.get_params(deep=False) if hasattr(estimator, "init") else ()
    if isinstance(estimator, MaximumEntropy):
        known, least = {"max_iter"}, {"max_iter": 25}  # some 20 to where it begins
    return clone(estimator).set_params(**{name: least[name] for name in known})


def labels(estimator, X):
    """What `fit` of a public estimator wants besides a table."""
    return [by_turns(X)] if is_classifier(estimator) else []


def stochastic_checks(estimator):
    """Checks that ask for the same numbers from rows of weight 2 and rows that stand twice.

    Mini-batches and samples are drawn: there they have the same distribution, see
    test_rbm_weights.py. FSLLDensity cannot learn the tables of these checks.
    """
    drawn = "batch_size", "n_model_samples"
    if any(name.endswith(drawn) for name in estimator.get_params()):  # also of a part
        reason = "mini-batches and samples are drawn by the weights"
    elif any(isinstance(e, FSLLDensity) for e in [estimator, *estimator.get_params().values()]):
        reason = "15 rows of 30 numbers have too many joint states"
    else:
        return {}
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")
    }


def constant_spins(J, h, n, rng):
    """An absurd sampler."""
    return np.ones((n, len(h)))


def random_spins(J, h, n, rng):
    """One that is hotter than it should be."""
    return rng.choice([-1, 1], size=(n, len(h)))


# Legal values of all parameters of models, of which some are absurd.
VALUES = {
    "alpha": [0.0, 1e-300, 1e-3, 1.0, 1e6, 1e300, "auto", "ebic", "cv"],
    "batch_size": [1, 3, 10**9, "auto"],
    "centered": [False, True],
    "chains": ["auto", "data", "persistent", constant_spins, random_spins],
    "class_weight": [None, "balanced", {0: 1.0, 1: 2.0}],
    "count_potential": [False, True],
    "cv": [2, 3],
    "dtype": [np.float32, "float64"],
    "dynamic_binarization": [False, True],
    "early_stopping": [False, True, "auto", 1e-300, 0.5, 1 - 1e-16],
    "ebic_gamma": [0.0, 0.25, 1e300],
    "edges": [None, [(0, 1)]],
    "hidden": ["bernoulli", "categorical", "gaussian", "truncated_gauss_bernoulli",
               "truncated_gaussian"],
    "hidden_layer_sizes": [(4, 3), 1, (2, 3, 2)],
    "inference": ["tap", "naive", "adaptive", TAP(damping=0.0), TAP(1, 30, 1 - 1e-16, 0),
                  TAP(tol=0.0), TAP(adaptive=True, n_gibbs=0, tol=1e300)],
    "generative": [0.0, 1e-300, 1.0, 1e300, np.inf],
    "init": [None, "scaled", 0.0, 1e-300, 0.01, 100.0, 1e4, 1e300, FVBMPseudoLikelihood()],
    "l1_ratio": [1e-300, 0.5, 1.0],
    "learning_rate": [1e-300, 0.05, 1.0, 1e3, 1e6, 1e300],
    "max_basis": [0, 2, None],
    "max_components": [1, 3],
    "max_iter": [0, 1, 2, 5],
    "max_order": [0, 1, 2, 3, None],
    "max_states": [2, 2**20],
    "missing": ["em", "observed"],
    "mode": ["plain", "safeguarded", "corrective"],
    "moment_tol": [1e-3, 0.5, 1e300],
    "n_components": [1, 7],
    "n_corrective": [0, 2],
    "n_draws": [1, 3],
    "n_gibbs": [1, 5],
    "n_inner": [1, 4],
    "n_jobs": [None, 1, 2, -1],
    "n_model_samples": [1, 16, 64],
    "nodewise": [False, "and", "or"],
    "penalty": [None, "l1", "l2", "elasticnet", "group"],
    "persistent": [False, True],
    "pretrain_max_iter": [0, 2, "auto"],
    "random_state": [0, None, np.random.RandomState(0)],
    "relax": [False, True],
    "sampler": [None, constant_spins, random_spins],
    "scoring": ["accuracy", "neg_log_loss"],
    "solver": ["newton", "greedy", "lbfgs", "bslm", "ga"],
    "sparsity": [0.0, 0.1, 1e300],
    "standardize": [False, True],
    "step_size": [1e-300, 0.5, 1.0, 3.0, 1e300],
    "tempered": ["auto", 0.0, 1e-300, 0.5, 1.0],
    "term_price": [1e-300, 1.0, 1e300],
    "terms": [None, [(0, 1, 2)], []],
    "tol": [1e-300, 1e-3, 1.0, 1e300],
    "track_likelihood": [False, True, 0.5],
    "unseen": ["smooth", "error", "missing"],
    "verbose": [0],
    "columns": ["auto", "bernoulli", "categorical", "gaussian", "truncated_gaussian",
                "truncated_gauss_bernoulli"],
    "warm_start": [False, True],
}  # fmt: skip


def legal_values(estimator, name):
    """Those of the list above that a parameter of an estimator takes."""
    allowed = [make_constraint(c) for c in estimator._parameter_constraints[name]]
    return [v for v in VALUES[name] if any(c.is_satisfied_by(v) for c in allowed)]
