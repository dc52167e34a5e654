"""Which pairs of Likert items `alpha="ebic"` selects, beside other criteria and tests of all pairs.

Items of five levels: a chain, a random graph, blocks of five, no edges. Half of the tables are cut
from normal variables with partial correlations of .35 or so, half drawn from Potts couplings.
Beside `SparseFVBM` stand, on its path, EBICs that charge ln N for each parameter: of the penalised
fit, of the refit, and with the effective degrees of freedom of the group lasso (Yuan and Lin 2006,
eq. 6.3); and chi-squared tests with Holm's adjustment.
"""

import warnings
from functools import partial
from unittest.mock import patch

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, run_script

from sklearn_boltz import SparseFVBM
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.sparse import _dependent, _task
from sklearn_boltz.networks.sparse._path import neighbours, refitting_step

GRAPHS, SIZES = ("chain", "random", "blocks", "none"), ((200, 10), (500, 10), (500, 20), (1000, 20))


def table_of(kind, latent, n, d, rng):
    """A graph, as the upper half of a mask, and the answers of n people to d items."""
    j, k = np.triu_indices(d, 1)
    near = {"chain": k - j == 1, "random": rng.permutation(len(j)) < d, "blocks": j // 5 == k // 5}
    edges, graph = near.get(kind, j > k), np.zeros((d, d), dtype=bool)
    graph[j, k] = edges
    trend, signs, shift = np.arange(-2, 3), rng.choice([-1, 1], (d, d)), rng.normal(size=(5, d)) / 3
    if latent:
        weights = graph * signs * rng.uniform(0.25, 0.45, (d, d))
        weights = weights + weights.T
        weights /= max(1, np.linalg.eigvalsh(weights)[-1] / 0.85)
        z = rng.multivariate_normal(np.zeros(d), np.linalg.inv(np.eye(d) - weights), n)
        cuts = np.array([-1.4, -0.5, 0.5, 1.4])[:, None, None] + shift[0]
        return graph, (z / z.std(axis=0) > cuts).sum(axis=0)
    block = rng.normal(size=(d, 5, d, 5)) + np.einsum("jk,a,b->jakb", signs, trend, trend)
    block *= 1.5 / np.linalg.norm(block, axis=(1, 3), keepdims=True) * graph[:, None, :, None]
    coupling = block.reshape(5 * d, 5 * d)
    model = PottsModel(coupling + coupling.T, shift.T.ravel(), np.full(d, 5))
    return graph, model.sample(n, rng, 100)


def charged(of, path, state, gamma):
    """The EBIC with ln N for each parameter: "penalised", "refitted" or "effective" ones."""
    network, layout, total = path.network, path.network.layout, path.network.total
    present, sizes = neighbours(network, state.theta), np.bincount(layout.groups)[layout.pairs]
    step = refitting_step(path, state)
    before, after = (np.sqrt(np.bincount(layout.groups, theta**2))[layout.pairs]
                     for theta in (state.theta, state.theta + step))  # fmt: skip
    if of == "effective":
        sizes = 1 + before / np.maximum(after, 1e-12) * (sizes - 1)
    value = 2 * total * state.losses.sum() + sizes[present].sum() * np.log(total)
    if of == "refitted":
        value += total * path.solver.gradient(state) @ step
    return np.array([value + 2 * gamma * present.sum() * np.log(network.n_columns - 1)])


def found_in(X, pairs, of=None, level=None, **options):
    """Which pairs are found, by an EBIC or by chi-squared tests."""
    if level is None:
        with patch.object(_task, "ebic", partial(charged, of) if of else _task.ebic):
            return SparseFVBM(n_values=5, **options).fit(X)._pair_norms()[*pairs.T] > 0
    with patch.object(_dependent, "LEVEL", level):
        dependent = _dependent.dependent_pairs(X, np.ones(len(X)), pairs.tolist())
    return np.array([pair in dependent for pair in pairs.tolist()])


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--networks", type=int, default=4, help="of each kind")
    args = parser.parse_args()
    ways = {"ebic": {}, 'ebic, nodewise="and"': {"nodewise": "and"}}
    ways |= {f"ln N each, {of}": {"of": of} for of in ("penalised", "refitted", "effective")}
    ways |= {f"chi-squared, {level:.0%}": {"level": level} for level in (0.01, 0.05)}
    header = ["criterion", "F1, cut normals", "F1, Potts", "false edges", "without edges"]
    with report(args.output / "likert.txt", "Networks of Likert items"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for n, d in SIZES:
            pairs = np.argwhere(np.triu(np.ones((d, d)), 1))
            figures = np.empty((len(ways), len(GRAPHS), 2, args.networks, 2))
            for way, graph, latent, seed in np.ndindex(figures.shape[:-1]):
                rng = np.random.default_rng([seed, d, n])
                true, X = table_of(GRAPHS[graph], latent, n, d, rng)
                true, found = true[*pairs.T], found_in(X, pairs, **list(ways.values())[way])
                score = 2 * (found & true).sum() / max((found.sum() + true.sum()), 1)
                figures[way, graph, latent, seed] = score, (found & ~true).sum()
            scores, false = figures[:, :3, ..., 0], figures[..., 1]
            columns = (scores[:, :, 1].mean((1, 2)), scores[:, :, 0].mean((1, 2)),
                       false[:, :3].mean((1, 2, 3)), false[:, 3].mean((1, 2)))  # fmt: skip
            print(f"{n} rows, {d} items, {args.networks} networks of each kind:\n")
            print_table(header, zip(ways, *(np.char.mod("%.2f", c) for c in columns), strict=True))


if __name__ == "__main__":
    run_script(main)
