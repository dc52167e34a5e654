"""Data sets of the literature on Boltzmann machines and density estimation."""

import hashlib
import io
import os
import sys
import zlib
from importlib.util import find_spec
from zipfile import BadZipFile

import numpy as np
import scipy.io
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions, validate_params

from sklearn_boltz.datasets._files import (
    download_error,
    local_path,
    read_source,
    registry,
    whole_file,
)

_TITLES = {
    "nltcs": "NLTCS (Lowd & Davis, 2010)",
    "msnbc": "MSNBC (Lowd & Davis, 2010)",
    "plants": "Plants (Lowd & Davis, 2010)",
    "baudio": "Audio (Lowd & Davis, 2010)",
    "jester": "Jester (Lowd & Davis, 2010)",
    "bnetflix": "Netflix (Lowd & Davis, 2010)",
    "accidents": "Accidents (Van Haaren & Davis, 2012)",
    "dna": "DNA (Van Haaren & Davis, 2012)",
    "pumsb_star": "Pumsb-star (Van Haaren & Davis, 2012)",
    "bbc": "BBC (Van Haaren & Davis, 2012)",
}
_SPLITS = ("train", "valid", "test")
_IMAGE_SHAPE = (28, 28)
_MNIST_SIZES = {"train": 60_000, "test": 10_000}
# Of the bytes of the arrays; with the headers of the original files, these have their checksums.
_MNIST_SHA256 = {
    "train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    "train_target": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    "test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    "test_target": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
}
_MNIST_URL = "https://www.openml.org/d/554"

_PARAMETERS = {
    "data_home": [str, os.PathLike, None],
    "download_if_missing": ["boolean"],
    "verbose": ["verbose"],
}


@validate_params(
    {"name": [StrOptions(set(_TITLES))]} | _PARAMETERS,
    prefer_skip_nested_validation=True,
)
def fetch_density_benchmark(name, *, data_home=None, download_if_missing=True, verbose=1):
    """Load a binary data set of the density-estimation benchmark, in its standard split.

    Papers on density estimation report the mean log-likelihood of the rows of ``test``, in nats.
    "nltcs" to "bnetflix" are from [1]_, "accidents" to "bbc" from [2]_.

    Parameters
    ----------
    name : {"nltcs", "msnbc", "plants", "baudio", "jester", "bnetflix", "accidents", "dna", \
            "pumsb_star", "bbc"}
        The data set.
    data_home : str or path-like, default=None
        Folder of the data. None means that of scikit-learn, see
        :func:`sklearn.datasets.get_data_home`. Files are stored in its subfolder
        ``sklearn_boltz``.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, a missing file raises an OSError.
    verbose : int or bool, default=1
        Whether to show the progress of downloads on stderr.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        train, valid, test : ndarray of shape (n_samples, n_features), uint8
            The rows of each part, 0 or 1.
        DESCR : str
            A short description.

    Raises
    ------
    OSError
        If a file is missing and may not be downloaded, if the download fails, or if a downloaded
        file has a wrong checksum.
    ImportError
        If a download is needed and pooch is not installed.

    References
    ----------
    .. [1] D. Lowd, J. Davis (2010). "Learning Markov Network Structure with Decision Trees".
       ICDM.
    .. [2] J. Van Haaren, J. Davis (2012). "Markov Network Structure Learning: A Randomized
       Feature Generation Approach". AAAI.

    Examples
    --------
    >>> from sklearn_boltz.datasets import fetch_density_benchmark
    >>> data = fetch_density_benchmark("nltcs")  # doctest: +SKIP
    >>> data.train.shape, data.valid.shape, data.test.shape  # doctest: +SKIP
    ((16181, 16), (2157, 16), (3236, 16))
    """
    splits = {
        split: _parse_binary_rows(
            read_source(f"{name}.{split}", data_home, download_if_missing, verbose)
        )
        for split in _SPLITS
    }
    sizes = ", ".join(f"{len(X)} {split}" for split, X in splits.items())
    description = (
        f"{_TITLES[name]}: {splits['train'].shape[1]} binary variables; rows: {sizes}. "
        f"From {registry()[f'{name}.train'].repository} on GitHub."
    )
    return Bunch(**splits, DESCR=description)


