"""RBMs and their ladders: rungs, ln Z, tracking and tempered training against enumeration."""

import pickle
import re
from copy import deepcopy
from functools import cache, partial

import numpy as np
import pytest
from contract.state import arrays_of, assert_same
from contract.state import parameters as weights_of
from scipy.special import expit, logsumexp
from sklearn.base import clone

from mean_field import layered_of
from oracles_rbm import random_dbm, small_layer
from private import SGD, Stream, Workers, _climb, _tracker, all_states, exact_log_partition
from private import RBMModel as Model
from private import SDCPLearner as Learner
from private import SDCPScheme as Scheme
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz.units import Bernoulli

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WORKERS = Workers(1)


@pytest.fixture(autouse=True)
def small_models_have_a_ladder(monkeypatch):
    monkeypatch.setattr(_tracker, "LADDER_WEIGHTS", 0)


# Models whose hidden states can be enumerated.


def small_model(kind, scale=0.8, seed=0, n_hidden=5):
    """A model of units of `small_layer`; D is a machine of three layers of bits."""
    if kind == "D":
        return layered_of(random_dbm((4, n_hidden, 3), scale, seed)).sides()
    rng = np.random.default_rng(seed)
    visible, hidden = small_layer(kind, rng), small_layer("B", rng, n_hidden)
    return Model(rng.normal(0, scale, (n_hidden, len(visible))), visible, hidden)


KINDS = ["BB", "CC", "G", "T", "S", "M", "D"]


def hidden_law(model):
    """All hidden states, and their probabilities with the visible units summed out."""
    H = all_states(model.hidden).astype(model.dtype)
    logs = model.hidden.log_weight(H) + model.visible.log_partition_sum(model.visible_field(H))
    return H, np.exp(logs - logsumexp(logs))


def exact_states(model, n_rows, seed):
    """Independent draws."""
    H, p = hidden_law(model)
    chosen = np.random.default_rng(seed).choice(len(p), size=n_rows, p=p)
    return model.visible.sample(model.visible_field(H[chosen]), Stream(seed + 1))


def parameters(model):
    return [np.asarray(model.weights), *model.visible.parameters().values(),
            *model.hidden.parameters().values()]  # fmt: skip


# ln Z.


@pytest.mark.parametrize(("kind", "n_chains"), [("BB", 20), *((kind, 100) for kind in KINDS)])
def test_log_partition_of_all_units(kind, n_chains):
    """Of each rung, within 5 standard errors: 8 cases, a false alarm of 1e-5 (20 chains: 5e-4)."""
    model, base = small_model(kind, scale=1.5), small_model(kind, seed=3).visible
    ladder = _climb.ladder_to(model, base, None, n_chains, Stream(1))
    found = _climb.ladder_estimate(ladder, 0.05, 2000, WORKERS)
    rungs = [exact_log_partition(rung.model) for rung in ladder.rungs]
    assert found.trusted and found.method == "ladder" and len(found.states) == n_chains
    assert 0 < found.std_err <= 0.05
    assert abs(found.value - rungs[-1]) < 5 * found.std_err
    assert np.abs(found.log_partitions - rungs).max() < 0.3
    # The first rung is of independent columns, and the sums start at its constant.
    assert found.log_partitions[0] == pytest.approx(rungs[0], abs=1e-12)


