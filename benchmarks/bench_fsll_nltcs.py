"""NLTCS, 16 binary variables: held-out log-likelihood of FSLLDensity.

Claims: mean test log-likelihood of at least -6.08 with default parameters, and of at least
-6.028 with `alpha` and `tol` chosen on the validation set. Trained on the training rows alone,
as the published figures are. Independent variables, a Chow-Liu tree and a smoothed table of
counts, computed in the same run, say what these figures mean.
"""

import csv

import numpy as np
from _common import make_parser, print_check, print_table, report, timed
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from sklearn_boltz import FSLLDensity
from sklearn_boltz.datasets import fetch_density_benchmark

# As the papers report them, and how long it took where they say.
PUBLISHED = {
    "LearnSPN (Gens & Domingos 2013), 508 s": -6.11,
    "ID-SPN (Rooshenas & Lowd 2014)": -6.02,
    "RAT-SPN (Peharz et al. 2019)": -6.01,
    "HCLT (Liu & Van den Broeck 2021)": -5.999,
}
GRID = {"alpha": [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0], "tol": [3e-6, 1e-5, 3e-5, 1e-4]}


def load(folder):
    """train, valid and test, or None and why."""
    if folder is not None and (folder / "nltcs.npz").is_file():
        with np.load(folder / "nltcs.npz") as file:
            return [file[split] for split in ("train", "valid", "test")], ""
    try:
        data = fetch_density_benchmark("nltcs", verbose=0)
    except (OSError, ImportError) as error:
        return None, str(error)
    return [data.train, data.valid, data.test], ""


def independent(train, test):
    """Mean log-likelihood of independent variables, add-one smoothing."""
    p = (train.sum(axis=0) + 1) / (len(train) + 2)
    return float(np.where(test, np.log(p), np.log1p(-p)).sum(axis=1).mean())


def chow_liu(train, test):
    """Mean log-likelihood of the tree with the largest total mutual information."""
    n_features = train.shape[1]
    X = np.stack([1.0 - train, train], axis=2)
    # pair[i, a, j, b] = P(x_i = a, x_j = b), one observation spread over the four values.
    pair = (np.einsum("nia,njb->iajb", X, X, optimize=True) + 0.25) / (len(train) + 1)
    single = pair[:, :, 0, :].sum(axis=2)
    log_ratio = np.log(pair / np.multiply.outer(single, single))
    information = (pair * log_ratio).sum(axis=(1, 3))
    # Zero would be no edge, so all weights are made positive.
    tree = minimum_spanning_tree(np.triu(information.max() + 1 - information, 1)).nonzero()
    result = np.log(single)[np.arange(n_features), test].sum(axis=1)
    for i, j in zip(*tree, strict=True):
        result += log_ratio[i, test[:, i], j, test[:, j]]
    return float(result.mean())


def smoothed_table(train, valid, test):
    """Mean log-likelihood of (count + a) / (N + 2^n a), with a chosen on `valid`."""
    place = 1 << np.arange(train.shape[1])
    counts = np.bincount(train @ place, minlength=2 ** train.shape[1])

    def score(a, X):
        return float(np.log((counts[X @ place] + a) / (len(train) + a * len(counts))).mean())

    a = max(np.logspace(-4, 0, 41), key=lambda a: score(a, valid))
    return score(a, test)


def search_grid(train, valid):
    """GridSearchCV with the validation set as its only fold."""
    fold = np.repeat([-1, 0], [len(train), len(valid)])
    search = GridSearchCV(FSLLDensity(), GRID, cv=PredefinedSplit(fold), refit=False)
    return search.fit(np.concatenate([train, valid]))


def main():
    parser = make_parser(__doc__)
    args = parser.parse_args()
    splits, problem = load(args.data)
    if splits is None:
        print(f"bench_fsll_nltcs skipped: {problem}")
        return
    train, valid, test = (X.astype(np.int64) for X in splits)
    with report(args.output / "fsll_nltcs.txt", "NLTCS: mean test log-likelihood, nats"):
        default, seconds = timed(FSLLDensity().fit, train)
        search, search_seconds = timed(search_grid, train, valid)
        tuned = FSLLDensity(**search.best_params_)
        _, tuned_seconds = timed(tuned.fit, train)
        both = FSLLDensity(**search.best_params_).fit(np.concatenate([train, valid]))
        best = ", ".join(f"{name}={value:g}" for name, value in search.best_params_.items())
        scores = {
            "independent variables": (independent(train, test), train.shape[1], ""),
            "Chow-Liu tree": (chow_liu(train, test), 2 * train.shape[1] - 1, ""),
            "smoothed table of counts": (smoothed_table(train, valid, test), "", ""),
        }
        for name, model, time in (
            ("FSLLDensity()", default, f"{seconds:.2f}"),
            (f"FSLLDensity({best})", tuned, f"{tuned_seconds:.2f}"),
            ("  the same, trained on valid too", both, ""),
        ):
            scores[name] = (model.score(test), len(model.theta_), time)
        rows = [[name, f"{score:.4f}", *rest] for name, (score, *rest) in scores.items()]
        rows += [[f"published: {name}", f"{s:.3f}", "", ""] for name, s in PUBLISHED.items()]
        print_table(["model", "test log-likelihood", "terms", "s"], rows)
        n_fits = len(search.cv_results_["params"])
        print(f"The grid, {n_fits} fits: {search_seconds:.1f} s\n")
        for what, model, asked in (("default", default, -6.08), ("tuned", tuned, -6.028)):
            score = model.score(test)
            print_check(f"{what} parameters", f">= {asked}", f"{score:.4f}", score >= asked)
    with (args.output / "fsll_nltcs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "test_log_likelihood", "n_terms", "seconds"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
