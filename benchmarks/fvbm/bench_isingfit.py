"""Sparse networks beside R's IsingFit.

The same rows to R and to SparseFVBM, by turns: seconds, edges and weights. R has the
package IsingFit if it is installed, else _isingfit.R takes the same steps with glmnet. Only the
fits are timed, not the start of either program. Other processes may disturb one more than the
other, so the ratio of the seconds of processor is given too, and what glmnet alone takes of these.
Without R or glmnet it is skipped.
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _common import MissingData, make_parser, print_check, print_table, report, script
from _data import load_density, load_spikes

from sklearn_boltz import SparseFVBM

SCRIPT = Path(__file__).with_name("_isingfit.R")
N_ROWS, GAMMA = 6000, 0.25


def find_r():
    """Rscript that has glmnet."""
    rscript = shutil.which("Rscript")
    command = [rscript, "-e", "library(glmnet)"]
    if rscript is None or subprocess.run(command, capture_output=True, check=False).returncode:
        raise MissingData("there is no Rscript with glmnet")
    return rscript


def by_r(rscript, X, folder):
    """Weights for 0 and 1, what ran, its seconds, those of processor, and of glmnet alone."""
    np.savetxt(folder / "table.csv", X, fmt="%d", delimiter=",")
    subprocess.run([rscript, SCRIPT, folder / "table.csv", folder, str(GAMMA)], check=True)
    what, *seconds = (folder / "run.txt").read_text().splitlines()
    weights = np.genfromtxt(folder / "weights.csv", delimiter=",")
    return weights, what, *map(float, seconds)


def by_us(X):
    """Weights for 0 and 1, seconds, and those of processor."""
    wall, processor = time.perf_counter(), time.process_time()
    model = SparseFVBM(ebic_gamma=GAMMA, nodewise="and")
    coupling = 4 * model.fit(X).coupling_
    return coupling, time.perf_counter() - wall, time.process_time() - processor


def compare(name, X, rscript, repeats):
    """What ran, a row of the table, ratios, agreement of pairs, largest difference of weights."""
    pairs = np.triu_indices(X.shape[1], 1)
    theirs, ours = [], []
    by_us(X[:500])  # imports
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            weights, what, *seconds = by_r(rscript, X, Path(folder))
            theirs.append(seconds)
            coupling, *seconds = by_us(X)
            ours.append(seconds)
    theirs, ours = np.median(theirs, axis=0), np.median(ours, axis=0)
    agree = ((coupling != 0) == (weights != 0))[pairs].mean()
    off = np.abs(coupling - weights).max()
    row = [name, *(f"{s:.2f}" for s in (*theirs, *ours)),
           np.count_nonzero(weights[pairs]), np.count_nonzero(coupling[pairs])]  # fmt: skip
    return what, row, theirs[:2] / ours, agree, off


def beside_r(tables, rscript, repeats):
    """Print the comparison."""
    found = {name: compare(name, X, rscript, repeats) for name, X in tables.items()}
    print(f"In R: {next(iter(found.values()))[0]}.\n")
    header = ["rows", "R, s", "processor", "glmnet alone", "ours, s", "processor",
              "edges in R", "ours"]  # fmt: skip
    print_table(header, [row for _, row, *_ in found.values()])
    for name, (_, _, ratio, agree, off) in found.items():
        shown = f"{ratio[0]:.0f}, by processor {ratio[1]:.0f}"
        print_check(f"{name}: times faster", "20", shown, ratio.min() >= 20)
        print_check(f"{name}: pairs that agree", "0.97", f"{agree:.4f}", agree >= 0.97)
        print_check(f"{name}: weights within", "0.02", f"{off:.4f}", off <= 0.02)


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    tables = {
        "NLTCS": load_density("nltcs", args.data)[0][:N_ROWS],
        "spikes50": load_spikes(args.data)["spikes50"][:N_ROWS],
    }
    rscript = find_r()
    with report(args.output / "isingfit.txt", "Sparse networks beside IsingFit"):
        beside_r(tables, rscript, args.repeats)
