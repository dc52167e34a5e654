"""Missing cells by chains that draw strongly coupled pairs at once, beside single cells, annealed.

A fifth of the observed cells of mixed tables is hidden, and the default network of the imputer is
fitted to the rest. Of the rows with too many joint states to enumerate, the probabilities of the
missing categories come from four chains that begin along strong couplings and draw pairs at once;
and from twenty annealed chains that draw one cell at a time. Printed are the share of the hidden
categories that are most probable, their mean -ln p, and the time in ratio to the latter.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, processor_timed, report, script
from _data import load_mixed

from sklearn_boltz import BoltzmannImputer
from sklearn_boltz.meta._imputer import MAX_STATES, N_STEPS
from sklearn_boltz.networks.sampling._sampling import annealed_probabilities

TABLES = "attrition", "happiness"
BLOCK_ROWS = 200


def hidden(table, rng):
    """Words and numbers, of which a fifth is hidden; and which cells that are."""
    words = [c for c in table if table[c].dtype == object or table[c].nunique() <= 12]
    table = table.assign(
        **{c: table[c].astype(object).where(table[c].notna(), None) for c in words}
    )
    mask = (rng.random(table.shape) < 0.2) & table.notna().to_numpy()
    return table, table.mask(mask), mask


def of_many(model, codes):
    """Rows with too many joint states."""
    _, _, is_exact = model.enumerated(codes, MAX_STATES)
    return np.flatnonzero(~is_exact)


def judged(model, p, truth, is_word):
    """Accuracy and mean -ln p of the hidden categories, one-hot."""
    right, log_p = [], []
    for j in np.flatnonzero(is_word):
        rows = np.flatnonzero(truth[:, j] >= 0)
        own = p[rows, model.starts[j] : model.starts[j + 1]]
        right.append(own.argmax(axis=1) == truth[rows, j])
        log_p.append(np.log(np.maximum(own[np.arange(len(rows)), truth[rows, j]], 1e-9)))
    return np.concatenate(right).mean(), -np.concatenate(log_p).mean()


def in_blocks(estimate, codes):
    """Probabilities of all rows."""
    blocks = range(0, len(codes), BLOCK_ROWS)
    return np.concatenate([estimate(codes[i : i + BLOCK_ROWS]) for i in blocks])


def compare(name, folder, seed):
    """A line for each way."""
    rng = np.random.default_rng(seed)
    table, gaps, mask = hidden(load_mixed(name, folder), rng)
    imputer = BoltzmannImputer(random_state=seed).fit(gaps)
    encode, model = imputer._encoder.encode, imputer.estimator_._model()
    codes, whole = (
        np.nan_to_num(encode(frame, "missing"), nan=-1).astype(np.int64) for frame in (gaps, table)
    )
    rows = of_many(model, codes)
    truth = np.where(mask, whole, -1)[rows]
    is_word = np.array([column.bins is None for column in imputer._encoder.columns])
    single, base = model.like(model.coupling, model.intercept), imputer.estimator_._base
    single.pairs = np.empty((0, 2), dtype=np.int64)

    def annealed(codes):
        return annealed_probabilities(single, base, codes, N_STEPS, np.random.default_rng(seed))

    def paired(codes):
        return model.cells_by_chains(codes, N_STEPS, np.random.default_rng(seed))

    found = [processor_timed(in_blocks, way, codes[rows]) for way in (annealed, paired)]
    ways = ("annealed, single cells", "pairs")
    return [
        (f"{name}, {len(rows)} rows: {way}", *judged(model, p, truth, is_word), s / found[0][1])
        for way, (p, s) in zip(ways, found, strict=True)
    ]


@script
def main():
    args = make_parser(__doc__, seeds=1, sets=TABLES).parse_args()
    with report(args.output / "fvbm_pairs.txt", "Missing cells by chains"):
        for name in args.sets:
            lines = [compare(name, args.data, seed) for seed in range(args.seeds)]
            names = [line[0] for line in lines[0]]
            means = np.mean([[line[1:] for line in one] for one in lines], axis=0)
            rows = [(own, *figures) for own, figures in zip(names, means, strict=True)]
            print_table(["table", "right", "-ln p", "time"], rows, ".4f,.4f,.2f")
