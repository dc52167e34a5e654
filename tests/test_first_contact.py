"""What a new user meets first: each test was a defect once."""

import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from test_common import DEFAULTS

from private import _enumeration, missing_code
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    units,
)
from sklearn_boltz.batches import Batches

RBMS = [estimator for estimator in DEFAULTS if hasattr(estimator, "early_stopping")]
RANGED = [*RBMS, TAPRBM(4, visible="truncated_gaussian", max_iter=2, random_state=0)]


def name_of(estimator):
    return type(estimator).__name__


every_estimator = pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
every_rbm = pytest.mark.parametrize("estimator", RBMS, ids=name_of)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(200, 5))
    X[:, 1] = X[:, 0] ^ (rng.random(200) < 0.1)
    X[:, 4] = X[:, 2] ^ X[:, 3] ^ (rng.random(200) < 0.1)
    return X


@pytest.fixture(scope="module")
def digits():
    """Binary digits in random order."""
    images = (load_digits().data > 7).astype(np.float32)
    return images[np.random.default_rng(0).permutation(len(images))]


def all_rows(d):
    return np.indices((2,) * d).reshape(d, -1).T.astype(float)


# A2. Scores follow the parameters.


def change_in_place(a):
    a *= 1.5


def change_one(a):
    a[(0,) * a.ndim] += 0.5


def parameter_names(estimator):
    names = {
        "FSLLDensity": ["theta_"],
        "FVBMPseudoLikelihood": ["intercept_"],
        "TAPDBM": ["intercept_visible_"],
    }
    default = ["components_", "intercept_hidden_", "intercept_visible_"]
    return names.get(name_of(estimator), default)


@every_estimator
@pytest.mark.parametrize("change", [change_in_place, change_one])
def test_scores_follow_the_parameters(estimator, change, X):
    model = clone(estimator).fit(X)
    for name in parameter_names(model):
        before = model.log_partition_
        array = np.array(getattr(model, name))
        setattr(model, name, array)
        if name != "components_":
            array += 0.1  # some are zero
        model.log_partition_  # noqa: B018 - to be kept
        change(array)
        assert model.log_partition_ != before
        if isinstance(model, TAPDBM):  # the log-probability of a row is approximate
            continue
        total = np.exp(model.score_samples(all_rows(5))).sum()
        assert total == pytest.approx(1, abs=1e-5)


def test_scores_follow_couplings(X):
    model = FVBMPseudoLikelihood(alpha=1.0).fit(X)
    assert model.log_partition_ == model.log_partition_
    model.coupling_ = 3 * model.coupling_
    assert np.exp(model.score_samples(all_rows(5))).sum() == pytest.approx(1)
    assert model.log_partition().std_err == 0
    covariance = model.inference(X).covariance
    assert model.inference(X).covariance is covariance
    assert model.inference(X[:100]).covariance is not covariance
    model.coupling_ *= 0.5
    assert not np.array_equal(model.inference(X).covariance, covariance)


def test_figures_of_read_only_parameters_are_kept(X, monkeypatch, tmp_path):
    model = SDCPRBM(4, max_iter=2, random_state=0).fit(X)
    path = tmp_path / "weights.npy"
    np.save(path, model.components_)
    model.components_ = np.load(path, mmap_mode="r")
    expected = model.log_partition_
    monkeypatch.setattr(_enumeration, "exact_log_partition", lambda model: 1 / 0)
    assert model.log_partition_ == expected


# A3. Observed cells come back as they were given.


@every_estimator
def test_imputation_returns_observed_cells_as_given(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    model = clone(estimator).set_params(binarize=0.0).fit(X)
    holes = X.copy()
    holes[::3, 1] = np.nan
    filled = model.impute(holes, how="mode", random_state=0)
    known = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[known], X[known])
    assert set(filled[~known]) <= {0.0, 1.0}
    assert filled.dtype == holes.dtype


# A4. Values a little out of range are clipped outside of `fit`.


