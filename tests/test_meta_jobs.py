"""Meta-estimators: parts that are fitted at the same time, and lines about each stage."""

import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FVBMPseudoLikelihood,
)


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
    rbm = SDCPRBM(4, max_iter=2, early_stopping=False)
    return [
        BoltzmannClassifier(network, calibration=True, random_state=0),
        BoltzmannMixture([("pairs", network), ("rbm", rbm)], random_state=0),
        BoltzmannOutlierDetector(network, contamination=0.1, random_state=0),
        BoltzmannImputer(network, how="sample", random_state=0),
    ]


def name_of(estimator):
    return type(estimator).__name__


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 5)).astype(float)
    X[:, 1] = np.where(rng.random(n) < 0.1, X[:, 1], X[:, 0])
    y = X[:, 0].copy()
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 0] = rng.integers(2, size=n)
    return X, y


def answers(estimator, X, y):
    """All numbers that a fitted estimator gives."""
    estimator = clone(estimator).fit(X, y)
    methods = ["predict_proba", "score_samples", "decision_function", "transform"]
    return {name: getattr(estimator, name)(X) for name in methods if hasattr(estimator, name)}


@pytest.mark.parametrize("estimator", estimators(FVBMPseudoLikelihood(alpha=0.1)), ids=name_of)
def test_processes_give_the_bits_of_a_sequence(estimator):
    X, y = table()
    one = answers(estimator, X, y)
    for n_jobs in (1, 2):
        other = answers(clone(estimator).set_params(n_jobs=n_jobs), X, y)
        assert one.keys() == other.keys() and one
        for name, values in one.items():
            np.testing.assert_array_equal(other[name], values, err_msg=name)


@pytest.mark.parametrize("estimator", estimators(Network(alpha=0.1)), ids=name_of)
def test_jobs_are_done_outside_of_the_main_thread(estimator):
    (X, y), main = table(), threading.get_ident()
    Network.threads.clear()
    with joblib.parallel_config("threading"):
        answers(estimator, X, y)
    assert Network.threads == {main}
    Network.threads.clear()
    with joblib.parallel_config("threading"):
        answers(estimator.set_params(n_jobs=2), X, y)
    assert Network.threads - {main}


LINES = {
    "BoltzmannClassifier": ["class 0.0: ", "class 1.0: ", "calibration: "],
    "BoltzmannMixture": ["pairs: ", "rbm: "],
    "BoltzmannOutlierDetector": [
        "density of all rows: ",
        *[f"density without part {k + 1}: " for k in range(10)],
        "offset: ",
    ],
    "BoltzmannImputer": ["FVBMPseudoLikelihood: "],
}


@pytest.mark.parametrize("estimator", estimators(FVBMPseudoLikelihood(alpha=0.1)), ids=name_of)
def test_a_line_for_each_stage(estimator, capsys):
    X, y = table()
    clone(estimator).fit(X, y)
    assert not capsys.readouterr().out
    clone(estimator).set_params(verbose=1).fit(X, y)
    lines, name = capsys.readouterr().out.splitlines(), name_of(estimator)
    assert len(lines) == len(LINES[name])
    for line, begin in zip(lines, LINES[name], strict=True):
        assert line.startswith(f"[{name}] {begin}")


def test_a_joint_density_is_one_stage(capsys):
    X, y = table()
    BoltzmannClassifier(verbose=1).fit(X, y)
    line = capsys.readouterr().out
    assert line.startswith("[BoltzmannClassifier] joint density: ") and "rows 120" in line


@pytest.mark.parametrize("estimator", estimators(FVBMPseudoLikelihood(alpha=0.1)), ids=name_of)
@pytest.mark.parametrize("name", ["n_jobs", "verbose"])
def test_jobs_and_lines_are_checked(estimator, name):
    X, y = table()
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
        clone(estimator).set_params(**{name: "many"}).fit(X, y)
