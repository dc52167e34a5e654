"""The rules of the house: imports point down and inward."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sklearn_boltz"
WINGS = {"loglinear", "pairwise", "restricted"}
ROOMS = {"metrics", "inspection", "datasets"}
MODULES = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyx"))


def imports(path):
    """Modules of the package that a file imports, as tuples of names below the package."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, "imports are absolute"
                yield node.module.split("."), [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name.split("."), []
    else:
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["from"], ["import"], ["cimport"]) and len(words) > 1:
                yield words[1].split("."), []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down_and_inward(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    room = parts[0]
    for module, names in imports(path):
        assert "oracles" not in module[0], "the package does not import its tests"
        if module[0] == "sklearn" and path.suffix == ".pyx":
            pytest.fail("kernels do not cimport from scikit-learn")
        if module[0] == "sklearn" and "callback" in module:
            assert parts == ("_callbacks",)
        if module[0] != "sklearn_boltz":
            continue
        target = module[1] if len(module) > 1 else None
        if room in WINGS:
            allowed = {room, "_base", "_batches", "_callbacks", "_tables"}
            if room == "pairwise":
                allowed.add("loglinear")
            assert target in allowed, f"{module} from the wing {room}"
        elif room in ROOMS:
            private = [name for name in [*module[1:], *names] if name.startswith("_")]
            assert target in (None, room) or not private, "public API only"
        elif room in ("_base", "_batches"):
            assert target in ("_callbacks", "_tables")
        elif room in ("_callbacks", "_tables"):
            pytest.fail(f"{room} imports {module}")


def test_no_path_outside_the_package():
    for path in MODULES:
        assert "shared/data" not in path.read_text(), f"{path} reads data that users do not have"


def test_the_top_holds_the_estimators_and_nothing_else():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    kinds = {type(node) for node in tree.body}
    assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.Assign}
