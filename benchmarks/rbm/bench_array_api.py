"""SDCPRBM and RBMClassifier on tensors of PyTorch, on the processor and on a GPU.

Claims: on the processor, an epoch of PCD-1 and one of CS-DCP 6×4 with 784 × 500 units at batch 500
take at most 1.15 times as long through tensors as the same loop by hand in PyTorch. On a GPU, an
epoch of PCD-1 over 60,000 rows takes at most 1.5 times as long as its matrix products, with 500 and
4,000 hidden units and batches of 500 and 2,000; beside it stand `rbms` (where it is installed), an
epoch of RBMClassifier with its products, each in the precisions of products that PyTorch offers,
the test log-likelihood after --minutes of training and the test error of the classifier after 10
epochs in each of these precisions, and the largest machine that fits.

The rows are those of MNIST with pixels above one half, or random ones with as many ones without
--data. On a GPU the same command measures all of it; without one, the first part alone. With
--rehearse, the second part runs with small sizes on the processor, only to see that it runs.
"""

import os

# scikit-learn wants it for arrays to be dispatched, before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import time
from contextlib import contextmanager
from typing import NamedTuple

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
from _data import binary, load_images, load_small_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM, RBMClassifier
from sklearn_boltz.restricted.training import _epochs

N_VISIBLE, RATE = 784, 0.05
PCD = dict(n_inner=1, n_gibbs=1, centered=False, persistent=True)
CS_DCP = dict(n_inner=6, n_gibbs=4)
# How PyTorch multiplies matrices of float32: with products rounded to TensorFloat-32 or bfloat16
# and sums in float32; or, by autocast, with the result rounded as well.
AUTOCAST = "bfloat16", "float16"
PRECISIONS = "highest", "high", "medium", *AUTOCAST


class Sizes(NamedTuple):
    """What the second part measures, and where."""

    device: str = "cuda"
    n_rows: int = 60_000
    hidden: tuple = (500, 4000)
    batches: tuple = (500, 2000)
    epochs: int = 10
    n_temperatures: int = 20_000
    most_hidden: float = float("inf")


REHEARSAL = Sizes("cpu", 300, (10, 20), (50, 100), 1, 20, 40)


@contextmanager
def products_in(precision, device):
    """Products of one of the `PRECISIONS`."""
    import torch

    if precision in AUTOCAST:
        with torch.autocast(torch.device(device).type, dtype=getattr(torch, precision)):
            yield
        return
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


def rows(n_rows, folder):
    """-> rows to train on, rows to test on, and the labels of both."""
    if folder is None:
        rng, n_test = np.random.default_rng(1), 10_000
        X, X_test = (
            (rng.random((n, N_VISIBLE)) < 0.13).astype(np.float32) for n in (n_rows, n_test)
        )
        return X, X_test, np.arange(n_rows) % 10, np.arange(n_test) % 10
    X, X_test, y, y_test = load_images("mnist", folder, n_rows)
    return binary(X), binary(X_test), y.astype(np.int64), y_test.astype(np.int64)


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


def hand_classifier(X, y, n_hidden, batch_size):
    """Discriminative training with gradients by PyTorch, in steps of Adam."""
    import torch

    W, _, c = initial(n_hidden, X.device)
    U, d = torch.zeros(10, n_hidden, device=X.device), torch.zeros(10, device=X.device)
    parameters = [p.requires_grad_(True) for p in (W, c, U, d)]
    optimizer = torch.optim.Adam(parameters, lr=0.005)

    def epoch():
        for chosen in torch.randperm(len(X), device=X.device).split(batch_size):
            fields = torch.addmm(c, X[chosen], W.T)
            log_weights = d + torch.nn.functional.softplus(fields[:, None] + U).sum(2)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(log_weights, y[chosen]).backward()
            optimizer.step()

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


def classifier(n_hidden, batch_size, **options):
    options = {"early_stopping": False, "random_state": 0, **options}
    return RBMClassifier(n_hidden, batch_size=batch_size, **options)


def our_classes(X, y, n_hidden, batch_size, **options):
    """An epoch of a classifier, without what is measured after it."""
    model = classifier(n_hidden, batch_size, max_iter=1, warm_start=True, **options)

    def epoch():
        with unconverged_is_fine():
            model.fit(X, y)
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


