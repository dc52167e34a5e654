"""Docstrings follow numpydoc, README.md runs as it stands, the package is quiet."""

import doctest
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate

import sklearn_boltz

ROOT = Path(__file__).parents[1]
ROOMS = "batches datasets inspection loglinear metrics networks restricted statistics units"
PUBLIC_MODULES = ["sklearn_boltz", *(f"sklearn_boltz.{room}" for room in ROOMS.split())]
# No need of: an extended summary, "See Also" and its descriptions, an example for each method;
# a single return value has a name, as in scikit-learn.
IGNORED = {"ES01", "SA01", "SA04", "EX01", "RT02"}
# scikit-learn makes these.
INHERITED = {"set_output", "get_params", "set_params", "get_metadata_routing", "set_callbacks",
             "fit_transform", "set_fit_request", "set_partial_fit_request",
             "set_score_request"}  # fmt: skip


def public_names(module_name):
    module = importlib.import_module(module_name)
    for name in module.__all__:
        yield f"{module_name}.{name}"
        member = getattr(module, name)
        if inspect.isclass(member):
            # The fields of a tuple are documented as parameters, and the rest is Python's.
            is_tuple = issubclass(member, tuple)
            known = INHERITED.union(dir(tuple), member._fields) if is_tuple else INHERITED
            for method in dir(member):
                is_plain = isinstance(inspect.getattr_static(member, method), (bool, int, tuple))
                if not (method.startswith("_") or method in known or is_plain):
                    yield f"{module_name}.{name}.{method}"


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_numpydoc(module_name):
    found = {
        name: [error for error in validate(name)["errors"] if error[0] not in IGNORED]
        for name in public_names(module_name)
    }
    assert {name: errors for name, errors in found.items() if errors} == {}


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_estimators_and_functions_have_examples(module_name):
    module = importlib.import_module(module_name)
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert ">>>" in inspect.getdoc(member), name


@pytest.mark.parametrize("name", ["SDCPRBM", "TAPRBM", "TAPDBM", "RBMClassifier", "InfiniteRBM"])
def test_the_guide_shows_each_parameter(name):
    """As code, alone or with a value."""
    guide = "".join(page.read_text() for page in (ROOT / "doc/user_guide").rglob("*.rst"))
    for parameter in inspect.signature(getattr(sklearn_boltz, name)).parameters:
        assert re.search(rf"``{parameter}(``|=)|\b{parameter}=", guide), parameter


def test_references_are_not_lists():
    # reStructuredText takes "P. Name, ..." on a single line for the item P of a list.
    initial = re.compile(r"^( *)\.\. \[\d+\] [A-Z]\. .*\n(?!\1   \S)", re.MULTILINE)
    for path in Path(sklearn_boltz.__file__).parent.rglob("*.py"):
        found = initial.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path}: break the line of {found.group().strip()}"


class NoPandas:
    """An importer for `sys.meta_path` that does not find pandas."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def source(*path):
    path = ROOT.joinpath(*path)
    if not path.is_file():
        pytest.skip("the sources are not here")
    return path


def test_the_example_of_the_readme_runs_without_pandas(monkeypatch):
    """All but that of real tables. As doctests of README.md itself, all run, for all epochs."""
    readme = source("README.md").read_text(encoding="utf-8")
    readme = readme[readme.index("## In place of scikit-learn's") :]
    assert "SDCPRBM(32, " in readme
    readme = readme.replace("SDCPRBM(32, ", "SDCPRBM(32, max_iter=50, ")
    # Not None in sys.modules: scikit-learn takes what is there for the module.
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoPandas, *sys.meta_path])
    with pytest.raises(ImportError):
        import pandas  # noqa: F401
    examples = doctest.DocTestParser().get_doctest(readme, {}, "README.md", "README.md", 0)
    result = doctest.DocTestRunner().run(examples)
    assert result.attempted == 5
    assert result.failed == 0


def test_importing_and_fitting_print_nothing_and_do_not_import_matplotlib():
    code = (
        "import sys, numpy as np, sklearn_boltz as b, sklearn_boltz.inspection\n"
        "X = np.random.default_rng(0).integers(2, size=(200, 4)); X[:, 1] = X[:, 0]\n"
        "b.FSLLDensity().fit(X); assert 'matplotlib' not in sys.modules"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_notebook_runs_from_top_to_bottom():
    pytest.importorskip("pandas")
    book = json.loads(source("examples", "first_steps.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]), names)
    filled = names["filled"]
    assert filled.notna().all(axis=None)
    assert (filled["species"] == names["complete"]["species"])[names["at"]].mean() > 0.8


POINT = re.compile(r"(?<![\w.\])`\\/])\.\d")
CODE = re.compile(
    r"``.*?``|`[^`]*`|<!--.*?-->|\]\([^)]*\)"
    r"|^ *>>>.*\n(?:.*\S.*\n)*"  # examples
    r"|^(?: *\.\. (?:code-block|math)::| *```|(?! *\.\.).*::$).*\n(?:\n|[ >].*\n)*"
    r"|^ *\.\. measured:.*",
    re.MULTILINE,
)


def test_numbers_in_prose_have_a_zero_before_the_point():
    for page in [*(ROOT / "doc").rglob("*.rst"), *ROOT.glob("*.md")]:
        if not {"generated", "auto_examples"} & {*page.parts}:
            lines = CODE.sub("", page.read_text(encoding="utf-8")).split("\n")
            assert [line for line in lines if POINT.search(line)] == [], page


FOUND = {
    "anomaly": "outliers", "BernoulliRBM": "migration", "contrastive divergence": "rbm",
    "Dask": "scale", "feature importance": "networks", "Ising": "how_to/ising",
    "Potts": "networks", "save model": "how_to/save_and_load", "synthetic": "samples",
    "synthetic data": "samples",
    **dict.fromkeys(["categorical", "impute", "imputation", "MICE", "missing"], "tables"),
}  # fmt: skip


@pytest.mark.slow
def test_the_search_of_built_pages_has_the_right_page_first():
    html = ROOT / "doc" / "_build" / "html"
    if not (html / "searchindex.js").is_file() or not shutil.which("node"):
        pytest.skip("no pages, or no node")
    command = ["node", Path(__file__).with_name("search.js"), html, *FOUND]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first = {query: pages[0] for query, pages in map(json.loads, found.splitlines())}
    wrong = {q: first[q] for q, page in FOUND.items() if first[q] != f"user_guide/{page}"}
    assert wrong == {}