@pytest.mark.parametrize("estimator", RANGED, ids=repr)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_out_of_range_are_clipped_with_one_warning(estimator, container):
    rng = np.random.default_rng(0)
    X = rng.random((40, 4))
    model = clone(estimator).fit(X)
    outside, clipped = X.copy(), X.copy()
    outside[3, 2], outside[5, 2], outside[7, 0] = 1.25, -0.5, 3.5
    clipped[3, 2], clipped[5, 2], clipped[7, 0] = 1, 0, 1
    outside, clipped = container(outside), container(clipped)
    pattern = r"3 values in 2 columns .* first is 1.25 in column 2, row 3\. .*MinMaxScaler"
    for method in ("transform", "score_samples", "mean_hidden", "free_energy"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = getattr(model, method)(outside)
        assert len(told) == 1 and told[0].filename == __file__
        with pytest.warns(UserWarning, match=pattern):
            getattr(model, method)(outside)
        expected = getattr(model, method)(clipped)
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="column 2"):
        clone(model).fit(outside)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="column 2"):
            model.partial_fit(outside)


def test_a_clipped_column_has_its_name(X):
    frame = pd.DataFrame(X.astype(float), columns=list("abcde"))
    model = SDCPRBM(2, max_iter=1, unseen="error", random_state=0).fit(frame)
    frame.loc[3, "d"] = 7
    with pytest.warns(UserWarning, match="1 value in 1 column is .* is 7 in column 'd', row 3"):
        model.transform(frame)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_errors_of_scaling_are_no_errors(dtype, X):
    above = np.nextafter(dtype(1), dtype(2))
    rows = (X * above).astype(dtype)
    assert rows.max() > 1
    model = SDCPRBM(2, max_iter=2, random_state=0).fit(rows)
    reference = SDCPRBM(2, max_iter=2, random_state=0).fit(X.astype(dtype))
    np.testing.assert_array_equal(model.components_, reference.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(rows)


@pytest.mark.filterwarnings("ignore:SDCPRBM. .* outside the")
def test_the_pipeline_of_scikit_learn_runs_as_with_bernoulli_rbm():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]

    def scores(rbm):
        pipeline = make_pipeline(MinMaxScaler(), rbm, LogisticRegression(max_iter=500))
        return cross_val_score(pipeline, X, y, cv=3, error_score="raise")

    ours = scores(SDCPRBM(64, random_state=0))
    theirs = scores(BernoulliRBM(64, learning_rate=0.06, n_iter=10, random_state=0))
    assert np.isfinite(ours).all() and np.isfinite(theirs).all()
    assert ours.mean() > 0.7
    pipeline = make_pipeline(MinMaxScaler(), SDCPRBM(16, max_iter=2, random_state=0))
    search = GridSearchCV(pipeline, {"sdcprbm__n_components": [4, 8]}, cv=2, error_score="raise")
    assert np.isfinite(search.fit(X).cv_results_["mean_test_score"]).all()


# A5, A6. Small data: training goes on until it has begun, and long enough.


def independent(train, test):
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return np.log(np.where(test, p, 1 - p)).sum(axis=1).mean()


@pytest.mark.parametrize("n_rows", [200, 400])
def test_early_stopping_waits_out_the_first_plateau(digits, n_rows):
    train, test = digits[:n_rows], digits[1400:]
    model = SDCPRBM(early_stopping=True, random_state=0).fit(train)
    assert model.score(test) > independent(train, test) + 4
    figures = model.history_["validation_log_likelihood"]
    assert len(figures) == model.n_iter_ < 1000


def test_a_plateau_does_not_end_the_fit(digits):
    # A rate so small that nothing happens.
    model = SDCPRBM(
        8, learning_rate=1e-6, early_stopping=True, max_iter=25, n_iter_no_change=5, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="no better than independent columns"):
        model.fit(digits[:100])
    assert model.n_iter_ == 25 > model.n_iter_no_change


def test_learning_by_heart_ends_the_fit():
    # Random bits: held-out rows never become more probable, training rows do.
    X = np.random.default_rng(0).integers(2, size=(60, 30)).astype(np.float32)
    model = SDCPRBM(64, early_stopping=True, learning_rate=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="held-out rows have a mean log-likelihood"):
        model.fit(X)
    assert model.n_iter_ < 1000


SLOW = {
    "SDCPRBM": dict(learning_rate=1e-6),
    "TAPRBM": dict(learning_rate=1e-6),
    "TAPDBM": dict(learning_rate=1e-6),
    "InfiniteRBM": dict(alpha=1000.0, mode="plain", n_bias_steps=0),
}