@pytest.mark.parametrize(
    ("n_chains", "limits", "why"),
    [(3, {}, "halves of the rounds differ"), (20, {"MIN_ARRIVALS": 10**9}, "only [0-9]+ states"),
     (20, {"MAX_STD_ERR": 0.01}, r"the standard error is 0\.02. nats")],
)  # fmt: skip
def test_an_estimate_that_is_not_trusted_says_why(n_chains, limits, why, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(f"sklearn_boltz.partition._ladder_record.{name}", value)
    model, base = small_model("BB", scale=1.5), small_model("BB", seed=3).visible
    ladder = _climb.ladder_to(model, base, None, n_chains, Stream(1))
    found = _climb.ladder_estimate(ladder, 1e-6, 1, WORKERS)
    assert not found.trusted and re.search(f"not to be trusted: .*{why}", found.verdict)


def opposite_modes(strength, tilt):
    """12 × 12 units with the modes x and 1 − x, the first the more probable by e^(24 tilt)."""
    rng = np.random.default_rng(0)
    x, s = (np.where(rng.permutation(12) < 6, 1.0, -1.0) for _ in range(2))
    weights = strength * np.outer(s, x)
    visible = Bernoulli(-weights.sum(axis=0) / 2 + tilt * x)
    return Model(np.asfortranarray(weights), visible, Bernoulli(-weights.sum(axis=1) / 2))


def two_patterns(strength, threshold):
    """12 × 12 units with two modes far from all else: half of the hidden units wait for each."""
    rng = np.random.default_rng(0)
    patterns = [np.where(rng.permutation(12) < 6, strength, -strength) for _ in range(2)]
    weights = np.asfortranarray(np.repeat(patterns, 6, axis=0))
    return Model(weights, Bernoulli(np.zeros(12)), Bernoulli(np.full(12, -strength * threshold)))


@pytest.mark.parametrize(
    "model", [opposite_modes(2.0, 0.2), two_patterns(3.0, 5)], ids=["behind a barrier", "narrow"]
)
def test_modes_are_found_however_late(model):
    """The ladder sets more rungs, and is right within 5 standard errors: a false alarm of 6e-7."""
    ladder = _climb.ladder_to(model, Bernoulli(np.zeros(12)), None, 100, Stream(0))
    found = _climb.ladder_estimate(ladder, 0.03, 1000, WORKERS)
    assert found.trusted and found.std_err <= 0.03 and len(ladder) > 2
    assert abs(found.value - exact_log_partition(model)) < 5 * found.std_err


def far_mode(strength):
    """16 × 14 units of which a tenth is on where annealing begins, and another mode, all on."""
    weights = np.full((14, 16), strength, order="F")
    visible, hidden = np.full(16, 0.3 - 7 * strength), np.full(14, -8 * strength)
    return Model(weights, Bernoulli(visible), Bernoulli(hidden))


@pytest.mark.parametrize(("strength", "is_found"), [(0.4, True), (0.7, False)])
def test_a_mode_that_annealed_chains_do_not_find(strength, is_found):
    """It has 99 % of the mass. Behind a barrier of 20 nats some chains stay there, which tells.

    At the lower barrier within 5 standard errors, a false alarm of 6e-7.
    """
    model, base = far_mode(strength), Bernoulli(np.full(16, -2.2))
    exact = exact_log_partition(model)
    ladder = _climb.ladder_to(model, base, None, 100, Stream(0))
    found = _climb.ladder_estimate(ladder, 0.05, None, WORKERS)
    assert found.trusted == is_found == (ladder.n_left() == 0) == np.isfinite(found.high)
    assert found.low <= exact + 1e-9
    if is_found:
        assert found.low < exact < found.high and abs(found.value - exact) < 5 * found.std_err
    else:
        # The states of the mode are few, and all of them are found: the sum is nearly ln Z.
        assert found.value == found.low > exact - 0.1
        assert "chains are still where they began" in found.verdict


# Tracking.


def bimodal(n_rows, n_features, share, seed=0, noise=0.05):
    """Rows near one of two patterns."""
    rng = np.random.default_rng(seed)
    first = np.arange(n_features) % 2
    patterns = np.stack([first, 1 - first])
    rows = patterns[(rng.random(n_rows) >= share).astype(int)]
    return np.abs(rows - (rng.random((n_rows, n_features)) < noise)).astype(float)


def table(n_rows=400, n_features=14, seed=0):
    """Bits of which some depend on others."""
    rng = np.random.default_rng(seed)
    causes = rng.integers(2, size=(n_rows, 4))
    X = causes[:, rng.integers(4, size=n_features)]
    return np.abs(X - (rng.random(X.shape) < 0.1)).astype(float)


def sdcp(**parameters):
    options = dict(n_components=14, learning_rate=0.05, batch_size=50, max_iter=6, random_state=0)
    return SDCPRBM(**(options | parameters))


def grown(**parameters):
    options = dict(max_components=4, n_model_samples=64, early_stopping=False, random_state=0)
    return InfiniteRBM(**(options | parameters))


def deep(**parameters):
    options = dict(pretrain_max_iter=0, max_iter=3, batch_size=50, random_state=0)
    return TAPDBM((14, 13), **(options | parameters))


def tap(**parameters):
    return TAPRBM(14, **(dict(max_iter=3, batch_size=50, random_state=0) | parameters))


def exact_likelihood(model, X, sample_weight=None):
    """Mean log-likelihood per row by enumeration."""
    scores = -model.free_energy(X) - exact_log_partition(model._model())
    return np.average(scores, weights=sample_weight)


def differences(model, X, n_epochs, weights=None):
    """What was tracked minus the truth, after each epoch."""
    model.set_params(max_iter=1, warm_start=True)
    found = []
    for _ in range(n_epochs):
        model.fit(X, sample_weight=weights)
        found.append(model.history_["log_likelihood"][-1] - exact_likelihood(model, X, weights))
    assert len(model.history_["log_likelihood"]) == n_epochs
    return np.array(found)


TRACKED = {
    "fast": sdcp(learning_rate=0.3),
    "dear": sdcp(learning_rate=0.3, track_likelihood=1.0),
    "TAP": TAPRBM(14, learning_rate=0.3, batch_size=50, random_state=0),
    "weights": sdcp(learning_rate=0.1),
}


@pytest.mark.parametrize("case", TRACKED)
def test_tracked_likelihood_is_near_the_truth(case):
    """In six seeds the greatest error of 25 epochs was .3, and the root mean square .06."""
    X, model = table(), clone(TRACKED[case])
    X = X.astype(np.float32) if case == "fast" else X
    weights = np.random.default_rng(1).integers(4, size=len(X)) if case == "weights" else None
    errors = differences(model, X, 15, weights)
    assert np.abs(errors).max() < 0.6 and np.sqrt(np.mean(errors**2)) < 0.2
    said = model.history_["log_likelihood_std_err"]
    assert 0.3 < np.sqrt(np.mean((errors / np.maximum(said, 1e-3)) ** 2)) < 3
    path = model.history_["log_likelihood"]
    assert path[-1] > path[0] + 0.7  # it has learned
    assert model.components_.dtype == X.dtype


def test_a_mode_that_the_ladder_misses_is_seen():
    """Here a training makes states that no chain from the data visits.

    The ladder alone was 20 nats off, and said that the training went well. In five seeds the
    greatest error was 1.
    """
    model = sdcp(n_components=15, learning_rate=0.1, track_likelihood=0.15)
    errors = differences(model, bimodal(600, 30, 0.7), 6)
    path = model.history_["log_likelihood"]
    assert path[-1] < path[0] - 5
    assert np.abs(errors).max() < 2


FOLLOWED = {"SDCPRBM": sdcp, "TAPRBM": tap, "TAPDBM": deep, "InfiniteRBM": grown}


@pytest.fixture(params=FOLLOWED)
def followed(request):
    """A function that makes an estimator of each kind."""
    return FOLLOWED[request.param]


@cache
def fit_of(make):
    """A fit that tests compare others with, and leave as it is."""
    return make().fit(table())


def ladder_of(model):
    return model._training.tracker.ladder


def assert_same_ladder(one, other):
    one, other = ladder_of(one), ladder_of(other)
    assert len(one) == len(other) >= 2
    for mine, own in zip(one.rungs, other.rungs, strict=True):
        np.testing.assert_array_equal(mine.states, own.states)
        for a, b in zip(parameters(mine.model), parameters(own.model), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.log_partitions(), other.log_partitions())
    assert one.stream.step == other.stream.step


def assert_ladder_is_right(model, **options):
    """Within 6 standard errors of the exact ln Z."""
    found = model.log_partition("ladder", random_state=0, **options)
    if isinstance(model, SDCPRBM):
        exact = model.log_partition("exact").value
    else:
        exact = exact_log_partition(model._model())
    assert found.trusted and abs(found.value - exact) < 6 * found.std_err
    return found


LIKELIHOODS = {"log_likelihood", "log_likelihood_std_err"}
HELD_OUT = {"validation_log_likelihood", "free_energy_gap"}


def test_the_parameters_are_the_same_with_and_without(followed):
    X, model = table(), fit_of(followed)
    other = followed(track_likelihood=False).fit(X)
    np.testing.assert_array_equal(weights_of(model), weights_of(other))
    # Of a few units the likelihood is exact, and there in any case.
    few = isinstance(model, InfiniteRBM)
    assert model.history_.keys() - other.history_.keys() == (set() if few else LIKELIHOODS)
    assert other._training.tracker is None
    assert abs(model.history_["log_likelihood"][-1] - exact_likelihood(model, X)) < 0.3
    dear = followed(track_likelihood=8.0).fit(X)
    np.testing.assert_array_equal(weights_of(model), weights_of(dear))
    assert ladder_of(model).n_rounds < ladder_of(dear).n_rounds
    stopped = followed(track_likelihood=False, early_stopping=True).fit(X)
    assert LIKELIHOODS | HELD_OUT <= stopped.history_.keys()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_same_bits_whatever_the_threads(followed, monkeypatch):
    """Also of mini-batches, samples and chains that two threads share: 150 rows and more."""
    monkeypatch.setattr("sklearn_boltz.numerics._threads.MIN_WORK", 1)  # they are worth their while
    size = {"n_model_samples": 150} if followed is grown else {"batch_size": 200}
    one, other = (followed(n_jobs=n, track_likelihood=1.0, **size).fit(table()) for n in (1, 2))
    assert_same(one, other)
    assert_same_ladder(one, other)
    for uses in (
        lambda m: m.log_partition("ladder", max_rounds=1, random_state=0).value,
        lambda m: m.log_partition("ais", n_temperatures=30, random_state=0).value,
        lambda m: m.sample(200, init="ladder", n_steps=5, random_state=0),
    ):
        np.testing.assert_array_equal(uses(one), uses(other))


@pytest.mark.parametrize("make", [sdcp, tap, deep])
def test_a_fit_that_goes_on_is_a_longer_one(make):
    X, make = table(), partial(make, track_likelihood=8.0)  # which measures each epoch
    whole, model = make(max_iter=6).fit(X), make(max_iter=3, warm_start=True).fit(X)
    # Copies and pickles go on as well, and none has changed another.
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), model):
        other.fit(X)
        assert_same(whole, other)
        assert_same_ladder(whole, other)


