"""Largest memory of a fit on a memory map, against the number of rows.

Claim: it stays flat from 1e5 to 1e7 rows. Each fit has a process of its own and one thread. Rows of
uint8 are written to a temporary folder: 16 columns for FSLLDensity (65,536 joint states), 20 for
FVBMPseudoLikelihood (so many distinct rows that it goes through the larger files repeatedly; three
iterations), 100 for the restricted machines, of 20 hidden units and one epoch of mini-batches of
1,000. ``anonymous`` is what the process itself holds, looked at a hundred times a second;
``resident`` also counts the pages of the file, which the system takes back when it needs them.
``in_memory`` is the same fit on the array, for the smaller sizes.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from _common import make_parser, print_check, print_table, report, script, timed

from sklearn_boltz import SDCPRBM, TAP, TAPRBM, FSLLDensity, FVBMPseudoLikelihood

MIB = 2**20
RBM = {"n_components": 20, "batch_size": 1000, "max_iter": 1, "random_state": 0, "n_jobs": 1}
MODELS = {
    "FSLLDensity": (16, lambda: FSLLDensity(max_basis=10)),
    "FVBMPseudoLikelihood": (20, lambda: FVBMPseudoLikelihood(alpha=0.0, max_iter=3)),
    "SDCPRBM": (100, lambda: SDCPRBM(n_inner=1, n_gibbs=1, **RBM)),
    "TAPRBM": (100, lambda: TAPRBM(inference=TAP(max_iter=2), **RBM)),
}
# Above this, an array in memory is not tried.
MOST_IN_MEMORY = 10**6


def write_rows(path, n_rows, n_columns):
    """Bits, some rows at a time: in the first half, four of five are as their left neighbours."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n_rows, 100_000):
            size = min(100_000, n_rows - start), n_columns
            X = rng.integers(2, size=size, dtype=np.uint8)
            for j in range(1, n_columns // 2):
                X[:, j] = X[:, j - 1] ^ (rng.random(len(X)) < 0.2)
            X.tofile(file)


def memory(name):
    """A figure that Linux has of this process, in MiB."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 1024


# What it holds now without pages of files; the largest resident memory that it ever had.
ANONYMOUS, PEAK = "RssAnon", "VmHWM"


class Watch(threading.Thread):
    """Remember the largest anonymous memory."""

    def __init__(self, pause=0.01):
        super().__init__(daemon=True)
        self.peak, self.going, self.pause = memory(ANONYMOUS), True, pause

    def run(self):
        while self.going:
            self.peak = max(self.peak, memory(ANONYMOUS))
            time.sleep(self.pause)


def fit(name, path, n_rows, in_memory):
    """In the child: fit, print the figures as JSON."""
    n_columns, make = MODELS[name]
    X = np.memmap(path, dtype=np.uint8, mode="r", shape=(n_rows, n_columns))
    before = memory(ANONYMOUS)
    X = np.array(X) if in_memory else X
    watch = Watch()
    watch.start()
    _, seconds = timed(make().fit, X)
    watch.going = False
    watch.join()
    figures = {"before": before, "anonymous": watch.peak, "resident": memory(PEAK)}
    print(json.dumps({"seconds": seconds} | figures))


def fit_in_child(name, path, n_rows, in_memory=False):
    command = [sys.executable, "-W", "ignore", __file__, "--child", name, str(path), str(n_rows)]
    command += ["--in-memory"] * in_memory
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        print(f"{name}, {n_rows} rows: failed\n{child.stderr[-2000:]}")
        return None
    return json.loads(child.stdout)


def measure(name, sizes, folder):
    """Rows of the table, one for each size."""
    n_columns = MODELS[name][0]
    for n_rows in sizes:
        path = folder / "rows"
        write_rows(path, n_rows, n_columns)
        found = fit_in_child(name, path, n_rows)
        both = fit_in_child(name, path, n_rows, True) if n_rows <= MOST_IN_MEMORY else None
        path.unlink()
        if found is None:
            continue
        row = {"model": name, "n_rows": n_rows, "file_mib": n_rows * n_columns / MIB}
        row |= {"n_columns": n_columns, **found}
        yield row | {"in_memory": both["anonymous"] if both else float("nan")}


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--largest", type=float, default=1e7, help="number of rows to go up to")
    parser.add_argument("--child", nargs=3, metavar=("MODEL", "FILE", "ROWS"), help="internal")
    parser.add_argument("--in-memory", action="store_true", help="internal")
    args = parser.parse_args()
    if args.child:
        name, path, n_rows = args.child
        fit(name, Path(path), int(n_rows), args.in_memory)
        return
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= args.largest]
    with report(args.output / "scale.txt", "Memory of fits on memory maps, in MiB"):
        with tempfile.TemporaryDirectory() as folder:
            rows = [row for name in MODELS for row in measure(name, sizes, Path(folder))]
        cells = [[f"{v:.3g}" if isinstance(v, float) else v for v in row.values()] for row in rows]
        print_table(list(rows[0]), cells)
        for name in MODELS:
            mine = [row["anonymous"] for row in rows if row["model"] == name]
            if len(mine) < len(sizes):
                print_check(name, "completes", "failed", False)
                continue
            growth = mine[-1] - mine[0]
            what = f"{name}, anonymous memory from {sizes[0]:,} to {sizes[-1]:,} rows"
            print_check(what, "grows by < 100 MiB", f"{growth:.0f} MiB", growth < 100)
