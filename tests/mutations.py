"""Do the tests notice a wrong formula? One change at a time in the source, and the tests near it.

    python tests/mutations.py --random 100 --seed 46
    python tests/mutations.py --random 300 tap units    # of these, those in files with these words
    python tests/mutations.py --random 100 --list
    python tests/mutations.py --random 100 --closest meta restricted  # by one file of tests each

Each mutation is a small error of the kind that a hand makes: another operator, or another number
beside one, in the folders of `ROOMS`. One whose tests pass survives: something is not tested.
Tests near the file come first (changed.py), then those of the room; with ``--closest`` there are
only those of one file (`CLOSEST`), which ought to see it by themselves. Not each is an error: some
change rounding only, some what ends a search. Those that survive have to be looked at. The source
is put back after each, also after Ctrl-C.
"""

import argparse
import functools
import io
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import tokenize
from pathlib import Path
from typing import NamedTuple

from changed import tests_near

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_boltz"
HANGS = 1800  # seconds after which tests will not end


class Mutation(NamedTuple):
    """A change of a file of the package, and what is to notice it."""

    file: str
    old: str  # occurs once in the file
    new: str
    tests: tuple  # arguments of pytest, each a call of its own

    def __str__(self):
        return f"{self.file}: {self.old!r} -> {self.new!r}"


