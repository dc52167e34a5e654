"""The rules of the house: imports point down and inward."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sklearn_boltz"
FAMILIES = {"loglinear", "networks", "restricted"}
# What each room may import besides itself, from the lowest.
TOP = {"callbacks", "_warnings"}
MAY_IMPORT = {
    "callbacks": {"_warnings"},
    "_warnings": set(),
    "numerics": set(),
    "units": {"numerics"},
    "tables": TOP | {"numerics"},
    "missing": {"tables"},
    "partition": {"numerics"},
    "_methods": TOP | {"numerics"},
    "_tabular": TOP | {"numerics", "tables"},
    "_new_values": TOP | {"tables"},
    "_answers": TOP | {"_methods", "numerics", "tables", "partition"},
    "_density": TOP | {"_answers", "_methods", "_tabular", "numerics", "tables", "partition"},
    "_discrete": {"_density", "_methods", "numerics", "tables"},
}
SHARED = set(MAY_IMPORT) - {"units"}
MAY_IMPORT |= {
    "loglinear": SHARED,
    "networks": SHARED | {"loglinear"},
    "restricted": SHARED | {"units"},
    "statistics": SHARED | {"networks", "restricted", "units"},
    "meta": SHARED | FAMILIES | {"units"},
    "metrics": {"tables"},
}
# The folders of a family, from the lowest. Estimators and their bases are above all of them.
FLOORS = {
    "restricted": ["model", "sampling", "mean_field", "training"],
    "networks": ["sampling", "model", "location", "training", "categorical", "sparse"],
    "statistics": ["covariance"],
}
SURROUNDINGS = {"inspection", "datasets"}
MOST = {"lines of code": 30_907, "classes": 256, "functions": 3403}
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


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in MODULES}))
def test_imports_point_down_and_inward(room):
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0] == room:
            check_imports(path)


def check_imports(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    room = parts[0]
    for module, names in imports(path):
        assert "oracles" not in module[0], "the package does not import its tests"
        if module[0] == "sklearn" and path.suffix == ".pyx":
            pytest.fail("kernels do not cimport from scikit-learn")
        if module[0] == "sklearn" and "callback" in module:
            assert parts == ("callbacks",)
        if module[0] != "sklearn_boltz":
            continue
        target = module[1] if len(module) > 1 else None
        if room in MAY_IMPORT:
            assert target in MAY_IMPORT[room] | {room}, f"{module} from {room}"
        elif room in SURROUNDINGS:
            private = [name for name in [*module[1:], *names] if name.startswith("_")]
            assert target in (None, room) or not private, "public API only"
        if room == target and room in FLOORS:
            floors = FLOORS[room]
            here = floors.index(parts[1]) if parts[1] in floors else len(floors)
            for name in [*module[2:3], *names]:
                if name in floors:
                    assert floors.index(name) <= here, (
                        f"{module} from {parts[1]}: imports point down"
                    )
            if here < len(floors):
                assert module[2] in floors, f"{module} from {parts[1]}: estimators are above"


@pytest.mark.parametrize("family", FLOORS)
def test_a_family_shows_few_rooms(family):
    folder = PACKAGE / family
    rooms = {path.stem for path in folder.glob("*.py")} | {
        path.name for path in folder.iterdir() if path.is_dir()
    }
    assert len(rooms - {"__init__", "__pycache__"}) <= 14


def test_no_path_outside_the_package():
    for path in MODULES:
        assert "shared/data" not in path.read_text(), f"{path} reads data that users do not have"


def test_the_top_holds_the_estimators_and_nothing_else():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    kinds = {type(node) for node in tree.body}
    assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.Assign}


def test_meta_estimators_set_no_private_attribute_of_others():
    """What they tell an estimator are parameters, which its clones keep."""
    targets = [
        target
        for path in (PACKAGE / "meta").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for whole in getattr(node, "targets", None) or [node.target]
        for target in ast.walk(whole)
        if isinstance(target, ast.Attribute) and target.attr.startswith("_")
    ]
    for target in targets:
        assert ast.unparse(target.value) == "self", ast.unparse(target)


def code_lines(text):
    """Lines with code: not empty, no comment, no docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documented = [n for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    strings = [node.body[0] for node in documented if ast.get_docstring(node, clean=False)]
    skipped = {k for node in strings for k in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and k not in skipped for k, line in lines)


def test_the_total_is_watched():
    """A change that needs more raises a figure, and says for what."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    n_functions = sum(isinstance(node, ast.FunctionDef) for node in nodes)
    assert sum(map(code_lines, texts)) <= MOST["lines of code"]
    assert len(names) <= MOST["classes"] and n_functions <= MOST["functions"]
    assert len(set(names)) == len(names), "a class name stands for one thing"
