"""The data sets of the benchmarks. No other file here loads any.

A set is looked for as a file in a folder (``--data``), then downloaded where the library has an
address for it. What is in neither place raises `MissingData`.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from _common import MissingData
from sklearn import datasets

from sklearn_boltz.datasets import (
    fetch_caltech101_silhouettes,
    fetch_density_benchmark,
    fetch_mnist,
    fetch_omniglot,
)

# Images: the file, and what downloads them.
IMAGES = {
    "mnist": ("mnist.npz", fetch_mnist),
    "omniglot": ("omniglot28.npz", fetch_omniglot),
    "cbcl": ("cbcl_faces.npz", None),
    "caltech": ("caltech101_silhouettes.npz", fetch_caltech101_silhouettes),
}


def _read(file_name, folder, fetch=None, names=()):
    """All arrays of a file by their names; else those of a download by `fetch`.

    `names` has the keys of the download, with the names that the file has for them.
    """
    if folder is not None and (folder / file_name).is_file():
        with np.load(folder / file_name, allow_pickle=False) as file:
            return dict(file)
    problem = f"{file_name} is not in --data"
    if fetch is None:
        raise MissingData(problem)
    try:
        data = fetch(verbose=0)
    except (OSError, ImportError) as error:
        raise MissingData(f"{problem}, and {error}") from error
    return {name: data[key] for key, name in names.items() if key in data}


def _image_arrays(name, folder):
    """X_train, y_train, X_test and so on; the images as they are kept."""
    file_name, fetch = IMAGES[name]
    parts = ("train", "valid", "test")
    names = {part: f"X_{part}" for part in parts} | {
        f"{part}_target": f"y_{part}" for part in parts
    }
    return _read(file_name, folder, fetch, names)


def _pixels(images):
    """Rows of pixels from 0 to 1."""
    rows = images.reshape(len(images), -1)
    # The silhouettes are bits already.
    grey = rows.dtype == np.uint8 and rows.max() > 1
    return (rows / 255 if grey else rows).astype(np.float32, copy=False)


def load_images(name, folder, n_rows=None, n_test_rows=None):
    """X, X_test, y, y_test of `IMAGES`: pixels from 0 to 1 as float32; classes, None for CBCL.

    `n_rows` and `n_test_rows` are kept, all by default.
    """
    data = _image_arrays(name, folder)
    y, y_test = data.get("y_train"), data.get("y_test")
    return (
        _pixels(data["X_train"][:n_rows]),
        _pixels(data["X_test"][:n_test_rows]),
        None if y is None else y[:n_rows],
        None if y_test is None else y_test[:n_test_rows],
    )


def load_bits(name, folder, n_rows=None, n_test_rows=None, rng=None):
    """`binary` of the rows that `load_images` gives: of training, then of the test."""
    X, X_test, *_ = load_images(name, folder, n_rows, n_test_rows)
    return binary(X, rng), binary(X_test, rng)


def binary(X, rng=None):
    """Pixels above one half; drawn with the pixels as probabilities where there is an `rng`."""
    return (X > (0.5 if rng is None else rng.random(X.shape))).astype(np.float32)


def load_parts(name, folder):
    """Pixels and classes of three parts; the last rows of MNIST validate, as in Frank-Wolfe."""
    data = _image_arrays(name, folder)
    if name == "mnist":
        for letter in "Xy":
            data[f"{letter}_valid"] = data[f"{letter}_train"][50_000:]
            data[f"{letter}_train"] = data[f"{letter}_train"][:50_000]
    return {
        part: (_pixels(data[f"X_{part}"]), data[f"y_{part}"].ravel())
        for part in ("train", "valid", "test")
    }


def load_small_digits():
    """scikit-learn's digits: 8 x 8 pixels from 0 to 1 as float64, and their classes."""
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16, y


def shifted(X):
    """Images of 8 x 8 pixels shifted by a pixel up, left, right and down: four times the rows."""
    images = np.pad(X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moved = [np.roll(images, step, axis) for step, axis in ((-1, 1), (-1, 2), (1, 2), (1, 1))]
    return np.concatenate(moved)[:, 1:-1, 1:-1].reshape(-1, X.shape[1])


def load_density(name, folder):
    """Training, validation and test rows of a benchmark of density estimation, as int64 bits."""
    parts = ("train", "valid", "test")
    fetch = partial(fetch_density_benchmark, name)
    data = _read(f"{name}.npz", folder, fetch, {part: part for part in parts})
    return [data[part].astype(np.int64) for part in parts]


def load_spikes(folder):
    """Spikes of 15 and of 50 neurons by time bin, as bits: dict with "spikes15", "spikes50"."""
    data = _read("spikes_maxent_toolbox.npz", folder)
    return {name: data[name] for name in ("spikes15", "spikes50")}


# Files of the tables of words and levels.
TABLES = {
    "vote": "uci_vote.csv.gz",
    "primary_tumor": "uci_primary_tumor.csv.gz",
    "soybean": "uci_soybean.csv.gz",
    "bfi": "r_bfi.csv.gz",
    "alarm": "r_alarm.csv.gz",
}


def load_table(name, folder):
    """A data frame of texts, None missing; of numbers, NaN missing, for the levels of bfi."""
    for place in (folder, folder / "tables") if folder is not None else ():
        if (place / TABLES[name]).is_file():
            if name == "bfi":
                return pd.read_csv(place / TABLES[name]).drop(columns="age")
            table = pd.read_csv(place / TABLES[name], dtype=str, keep_default_na=False)
            return table.astype(object).where(table != "", None)
    raise MissingData(f"{TABLES[name]} is not in --data")


# Tables with classes: the column that has them, or the function that loads them.
CLASSES = {
    "vote": "Class",
    "primary_tumor": "class",
    "soybean": "class",
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
}


def load_classes(name, folder):
    """A table whose rows are in classes: a data frame of texts or of numbers, and texts."""
    source = CLASSES[name]
    if callable(source):
        data = source(as_frame=True)
        return data.data, data.target.to_numpy().astype(str)
    table = load_table(name, folder)
    return table.drop(columns=source), table[source].to_numpy().astype(str)


def load_numbers(name):
    """A table of numbers of scikit-learn, as a data frame, without its target."""
    return getattr(datasets, f"load_{name}")(as_frame=True).data


def load_mixed(name, folder):
    """A table of words and numbers, from a file of values separated by commas."""
    path = Path(folder or "") / "mixed" / f"{name}.csv.gz"
    if not path.exists():
        raise MissingData(f"there is no {path}; give its folder by --data")
    return pd.read_csv(path)


def load_large(name, folder, n_rows=None):
    """A large table of words and numbers, shuffled; the first rows."""
    path = Path(folder or "") / "large" / f"{name}.csv.gz"
    if not path.exists():
        raise MissingData(f"there is no {path}; give its folder by --data")
    table = pd.read_csv(path).sample(frac=1, random_state=1).drop(columns="fnlwgt", errors="ignore")
    return table.iloc[:n_rows]
