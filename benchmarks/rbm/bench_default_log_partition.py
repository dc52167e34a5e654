"""How wide ``log_partition()`` of a default fit is, and what it costs beside the fit.

``SDCPRBM()`` learns the first rows of sets of the density benchmark. Asked is an interval of a nat
at most, or a warning that gives it, in half of the processor's seconds of the fit. The interval is
compared with annealing of more chains and temperatures than it has seen itself.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, processor_timed, report, script
from _data import load_density

from sklearn_boltz import SDCPRBM

SETS = ("plants", "dna", "nips", "accidents", "pumsb_star", "voting")
MOST_WIDTH, MOST_SHARE = 1.0, 0.5


def measured(X, args):
    """Seconds of the fit and of ln Z, the estimate, whether a warning has its ends, and AIS."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        model, fit = processor_timed(SDCPRBM(random_state=0, n_jobs=1).fit, X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate, needed = processor_timed(model.log_partition, random_state=1)
        told = any(f"{estimate.high:.1f}" in str(warning.message) for warning in caught)
        more = dict(n_chains=args.chains, n_temperatures=args.temperatures, random_state=2)
        annealed = model.log_partition("ais", **more).value
    return fit, needed, estimate, told, annealed


@script
def main():
    parser = make_parser(__doc__, sets=SETS)
    parser.add_argument("--rows", type=int, default=2000, help="the first of each set")
    parser.add_argument("--chains", type=int, default=300)
    parser.add_argument("--temperatures", type=int, default=10_000)
    args = parser.parse_args()
    with report(args.output / "default_log_partition.txt", "ln Z of default fits"):
        rows, good = [], []
        for name in args.sets:
            X = load_density(name, args.data)[0][: args.rows].astype(np.float32)
            fit, needed, estimate, told, annealed = measured(X, args)
            width = estimate.high - estimate.low
            figures = [f"{fit:.1f}", f"{needed / fit:.2f}", estimate.method, estimate.trusted]
            ends = [f"{estimate.low:.2f}", f"{estimate.high:.2f}", f"{width:.2f}", told]
            rows.append([f"{name}, {len(X)} rows", *figures, *ends, f"{annealed:.2f}"])
            good.append(needed <= MOST_SHARE * fit and (width <= MOST_WIDTH or told))
        header = ["set", "seconds of fit", "ln Z / fit", "method", "trusted", "low", "high"]
        print_table([*header, "width", "told", "long AIS"], rows)
        what = "sets with an interval of a nat, or a warning that gives it, in half of the time"
        print_check(what, f"all {len(good)}", sum(good), all(good))
