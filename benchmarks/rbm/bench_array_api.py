"""SDCPRBM on tensors of PyTorch, on the processor and on a GPU where there is one.

Claims: on the processor, an epoch of PCD-1 and one of CS-DCP 6×4 with 784 × 500 units at batch 500
take at most 1.15 times as long through tensors as the same loop by hand in PyTorch. On a GPU, an
epoch of PCD-1 over 60,000 rows takes at most 1.5 times as long as its matrix products, with 500 and
4,000 hidden units and batches of 500 and 2,000; beside it stand `rbms` (where it is installed), the
precisions of products that PyTorch offers, the test log-likelihood after --minutes of
training, and the largest machine that fits.

The rows are those of MNIST with pixels above one half, or random ones with as many ones without
--data. On a GPU the same command measures all of it; without one, the first part alone.
"""

import os

# scikit-learn wants it for arrays to be dispatched, before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import time

import _path  # noqa: F401
import numpy as np
import sklearn
from _baselines import set_torch_threads
from _common import (
    MissingData,
    interleaved,
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    unconverged_is_fine,
)
from _data import load_bits
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM

N_VISIBLE, RATE = 784, 0.05
PCD = dict(n_inner=1, n_gibbs=1, centered=False, persistent=True)
CS_DCP = dict(n_inner=6, n_gibbs=4)
PRECISIONS = "highest", "high", "medium"


def rows(n_rows, folder):
    """-> rows to train on, and rows to test on."""
    if folder is None:
        rng = np.random.default_rng(1)
        return [(rng.random((n, N_VISIBLE)) < 0.13).astype(np.float32) for n in (n_rows, 10_000)]
    return load_bits("mnist", folder, n_rows)


def estimator(n_hidden, batch_size, **options):
    options = {"learning_rate": RATE, "track_likelihood": False, "random_state": 0, **options}
    return SDCPRBM(n_hidden, batch_size=batch_size, **options)


# The same loops by hand.


def initial(n_hidden, device):
    import torch

    W = 0.01 * torch.randn(n_hidden, N_VISIBLE, device=device)
    return W, torch.zeros(N_VISIBLE, device=device), torch.zeros(n_hidden, device=device)


def hand_pcd(X, n_hidden, batch_size):
    """PCD-1."""
    import torch

    W, b, c = initial(n_hidden, X.device)
    h = torch.zeros(batch_size, n_hidden, device=X.device)

    def epoch():
        nonlocal h
        with torch.no_grad():
            for V in X[torch.randperm(len(X), device=X.device)].split(batch_size):
                H = torch.sigmoid(torch.addmm(c, V, W.T))
                Vn = torch.bernoulli(torch.sigmoid(torch.addmm(b, h, W)))
                Hn = torch.sigmoid(torch.addmm(c, Vn, W.T))
                W.add_(H.T @ V / len(V) - Hn.T @ Vn / len(Vn), alpha=RATE)
                b.add_(V.mean(0) - Vn.mean(0), alpha=RATE)
                c.add_(H.mean(0) - Hn.mean(0), alpha=RATE)
                h = torch.bernoulli(Hn)

    return epoch


def hand_cs_dcp(X, n_hidden, batch_size, n_inner=6, n_gibbs=4):
    """Algorithm 4 of Upadhya and Sastry, with the gradient of the rows taken once."""
    import torch

    W, b, c = initial(n_hidden, X.device)
    mu, lam = X.mean(0), torch.full_like(c, 0.5)

    def learn(V):
        n, Vn = len(V), V
        H = torch.sigmoid(torch.addmm(c, V, W.T))
        ascent, v_mean, h_mean = None, V.mean(0), H.mean(0)
        for _ in range(n_inner):
            for _ in range(n_gibbs):
                Hn = torch.bernoulli(torch.sigmoid(torch.addmm(c, Vn, W.T)))
                Vn = torch.bernoulli(torch.sigmoid(torch.addmm(b, Hn, W)))
            Hn = torch.sigmoid(torch.addmm(c, Vn, W.T))
            mu.lerp_(v_mean, 0.01)
            lam.lerp_(h_mean, 0.01)
            if ascent is None:
                ascent = (H - lam).T @ (V - mu) / n
            step = RATE * (ascent - (Hn - lam).T @ (Vn - mu) / n)
            W.add_(step)
            b.add_(RATE * (v_mean - Vn.mean(0)) - lam @ step)
            c.add_(RATE * (h_mean - Hn.mean(0)) - step @ mu)

    def epoch():
        with torch.no_grad():
            for V in X[torch.randperm(len(X), device=X.device)].split(batch_size):
                learn(V)

    return epoch


