"""The data sets of the benchmarks. No other file here loads any.

A set is looked for as a file in a folder (``--data``), then downloaded where the library has an
address for it. What is in neither place raises `MissingData`.
"""

import gzip
import lzma

import numpy as np
import pandas as pd
from _common import MissingData
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from sklearn_boltz.datasets import (
    fetch_caltech101_silhouettes,
    fetch_density_benchmark,
    fetch_mnist,
    fetch_omniglot,
    read_alignment,
)

# Images: the file, and what downloads them.
IMAGES = {
    "mnist": ("mnist.npz", fetch_mnist),
    "omniglot": ("omniglot28.npz", fetch_omniglot),
    "cbcl": ("cbcl_faces.npz", None),
    "caltech": ("caltech101_silhouettes.npz", fetch_caltech101_silhouettes),
}

# Alignments: the file, and how it is read. None is downloaded.
ALIGNMENTS = {
    "DHFR": ("plmc_DHFR.a2m.gz", {"focus": "DYR_ECOLI", "unknown": "drop"}),
    "potts3": ("plmc_potts3.a2m.gz", {"alphabet": "_*^"}),
    "plmDCA": ("plmDCA_example1_alignment.fasta.gz", {}),
    "PF00072": ("PF00072_train0.6.fasta.xz", {}),
}


def _read(file_name, folder, fetch=None, names=()):
    """All arrays of a file; else those of a download, which calls them otherwise.

    Parameters
    ----------
    file_name : str
    folder : Path or None
    fetch : callable, default=None
        Downloads the set.
    names : dict of str to str
        Keys of the download, with the names that the file has for them.

    Returns
    -------
    dict of str to ndarray
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
    """Images as rows of pixels from 0 to 1.

    Parameters
    ----------
    name : {"mnist", "omniglot", "cbcl", "caltech"}
    folder : Path or None
    n_rows, n_test_rows : int, default=None
        Rows of the training and of the test set to keep.

    Returns
    -------
    X, X_test : ndarray of float32 of shape (n_samples, n_pixels)
    y, y_test : ndarray of shape (n_samples,) or None
        Classes; CBCL has none.
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
    """Images as `load_images` gives them, then `binary`: the training rows, then the test rows.

    Returns
    -------
    X, X_test : ndarray of float32 of shape (n_samples, n_pixels)
    """
    X, X_test, *_ = load_images(name, folder, n_rows, n_test_rows)
    return binary(X, rng), binary(X_test, rng)


def binary(X, rng=None):
    """Pixels above one half; drawn with the pixels as probabilities where there is an `rng`."""
    return (X > (0.5 if rng is None else rng.random(X.shape))).astype(np.float32)


