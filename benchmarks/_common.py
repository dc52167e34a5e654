"""What the benchmarks share: options, reports, tables, clocks, likelihoods."""

import argparse
import csv
import os
import platform
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager, redirect_stdout
from datetime import date
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import ConvergenceWarning

import sklearn_boltz

RESULTS = Path(__file__).resolve().parent / "results"
# Pictures go to files, also on a machine without a screen. matplotlib itself is imported where it
# is used: some processes have their memory measured.
os.environ.setdefault("MPLBACKEND", "Agg")


def make_parser(description, seeds=None, sets=()):
    """The options that every benchmark has; where there are defaults, --seeds and --sets."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of real data sets (.npz)")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder for tables and figures"
    )
    if seeds is not None:
        parser.add_argument("--seeds", type=int, default=seeds)
    if sets:
        parser.add_argument("--sets", nargs="+", choices=list(sets), default=list(sets))
    return parser


class MissingData(Exception):
    """A data set is neither in the folder nor can it be downloaded."""


# Results by the files where they go when a script has ended well: one that fails writes nothing.
_UNFINISHED, _RESULTS = tempfile.TemporaryDirectory(), {}


def unfinished(path):
    """The file to write results to, which become `path` at the end of the script."""
    part = Path(_UNFINISHED.name, str(len(_RESULTS))).with_suffix(Path(path).suffix)
    return _RESULTS.setdefault(Path(path), part)


def script(main):
    """Call a function, the last of a file, if that is run; skipped where it lacks its data."""
    if main.__module__ == "__main__":
        try:
            main()
        except MissingData as error:
            print(f"{Path(sys.argv[0]).stem} skipped: {error}")
            return main
        for path, part in _RESULTS.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(part, path)
    return main


class _Tee(list):
    """Files that get the same text."""

    def write(self, text):
        for file in self:
            file.write(text)
            file.flush()

    def flush(self):
        """Nothing is left to be written."""


@contextmanager
def report(path, title, seconds=None):
    """Print a title, the machine, the date, what is printed inside and the seconds, also to a file.

    A function gives the seconds of a run that goes on with an earlier one.
    """
    start = time.perf_counter()
    with unfinished(path).open("w") as file, redirect_stdout(_Tee([sys.stdout, file])):
        print(f"{title}\n{machine()}\ndate: {date.today()}\n")
        yield
        print(f"\nseconds: {seconds() if seconds else time.perf_counter() - start:.0f}")


def machine():
    """One line on the machine and the libraries."""
    try:
        info = Path("/proc/cpuinfo").read_text()
        model = info.split("model name")[1].split(":", 1)[1].split("\n", 1)[0].strip()
        flags = info.split("flags")[1].split("\n", 1)[0].split()
        simd = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE2"
        processor = f"{model}, {simd}"
    except (OSError, IndexError):
        processor = platform.processor() or platform.machine()
    return (
        f"{os.cpu_count()} cores, {processor}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"sklearn_boltz {sklearn_boltz.__version__}"
    )


# A likelihood is exact where one of the two layers has at most this many units.
EXACT_UNITS = 20


def log_likelihood(model, X, *, reverse=False, **ladder):
    """Mean log-likelihood of rows under a restricted or deep machine, and its standard error.

    ln Z is exact for small machines, else by annealed importance sampling with options of
    ``log_partition``. `reverse` puts between the two the value with ln Z by RAISE, from the first
    100 rows: where the values are far apart, neither is to be trusted.
    """
    free_energy = model.free_energy(X).mean()
    if isinstance(model.components_, np.ndarray) and min(model.components_.shape) <= EXACT_UNITS:
        value, std_err = -free_energy - model.log_partition("exact").value, 0.0
        return (value, value, std_err) if reverse else (value, std_err)
    ladder = {"random_state": 0} | ladder
    ais = model.log_partition("ais", **ladder)
    if not reverse:
        return -free_energy - ais.value, ais.std_err
    other = model.log_partition("raise", X=X[:100], **ladder)
    return -free_energy - ais.value, -free_energy - other.value, ais.std_err


def print_bracket(model, X, **annealing):
    """Print the mean log-likelihood of rows with ln Z by each method, AIS and RAISE with options.

    -> The smaller of the values by the ladder and by AIS, less two standard errors.
    """
    annealing = {"random_state": 0} | annealing
    free_energy = model.free_energy(X).mean()
    estimates = {
        "ladder": model.log_partition("ladder", random_state=0),
        "AIS": model.log_partition("ais", **annealing),
        "RAISE": model.log_partition("raise", X=X[:100], **annealing),
    }
    rows = [[name, -free_energy - e.value, e.std_err] for name, e in estimates.items()]
    print_table(["ln Z by", "test log-likelihood", "std. err."], rows, ".2f,.2f")
    return min(value - 2 * error for name, value, error in rows if name != "RAISE")


@contextmanager
def unconverged_is_fine():
    """No ConvergenceWarning inside: how far a fit has come is measured, or does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def timed(function, *args, clock=time.perf_counter, **options):
    """(result, seconds) of a call."""
    start = clock()
    result = function(*args, **options)
    return result, clock() - start


# Seconds of the processor: what others do there does not count.
processor_timed = partial(timed, clock=time.process_time)


def print_table(header, rows, formats=""):
    """Columns, right-aligned but the first; formats of the second and more, with commas between."""
    specs = ["", *formats.split(",")]
    cells = [header] + [
        [format(cell, spec) for cell, spec in zip_longest(row, specs[: len(row)], fillvalue="")]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for n, row in enumerate(cells):
        first, *rest = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1])] + [c.rjust(w) for c, w in rest]).rstrip())
        if n == 0:
            print("  ".join("-" * w for w in widths))
    print()


def save_table(path, header, rows, *, at_once=False):
    """Write a CSV file at the end of the script, or at once."""
    if at_once:
        path.parent.mkdir(parents=True, exist_ok=True)
    with open(path if at_once else unfinished(path), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_table(path):
    """-> header, rows of a CSV file, as texts."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def print_check(what, asked, measured, met):
    """A figure that was asked for beside the measured one."""
    print(f"{'met    ' if met else 'NOT MET'}  {what}: asked {asked}, measured {measured}")
