"""What all estimators share."""

import numpy as np
import pytest

from private import make_generator, unchanged_on_error
from sklearn_boltz import FSLLDensity


def test_generators():
    assert make_generator(3).random() == make_generator(np.int64(3)).random()
    generator = np.random.default_rng(0)
    assert make_generator(generator) is generator
    state = np.random.RandomState(0)
    first, second = make_generator(state).random(), make_generator(state).random()
    assert first != second  # a RandomState goes on
    assert first == make_generator(np.random.RandomState(0)).random()
    assert make_generator(None).random() != make_generator(None).random()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_unchanged_on_error(error):
    class Thing: ...

    thing = Thing()
    thing.a = 1
    with pytest.raises(error), unchanged_on_error(thing):
        thing.a, thing.b = 2, 3
        raise error
    assert vars(thing) == {"a": 1}
    with unchanged_on_error(thing):
        thing.a = 2
    assert thing.a == 2


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    pytest.importorskip("rich")
    X = np.random.default_rng(0).integers(2, size=(100, 3))
    X[:, 1] = X[:, 0]
    FSLLDensity().set_callbacks(callback.ProgressBar()).fit(X)
    assert "FSLLDensity" in capsys.readouterr().out
