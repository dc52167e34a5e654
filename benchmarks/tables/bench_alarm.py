"""ALARM, a table of 37 columns of 2 to 4 categories, learned as it is read.

    python bench_alarm.py --data DIR [--components 100] [--epochs 12] [--temperatures 10000]

The data frame, words and truth values, goes into an `SDCPRBM` as it is. The test log-likelihood is
by annealed importance sampling; beside it stand independent columns and the best tree (Chow and
Liu), fitted to the same rows. The network that made the table has -10.90 nats on these test rows.
"""

import _path  # noqa: F401
import numpy as np
from _common import (
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    timed,
    unconverged_is_fine,
)
from _data import load_alarm

from sklearn_boltz import SDCPRBM

TRUE_NETWORK = -10.90


def log_pairs(codes, counts, a, b):
    """ln p(a, b) of all values, with one row more spread evenly."""
    table = np.zeros((counts[a], counts[b]))
    np.add.at(table, (codes[:, a], codes[:, b]), 1)
    return np.log((table + 1 / table.size) / (len(codes) + 1))


def independent(train, test, counts):
    """Mean log-likelihood of test rows by independent columns."""
    total = 0.0
    for j, n_values in enumerate(counts):
        frequency = np.bincount(train[:, j], minlength=n_values) + 1 / n_values
        total += np.log(frequency / frequency.sum())[test[:, j]].mean()
    return total


def best_tree(train, test, counts):
    """Mean log-likelihood of test rows by the tree of largest mutual information."""
    n_columns = len(counts)
    pairs = {}
    for a in range(n_columns):
        for b in range(a):
            log_p = log_pairs(train, counts, a, b)
            p = np.exp(log_p)
            ratio = log_p - np.log(np.outer(p.sum(axis=1), p.sum(axis=0)))
            pairs[a, b] = (p * ratio).sum(), ratio
    joined, total = {0}, independent(train, test, counts)
    while len(joined) < n_columns:  # Prim's algorithm
        a, b = max((k for k in pairs if (k[0] in joined) != (k[1] in joined)), key=pairs.get)
        joined |= {a, b}
        total += pairs[a, b][1][test[:, a], test[:, b]].mean()
    return total


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--temperatures", type=int, default=10_000)
    options = parser.parse_args()
    X = load_alarm(options.data)
    train, test = X[:16_000], X[16_000:]
    with report(options.output / "alarm.txt", "ALARM: a table of categories"):
        codes = np.column_stack([X[name].astype("category").cat.codes for name in X]).astype(int)
        counts = codes.max(axis=0) + 1
        parts = codes[:16_000], codes[16_000:], counts
        model = SDCPRBM(
            options.components, learning_rate=0.5, learning_rate_schedule="invscaling",
            max_iter=options.epochs, random_state=0,
        )  # fmt: skip
        with unconverged_is_fine():
            _, seconds = timed(model.fit, train)
        estimate = model.log_partition("ais", n_temperatures=options.temperatures, random_state=1)
        value = -model.free_energy(test).mean() - estimate.value
        rows = [
            ("independent columns", independent(*parts)),
            ("best tree (Chow and Liu)", best_tree(*parts)),
            (f"SDCPRBM, {options.components} hidden units", value),
            ("the network that made the table", TRUE_NETWORK),
        ]
        print_table(
            ["density", "test log-likelihood"], [(name, f"{mean:.3f}") for name, mean in rows]
        )
        print(f"AIS: standard error {estimate.std_err:.3f}, of 100 chains {estimate.ess:.0f} count")
        print(f"{len(model.visible_names_)} numbers for {X.shape[1]} columns\n")
        print_check("test log-likelihood", "> -11.9", f"{value:.2f}", value > -11.9)
        print_check("seconds of the fit", "< 120", f"{seconds:.0f}", seconds < 120)


if __name__ == "__main__":
    run_script(main)
