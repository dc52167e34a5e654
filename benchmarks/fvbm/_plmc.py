"""plmc, a program in C that fits Potts models to alignments, where it is there.

It fits by pseudo-likelihood. https://github.com/debbiemarkslab/plmc (MIT): ``make all`` builds it
in double precision, without threads. It is neither part of this library nor downloaded.
"""

import gzip
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import timed

# A line of its log: the number of an iteration, seconds since the fit began, and five figures.
ITERATION = re.compile(r"^(\d+)\t([\d.]+)(?:\t[-\w.]+){5}$", re.MULTILINE)


@dataclass
class Run:
    """What plmc did.

    Attributes
    ----------
    n_iterations : int
    seconds : float
        Of all iterations.
    other_seconds : float
        Of the rest: reading, weights, scores, writing.
    weights : ndarray of shape (n_sequences,)
        Of all sequences of the file; 0 for those that plmc drops.
    scores : dict of (int, int) to float
        Corrected norms of the couplings by pair of columns of the file, from 0, of which the
        first is the smaller one.
    """

    n_iterations: int
    seconds: float
    other_seconds: float
    weights: np.ndarray
    scores: dict


def find_plmc(path=None):
    """The program at a path, else on the PATH; None where it is in neither place."""
    if path is not None and shutil.which(path) is None:
        raise SystemExit(f"--plmc {path}: there is no such program")
    return path or shutil.which("plmc")


def run_plmc(program, alignment, options, n_iterations):
    """Fit an alignment, on one thread.

    Parameters
    ----------
    program : str
    alignment : Path
        FASTA or A2M, plain or gzip.
    options : list of str
        As ``["-le", "16", "-lh", "0.01"]``; penalties are on the sum over rows.
    n_iterations : int
        Iterations at most; plmc's criterion may end the fit before.
    """
    content = alignment.read_bytes()
    if alignment.suffix == ".gz":
        content = gzip.decompress(content)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, couplings, weights = folder / "a2m", folder / "couplings", folder / "weights"
        file.write_bytes(content)
        command = [program, "-c", couplings, "--save-weights", weights, "-m", str(n_iterations)]
        ran, seconds = timed(
            subprocess.run, [*command, *options, file], capture_output=True, text=True, check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        log = [(int(k), float(s)) for k, s in ITERATION.findall(ran.stderr)]
        n_done, fit_seconds = log[-1]
        # Column, letter, column, letter, 0, score.
        pairs = map(str.split, couplings.read_text().splitlines())
        scores = {(int(i) - 1, int(j) - 1): float(score) for i, _, j, _, _, score in pairs}
        weights = np.array(weights.read_text().split(), dtype=float)
        return Run(n_done, fit_seconds, seconds - fit_seconds, weights, scores)
