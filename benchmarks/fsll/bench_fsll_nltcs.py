"""NLTCS, 16 binary variables: held-out log-likelihood of FSLLDensity.

Claims: mean test log-likelihood of at least -6.08 with default parameters, and of at least
-6.028 with `alpha` and `tol` chosen on the validation set. Trained on the training rows alone,
as the published figures are. Independent variables, a Chow-Liu tree and a smoothed table of
counts, computed in the same run, say what these figures mean.
"""

import _path  # noqa: F401
import numpy as np
from _baselines import chow_liu, independent, smoothed_table
from _common import make_parser, print_check, print_table, report, run_script, save_table, timed
from _data import load_density
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from sklearn_boltz import FSLLDensity

# As the papers report them, and how long it took where they say.
PUBLISHED = {
    "LearnSPN (Gens & Domingos 2013), 508 s": -6.11,
    "ID-SPN (Rooshenas & Lowd 2014)": -6.02,
    "RAT-SPN (Peharz et al. 2019)": -6.01,
    "HCLT (Liu & Van den Broeck 2021)": -5.999,
}
GRID = {"alpha": [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0], "tol": [3e-6, 1e-5, 3e-5, 1e-4]}


def search_grid(train, valid):
    """GridSearchCV with the validation set as its only fold."""
    fold = np.repeat([-1, 0], [len(train), len(valid)])
    search = GridSearchCV(FSLLDensity(), GRID, cv=PredefinedSplit(fold), refit=False)
    return search.fit(np.concatenate([train, valid]))


def main():
    parser = make_parser(__doc__)
    args = parser.parse_args()
    train, valid, test = load_density("nltcs", args.data)
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
    header = ["model", "test_log_likelihood", "n_terms", "seconds"]
    save_table(args.output / "fsll_nltcs.csv", header, rows)


if __name__ == "__main__":
    run_script(main)
