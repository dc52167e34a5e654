"""The conda recipe says what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "conda" / "recipe.yaml"


def bounds(requirements):
    """Names and lower bounds, as in ``numpy>=1.24``, without markers."""
    matches = [re.match(r"([\w-]+)\s*(>=[\d.]+)", text) for text in requirements]
    return {match[1].lower(): match[2] for match in matches if match}


@pytest.mark.skipif(not RECIPE.is_file(), reason="the recipe is not beside the tests")
def test_recipe_agrees_with_pyproject():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == project["project"]["version"]
    assert recipe["about"]["license"] == project["project"]["license"]
    run = [item for item in recipe["requirements"]["run"] if isinstance(item, str)]
    everywhere = [text for text in project["project"]["dependencies"] if ";" not in text]
    expected = bounds(everywhere) | {"python": project["project"]["requires-python"]}
    assert bounds(run) == expected
    host = bounds(recipe["requirements"]["host"])
    for name, bound in bounds(project["build-system"]["requires"]).items():
        assert host[name] == bound
