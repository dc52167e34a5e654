"""The rules of the house: imports point down and inward, and it grows for a reason only."""

import ast
import functools
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
    "_discrete": {"_density", "_methods", "numerics", "partition", "tables"},
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
    "networks": ["sampling", "model", "location", "training", "categorical", "features", "sparse"],
    "statistics": ["covariance"],
}
SURROUNDINGS = {"inspection", "datasets"}
MODULES = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyx"))


@functools.cache
def nodes_of(path):
    """All nodes of the syntax tree of a file."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path):
    """Modules of the package that a file imports, as tuples of names below the package."""
    if path.suffix == ".py":
        for node in nodes_of(path):
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
        for node in nodes_of(path)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for whole in getattr(node, "targets", None) or [node.target]
        for target in ast.walk(whole)
        if isinstance(target, ast.Attribute) and target.attr.startswith("_")
    ]
    for target in targets:
        assert ast.unparse(target.value) == "self", ast.unparse(target)


# How large the house is. A change that needs more raises a figure here, and its message says for
# what; one that is done with less lowers it.
TOTALS = {
    "lines of code": 29_648, "classes": 273, "functions": 3574, "lines of tests": 32_001,
    "lines of benchmarks": 8308,
}  # fmt: skip


def is_no_code(node):
    """Whether it is an import, or the docstring of a module, a class or a function."""
    is_text = isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
    return is_text or isinstance(node, (ast.Import, ast.ImportFrom))


def sizes_of(path):
    """Lines of code of a module: no blank ones, comments and such nodes; classes; functions."""
    source = path.read_text(encoding="utf-8")
    nodes = nodes_of(path)
    numbers = (range(node.lineno, node.end_lineno + 1) for node in filter(is_no_code, nodes))
    others = set().union(*numbers)
    lines = enumerate(map(str.strip, source.split("\n")), 1)
    code = sum(bool(line) and line[0] != "#" and k not in others for k, line in lines)
    kinds = ast.ClassDef, ast.FunctionDef
    return code, *(sum(isinstance(node, kind) for node in nodes) for kind in kinds)


def test_the_totals_are_what_they_are():
    of_modules = zip(*map(sizes_of, PACKAGE.rglob("*.py")), strict=True)
    found = dict(zip(TOTALS, map(sum, of_modules), strict=False))
    for name in ("tests", "benchmarks"):
        texts = (path.read_text("utf-8") for path in (PACKAGE.parent / name).rglob("*.py"))
        found[f"lines of {name}"] = sum(text.count("\n") for text in texts)
    more = {name: n for name, n in found.items() if n > TOTALS[name]}
    assert not more, (
        "It has grown. Is there something to call instead, or something that this change makes "
        "superfluous? If not, raise TOTALS, and say in the message of the commit for what."
    )
    less = {name: n for name, n in found.items() if n < 0.99 * TOTALS[name]}
    assert not less, "It has shrunk: lower TOTALS, so that this holds."


# Longer files than others may be, in lines of code and docstring, and why. Nor does the page of an
# estimator, with its documentation, have a limit.
LONGEST = 450
LONGER = {
    "restricted/_boltzmann_machine.py": "public methods of all Boltzmann machines",
    "statistics/_standard_errors.py": "the page of `inference`, and what it computes",
    "units/_unit.py": "the protocol of units, which users implement",
}


def test_a_file_has_one_room_or_is_the_page_of_an_estimator():
    top = [node for node in nodes_of(PACKAGE / "__init__.py") if isinstance(node, ast.ImportFrom)]
    estimators, found = {alias.name for node in top for alias in node.names}, set()
    for path in PACKAGE.rglob("*.py"):
        classes = {node.name for node in nodes_of(path) if isinstance(node, ast.ClassDef)}
        lines = map(str.strip, path.read_text(encoding="utf-8").split("\n"))
        n_lines = sum(bool(line) and line[0] != "#" for line in lines)
        if n_lines > LONGEST and not classes & estimators:
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == set(LONGER)


# Methods that a class has at most, and classes with more, and why.
MOST_METHODS = 25
WITH_MORE = {
    "UnitType": "the protocol of units, which users implement",
    "Stacked": "all of that protocol, part by part",
    "Categorical": "all of it but what follows from one number for each unit",
}


def test_a_class_has_a_name_of_its_own_and_few_methods():
    nodes = [node for path in PACKAGE.rglob("*.py") for node in nodes_of(path)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    assert len({node.name for node in classes}) == len(classes)
    n_methods = {c.name: sum(isinstance(p, ast.FunctionDef) for p in c.body) for c in classes}
    assert {name for name, n in n_methods.items() if n > MOST_METHODS} == set(WITH_MORE)
