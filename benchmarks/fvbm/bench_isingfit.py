"""Sparse networks beside R's IsingFit.

The same rows to R and to SparseFVBM, by turns: seconds of the processor, edges and weights, and the
seconds that glmnet alone takes of R's. The start of either program does not count. It is skipped
without R, IsingFit or glmnet.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, processor_timed, report, script
from _data import load_density, load_spikes
from _r import by_r, find_r

from sklearn_boltz import SparseFVBM

N_ROWS, GAMMA = 6000, 0.25
ISINGFIT = f"IsingFit::IsingFit(x, gamma = {GAMMA}, plot = FALSE, progressbar = FALSE)$weiadj"
GLMNET = (
    "sapply(seq_len(ncol(x)), "
    'function(j) glmnet::glmnet(x[, -j], x[, j], family = "binomial")$df[1])'
)


def by_us(X):
    """Weights for 0 and 1."""
    return 4 * SparseFVBM(ebic_gamma=GAMMA, nodewise="and").fit(X).coupling_


def compare(rscript, X, repeats):
    """Weights by R and by us, and seconds by R, by glmnet alone and by us."""
    by_us(X[:500])  # imports
    seconds = []
    for _ in range(repeats):
        weights, of_r = by_r(rscript, ISINGFIT, X)
        ours, of_us = processor_timed(by_us, X)
        seconds.append([of_r, by_r(rscript, GLMNET, X)[1], of_us])
    return weights.reshape(ours.shape), ours, np.median(seconds, axis=0)


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
    with report(args.output / "isingfit.txt", "Sparse networks beside IsingFit"):
        print(f"{versions}\n")
        found = {name: compare(rscript, X, args.repeats) for name, X in tables.items()}
        header = ["rows", "IsingFit, s", "glmnet alone", "ours, s", "edges of IsingFit", "ours"]
        print_table(header, [
            [name, *(f"{s:.2f}" for s in seconds), *(np.count_nonzero(np.triu(w)) for w in both)]
            for name, (*both, seconds) in found.items()
        ])  # fmt: skip
        for name, (weights, ours, (of_r, _, of_us)) in found.items():
            pairs = np.triu_indices(len(ours), 1)
            agree = ((ours != 0) == (weights != 0))[pairs].mean()
            off = np.abs(ours - weights).max()
            print_check(f"{name}: times faster", "20", f"{of_r / of_us:.0f}", of_r >= 20 * of_us)
            print_check(f"{name}: pairs that agree", "0.97", f"{agree:.4f}", agree >= 0.97)
            print_check(f"{name}: weights within", "0.02", f"{off:.4f}", off <= 0.02)
