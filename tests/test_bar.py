"""Bars of what takes more than two seconds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from private import _bar
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    SparseFVBM,
)
from sklearn_boltz.statistics import bootstrap, inference


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
    bits = X.isna().astype(int)
    steps = {
        "iterations": lambda: BoltzmannImputer(verbose=verbose).fit(X),
        "rounds": lambda: FVBMPseudoLikelihood(alpha=0.1, verbose=verbose).fit(X),
        "penalties": lambda: SparseFVBM(verbose=verbose).fit(X),
        "epochs": lambda: SDCPRBM(2, max_iter=3, verbose=verbose).fit(X),
        "layer 2": lambda: TAPDBM((2, 2), max_iter=1, pretrain_max_iter=1, verbose=verbose).fit(
            bits
        ),
        "units": lambda: InfiniteRBM(2, verbose=verbose).fit(bits),
        "moves": lambda: FSLLDensity(verbose=verbose).fit(X),
        "rows": lambda: BoltzmannImputer(verbose=verbose).fit(X).transform(X),
        "scores": lambda: BoltzmannOutlierDetector(verbose=verbose).fit(X),
        "bootstrap": lambda: bootstrap(
            FVBMPseudoLikelihood(alpha=0.1).fit(X[["c0", "c1"]]),
            X[["c0", "c1"]],
            3,
            verbose=verbose,
        ),
        "chains": lambda: (
            FVBMPseudoLikelihood(alpha=0.1, verbose=verbose)
            .fit(np.random.default_rng(0).random((60, 28)) < 0.4)
            .sample(2, n_steps=20)
        ),
        "rows that obey": lambda: (
            FSLLDensity(verbose=verbose).fit(X).sample(9, where=lambda rows: rows["c0"] == "v1")
        ),
        "inference": lambda: inference(FVBMPseudoLikelihood(alpha=0.1).fit(X), X, verbose=verbose),
    }
    for what, run in steps.items():
        run()
        shown[what] = capsys.readouterr().err
    for what, text in shown.items():
        name = "iterations" if what == "rounds" else what
        assert (name in text) == bool(verbose), what
    if verbose:
        assert "/30" in shown["iterations"] and "/500" not in shown["rounds"]
        for what in ("bootstrap", "epochs"):
            assert "3/3" in shown[what] and "<" in shown[what]  # the time that is left


@pytest.mark.parametrize(
    "density", [FVBMPseudoLikelihood(alpha=0.1), FSLLDensity(), SDCPRBM(2, max_iter=3)]
)
@pytest.mark.parametrize("verbose", [0, 1])
def test_bars_of_rows(density, verbose, capsys, no_delay):
    X = table()
    model = clone(density).set_params(verbose=verbose).fit(X)
    capsys.readouterr()
    model.predict_column_proba(X, "c0")
    assert ("rows" in capsys.readouterr().err) == bool(verbose)


@pytest.mark.parametrize("verbose", [1, 2])
def test_lines_and_the_bar_of_an_rbm(verbose, capsys, no_delay):
    SDCPRBM(2, max_iter=3, verbose=verbose).fit(table())
    printed = capsys.readouterr()
    lines = [line.split(":")[0] for line in printed.out.splitlines()[2:]]
    epochs = [f"[SDCPRBM] epoch {k + 1}" for k in range(3)] if verbose > 1 else []
    assert lines == [*epochs, "[SDCPRBM] end, epoch 3"]
    assert ("epochs" in printed.err) == (verbose == 1)


def test_the_length_of_a_last_stage_is_known(capsys, no_delay, monkeypatch):
    short = dict(patience=(1, 1), longest_stage=(1, 1), last_epochs=(4, 4))
    monkeypatch.setattr(SDCPRBM, "_schedule", SDCPRBM._schedule._replace(**short))
    bits = np.random.default_rng(0).integers(2, size=(200, 3))
    model = SDCPRBM(2, verbose=1, random_state=0).fit(bits)
    assert f"{model.n_iter_}/{model.n_iter_} " in capsys.readouterr().err
