"""What a training chooses by the data: its size, its penalty, its stages and its end."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits

from private import Plan, _auto, _progress, _schedule
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, units
from sklearn_boltz.batches import Batches

QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def bits(n_rows, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_columns)) < 0.5
    X[:, 1] = X[:, 0]
    return X.astype(float)


SHORT = dict(patience=(3, 1), fall_after=(3, 1), longest=(10**5, 10, 40), last_epochs=(30, 30))


@pytest.fixture
def short(monkeypatch):
    """Trainings of at most 40 epochs and a last stage of 30; epochs in vain end a stage soon."""
    for estimator in (SDCPRBM, TAPRBM, TAPDBM):
        monkeypatch.setattr(estimator, "_schedule", estimator._schedule._replace(**SHORT))


# What "auto" stands for.


def test_rates_are_smaller_where_columns_vary_more():
    """At the maximum, the curvature by the weight of a hidden unit is at most variance / 4."""
    first_rate = _schedule.Schedule().first_rate
    even = [first_rate(units.Bernoulli(np.zeros(d)), d) for d in (1, 40, 80, 10_000)]
    assert even == [0.4, 2 / 10, 2 / 20, 0.03]
    assert first_rate(units.Bernoulli(np.full(40, 3.0)), 40) > even[1]
    three = units.Categorical.from_data(np.eye(3), n_values=3)
    assert_allclose(first_rate(three, 3), 0.4)  # 2 / (3 * 2 / 9), cut
    assert first_rate(units.Gaussian(np.zeros(40), np.ones(40)), 40) == 0.05
    # Of a deep machine, the hidden units of even layers come after the visible ones.
    assert first_rate(units.Bernoulli(np.zeros(80)), 40) == even[1]


def test_penalties_are_those_of_prior_distributions_of_variance_40_by_columns():
    """Gauss's and Laplace's, by rows: 1 / (2 v) and √(2 / v) for the variance v = 40 / d."""
    assert_allclose(_auto.chosen_decay(1000, 20), 20 / 40 / 1000)
    assert_allclose(_auto.chosen_l1(1000, 20), np.sqrt(2 * 20 / 40) / 1000)


@QUIET
@pytest.mark.parametrize("estimator", [SDCPRBM, TAPRBM])
def test_a_fit_says_what_it_chose(estimator, short, capsys):
    model = estimator(verbose=1, random_state=0).fit(bits(100))
    assert model.n_components_ == len(model.components_) == 12
    assert_allclose(model.alpha_, 6 / (40 * 100))
    columns, first = capsys.readouterr().out.splitlines()[:2]
    assert columns == f"[{estimator.__name__}] columns: 6 binary (0, 1, 2, 3, 4, ...)"
    assert "rows 90" in first and "n_components 12" in first and "alpha 0.0015" in first
    assert "validation_log_likelihood" in model.history_


@QUIET
@pytest.mark.parametrize("estimator", [SDCPRBM, TAPRBM])
def test_given_arguments_are_respected_and_few_rows_not_divided(estimator, short):
    options = {"alpha": 0.3, "batch_size": 7, "random_state": 0}
    model = estimator(5, **options).fit(bits(99))
    assert model.n_components_ == 5 and model.alpha_ == 0.3
    assert "validation_log_likelihood" not in model.history_
    # A number of epochs means that training: all rows, one rate, no penalty but the paper's.
    model = estimator(max_iter=3, random_state=0).fit(bits(120))
    assert model.n_iter_ == 3 and "validation_log_likelihood" not in model.history_
    assert len(set(model.history_["learning_rate"])) == 1
    assert model.alpha_ == (0 if estimator is SDCPRBM else 1e-3)
    model = estimator(max_iter=3, early_stopping=True, random_state=0).fit(bits(120))
    assert "validation_log_likelihood" in model.history_


@QUIET
def test_layers_of_a_deep_machine_are_chosen(short, capsys):
    options = {"pretrain_max_iter": 2, "random_state": 0}
    model = TAPDBM(verbose=1, **options).fit(bits(100))
    assert model.hidden_layer_sizes_ == [len(W) for W in model.components_] == [12, 12]
    assert "hidden_layer_sizes [12, 12]" in capsys.readouterr().out
    assert "validation_log_likelihood" in model.history_
    # What was chosen stays, however many rows there are.
    model.set_params(warm_start=True, max_iter=1).fit(bits(10))
    assert model.hidden_layer_sizes_ == [12, 12]
    assert "validation_log_likelihood" not in TAPDBM((4,), **options).fit(bits(99)).history_


def test_sizes_of_partial_fit_do_not_depend_on_the_batch():
    few, many = (SDCPRBM(random_state=0).partial_fit(bits(n)) for n in (3, 500))
    assert few.n_components_ == many.n_components_ == 12
    assert few.alpha_ == many.alpha_ == 6 / (40 * 10_000)


@QUIET
def test_a_start_has_room_in_the_chosen_size(short):
    X = bits(150)
    first = SDCPRBM(20, max_iter=2, random_state=0).fit(X)
    model = SDCPRBM(init=first, random_state=0).fit(X)
    assert model.n_components_ == 20  # 12 would be too few


# Stages.


class Fake:
    """A training whose figures are given, and which has one parameter: the number of the epoch."""

    def __init__(self, scores, gaps):
        self.history = {
            "validation_log_likelihood": scores,
            "free_energy_gap": gaps,
            "log_likelihood_std_err": [0.0] * len(scores),
        }
        self.parameter, self.tracker = np.zeros(1), "tracker"
        self.learner = SimpleNamespace(parameters=lambda: [self.parameter])
        self.best = self.stage = self.mean = None
        self.rate_factor, self.fallen_at, self.n_stages, self.n_epochs = 1.0, 0, 0, 0

    def figures(self, epoch):
        return {name: values[epoch - 1] for name, values in self.history.items()}

    def run(self, *stages, **options):
        """-> the epoch whose parameters are kept, and the rates."""
        plan = Plan(1000, 10, 1.0, tol=1e-3, stages=_schedule.Stages(*stages, **options))
        monitor = SimpleNamespace(
            has_started=lambda figures: True,
            of_interest=lambda figures: figures["validation_log_likelihood"],
        )
        rates = []
        for epoch in range(1, len(self.history["free_energy_gap"]) + 1):
            rates.append(self.rate_factor)
            self.n_epochs, self.parameter[:] = epoch, epoch
            if _progress.end_stage(self, monitor, plan, None):
                return int(self.parameter[0]), rates
        return None, rates


def test_the_end_of_a_stage():
    """Without progress; by overfitting, back to the best epoch; and after a long one."""
    rising = [-9.0, -8.0, -7.0, -7.0, -7.0, *[-6.9] * 6]
    kept, rates = Fake(rising, [0.0] * 11).run(2, 3)
    assert kept == 11
    assert_allclose(rates, [1] * 5 + [0.3] * 3 + [0.09] * 3)
    overfitted, gaps = [-9.0, -8.0, -8.2, -8.4, -8.6], [0.1, 0.2, 0.5, 0.9, 1.2]
    assert Fake(overfitted, gaps).run(3, 1)[0] == 2
    more = Fake([*overfitted, -8.7, *[-8.8] * 3], [*gaps, *[1.3] * 4])
    assert more.run(3, 2)[0] == 2
    assert Fake(np.arange(-9.0, 0), [0.0] * 9).run(3, 2, longest=4)[0] == 8


STAGED = {"learning_rate": 0.05, "early_stopping": True, "batch_size": 20, "random_state": 0}


@QUIET
def test_a_training_in_stages_is_the_same_when_it_is_taken_up_again(short):
    """In the stages, and in the last one."""
    X = bits(120, 14)
    whole = SDCPRBM(14, max_iter=1000, **STAGED).fit(X)
    for n_first in whole.n_iter_ - np.array([40, 10]):
        again = SDCPRBM(14, max_iter=n_first, warm_start=True, **STAGED).fit(X)
        assert again.n_iter_ == n_first < whole.n_iter_ < 1000
        again.set_params(max_iter=1000).fit(X)
        assert whole.n_iter_ == again.n_iter_
        assert_array_equal(whole.history_["learning_rate"], again.history_["learning_rate"])
        assert_array_equal(whole.components_, again.components_)


# The last stage.


@QUIET
@pytest.mark.parametrize("chains", ["data", "persistent"])
def test_chains_that_are_always_or_never_persistent_have_no_last_stage(chains, short):
    model = SDCPRBM(5, chains=chains, max_iter=1000, **STAGED).fit(bits(200))
    assert_allclose(model.history_["learning_rate"][-1], 0.05 * 0.3**2)


# Hidden and visible units are too many for an exact ln Z.


def patterns():
    """Rows near one of four patterns of sixteen bits."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(4, 16))[rng.integers(4, size=1000)]
    return np.abs(X - (rng.random(X.shape) < 0.1)).astype(np.float32)


