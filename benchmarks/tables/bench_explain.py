"""Which cell of a row is wrong? `BoltzmannOutlierDetector.explain` beside two simpler scores.

In 2 % of the rows of a table, a cell is changed: a word or a level is replaced by another one of
its column, a number loses a digit, or the cell is exchanged with that of another row, whichever is
drawn. All rows are then fitted, the changed ones too. The figures are the shares of the changed
cells that are the most surprising one of their row, and among the five most surprising, with the
standard errors of the means over `--seeds` draws of errors; and the processor's seconds.

Beside it: -ln of the share of the value in its column (columns independent of each other), and -ln
of its probability out of bag by a forest of 100 trees for each column, from all others. Both take
numbers in eight bins of equal frequency.

"explain, of drawn rows" and "the network itself" say what is possible: the table is then drawn from
a network that is fitted to it, with the same gaps, and the second is `explain` by a fit to 20,000
other rows of that network without errors.
"""

import warnings
from functools import partial

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, processor_timed, report, script
from _data import load_mixed
from sklearn.ensemble import RandomForestClassifier

from sklearn_boltz import BoltzmannOutlierDetector, FVBMPseudoLikelihood

SETS = ["wage", "yrbss", "chile", "attrition", "happiness"]
SHARE, N_LEVELS, N_BINS, N_TREES, N_SHOWN, N_KNOWN = 0.02, 20, 8, 100, 5, 20_000


def is_number(cells):
    return pd.api.types.is_numeric_dtype(cells) and cells.nunique() > N_LEVELS


def without_a_digit(number, rng):
    """A number as it is written, without one of its digits; None where that leaves it as it was."""
    text = f"{number:.12g}"
    places = [place for place, sign in enumerate(text) if sign.isdigit()]
    place = rng.choice(places)
    changed = (text[:place] + text[place + 1 :]).strip("-.")
    return None if changed in ("", "e") or float(changed) == number else float(changed)


def changed_cell(table, row, name, rng):
    """Another value for a cell; None if what was drawn leaves it as it is."""
    cells, old = table[name].dropna(), table[name].iloc[row]
    if rng.random() < 0.5:  # from another row
        new = cells.iloc[rng.integers(len(cells))]
    elif is_number(table[name]):
        new = without_a_digit(old, rng)
    else:
        new = rng.choice(cells.unique())
    return None if new == old else new


def with_errors(table, seed):
    """-> a table with changed cells, their rows and their columns."""
    rng, rows, columns = np.random.default_rng(seed), [], []
    wrong = table.astype({name: float for name in table if is_number(table[name])})
    for row in rng.permutation(len(table))[: int(SHARE * len(table))].tolist():
        known = np.flatnonzero(table.iloc[row].notna())
        new = None
        while new is None:
            j = int(rng.choice(known))
            new = changed_cell(table, row, table.columns[j], rng)
        wrong.iloc[row, j] = new
        rows.append(row)
        columns.append(j)
    return wrong, np.array(rows), np.array(columns)


# The scores: surprises of the cells of all rows, NaN where a cell is missing.


def ours(table, seed):
    return BoltzmannOutlierDetector(random_state=seed).fit(table).explain(table).to_numpy()


def codes_of(table):
    columns = [
        pd.qcut(cells, N_BINS, labels=False, duplicates="drop")
        if is_number(cells)
        else pd.Series(pd.factorize(cells)[0], cells.index).where(cells.notna())
        for _, cells in table.items()
    ]
    return np.column_stack(columns).astype(float)


def independent(table, seed):
    codes = codes_of(table)
    for own in codes.T:
        known = ~np.isnan(own)
        counts = np.bincount(own[known].astype(int))
        own[known] = -np.log(counts[own[known].astype(int)] / known.sum())
    return codes


def forests(table, seed):
    codes = codes_of(table)
    one_hot = [
        np.eye(int(np.nanmax(own)) + 1)[np.nan_to_num(own).astype(int)] * ~np.isnan(own)[:, None]
        for own in codes.T
    ]
    found = np.full(codes.shape, np.nan)
    for j, own in enumerate(codes.T):
        known = ~np.isnan(own)
        X = np.hstack(one_hot[:j] + one_hot[j + 1 :])[known]
        forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=seed, n_jobs=1)
        forest.fit(X, own[known])
        place = np.searchsorted(forest.classes_, own[known])
        p = np.take_along_axis(forest.oob_decision_function_, place[:, None], axis=1)[:, 0]
        found[known, j] = -np.log(np.maximum(np.nan_to_num(p), 0.5 / N_TREES))
    return found


def by_known(detector, table, seed):
    return detector.explain(table).to_numpy()


SCORES = {"explain": ours, "independent columns": independent, "forests": forests}


def compare(sets, n_seeds, folder):
    lines = []
    for name in sets:
        table = load_mixed(name, folder)
        same, gaps, network = [table] * n_seeds, table.isna(), FVBMPseudoLikelihood().fit(table)
        drawn = [network.sample(len(table), random_state=seed) for seed in range(n_seeds)]
        drawn = [rows.mask(gaps.to_numpy()) for rows in drawn]
        other = network.sample(N_KNOWN, random_state=n_seeds)
        known = BoltzmannOutlierDetector(random_state=0).fit(other)
        scores = [(score, function, same) for score, function in SCORES.items()]
        scores.append(("explain, of drawn rows", ours, drawn))
        scores.append(("the network itself", partial(by_known, known), drawn))
        for score, function, tables in scores:
            found = []
            for seed, own_table in enumerate(tables):
                wrong, rows, columns = with_errors(own_table, seed)
                surprises, seconds = processor_timed(function, wrong, seed)
                own = surprises[rows]
                greater = own > own[np.arange(len(rows)), columns][:, None]
                place = greater.sum(axis=1)
                found.append([np.mean(place == 0), np.mean(place < N_SHOWN), seconds])
            *shares, seconds = np.mean(found, axis=0)
            errors = np.full(2, np.nan)
            if n_seeds > 1:
                errors = np.std(found, axis=0, ddof=1)[:2] / np.sqrt(n_seeds)
            shown = [f"{a:.3f} ± {b:.3f}" for a, b in zip(shares, errors, strict=True)]
            size = f"{name}, {len(table)} × {table.shape[1]}"
            lines.append([size, score, *shown, f"{seconds:.1f}"])
    print_table(["table", "score", "first", f"among {N_SHOWN}", "seconds"], lines)


@script
def main():
    args = make_parser(__doc__, seeds=10, sets=SETS).parse_args()
    warnings.simplefilter("ignore")  # of codes that may stand for missing cells
    title = f"A changed cell in {SHARE:.0%} of the rows: share found, seconds of one core"
    with report(args.output / "tables_explain.txt", title):
        compare(args.sets, args.seeds, args.data)
