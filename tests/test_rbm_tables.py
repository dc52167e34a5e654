"""Tables of bits, categories and real numbers in the RBM estimators."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from contract.estimators import MACHINES, UNLABELLED, as_public, each, each_with
from contract.state import assert_goes_on
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from oracles_rbm import slopes, small_layer
from private import SGD, SHAPE_RATE, Stream, exact_log_partition
from private import RBMModel as Model
from private import SDCPLearner as Learner
from private import SDCPScheme as Scheme
from sklearn_boltz import SDCPRBM, InfiniteRBM, RBMClassifier
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Bernoulli, Categorical, Gaussian, Stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DEGREES = {"Oslo": 6.0, "Rome": 16.0, "Cairo": 22.0}


def weather(n=120, seed=0):
    """A table with a column of each kind; cities and degrees depend on each other."""
    rng = np.random.default_rng(seed)
    city = rng.choice(list(DEGREES), n)
    return pd.DataFrame({
        "wet": rng.random(n) < 0.3,
        "city": city,
        "degrees": [DEGREES[c] for c in city] + rng.normal(size=n),
        "sex": pd.Categorical(rng.choice(["m", "f"], n), ["m", "f"]),
        "level": rng.integers(1, 5, n),
    })  # fmt: skip


def mixed(estimator, **parameters):
    return clone(estimator).set_params(columns={"degrees": "gaussian"}, **parameters)


# The first two learn from batches as well.
@each_with("form", [np.asarray, "batches", csr_array, np.float32], MACHINES)
def test_whole_numbers_of_an_array_are_read_as_those_of_a_frame(estimator, form):
    X = np.random.default_rng(0).integers([2, 3, 5, 200], size=(90, 4))
    frame, new = pd.DataFrame(X), np.array([[1, 2, 4, 150], [0, 2, 7, 30], [1, 0, 1, 999]])
    y = [X[:, 0]] if isinstance(estimator, RBMClassifier) else []
    expected = as_public(estimator).fit(frame, *y)
    if form == "batches":
        model = clone(estimator).fit(Batches([X[:40], X[40:]]))
        expected = clone(estimator).fit(Batches([frame[:40], frame[40:]]))
    else:
        model = as_public(estimator).fit(form(X), *y)
    assert list(model.columns_.values()) == ["binary", "nominal", "nominal", "binned"]
    assert str(model.components_) == str(expected.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, and of what is unseen
        scores, same = model.score_samples(new), expected.score_samples(pd.DataFrame(new))
    # A column of 0 and 1 in a frame may have other values.
    assert_allclose(scores - same, (scores - same)[0], rtol=1e-6, atol=1e-6)
    assert set(model.sample(50, random_state=0)[:, 2]) <= set(range(5))
    if form is csr_array:
        assert_allclose(model.score_samples(form(X)), model.score_samples(X))


FORMS = ["array", "gaps", "frame", "CSR", "batches", "frames", "one batch"]


@pytest.mark.parametrize("form", FORMS)
def test_bits_are_called_binary_and_other_numbers_of_units_probabilities(form):
    X = np.random.default_rng(0).integers(2, size=(60, 3)).astype(float)
    X[50, 1] = 1 if form in ("frame", "frames") else 0.5  # in frames, fractions go to bins
    kinds = ["binary", "probability", "binary"] if X[50, 1] == 0.5 else ["binary"] * 3
    stored = csr_array(X + 2)  # with zeros among what is stored
    stored.data -= 2
    table = {
        "gaps": np.where(np.eye(60, 3) == 1, np.nan, X), "frame": pd.DataFrame(X),
        "CSR": stored, "batches": Batches([X[:30], csr_array(X[30:])]),
        "frames": Batches([pd.DataFrame(X[:30]), pd.DataFrame(X[30:])]),
    }.get(form, X)  # fmt: skip
    for columns in ("auto", "probability"):
        model = SDCPRBM(2, columns=columns, max_iter=1, random_state=0)
        model = model.partial_fit(table) if form == "one batch" else model.fit(table)
        expected = kinds if columns == "auto" else ["probability"] * 3
        assert list(model.columns_.values()) == expected
    again = clone(model).set_params(columns="auto").fit(np.rint(X))
    other = clone(model).set_params(columns=again.columns_).fit(np.rint(X))
    assert_array_equal(other.components_, again.components_)


@each(UNLABELLED)
def test_numbers_of_an_array_that_are_categories(estimator):
    """Numbers that are called categories are as good as words, and come back as they were."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([10, 20, 70], 60), rng.integers(2, size=60)])
    model = clone(estimator).set_params(columns={0: "nominal"}, unseen="missing").fit(X)
    assert model.visible_names_.tolist() == ["x0=10", "x0=20", "x0=70", "x1"]
    drawn = model.sample(20, 0)
    assert drawn.dtype == X.dtype and set(drawn[:, 0]) <= {10, 20, 70}
    words = pd.DataFrame({"a": [f"v{v}" for v in X[:, 0]], "b": X[:, 1]})
    other = clone(estimator).set_params(unseen="missing").fit(words)
    assert_allclose(model.score_samples(X), other.score_samples(words), rtol=1e-6)
    codes = np.column_stack([np.searchsorted([10, 20, 70], X[:, 0]), X[:, 1]])
    units = Stacked([Categorical([3]), Bernoulli(np.zeros(1))])
    drawn = clone(estimator).set_params(columns=units).fit(codes).sample(20, 0)
    assert set(drawn[:, 0]) <= {0, 1, 2}


