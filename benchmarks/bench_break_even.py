"""From which mini-batches on two Dask workers are faster than the same batches in a list.

A ``distributed.LocalCluster`` of two processes with one thread each, which share the cores with
the client and the scheduler, against one thread and `Batches` of a list, in turns. One epoch of
`SDCPRBM` with ``n_inner=1, n_gibbs=24`` and with its default of 6 and 4. Printed are the seconds of
a mini-batch, from which the break-even is read.
"""

import numpy as np
from _common import interleaved, make_parser, print_table, report, run_script, unconverged_is_fine
from _data import correlated_bits

from sklearn_boltz import SDCPRBM
from sklearn_boltz.batches import Batches

# Rows of a mini-batch, columns, hidden units.
SIZES = [(100, 20, 20), (1000, 100, 100), (2000, 200, 200), (4000, 200, 200), (4000, 500, 500)]
STEPS = {"1 x 24": {"n_inner": 1, "n_gibbs": 24}, "6 x 4": {}}
N_BATCHES = 4


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    try:
        import dask.array as da
        from distributed import Client, LocalCluster
    except ImportError:
        print("dask and distributed are not installed")
        return
    table, options = [], {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        report(args.output / "break_even.txt", "Seconds of a mini-batch: a list, two workers"),
        LocalCluster(**options) as cluster,
        Client(cluster),
        unconverged_is_fine(),
    ):
        for size, n_columns, n_hidden in SIZES:
            X = correlated_bits(N_BATCHES * size, n_columns, np.random.default_rng(0))
            rows = da.from_array(X, chunks=(size, -1)).persist()
            for name, steps in STEPS.items():
                model = SDCPRBM(
                    n_hidden, batch_size=size, max_iter=1, early_stopping=False, n_jobs=1,
                    track_likelihood=False, random_state=0, **steps,
                )  # fmt: skip
                fits = [lambda m=model, X=X, n=size: m.fit(Batches(X, batch_rows=n)),
                        lambda m=model, rows=rows: m.fit(rows)]  # fmt: skip
                interleaved(fits, 1)
                one, two = np.median(interleaved(fits, args.repeats), axis=1) / N_BATCHES
                table.append([size, n_columns, n_hidden, name, f"{one:.2g}", f"{two:.2g}",
                              f"{one / two:.2f}"])  # fmt: skip
                print(table[-1], flush=True)
        print()
        print_table(["rows", "columns", "hidden", "steps", "list", "two", "list / two"], table)


if __name__ == "__main__":
    run_script(main)
