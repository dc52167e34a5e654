"""The log-likelihood that a fit of `SDCPRBM` reports, beside slow annealing, and what it costs.

After ten epochs, the last figure of the history beside annealed importance sampling at
``--temperatures`` temperatures on the same rows; and seconds of the processor of a fit that follows
its likelihood, divided by those of one that does not, in the same run.
"""

from functools import partial

import _path  # noqa: F401
import numpy as np
from _common import (
    make_parser,
    print_check,
    print_table,
    processor_timed,
    report,
    script,
    unconverged_is_fine,
)
from _data import binary, load_bits, load_density, load_small_digits

from sklearn_boltz import SDCPRBM

UNITS = {"digits": 64, "accidents": 200, "plants": 100, "mnist": 500}


def load(name, folder):
    """Training rows of a set."""
    if name == "digits":
        return binary(load_small_digits()[0])
    return (load_bits if name == "mnist" else load_density)(name, folder)[0]


@script
def main():
    parser = make_parser(__doc__, sets=UNITS)
    parser.add_argument("--repeats", type=int, default=1, help="fits of each kind")
    parser.add_argument("--temperatures", type=int, default=20_000)
    args = parser.parse_args()
    with report(args.output / "rbm_tracking.txt", "The likelihood that a fit reports"):
        rows = []
        for name in args.sets:
            X = load(name, args.data).astype(np.float32)
            make = partial(SDCPRBM, UNITS[name], max_iter=10, random_state=0, n_jobs=1)
            seconds, plain = [], []
            for _ in range(args.repeats):
                with unconverged_is_fine():
                    plain.append(processor_timed(make(track_likelihood=False).fit, X)[1])
                    model, needed = processor_timed(make().fit, X)
                seconds.append(needed)
            annealing = dict(n_temperatures=args.temperatures, n_chains=100)
            estimate = model.log_partition("ais", random_state=0, **annealing)
            # Of up to 2,000 rows, as the figure that is reported.
            some = X[np.random.default_rng(0).permutation(len(X))[:2000]]
            by_ais = -model.free_energy(some).mean() - estimate.value
            last = model.history_["log_likelihood"][-1]
            ratio = min(seconds) / min(plain)
            figures = [f"{last:.2f}", f"{by_ais:.2f}", f"{estimate.ess:.0f}", f"{ratio:.3f}"]
            rows.append([name, UNITS[name], *figures])
            print_check(f"{name}: time, untracked = 1", "<= 1.12", f"{ratio:.3f}", ratio <= 1.12)
        print_table(["set", "units", "tracked", "by AIS", "chains of 100", "time"], rows)
