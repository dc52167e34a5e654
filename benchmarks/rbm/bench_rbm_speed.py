"""Speed of SDCPRBM with 500 hidden and 784 visible units.

Epochs beside their matrix products alone, `BernoulliRBM` in the same type, and the same loop in
PyTorch, where that is installed; annealed importance sampling beside its products. `fit` holds no
array of n_samples × n_components.

The rows are those of statistically binarised MNIST, or random ones with as many ones (an eighth)
without --data; zeros save this library time, and others none.

All are run in turn in one process, each with the same number of threads: compare the ratios, not
the times. On a machine that others use too, take one thread: those of BLAS spin and wait for
each other, and then the peers look far slower than they are.
"""

import tracemalloc

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, run_script, timed
from _data import load_bits
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM

N_VISIBLE, N_HIDDEN = 784, 500


def binary_rows(n_rows, dtype, folder):
    rng = np.random.default_rng(1)
    if folder is None:
        return (rng.random((n_rows, N_VISIBLE)) < 0.13).astype(dtype)
    return load_bits("mnist", folder, n_rows, rng=rng)[0].astype(dtype)


class Products:
    """The matrix products of an algorithm, and nothing else."""

    def __init__(self, n_rows, dtype=np.float32):
        rng = np.random.default_rng(0)
        self.W = rng.standard_normal((N_HIDDEN, N_VISIBLE)).astype(dtype)
        self.V = (rng.random((n_rows, N_VISIBLE)) < 0.5).astype(dtype)
        self.H = (rng.random((n_rows, N_HIDDEN)) < 0.5).astype(dtype)
        self.outputs = np.empty_like(self.V), np.empty_like(self.H), np.empty_like(self.W)

    def __call__(self, n_up, n_down, n_gradients):
        """Make the products: to the hidden layer, to the visible one, and of the two."""
        V, H, W = self.outputs
        for _ in range(n_up):
            np.matmul(self.V, self.W.T, out=H)
        for _ in range(n_down):
            np.matmul(self.H, self.W, out=V)
        for _ in range(n_gradients):
            np.matmul(self.H.T, self.V, out=W)


def torch_pcd(X, batch_size, n_threads):
    """An epoch of PCD-1 written by hand in PyTorch; None where that is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(n_threads)
    X = torch.from_numpy(X)
    W = 0.01 * torch.randn(N_HIDDEN, N_VISIBLE)
    b, c, h = torch.zeros(N_VISIBLE), torch.zeros(N_HIDDEN), torch.zeros(batch_size, N_HIDDEN)

    def epoch():
        nonlocal h
        with torch.no_grad():
            for V in X[torch.randperm(len(X))].split(batch_size):
                H = torch.sigmoid(torch.addmm(c, V, W.T))
                Vn = torch.bernoulli(torch.sigmoid(torch.addmm(b, h, W)))
                Hn = torch.sigmoid(torch.addmm(c, Vn, W.T))
                W.add_(H.T @ V / len(V) - Hn.T @ Vn / len(Vn), alpha=0.05)
                b.add_(V.mean(0) - Vn.mean(0), alpha=0.05)
                c.add_(H.mean(0) - Hn.mean(0), alpha=0.05)
                h = torch.bernoulli(Hn)

    return epoch


def estimator(**kwargs):
    # What it takes to follow the likelihood is measured by bench_rbm_tracking.py.
    return SDCPRBM(N_HIDDEN, max_iter=1, track_likelihood=False, random_state=0, **kwargs)


def interleaved(functions, repeats):
    """Seconds of the calls of each function, called in turn so that all see the same machine."""
    seconds = {name: np.empty(repeats) for name in functions}
    for r in range(repeats):
        for name, function in functions.items():
            seconds[name][r] = timed(function)[1]
    return seconds


def compare_pcd(X, batch_size, args):
    """Seconds of an epoch: this, BernoulliRBM, the products, PyTorch."""
    n_rows, dtype = len(X), X.dtype.type
    scheme = dict(n_inner=1, n_gibbs=1, centered=False, persistent=True)
    products = Products(batch_size, dtype)
    functions = {
        "SDCPRBM": lambda: estimator(batch_size=batch_size, **scheme).fit(X),
        "BernoulliRBM": lambda: BernoulliRBM(
            N_HIDDEN, batch_size=batch_size, n_iter=1, learning_rate=0.05, random_state=0
        ).fit(X),
        "five products": lambda: [products(2, 1, 2) for _ in range(n_rows // batch_size)],
    }
    epoch = torch_pcd(X, batch_size, args.threads) if dtype == np.float32 else None
    if epoch is not None:
        functions["PyTorch"] = epoch
    return interleaved(functions, args.repeats)


def compare_cs_dcp(X, repeats):
    products = Products(200)
    functions = {
        "CS-DCP 6×4": lambda: estimator(batch_size=200).fit(X),
        # A transition is two products; each step needs the hidden means and a gradient.
        "its products": lambda: [products(31, 24, 7) for _ in range(len(X) // 200)],
    }
    return interleaved(functions, repeats)


def compare_ais(X, n_temperatures, repeats):
    model, products = estimator().fit(X), Products(100)
    functions = {
        "AIS": lambda: model.log_partition(
            "ais", n_chains=100, n_temperatures=n_temperatures, random_state=0
        ),
        "its products": lambda: products(n_temperatures, n_temperatures - 1, 0),
    }
    return interleaved(functions, repeats)


def peak_of_fit(X):
    """Bytes that a fit allocates at most, and those of the array it must not hold."""
    tracemalloc.start()
    estimator(n_inner=1, n_gibbs=1).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, len(X) * N_HIDDEN * 4


def ratio(seconds, above, below):
    """Median ratio of the turns."""
    return float(np.median(seconds[above] / seconds[below]))


def show(title, seconds):
    print(title)
    first = next(iter(seconds))
    print_table(
        ["", "median s", "min s", f"ratio to {first}"],
        [
            [name, f"{np.median(s):.3f}", f"{s.min():.3f}", f"{ratio(seconds, name, first):.2f}"]
            for name, s in seconds.items()
        ],
    )


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    title = f"Speed of SDCPRBM, 784 × 500 units, {args.threads} thread(s)"
    with (
        threadpool_limits(args.threads),
        report(args.output / f"rbm_speed_{args.threads}.txt", title),
    ):
        X = binary_rows(20000, np.float32, args.data)
        pcd = compare_pcd(X, 100, args)
        show("PCD-1, 20,000 rows, batch 100, float32: seconds an epoch", pcd)
        pcd64 = compare_pcd(X[:5000].astype(np.float64), 100, args)
        show("PCD-1, 5,000 rows, batch 100, float64", pcd64)
        small = compare_pcd(X[:5000], 10, args)
        show("PCD-1, 5,000 rows, batch 10, float32", small)
        dcp = compare_cs_dcp(X[:6000], args.repeats)
        show("CS-DCP 6×4, 6,000 rows, batch 200", dcp)
        ais = compare_ais(X[:1000], 500, args.repeats)
        show("AIS, 100 chains, 500 temperatures", ais)
        peak, forbidden = peak_of_fit(X)
        print(f"memory of a fit / (n_samples × n_components): {peak / forbidden:.2f}")


if __name__ == "__main__":
    run_script(main)
