"""The scripts of the benchmarks: that what they import is there."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("folder", [".", "reproduce"])
def test_imports(folder):
    scripts = sorted((BENCHMARKS / folder).glob("[!_]*.py"))
    if not scripts:
        pytest.skip("no benchmarks beside the tests")
    # The scripts of one folder use those above it.
    code = f"import sys; sys.path += ['.', {str(BENCHMARKS)!r}]; import " + ", ".join(
        script.stem for script in scripts
    )
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS / folder, check=True)
