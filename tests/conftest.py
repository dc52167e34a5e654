"""Settings of the tests."""

import gc
import os
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

matplotlib.use("Agg")
matplotlib.rcParams["figure.max_open_warning"] = 0  # examples leave theirs open

# `make fuzz` sets the number of cases for each one that `make test` tries. These are the same each
# time; those of a fuzz are random, and a failure prints the line that reproduces it.
TIMES = os.environ.get("SKLEARN_BOLTZ_FUZZ")
# No deadline: a timed test would fail on a busy machine.
settings.register_profile(
    "sklearn_boltz", deadline=None, derandomize=TIMES is None, print_blob=TIMES is not None
)
settings.load_profile("sklearn_boltz")


def cases(n):
    """How many cases a property is tried on; of many, `make test` tries a part."""
    return n * int(TIMES) if TIMES else min(n, 3 + n // 5)


@pytest.fixture(scope="session", autouse=True)
def rounding():
    """That of another processor, if `make test-processors` asks for one."""
    from rounding import another_processor  # matplotlib.use comes first

    order = os.environ.get("SKLEARN_BOLTZ_ROUNDING")
    with another_processor(int(order)) if order else nullcontext():
        yield


def pytest_collection_finish():
    """What is there by now stays: garbage is looked for among the objects of tests alone."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup():
    """Estimators without a `random_state` draw the same numbers each time."""
    np.random.seed(0)  # noqa: NPY002, as that is where they draw from


def pytest_collection_modifyitems(items):
    """Some examples need what is not always there: scikit-learn 1.9, or an annealer."""
    callbacks = dict.fromkeys(["callbacks.py", "progress_bars.rst"], "sklearn.callback")
    needs = callbacks | {"annealer.rst": "dwave"}
    for item in items:
        module = needs.get(item.path.name)
        if module and find_spec(module) is None:
            item.add_marker(pytest.mark.skip(f"needs {module}"))


@pytest.fixture(scope="session")
def animals():
    """300 rows of three classes: words, booleans, levels, numbers; the same with gaps; classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=300, p=[0.5, 0.3, 0.2])
    noisy = np.where(rng.random(300) < 0.15, rng.integers(3, size=300), y)
    table = pd.DataFrame({
        "skin": np.array(["fur", "feathers", "scales"])[noisy],
        "eggs": pd.array((y > 0) ^ (rng.random(300) < 0.1), dtype="boolean"),
        "legs": np.array([4, 2, 0])[y] + 2 * (rng.random(300) < 0.1),
        "weight": np.exp(rng.normal(size=300)) * np.array([50.0, 5.0, 1.0])[y],
    })  # fmt: skip
    gaps = table.astype({"legs": "Int64"}).mask(rng.random(table.shape) < 0.2)
    return table, gaps, np.array(["mammal", "bird", "fish"])[y]


@pytest.fixture
def closed_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data beside the project; tests that want it skip without it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data beside the project")
    return folder


@pytest.fixture(scope="module")  # not longer: they limit the threads of BLAS
def workers():
    """One thread."""
    from private import Workers  # matplotlib.use comes first

    with Workers(1) as workers:
        yield workers


@pytest.fixture(params=["missing", "hidden", "chains"])
def way(request, monkeypatch):
    """What imputation sums over in rows with gaps: missing values, hidden units, or neither."""
    from private import _observed

    if request.param != "missing":
        monkeypatch.setattr(_observed, "EXACT_MISSING", 0)
    if request.param == "chains":
        monkeypatch.setattr(_observed, "EXACT_HIDDEN", 0)
    return request.param