def products(X, n_hidden, batch_size):
    """The matrix products of PCD-1: three with the weights, two for the gradient."""
    import torch

    W, b, _ = initial(n_hidden, X.device)
    H = (torch.rand(batch_size, n_hidden, device=X.device) < 0.5).to(X.dtype)

    def epoch():
        with torch.no_grad():
            for V in X.split(batch_size):
                V @ W.T, H @ W, V @ W.T, H[: len(V)].T @ V, H[: len(V)].T @ V

    return epoch


class Rbms:
    """`rbms.training.pcd.fit_batch_pcd`, the steps of its `train` without the file, on a device."""

    def __init__(self, X, n_hidden, batch_size):
        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM
        from rbms.dataset.dataset_class import RBMDataset

        n, device = len(X), str(X.device)
        rows = X.cpu().numpy()
        self.rows = RBMDataset(
            rows, np.zeros(n), np.ones(n), np.arange(n).astype(str), "rows", True, device
        )
        self.model = BBRBM.init_parameters(n_hidden, self.rows, device, torch.float32)
        self.model.init_grad()
        self.chains = self.model.init_chains(batch_size)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, maximize=True)
        self.batch_size, self.device = batch_size, X.device

    def __call__(self):
        import torch
        from rbms.training.pcd import fit_batch_pcd

        with torch.no_grad():
            order = torch.randperm(len(self.rows), device=self.device)
            for chosen in order.split(self.batch_size):
                batch = self.rows.data[chosen], self.rows.weights[chosen]
                self.optimizer.zero_grad(set_to_none=False)
                self.chains, _ = fit_batch_pcd(batch, self.chains, self.model, 1, 1.0)
                self.optimizer.step()


# Comparisons.


def ours(X, n_hidden, batch_size, **options):
    """An epoch of a fit, without what is measured after it."""
    model = estimator(n_hidden, batch_size, max_iter=1, warm_start=True, **options)

    def epoch():
        with unconverged_is_fine():
            model.fit(X)
        seconds.append(model.history_["seconds"][-1])

    seconds = epoch.seconds = []
    return epoch


def waiting(epoch):
    """An epoch that ends when the device has come to its end."""
    import torch

    def whole():
        epoch()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return whole


def compare(functions, repeats):
    """Seconds of an epoch of each function, called in turn after one round to warm up."""
    seconds = interleaved([waiting(f) for f in functions.values()], repeats + 1)[:, 1:]
    found = dict(zip(functions, seconds, strict=True))
    for name, function in functions.items():
        if hasattr(function, "seconds"):
            found[name] = np.array(function.seconds[1:])
    return found


def show(title, seconds, to):
    print(title)
    print_table(
        ["", "median s", "min s", f"ratio to {to}"],
        [
            [name, f"{np.median(s):.4f}", f"{s.min():.4f}", f"{np.median(s / seconds[to]):.2f}"]
            for name, s in seconds.items()
        ],
    )


def check(what, limit, measured):
    print_check(what, f"≤ {limit}", f"{measured:.2f}", measured <= limit)


