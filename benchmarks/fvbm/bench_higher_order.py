"""Terms of three variables, chosen by description length, beside pairs alone in the same run.

Test log-likelihood of four of the twenty data sets, normalised by the ladder of temperatures, with
AIS beside it. Validation rows choose the penalty, of pairs alone, and with it the factor on the
description length. Seconds are those of the processor, of one thread, of the fit that is chosen.
With --scan, the scores of all triples of 70 to 300 columns beside the matrix products in them.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import math
import time
import warnings

import _path  # noqa: F401
import numpy as np
from _common import (
    interleaved,
    make_parser,
    peak_memory,
    print_check,
    print_table,
    report,
    run_script,
)
from _data import load_density

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.higher_order._candidates import best_triples
from sklearn_boltz.fully_visible.training._objective import PseudoLikelihood

# Test log-likelihoods that were asked for: pairs alone, and with terms of three.
ASKED = {
    "plants": (-13.47, -13.05),
    "accidents": (-27.40, -26.72),
    "dna": (-82.26, -81.86),
    "bnetflix": (-54.85, -54.81),
}
ALPHAS = {
    "plants": (0.001, 0.003),
    "accidents": (0.003, 0.005, 0.01),
    "dna": (0.03, 0.1, 0.2),
    "bnetflix": (0.003, 0.01, 0.03),
}
PRICES = {
    "plants": (1.0, 0.5),
    "accidents": (1.0, 0.5),
    "dna": (2.0, 1.0, 0.5),
    "bnetflix": (1.0, 0.5),
}
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
    pairs = choose(X, X_valid, [{"alpha": alpha} for alpha in ALPHAS[name]])
    alpha = pairs[0].alpha
    choices = [{"alpha": alpha, "max_order": 3, "term_price": price} for price in PRICES[name]]
    rows = []
    for model, seconds in (pairs, choose(X, X_valid, choices)):
        value, error, by_ais, ess = figures(model, X_test)
        rows.append([
            model.max_order, f"{alpha:g}", f"{model.term_price:g}", len(model.terms_),
            f"{seconds:.0f}", f"{value:.3f}", f"{error:.3f}", f"{by_ais:.3f}", f"{ess:.0f}",
            f"{ASKED[name][model.max_order - 2]:.2f}",
        ])  # fmt: skip
    return rows


def measure_scan(d, n=10_000, repeats=3):
    """All triples of random rows: seconds, and in ratio to the products of matrices alone."""
    spins = np.random.default_rng(0).choice([-1.0, 1.0], size=(d, n))
    pairs, x = PseudoLikelihood(spins, np.ones(n)), spins.astype(np.float32)
    tanh = np.zeros_like(pairs.spins)

    def products():
        for i in range(d - 2):
            x[i + 1 :] @ x[i + 1 :].T

    scan, alone = interleaved(
        [lambda: best_triples(pairs, tanh, 320, set()), products], repeats
    ).min(axis=1)
    return [
        d,
        math.comb(d, 3),
        f"{scan:.2f}",
        f"{scan / alone:.1f}",
        f"{peak_memory() / 2**20:.0f}",
    ]


def report_scan(args):
    """The table of --scan."""
    with report(args.output / "fvbm_higher_order_scan.txt", "Scores of all triples, 10,000 rows"):
        print_table(
            ["columns", "triples", "seconds", "times the products of matrices", "peak MiB"],
            [measure_scan(d) for d in (70, 100, 180, 300)],
        )


def report_set(name, folder):
    """The table of a set, and what was asked for."""
    pairs, terms = rows = measure(name, folder)
    header = ["order", "alpha", "price", "terms", "seconds", "by the ladder", "std_err", "by AIS",
              "chains that count", "asked"]  # fmt: skip
    print_table(header, rows)
    (before, asked), value = ASKED[name], float(terms[5])
    gain = value - float(pairs[5])
    print_check("terms of three", asked, terms[5], value >= asked - 0.005)
    print_check("gain over pairs", f"{asked - before:.2f}", f"{gain:.2f}", gain >= asked - before)
    print_check("seconds", "120 at most", terms[4], float(terms[4]) <= 120)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--scan", action="store_true", help="only the scores of all triples")
    parser.add_argument("--sets", nargs="+", default=list(ASKED), choices=list(ASKED))
    args = parser.parse_args()
    if args.scan:
        report_scan(args)
        return
    warnings.filterwarnings("ignore", category=UserWarning)
    for name in args.sets:
        title = f"{name}, with terms of three variables: mean test log-likelihood in nats"
        with report(args.output / f"fvbm_higher_order_{name}.txt", title):
            report_set(name, args.data)


if __name__ == "__main__":
    run_script(main)
