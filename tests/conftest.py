"""Settings of the tests."""

import os
from pathlib import Path

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")

# `make fuzz` sets the number of cases for each one that `make test` tries. These are the same each
# time; those of a fuzz are random, and a failure prints the line that reproduces it.
TIMES = os.environ.get("SKLEARN_BOLTZ_FUZZ")
# No deadline: a timed test would fail on a busy machine.
settings.register_profile(
    "sklearn_boltz", deadline=None, derandomize=TIMES is None, print_blob=TIMES is not None
)
settings.load_profile("sklearn_boltz")


def cases(n):
    """How many cases a property is tried on."""
    return n * int(TIMES or 1)


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