def compare(functions, repeats, clock=time.perf_counter):
    """Seconds of an epoch of each function, called in turn after one round to warm up."""
    seconds = interleaved([waiting(f) for f in functions.values()], repeats + 1, clock)[:, 1:]
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


def on_processor(X, y, repeats, n_threads):
    import torch

    clock = time.perf_counter
    if n_threads == 1:  # what others do on the machine does not count
        clock = _epochs.perf_counter = time.process_time
    rows = torch.asarray(X)
    for name, scheme, by_hand in [("PCD-1", PCD, hand_pcd), ("CS-DCP 6×4", CS_DCP, hand_cs_dcp)]:
        mine = X if scheme is PCD else X[:2500]
        chosen = rows[: len(mine)]
        functions = {
            "PyTorch by hand": by_hand(chosen, 500, 500),
            "SDCPRBM, tensors": ours(chosen, 500, 500, n_jobs=n_threads, **scheme),
            "SDCPRBM, NumPy": ours(mine, 500, 500, n_jobs=n_threads, **scheme),
        }
        seconds = compare(functions, repeats, clock)
        show(f"{name}, {len(mine):,} rows, batch 500, float32", seconds, "PyTorch by hand")
        ratio = np.median(seconds["SDCPRBM, tensors"] / seconds["PyTorch by hand"])
        check(f"{name}, tensors / by hand", 1.15, ratio)
        print()
    labels = torch.asarray(y)
    functions = {"PyTorch by hand, alpha=0": hand_classifier(rows, labels, 500, 500)}
    for alpha in (0.0, 0.01):
        options = {"alpha": alpha, "n_jobs": n_threads}
        functions[f"alpha={alpha:g}, tensors"] = our_classes(rows, labels, 500, 500, **options)
        functions[f"alpha={alpha:g}, NumPy"] = our_classes(X, y, 500, 500, **options)
    title = f"RBMClassifier, {len(X):,} rows, batch 500, float32"
    show(title, compare(functions, repeats, clock), "PyTorch by hand, alpha=0")
    print()
    _epochs.perf_counter = time.perf_counter


def lower_precision_on_digits(n_seeds):
    """Exact test log-likelihoods of fits with products of bfloat16 on the processor."""
    import torch

    X = (load_small_digits()[0] > 0.5).astype(np.float32)
    X, X_test = (torch.asarray(rows) for rows in train_test_split(X, random_state=0))
    scores = {}
    for precision in ("highest", "medium", "bfloat16"):
        fits = []
        for seed in range(n_seeds):
            model = estimator(16, 50, **PCD, max_iter=60, random_state=seed)
            with unconverged_is_fine(), products_in(precision, "cpu"):
                model.fit(X)
            fits.append(model.score(X_test))
        scores[precision] = np.array(fits)
    print(f"Products of float32 on the processor: digits, 16 units, PCD-1, {n_seeds} seeds")
    lines = []
    for name, found in scores.items():
        both = [*mean_and_error(found), *mean_and_error(found - scores["highest"])]
        lines.append([name, *(f"{value:.3f}" for value in both)])
    print_table(["", "nats a test row", "std err", "less float32", "std err"], lines)
    print()


def mean_and_error(values):
    return values.mean(), values.std(ddof=1) / len(values) ** 0.5


def on_device(data, sizes, repeats, minutes):
    import torch

    X, X_test, y, y_test = (torch.asarray(array, device=sizes.device) for array in data)
    name = torch.cuda.get_device_name() if sizes.device == "cuda" else "REHEARSAL on the processor"
    print(f"{name}, PyTorch {torch.__version__}\n")
    for n_hidden in sizes.hidden:
        for batch_size in sizes.batches:
            for precision in PRECISIONS:
                with products_in(precision, sizes.device):
                    one_size(X, y, n_hidden, batch_size, precision, repeats)
    for precision in PRECISIONS:
        likelihood_after(minutes, X, X_test, precision, sizes)
    for precision in PRECISIONS:
        errors_of_classifier(X, y, X_test, y_test, precision, sizes)
    largest(X, sizes)


