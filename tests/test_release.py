"""The version, the addresses and the requirements are the same wherever they have to be."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "conda" / "recipe.yaml"

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="the sources are not here")


def read(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))


@pytest.fixture(scope="module")
def recipe():
    return pytest.importorskip("yaml").safe_load(read("conda", "recipe.yaml"))


def bounds(requirements):
    """Names and lower bounds, as in ``numpy>=1.24``, without markers."""
    matches = [re.match(r"([\w-]+)\s*(>=[\d.]+)", text) for text in requirements]
    return {match[1].lower(): match[2] for match in matches if match}


def test_recipe_agrees_with_pyproject(project, recipe):
    assert recipe["about"]["license"] == project["project"]["license"]
    run = [item for item in recipe["requirements"]["run"] if isinstance(item, str)]
    everywhere = [text for text in project["project"]["dependencies"] if ";" not in text]
    expected = bounds(everywhere) | {"python": project["project"]["requires-python"]}
    assert bounds(run) == expected
    host = bounds(recipe["requirements"]["host"])
    for name, bound in bounds(project["build-system"]["requires"]).items():
        assert host[name] == bound


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("README.md", r"Version ([\d.]+) ·"),
        ("CITATION.cff", r"^version: (.+)$"),
        ("doc/cite.rst", r"version = {(.+)}"),
        ("conda/recipe.yaml", r'^  version: "(.+)"$'),
    ],
)
def test_version(project, path, pattern):
    assert re.findall(pattern, read(path), re.MULTILINE) == [project["project"]["version"]]


def test_what_is_new_begins_with_the_version(project):
    newest = re.search(r"^   v(.+)$", read("doc", "whats_new", "index.rst"), re.MULTILINE)[1]
    assert project["project"]["version"].startswith(newest + ".")


def test_a_version_of_the_documentation_finds_the_others(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc" / "_extensions")
    from versions import versions

    for version in ("0.9", "0.10", "0.3"):
        (tmp_path / f"v{version}").mkdir()
        inventory = f"# Sphinx inventory version 2\n# Project: x\n# Version: {version}\n#"
        (tmp_path / f"v{version}" / "objects.inv").write_text(inventory)
    (tmp_path / "no build").mkdir()
    found = [(entry["version"], entry["url"]) for entry in versions(tmp_path, "https://a.b/c/")]
    assert found == [("0.10", "/c/v0.10/"), ("0.9", "/c/v0.9/"), ("0.3", "/c/v0.3/")]
    assert versions(tmp_path, "")[0]["url"] == "/v0.10/"


def test_addresses(project, recipe):
    urls = project["project"]["urls"]
    cited = re.findall(r'^(?:repository-code|url): "(.+)"$', read("CITATION.cff"), re.MULTILINE)
    in_recipe = [recipe["about"].get(name) for name in ("documentation", "repository")]
    known = [urls.get(name) for name in ("Documentation", "Repository")]
    assert in_recipe == known
    assert cited == [url for url in known[::-1] if url]
