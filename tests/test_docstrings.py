"""Public docstrings follow numpydoc."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import sklearn_boltz

PUBLIC_MODULES = [
    "sklearn_boltz",
    "sklearn_boltz.batches",
    "sklearn_boltz.datasets",
    "sklearn_boltz.inspection",
    "sklearn_boltz.loglinear",
    "sklearn_boltz.metrics",
    "sklearn_boltz.fully_visible",
    "sklearn_boltz.restricted",
    "sklearn_boltz.units",
]
# No need of: an extended summary, "See Also" and its descriptions, an example for each method;
# a single return value has a name, as in scikit-learn.
IGNORED = {"ES01", "SA01", "SA04", "EX01", "RT02"}
# scikit-learn makes these.
INHERITED = {"set_output", "get_params", "set_params", "get_metadata_routing", "set_callbacks",
             "fit_transform", "set_fit_request", "set_partial_fit_request",
             "set_score_request"}  # fmt: skip


def public_names():
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            yield f"{module_name}.{name}"
            member = getattr(module, name)
            if inspect.isclass(member):
                for method in dir(member):
                    if not method.startswith("_") and method not in INHERITED:
                        yield f"{module_name}.{name}.{method}"


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_numpydoc(name):
    errors = [error for error in validate(name)["errors"] if error[0] not in IGNORED]
    assert not errors


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_estimators_and_functions_have_examples(module_name):
    module = importlib.import_module(module_name)
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert ">>>" in inspect.getdoc(member), name


def test_references_are_not_lists():
    # reStructuredText takes "P. Name, ..." on a single line for the item P of a list.
    initial = re.compile(r"^( *)\.\. \[\d+\] [A-Z]\. .*\n(?!\1   \S)", re.MULTILINE)
    for path in Path(sklearn_boltz.__file__).parent.rglob("*.py"):
        found = initial.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path}: break the line of {found.group().strip()}"