@validate_params(_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_caltech101_silhouettes(*, data_home=None, download_if_missing=True, verbose=1):
    """Load the Caltech 101 Silhouettes, 28 x 28 pixels, split 1.

    The images are those of [1]_. As in the original file, 1 is the background and 0 the object;
    several papers use ``1 - X``.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data. None means that of scikit-learn, see
        :func:`sklearn.datasets.get_data_home`. Files are stored in its subfolder
        ``sklearn_boltz``.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, a missing file raises an OSError.
    verbose : int or bool, default=1
        Whether to show the progress of downloads on stderr.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        train, valid, test : ndarray of shape (4100, 784), (2264, 784), (2307, 784), uint8
            The pixels of the images, 0 or 1, row by row.
        train_target, valid_target, test_target : ndarray of shape (n_samples,), uint8
            The classes, from 0 to 100.
        target_names : ndarray of shape (101,), str
            The names of the classes.
        image_shape : tuple of int
            (28, 28): ``train[0].reshape(28, 28)`` is an upright image.
        DESCR : str
            A short description.

    Raises
    ------
    OSError
        If the file is missing and may not be downloaded, if the download fails, or if the
        downloaded file has a wrong checksum.
    ImportError
        If a download is needed and pooch is not installed.

    References
    ----------
    .. [1] B. Marlin, K. Swersky, B. Chen, N. de Freitas (2010). "Inductive Principles for
       Restricted Boltzmann Machine Learning". AISTATS.

    Examples
    --------
    >>> from sklearn_boltz.datasets import fetch_caltech101_silhouettes
    >>> fetch_caltech101_silhouettes().train.shape  # doctest: +SKIP
    (4100, 784)
    """
    name = "caltech101_silhouettes"
    mat = scipy.io.loadmat(io.BytesIO(read_source(name, data_home, download_if_missing, verbose)))
    data = Bunch()
    for split, key in zip(_SPLITS, ("train", "val", "test"), strict=True):
        data[split] = _upright(mat[f"{key}_data"].astype(np.uint8))
        # The classes of the file start at 1.
        data[f"{split}_target"] = (mat[f"{key}_labels"].ravel() - 1).astype(np.uint8)
    data.target_names = np.array([str(label.item()) for label in mat["classnames"].ravel()])
    data.image_shape = _IMAGE_SHAPE
    data.DESCR = (
        "Caltech 101 Silhouettes (Marlin et al., 2010), 28 x 28 pixels, split 1; "
        "1 = background, 0 = object."
    )
    return data


@validate_params(_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_omniglot(*, data_home=None, download_if_missing=True, verbose=1):
    """Load Omniglot as 28 x 28 images, in the split of Burda et al.

    The images are handwritten characters of 50 alphabets [2]_, in the size and split of [1]_. The
    classes are not returned.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data. None means that of scikit-learn, see
        :func:`sklearn.datasets.get_data_home`. Files are stored in its subfolder
        ``sklearn_boltz``.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, a missing file raises an OSError.
    verbose : int or bool, default=1
        Whether to show the progress of downloads on stderr.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        train, test : ndarray of shape (24345, 784) and (8070, 784), float32
            The intensities of the pixels, from 0 to 1, row by row. Ink is bright.
        image_shape : tuple of int
            (28, 28): ``train[0].reshape(28, 28)`` is an upright image.
        DESCR : str
            A short description.

    Raises
    ------
    OSError
        If the file is missing and may not be downloaded, if the download fails, or if the
        downloaded file has a wrong checksum.
    ImportError
        If a download is needed and pooch is not installed.

    References
    ----------
    .. [1] Y. Burda, R. Grosse, R. Salakhutdinov (2016). "Importance Weighted Autoencoders".
       ICLR.
    .. [2] B. Lake, R. Salakhutdinov, J. Tenenbaum (2015). "Human-level concept learning through
       probabilistic program induction". Science 350, 1332-1338.

    Examples
    --------
    >>> from sklearn_boltz.datasets import fetch_omniglot
    >>> fetch_omniglot().train.shape  # doctest: +SKIP
    (24345, 784)
    """
    mat = scipy.io.loadmat(
        io.BytesIO(read_source("omniglot", data_home, download_if_missing, verbose))
    )
    return Bunch(
        train=_upright(mat["data"].T.astype(np.float32)),
        test=_upright(mat["testdata"].T.astype(np.float32)),
        image_shape=_IMAGE_SHAPE,
        DESCR=(
            "Omniglot (Lake et al., 2015), 28 x 28 pixels, split of Burda et al. (2016); "
            "intensities from 0 to 1."
        ),
    )


@validate_params(_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_mnist(*, data_home=None, download_if_missing=True, verbose=1):
    """Load MNIST, images of handwritten digits, in its canonical split.

    The data set [1]_ is downloaded from OpenML with :func:`sklearn.datasets.fetch_openml` and
    stored as ``mnist.npz``, which loads faster. You can also put this file into the folder
    yourself. It must contain the arrays ``train``, ``test``, ``train_target`` and ``test_target``
    below, whose checksums are compared.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data. None means that of scikit-learn, see
        :func:`sklearn.datasets.get_data_home`. Files are stored in its subfolder
        ``sklearn_boltz``.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, a missing file raises an OSError.
    verbose : int or bool, default=1
        Whether to report on stderr that a download starts.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        train, test : ndarray of shape (60000, 784) and (10000, 784), uint8
            The intensities of the pixels, from 0 to 255, row by row. Ink is bright.
        train_target, test_target : ndarray of shape (60000,) and (10000,), uint8
            The digits, from 0 to 9.
        image_shape : tuple of int
            (28, 28): ``train[0].reshape(28, 28)`` is an upright image.
        DESCR : str
            A short description.

    Raises
    ------
    OSError
        If the data are missing and may not be downloaded, if the download fails, or if the
        downloaded data have a wrong checksum.

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). "Gradient-based learning applied to
       document recognition". Proceedings of the IEEE 86(11), 2278-2324.

    Examples
    --------
    >>> from sklearn_boltz.datasets import fetch_mnist
    >>> fetch_mnist().train.shape  # doctest: +SKIP
    (60000, 784)
    """
    path = local_path("mnist.npz", data_home)
    arrays = _load_mnist(path)
    if arrays is None:
        if not download_if_missing:
            raise OSError(
                f"{path} is missing or damaged, and download_if_missing=False. Set "
                "download_if_missing=True, or put the file there yourself."
            )
        arrays = _download_mnist(path, data_home, verbose)
    return Bunch(
        **arrays,
        image_shape=_IMAGE_SHAPE,
        DESCR=(
            "MNIST (LeCun et al., 1998), 28 x 28 pixels, canonical split; "
            "intensities from 0 to 255."
        ),
    )


def _load_mnist(path):
    """The arrays kept by an earlier call, or None if they are missing or damaged."""
    try:
        # Opened here, because np.load does not close files that are not archives.
        with open(path, "rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
    except (OSError, TypeError, ValueError, EOFError, BadZipFile, zlib.error):
        return None
    return arrays if _is_mnist(arrays) else None


def _is_mnist(arrays):
    """Whether arrays have the shapes and the checksums of MNIST."""
    shapes = {}
    for split, size in _MNIST_SIZES.items():
        shapes |= {split: (size, np.prod(_IMAGE_SHAPE)), f"{split}_target": (size,)}
    if {key: array.shape for key, array in arrays.items()} != shapes:
        return False
    digests = {key: hashlib.sha256(array.tobytes()).hexdigest() for key, array in arrays.items()}
    return digests == _MNIST_SHA256


def _download_mnist(path, data_home, verbose):
    if verbose:
        print("Downloading MNIST from OpenML", file=sys.stderr)
    # scikit-learn's faster parser needs pandas.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        mnist = fetch_openml(
            "mnist_784", version=1, as_frame=False, parser=parser, data_home=data_home
        )
    except OSError as error:
        raise download_error(_MNIST_URL, path, error) from error
    X, y = mnist.data.astype(np.uint8), mnist.target.astype(np.uint8)
    n_train = _MNIST_SIZES["train"]
    arrays = {
        "train": X[:n_train],
        "train_target": y[:n_train],
        "test": X[n_train:],
        "test_target": y[n_train:],
    }
    if not _is_mnist(arrays):
        raise OSError(
            f"MNIST from {_MNIST_URL} does not have the expected checksums, and was not kept. "
            f"Delete the copy of scikit-learn in {get_data_home(data_home)}{os.sep}openml and try "
            f"again, or put the right arrays at {path}"
        )
    with whole_file(path) as partial:
        np.savez_compressed(partial, **arrays)
    return arrays


def _parse_binary_rows(content):
    """Lines of single digits between commas, each line ended by a line feed."""
    width = content.index(b"\n") + 1
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, width)[:, ::2] - np.uint8(ord("0"))


def _upright(X):
    """Convert the column-major images of MATLAB to row-major ones, one row for each image."""
    images = X.reshape(-1, *_IMAGE_SHAPE).transpose(0, 2, 1)
    return np.ascontiguousarray(images).reshape(len(X), -1)