# The ladder of a training.

ROWS = table(300)


@pytest.mark.parametrize("options", [{}, {"tempered": 0.5}])
def test_log_partition_after_partial_fit(options):
    model = sdcp(learning_rate=0.1, **options)
    for rows in (*np.split(table(600), 12), ROWS[:7]):
        model.partial_fit(rows)
    assert len(ladder_of(model)) >= 2
    assert assert_ladder_is_right(model).std_err < 0.1


@pytest.mark.parametrize(("factor", "n_chains"), [(1.0, 30), (1.3, 250)])
def test_log_partition_by_the_ladder_of_a_training(followed, factor, n_chains):
    """Also of a model that was changed since."""
    model = deepcopy(fit_of(followed))
    for weights in arrays_of(model):
        weights *= factor if weights.ndim == 2 else 1
    found = assert_ladder_is_right(model, n_chains=n_chains)
    assert 0 < found.std_err <= 0.05 and len(found.states) == n_chains
    top = ladder_of(model).rungs[-1].model
    assert _climb.same_parameters(top, model._model()) == (factor == 1)
    again = model.log_partition("ladder", n_chains=n_chains, random_state=0)
    assert again.value == found.value


@pytest.mark.parametrize(
    ("columns", "tempered"), [("gaussian", 0.5), ("nominal", 0), ("truncated_gaussian", 0)]
)
def test_log_partition_of_trained_units(columns, tempered):
    rng = np.random.default_rng(0)
    X = rng.random((200, 3)) + rng.integers(2, size=(200, 1))
    if columns == "nominal":
        X = (rng.integers(3, size=(200, 1)) + (rng.random((200, 8)) < 0.2)) % 3
    if columns == "truncated_gaussian":
        X = X / 2
    model = sdcp(columns=columns, tempered=tempered, learning_rate=0.02).fit(X)
    tracked = model.history_["log_likelihood"]
    assert np.isfinite(tracked[-1])
    if not tempered:
        exact = model.score_samples(X).mean()
        assert abs(tracked[-1] - exact) < 0.3
    found = assert_ladder_is_right(model)
    assert found.std_err < 0.4 / 6 and abs(found.log_partitions[-1] - found.value) < 1e-9


