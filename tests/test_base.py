"""What all estimators share."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from private import limit_blas, make_generator, unchanged_on_error
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


def test_limit_blas():
    before = [pool["num_threads"] for pool in threadpool_info()]
    with limit_blas(1):
        blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert all(pool["num_threads"] == 1 for pool in blas)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_binarize(dtype):
    X = np.array([[1, 5], [3, 0], [2, 2]], dtype=dtype)
    model = FSLLDensity(binarize=1.5)
    expected = np.array([[0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(model._binarized(X), expected)
    assert model._binarized(X).dtype == dtype
    np.testing.assert_array_equal(
        model.fit(X).score_samples(X), FSLLDensity().fit(expected).score_samples(expected)
    )


def test_binarize_keeps_missing_values():
    X = np.array([[1.0, np.nan]])
    np.testing.assert_array_equal(FSLLDensity(binarize=0.5)._binarized(X), [[1.0, np.nan]])


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    pytest.importorskip("rich")
    X = np.random.default_rng(0).integers(2, size=(100, 3))
    X[:, 1] = X[:, 0]
    FSLLDensity().set_callbacks(callback.ProgressBar()).fit(X)
    assert "FSLLDensity" in capsys.readouterr().out
