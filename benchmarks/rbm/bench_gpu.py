"""Restricted Boltzmann machines of 784 and 500 units on a device of PyTorch, beside the processor.

The rows are statistically binarised MNIST, in float32. An epoch is the difference of a long fit and
one of a single epoch, by the epochs between them (2 on the processor, 20 on the device):
preparations are the same. The yardstick is the epoch of PCD-1 written by hand in PyTorch, on the
same device. Before anything is timed, fits in
float64 on the device are compared with those on the processor.
"""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported

import _path  # noqa: F401
import numpy as np
import sklearn
from _baselines import torch_pcd
from _common import (
    MissingData,
    make_parser,
    print_check,
    print_table,
    report,
    script,
    timed,
    unconverged_is_fine,
)
from bench_rbm_speed import binary_rows

from sklearn_boltz import SDCPRBM, TAPRBM

try:
    import torch
except ImportError:
    torch = None

PCD = {"n_inner": 1, "n_gibbs": 1, "centered": False, "chains": "persistent"}
MODELS = {
    "SDCPRBM, PCD-1": lambda **fit: SDCPRBM(500, **PCD, **fit),
    "SDCPRBM": lambda **fit: SDCPRBM(500, **fit),
    "TAPRBM": lambda **fit: TAPRBM(500, **fit),
}
FIT = {"track_likelihood": False, "early_stopping": False, "random_state": 0}


def seconds_of(function, *args):
    """Seconds of a call until its work on a device has ended."""

    def call():
        function(*args)
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return timed(call)[1]


def epoch_of(make, batch_size, **fit):
    """A function from rows to the seconds of an epoch."""

    def measure(X):
        n = 20 if isinstance(X, torch.Tensor) else 2  # an epoch of a device is a hundredth second
        fits = [make(**(FIT | fit), max_iter=i, batch_size=batch_size) for i in (1, 1, 1 + n)]
        _, short, long = (seconds_of(model.fit, X) for model in fits)
        return (long - short) / n

    return measure


def by_hand(batch_size):
    """The same of the loop written by hand."""

    def measure(X):
        device = X.device if isinstance(X, torch.Tensor) else "cpu"
        n_threads = torch.get_num_threads()
        epoch, _ = torch_pcd(X, 500, 0.05, batch_size, n_threads=n_threads, device=device)
        return min(seconds_of(epoch) for _ in range(3))

    return measure


def verb_of(call):
    """A function from rows to the seconds of a method of a fitted machine."""

    def measure(X):
        model = SDCPRBM(500, **PCD, **FIT, max_iter=2, batch_size=500).fit(X)
        return [seconds_of(call, model, X) for _ in range(2)][-1]

    return measure


def largest_difference(make, X, device):
    """Of the weights of two fits in float64, on the device and on the processor."""
    fits = [make(**FIT, max_iter=2, batch_size=200) for _ in range(2)]
    here = fits[0].fit(X).components_
    there = fits[1].fit(torch.asarray(X, device=device)).components_
    return np.abs(here - there.cpu().numpy()).max()


def compare(title, measures, places):
    rows = [[name, *(measure(X) for X in places.values())] for name, measure in measures.items()]
    print(title)
    print_table(
        ["", *places, "ratio"],
        [[name, *(f"{s:.3f}" for s in ss), f"{ss[0] / ss[-1]:.1f}"] for name, *ss in rows],
    )


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    if torch is None or (args.device.startswith("cuda") and not torch.cuda.is_available()):
        raise MissingData(f"PyTorch has no device {args.device!r}")
    device = torch.device(args.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else args.device
    title = f"RBMs of 784 × 500 units on {name}, PyTorch {torch.__version__}"
    X = binary_rows(args.rows, args.data)
    places = {"processor": X, args.device: torch.asarray(X, device=device)}
    with sklearn.config_context(array_api_dispatch=True), unconverged_is_fine():
        with report(args.output / "gpu.txt", title):
            for model, make in MODELS.items():
                worst = largest_difference(make, X[:2000].astype(np.float64), device)
                print_check(
                    f"{model}, weights as on the processor", "≤ 1e-9", f"{worst:.0e}", worst <= 1e-9
                )
            epochs = {model: epoch_of(make, 100) for model, make in MODELS.items()}
            tracked = epoch_of(MODELS["SDCPRBM"], 100, track_likelihood=True)
            epochs |= {"SDCPRBM, likelihood followed": tracked, "PCD-1 by hand": by_hand(100)}
            compare(f"\nSeconds of an epoch of {args.rows:,} rows, batch 100", epochs, places)
        verbs = {
            "transform, all rows": lambda model, X: model.transform(X),
            "sample, 1,000 rows": lambda model, X: model.sample(1000, random_state=0),
            'log_partition("ais")': lambda model, _: model.log_partition("ais", random_state=0),
        }
        calls = {verb: verb_of(call) for verb, call in verbs.items()}
        with report(args.output / "gpu_methods.txt", title):
            compare("Seconds of methods of a fitted machine", calls, places)