@pytest.mark.parametrize("most", [3, 4])
def test_no_more_rungs_than_allowed(most, monkeypatch):
    monkeypatch.setattr(_tracker, "MOST_RUNGS", most)
    lengths, follow = [], _tracker.Tracker.follow

    def noted(tracker, *args):
        follow(tracker, *args)
        lengths.append(len(tracker.ladder or ()))  # none where it has been given up

    monkeypatch.setattr(_tracker.Tracker, "follow", noted)
    sdcp(learning_rate=0.3, track_likelihood=5.0, n_components=30).fit(table(600, 40))
    assert max(lengths) == most


# The negative phase from the ladder.


def literal_step(learner, V, tempered, rate):
    """One mini-batch with a part of the negative phase from other chains, line by line."""
    scheme, nu = learner.scheme, learner.scheme.offset_rate
    W, b, c = learner.weights.copy(), learner.visible.intercept, learner.hidden.intercept
    mu, lam = learner.visible_offset, learner.hidden_offset
    stream, part = Stream(5), scheme.tempered
    if not scheme.centered:
        mu, lam, nu = 0 * mu, 0 * lam, 0.0

    def transition(V):
        h = (stream.uniform((len(V), len(c))) < expit(V @ W.T + c)).astype(float)
        return (stream.uniform(V.shape) < expit(h @ W + b)).astype(float)

    H = expit(V @ W.T + c)
    ascent, chains = None, V.copy()
    for _ in range(scheme.n_inner):
        if part == 1:
            stream.take(2 * scheme.n_gibbs)  # of chains that are not there
        else:
            for _ in range(scheme.n_gibbs):
                chains = transition(chains)
        tempered = transition(tempered)
        mu, lam = mu + nu * (V.mean(axis=0) - mu), lam + nu * (H.mean(axis=0) - lam)
        slopes = np.zeros_like(W), np.zeros_like(b), np.zeros_like(c)
        for share, rows in ((1 - part, chains), (part, tempered)):
            means = expit(rows @ W.T + c)
            products = (means - lam).T @ (rows - mu) / len(rows)
            moments = products, rows.mean(axis=0), means.mean(axis=0)
            slopes = [slope + share * moment for slope, moment in zip(slopes, moments, strict=True)]
        if ascent is None:
            ascent = (H - lam).T @ (V - mu) / len(V)
        step = rate * (ascent - slopes[0])
        b = b + rate * (V.mean(axis=0) - slopes[1]) - lam @ step
        c = c + rate * (H.mean(axis=0) - slopes[2]) - step @ mu
        W = W + step
    return W, b, c, tempered