# The mathematics, and the tests of each room.
ROOMS = {
    "meta/": "test_meta_*.py test_imputer.py",
    "restricted/": "test_rbm_*.py test_tap_estimators.py test_layered.py test_infinite_rbm.py",
    "restricted/*/": "test_rbm_*.py test_tap*.py test_layered.py test_infinite_rbm.py "
    "test_training.py test_mixed_models.py test_scores.py contract/test_enumeration.py",
    "networks/*/": "test_fvbm*.py test_location.py test_joint_network.py test_physics.py "
    "test_mixed_models.py test_scores.py contract/test_enumeration.py",
    "partition/": "test_ladder.py test_rbm_ladder.py test_rbm_model.py test_fvbm_ladder.py "
    "contract/test_estimates.py",
    "loglinear/": "test_fsll*.py test_hadamard.py test_dual_update.py contract/test_enumeration.py",
    "units/": "test_units.py test_rbm_*.py test_tap*.py test_mixed_models.py",
}
# The file of tests closest to a module: that of the first pattern that its path has.
CLOSEST = {
    "_array": "test_array_api.py",
    "_cluster": "test_distributed.py",
    "networks/model/_enumeration": "contract/test_enumeration.py",
    "networks/.*([.]h|pyx)": "test_fvbm_kernels.py",
    "networks/sparse": "test_fvbm_sparse.py",
    "networks/categorical/_cells": "test_fvbm_ordered.py",
    "networks/categorical": "test_fvbm_categorical.py",
    "networks/features": "test_fvbm_features.py",
    "networks/location": "test_location.py",
    "networks/sampling": "test_fvbm_ladder.py",
    "networks/training/_(likelihood|sampled)": "test_fvbm_likelihood.py",
    "networks/training/_strength": "test_fvbm_penalty.py",
    "networks/training/_em|networks/.*_incomplete": "test_fvbm_missing.py",
    "networks/training": "test_fvbm_solvers.py",
    "networks/": "test_fvbm_models.py",
    "loglinear/_incomplete": "test_fsll_missing.py",
    "loglinear/_(basis|dual_update|hadamard|distribution)": r"test_\1.py",
    "loglinear/": "test_fsll.py",
    "units/": "test_units.py",
    "partition/": "test_ladder.py",
    "meta/_(few_numbers|imputer|linear|default)": "test_imputer.py",
    "meta/_(completed|outlier|surprise)": "test_meta_outlier_detector.py",
    "meta/": "test_meta_classifier.py",
    "kernel|_products": "test_rbm_kernels.py",
    "class|label|discriminative": "test_rbm_classifier.py",
    "infinite|frank_wolfe|growth": "test_infinite_rbm.py",
    "training/_tap": "test_tap_gradients.py",
    "restricted/_.*tap": "test_tap_estimators.py",
    "_layered|_clamped": "test_layered.py",
    "observed|gaps|fractional": "test_rbm_missing.py",
    "mean_field/": "test_tap.py",
    "climb|rungs|tracker": "test_rbm_ladder.py",
    "_columns": "test_rbm_tables.py",
    "_initial|_sdcp_rbm": "test_rbm_initial.py",
    "_rows": "test_rbm_weights.py",
    "_sdcp|_optimizers": "test_rbm_sdcp.py",
    "auto|epochs|mini_batches|monitor|progress|/_rbm.py": "test_rbm_progress.py",
    "conditional": "test_rbm_predict.py",
    "_modes": "test_mixed_models.py",
    "restricted/": "test_rbm_model.py",
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


def draw(n, seed):
    """Random mutations of the mathematics: n of them."""
    found = [
        (path, tests, site)
        for room, tests in ROOMS.items()
        for path in sorted(PACKAGE.glob(f"{room}*.*"))
        if path.suffix in (".py", ".pyx", ".h")
        for site in sites(path)
    ]
    return [mutation_at(*one) for one in random.Random(seed).sample(found, n)]


def mutation_at(path, tests, site):
    """A change of a file, with enough of the text around it for this to occur once."""
    text = path.read_text(encoding="utf-8")
    start, stop, new = site
    first, last = start, stop
    while text.count(text[first:last]) > 1:
        first, last = max(first - 8, 0), last + 8
    names = near(path)
    changed = text[first:start] + new + text[stop:last]
    calls = (names, tests) if names else (tests,)
    return Mutation(str(path.relative_to(PACKAGE)), text[first:last], changed, calls)


def closest(mutation):
    """The same, for the tests of one file."""
    found = ((re.search(pattern, mutation.file), name) for pattern, name in CLOSEST.items())
    names = [match.expand(name) for match, name in found if match]
    return mutation._replace(tests=tuple(names[:1]) or mutation.tests)


@functools.cache
def near(path):
    """The files of tests near a file, as arguments of pytest."""
    found = tests_near({module.relative_to(ROOT) for module in modules_of(path)})
    return " ".join(sorted(str(name.relative_to("tests")) for name in found))


def modules_of(path):
    """A module itself; of a header the modules that include it, or another one that does."""
    if path.suffix not in (".h", ".pxd"):
        return {path}
    imported = ".".join(path.relative_to(ROOT).with_suffix("").parts) + " cimport"
    including = [
        other
        for other in PACKAGE.rglob("*")
        if other.suffix in (".h", ".pxd", ".pyx")
        and re.search(f'["/]{path.name}"|{imported}', other.read_text(encoding="utf-8"))
    ]
    return set().union(*map(modules_of, including))


def main():
    """Run the mutations; exit with the number of those that survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words of which a file's path has one")
    parser.add_argument("--list", action="store_true", help="print the mutations, and end")
    parser.add_argument("--random", type=int, metavar="N", default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--closest", action="store_true", help="run one file of tests for each")
    options = parser.parse_args()
    drawn = draw(options.random, options.seed)
    chosen = [m for m in drawn if not options.words or any(w in m.file for w in options.words)]
    if options.closest:
        chosen = list(map(closest, chosen))
    if options.list:
        print(*chosen, sep="\n")
        return 0
    # Where a process is told to end, the source is put back as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    survivors = []
    for number, mutation in enumerate(chosen, 1):
        start = time.perf_counter()
        outcome = run(mutation)
        seconds = time.perf_counter() - start
        print(f"{number:3d} {outcome:8} {seconds:5.0f} s  {mutation}", flush=True)
        if outcome != "killed":
            survivors.append(mutation)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutations killed")
    return len(survivors)


def run(mutation):
    """Change the file, run the tests, and put the file back; -> "killed" or "survived"."""
    path = PACKAGE / mutation.file
    source, times = path.read_text(encoding="utf-8"), path.stat()
    n_found = source.count(mutation.old)
    if n_found != 1:
        return f"{n_found} times"
    try:
        path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
        build(path)
        return "survived" if all(map(passes, mutation.tests)) else "killed"
    except subprocess.CalledProcessError:  # it cannot be compiled
        return "killed"
    finally:
        path.write_text(source, encoding="utf-8")
        if path.suffix == ".py":  # so that what was compiled of it stays valid
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        build(path)


def build(path):
    """Compile a kernel that has changed."""
    if path.suffix in (".pyx", ".h"):
        call = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(call, cwd=ROOT, check=True, capture_output=True)


def passes(tests):
    """Whether tests pass, without a trace in the caches of Python and of pytest."""
    files = []
    for word in shlex.split(tests):
        paths = sorted(ROOT.glob(f"tests/{word}")) if word.endswith(".py") else [word]
        files += map(str, paths)
    call = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    options = dict(cwd=ROOT, env=environment, capture_output=True, check=False, timeout=HANGS)
    try:
        ended = subprocess.run(call, **options)
    except subprocess.TimeoutExpired:
        return False
    if ended.returncode in (4, 5):  # no tests
        raise RuntimeError(ended.stdout.decode() + ended.stderr.decode())
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
