"""The example of README.md, with what a bare installation has."""

import doctest
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


class NoPandas:
    """An importer for `sys.meta_path` that does not find pandas."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_the_example_runs_without_pandas(monkeypatch):
    """With pandas, it runs as a doctest of README.md itself."""
    if not README.is_file():
        pytest.skip("README.md is not beside the tests")
    # Not None in sys.modules: scikit-learn takes what is there for the module.
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoPandas, *sys.meta_path])
    with pytest.raises(ImportError):
        import pandas  # noqa: F401
    result = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert result.attempted > 5
    assert result.failed == 0