@pytest.mark.parametrize(
    ("shape", "centered", "fraction", "n_rows", "n_chains"),
    [
        ((3, 2), True, 0.5, 30, 30), ((3, 2), False, 0.2, 30, 12), ((1, 1), True, 0.2, 1, 30),
        ((1, 1), False, 0.5, 12, 30), ((3, 2), True, 1.0, 30, 12),
        ((3, 2), True, "persistent", 12, 30), ((1, 1), False, "persistent", 30, 12),
    ],
)  # fmt: skip
def test_a_tempered_mini_batch_is_the_literal_one(shape, centered, fraction, n_rows, n_chains):
    rng, persistent = np.random.default_rng(1), fraction == "persistent"
    V, tempered = ((rng.random((n, 9)) < 0.4).astype(float) for n in (n_rows, n_chains))
    scheme = Scheme(
        n_inner=shape[0], n_gibbs=shape[1], centered=centered, offset_rate=0.1,
        persistent=persistent, tempered=1.0 if persistent else fraction,
    )  # fmt: skip
    W, b, c = rng.normal(size=(5, 9)), rng.normal(size=9), rng.normal(size=5)
    learner = Learner(W, Bernoulli(b), Bernoulli(c), rng.random(9), scheme, SGD(0.0), Stream(5))
    learner.tempered = tempered.copy()
    expected = literal_step(deepcopy(learner), V, tempered, 0.3)
    learner.learn(learner.in_memory(V), 0.3, WORKERS)
    for mine, theirs in zip(learner.parameters(), expected, strict=False):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    np.testing.assert_array_equal(learner.tempered, expected[-1])
    assert learner.chains is None