@pytest.mark.parametrize(
    ("X", "n_rows", "gain"),
    [
        pytest.param(patterns(), 100, 1, id="patterns"),
        pytest.param(
            (load_digits().data[:1000] > 7).astype(np.float32), 360, 5, id="digits",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_the_default_learns(X, n_rows, gain):
    # Rows held out: better than independent columns by far, and than a fit that overfits.
    X, rest = X[:n_rows], X[n_rows:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SDCPRBM(random_state=0).fit(X)
    long = SDCPRBM(100, max_iter=400, track_likelihood=False, random_state=0).fit(X)
    p = (X.sum(axis=0) + 1) / (len(X) + 2)
    independent = (rest * np.log(p) + (1 - rest) * np.log1p(-p)).sum(axis=1).mean()
    assert model.score(rest) > independent + gain
    assert model.score(rest) > long.score(rest) + 1


# Validation rows that are given.


def words(rows):
    return pd.DataFrame(rows[:, 1:] + 2 * rows[:, :-1]).astype(str)


@QUIET
@pytest.mark.parametrize("container", [csr_array, pd.DataFrame, words, "gaps"])
def test_validation_rows_that_are_given(container):
    """They are measured, and nothing is learned from them."""
    X, valid = bits(120), bits(30, seed=1)
    if container == "gaps":
        X[::3, 4] = valid[::2, 5] = np.nan
        container = np.asarray
    options = {"max_iter": 3, "random_state": 0, "batch_size": 20, "unseen": "missing"}
    weights = np.arange(1, 121)
    fits = [
        SDCPRBM(5, early_stopping=container(rows), **options).fit(container(X), sample_weight=w)
        for rows in (valid, 1 - valid)
        for w in (None, weights)
    ]
    for model, other in zip(fits[:2], fits[2:], strict=True):
        assert_array_equal(model.components_, other.components_)
        for fit, rows in ((model, valid), (other, 1 - valid)):
            measured = fit.history_["validation_log_likelihood"][-1]
            assert measured == pytest.approx(fit.score(container(rows)), rel=1e-5)
    assert not np.array_equal(fits[0].components_, fits[1].components_)
    again, valid = clone(fits[0]).fit(container(X)), container(valid)
    assert again.score(valid) == fits[0].score(valid)


@pytest.mark.parametrize("estimator", [SDCPRBM, TAPRBM, TAPDBM])
def test_validation_rows_that_do_not_fit(estimator):
    model = estimator(early_stopping=bits(30, 5), max_iter=1)
    with pytest.raises(ValueError, match="features"):
        model.fit(bits(100))
    assert not hasattr(model, "components_")
    with pytest.raises(ValueError, match="early_stopping has validation rows.*early_stopping=0.1"):
        clone(model).set_params(early_stopping=bits(30)).fit(Batches([bits(60), bits(60)]))


@pytest.mark.parametrize(("init", "scale"), [(0.3, 0.3), ("scaled", 0.1)])
def test_the_size_of_initial_weights(init, scale):
    X = np.random.default_rng(0).integers(2, size=(20, 60))
    model = SDCPRBM(40, init=init, max_iter=0, random_state=0).fit(X)
    assert model.components_.std() == pytest.approx(scale, rel=0.1)
