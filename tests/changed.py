"""Print the tests of what has changed since a commit: the files that `make check` runs.

A test file is near a change if it is changed itself, or takes a private name from a changed module
(private.py says where each lives), or if the module is named after the same subject, or if it
imports the changed public room.
"""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
# Rooms whose functions are public, so that tests do not import private names of them.
PUBLIC = {"datasets", "inspection", "metrics", "statistics"}
ROOT = TESTS.parent


def changed_files(base):
    """Paths that differ from a commit, and those that git does not know yet."""
    commands = [["diff", "--name-only", base], ["ls-files", "--others", "--exclude-standard"]]
    found = [
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        for words in commands
    ]
    return {Path(line) for ran in found for line in ran.stdout.splitlines()}


def module_of(path):
    """Its dotted name, of a file of the package."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def names_of(modules):
    """The names in private.py that live in these modules."""
    tree = ast.parse((TESTS / "private.py").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if {node.module, f"{node.module}.{alias.name}"} & modules
    }


@functools.cache
def imports_of(path):
    """What a file of tests imports from private.py."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "private"
        for alias in node.names
    }


def imports_room(path, rooms):
    """Whether a file of tests imports one of these rooms, or from it."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^from sklearn_boltz(.*) import ([^(]*|[(][^)]*[)])$", text, re.M)
    words = set(re.findall(r"\w+", " ".join(" ".join(pair) for pair in found)))
    return bool(words & rooms)


def tests_near(sources):
    """Files of tests near modules, whose paths begin at the package, from the repository's root."""
    names = names_of({module_of(path) for path in sources})
    subjects = {path.stem.strip("_") for path in sources}
    rooms = {path.parts[1] for path in sources} & PUBLIC
    return {
        path.relative_to(ROOT)
        for path in TESTS.rglob("test_*.py")
        if imports_of(path) & names
        or any(subject in path.stem for subject in subjects)
        or (rooms and imports_room(path, rooms))
    }


def main():
    changed = changed_files(sys.argv[1])
    sources = {p for p in changed if p.parts[0] == "sklearn_boltz" and p.suffix in (".py", ".pyx")}
    near = tests_near(sources) | changed
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.relative_to(ROOT) in near:
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
