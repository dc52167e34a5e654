"""The version, the addresses and the requirements are the same wherever they have to be."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "conda" / "recipe.yaml"

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="the sources are not here")


def read(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def configuration():
    return tomllib.loads(read("pyproject.toml"))


@pytest.fixture(scope="module")
def project(configuration):
    return configuration["project"]


@pytest.fixture(scope="module")
def recipe():
    return pytest.importorskip("yaml").safe_load(read("conda", "recipe.yaml"))


def bounds(requirements):
    """Names and lower bounds, as in ``numpy>=1.24``, without markers."""
    matches = [re.match(r"([\w-]+)\s*(>=[\d.]+)", text) for text in requirements]
    return {match[1].lower(): match[2] for match in matches if match}


def test_recipe_agrees_with_pyproject(configuration, project, recipe):
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    run = [item for item in recipe["requirements"]["run"] if isinstance(item, str)]
    everywhere = [text for text in project["dependencies"] if ";" not in text]
    expected = bounds(everywhere) | {"python": project["requires-python"]}
    assert bounds(run) == expected
    host = bounds(recipe["requirements"]["host"])
    for name, bound in bounds(configuration["build-system"]["requires"]).items():
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
    assert re.findall(pattern, read(path), re.MULTILINE) == [project["version"]]


def test_what_is_new_begins_with_the_version(project):
    newest = re.search(r"^   v(.+)$", read("doc", "whats_new", "index.rst"), re.MULTILINE)[1]
    assert project["version"].startswith(newest + ".")


@pytest.fixture
def page(monkeypatch, configuration):
    """What setup.py tells an index, with a repository or without."""
    setuptools = pytest.importorskip("setuptools")
    pytest.importorskip("Cython")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SKLEARN_BOLTZ_NO_KERNELS", "1")
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    read_page = runpy.run_path("setup.py")["page"]

    def of(repository):
        configuration["tool"]["sklearn_boltz"]["repository"] = repository
        monkeypatch.setattr(tomllib, "loads", lambda _: configuration)
        return read_page()

    before = configuration["tool"]["sklearn_boltz"]["repository"]
    yield of
    configuration["tool"]["sklearn_boltz"]["repository"] = before


def test_the_page_on_an_index_has_absolute_links_to_files_that_exist(page, project):
    address = "https://host.org/owner/name"
    found = page(address)
    targets = re.findall(r"\]\(([^)]+)\)", found["long_description"])
    assert len(targets) > 20
    for target in targets:
        kind = "raw" if target.endswith(".png") else "blob"
        folder = f"{address}/{kind}/v{project['version']}/"
        assert target.startswith(folder)
        assert (ROOT / target.removeprefix(folder)).exists(), target
    assert "<!--" not in found["long_description"]
    assert all(url.startswith(address) for url in found["project_urls"].values())
    assert page("")["project_urls"] == {}


def test_addresses(configuration, recipe):
    """The repository is nowhere, or the same everywhere."""
    repository = configuration["tool"]["sklearn_boltz"]["repository"]
    cited = re.findall(r'^repository-code: "(.+)"$', read("CITATION.cff"), re.MULTILINE)
    assert cited == [repository] * bool(repository)
    assert recipe["about"].get("repository", "") == repository