def in_first_mode(V):
    """Whether rows are closer to the first of the patterns of `bimodal`."""
    V = np.asarray(V)
    return V @ np.where(np.arange(V.shape[1]) % 2, 1, -1) > 0


def test_tempered_training_finds_the_shares_of_modes():
    """Of 12 seeds off by .05 at most; of the samples 5 standard errors, a false alarm of 6e-7."""
    X = bimodal(600, 14, 0.7)
    model = sdcp(tempered=0.5, learning_rate=0.02, max_iter=20).fit(X)
    share = in_first_mode(exact_states(model._model(), 20_000, 0)).mean()
    assert abs(share - in_first_mode(X).mean()) < 0.12
    samples = in_first_mode(model.sample(400, init="ladder", n_steps=400, random_state=0))
    assert abs(samples.mean() - share) < 5 * np.sqrt(share * (1 - share) * (1 / 400 + 1 / 20_000))
    assert exact_likelihood(model, X) > -4  # of independent columns: -9
    # The parameters are those of the best epoch.
    path, best = model.history_["log_likelihood"], model._training.best
    assert path[best["epoch"] - 1] > path.max() - 0.5
    assert abs(best["score"] - exact_likelihood(model, X)) < 0.5
    for mine, own in zip(model._training.learner.parameters(), best["parameters"], strict=True):
        np.testing.assert_array_equal(mine, own)


# Samples of the ladder.


def test_samples_come_from_both_modes_by_their_shares():
    """Within 5 standard errors of independent chains: a false alarm of 6e-7."""
    estimator = sdcp(n_components=12, max_iter=1, learning_rate=1e-6).fit(table(100, 12))
    model = opposite_modes(2.0, 0.05)
    estimator.components_ = model.weights
    estimator.intercept_visible_ = model.visible.intercept
    estimator.intercept_hidden_ = model.hidden.intercept
    H, p = hidden_law(model)
    first = H[p.argmax()]
    share = p @ (np.abs(H - first).sum(axis=1) < 6)
    assert 0.6 < share < 0.95
    V = estimator.sample(400, init="ladder", n_steps=100, random_state=1)
    assert V.shape == (400, 12) and set(np.unique(V)) == {0, 1}
    near = np.abs(estimator.mean_hidden(V) - first).sum(axis=1) < 6
    error = np.sqrt(share * (1 - share) / 400)
    assert abs(near.mean() - share) < 5 * error
    again = estimator.sample(400, init="ladder", n_steps=100, random_state=1)
    np.testing.assert_array_equal(V, again)
