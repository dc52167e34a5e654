"""Terms of three variables, chosen by description length, beside pairs alone in the same run.

Test log-likelihood of four of the twenty data sets, normalised by the ladder of temperatures, with
AIS beside it. Validation rows choose the penalty, of pairs alone, and with it the factor on the
description length. Seconds are those of the processor, of one thread, of the fit that is chosen.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from _data import load_density

from sklearn_boltz import FVBMPseudoLikelihood

# Test log-likelihoods that were asked for: pairs alone, and with terms of three.
ASKED = {
    "plants": (-13.47, -13.05),
    "accidents": (-27.40, -26.72),
    "dna": (-82.26, -81.86),
    "bnetflix": (-54.85, -54.81),
}
ALPHAS = {
    "plants": (0.001, 0.003, 0.01),
    "accidents": (0.005, 0.01, 0.02),
    "dna": (0.03, 0.1, 0.2),
    "bnetflix": (0.003, 0.01, 0.03),
}
PRICES = (1.0, 0.5, 0.2)
# Nats, of all rows together.
TOL = 0.01


def fitted(X, **options):
    """A fit, and its seconds of one thread."""
    start = time.process_time()
    model = FVBMPseudoLikelihood(tol=TOL, solver="lbfgs", **options).fit(X)
    return model, time.process_time() - start


def mean_weight(model, X):
    """The mean log-weight of rows, which ln Z normalises."""
    return -model.energy(X).mean()


def choose(X, X_valid, choices):
    """The best of some fits, and its seconds."""
    found = []
    for options in choices:
        model, seconds = fitted(X, **options)
        found.append((model.score(X_valid), model, seconds))
        told = ", ".join(f"{name} {value:g}" for name, value in options.items())
        print(
            f"  {told}: {len(model.terms_)} terms, validation {found[-1][0]:.3f}, {seconds:.0f} s"
        )
    return max(found, key=lambda row: row[0])[1:]


def figures(model, X_test):
    """Test log-likelihood by the ladder and its error, and by AIS and its lower end."""
    weight = mean_weight(model, X_test)
    ladder = model.log_partition("ladder", random_state=0)
    ais = model.log_partition("ais", random_state=0)
    return weight - ladder.value, ladder.std_err, weight - ais.value, ais.ess


def measure(name, folder):
    """Rows of the table, pairs alone and with terms of three."""
    X, X_valid, X_test = load_density(name, folder)
    print(name)
    pairs = choose(X, X_valid, [{"alpha": alpha} for alpha in ALPHAS[name]])
    alpha = pairs[0].alpha
    choices = [{"alpha": alpha, "max_order": 3, "term_price": price} for price in PRICES]
    rows = []
    for model, seconds in (pairs, choose(X, X_valid, choices)):
        value, error, by_ais, ess = figures(model, X_test)
        rows.append([
            name, model.max_order, f"{alpha:g}", f"{model.term_price:g}", len(model.terms_),
            f"{seconds:.0f}", f"{value:.3f}", f"{error:.3f}", f"{by_ais:.3f}", f"{ess:.0f}",
            f"{ASKED[name][model.max_order - 2]:.2f}",
        ])  # fmt: skip
    return rows


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(ASKED), choices=list(ASKED))
    args = parser.parse_args()
    title = "Networks with terms of three variables: mean test log-likelihood in nats"
    warnings.filterwarnings("ignore", category=UserWarning)
    with report(args.output / "fvbm_higher_order.txt", title):
        rows = [row for name in args.sets for row in measure(name, args.data)]
        print_table(
            ["set", "order", "alpha", "price", "terms", "seconds", "by the ladder", "std_err", "by AIS",
             "chains that count", "asked"], rows,
        )  # fmt: skip
        for pairs, terms in zip(rows[::2], rows[1::2], strict=True):
            name, asked = terms[0], ASKED[terms[0]]
            value, gain = float(terms[6]), float(terms[6]) - float(pairs[6])
            print_check(f"{name}, terms of three", asked[1], terms[6], value >= asked[1] - 0.005)
            print_check(
                f"{name}, gain over pairs", f"{np.subtract(*asked[::-1]):.2f}", f"{gain:.2f}",
                gain >= np.subtract(*asked[::-1]) - 0.005,
            )  # fmt: skip
            print_check(f"{name}, seconds", "120 at most", terms[5], float(terms[5]) <= 120)


if __name__ == "__main__":
    run_script(main)