def on_processor(X, repeats, n_threads):
    import torch

    rows = torch.asarray(X)
    for name, scheme, by_hand in [("PCD-1", PCD, hand_pcd), ("CS-DCP 6×4", CS_DCP, hand_cs_dcp)]:
        mine = X if scheme is PCD else X[:2500]
        chosen = rows[: len(mine)]
        functions = {
            "PyTorch by hand": by_hand(chosen, 500, 500),
            "SDCPRBM, tensors": ours(chosen, 500, 500, n_jobs=n_threads, **scheme),
            "SDCPRBM, NumPy": ours(mine, 500, 500, n_jobs=n_threads, **scheme),
        }
        seconds = compare(functions, repeats)
        show(f"{name}, {len(mine):,} rows, batch 500, float32", seconds, "PyTorch by hand")
        ratio = np.median(seconds["SDCPRBM, tensors"] / seconds["PyTorch by hand"])
        check(f"{name}, tensors / by hand", 1.15, ratio)
        print()


def on_gpu(X, X_test, repeats, minutes):
    import torch

    X, X_test = (torch.asarray(rows, device="cuda") for rows in (X, X_test))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    for n_hidden in (500, 4000):
        for batch_size in (500, 2000):
            one_size(X, n_hidden, batch_size, repeats)
    for precision in PRECISIONS:
        torch.set_float32_matmul_precision(precision)
        likelihood_after(minutes, X, X_test, precision)
    torch.set_float32_matmul_precision("highest")
    largest(X)


def one_size(X, n_hidden, batch_size, repeats):
    """An epoch of PCD-1 beside its products and `rbms`, in each precision of products."""
    import torch

    for precision in PRECISIONS:
        torch.set_float32_matmul_precision(precision)
        functions = {
            "products": products(X, n_hidden, batch_size),
            "SDCPRBM": ours(X, n_hidden, batch_size, **PCD),
            "PyTorch by hand": hand_pcd(X, n_hidden, batch_size),
        }
        try:
            functions["rbms, centred"] = Rbms(X, n_hidden, batch_size)
        except ImportError:
            print("rbms is not installed")
        seconds = compare(functions, repeats)
        title = f"PCD-1, {len(X):,} rows, {n_hidden} units, batch {batch_size}, {precision!r}"
        show(title, seconds, "products")
        if precision == "highest":
            check("SDCPRBM / products", 1.5, np.median(seconds["SDCPRBM"] / seconds["products"]))
    torch.set_float32_matmul_precision("highest")


def likelihood_after(minutes, X, X_test, precision):
    """Test log-likelihood of 500 units after so long, centred PCD-1."""
    model = estimator(500, 500, **{**PCD, "centered": True}, max_iter=5, warm_start=True)
    start = time.perf_counter()
    with unconverged_is_fine():
        while time.perf_counter() - start < 60 * minutes:
            model.fit(X)
        found = model.log_partition("ais", n_chains=500, n_temperatures=20_000, random_state=0)
    value = float(-model.free_energy(X_test).mean()) - found.value
    print(
        f"500 units, {model.n_iter_} epochs in {minutes:g} minutes, products {precision!r}: "
        f"{value:.2f} nats a test row (ln Z by AIS, std err {found.std_err:.2f})"
    )


def largest(X):
    """The largest number of hidden units that an epoch of PCD-1 at batch 2,000 can have."""
    import torch

    n_hidden = 4000
    while True:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        try:
            ours(X[:4000], 2 * n_hidden, 2000, **PCD)()
        except torch.cuda.OutOfMemoryError:
            break
        n_hidden *= 2
        peak = torch.cuda.max_memory_allocated() / 2**30
        print(f"{n_hidden:,} units fit, with {peak:.1f} GiB")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of the processor")
    parser.add_argument("--minutes", type=float, default=5, help="of training on a GPU")
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        raise MissingData("PyTorch is not installed") from None
    sklearn.set_config(array_api_dispatch=True)
    X, X_test = rows(60_000, args.data)
    with (
        threadpool_limits(args.threads),
        report(args.output / "array_api.txt", "SDCPRBM on tensors of PyTorch, 784 visible units"),
    ):
        set_torch_threads(args.threads)
        on_processor(X[:10_000], args.repeats, args.threads)
        if torch.cuda.is_available():
            on_gpu(X, X_test, args.repeats, args.minutes)
        else:
            print("No GPU: what is claimed of one has not been measured here.")


if __name__ == "__main__":
    run_script(main)
