"""Networks of the tables of votes and of penguins beside R's IsingFit and mgm.

Both packages take complete rows only, which ours get, too. Edges, weights and thresholds of
IsingFit; pairs that mgm selects by its EBIC, and those of `SparseFVBM`, beside p values of
`inference`. It is skipped without R, IsingFit or mgm.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, script
from _r import by_r, find_r

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.datasets import load_house_votes, load_penguins

ISINGFIT = (
    "with(IsingFit::IsingFit(x, gamma = 0.25, plot = FALSE, progressbar = FALSE), "
    "c(weiadj, thresholds))"
)
MGM = (
    "mgm::mgm(x, type = c({types}), level = c({levels}), lambdaSel = 'EBIC', pbar = FALSE, "
    "signInfo = FALSE)$pairwise$wadj"
)


def votes_beside(rscript):
    """Weights and thresholds by IsingFit and by us."""
    votes = load_house_votes().dropna()
    model = SparseFVBM(alpha="ebic", nodewise="and").fit(votes)
    x = np.column_stack([votes[c] == max(votes[c]) for c in votes])
    found, _ = by_r(rscript, ISINGFIT, x)
    d = votes.shape[1]
    # Those of the regressions, before a pair that only one of them has is left out.
    path, nodes = model.path_, np.arange(d)
    chosen = np.argmax(path.alphas == model.alpha_, axis=0), nodes
    thresholds = 2 * (path.intercept[chosen] - path.coupling[chosen].sum(axis=1))
    weights, _ = statistics.to_ising(model, coding="bits")
    return found[: d * d].reshape(d, d), weights, found[d * d :], thresholds


def penguins_beside(rscript):
    """Rows of a table: pairs, mgm's weights, our p values and whether SparseFVBM has the pair."""
    penguins = load_penguins().dropna()
    model = FVBMPseudoLikelihood().fit(penguins)
    tests = statistics.inference(model, penguins).to_frame("holm")
    strengths = SparseFVBM().fit(penguins).interaction_scores(apc=False)
    is_text = [penguins[c].dtype.kind != "f" for c in penguins]
    cells = [
        penguins[c].rank(method="dense") if text else penguins[c]
        for c, text in zip(penguins, is_text, strict=True)
    ]
    levels = [int(c.max()) if text else 1 for c, text in zip(cells, is_text, strict=True)]
    types = ", ".join("'c'" if text else "'g'" for text in is_text)
    expression = MGM.format(types=types, levels=", ".join(map(str, levels)))
    weights, seconds = by_r(rscript, expression, np.column_stack(cells))
    weights = weights.reshape(len(levels), -1)
    pairs = zip(*np.triu_indices(len(levels), 1), tests.iterrows(), strict=True)
    rows = [
        [*names, weights[i, j], row["p_value"], row["adjusted_p_value"], strengths[i, j] > 0]
        for i, j, (names, row) in pairs
    ]
    return rows, seconds


@script
def main():
    args = make_parser(__doc__).parse_args()
    rscript, versions = find_r("IsingFit", "mgm")
    with report(args.output / "mgm.txt", "Networks of votes and penguins beside IsingFit and mgm"):
        print(f"{versions}\n")
        theirs, ours, of_r, thresholds = votes_beside(rscript)
        both = [np.triu(w, 1) != 0 for w in (theirs, ours)]
        n_edges = [np.count_nonzero(w) for w in both]
        print(f"votes: edges of IsingFit {n_edges[0]}, ours {n_edges[1]}")
        is_same = bool((both[0] == both[1]).all())
        print_check("votes: the same edges", "yes", "yes" if is_same else "no", is_same)
        for name, pair in {"weights": (ours, theirs), "thresholds": (thresholds, of_r)}.items():
            off = np.abs(np.subtract(*pair)).max()
            print_check(f"votes: {name} within", "0.02", f"{off:.4f}", off <= 0.02)
        rows, seconds = penguins_beside(rscript)
        print(f"\npenguins: mgm took {seconds:.0f} s\n")
        print_table(["one", "other", "mgm", "p", "Holm", "SparseFVBM"], [
            [*names, f"{w:.2f}", f"{p:.2g}", f"{holm:.2g}", "edge" if has else ""]
            for *names, w, p, holm, has in rows
        ])  # fmt: skip
        found = np.array([[w > 0, holm < 0.05, has] for *_, w, _, holm, has in rows])
        print(f"\npairs: mgm {found[:, 0].sum()}, Holm {found[:, 1].sum()}", end=", ")
        print(f"both {found[:, :2].all(axis=1).sum()}, SparseFVBM {found[:, 2].sum()}")
