"""Bars of what takes more than two seconds."""

import numpy as np
import pandas as pd
import pytest

from private import _bar
from sklearn_boltz import BoltzmannImputer, BoltzmannOutlierDetector, FVBMPseudoLikelihood
from sklearn_boltz.statistics import bootstrap


@pytest.fixture
def no_delay(monkeypatch):
    monkeypatch.setattr(_bar, "DELAY", 0)
    monkeypatch.setattr(_bar, "PAUSE", 0)


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
        assert (what in text) == bool(verbose), what
    if verbose:
        lines = [line.split(",")[0] for line in shown["bootstrap"].split("\r")[1:]]
        assert lines == [f"bootstrap [{'=' * (20 * k // 3):20}] {k}/3" for k in (1, 2, 3)]


def test_the_time_that_is_left(capsys, monkeypatch):
    now = iter([0.0, 1.0, 30.0, 30.1])
    monkeypatch.setattr(_bar, "monotonic", lambda: next(now))
    with _bar.Bar("fit", 4) as bar:
        for _ in range(3):
            bar.step()
    assert capsys.readouterr().err == f"\rfit [{'=' * 10:20}] 2/4, 0:30 left \n"