@pytest.mark.parametrize("estimator", [e for e in RBMS if name_of(e) in SLOW], ids=name_of)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_fit_no_better_than_independent_columns_warns(estimator, early_stopping, digits):
    model = clone(estimator).set_params(early_stopping=early_stopping, **SLOW[name_of(estimator)])
    rows = "held-out rows" if early_stopping else "training rows"
    with pytest.warns(ConvergenceWarning, match=f"no better than independent columns: its {rows}"):
        model.fit(digits[:200])


@pytest.mark.parametrize("max_iter", [199, 200])
def test_after_many_epochs_the_columns_may_be_independent(max_iter, digits):
    model = SDCPRBM(2, learning_rate=1e-6, max_iter=max_iter, random_state=0)
    first, last = "train longer", "unless the columns are independent indeed"
    if max_iter == 200:
        first, last = "The columns may be independent indeed; otherwise train longer", "rate"
    with pytest.warns(ConvergenceWarning, match=f"(?i){first} .*{max_iter} epochs.*{last}.$"):
        model.fit(digits[:100, 18:22])


def test_a_fit_that_has_learned_does_not_warn(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SDCPRBM(64, random_state=0).fit(digits[:300])
        TAPRBM(64, random_state=0).fit(digits[:300])


def test_default_epochs_follow_the_rows(digits):
    # Mini-batches of 10, 50 and 100 rows.
    fit = SDCPRBM(2, n_inner=1, n_gibbs=1, early_stopping=False, random_state=0).fit
    n_epochs = {n: fit(digits[:n, :9]).n_iter_ for n in (40, 100, 1000)}
    assert n_epochs == {40: 200, 100: 150, 1000: 75}
    assert fit(np.tile(digits[:, :4], (12, 1))).n_iter_ == 10
    model = TAPRBM(2, early_stopping=False, random_state=0)
    assert model.fit(digits[:100, :9]).n_iter_ == 80


def test_small_data_are_trained_long_enough(digits):
    # Ten epochs, as for MNIST, end at about -20.7 nats, and 25.2 are those of independent pixels.
    model = SDCPRBM(64, random_state=0).fit(digits[:1400])
    assert model.score(digits[1400:]) > -18


# A7, B. Codings of others, and messages that name column, value and remedy.


def refusal(estimator, X, **fit_params):
    with pytest.raises((ValueError, TypeError)) as info:
        estimator.fit(X, **fit_params)
    return str(info.value)


@every_estimator
def test_missing_votes_coded_as_minus_one_are_recognised(estimator, X):
    votes = X.copy()
    votes[4, 2] = -1
    message = refusal(clone(estimator), votes)
    assert "-1 beside 0 and 1 looks like a code for a missing value" in message
    assert "np.where(X == -1, np.nan, X)" in message
    if not isinstance(estimator, FVBMPseudoLikelihood):  # there, 0 is the odd one
        assert "column 2, but row 4 has the value -1" in message


@pytest.mark.parametrize("code", [9, 99])
@pytest.mark.parametrize("n_values", [2, 4])
def test_codes_for_missing_values_that_are_legal_values_are_told_of(X, code, n_values):
    answers = X.copy()
    answers[::2, 1] += n_values - 2
    answers[4:9, 1] = answers[7, 3] = code
    beside = "0 and 1" if n_values == 2 else "0 to 3"
    words = f"column 1, {code} beside {beside} looks like.*np.nan.*n_values.*with 1 more column"
    with pytest.warns(UserWarning, match=words):
        FSLLDensity().fit(answers)
    if code == 9:
        with pytest.warns(UserWarning, match=words):
            FVBMPseudoLikelihood(alpha=0.1).fit(answers)
    else:
        message = refusal(FVBMPseudoLikelihood(), answers)
        assert f"99 beside {beside} looks like a code for a missing value" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FSLLDensity(n_values=[2, code + 1, 2, code + 1, 2]).fit(answers)  # who says so knows it
        FSLLDensity().fit(np.where(answers == code, np.nan, answers))


@every_estimator
def test_codes_for_missing_values_among_levels_are_told_of(estimator, X):
    answers = pd.DataFrame({"answer": 1 + X[:, 0] + X[:, 1], "other": X[:, 2]}).astype(int)
    answers.loc[3:6, "answer"] = 9
    with pytest.warns(UserWarning, match="'answer': 9 beside 1 to 3 looks like a code"):
        clone(estimator).fit(answers)
    answers.loc[3:6, "answer"] = 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(estimator).fit(answers)


@pytest.mark.parametrize(
    "values, code",
    [({0, 1, 9}, 9), ({0, 1, 2, 99}, 99), ({1, 2, 3, 4, 9}, 9), ({0, 1, 2, -1}, -1),
     ({1, 5, -99}, -99), ({0, 1, 9, 99}, 99), (set(range(6)) | {9}, None), ({0, 9}, None),
     (set(range(10)), None), ({-2, -1, 0, 1, 2}, None), ({0, 1, 8}, None), ({99}, None),
     (set(range(-1, 60)), None)],
)  # fmt: skip
def test_what_looks_like_a_code_for_missing_values(values, code):
    assert missing_code(values) == code


def test_minus_one_for_unknown_categories_is_recognised(X):
    codes = 2 * X
    codes[3, 1] = -1
    message = refusal(FSLLDensity(), codes)
    assert "row 3 has the value -1. -1 beside 0 and 2 looks like a code for a missing" in message


@every_estimator
def test_binarize_does_not_hide_missing_votes(estimator, X):
    votes = X.copy()
    votes[4, 2] = -1
    with pytest.warns(UserWarning, match=r"-1 stands for a missing value.* makes a 0 of it"):
        clone(estimator).set_params(binarize=0.5).fit(votes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(estimator).set_params(binarize=0.0).fit(2 * X - 1)  # spins are no such case


@pytest.mark.parametrize("estimator", [FSLLDensity(), *RBMS], ids=name_of)
def test_spins_are_recognised(estimator, X):
    assert "Recode it by (X + 1) / 2" in refusal(clone(estimator), 2 * X - 1)


@every_rbm
def test_columns_that_count_from_one_are_recognised(estimator, X):
    assert "coded 1 and 2. Subtract 1" in refusal(clone(estimator), X + 1)


def test_columns_that_count_from_one_are_told_of_in_fsll(X):
    counts = X.copy()
    counts[:, 1] += 1
    with pytest.warns(UserWarning, match="column 1 has values from 1 to 2 and never 0"):
        FSLLDensity().fit(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FSLLDensity(n_values=3).fit(counts)
        # In a data frame, 1 and 2 are the names of two levels.
        model = FSLLDensity().fit(pd.DataFrame(counts, columns=list("abcde")))
    assert model.n_values_.tolist() == [2] * 5


@every_rbm
def test_categories_and_grey_levels_are_recognised(estimator, X):
    levels = X.copy()
    levels[3, 1] = 3
    message = refusal(clone(estimator), levels)
    assert "whole numbers from 0 to 3" in message and "visible={" in message
    assert "Divide them by 255" in refusal(clone(estimator), 255 * X)


@every_estimator
@pytest.mark.parametrize("hole", [np.nan, None, pd.NA])
def test_missing_cells_are_named(estimator, X, hole):
    frame = pd.DataFrame(X, columns=list("abcde")).astype(object)
    frame.loc[3, "d"] = frame.loc[7, "d"] = frame.loc[5, "e"] = hole
    model = clone(estimator).fit(frame)
    assert np.isfinite(model.score_samples(frame)).all()
    frame["d"] = hole
    with pytest.warns(UserWarning, match="has a value in column 'd'"):  # nothing is learned of it
        clone(estimator).fit(frame)
    if isinstance(estimator, (FSLLDensity, FVBMPseudoLikelihood)):
        with pytest.raises(ValueError, match="'d' has no value .NaN. in row 0.*`free_energy`"):
            model.energy(frame)


@every_estimator
def test_infinite_values_are_named(estimator, X):
    bad = X.astype(float)
    bad[6, 1] = -np.inf
    assert "column 1 has the value -inf in row 6" in refusal(clone(estimator), bad)


def test_one_complaint_at_a_time():
    X = np.random.default_rng(0).random((20, 3))
    X[2, 1] = 1.2 + 1e-15
    message = refusal(SDCPRBM(), X)
    assert "column 1, but row 2 has the value 1.2. " in message
    assert "egative" not in message
    X[7, 2] = -0.25
    message = refusal(SDCPRBM(), X)
    assert (
        "column 2, but row 7 has the value -0.25, the first of 2 such values in columns 1, 2. "
        "Negative values in data" in message
    )


def test_raw_values_of_truncated_units_are_answered_with_the_range():
    X = 20 * np.random.default_rng(0).random((30, 3)) - 5
    message = refusal(TAPRBM(visible="truncated_gaussian"), X)
    assert "Set visible_range to the range of the data, here (" in message
    assert "binarize" not in message


# Names of other libraries.


@pytest.mark.parametrize(
    "estimator, theirs, ours",
    [
        (SDCPRBM, "n_iter", "max_iter"),
        (SDCPRBM, "n_hidden", "n_components"),
        (SDCPRBM, "learning_rate_init", "learning_rate"),
        (SDCPRBM, "cd_k", "n_gibbs"),
        (SDCPRBM, "lr", "learning_rate"),
        (TAPRBM, "epochs", "max_iter"),
        (TAPDBM, "n_hidden", "hidden_layer_sizes"),
        (TAPDBM, "n_components", "hidden_layer_sizes"),
        (InfiniteRBM, "n_components", "max_components"),
        (FVBMPseudoLikelihood, "n_iter", "max_iter"),
        (FVBMPseudoLikelihood, "C", "alpha"),
        (FSLLDensity, "threshold", "binarize"),
        (FSLLDensity, "maxorder", "max_order"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(estimator, theirs, ours):
    with pytest.raises(TypeError, match=f"{estimator.__name__} has no .*'{theirs}'.*mean '{ours}'"):
        estimator(**{theirs: 1})
    with pytest.raises(ValueError, match=f"no parameter '{theirs}'. Did you mean '{ours}'"):
        estimator().set_params(**{theirs: 1})


def test_unknown_arguments_are_answered_with_what_there_is():
    with pytest.raises(TypeError, match="FSLLDensity has no parameter 'zzz'. There are: n_values"):
        FSLLDensity(zzz=1)
    signature = inspect.signature(SDCPRBM)
    assert list(signature.parameters)[0] == "n_components" and "max_iter" in signature.parameters


# A9. What an estimate of ln Z is worth.


def test_every_ais_run_gives_a_floor(X):
    model = SDCPRBM(6, max_iter=3, weights_init=2.0, random_state=0).fit(X)
    exact = model.log_partition("exact")
    assert exact.low == exact.high == exact.value and exact.verdict == "Exact, by enumeration."
    # By Markov's inequality the floor fails in 5 % of the runs at most: more than 4 of 20
    # fail with a probability below 0.3 %.
    failed, few = 0, dict(n_chains=2, n_temperatures=1)
    for seed in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = model.log_partition("ais", random_state=seed, **few)
        assert estimate.low == estimate.value - 3 and estimate.high == np.inf
        failed += estimate.low > exact.value
    assert failed <= 4


@pytest.fixture
def two_modes():
    """An RBM with nearly all of its mass far from the rows that it was fitted to."""
    rows = np.zeros((50, 24), np.float32)
    rows[:, 0] = np.arange(50) % 2
    model = SDCPRBM(24, max_iter=0, random_state=0).fit(rows)
    model.components_ = np.full((24, 24), 0.5, np.float32)
    model.intercept_hidden_ = np.full(24, -4, np.float32)
    model.intercept_visible_ = np.full(24, -4, np.float32)
    return model, rows


def test_contradicting_estimates_are_not_trusted(two_modes):
    model, rows = two_modes
    options = dict(n_chains=50, n_temperatures=300, random_state=0)
    exact = _enumeration.exact_log_partition(model._model())
    with pytest.warns(UserWarning, match="AIS shows that ln Z is at least .* score_samples uses"):
        estimate = model.log_partition("raise", X=rows, **options)
    # From the rows, the chains never meet the other mode.
    assert estimate.value < exact - 10 and not estimate.trusted
    assert estimate.value < estimate.low <= exact
    assert estimate.high == np.inf
    assert model.log_partition_ == pytest.approx(exact, abs=1)


def test_scores_stay_and_warn_where_a_greater_estimate_is_known(two_modes, monkeypatch):
    model, rows = two_modes
    # The first estimate has too few temperatures to find the other mode.
    poor = model.log_partition
    few = dict(n_chains=5, n_temperatures=2)
    monkeypatch.setattr(model, "log_partition", lambda **options: poor(**few, **options))
    with pytest.warns(UserWarning, match="not to be trusted"):
        before = model.log_partition_
    monkeypatch.undo()
    better = model.log_partition("ais", n_temperatures=1000, random_state=0)
    assert better.low > before + 10
    row = rows[:1]
    with pytest.warns(UserWarning, match="ln Z is at least .* too high by .* nats or more"):
        scores = model.score_samples(row)
    np.testing.assert_array_equal(scores, -model.free_energy(row) - before)


# A10 is test_readme.py. A11, A13. Callbacks, an int, batches.


@every_estimator
def test_scikit_learns_scoring_monitor_records(estimator, X):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    frame = pd.DataFrame(X, columns=list("abcde"))
    monitor = callback.ScoringMonitor(
        scoring={"score": lambda model, X, y: model.score_samples(X).mean()}
    )
    model = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # names of columns, for example
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(monitor).fit(frame)
    log = monitor.get_logs().data_as_pandas
    of_fit, of_steps = (log["score"][(log["task_name"] == "fit") == of_fit] for of_fit in (1, 0))
    assert of_fit.tolist() == [pytest.approx(model.score_samples(frame).mean(), rel=1e-6)]
    assert len(of_steps) >= 2 and len(set(of_steps)) >= 2 and np.isfinite(of_steps).all()


def test_a_number_of_hidden_units_is_one_layer(X):
    model = TAPDBM(4, pretrain_max_iter=1, max_iter=2, random_state=0).fit(X)
    other = TAPDBM((4,), pretrain_max_iter=1, max_iter=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_[0], other.components_[0])
    assert clone(model).get_params()["hidden_layer_sizes"] == 4
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        TAPDBM(0).fit(X)


def test_infinite_rbm_refuses_batches_in_a_sentence(X):
    for source in (Batches(X), iter([X])):
        with pytest.raises(ValueError, match="needs all rows in memory.*SDCPRBM, which can"):
            InfiniteRBM().fit(source)


# A12. Public names only.


@every_estimator
def test_messages_have_public_names_only(estimator, X):
    model = clone(estimator).fit(X)
    weights = np.ones(len(X))
    calls = [
        lambda: model.sample(0),
        lambda: model.impute(X, how="no"),
        lambda: model.score(X, no_such=weights),
        lambda: model.fit(X, no_such=weights),
    ]
    for name in ("visible", "hidden"):
        if name in model.get_params():
            calls.append(lambda name=name: clone(model).set_params(**{name: 3}).fit(X))
    if hasattr(model, "partial_fit"):
        calls.append(lambda: model.partial_fit(X, no_such=weights))
    if hasattr(model, "log_partition"):
        calls.append(lambda: model.log_partition("no"))
    for call in calls:
        with pytest.raises((TypeError, ValueError)) as info:
            call()
        message = str(info.value)
        assert name_of(model) in message
        for private in ("Base", "Machine", "Stochastic", "sklearn_boltz.restricted", "._"):
            assert private not in message


def test_unit_laws_are_named_by_their_public_module():
    for name in units.__all__:
        assert getattr(units, name).__module__ == "sklearn_boltz.units"


# The package speaks of itself only when asked.


def test_importing_and_fitting_print_nothing(tmp_path):
    code = (
        "import numpy as np, sklearn_boltz as b\n"
        "X = np.random.default_rng(0).integers(2, size=(200, 4)); X[:, 1] = X[:, 0]\n"
        "b.FSLLDensity().fit(X)"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_installing_is_quiet():
    makefile = Path(__file__).parents[1] / "Makefile"
    if not makefile.exists():
        pytest.skip("the sources are not here")
    installs = [line for line in makefile.read_text().splitlines() if "pip install" in line]
    assert installs
    for line in installs:
        assert "$(QUIETLY)" in line, line


# A14. API pages say only what is true of their class.


def test_api_pages_of_displays_promise_no_estimator():
    jinja2 = pytest.importorskip("jinja2")
    path = Path(__file__).parents[1] / "doc" / "_templates" / "autosummary" / "class.rst"
    if not path.exists():
        pytest.skip("the sources are not here")
    environment = jinja2.Environment()
    environment.filters["underline"] = environment.filters["escape"] = str
    template = environment.from_string(path.read_text())

    def page(methods):
        return template.render(objname="Thing", module="m", methods=methods, common_methods=[])

    assert "every scikit-learn estimator has" not in page(["plot", "from_estimator"])
    assert "set_callbacks" in page(["fit", "get_params", "set_params"])
