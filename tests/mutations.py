"""Do the tests notice a wrong formula? One change at a time in the source, and the tests near it.

    SCIPY_ARRAY_API=1 python tests/mutations.py --random 100 --seed 46
    python tests/mutations.py --random 100 tap units    # in files with one of these words
    python tests/mutations.py --random 100 --list
    python tests/mutations.py --random 100 --budget 600 meta  # ten minutes of tests for each

Each mutation is a small error of the kind that a hand makes: another operator, or another number
beside one, in the folders of `ROOMS`. One whose tests pass survives: something is not tested.
The tests are those that run the changed line, the fastest first, for `--budget` seconds: what sees
an error by chance in the slowest test does not count. Which lines a test runs is recorded by
coverage.py (to be installed) in build/, again where a file of tests has changed.
Not each is an error: some change rounding only, some what ends a search. Those that survive have
to be looked at. The source is put back after each, also after Ctrl-C.
"""

import argparse
import ast
import functools
import hashlib
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import tokenize
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_boltz"
RECORDS = ROOT / "build" / "covered"
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
MOST_MEMORY = 2**33  # bytes, where a check of what fits is changed
# What takes longer, in seconds, will not end.
ENDS = "-o", "faulthandler_timeout=120", "-o", "faulthandler_exit_on_timeout=true"


class Mutation(NamedTuple):
    """A change of a line of the package."""

    file: str
    line: int
    old: str  # occurs once in the file
    new: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.old!r} -> {self.new!r}"