# All verbs.


def small(columns="auto", hidden="bernoulli", **parameters):
    """A model with weights of some size of a small table, and the table."""
    X = weather(40)[["wet", "city", "degrees"]]
    if columns == "auto":
        X = X.drop(columns="degrees")
    parameters = {"max_iter": 1, "unseen": "missing", "random_state": 0, **parameters}
    model = SDCPRBM(3, columns=columns, hidden=hidden, **parameters).fit(X)
    rng = np.random.default_rng(5)
    model.components_ = rng.normal(size=model.components_.shape).astype(model.components_.dtype)
    return model, X


def test_probabilities_of_categories_sum_to_one():
    model, X = small()
    states = pd.DataFrame(product([False, True], DEGREES), columns=X.columns)
    log_p = model.score_samples(states)
    p = np.exp(log_p)
    assert p.sum() == pytest.approx(1)
    assert model.entropy() == pytest.approx(-(p @ log_p))
    # The pseudo-likelihood is a softmax over the values of each column.
    table = p.reshape(2, 3)
    conditional = np.log(table / table.sum(axis=0)) + np.log(table / table.sum(axis=1)[:, None])
    order = states["city"].map(list(DEGREES).index).to_numpy()
    expected = conditional[states["wet"].astype(int), order]
    assert_allclose(model.log_pseudo_likelihood(states), expected, rtol=1e-5)
    proba = model.predict_column_proba(states, "city")
    rows = [table[int(wet)] / table[int(wet)].sum() for wet in states["wet"]]
    cairo_first = [list(DEGREES).index(c) for c in sorted(DEGREES)]
    assert_allclose(proba, np.array(rows)[:, cairo_first], rtol=1e-5)


@pytest.mark.parametrize("hidden", ["bernoulli", ("categorical", 3), "truncated_gaussian"])
def test_densities_are_those_of_the_columns_of_the_table(hidden):
    """Over all values of a mixed row, densities on the scale of the table integrate to 1."""
    model, _ = small({"degrees": "gaussian"}, hidden)
    grid = np.linspace(-80, 110, 1500)
    rows = [(w, c, d) for w in (False, True) for c in DEGREES for d in grid]
    X = pd.DataFrame(rows, columns=["wet", "city", "degrees"])
    if hidden == "truncated_gaussian":  # ln Z of a continuum is an estimate
        estimate = model.log_partition("ais", n_chains=200, random_state=0)
        log_p = -model.free_energy(X) - estimate.value
        assert np.exp(log_p).sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=0.05)
        return
    total = np.exp(model.score_samples(X)).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1, abs=1e-4)
    # Of rows without degrees, the sum over these.
    some = X.iloc[:: len(grid)].assign(degrees=np.nan)
    marginal = np.exp(model.score_samples(X)).reshape(6, -1).sum(axis=1) * (grid[1] - grid[0])
    assert_allclose(np.exp(model.score_samples(some)), marginal, rtol=1e-3)
    mean = (model.sample(4000, 0, given={"wet": True})["degrees"]).mean()
    density = np.exp(model.score_samples(X))[X["wet"]]
    expected = (density * X["degrees"][X["wet"]]).sum() / density.sum()
    # Off by 5 standard errors once in a million times.
    error = X["degrees"].std() / np.sqrt(4000)
    assert mean == pytest.approx(expected, abs=5 * error)


