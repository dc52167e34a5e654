"""Which pairs of Likert items `alpha="ebic"` selects, beside other criteria and tests of all pairs.

Items of five levels: a chain, a random graph, blocks of five, no edges. Half of the tables are cut
from normal variables with partial correlations of .35 or so, half drawn from Potts couplings. Other
EBICs, on the same paths, charge ln N for each parameter: of the penalised fit, of the refit, and
effective ones (Yuan and Lin 2006, eq. 6.3). With `ordered`, levels are taken in their order. The
chi-squared tests and those of trends, given all other items, are adjusted by Holm. With `--r`, the
criterion is instead compared with packages of R on tables of one size: mgm with items as numbers
and as categories, and the graphical lasso of qgraph on rank correlations.
"""

import warnings
from functools import partial
from unittest.mock import patch

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script
from _r import by_r, find_r
from scipy.linalg import solve

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.sparse import _task
from sklearn_boltz.networks.sparse._path import neighbours

GRAPHS = "chain", "random", "blocks", "none"
SIZES = (200, 10), (500, 10), (500, 20), (1000, 20)

MGM = """mgm::mgm(
  x, type = rep("{}", ncol(x)), level = rep({}, ncol(x)), lambdaSel = "EBIC", pbar = FALSE,
  signInfo = FALSE, warnings = FALSE
)$pairwise$wadj"""
BY_R = {
    "mgm, numbers": MGM.format("g", 1),
    "mgm, categories": MGM.format("c", 5),
    "qgraph, EBICglasso": 'qgraph::EBICglasso(cor(x, method = "spearman"), nrow(x))',
}


def table_of(kind, latent, n, d, rng):
    """Which pairs of d items are connected, and the answers of n people."""
    j, k = np.triu_indices(d, 1)
    near = {"chain": k - j == 1, "random": rng.permutation(len(j)) < d, "blocks": j // 5 == k // 5}
    edges, graph = near.get(kind, j > k), np.zeros((d, d), dtype=bool)
    graph[j, k] = edges
    trend, signs, shift = np.arange(-2, 3), rng.choice([-1, 1], (d, d)), rng.normal(size=(5, d)) / 3
    if latent:
        weights = graph * signs * rng.uniform(0.25, 0.45, (d, d))
        weights += weights.T.copy()
        weights /= max(1, np.linalg.eigvalsh(weights)[-1] / 0.85)
        z = rng.multivariate_normal(np.zeros(d), np.linalg.inv(np.eye(d) - weights), n)
        return edges, sum(z / z.std(axis=0) > cut + shift[0] for cut in (-1.4, -0.5, 0.5, 1.4))
    block = rng.normal(size=(d, 5, d, 5)) + np.einsum("jk,a,b->jakb", signs, trend, trend)
    block *= 1.5 / np.linalg.norm(block, axis=(1, 3), keepdims=True) * graph[:, None, :, None]
    coupling = (block + block.transpose(2, 3, 0, 1)).reshape(5 * d, 5 * d)
    return edges, PottsModel(coupling, shift.T.ravel(), np.full(d, 5)).sample(n, rng, 100)


def charged(of, path, state, _, price, refitted):
    """The EBIC with ln N for each parameter: "penalised", "refitted" or "effective" ones."""
    network, layout, total = path.network, path.network.layout, path.network.total
    present, sizes = neighbours(network, state.theta), np.bincount(layout.groups)[layout.pairs]
    chosen, gradient = path.weights == 0, path.gradient(state)
    chosen[layout.pairs[present]] = True
    parameters, matrix = path.second_derivatives(state, 0, chosen)
    step = np.zeros_like(gradient)
    step[parameters] = solve(matrix, -gradient[parameters], assume_a="pos")
    before, after = (np.sqrt(np.bincount(layout.groups, theta**2))[layout.pairs]
                     for theta in (state.theta, state.theta + step))  # fmt: skip
    if of == "effective":
        sizes = 1 + before / np.maximum(after, 1e-12) * (sizes - 1)
    falls = state.losses.sum() + gradient @ step / 2 * (of == "refitted")
    value = 2 * total * falls + sizes[present].sum() * np.log(total)
    # `price` is what it charges for one parameter: ln N, and for the choice among pairs.
    return np.array([value + present.sum() * (price - np.log(total))])


def found_in(X, pairs, of=None, level=None, in_r=None, trends=None, **options):
    """Which pairs are found, by an EBIC, by chi-squared tests or those of trends, or in R."""
    if trends is not None:
        with warnings.catch_warnings(action="ignore"):  # of few rows
            network = FVBMPseudoLikelihood(columns=("ordinal", range(5))).fit(X)
            return statistics.inference(network, X).adjusted_p_value("holm")[*pairs.T] < trends
    if in_r is not None:
        return by_r(*in_r, X)[0].reshape((X.shape[1],) * 2)[*pairs.T] != 0
    if level is None:
        criterion = partial(charged, of) if of else _task.information_criterion
        with patch.object(_task, "information_criterion", criterion):
            model = SparseFVBM(**{"alpha": "ebic", "columns": range(5)} | options).fit(X)
            return model._pair_norms()[*pairs.T] > 0
    with patch.object(_task, "LEVEL", level):
        dependent = _task.dependent_pairs(X, np.ones(len(X)), pairs.tolist())
    return np.array([pair in dependent for pair in pairs.tolist()])


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--r", action="store_true", help="beside packages of R")
    parser.add_argument("--networks", type=int, default=3, help="of each kind")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many, from the smallest")
    args = parser.parse_args()
    ways = {"ebic": {}, 'ebic, nodewise="and"': {"nodewise": "and"}}
    ways |= {
        f"{way}, ordered": {**options, "columns": ("ordinal", range(5))}
        for way, options in ways.items()
    }
    ways |= {f"ln N each, {of}": {"of": of} for of in ("penalised", "refitted", "effective")}
    ways |= {f"chi-squared, {level:.0%}": {"level": level} for level in (0.01, 0.05)}
    ways |= {f"trends, {level:.0%}": {"trends": level} for level in (0.01, 0.05)}
    log, sizes = args.output / "likert.txt", SIZES[: args.sizes]
    if args.r:
        rscript, versions = find_r("mgm", "glmnet", "qgraph")
        ways = {way: ways[way] for way in ("ebic", "ebic, ordered")}
        ways |= {way: {"in_r": (rscript, expression)} for way, expression in BY_R.items()}
        log, sizes = args.output / "likert_r.txt", SIZES[1:2]
    header = ["criterion", "F1, cut normals", "F1, Potts", "false edges", "without edges"]
    with report(log, "Networks of Likert items"):
        if args.r:
            print(f"{versions}\n")
        for n, d in sizes:
            pairs = np.argwhere(np.triu(np.ones((d, d)), 1))
            figures = np.empty((len(ways), len(GRAPHS), 2, args.networks, 2))
            for way, graph, latent, seed in np.ndindex(figures.shape[:-1]):
                true, X = table_of(GRAPHS[graph], latent, n, d, np.random.default_rng([seed, d, n]))
                found = found_in(X, pairs, **list(ways.values())[way])
                score = 2 * (found & true).sum() / max((found.sum() + true.sum()), 1)
                figures[way, graph, latent, seed] = score, (found & ~true).sum()
            scores, false = figures[:, :3, ::-1, :, 0].mean((1, 3)), figures[..., 1].mean((2, 3))
            columns = *scores.T, false[:, :3].mean(axis=1), false[:, 3]
            print(f"{n} rows, {d} items, {args.networks} networks of each kind:\n")
            print_table(header, zip(ways, *(np.char.mod("%.2f", c) for c in columns), strict=True))