# The mathematics, and the tests that each room may need.
ROOMS = {
    "meta/": "test_meta_*.py test_imputer.py",
    "restricted/": "test_rbm_*.py test_tap_estimators.py test_layered.py test_infinite_rbm.py "
    "contract/test_messages.py",
    "restricted/*/": "test_rbm_*.py test_tap*.py test_layered.py test_infinite_rbm.py "
    "test_training.py test_mixed_models.py test_scores.py contract/test_enumeration.py "
    "test_distributed.py test_array_api.py test_physics.py test_batches.py",
    "networks/*/": "test_fvbm*.py test_location.py test_joint_network.py test_physics.py "
    "test_mixed_models.py test_scores.py contract/test_enumeration.py",
    "partition/": "test_ladder.py test_rbm_ladder.py test_rbm_model.py test_fvbm_ladder.py "
    "contract/test_estimates.py",
    "loglinear/": "test_fsll*.py test_hadamard.py test_dual_update.py contract/test_enumeration.py",
    "units/": "test_units.py test_rbm_*.py test_tap*.py test_mixed_models.py",
}
# What replaces an operator, with spaces around it, and a number beside one.
OPERATORS = {
    **{"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
}
NUMBERS = {"0": "1", "1": "2", "2": "1", "0.5": "1.0", "2.0": "1.0", "1.0": "2.0", "0.0": "1.0"}
OPERATOR = r" ([-+*/]=?|[<>]=?|[=!]=) "
NUMBER = r"(?<![\w.)\]])({})(?= [-+*/<>] )|(?<= [-+*/<>] )({})(?![\w.])|(?<=\*\*)(2)\b".format(
    *2 * ["|".join(map(re.escape, sorted(NUMBERS, key=len, reverse=True)))]
)
# Lines without mathematics: signatures, named settings, errors.
NO_FORMULA = re.compile(
    r"^.*(\bdef |\bclass |import |^ *#|^[A-Z_]+ = |raise |warn|Interval\().*$", re.M
)


def sites(path):
    """What may be changed in a file: (start, stop, the text in its place)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".h":
        words = re.finditer(r"//.*|/\*(?s:.*?)\*/|\"[^\"\n]*\"", text)
        spans = [word.span() for word in words]
    else:
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        spans = [
            (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in (tokenize.STRING, tokenize.COMMENT)
        ]
    spans += [word.span() for word in NO_FORMULA.finditer(text)]
    for pattern, changes in ((OPERATOR, OPERATORS), (NUMBER, NUMBERS)):
        for match in re.finditer(pattern, text):
            start, stop = match.span(match.lastindex)
            if not any(first <= start < end for first, end in spans):
                yield start, stop, changes[text[start:stop]]


def draw(n, seed, words):
    """Random mutations of the mathematics in files with one of the words: (file, room, site)."""
    found = [
        (path, room, site)
        for room in ROOMS
        for path in sorted(PACKAGE.glob(f"{room}*.*"))
        if path.suffix in (".py", ".pyx", ".h")
        and (not words or any(word in str(path.relative_to(PACKAGE)) for word in words))
        for site in sites(path)
    ]
    return random.Random(seed).sample(found, min(n, len(found)))


def mutation_at(path, site):
    """A change of a file, with enough of the text around it for this to occur once."""
    text = path.read_text(encoding="utf-8")
    start, stop, new = site
    first, last = start, stop
    while text.count(text[first:last]) > 1:
        first, last = max(first - 8, 0), last + 8
    changed = text[first:start] + new + text[stop:last]
    line = text.count("\n", 0, start) + 1
    return Mutation(str(path.relative_to(PACKAGE)), line, text[first:last], changed)


def tests_of(lines, room, budget):
    """The tests that run one of these lines, the fastest first, for `budget` seconds."""
    paths = {path for words in ROOMS[room].split() for path in (ROOT / "tests").glob(words)}
    found = sorted(
        (seconds, test)
        for path in paths
        for test, (seconds, run) in covered(path).items()
        if any(number in run.get(str(file), ()) for file, number in lines)
    )
    spent = accumulate((seconds for seconds, _ in found), initial=0)
    return [test for (_, test), before in zip(found, spent, strict=False) if before <= budget]


@functools.cache
def running(path, number):
    """Lines, as (file, number), that are run where this one is: those of its statement.

    Of a kernel those that call one of its functions, of a header those of kernels that include it.
    """
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        statements = (node for node in nodes if isinstance(node, ast.stmt))
        spans = (range(node.lineno, node.end_lineno + 1) for node in statements)
        return {(path, line) for line in min((s for s in spans if number in s), key=len)}
    names = {
        name
        for kernel in kernels_of(path)
        for name in re.findall(r"^def (\w+)", kernel.read_text(encoding="utf-8"), re.M)
    }
    call = re.compile(rf"\b({'|'.join(names)})\(")
    return {
        (other, line)
        for other in PACKAGE.rglob("*.py")
        for line, text in enumerate(other.read_text(encoding="utf-8").splitlines(), 1)
        if call.search(text)
    }


def kernels_of(path):
    """A kernel itself; of a header the kernels that include it, or another one that does."""
    if path.suffix == ".pyx":
        return {path}
    imported = ".".join(path.relative_to(ROOT).with_suffix("").parts) + " cimport"
    including = [
        other
        for other in PACKAGE.rglob("*")
        if other.suffix in (".h", ".pxd", ".pyx")
        and re.search(f'["/]{path.name}"|{imported}', other.read_text(encoding="utf-8"))
    ]
    return set().union(*map(kernels_of, including))


@functools.cache
def covered(tests):
    """Of each test of a file: its seconds, and the lines that it runs of files of the package."""
    digest = hashlib.md5(tests.read_bytes()).hexdigest()
    path = RECORDS / f"{tests.stem}-{digest}.json"
    if not path.exists():
        print("recording", tests.name, flush=True)
        RECORDS.mkdir(parents=True, exist_ok=True)
        ended = pytest("-c", "import mutations; mutations.record()", path, tests)
        if ended.returncode:
            raise RuntimeError(ended.stdout.decode())
    return json.loads(path.read_text())


class Recorder:
    """A plugin of pytest: the seconds of each test, and a context of coverage.py for it."""

    def __init__(self, coverage):
        self.coverage = coverage
        self.seconds = Counter()

    def pytest_runtest_logstart(self, nodeid):
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration


def record():
    """Run the tests that the command line names after a file, and write the record to this file."""
    import pytest
    from coverage import Coverage  # which the suite does without

    coverage = Coverage(data_file=None, source=[str(PACKAGE)])
    recorder, found = Recorder(coverage), {}
    with coverage.collect():
        ended = pytest.main(sys.argv[2:], plugins=[recorder])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(ended)
    data = coverage.get_data()
    for test, seconds in recorder.seconds.items():
        data.set_query_context(test)
        lines = ((path, data.lines(path)) for path in data.measured_files())
        found[test] = seconds, {path: run for path, run in lines if run}
    Path(sys.argv[1]).write_text(json.dumps(found))


def main():
    """Run the mutations; exit with the number of those that survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words of which a file's path has one")
    parser.add_argument("--list", action="store_true", help="print the mutations, and end")
    parser.add_argument("--random", type=int, metavar="N", default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for each")
    options = parser.parse_args()
    drawn = draw(options.random, options.seed, options.words)
    if options.list:
        print(*(mutation_at(path, site) for path, _, site in drawn), sep="\n")
        return 0
    # Where a process is told to end, the source is put back as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    survivors = []
    for number, (path, room, site) in enumerate(drawn, 1):
        mutation = mutation_at(path, site)
        tests = tests_of(running(path, mutation.line), room, options.budget)
        start = time.perf_counter()
        outcome = run(mutation, tests) if tests else "not run"
        seconds = time.perf_counter() - start
        names = " ".join(sorted({Path(test.split("::")[0]).stem for test in tests}))
        print(f"{number:3d} {outcome:8} {seconds:5.0f} s  {mutation}  ({names})", flush=True)
        if outcome != "killed":
            survivors.append(mutation)
    print(f"{len(drawn) - len(survivors)} of {len(drawn)} mutations killed")
    return len(survivors)


def run(mutation, tests):
    """Change the file, run the tests, and put the file back; -> "killed" or "survived"."""
    path = PACKAGE / mutation.file
    source = path.read_text(encoding="utf-8")
    n_found = source.count(mutation.old)
    if n_found != 1:
        return f"{n_found} times"
    build(path)  # so that there is what can be put back
    kept = [(file, file.read_bytes(), file.stat()) for file in (path, *compiled(path))]
    try:
        path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
        build(path)
        return "killed" if fail(tests) else "survived"
    except subprocess.CalledProcessError:  # it cannot be compiled
        return "killed"
    finally:
        for file, content, times in kept:  # with its times, so that what is made of it stays valid
            file.write_bytes(content)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def compiled(path):
    """What is made of a kernel or of a header."""
    if path.suffix == ".py":
        return []
    return [
        file
        for kernel in kernels_of(path)
        for folder in (kernel.parent, *ROOT.glob("build/lib.*"))
        for file in (*folder.rglob(f"{kernel.stem}.c"), *folder.rglob(f"{kernel.stem}.*.so"))
    ]


def build(path):
    """Compile a kernel that has changed."""
    if path.suffix in (".pyx", ".h"):
        call = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(call, cwd=ROOT, check=True, capture_output=True)


def fail(tests):
    """Whether one of these tests fails, or does not end."""
    return pytest("-m", "pytest", "-x", *ENDS, *tests).returncode != 0


def pytest(*call):
    """Run tests by a call of Python, without a trace in the caches of Python and of pytest."""
    call = [sys.executable, *call, "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": PATHS}
    options = dict(cwd=ROOT, env=environment, capture_output=True, check=False)
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    return subprocess.run(call, preexec_fn=limit, **options)


if __name__ == "__main__":
    sys.exit(main())
