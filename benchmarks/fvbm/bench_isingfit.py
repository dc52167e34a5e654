"""Sparse networks beside R's IsingFit and glmnet.

R and SparseFVBM get the same rows by turns: seconds of the processor, edges, weights. IsingFit
spends most of its time outside of its solver, glmnet; the rival in speed is therefore a loop over
glmnet that computes the EBIC from its deviances, and finds the same network. The start of either
program does not count. The script is skipped without R, IsingFit or glmnet.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, processor_timed, report, script
from _data import load_density, load_spikes
from _r import by_r, find_r

from sklearn_boltz import SparseFVBM

N_ROWS, GAMMA = 6000, 0.25
ISINGFIT = f"IsingFit::IsingFit(x, gamma = {GAMMA}, plot = FALSE, progressbar = FALSE)$weiadj"
GLMNET = f"""sapply(seq_len(ncol(x)), function(j) {{
    path <- glmnet::glmnet(x[, -j], x[, j], family = "binomial")
    price <- log(nrow(x)) + 2 * {GAMMA} * log(ncol(x) - 1)
    best <- which.min(deviance(path) + price * path$df)
    append(path$beta[, best], 0, j - 1)
}})"""


METHODS = ["IsingFit", "glmnet", "ours"]


def by_us(X):
    """Weights for 0 and 1."""
    return 4 * SparseFVBM(ebic_gamma=GAMMA, nodewise="and").fit(X).coupling_


def edges(weights):
    """Which pairs of columns have weights in both regressions."""
    pairs = np.triu_indices(len(weights), 1)
    return (weights[pairs] != 0) & (weights.T[pairs] != 0)


def compare(rscript, X, repeats):
    """Weights by IsingFit, by glmnet and by us, and the seconds of each."""
    by_us(X[:500])  # imports
    seconds = []
    for _ in range(repeats):
        found, of_r = zip(*(by_r(rscript, code, X) for code in (ISINGFIT, GLMNET)), strict=True)
        ours, of_us = processor_timed(by_us, X)
        seconds.append([*of_r, of_us])
    return [w.reshape(ours.shape) for w in found] + [ours], np.median(seconds, axis=0)


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    tables = {
        "NLTCS": load_density("nltcs", args.data)[0][:N_ROWS],
        "spikes50": load_spikes(args.data)["spikes50"][:N_ROWS],
    }
    rscript, versions = find_r("IsingFit", "glmnet")
    with report(args.output / "isingfit.txt", "Sparse networks beside IsingFit and glmnet"):
        print(f"{versions}\n")
        found = {name: compare(rscript, X, args.repeats) for name, X in tables.items()}
        header = ["rows", *(f"{by}, {of}" for of in ("s", "edges") for by in METHODS)]
        print_table(header, [
            [name, *(f"{s:.2f}" for s in seconds), *(np.count_nonzero(edges(w)) for w in weights)]
            for name, (weights, seconds) in found.items()
        ])  # fmt: skip
        for name, ((weights, _, ours), (_, of_glmnet, of_us)) in found.items():
            agree, off = (edges(ours) == edges(weights)).mean(), np.abs(ours - weights).max()
            times = of_glmnet / of_us
            print_check(f"{name}: times faster than glmnet", "7", f"{times:.0f}", times >= 7)
            print_check(f"{name}: pairs that agree", "0.97", f"{agree:.4f}", agree >= 0.97)
            print_check(f"{name}: weights within", "0.02", f"{off:.4f}", off <= 0.02)
