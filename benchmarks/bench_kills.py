"""Fits on a Dask cluster of which a worker is killed, against the same fits left in peace.

A ``distributed.LocalCluster`` of two processes with one thread each; another process takes the
place of a killed one. A fit is counted in the results of tasks that reach the scheduler. When it
has had 10, 30, 60 or 90 % of those of an undisturbed fit, and one to four more in repetitions, the
scheduler kills the worker that sent the last one or, in every second repetition, the other.
Claims: no kill ends a fit, and parameters differ by at most 1e-12 from those of the same batches
in a list.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from _common import (
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    timed,
    unconverged_is_fine,
)
from _data import correlated_bits

from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, RBMClassifier
from sklearn_boltz.batches import Batches

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
try:
    import dask.array as da
    from distributed import Client, LocalCluster

    from kills import (
        Killer,
        wait_for_both,
    )  # of the tests, which kill one worker in each of these fits
except ImportError:
    da = None

SHARES = 0.1, 0.3, 0.6, 0.9
# (name, estimator, fitted arrays); tap_tol=0, because otherwise a block stops by itself.
FITS = [
    ("SDCPRBM", SDCPRBM(5, n_inner=2, max_iter=2, random_state=0),
     ["components_", "intercept_visible_", "intercept_hidden_"]),
    ("TAPRBM", TAPRBM(5, tap_tol=0, max_iter=4, random_state=0),
     ["components_", "intercept_visible_", "intercept_hidden_"]),
    ("FVBMPseudoLikelihood", FVBMPseudoLikelihood(alpha=0.01), ["coupling_", "intercept_"]),
    ("FSLLDensity", FSLLDensity(), ["theta_"]),
    ("RBMClassifier", RBMClassifier(5, max_iter=4, random_state=0),
     ["components_", "components_classes_", "intercept_visible_"]),
]  # fmt: skip


def fit(estimator, X, y):
    with unconverged_is_fine():
        return type(estimator)(**estimator.get_params()).fit(X, y)


def difference(model, other, names):
    return max(np.abs(getattr(model, name) - getattr(other, name)).max() for name in names)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="kills at each share of a fit")
    parser.add_argument("--models", nargs="+", default=[name for name, *_ in FITS])
    args = parser.parse_args()
    if da is None:
        print("dask and distributed are not installed")
        return
    X = correlated_bits(400, 8, np.random.default_rng(0)).astype(np.float64)
    y, rows = (X[:, 0] + X[:, 1]).astype(int), da.from_array(X, chunks=(50, 8))
    table = []
    with (
        report(args.output / "kills.txt", "Fits of which a worker is killed"),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        killer = Killer(cluster.scheduler)
        cluster.scheduler.add_plugin(killer)
        for name, estimator, arrays in FITS:
            if name not in args.models:
                continue
            known = fit(estimator, Batches(X, batch_rows=50), y)
            killer.begin()
            _, quiet = timed(fit, estimator, rows, y)
            total, n_kills, ended, worst, seconds = killer.n_results, 0, [], 0.0, []
            for share in SHARES:
                for k in range(args.repeats):
                    wait_for_both(cluster)
                    killer.begin(min(total, round(share * total) + k), other=k % 2)
                    try:
                        model, spent = timed(fit, estimator, rows, y)
                        worst = max(worst, difference(model, known, arrays))
                        seconds.append(spent)
                    except BaseException as error:
                        if isinstance(error, KeyboardInterrupt):
                            raise
                        ended.append(f"{share}+{k}: {type(error).__name__}: {error}"[:300])
                    n_kills += killer.killed
            for line in ended:
                print(name, line, flush=True)
            table.append([name, total, n_kills, len(ended), f"{worst:.1g}", f"{quiet:.2g}",
                          f"{np.median(seconds):.2g}"])  # fmt: skip
        print_table(
            ["estimator", "results", "kills", "fits ended", "difference", "s", "s, killed"], table
        )
        ended, worst = sum(row[3] for row in table), max(float(row[4]) for row in table)
        print_check("kills that ended a fit", "0", ended, ended == 0)
        print_check("largest difference", "<= 1e-12", f"{worst:.1g}", worst <= 1e-12)
        wait_for_both(cluster)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=UserWarning, module="distributed")
    run_script(main)
