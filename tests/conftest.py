"""Settings of the tests."""

import os
from pathlib import Path

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")

# No deadline: a timed test would fail on a busy machine. On CI, the same cases each time.
settings.register_profile("sklearn_boltz", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("sklearn_boltz")


def cases(n):
    """How many cases a property is tried on: SKLEARN_BOLTZ_CASES multiplies them."""
    return n * int(os.environ.get("SKLEARN_BOLTZ_CASES", "1"))


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data beside the project; tests that want it skip without it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data beside the project")
    return folder
