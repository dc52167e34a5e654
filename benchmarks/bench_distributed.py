"""Two processes against one, on this machine: ratios of times, and the bytes that move.

A ``distributed.LocalCluster`` of one or two worker processes with one thread each. Both clusters
are alive and take turns, so that both see the same machine; the figure is the median ratio. What
moves is counted where the client sends and receives arrays. Claims: two processes give what one
gives; each step of a mini-batch moves the parameters to each worker and the gradient back from
each, whatever the number of rows. On a machine with fewer than four free
cores, or a busy one, the ratios are low: the client, the scheduler and both workers share them.
"""

import numpy as np
from _common import interleaved, make_parser, print_check, print_table, report, run_script
from _data import correlated_bits
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV

from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood

KIB = 1024


class Counter:
    """Bytes of parameters that a client sends (counted for each worker), and of what it gathers."""

    def __init__(self, client):
        self.n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
        self.out = self.back = self.n_rounds = 0
        self._submit, self._gather = client.submit, client.gather
        client.submit, client.gather = self.submit, self.gather

    def submit(self, function, *args, **options):
        pickled = sum(len(value) for value in args if isinstance(value, bytes))
        self.out += pickled * self.n_workers
        self.n_rounds += pickled > 0
        return self._submit(function, *args, **options)

    def gather(self, futures, **options):
        found = self._gather(futures, **options)
        self.back += n_bytes(found)
        return found


def n_bytes(value):
    """Of all arrays within."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(n_bytes, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(n_bytes, value))
    return n_bytes(vars(value)) if hasattr(value, "__dict__") else 0


def grid_search(X):
    with parallel_config("dask"):
        rates = {"learning_rate": [0.02, 0.05, 0.1, 0.2]}
        return GridSearchCV(SDCPRBM(100, max_iter=1, random_state=0), rates, cv=2).fit(X)


def annealing(machine):
    with parallel_config("dask"):
        return machine.log_partition("ais", n_chains=400, n_temperatures=3000, random_state=0)


def tasks(da, n_rows):
    """(name, function of nothing, what it gives as an array, steps or None)."""
    narrow, wide = (
        correlated_bits(*shape, np.random.default_rng(0))
        for shape in ((n_rows, 14), (n_rows // 20, 200))
    )
    few = da.from_array(narrow, chunks=(n_rows // 8, -1))
    many = da.from_array(wide, chunks=(len(wide) // 8, -1))
    machine = SDCPRBM(100, max_iter=1, random_state=0).fit(wide[:1000])
    options = {"n_components": 200, "batch_size": 2000, "max_iter": 1, "random_state": 0}
    steps = len(wide) // 2000
    return [
        ("GridSearchCV", lambda: grid_search(wide), lambda m: m.best_estimator_.components_, None),
        ("AIS, 400 chains", lambda: annealing(machine), lambda e: e.log_weights, None),
        ("FSLLDensity", lambda: FSLLDensity(max_basis=10).fit(few), lambda m: m.theta_, None),
        ("FVBMPseudoLikelihood", lambda: FVBMPseudoLikelihood(alpha=0.0).fit(few),
         lambda m: m.coupling_, None),
        ("SDCPRBM, n_inner=1", lambda: SDCPRBM(n_inner=1, n_gibbs=24, **options).fit(many),
         lambda m: m.components_, steps),
        ("SDCPRBM, n_inner=6", lambda: SDCPRBM(**options).fit(many), lambda m: m.components_,
         steps),
        ("TAPRBM", lambda: TAPRBM(tap_tol=0, **options).fit(many), lambda m: m.components_, steps),
    ]  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    try:
        import dask.array as da
        from distributed import Client, LocalCluster
    except ImportError:
        print("dask and distributed are not installed")
        return
    rows, same = [], []
    with report(args.output / "distributed.txt", "One process and two"):
        clusters = [
            LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") for n in (1, 2)
        ]
        clients = [Client(cluster, set_as_default=False) for cluster in clusters]
        counters = [Counter(client) for client in clients]
        for name, function, values, steps in tasks(da, args.rows):
            found = []

            def on(client, function=function, found=found):
                with client.as_current():
                    found.append(function())

            for counter in counters:
                counter.out = counter.back = counter.n_rounds = 0
            functions = [lambda client=client: on(client) for client in clients]
            interleaved(functions, 1)  # once to warm up, and to count
            moved = [(c.out / KIB, c.back / KIB, c.n_rounds) for c in counters]
            difference = float(np.abs(values(found[0]) - values(found[1])).max())
            seconds = interleaved(functions, args.repeats)
            ratio = np.median(seconds[0] / seconds[1])
            same.append(difference)
            per_step = [f"{moved[1][k] / steps:.0f}" if steps else "-" for k in (0, 1)]
            rounds = f"{moved[1][2] / steps:.0f}" if steps else "-"
            rows.append([name, f"{np.median(seconds[0]):.2g}", f"{np.median(seconds[1]):.2g}",
                         f"{ratio:.2f}", rounds, *per_step, f"{difference:.1g}"])  # fmt: skip
        print_table(
            ["task", "s, one", "s, two", "ratio", "rounds a step", "KiB out", "KiB back",
             "difference"], rows,
        )  # fmt: skip
        print_check("two processes give what one gives", "<= 1e-5", f"{max(same):.1g}",
                    max(same) <= 1e-5)  # fmt: skip
        for client in clients:
            client.close()
        for cluster in clusters:
            cluster.close()


if __name__ == "__main__":
    run_script(main)
