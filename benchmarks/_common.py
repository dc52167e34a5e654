"""What the benchmarks share: options, clocks, tables, the memory of a process."""

import argparse
import os
import platform
import sys
import time
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
import scipy
import sklearn

import sklearn_boltz
from sklearn_boltz.datasets import fetch_mnist, fetch_omniglot

RESULTS = Path(__file__).parent / "results"


def make_parser(description):
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of real data sets (.npz)")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder for tables and figures"
    )
    return parser


class _Tee:
    def __init__(self, *files):
        self.files = files

    def write(self, text):
        for file in self.files:
            file.write(text)
        self.flush()

    def flush(self):
        for file in self.files:
            file.flush()


@contextmanager
def report(path, title):
    """Print a title and the machine; all that is printed inside goes to a file too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file, redirect_stdout(_Tee(sys.stdout, file)):
        print(f"{title}\n{machine()}\n")
        yield


def machine():
    """One line on the machine and the libraries."""
    try:
        info = Path("/proc/cpuinfo").read_text()
        model = info.split("model name")[1].split(":", 1)[1].split("\n", 1)[0].strip()
        flags = info.split("flags")[1].split("\n", 1)[0].split()
        simd = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE2"
        processor = f"{model}, {simd}"
    except (OSError, IndexError):
        processor = platform.processor() or platform.machine()
    return (
        f"{os.cpu_count()} cores, {processor}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"sklearn_boltz {sklearn_boltz.__version__}"
    )


# Where images are looked for, and what else has them.
IMAGES = {
    "mnist": ("mnist.npz", fetch_mnist),
    "omniglot": ("omniglot28.npz", fetch_omniglot),
    "cbcl": ("cbcl_faces.npz", None),
}


def load_images(name, folder, n_rows=None):
    """Images as rows of pixels from 0 to 1, or the end of the script where there are none.

    Parameters
    ----------
    name : {"mnist", "omniglot", "cbcl"}
    folder : Path or None
        Where the files may be; they are downloaded otherwise, where that is possible.
    n_rows : int, default=None
        Rows of the training set to keep.

    Returns
    -------
    X, X_test : ndarray of float32 of shape (n_samples, n_pixels)
    y, y_test : ndarray of shape (n_samples,) or None
        Classes; MNIST has them.
    """
    file_name, fetch = IMAGES[name]
    if folder is not None and (folder / file_name).is_file():
        with np.load(folder / file_name, allow_pickle=False) as file:
            X, X_test = (file[f"X_{part}"] for part in ("train", "test"))
            y, y_test = (file["y_train"], file["y_test"]) if name == "mnist" else (None, None)
    elif fetch is None:
        skip(f"{file_name} is not in --data")
    else:
        try:
            data = fetch(verbose=0)
        except (OSError, ImportError) as error:
            skip(f"{file_name} is not in --data, and {error}")
        X, X_test = data.train, data.test
        y, y_test = data.get("train_target"), data.get("test_target")
    rows = (images[:n].reshape(-1, images[0].size) for images, n in ((X, n_rows), (X_test, None)))
    X, X_test = (
        (a / 255 if a.dtype == np.uint8 else a).astype(np.float32, copy=False) for a in rows
    )
    return X, X_test, y if y is None else y[:n_rows], y_test


def load_mnist(folder, n_rows=None):
    """MNIST, as `load_images` gives it."""
    return load_images("mnist", folder, n_rows)


def binary(X, rng=None):
    """Pixels above one half; drawn with the pixels as probabilities where there is an `rng`."""
    return (X > (0.5 if rng is None else rng.random(X.shape))).astype(np.float32)


def skip(reason):
    """End the script without an error: it lacks its data."""
    print(f"{Path(sys.argv[0]).stem} skipped: {reason}")
    raise SystemExit(0)


def log_likelihood(model, X, **ladder):
    """Mean log-likelihood of rows with ln Z by annealed importance sampling, its standard error."""
    ais = model.log_partition("ais", random_state=0, **ladder)
    return -model.free_energy(X).mean() - ais.value, ais.std_err


def timed(function, *args, **kwargs):
    """(result, seconds) of a call."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def interleaved(functions, repeats):
    """Seconds of each function, called in turn so that all see the same machine.

    Returns
    -------
    seconds : ndarray of shape (len(functions), repeats)
    """
    seconds = np.empty((len(functions), repeats))
    for r in range(repeats):
        for k, function in enumerate(functions):
            seconds[k, r] = timed(function)[1]
    return seconds


def print_table(header, rows):
    """Columns, right-aligned but the first."""
    cells = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for n, row in enumerate(cells):
        first, *rest = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1])] + [c.rjust(w) for c, w in rest]).rstrip())
        if n == 0:
            print("  ".join("-" * w for w in widths))
    print()


def print_check(what, asked, measured, met):
    """A figure that was asked for beside the measured one."""
    print(f"{'met    ' if met else 'NOT MET'}  {what}: asked {asked}, measured {measured}")


def peak_memory():
    """Largest resident memory that this process ever had, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        # getrusage comes second: on Linux its figure outlives exec, from parent to child.
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
