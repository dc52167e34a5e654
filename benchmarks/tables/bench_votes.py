"""Votes with absentees: networks of all rows by EM, beside those of the complete rows alone.

Three tables, a missing cell for who did not vote: the Australian Senate of 2016 by party (a row is
a division), 16 votes of the US House in 1984 with the party of each member (a row is a member),
and the US House of 2007 to 2008, of which some members are taken, evenly spaced among those that
voted in half of the roll calls at least (a row is a roll call; the file has no names). Rows without
any vote, as of voice votes, say nothing. `FVBMPseudoLikelihood` is fitted with missing="em" to all
rows and to the complete ones. Held-out log-likelihoods are those of the observed cells of all rows,
exact, by cross-validation, beside independent columns with the rates of the observed cells; `alpha`
is the best of a few by the same figures, for each model by itself. The strongest couplings of the
fit to all rows come with standard errors, beside those of the complete rows. For example

    python bench_votes.py --data DIR
    python bench_votes.py --data DIR --sets senate --folds 5

Standard errors do not account for the bias by the penalty, which is larger where fewer rows nearly
separate a column: those of the complete rows are then too small.

Claims: on every table, held-out rows are more probable by the fit to all rows than by the one to
the complete rows, and than by independent columns.
"""

import time
import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import (
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    unconverged_is_fine,
)
from _data import load_votes
from sklearn.model_selection import KFold

from sklearn_boltz import FVBMPseudoLikelihood

TITLES = {
    "senate": "Senate of Australia, 2016, by party",
    "house84": "US House, 1984, 16 votes",
    "house110": "US House, 2007-2008",
}
ALPHAS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]


def is_complete(table):
    return table.notna().all(axis=1).to_numpy()


def fit(table, alpha):
    with unconverged_is_fine():
        return FVBMPseudoLikelihood(alpha=alpha, tol=1e-3).fit(table)


def independent(train, test):
    """Log-probability of the observed cells of each row, with one more row spread evenly."""
    total = np.zeros(len(test))
    for name in train:
        share = (train[name].value_counts() + 0.5) / (train[name].count() + 1)
        total += np.log(test[name].map(share).fillna(0.5 / (train[name].count() + 1))).where(
            test[name].notna(), 0.0
        )
    return total


def held_out(table, folds, fit_and_score):
    """Mean log-probability of the observed cells of a row that was not trained on."""
    total = 0.0
    for train, test in KFold(folds, shuffle=True, random_state=0).split(table):
        total += np.sum(fit_and_score(table.iloc[train], table.iloc[test]))
    return total / len(table)


def of_networks(table, folds, only_complete):
    """Held-out log-likelihood by alpha."""
    found = {}
    for alpha in ALPHAS:

        def score(train, test, alpha=alpha):
            rows = train[is_complete(train)] if only_complete else train
            return fit(rows, alpha).score_samples(test)

        found[alpha] = held_out(table, folds, score)
    return found


def couplings(model, table):
    """Estimates and standard errors of the couplings, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few rows, which the table shows
        result = model.inference(table)
    pairs = [name.startswith("m[") for name in result.names]
    frame = pd.DataFrame({"estimate": result.estimate, "std_err": result.std_err}, result.names)
    return frame[pairs]


def measure(name, args):
    """Print what is found in a table; -> held-out log-likelihoods."""
    table = load_votes(name, args.data, args.members)
    complete, cells = is_complete(table), table.notna().to_numpy()
    used = cells.any(axis=1)
    print(
        f"{TITLES[name]}: {table.shape[1]} columns; {len(table)} rows, {used.sum()} with a vote, "
        f"{complete.sum()} complete; of those with a vote, {1 - cells[used].mean():.1%} of the "
        "cells are missing\n"
    )
    table = table[used].reset_index(drop=True)
    complete = is_complete(table)
    start = time.process_time()
    figures = {False: of_networks(table, args.folds, False)}
    figures[True] = of_networks(table, args.folds, True)
    simple = held_out(table, args.folds, independent)
    best = {only: max(found, key=found.get) for only, found in figures.items()}
    rows = [["independent columns", len(table), "", f"{simple:.3f}"]]
    for only, label in ((True, "network of complete rows"), (False, "network of all rows")):
        n = int(complete.sum()) if only else len(table)
        rows.append([label, n, f"{best[only]:g}", f"{figures[only][best[only]]:.3f}"])
    header = [f"held out, {args.folds} folds", "rows", "alpha", "nats a row"]
    print_table(header, rows)
    alpha = best[False]
    every = couplings(fit(table, alpha), table)
    part = couplings(fit(table[complete], alpha), table[complete])
    strongest = every["estimate"].abs().sort_values(ascending=False).index[: args.top]
    shown = []
    for pair in strongest:
        (one, error), (other, other_error) = every.loc[pair], part.loc[pair]
        change = (other - one) / error
        shown.append([
            pair[2:-1].replace(",", " - "), f"{one:+.3f} ± {error:.3f}",
            f"{other:+.3f} ± {other_error:.3f}", f"{change:+.1f}",
        ])  # fmt: skip
    print_table(["coupling, same alpha", "all rows", "complete rows", "change/error"], shown)
    ratio = float((part["std_err"] / every["std_err"]).median())
    sign = np.sign(every["estimate"]) != np.sign(part["estimate"])
    print(
        f"Standard errors of complete rows to those of all rows, median of {len(every)}: "
        f"{ratio:.2f}; couplings of another sign: {int(sign.sum())}; "
        f"{time.process_time() - start:.0f} seconds of one core\n"
    )
    return figures[False][best[False]], figures[True][best[True]], simple


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--members", type=int, default=15, help="of the House of 2007 to 2008")
    parser.add_argument("--top", type=int, default=10, help="couplings shown")
    args = parser.parse_args()
    with report(args.output / "tables_votes.txt", "Networks of votes with absentees"):
        print("A positive coupling: yes goes with yes, or with republican (Class).\n")
        found = {name: measure(name, args) for name in args.sets}
        for name, (every, part, simple) in found.items():
            print_check(f"{name}, held out, nats a row", f"> {part:.3f} of complete rows",
                        f"{every:.3f}", every > part)  # fmt: skip
            print_check(f"{name}, held out, nats a row", f"> {simple:.3f} of independent columns",
                        f"{every:.3f}", every > simple)  # fmt: skip


if __name__ == "__main__":
    run_script(main)