def one_size(X, y, n_hidden, batch_size, precision, repeats):
    """An epoch of PCD-1 and of RBMClassifier beside its products, and others."""
    functions = {
        "products": products(X, n_hidden, batch_size),
        "SDCPRBM": ours(X, n_hidden, batch_size, **PCD),
        "RBMClassifier": our_classes(X, y, n_hidden, batch_size),
        "RBMClassifier, alpha=0": our_classes(X, y, n_hidden, batch_size, alpha=0),
    }
    if precision not in AUTOCAST:  # which others are not written for
        functions["PyTorch by hand"] = hand_pcd(X, n_hidden, batch_size)
        functions["by hand, alpha=0"] = hand_classifier(X, y, n_hidden, batch_size)
        try:
            functions["rbms, centred"] = Rbms(X, n_hidden, batch_size)
        except ImportError:
            print("rbms is not installed")
    seconds = compare(functions, repeats)
    title = f"PCD-1, {len(X):,} rows, {n_hidden} units, batch {batch_size}, {precision!r}"
    show(title, seconds, "products")
    if precision == "highest":
        check("SDCPRBM / products", 1.5, np.median(seconds["SDCPRBM"] / seconds["products"]))
    print()


def likelihood_after(minutes, X, X_test, precision, sizes):
    """Test log-likelihood of the smaller machine after so long, centred PCD-1."""
    n_hidden = sizes.hidden[0]
    options = {**PCD, "centered": True, "max_iter": 5, "warm_start": True}
    model = estimator(n_hidden, sizes.batches[0], **options)
    start = time.perf_counter()
    with unconverged_is_fine():
        with products_in(precision, sizes.device):
            while time.perf_counter() - start < 60 * minutes:
                model.fit(X)
        found = model.log_partition(
            "ais", n_chains=500, n_temperatures=sizes.n_temperatures, random_state=0
        )
    value = float(-model.free_energy(X_test).mean()) - found.value
    print(
        f"{n_hidden} units, {model.n_iter_} epochs in {minutes:g} minutes, products {precision!r}: "
        f"{value:.2f} nats a test row (ln Z by AIS, std err {found.std_err:.2f})"
    )


def errors_of_classifier(X, y, X_test, y_test, precision, sizes):
    """Test error and log-loss of the smaller classifier after some epochs."""
    import torch

    model = classifier(sizes.hidden[0], sizes.batches[0], max_iter=sizes.epochs)
    start = time.perf_counter()
    with unconverged_is_fine(), products_in(precision, sizes.device):
        model.fit(X, y)
    seconds, log_p = time.perf_counter() - start, model.predict_log_proba(X_test)
    loss = torch.nn.functional.nll_loss(log_p, y_test)
    print(
        f"RBMClassifier, {sizes.hidden[0]} units, {sizes.epochs} epochs in {seconds:.1f} s, "
        f"products {precision!r}: test error {1 - model.score(X_test, y_test):.4f}, "
        f"log-loss {loss:.4f}"
    )


def largest(X, sizes):
    """The largest number of hidden units that an epoch of PCD-1 can have."""
    import torch

    n_hidden, on_gpu = sizes.hidden[-1], sizes.device == "cuda"
    while 2 * n_hidden <= sizes.most_hidden:
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            ours(X[:4000], 2 * n_hidden, sizes.batches[-1], **PCD)()
        except torch.cuda.OutOfMemoryError:
            break
        n_hidden *= 2
        peak = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else float("nan")
        print(f"{n_hidden:,} units fit, with {peak:.1f} GiB")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of the processor")
    parser.add_argument("--minutes", type=float, default=5, help="of training on a GPU")
    parser.add_argument(
        "--rehearse", action="store_true", help="the second part alone, small, on the processor"
    )
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        raise MissingData("PyTorch is not installed") from None
    sklearn.set_config(array_api_dispatch=True)
    sizes = REHEARSAL if args.rehearse else Sizes()
    data = rows(sizes.n_rows, args.data)
    if args.rehearse:
        on_device(data, sizes, 1, 0.01)
        return
    X, _, y, _ = data
    with (
        threadpool_limits(args.threads),
        report(args.output / "array_api.txt", "Tensors of PyTorch, 784 visible units"),
    ):
        set_torch_threads(args.threads)
        on_processor(X[:10_000], y[:10_000], args.repeats, args.threads)
        lower_precision_on_digits(2 * args.repeats)
        if torch.cuda.is_available():
            on_device(data, sizes, args.repeats, args.minutes)
        else:
            print("No GPU: what is claimed of one has not been measured here.")


if __name__ == "__main__":
    run_script(main)
