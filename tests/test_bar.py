"""Bars of what takes more than two seconds."""

import numpy as np
import pandas as pd
import pytest

from private import _bar
from sklearn_boltz import (
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FVBMPseudoLikelihood,
    SparseFVBM,
)
from sklearn_boltz.statistics import bootstrap


@pytest.fixture
def no_delay(monkeypatch):
    monkeypatch.setattr(_bar, "DELAY", 0)


def table(n=300):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=n)
    frame = pd.DataFrame({f"c{j}": np.where(rng.random(n) < 0.8, kind, 0) for j in range(3)})
    return ("v" + frame.astype(str)).mask(rng.random(frame.shape) < 0.1)


@pytest.mark.parametrize("verbose", [0, 1])
def test_bars(verbose, capsys, no_delay):
    X, shown = table(), {}
    steps = {
        "iterations": lambda: BoltzmannImputer(verbose=verbose).fit(X),
        "rounds": lambda: FVBMPseudoLikelihood(alpha=0.1, verbose=verbose).fit(X),
        "penalties": lambda: SparseFVBM(verbose=verbose).fit(X),
        "rows": lambda: BoltzmannImputer(verbose=verbose).fit(X).transform(X),
        "scores": lambda: BoltzmannOutlierDetector(verbose=verbose).fit(X),
        "bootstrap": lambda: bootstrap(
            FVBMPseudoLikelihood(alpha=0.1).fit(X[["c0", "c1"]]),
            X[["c0", "c1"]],
            3,
            verbose=verbose,
        ),
    }
    for what, run in steps.items():
        run()
        shown[what] = capsys.readouterr().err
    for what, text in shown.items():
        name = "iterations" if what == "rounds" else what
        assert (name in text) == bool(verbose), what
    if verbose:
        assert "/30" in shown["iterations"] and "/500" not in shown["rounds"]
        assert "3/3" in shown["bootstrap"] and "<" in shown["bootstrap"]  # the time that is left
