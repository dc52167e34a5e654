"""Synthetic rows of tables with strings and numbers: can they be told from real ones?

Half of the complete rows are learned, and as many are drawn as the other half has. Figures: the
two-sample score beside the other half (1: cannot be told apart), with the standard error of its
mean; the share of synthetic rows that are closer to a training row than to one of the other half;
how much less area under the ROC curve a boosting that predicts a column of the other half has if it
learns from synthetic rows instead of the learned ones, from as many and from five times as many;
and the processor's seconds. Beside ours: the training rows themselves, columns drawn independently
of each other; adversarial random forests of arfpy, whose numbers are replaced by the nearest ones
that the column has, and SDV's Gaussian copula, each where it is installed
(SDV from 2.0 on; arfpy 0.1 needs NumPy before 2.4, and both need pandas before 3).

"network, of its rows" says what half of the rows allow at best: the table is then drawn from a
network that is fitted to all rows, so that only errors of estimation tell synthetic rows apart.
"""

import warnings
from importlib.util import find_spec

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, processor_timed, report, script
from _data import load_large, load_mixed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy
from sklearn_boltz.datasets import load_penguins
from sklearn_boltz.metrics import c2st_score, nearest_record_share

# Each table with the column that is predicted.
SETS = {
    "wage": "health_ins", "chile": "vote", "yrbss": "gender", "attrition": "Attrition",
    "penguins": "sex", "adult": "income",
}  # fmt: skip


N_ADULT = 4000
# How many times as many rows a boosting learns from, and the rows that show what is possible.
FACTOR, OWN = 5, "network, of its rows"


def is_number(cells):
    return pd.api.types.is_numeric_dtype(cells)


def independent(X, n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(cells, n) for name, cells in X.items()})


def drawn_from(make):
    return lambda X, n, seed: make(X, seed).fit(X).sample(n, random_state=seed)


def location(X, seed):
    numbers = {name: "number" for name in X if is_number(X[name]) and X[name].nunique() > 20}
    return FVBMPseudoLikelihood(columns=numbers)


def forests(X, n, seed):
    from arfpy import arf

    X = X.astype({name: object for name in X if not is_number(X[name])})
    np.random.seed(seed)  # noqa: NPY002
    forest = arf.arf(x=X, random_state=seed, verbose=False)
    forest.forde()
    rows = forest.forge(n=n)[list(X)]
    for name in filter(lambda name: is_number(X[name]), X):
        values = np.unique(X[name])
        middles = (values[1:] + values[:-1]) / 2
        rows[name] = values[np.searchsorted(middles, rows[name].astype(float))]
    return rows


def copula(X, n, seed):
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    rows = {"rows": X}
    metadata = Metadata.detect_from_dataframes(rows, infer_keys=None)
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit(rows)
    synthesizer._set_random_state(seed)
    return synthesizer.sample(n)["rows"][list(X)]


RIVALS = {"arfpy": forests, "sdv": copula}
MISSING = [name for name in RIVALS if not find_spec(name)]
MAKERS = {
    "training rows": lambda X, n, seed: X,
    "independent columns": independent,
    "network": drawn_from(lambda X, seed: FVBMPseudoLikelihood()),
    "maximum entropy": drawn_from(lambda X, seed: MaximumEntropy(random_state=seed)),
    "network, alpha=0.01": drawn_from(lambda X, seed: FVBMPseudoLikelihood(alpha=0.01)),
    "network with numbers": drawn_from(location),
} | {name: make for name, make in RIVALS.items() if name not in MISSING}


def area(rows, other, target):
    """Under the ROC curve of a boosting that learns from rows, on other ones."""
    words = [name for name in rows if name != target and not is_number(rows[name])]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    codes = encoder.fit(pd.concat([rows, other])[words])
    X, Z = (
        np.hstack([codes.transform(own[words]), own.drop(columns=[*words, target])])
        for own in (rows, other)
    )
    boosting = HistGradientBoostingClassifier(
        categorical_features=np.arange(X.shape[1]) < len(words), random_state=0
    )
    p = boosting.fit(X, rows[target]).predict_proba(Z)
    return roc_auc_score(other[target], p if p.shape[1] > 2 else p[:, 1], multi_class="ovr")


def figures(make, table, target, seed):
    order = np.random.default_rng(seed).permutation(len(table))
    learned, other = (table.iloc[half] for half in np.array_split(order, 2))
    rows, seconds = processor_timed(make, learned, len(other), seed)
    many = make(learned, FACTOR * len(other), seed)
    real = area(learned, other, target)
    losses = [real - area(own, other, target) for own in (rows, many)]
    share = nearest_record_share(learned, other, rows, random_state=seed)
    return c2st_score(other, rows, random_state=seed), share, *losses, seconds


def compare(sets, n_seeds, folder):
    lines = []
    for name in sets:
        if name == "penguins":
            table = load_penguins()
        else:
            is_large = name == "adult"
            table = load_large(name, folder, N_ADULT) if is_large else load_mixed(name, folder)
        table = table.dropna()
        for rows, make in (MAKERS | {OWN: MAKERS["network"]}).items():
            tables = [table] * n_seeds
            if rows == OWN:
                network = FVBMPseudoLikelihood().fit(table)
                tables = [network.sample(len(table), random_state=k) for k in range(n_seeds)]
            found = [figures(make, own, SETS[name], seed) for seed, own in enumerate(tables)]
            score, share, *losses, seconds = np.mean(found, axis=0)
            error = np.std(found, axis=0, ddof=1)[0] / np.sqrt(n_seeds) if n_seeds > 1 else np.nan
            size = f"{name}, {len(table)} × {table.shape[1]}"
            shown = [f"{score:.2f} ± {error:.2f}", f"{share:.2f}"]
            shown += [f"{loss:.3f}" for loss in losses]
            lines.append([size, rows, *shown, f"{seconds:.1f}"])
    head = ["table", "rows", "score", "nearer", "area lost", f"of {FACTOR} times", "seconds"]
    print_table(head, lines)
    if MISSING:
        print(f"Left out: pip install 'numpy<2.4' 'pandas<3' {' '.join(MISSING)}")


@script
def main():
    args = make_parser(__doc__, seeds=10, sets=SETS).parse_args()
    warnings.simplefilter("ignore")
    title = f"Synthetic rows: means of {args.seeds} splits, seconds of one core"
    with report(args.output / "tables_synthetic.txt", title):
        compare(args.sets, args.seeds, args.data)
