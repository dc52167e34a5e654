"""What all estimators share."""

import numpy as np
import pytest

from sklearn_boltz import FSLLDensity


def test_generators():
    """Seeds of any type are the same each time, and a generator of the user goes on."""
    model = FSLLDensity().fit(np.random.default_rng(0).integers(2, size=(40, 8)))

    def drawn(random_state):
        return model.sample(20, random_state).tolist()

    assert drawn(3) == drawn(np.int64(3)) != drawn(4)
    assert drawn(None) != drawn(None)
    for make in (np.random.default_rng, np.random.RandomState):
        state = make(0)
        first, second = drawn(state), drawn(state)
        assert first != second and first == drawn(make(0))


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    pytest.importorskip("rich")
    X = np.random.default_rng(0).integers(2, size=(100, 3))
    X[:, 1] = X[:, 0]
    FSLLDensity().set_callbacks(callback.ProgressBar()).fit(X)
    assert "FSLLDensity" in capsys.readouterr().out