# Training.


@pytest.mark.parametrize("kinds", ["BC-B", "B-C", "M-B", "T-B", "B-G"])
def test_the_mean_step_points_along_the_gradient(kinds, workers):
    """Unbiased for the exact gradient: 5 errors of 300 steps are exceeded once in 100,000 runs."""
    rng, centered = np.random.default_rng(3), kinds != "BC-B"
    visible, hidden = (small_layer(kind, rng) for kind in kinds.split("-"))
    weights = 0.5 * rng.normal(size=(len(hidden), len(visible)))
    other = visible.astype(float)
    for part, _ in other.parts():  # data from elsewhere
        part.intercept += 0.7 * rng.normal(size=len(part))
    data = other.sample(np.zeros((300 * 50, len(visible))), Stream(7)).reshape(300, 50, -1)
    offset, rate, steps = data.mean(axis=(0, 1)), 1e-4, []
    scheme = Scheme(n_inner=1, n_gibbs=25, centered=centered)
    for seed, V in enumerate(data):
        learner = Learner(
            np.asfortranarray(weights), visible.astype(float), hidden.astype(float),
            offset.copy(), scheme, SGD(), Stream(seed),
        )  # fmt: skip
        before = [a.copy() for a in learner.parameters()]
        learner.learn(learner.in_memory(V), rate, workers)
        pairs = zip(learner.parameters(), before, strict=True)
        steps.append(np.concatenate([(a - b).ravel() / rate for a, b in pairs]))
    model, rows = Model(weights, visible, hidden), data.reshape(-1, len(visible))
    expected = expected_steps(model, rows, offset if centered else None)
    error = np.std(steps, axis=0) / np.sqrt(len(steps))
    assert (np.abs(np.mean(steps, axis=0) - expected) < 5 * error + 2e-3).all()


def slopes_of_log_likelihood(model, rows):
    """By finite differences: of the weights, and {side: {name of a parameter: slopes}}."""
    model = Model(model.weights.copy(), model.visible.astype(float), model.hidden.astype(float))

    def log_likelihood():
        return -model.free_energy(rows).mean() - exact_log_partition(model)

    of_units = [
        {name: slopes(log_likelihood, values) for name, values in units.parameters().items()}
        for units in (model.visible, model.hidden)
    ]
    return slopes(log_likelihood, model.weights), of_units


def expected_steps(model, rows, offset):
    """The steps that gradients by finite differences make of centred or ordinary coordinates."""
    weights, visible, hidden = model
    of_weights, of_units = slopes_of_log_likelihood(model, rows)
    mu, lam = np.zeros(len(visible)), np.zeros(len(hidden))
    if offset is not None:
        mu, lam = offset, np.full(len(hidden), 0.5)
        if not hidden.is_binary:
            lam = hidden.mean(np.zeros(len(hidden)))
        # The learner's hidden offset has moved a little towards the mean of the batch.
        lam = lam + Scheme().offset_rate * (model.mean_hidden(rows).mean(axis=0) - lam)

    def parts(side):
        """The parts of a layer: unit type, columns, names of parameters in the layer."""
        units = (visible, hidden)[side]
        for k, (part, columns) in enumerate(units.parts()):
            stacked = isinstance(units, Stacked)
            yield part, columns, {key: (k, key) if stacked else key for key in part.parameters()}

    biases = [np.zeros(len(visible)), np.zeros(len(hidden))]
    for side in (0, 1):
        for _, columns, names in parts(side):
            biases[side][columns] = of_units[side][names["intercept"]]
    step_W = of_weights - np.outer(lam, biases[0]) - np.outer(biases[1], mu)
    step = biases[0] - lam @ step_W, biases[1] - step_W @ mu
    steps = [step_W.ravel(order="C")]
    for side in (0, 1):
        for part, columns, names in parts(side):
            for key, name in names.items():
                slope = of_units[side][name]
                if key == "intercept":
                    steps.append(step[side][columns])
                elif isinstance(part, Gaussian):  # along the logarithm
                    steps.append(SHAPE_RATE * part.precision**2 * slope)
                else:
                    steps.append(SHAPE_RATE * slope)
    return np.concatenate(steps)


