"""Posterior probabilities of edges beside R's bgms.

Ten bits and ten items of five levels, cut from normal variables: the probability of each of the 45
edges by bgms and by `statistics.edge_inclusion`, with the same model, priors and number of sweeps,
so with ``likelihood_power=1``. Both also against themselves with another seed, since chains are
finite. bgms moves by adaptive Metropolis steps, which take a quarter of the time of its default.
Seconds are those of the processor. It is skipped without R or bgms.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, processor_timed, report, script
from _r import by_r, find_r
from bench_likert import table_of

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.statistics import edge_inclusion

N_ROWS, N_COLUMNS = 400, 10
# From the draws: `posterior_mean_indicator` of version 0.1.6.1 has them at other pairs.
BGMS = """{{
  fit <- bgms::bgm(x, iter = {}, warmup = 1000, chains = 4, cores = 1, seed = {},
                   update_method = "adaptive-metropolis", display_progress = "none")
  sapply(fit$raw_samples[c("indicator", "pairwise")], function(x) colMeans(do.call(rbind, x)))
}}"""


def by_us(X, n_sweeps, seed):
    """Probabilities and mean interactions of all pairs."""
    network = FVBMPseudoLikelihood(columns="ordinal").fit(X)
    result = edge_inclusion(network, X, likelihood_power=1.0, n_sweeps=n_sweeps, random_state=seed)
    upper = np.triu_indices(X.shape[1], 1)
    return np.array([result.probability[upper], result.interaction[upper]])


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sweeps", type=int, default=2000)
    args = parser.parse_args()
    _, items = table_of("random", True, N_ROWS, N_COLUMNS, np.random.default_rng(0))
    tables = {"bits": (items > 1).astype(int), "five levels": items}
    rscript, versions = find_r("bgms")
    rows = []
    with report(args.output / "bgms.txt", "Probabilities of edges beside bgms"):
        print(f"{versions}; {N_ROWS} rows, {N_COLUMNS} columns, 4 chains of {args.sweeps} sweeps\n")
        for name, X in tables.items():
            ways = {
                "bgms": lambda seed, X=X: by_r(rscript, BGMS.format(args.sweeps, seed), X),
                "ours": lambda seed, X=X: processor_timed(by_us, X, args.sweeps, seed),
            }
            found = {way: [run(seed) for seed in (1, 2)] for way, run in ways.items()}
            values = {
                way: [value.reshape(2, -1) for value, _ in runs] for way, runs in found.items()
            }
            seconds = {way: np.mean([s for _, s in runs]) for way, runs in found.items()}
            for one, other in ("bgms", "ours"), ("bgms", "bgms"), ("ours", "ours"):
                (p, interaction), (q, of_other) = values[one][0], values[other][1]
                rows.append([
                    name, f"{one}, {other}", f"{np.corrcoef(p, q)[0, 1]:.4f}",
                    f"{np.abs(p - q).max():.3f}", f"{np.abs(interaction - of_other).max():.3f}",
                    *(f"{seconds[way]:.1f}" for way in (one, other)),
                ])  # fmt: skip
        header = ["columns", "between", "correlation", "largest difference", "of interactions",
                  "seconds", ""]  # fmt: skip
        print_table(header, rows)
