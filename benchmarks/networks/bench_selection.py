"""Which pairs does `SparseFVBM` select where many interact, and where none do?

Networks of 18 binary items in which 70 of the 153 pairs interact: weakly, with couplings of .05 to
.7 for items of 0 and 1, a third of them negative; or strongly, of .2 to 1.2, all positive. Rows are
drawn from the exact distribution. For each number of rows, the shares of the absent and of the true
pairs that are selected: by default, by the rules of `nodewise`, by the EBIC, in more than half of
20 resamples (of a third of the networks), and by tests of all pairs, adjusted by Benjamini and
Hochberg's method at 5 %.

Then tables of independent items: the share that have an edge. Last, 355 rows of the strong networks
with another item, which two rows have by chance: the share of the tables where it gets an edge, and
the largest share of resamples where it gets the same, averaged over tables.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics

N_ITEMS, N_EDGES = 18, 70
PAIRS = np.triu_indices(N_ITEMS, 1)
# The least and the largest coupling, and the share of negative ones.
NETWORKS = {"weak": (0.05, 0.7, 1 / 3), "strong": (0.2, 1.2, 0)}
ROWS = 355, 1000, 2000, 4000
# Rows of tables without edges, and how many tables for each network.
NULL_ROWS = {355: 12, 1000: 6, 4000: 3}
LEVEL = 0.05
WAYS = {
    "SparseFVBM()": {},
    'nodewise="and"': {"nodewise": "and"},
    'nodewise="or"': {"nodewise": "or"},
    'alpha="ebic"': {"alpha": "ebic"},
    'alpha="ebic", nodewise="and"': {"alpha": "ebic", "nodewise": "and"},
}
RESAMPLED, TESTS = "most of 20 resamples", "tests, Benjamini–Hochberg"


def network(kind, rng):
    """Which pairs interact, all states of the items, and their probabilities."""
    low, high, negative = NETWORKS[kind]
    edges = rng.permutation(len(PAIRS[0])) < N_EDGES
    coupling = np.zeros((N_ITEMS, N_ITEMS))
    signs = rng.choice([1, -1], len(edges), p=[1 - negative, negative])
    coupling[PAIRS] = edges * signs * rng.uniform(low, high, len(edges))
    states = (np.arange(2**N_ITEMS)[:, None] >> np.arange(N_ITEMS)) & 1
    # Of items of 0 and 1, with this shift about half of the rows have each.
    shift = rng.uniform(-1, 1, N_ITEMS) - (coupling + coupling.T).sum(axis=0) / 2
    log_weights = ((states @ coupling) * states).sum(axis=1) + states @ shift
    p = np.exp(log_weights - log_weights.max())
    return edges, states, p / p.sum()


def resampled(X, options):
    """Which pairs are selected, and how often in 20 resamples, as matrices."""
    model = SparseFVBM(**options).fit(X)
    frequency = statistics.bootstrap(model, X, 20, random_state=0).edge_frequency
    return model.coupling_ != 0, frequency


def selections(X):
    """Which pairs each way selects."""
    found = {way: SparseFVBM(**options).fit(X).coupling_ != 0 for way, options in WAYS.items()}
    result = statistics.inference(FVBMPseudoLikelihood(alpha=0.0).fit(X), X)
    found[TESTS] = result.adjusted_p_value() < LEVEL
    return {way: matrix[PAIRS] for way, matrix in found.items()}


def dense(kind, n_networks):
    """Means over networks of the shares of absent and of true pairs that are selected."""
    shares = {}
    for seed in range(n_networks):
        edges, states, p = network(kind, rng := np.random.default_rng(seed))
        for n_rows in ROWS:
            X = states[rng.choice(len(p), n_rows, p=p)]
            found = selections(X)
            if seed < n_networks / 3:  # it takes most of the time
                found[RESAMPLED] = resampled(X, {})[1][PAIRS] > 0.5
            for way, pairs in found.items():
                both = pairs[~edges].mean(), pairs[edges].mean()
                shares.setdefault(way, {}).setdefault(n_rows, []).append(both)
    for way in [*WAYS, RESAMPLED, TESTS]:
        means = (np.mean(shares[way][n_rows], axis=0) for n_rows in ROWS)
        yield [way, *("{:.3f} / {:.3f}".format(*mean) for mean in means)]


def without_edges(n_tables):
    """Shares of tables of independent items with an edge."""
    shares = {}
    for n_rows, times in NULL_ROWS.items():
        rng = np.random.default_rng(n_rows)
        for _ in range(times * n_tables):
            X = rng.random((n_rows, N_ITEMS)) < rng.uniform(0.2, 0.6, N_ITEMS)
            for way, pairs in selections(X.astype(int)).items():
                shares.setdefault(way, {}).setdefault(n_rows, []).append(pairs.any())
    for way, of_rows in shares.items():
        yield [way, *(f"{np.mean(any_edge):.3f}" for any_edge in of_rows.values())]


def with_a_rare_item(n_networks):
    """How often an item that two rows have gets an edge, and in what share of resamples at most."""
    found = {"SparseFVBM()": [], 'alpha="ebic"': []}
    for seed in range(n_networks):
        _, states, p = network("strong", rng := np.random.default_rng(seed))
        X = states[rng.choice(len(p), ROWS[0], p=p)]
        rare = rng.permutation(len(X)) < 2
        for way, figures in found.items():
            selected, frequency = resampled(np.column_stack([X, rare]), WAYS[way])
            figures.append((selected[-1].any(), frequency[-1].max()))
    for way, figures in found.items():
        yield [way, *(f"{mean:.2f}" for mean in np.mean(figures, axis=0))]


@script
def main():
    args = make_parser(__doc__, seeds=6).parse_args()
    warnings.simplefilter("ignore", UserWarning)  # of pairs with few rows, and of the rare item
    with report(args.output / "selection.txt", "Pairs that sparse networks select"):
        print(f"{args.seeds} networks of {N_ITEMS} items with {N_EDGES} of {len(PAIRS[0])} pairs: "
              "absent / true pairs that are selected\n")  # fmt: skip
        for kind in NETWORKS:
            print_table([kind, *(f"{n} rows" for n in ROWS)], dense(kind, args.seeds))
        tables = ", ".join(f"{times * args.seeds}" for times in NULL_ROWS.values())
        print(f"{tables} tables of {N_ITEMS} independent items: share with an edge\n")
        print_table(["", *(f"{n} rows" for n in NULL_ROWS)], without_edges(args.seeds))
        print(f"{args.seeds} tables with an item that two of {ROWS[0]} rows have\n")
        header = ["", "share with its edges", "largest frequency in resamples"]
        print_table(header, with_a_rare_item(args.seeds))
