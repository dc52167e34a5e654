"""The scripts of the benchmarks: that they can be run, and share what they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FOLDERS = [".", "fsll", "fvbm", "rbm", "tap", "infinite", "tables", "reproduce"]

# Each script is imported, then run with --help, as if it were started by its path: the folder of
# the script is the first to be searched, and nothing else leads to the benchmarks. One process for
# a folder, since most of the time would be spent in importing the libraries.
RUN_ALL = """
import importlib, runpy, sys
folder, *scripts = sys.argv[1:]
sys.path[0] = folder
for script in scripts:
    importlib.import_module(script)
    sys.argv = [f"{folder}/{script}.py", "--help"]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
        print("answered:", script)
"""


@pytest.fixture(scope="module", autouse=True)
def benchmarks_are_there():
    if not BENCHMARKS.is_dir():
        pytest.skip("no benchmarks beside the tests")


def scripts_of(folder):
    """Names of the scripts in a folder; those that begin with _ are no scripts."""
    return sorted(path.stem for path in (BENCHMARKS / folder).glob("[!_]*.py"))


def test_no_folder_is_missed():
    found = {str(path.parent.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("*.py")}
    assert found == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_scripts_answer_help_from_anywhere(folder, tmp_path):
    scripts = scripts_of(folder)
    assert scripts
    command = [sys.executable, "-c", RUN_ALL, str(BENCHMARKS / folder), *scripts]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.findall("^answered: (.*)$", ran.stdout, re.MULTILINE) == scripts
    # The mutations of the source learn from no data.
    n_of_data = len(scripts) - ("mutations" in scripts)
    assert ran.stdout.count("[--data DATA]") == n_of_data
    assert not list(tmp_path.iterdir())


def test_only_one_file_loads_data_sets():
    loads = re.compile(r"\bnp\.load\w*\(|\bfetch_\w+|\bload_digits\b|\.npz\b|\.npy\b|def load_")
    found = {
        f"{path.relative_to(BENCHMARKS)}: {text}"
        for path in BENCHMARKS.rglob("*.py")
        if path.name != "_data.py"
        for text in loads.findall(path.read_text(encoding="utf-8"))
    }
    # The help of --data names the kind of the files.
    assert found == {"_common.py: .npz"}


def test_the_ways_to_the_shared_files_are_the_same():
    # A script cannot import them without such a file beside it.
    texts = {path.read_text() for path in BENCHMARKS.glob("*/_path.py")}
    assert len(texts) == 1
    assert len(list(BENCHMARKS.glob("*/_path.py"))) == len(FOLDERS) - 1
