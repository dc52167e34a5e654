"""Spiking neurons: pairwise, independent and full-span models on held-out time bins.

Needs the data set in --data. Rows are shuffled, half of them train.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _baselines import independent
from _common import make_parser, print_table, report, script, timed
from _data import load_spikes
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood


def compare(name, X):
    """Score the models on held-out rows."""
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(X[order], [len(X) // 2])
    d = X.shape[1]
    alone = independent(train, test)
    rows = [["independent", f"{alone:.4f}", d, "", "", ""]]
    # On 50 neurons the maximum pseudo-likelihood estimate has a second mode, of nearly all
    # neurons firing, which no row of the data shows: only a strong penalty removes it.
    models = {
        f"pairwise, alpha={alpha}": FVBMPseudoLikelihood(alpha=alpha)
        for alpha in (0, 1e-4, 0.003, 0.02, 0.05, 0.1, 0.15, 0.3)
    }
    if d <= 20:
        models["FSLL"] = FSLLDensity()
        models["FSLL, alpha=0.3"] = FSLLDensity(alpha=0.3)
        models["FSLL, pairs at most"] = FSLLDensity(max_order=2)
    silence = np.zeros((1, d), dtype=np.uint8)
    for label, model in models.items():
        _, seconds = timed(model.fit, train)
        error = model.log_partition(random_state=0).std_err if "pairwise" in label else 0.0
        terms = len(model.theta_) if hasattr(model, "theta_") else d * (d + 1) // 2
        score = f"{model.score(test):.4f}" + (f" ±{error:.4f}" if error else "")
        silent = np.exp(model.score_samples(silence)[0])
        rates = model.sample(500, random_state=0).mean(axis=0)
        off = np.abs(rates - train.mean(axis=0)).max()  # about .04 by chance
        rows.append([label, score, terms, f"{seconds:.2f}", f"{silent:.4f}", f"{off:.2f}"])
    print(f"{name}: {d} neurons, {len(train)} training rows, {len(test)} test rows; silent rows "
          f"among the latter: {(test.sum(axis=1) == 0).mean():.4f}")  # fmt: skip
    print_table(["model", "test log-likelihood", "terms", "seconds", "P(silence)",
                 "largest error of a rate"], rows)  # fmt: skip


@script
def main():
    args = make_parser(__doc__).parse_args()
    data = load_spikes(args.data)
    warnings.simplefilter("ignore", ConvergenceWarning)
    # The samples of models with a mode far from the data.
    warnings.filterwarnings("ignore", message="In (these )?samples")
    with report(args.output / "fvbm_spikes.txt", "Models of spiking neurons"):
        for name, X in data.items():
            compare(name, X)
