"""Speed of SDCPRBM with 500 hidden and 784 visible units.

Epochs beside their matrix products alone, `BernoulliRBM`, and the same loop in PyTorch, where that
is installed.

The rows are those of statistically binarised MNIST, or random ones with as many ones (an eighth)
without --data; zeros save this library time, and others none.

All are run in turn in one process, each with the same number of threads: compare the ratios, not
the times. On a machine that others use too, take one thread: those of BLAS spin and wait for
each other, and then the peers look far slower than they are.
"""

import _path  # noqa: F401
import numpy as np
from _baselines import torch_pcd
from _common import make_parser, print_table, report, script, timed
from _data import load_bits
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM

N_VISIBLE, N_HIDDEN = 784, 500


def binary_rows(n_rows, folder):
    rng = np.random.default_rng(1)
    if folder is None:
        return (rng.random((n_rows, N_VISIBLE)) < 0.13).astype(np.float32)
    return load_bits("mnist", folder, n_rows, rng=rng)[0]


class Products:
    """The matrix products of a mini-batch, and nothing else."""

    def __init__(self, n_rows):
        rng = np.random.default_rng(0)
        self.W = rng.standard_normal((N_HIDDEN, N_VISIBLE)).astype(np.float32)
        self.V = (rng.random((n_rows, N_VISIBLE)) < 0.5).astype(np.float32)
        self.H = (rng.random((n_rows, N_HIDDEN)) < 0.5).astype(np.float32)
        self.outputs = np.empty_like(self.V), np.empty_like(self.H), np.empty_like(self.W)

    def __call__(self):
        """Make those of PCD-1: twice to the hidden layer, to the visible one, two gradients."""
        V, H, W = self.outputs
        np.matmul(self.H, self.W, out=V)
        for _ in range(2):
            np.matmul(self.V, self.W.T, out=H)
            np.matmul(self.H.T, self.V, out=W)


def compare_pcd(X, batch_size, args):
    """Seconds of an epoch: this, BernoulliRBM, the products, PyTorch."""
    products = Products(batch_size)
    functions = {
        # What it takes to follow the likelihood is measured by bench_rbm_tracking.py.
        "SDCPRBM": SDCPRBM(
            N_HIDDEN, batch_size=batch_size, max_iter=1, n_inner=1, n_gibbs=1, centered=False,
            chains="persistent", track_likelihood=False, random_state=0,
        ).fit,
        "BernoulliRBM": BernoulliRBM(
            N_HIDDEN, batch_size=batch_size, n_iter=1, learning_rate=0.05, random_state=0
        ).fit,
        "five products": lambda X: [products() for _ in range(len(X) // batch_size)],
    }  # fmt: skip
    try:
        epoch, _ = torch_pcd(X, N_HIDDEN, 0.05, batch_size, n_threads=args.threads)
        functions["PyTorch"] = lambda X: epoch()
    except ImportError as error:
        print(f"PyTorch left out: {error}")
    seconds = {name: np.empty(args.repeats) for name in functions}
    for r in range(args.repeats):  # in turn, so that all see the same machine
        for name, function in functions.items():
            seconds[name][r] = timed(function, X)[1]
    return seconds


def show(title, seconds):
    print(title)
    rows = [
        [name, np.median(s), s.min(), np.median(s / seconds["SDCPRBM"])]
        for name, s in seconds.items()
    ]
    print_table(["", "median s", "min s", "ratio to SDCPRBM"], rows, ".3f,.3f,.2f")


@script
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
        X = binary_rows(20000, args.data)
        pcd = compare_pcd(X, 100, args)
        show("PCD-1, 20,000 rows, batch 100, float32: seconds an epoch", pcd)
        small = compare_pcd(X[:5000], 10, args)
        show("PCD-1, 5,000 rows, batch 10, float32", small)
