"""Sparse networks beside R's IsingFit, and what the weights of the penalty are good for.

The same rows to R and to SparseFVBM, by turns: seconds, edges and weights. R has the
package IsingFit if it is installed, else _isingfit.R takes the same steps with glmnet. Only the
fits are timed, not the start of either program. Other processes may disturb one more than the
other, so the ratio of the seconds of processor is given too, and what glmnet alone takes of these.
Without R or glmnet this part is skipped.

Then, by simulation, which edges alpha="ebic" finds with and without weights (`standardize`), where
some values are rare. Last, the test log-likelihood of networks of DNA (180 columns).
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, processor_timed, report, run_script
from _data import load_density, load_spikes

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM
from sklearn_boltz.networks.model._spin_model import SpinModel

SCRIPT = Path(__file__).with_name("_isingfit.R")
N_ROWS, GAMMA = 6000, 0.25
# Simulated networks: columns, rows, share of edges, number of networks.
D, N_SIMULATED, DENSITY, N_NETWORKS = 16, 1000, 0.12, 40


def find_r():
    """Rscript, if it has glmnet; else None."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    found = subprocess.run([rscript, "-e", "library(glmnet)"], capture_output=True, check=False)
    return rscript if found.returncode == 0 else None


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
    print()


def random_network(rng):
    """A sparse network of columns whose values are often rare."""
    coupling = np.where(rng.random((D, D)) < DENSITY, rng.uniform(0.2, 0.6, (D, D)), 0.0)
    coupling = np.triu(coupling * rng.choice([-1, 1], (D, D)), 1)
    return SpinModel(coupling + coupling.T, rng.uniform(-1.5, 0.3, D))


def quality(true, found):
    """Precision, recall, and F1 of edges."""
    pairs = np.triu_indices(D, 1)
    true, found = true[pairs] != 0, found[pairs] != 0
    both = (true & found).sum()
    return both / max(found.sum(), 1), both / true.sum(), 2 * both / (true.sum() + found.sum())


def weights_of_the_penalty():
    """Print how edges are found with and without weights."""
    ways = [(nodewise, weighted) for nodewise in (False, "and") for weighted in (False, True)]
    figures = {way: [] for way in ways}
    for seed in range(N_NETWORKS):
        rng = np.random.default_rng(seed)
        model = random_network(rng)
        X = model.sample(N_SIMULATED, rng, 1)
        for nodewise, weighted in ways:
            fit = SparseFVBM(nodewise=nodewise, standardize=weighted).fit(X)
            figures[nodewise, weighted].append(quality(model.coupling, fit.coupling_))
    rows = []
    for (nodewise, weighted), values in figures.items():
        error = np.std(values, axis=0, ddof=1)[2] / np.sqrt(N_NETWORKS)
        precision, recall, score = np.mean(values, axis=0)
        shown = f"{precision:.3f}", f"{recall:.3f}", f"{score:.3f} ± {error:.3f}"
        rows.append(["by node" if nodewise else "jointly", "yes" if weighted else "no", *shown])
    print(f"{N_NETWORKS} networks of {D} columns, {N_SIMULATED:,} rows each, alpha='ebic':\n")
    print_table(["fit", "standardize", "precision", "recall", "F1"], rows)


def likelihood_of_dna(train, test):
    """Print the likelihood of held-out rows of several networks."""
    ways = {
        "l2, alpha=0.1": FVBMPseudoLikelihood(alpha=0.1),
        "l1, ebic": SparseFVBM(),
        "l1, ebic, by node": SparseFVBM(nodewise="and"),
        "l1, cv": SparseFVBM(alpha="cv", cv=3),
        "l1, cv, by node": SparseFVBM(alpha="cv", cv=3, nodewise="and"),
    }
    rows = []
    for name, model in ways.items():
        model, seconds = processor_timed(model.fit, train)
        edges = np.count_nonzero(model.coupling_) // 2
        rows.append([name, f"{seconds:.1f}", edges, f"{model.score(test):.2f}"])
    print(f"DNA, {len(train):,} rows, test log-likelihood:\n")
    print_table(["fit", "processor, s", "edges", "nats a row"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    tables = {
        "NLTCS": load_density("nltcs", args.data)[0][:N_ROWS],
        "spikes50": load_spikes(args.data)["spikes50"][:N_ROWS],
    }
    train, _, test = load_density("dna", args.data)
    rscript = find_r()
    with report(args.output / "isingfit.txt", "Sparse networks beside IsingFit"):
        if rscript is None:
            print("Rscript with glmnet is not there: no comparison.\n")
        else:
            beside_r(tables, rscript, args.repeats)
        weights_of_the_penalty()
        likelihood_of_dna(train, test)


if __name__ == "__main__":
    run_script(main)
