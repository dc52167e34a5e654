"""Pictures: what they show, not how they look."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.inspection import CouplingDisplay, HistoryDisplay

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(500, 5))
    X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    return X


@pytest.fixture
def model(X):
    return FVBMPseudoLikelihood(solver="bslm").fit(X)


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, sklearn_boltz.inspection; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        CouplingDisplay.from_estimator(model)


def test_heatmap(model, X):
    display = CouplingDisplay.from_estimator(model)
    shown = display.image_.get_array()
    assert_array_equal(shown[~np.eye(5, dtype=bool)], model.coupling_[~np.eye(5, dtype=bool)])
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(model.coupling_).max()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == display.names
    assert display.significant is None and not display.ax_.collections
    hatched = CouplingDisplay.from_estimator(model, X, colorbar=False, limit=2)
    assert len(hatched.ax_.collections[0].get_paths()) == 20 - hatched.significant.sum()
    assert hatched.colorbar_ is None and hatched.image_.get_clim() == (-2, 2)


def test_significant_edges(model, X):
    result = model.inference(X)
    adjusted = result.adjusted_p_value("fdr_bh")
    display = CouplingDisplay.from_estimator(model, X, kind="graph", level=0.01, layout="circle")
    assert display.significant[0, 2] and display.significant[2, 0]
    names = [f"m[x{j},x{k}]" for j, k in np.argwhere(np.triu(display.significant))]
    assert names == [n for n in result.names[adjusted < 0.01] if n.startswith("m")]
    segments = display.image_.get_segments()
    assert len(segments) == len(names)
    assert_allclose(segments[-1], display.positions_[[0, 2]])
    assert len(CouplingDisplay.from_estimator(model, kind="graph").image_.get_segments()) == 10


def test_layouts(model, monkeypatch):
    square = np.arange(10.0).reshape(5, 2)
    display = CouplingDisplay.from_estimator(model, kind="graph", layout=square)
    assert_array_equal(display.positions_, square)
    circle = CouplingDisplay.from_estimator(model, kind="graph", layout="circle").positions_
    assert_allclose(np.hypot(*circle.T), 1)
    monkeypatch.setitem(sys.modules, "networkx", None)
    automatic = CouplingDisplay.from_estimator(model, kind="graph").positions_
    assert_array_equal(automatic, circle)
    with pytest.raises(ImportError, match="pip install networkx"):
        CouplingDisplay.from_estimator(model, kind="graph", layout="spring")
    with pytest.raises(ValueError, match="layout must have the shape"):
        CouplingDisplay.from_estimator(model, kind="graph", layout=square[1:])


def test_spring_layout_is_the_same_each_time(model):
    pytest.importorskip("networkx")
    first, second = (
        CouplingDisplay.from_estimator(model, kind="graph", layout="spring").positions_
        for _ in range(2)
    )
    assert_array_equal(first, second)


def test_wrong_arguments(model):
    with pytest.raises(ValueError, match="kind must be"):
        CouplingDisplay.from_estimator(model, kind="circle")
    with pytest.raises(ValueError, match="layout must be"):
        CouplingDisplay.from_estimator(model, kind="graph", layout="square")
    with pytest.raises(ValueError, match="no history of 'cost'"):
        HistoryDisplay.from_estimator(model, "cost")
    for display in (CouplingDisplay, HistoryDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(FVBMPseudoLikelihood())


def test_independent_variables_have_a_picture():
    model = FVBMPseudoLikelihood().fit(np.ones((5, 3), dtype=int))
    for kind in ("heatmap", "graph"):
        display = CouplingDisplay.from_estimator(model, kind=kind)
        display.figure_.canvas.draw()


def test_history(model, X):
    display = HistoryDisplay.from_estimator(model, label="first")
    values = model.history_["log_pseudo_likelihood"]
    assert_array_equal(display.line_.get_ydata(), values)
    assert_array_equal(display.increase_line_.get_ydata(), np.diff(values))
    assert display.increase_ax_.get_yscale() == "log"
    second = HistoryDisplay.from_estimator(FVBMPseudoLikelihood().fit(X), ax=display.ax_)
    assert second.ax_ is display.ax_ and second.increase_ax_ is display.increase_ax_
    alone = HistoryDisplay.from_estimator(model, show_increase=False)
    assert alone.increase_ax_ is None and len(alone.figure_.axes) == 1