@pytest.mark.parametrize(
    "X",
    [
        np.full((30, 1), 7.0), np.array([[2000.5, 1.0]]), np.repeat([[1.0, 1e6]], 20, axis=0),
        np.column_stack([np.arange(20.0) + 1.7e9, np.tile([0.0, 1.0], 10)]),
        np.column_stack([np.arange(20.0) * 1e-9, np.full(20, -3.0)]),
    ],
    ids=["constant", "single row", "equal rows", "seconds", "tiny"],
)  # fmt: skip
def test_real_columns_that_are_hard(X):
    dtype = np.float32 if len(X) == 20 else np.float64
    X = X.astype(dtype)
    model = SDCPRBM(3, columns="gaussian", random_state=0, max_iter=30).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    drawn = model.sample(50, 0)
    assert np.isfinite(drawn).all() and drawn.dtype == dtype
    assert np.isfinite(list(model.history_["reconstruction_error"])).all()
    model.partial_fit(X[:1])
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"hidden": ("categorical", 3), "chains": "persistent"},
        {"hidden": "truncated_gauss_bernoulli"},
    ],
    ids=str,
)  # fmt: skip
def test_a_fit_goes_on_as_if_it_had_not_ended(parameters):
    # As much as this may cost, the likelihood is measured after each epoch.
    assert_goes_on(mixed(UNLABELLED[0], track_likelihood=20.0, **parameters), weather(40))


# Growing, refining and pictures.


def test_a_growing_model_of_categories_learns_them_exactly():
    """All 9 states are enumerated, so that no noise is in the way of the likelihood."""
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=600)
    b = np.where(rng.random(600) < 0.8, a, rng.integers(3, size=600))
    X = pd.DataFrame({"a": np.array(list("xyz"))[a], "b": np.array(list("uvw"))[b]})
    p = np.histogram2d(a, b, bins=3)[0] / 600
    best, independent = (p * np.log(p)).sum(), (p * np.log(np.outer(p.sum(1), p.sum(0)))).sum()
    model = InfiniteRBM(6, early_stopping=False, unseen="missing", random_state=0).fit(X)
    assert model.score(X) > independent + 0.9 * (best - independent)
    assert model.history_["log_likelihood"][-1] == pytest.approx(model.score(X), abs=1e-4)


@pytest.mark.parametrize(("method", "sign"), [("ais", 1), ("raise", -1)])
def test_log_weights_are_on_the_scale_of_the_table(method, sign):
    """As ln Z, which is plus or minus the logarithm of their mean."""
    X = np.random.default_rng(0).normal(0, 100, (60, 2))
    model = SDCPRBM(2, columns="gaussian", max_iter=1, random_state=0).fit(X)
    found = model.log_partition(method, n_chains=50, n_temperatures=5, random_state=0)
    mean = np.logaddexp.reduce(found.log_weights) - np.log(50)
    assert found.value == pytest.approx(sign * mean)
    assert found.value == pytest.approx(model.log_partition_, abs=1)


def test_early_stopping_measures_on_the_scale_of_the_table():
    X = weather(300).assign(degrees=lambda X: 1e3 * X["degrees"])
    for estimator in (UNLABELLED[0], UNLABELLED[1]):
        model = mixed(estimator, early_stopping=0.5).fit(X)
        assert abs(model.history_["validation_log_likelihood"].max() - model.score(X)) < 0.6


def test_units_for_all_columns_have_as_many_codes_as_states():
    model = SDCPRBM(2, columns=Categorical([3, 4], np.zeros(7)), max_iter=1)
    model.fit(np.column_stack([np.arange(60) % 3, np.arange(60) % 4]))
    with pytest.warns(UserWarning, match="outside the whole numbers from 0 to 2"):
        found = model.score_samples([[3, 0]])
    assert_allclose(found, model.score_samples([[2, 0]]))


def test_the_mean_of_a_single_bin_is_its_number():
    X = pd.DataFrame({"seven": np.resize([7.0, np.nan], 40), "bit": np.arange(40) % 2})
    model = SDCPRBM(2, columns={"seven": "binned"}, max_iter=1).fit(X)
    assert_allclose(model.impute(X, how="mean")["seven"], 7)


def test_units_for_all_columns_take_two_categories():
    X = np.array([["a", "x"], ["b", "y"]] * 10, dtype=object)
    model = SDCPRBM(2, columns=Bernoulli(np.zeros(2)), max_iter=1).fit(X)
    assert model.components_.shape == (2, 2)
    with pytest.raises(ValueError, match="column 1 has 3 categories, .* have 2 values"):
        SDCPRBM(2, columns=Bernoulli(np.zeros(2))).fit(np.append(X, [["a", "z"]], axis=0))
