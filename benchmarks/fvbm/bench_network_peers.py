"""Networks of other packages, side by side in one run.

- BoltzMM (R, C++): the same model by the same objective, for 5 to 20 binary columns and 16,000
  rows: parameters, standard errors, seconds of processor.
- mgm (R, glmnet): categorical columns by node, the penalty by EBIC, of simulated networks with
  three values a column: how many of the true edges are found, how many that are found are true,
  and seconds of processor. Here it is the group penalty, by node and jointly.
- ConIII (Python): maximum entropy of 15 neurons: see `bench_maximum_entropy.py`.

plmc is in `bench_potts.py`, IsingFit in `bench_isingfit.py`. What is not installed is skipped.
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.model._potts_model import PottsModel
from sklearn_boltz.fully_visible.model._spin_model import SpinModel

SCRIPT = Path(__file__).with_name("_network_peers.R")
N_ROWS, SIZES = 16_000, (5, 10, 15, 20)
# Categorical networks: columns, values of each, rows, share of edges, number of networks.
D, N_VALUES, N_SIMULATED, DENSITY, N_NETWORKS = 10, 3, 1000, 0.2, 5


def has_package(name):
    """Whether R and one of its packages are installed."""
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", f"library({name})"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def by_r(name, X):
    """What a package of R finds: a dict of arrays, what ran, seconds of the fit and of errors."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.savetxt(folder / "table.csv", X, fmt="%d", delimiter=",")
        command = ["Rscript", SCRIPT, name, folder / "table.csv", folder]
        subprocess.run(command, check=True, capture_output=True)
        what, fit, errors = (folder / "run.txt").read_text().splitlines()
        found = {
            file.stem: np.genfromtxt(file, delimiter=",", missing_values="NA")
            for file in folder.glob("*.csv")
        }
    return found, what, float(fit), float(errors)


def timed_on_processor(function):
    """What a function returns, and its seconds of processor."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def binary(args):
    """BoltzMM."""
    rows, rng = [], np.random.default_rng(args.seed)
    for d in SIZES:
        coupling = np.triu(rng.normal(scale=0.5 / np.sqrt(d), size=(d, d)), 1)
        truth = SpinModel(coupling + coupling.T, rng.normal(scale=0.2, size=d))
        X = 2 * truth.sample(N_ROWS, rng, 1) - 1
        found, what, fit, errors = by_r("BoltzMM", X)
        model, ours = timed_on_processor(lambda X=X: FVBMPseudoLikelihood(alpha=0.0).fit(X))
        inference, our_errors = timed_on_processor(
            lambda X=X, model=model: model.inference(X, covariance="sandwich")
        )
        apart = np.abs(model.coupling_ - found["coupling"]).max()
        std_err = inference.coupling_matrix(inference.std_err)
        upper = np.triu_indices(d, 1)
        relative = np.abs(std_err[upper] / found["std_err"][upper] - 1).max()
        rows.append([
            d, f"{fit:.2f}", f"{ours:.3f}", f"{fit / ours:.0f}", f"{errors:.2f}",
            f"{our_errors:.3f}", f"{errors / our_errors:.0f}", f"{apart:.1e}", f"{relative:.1e}",
        ])  # fmt: skip
    print(f"{what}, tolerance 1e-5; {N_ROWS:,} rows; seconds of processor")
    header = ["columns", "fit in R", "here", "ratio", "errors in R", "here", "ratio"]
    print_table([*header, "couplings differ by", "errors, relative"], rows)
    print()


def network(rng):
    """A categorical network, and which pairs are connected."""
    edges = np.triu(rng.random((D, D)) < DENSITY, 1)
    coupling = np.zeros((D * N_VALUES,) * 2)
    for j, k in np.argwhere(edges):
        block = rng.normal(scale=0.7, size=(N_VALUES, N_VALUES))
        coupling[N_VALUES * j :, N_VALUES * k :][:N_VALUES, :N_VALUES] = block
    intercept = rng.normal(scale=0.3, size=D * N_VALUES)
    return PottsModel(coupling + coupling.T, intercept, np.full(D, N_VALUES)), edges


def categorical(args):
    """mgm."""
    fits = {
        "group, by node": dict(nodewise=True),
        "group, jointly": dict(),
    }
    names, counts, seconds = ["mgm", *fits], {}, {}
    for k in range(N_NETWORKS):
        rng = np.random.default_rng([args.seed, k])
        truth, edges = network(rng)
        X = truth.sample(N_SIMULATED, rng, 1000)
        found, what, spent, _ = by_r("mgm", X + 1)
        results = [(found["coupling"] != 0, spent)]
        for settings in fits.values():
            model = FVBMPseudoLikelihood(penalty="group", alpha="ebic", **settings)
            model, spent = timed_on_processor(lambda model=model, X=X: model.fit(X))
            results.append((model.interaction_scores(apc=False) > 0, spent))
        for name, (chosen, spent) in zip(names, results, strict=True):
            chosen = np.triu(chosen, 1)
            counted = counts.setdefault(name, np.zeros(3, dtype=int))
            counted += [(chosen & edges).sum(), chosen.sum(), edges.sum()]
            seconds[name] = seconds.get(name, 0.0) + spent
    rows = []
    for name in names:
        right, n_chosen, n_true = counts[name]
        rows.append([
            name, f"{right / max(n_chosen, 1):.2f}", f"{right / n_true:.2f}",
            f"{2 * right / (n_chosen + n_true):.3f}", f"{seconds[name] / N_NETWORKS:.2f}",
            f"{seconds['mgm'] / seconds[name]:.0f}",
        ])  # fmt: skip
    print(f"{what}; {N_NETWORKS} networks of {D} columns of {N_VALUES} values, {N_SIMULATED} rows")
    print_table(["fit", "precision", "recall", "F1", "s of processor", "mgm's time"], rows)
    best = max(2 * counts[name][0] / counts[name][1:].sum() for name in fits)
    theirs = 2 * counts["mgm"][0] / counts["mgm"][1:].sum()
    print_check("F1 of edges", f">= {theirs:.3f} of mgm", f"{best:.3f}", best >= theirs)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    parts = {"BoltzMM": binary, "mgm": categorical}
    missing = [name for name in parts if not has_package(name)]
    if missing:
        print(f"bench_network_peers: {', '.join(missing)} skipped, not installed in R")
    if len(missing) == len(parts):
        return
    with report(args.output / "network_peers.txt", "Networks beside other packages"):
        for name, part in parts.items():
            if name not in missing:
                part(args)


if __name__ == "__main__":
    run_script(main)