def load_parts(name, folder):
    """Images in three parts.

    Parameters
    ----------
    name : {"mnist", "caltech", "digits"}
        The last 10,000 training rows of MNIST validate, as in the Frank-Wolfe paper. The digits
        are those of scikit-learn, on above 7 of 16, in an order of their own.
    folder : Path or None

    Returns
    -------
    dict of str to (ndarray of float32, ndarray)
        Pixels from 0 to 1 and classes of "train", "valid" and "test".
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(X))
        parts = dict(train=order[:1200], valid=order[1200:1500], test=order[1500:])
        return {part: ((X[at] > 7).astype(np.float32), y[at]) for part, at in parts.items()}
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
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def load_density(name, folder):
    """Training, validation and test rows of a benchmark of density estimation, as int64 bits."""
    parts = ("train", "valid", "test")

    def fetch(verbose):
        return fetch_density_benchmark(name, verbose=verbose)

    data = _read(f"{name}.npz", folder, fetch, {part: part for part in parts})
    return [data[part].astype(np.int64) for part in parts]


def load_spikes(folder):
    """Spikes of 15 and of 50 neurons by time bin, as bits: dict with "spikes15", "spikes50"."""
    data = _read("spikes_maxent_toolbox.npz", folder)
    return {name: data[name] for name in ("spikes15", "spikes50")}


def load_ising(folder):
    """Samples of the Ising model on the periodic 7 × 7 lattice, -1 and 1: dict by β."""
    data = _read("landscapes/ising2d.npz", folder)
    betas = [0.2, 0.4, 0.5, 0.6]
    bits = {beta: np.unpackbits(data[f"L7_beta{beta}"], axis=1)[:, :49] for beta in betas}
    return {beta: 2 * rows.astype(np.int64) - 1 for beta, rows in bits.items()}


def load_clusters(folder):
    """10,000 rows of 1,000 bits in three clusters of a plane."""
    data = _read("landscapes/d2c3.npz", folder)
    n_rows, n_columns = data["shape"]
    return np.unpackbits(data["packed"], axis=1)[:n_rows, :n_columns]


def alignment_file(name, folder):
    """Path of the file of an alignment, in the folder or below ``oracles/potts`` in it."""
    file_name, _ = ALIGNMENTS[name]
    for place in (folder, folder and folder / "oracles" / "potts"):
        if place is not None and (place / file_name).is_file():
            return place / file_name
    raise MissingData(f"{file_name} is not in --data")


def load_alignment(name, folder, **options):
    """What `read_alignment` makes of an alignment; options change how it is read."""
    return read_alignment(alignment_file(name, folder), **ALIGNMENTS[name][1] | options)


def correlated_bits(n_rows, n_columns, rng):
    """Bits that are equal to their left neighbour four times of five in the first half."""
    X = rng.integers(2, size=(n_rows, n_columns), dtype=np.uint8)
    for j in range(1, n_columns // 2):
        X[:, j] = X[:, j - 1] ^ (rng.random(n_rows) < 0.2)
    return X


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def load_family(name, folder):
    """A protein family, with what another program made of it.

    Parameters
    ----------
    name : {"dhfr", "plmdca", "response_regulator"}
    folder : Path or None

    Returns
    -------
    codes : ndarray of int8 of shape (n_sequences, n_positions)
        0 is a gap, 1 to 20 are amino acids; -1 is a letter that is neither.
    scores : ndarray of shape (n_pairs, 3)
        Two positions, counted from 0, and the score of the other program.
    more : ndarray or None
        Of "dhfr" the weights of the sequences; of "response_regulator" two positions and their
        distance in Å.
    """
    files = {
        "dhfr": ("plmc_DHFR.a2m.gz", "plmc_DHFR.couplings.gz", "plmc_DHFR_weights_raw.txt.gz"),
        "plmdca": ("plmDCA_example1_alignment.fasta.gz", "plmDCA_example1_scores.csv.gz", None),
        "response_regulator": (
            "PF00072_train0.6.fasta.xz",
            "PF00072_plmDCA_score_train0.6.txt.gz",
            "PF00072_struct.dat.gz",
        ),
    }
    paths = [file and folder and folder / "oracles" / "potts" / file for file in files[name]]
    if folder is None or not all(path is None or path.is_file() for path in paths):
        raise MissingData(f"oracles/potts/{files[name][0]} is not in --data")
    letters = _sequences(paths[0])
    if name == "dhfr":
        letters = letters[:, np.char.isupper(letters[0])]
        columns = (0, 2, 5)
    else:
        letters = np.array([[c for c in row if c == "-" or c.isupper()] for row in letters])
        columns = (0, 1, 2)
    codes = np.full(letters.shape, -1, dtype=np.int8)
    for k, letter in enumerate("-" + AMINO_ACIDS):
        codes[letters == letter] = k
    codes[(letters == ".") | np.char.islower(letters)] = 0
    scores = np.loadtxt(paths[1], delimiter="," if name == "plmdca" else None, usecols=columns)
    positions = np.unique(scores[:, :2])
    if name == "dhfr":
        scores[:, :2] = np.searchsorted(positions, scores[:, :2])
    else:
        scores[:, :2] -= 1
    more = None if paths[2] is None else np.loadtxt(paths[2])
    if name == "response_regulator":
        more = more[:, [0, 1, 3]] - [1, 1, 0]
    return codes, scores, more


# Tables: the file, and the columns that are left out.
TABLES = {
    "vote": ("uci_vote.csv.gz", []),
    "primary_tumor": ("uci_primary_tumor.csv.gz", []),
    "soybean": ("uci_soybean.csv.gz", []),
    "bfi": ("r_bfi.csv.gz", ["age"]),
    "alarm": ("r_alarm.csv.gz", []),
}


def load_table(name, folder):
    """A table of words as a data frame of texts, of levels as one of numbers.

    Parameters
    ----------
    name : {"vote", "primary_tumor", "soybean", "bfi", "alarm"}
        bfi is without the age, which is a number.
    folder : Path or None

    Returns
    -------
    table : data frame
        A missing cell is None, or NaN.
    """

    file_name, left_out = TABLES[name]
    for place in (folder, folder and folder / "tables"):
        if place is not None and (place / file_name).is_file():
            if name == "bfi":
                return pd.read_csv(place / file_name).drop(columns=left_out)
            table = pd.read_csv(place / file_name, dtype=str, keep_default_na=False)
            table = table.drop(columns=left_out).astype(object)
            return table.where(table != "", None)
    raise MissingData(f"{file_name} is not in --data")


# Tables with classes: the column that has them, or the function that loads them.
CLASSES = {
    "vote": "Class",
    "primary_tumor": "class",
    "soybean": "class",
    "digits": load_digits,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "iris": load_iris,
}


def load_classes(name, folder):
    """A table whose rows are in classes.

    Parameters
    ----------
    name : {"vote", "primary_tumor", "soybean", "digits", "wine", "breast_cancer", "iris"}
    folder : Path or None

    Returns
    -------
    X : data frame
        Of texts, or of numbers.
    y : ndarray of str
    """
    source = CLASSES[name]
    if callable(source):
        data = source(as_frame=True)
        return data.data, data.target.to_numpy().astype(str)
    table = load_table(name, folder)
    return table.drop(columns=source), table[source].to_numpy().astype(str)


def load_votes(name, folder, n_members=15):
    """Votes as a data frame of "y" and "n"; None for who did not vote.

    Parameters
    ----------
    name : {"senate", "house84", "house110"}
        The Australian Senate of 2016, a column for each party; the US House of 1984, a column for
        each vote, and one for the party; that of 2007 to 2008, a column for each member.
    folder : Path or None
    n_members : int, default=15
        Of the last one, evenly spaced among those that voted in half of the roll calls at least.

    Returns
    -------
    table : data frame
    """
    if name == "house84":
        return load_table("vote", folder)
    if name == "senate":
        data = _read("au_senate45.npz", folder)
        votes, names = data["X"], data["variables"]
    else:
        # Three bits for each member: yes, no, unknown.
        bits = np.concatenate(load_density("voting", folder)).reshape(1764, -1, 3)
        called = ~bits[:, :, 2].all(axis=1)
        present = np.flatnonzero(bits[called][:, :, 2].mean(axis=0) <= 0.5)
        members = present[np.linspace(0, len(present) - 1, n_members).astype(int)]
        votes = np.where(bits[:, members, 2] == 1, -1, bits[:, members, 0])
        names = [f"member {j}" for j in members]
    words = np.array(["n", "y", None], dtype=object)
    return pd.DataFrame(words[votes], columns=list(names))


def _sequences(path):
    """The letters of an aligned FASTA file, of shape (n_sequences, n_columns)."""
    with (lzma if path.suffix == ".xz" else gzip).open(path, "rt") as file:
        entries = file.read().split(">")[1:]
    return np.array([list("".join(entry.split("\n")[1:])) for entry in entries])
