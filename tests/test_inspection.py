"""Pictures: what they show, not how they look."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM
from sklearn.utils import Bunch

from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    statistics,
)
from sklearn_boltz.datasets import make_bars_and_stripes
from sklearn_boltz.inspection import (
    CouplingDisplay,
    HistoryDisplay,
    LadderDisplay,
    LandscapeDisplay,
    MomentsDisplay,
    PairEffectDisplay,
    ReceptiveFieldDisplay,
    SampleDisplay,
)

pytestmark = pytest.mark.usefixtures("closed_figures")


@pytest.fixture(scope="module")
def neurons():
    """Rare spikes with a common cause."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(2000, 6)) + rng.normal(size=(2000, 1)) > 1.2).astype(int)


@pytest.fixture(scope="module")
def network(neurons):
    return FVBMPseudoLikelihood(solver="bslm", alpha=0.01).fit(neurons)


@pytest.fixture(scope="module")
def rbm():
    model = SDCPRBM(6, learning_rate=0.3, batch_size=4, max_iter=5, early_stopping=0.3,
                    random_state=0)  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        return model.fit(make_bars_and_stripes(3))


def test_without_matplotlib(network, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for make, of in ((CouplingDisplay.from_estimator, network), (SampleDisplay.from_rows, [[1]])):
        with pytest.raises(ImportError, match="pip install matplotlib"):
            make(of)


def test_history(network, rbm):
    display = HistoryDisplay.from_estimator(network, label="network", show_increase=True)
    values = network.history_["log_pseudo_likelihood"]
    assert_array_equal(display.line_.get_ydata(), values)
    assert_array_equal(display.line_.get_xdata(), np.arange(1, network.n_iter_ + 1))
    assert_array_equal(display.increase_line_.get_ydata(), np.diff(values))
    assert display.increase_ax_.get_yscale() == "log"
    second = HistoryDisplay.from_estimator(
        rbm, label="RBM", key="log_likelihood", ax=display.ax_, show_increase=True
    )
    assert second.ax_ is display.ax_ and second.increase_ax_ is display.increase_ax_
    assert_array_equal(second.increase_line_.get_xdata(), [2, 3, 4, 5])
    legend = [text.get_text() for text in second.ax_.get_legend().get_texts()]
    assert legend == ["network", "RBM"]


@pytest.mark.parametrize(
    ("key", "ylabel"), [(None, "validation log-likelihood"), ("free_energy_gap", "free-energy gap")]
)
def test_learning_curves(rbm, key, ylabel):
    """Epochs that were not measured are left out."""
    history = {name: a.copy() for name, a in rbm.history_.items()}
    values = history[key or "validation_log_likelihood"]
    values[[1, 3]] = np.nan
    estimator = SDCPRBM()
    vars(estimator).update(vars(rbm) | {"history_": history})
    for against, at in ("iteration", [1, 3, 5]), ("seconds", history["seconds"].cumsum()[::2]):
        display = HistoryDisplay.from_estimator(estimator, key, against=against)
        assert_allclose(display.line_.get_xdata(), at)
        assert_array_equal(display.line_.get_ydata(), values[::2])
    assert display.ax_.get_ylabel() == ylabel
    # The dashed curve is there only if it is asked for.
    assert display.increase_ax_ is None and len(display.figure_.axes) == 1


def band(collection):
    """Least and greatest ordinate of a band at each abscissa."""
    vertices = collection.get_paths()[0].vertices
    at = np.unique(vertices[:, 0])
    heights = [vertices[vertices[:, 0] == x, 1] for x in at]
    return at, np.array([(h.min(), h.max()) for h in heights]).T


def test_log_likelihoods_have_a_band(rbm, key="validation_log_likelihood"):
    assert HistoryDisplay.from_estimator(rbm, key).band_ is None  # exact
    history = {**rbm.history_, "log_likelihood_std_err": np.array([0.0, 0.1, 0.2, 0.3, 0.1])}
    estimator = SDCPRBM()
    vars(estimator).update(vars(rbm) | {"history_": history})
    display = HistoryDisplay.from_estimator(estimator, key, color="C3")
    at, (low, high) = band(display.band_)
    assert_array_equal(at, [1, 2, 3, 4, 5])
    assert_allclose(low, history[key] - 2 * history["log_likelihood_std_err"])
    assert_allclose(high, history[key] + 2 * history["log_likelihood_std_err"])
    assert_allclose(display.band_.get_facecolor()[0, :3], to_rgb("C3"))
    assert HistoryDisplay.from_estimator(estimator, "log_pseudo_likelihood").band_ is None


def shown(display):
    """The images of a grid, as arrays."""
    return np.array([image.get_array().filled(np.nan) for image in display.images_])


def test_receptive_fields_by_spread(rbm):
    display = ReceptiveFieldDisplay.from_estimator(rbm, n_units=4)
    order = np.argsort(-rbm.components_.std(axis=1))[:4]
    assert_array_equal(display.units, order)
    assert_array_equal(display.rank, rbm.components_.std(axis=1)[order])
    assert_array_equal(shown(display), rbm.components_[order].reshape(4, 3, 3))
    limit = np.quantile(np.abs(rbm.components_[order]), 0.99)
    for image in display.images_:
        assert_allclose(image.get_clim(), (-limit, limit))
    assert display.colorbar_.extend == "both"
    options = {"order": None, "image_shape": (1, 9), "colorbar": False, "limit": 50.0}
    plain = ReceptiveFieldDisplay.from_estimator(rbm, **options)
    assert_array_equal(shown(plain)[:, 0], rbm.components_)
    assert plain.rank is None and plain.colorbar_ is None


def test_receptive_fields_of_other_estimators():
    X = make_bars_and_stripes(3)
    estimator = BernoulliRBM(3, random_state=0).fit(X)
    display = ReceptiveFieldDisplay.from_estimator(estimator, order=None)
    assert_array_equal(shown(display), estimator.components_.reshape(3, 3, 3))
    estimator.components_[:] = 0
    assert ReceptiveFieldDisplay.from_estimator(estimator).images_[0].get_clim() == (-1, 1)
    deep = TAPDBM((4, 2), max_iter=1, pretrain_max_iter=1, random_state=0).fit(X)
    display = ReceptiveFieldDisplay.from_estimator(deep, X, order="activity")
    assert_array_equal(display.units, np.argsort(-deep.mean_hidden(X)[0].mean(axis=0)))
    assert_array_equal(shown(display).reshape(4, 9), deep.components_[0][display.units])


def test_samples(rbm):
    display = SampleDisplay.from_estimator(rbm, 7, random_state=0, sample_kw={"n_steps": 3})
    expected = rbm.sample(7, random_state=0, n_steps=3)
    assert_array_equal(shown(display), expected.reshape(7, 3, 3))
    assert display.images_[0].get_clim() == (0, 1)
    assert display.names is None and len(display.ax_.get_yticks()) == 0
    for model in (FVBMPseudoLikelihood(alpha=0.01), FSLLDensity()):
        model.fit(make_bars_and_stripes(3))
        assert set(np.unique(SampleDisplay.from_estimator(model, 9).rows)) <= {0, 1}
    assert SampleDisplay.from_rows(2 * expected - 1).images_[0].get_clim() == (-1, 1)
    assert SampleDisplay.from_rows(expected, limits=(-3, 3)).images_[0].get_clim() == (-3, 3)


def test_named_lines_and_missing_values():
    truth = make_bars_and_stripes(3)[:4].astype(float)
    given = truth.copy()
    given[:, 5:] = np.nan
    display = SampleDisplay.from_rows({"truth": truth, "given": given}, missing="red")
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == display.names == ["truth", "given"]
    assert_array_equal(shown(display), np.vstack([truth, given]).reshape(8, 3, 3))
    for line, center in enumerate(display.ax_.get_yticks()):
        for image in display.images_[4 * line : 4 * line + 4]:
            _, _, bottom, top = image.get_extent()
            assert_allclose((bottom + top) / 2, center)
    assert_array_equal(display.images_[4].cmap.get_bad(), [1, 0, 0, 1])
    figure, axes = plt.subplots(1, 2)
    again = display.plot(ax=axes[1])
    assert again is display and display.ax_ is axes[1] and display.figure_ is figure


def ladder_estimate(**changed):
    """What `log_partition("ladder")` returns."""
    figures = {
        "value": 5.0, "std_err": 0.3, "low": 4.4, "high": 5.6, "trusted": True, "verdict": "",
        "method": "ladder", "acceptances": np.array([0.5, 0.3, 0.8]),
        "log_partitions": np.array([1.0, 2.0, 4.0, 5.0]),
        "log_partition_errors": np.array([0.0, 0.1, 0.2, 0.3]),
    }  # fmt: skip
    return Bunch(**(figures | changed))


def test_ladder_of_a_model(rbm):
    display = LadderDisplay.from_estimator(rbm, random_state=0, n_chains=50, tol=0.2)
    expected = rbm.log_partition("ladder", random_state=0, n_chains=50, tol=0.2)
    assert_array_equal([bar.get_height() for bar in display.bars_], expected.acceptances)
    assert_array_equal(display.line_.get_ydata(), expected.log_partitions)
    at, (low, high) = band(display.band_)
    assert_array_equal(at, np.arange(len(expected.log_partitions)))
    assert_allclose(high - low, 4 * expected.log_partition_errors, atol=1e-12)
    # Errors add up from the first model, whose ln Z is known, to the last.
    assert abs(expected.log_partition_errors[0]) < 1e-12
    assert_allclose(expected.log_partition_errors[-1], expected.std_err)
    assert len(display.broken_) == 0 and not display.axes_["acceptance"].texts


def test_broken_ladder():
    estimate = ladder_estimate(
        acceptances=np.array([0.5, 0.001, 0.8]), trusted=False,
        log_partition_errors=np.array([0.0, 0.1, 1e250, 1e250]),
    )  # fmt: skip
    display = LadderDisplay(estimate).plot()
    assert_array_equal(display.broken_, [1])
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert colours[0] == colours[2] != colours[1]
    (mark,) = display.axes_["acceptance"].texts
    assert mark.get_text() == "broken" and mark.get_position()[0] == 1.5
    (name,) = display.axes_["log_partition"].get_legend().get_texts()
    assert "5.00" in name.get_text() and "not reliable" in name.get_text()
    # What is not known at all does not hide what is.
    display.figure_.canvas.draw()
    low, high = display.axes_["log_partition"].get_ylim()
    assert high - low < 20
    # Of a network, over the inverse temperatures, and without errors where none are known.
    del estimate["log_partition_errors"]
    estimate.betas = np.linspace(0, 1, len(estimate.log_partitions)) ** 2
    display = LadderDisplay(estimate).plot()
    assert_array_equal(display.line_.get_xdata(), estimate.betas)
    assert display.band_ is None
    assert display.axes_["acceptance"].get_xlabel() == "inverse temperature"


def test_landscape_shows_history_solutions_and_rows():
    X, y = load_digits(return_X_y=True)
    X, y = (X[:60] > 8).astype(float), y[:60]
    model = TAPRBM(8, learning_rate=0.2, max_iter=10, random_state=0).fit(X)
    display = LandscapeDisplay.from_estimator(model, X, y=y, bins=7)
    solutions = model.tap_solutions(X)
    training, histogram, plane = map(display.axes_.get, ("training", "free_energy", "map"))
    assert_array_equal(training.lines[0].get_ydata(), model.history_["free_energy"])
    # Each solution counts as often as rows reach it.
    assert sum(bar.get_height() for bar in histogram.patches) == 60
    rows, circles = plane.collections
    assert len(rows.get_offsets()) == 60
    assert len(circles.get_offsets()) == len(solutions.free_energy)
    # A solution that more rows reach has a larger circle.
    sizes = circles.get_sizes(), np.bincount(solutions.assignment)
    assert_array_equal(*(np.argsort(values, kind="stable") for values in sizes))
    # Colours of classes have a legend; solutions have none.
    legend = [text.get_text() for text in plane.get_legend().get_texts()]
    assert legend == [str(k) for k in np.unique(y)]
    few = LandscapeDisplay.from_estimator(model, X[:3])
    assert few.row_map.shape == (3, 2) and few.axes_["map"].get_legend() is None


def test_moments_are_those_of_rows_and_of_the_model(neurons):
    X = neurons
    model = MaximumEntropy().fit(X)
    display = MomentsDisplay.from_estimator(model, X, n_samples=20_000, random_state=0)
    moments, centred = display.moments, X - X.mean(axis=0)
    assert_allclose(moments.mean.data, X.mean(axis=0))
    j, k = np.triu_indices(6, 1)
    assert_allclose(moments.covariance.data, (centred.T @ centred / len(X))[j, k])
    assert_allclose(moments.triplet.data[0], centred[:, :3].prod(axis=1).mean())
    assert_allclose(moments.count.data, np.bincount(X.sum(axis=1), minlength=7) / len(X))
    assert_allclose(moments.count.independent.sum(), 1)
    rates = X.mean(axis=0)
    assert_allclose(moments.count.independent[[0, -1]], [np.prod(1 - rates), np.prod(rates)])
    # One of 21 moments of a model with the moments of the data is beyond 4 standard errors of the
    # samples once in 700 runs; those of the data come on top.
    assert display.z_scores("mean").max() < 4
    assert display.z_scores("covariance").max() < 4
    assert list(display.axes_) == ["mean", "covariance", "triplet", "count"]
    assert display.axes_["count"].get_yscale() == "log"
    few = MomentsDisplay.from_estimator(model, X, n_triplets=5, n_samples=50, random_state=0)
    assert 0 < len(few.moments.triplet.data) <= 5
    assert np.isin(few.moments.triplet.data.round(12), moments.triplet.data.round(12)).all()


def test_moments_of_one_column_and_of_words():
    X = pd.DataFrame({"a": ["no", "yes", "yes", "no"], "b": [0, 1, 2, 0]})
    model = FVBMPseudoLikelihood(alpha=0.1)
    display = MomentsDisplay.from_estimator(model.fit(X[["a"]]), X[["a"]], random_state=0)
    assert_allclose(display.moments.mean.data, [0.5])
    for panel in ("covariance", "triplet"):
        assert [text.get_text() for text in display.axes_[panel].texts] == ["too few columns"]
    with pytest.raises(ValueError, match=r"column 1 \('b'\) has the values 0, 1, 2"):
        MomentsDisplay.from_estimator(model.fit(X), X, random_state=0)


@pytest.fixture(scope="module")
def logistic():
    """A number with two maxima of a word's odds, another that follows it, and flags."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=1500)
    X = pd.DataFrame({
        "x": x, "word": np.where(rng.logistic(size=1500) < 2 * np.sin(3 * x), "yes", "no"),
        "colour": rng.choice(list("abcdefghij"), size=1500),
        "y": x + rng.normal(size=1500), "flag": rng.random(1500) < 0.5,
    })  # fmt: skip
    three = X[["x", "word", "y"]]
    model = FVBMPseudoLikelihood().fit(three)
    result = statistics.bootstrap(model, three, n_resamples=12, random_state=0)
    return model, result, FVBMPseudoLikelihood().fit(X)


def test_effects_of_pairs_are_curves_of_log_odds(logistic):
    """The true one is within the band at nine of ten values; the average of each curve is 0."""
    model, result, whole = logistic
    display = PairEffectDisplay.from_estimator(model, ["x", "word"], intervals=result)
    (line,), true = display.lines_, 2 * np.sin(3 * display.values[0])
    assert line.get_label() == "word = yes" and display.ax_.get_xlabel() == "x"
    assert_allclose(line.get_ydata(), 2 * display.effect[:, 1])
    assert np.abs(line.get_ydata() - (true - true.mean())).mean() < 0.35
    low, high = 2 * display.band[:, :, 1]
    assert ((low < true - true.mean() + 0.2) & (true - true.mean() - 0.2 < high)).mean() > 0.9
    other = PairEffectDisplay.from_estimator(model, ["word", "x"])
    assert_array_equal(other.lines_[0].get_ydata(), line.get_ydata())
    many = PairEffectDisplay.from_estimator(whole, ["colour", "y"])
    assert len(many.lines_) == 8
    assert many.ax_.get_legend().get_title().get_text() == "8 strongest of 10"
    assert_allclose(many.effect.sum(axis=0), 0, atol=1e-9)


def test_intervals_of_an_inference_are_those_of_log_odds(logistic):
    """Of a table of two columns these are known: each level's logarithm of a ratio of counts."""
    rng = np.random.default_rng(1)
    level = rng.integers(5, size=400)
    word = np.where(rng.random(400) < 0.2 + 0.1 * level, "yes", "no")
    X = pd.DataFrame({"level": level, "word": word})
    model = FVBMPseudoLikelihood(alpha=0, columns={"level": "ordinal"}).fit(X)
    result = statistics.inference(model, X, covariance="sandwich", confidence_level=0.9)
    display = PairEffectDisplay.from_estimator(model, ["level", "word"], intervals=result)
    counts = pd.crosstab(X["level"], X["word"]).to_numpy()
    centre = np.eye(5) - 1 / 5
    odds = centre @ np.log(counts[:, 1] / counts[:, 0])
    half = norm.ppf(0.95) * np.sqrt(centre**2 @ (1 / counts).sum(axis=1))
    assert_allclose(display.lines_[0].get_ydata(), odds, atol=1e-4)
    assert_allclose(2 * display.band[:, :, 1], [odds - half, odds + half], atol=1e-4)
    turned = PairEffectDisplay.from_estimator(model, ["word", "level"], intervals=result)
    assert_array_equal(turned.band, display.band.transpose(0, 2, 1))
    X["number"] = level + rng.normal(size=400)
    model = FVBMPseudoLikelihood().fit(X[["number", "word"]])
    trends = statistics.inference(model, X[["number", "word"]])
    with pytest.raises(ValueError, match="fit with alpha=0"):
        PairEffectDisplay.from_estimator(model, ["number", "word"], intervals=trends)


def test_effects_of_two_ordered_columns_are_a_surface(logistic):
    model, result, whole = logistic
    display = PairEffectDisplay.from_estimator(model, ["x", "y"], intervals=result)
    assert_array_equal(display.image_.get_array(), display.effect.T)
    assert display.effect[0, 0] > 0 > display.effect[0, -1]
    words = PairEffectDisplay.from_estimator(whole, ["word", "colour"])
    assert [label.get_text() for label in words.ax_.get_xticklabels()] == ["no", "yes"]
    for columns, message in [(["x", "x"], "two different"), (["word", "flag"], "a single number")]:
        with pytest.raises(ValueError, match=message):
            PairEffectDisplay.from_estimator(whole, columns)


def test_hatches_are_where_the_interval_has_both_signs():
    effect = np.array([[0.6, -0.3], [-0.5, 0.2]])

    def drawn(half):
        band = None if half is None else effect + [[[-half]], [[half]]]
        display = PairEffectDisplay(
            effect=effect, values=[["a", "b"], ["c", "d"]], names=["x", "y"],
            is_ordered=[False, False], band=band,
        ).plot()  # fmt: skip
        display.figure_.canvas.draw()
        pixels = np.asarray(display.figure_.canvas.buffer_rgba()).astype(int)
        rows, columns = np.linspace(*display.ax_.bbox.intervaly, 41), display.ax_.bbox.intervalx
        middle = np.linspace(*columns, 41).astype(int)
        return pixels[len(pixels) - 1 - rows.astype(int)][:, middle]

    plain, none, some = map(drawn, (None, 0.1, 0.25))
    assert_array_equal(none, plain)
    differs = (some != plain).any(axis=2)
    # The cell with 0.2 alone: x = b to the right, y = d above.
    assert differs[22:39, 22:39].any()
    differs[20:, 20:] = False
    assert not differs.any()
