"""Fetchers against a server on the loopback interface; no other network is touched."""

import hashlib
import io
import socket
import sys
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from private import _fetch, _files
from sklearn_boltz.datasets import (
    fetch_caltech101_silhouettes,
    fetch_density_benchmark,
    fetch_mnist,
    fetch_omniglot,
)

NAMES = {
    "nltcs", "msnbc", "plants", "baudio", "jester", "bnetflix", "accidents", "dna", "pumsb_star",
    "bbc",
}  # fmt: skip


def as_data_file(X):
    return "".join(",".join(map(str, row)) + "\n" for row in X.tolist()).encode()


def as_mat_file(**arrays):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; under /cut/ it announces more than it sends."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path.startswith("/cut/"):
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"0,1\n" * 10)
        else:
            super().do_GET()

    def log_message(self, *args):
        pass


class Site:
    """A loopback mirror: `publish` serves a content under a name of the registry."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.registry = dict(_files.registry())
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(Handler, directory=str(self.root))
        )
        self.server.requests = []
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        monkeypatch.setattr(_files, "BASE_URL", self.url)
        monkeypatch.setattr(_files, "registry", lambda: self.registry)
        monkeypatch.setattr(_fetch, "registry", lambda: self.registry)

    def publish(self, name, content, sent=None):
        source = self.registry[name]
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.registry[name] = replace(
            source,
            bytes=str(len(content)),
            # A blank stays blank: that file is checked by its git blob id.
            sha256=hashlib.sha256(content).hexdigest() if source.sha256 else "",
            git_blob=blob,
        )
        file = self.root / source.repository / source.commit / source.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if sent is None else sent)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site(tmp_path, monkeypatch):
    # A proxy of the environment must not be asked for the loopback address.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(tmp_path / "site", monkeypatch)
    yield site
    site.stop()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def nltcs(site):
    rng = np.random.default_rng(0)
    splits = {s: rng.integers(2, size=(n, 5)) for s, n in [("train", 9), ("valid", 4), ("test", 1)]}
    for split, X in splits.items():
        site.publish(f"nltcs.{split}", as_data_file(X))
    return splits


def files_in(home):
    return sorted(path.name for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", sorted(NAMES))
def test_registry_checksums_against_known_arrays(name, shared_data):
    """The arrays written back in the format of the original files have their checksums."""
    file = shared_data / f"{name}.npz"
    if not file.exists():
        pytest.skip("reference arrays not available")
    arrays = np.load(file, allow_pickle=False)
    for split in ("train", "valid", "test"):
        X = arrays[split]
        text = np.full((len(X), 2 * X.shape[1]), ord(","), dtype=np.uint8)
        text[:, ::2] = X + ord("0")
        text[:, -1] = ord("\n")
        source = _files.registry()[f"{name}.{split}"]
        assert source.matches(text.tobytes())
        assert replace(source, sha256="").matches(text.tobytes())
        assert_array_equal(_fetch._parse_binary_rows(text.tobytes()), X)


def test_density_benchmark_downloads_once_then_reads_off_line(
    site, home, nltcs, monkeypatch, capsys
):
    data = fetch_density_benchmark("nltcs", data_home=home)
    progress = capsys.readouterr().err
    assert progress.count("100%") == 3
    for split, X in nltcs.items():
        assert_array_equal(data[split], X)
        assert data[split].dtype == np.uint8
    assert "NLTCS" in data.DESCR and "9 train, 4 valid, 1 test" in data.DESCR
    assert files_in(home) == ["nltcs.test.data", "nltcs.train.data", "nltcs.valid.data"]
    assert all(path.parent.name == "sklearn_boltz" for path in home.rglob("*.data"))
    assert len(site.server.requests) == 3

    # Neither the network nor pooch is needed now.
    site.stop()
    monkeypatch.setitem(sys.modules, "pooch", None)
    again = fetch_density_benchmark("nltcs", data_home=str(home), download_if_missing=False)
    assert_array_equal(again.train, data.train)
    # Files are looked for where scikit-learn says, whoever placed them there.
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    assert_array_equal(fetch_density_benchmark("nltcs").train, data.train)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("corrupted", OSError, "checksum"),
        ("cut", OSError, "nltcs.train.data"),
        ("none", ConnectionError, "404"),
        ("off line", ConnectionError, "Could not download"),
    ],
)
def test_failed_download_leaves_nothing(fault, error, words, site, home, nltcs, monkeypatch):
    if fault == "corrupted":
        site.publish("nltcs.train", as_data_file(nltcs["train"]), sent=b"<html>no</html>\n")
    elif fault == "off line":
        site.stop()
    else:
        monkeypatch.setattr(_files, "BASE_URL", f"{site.url}/{fault}")
    with pytest.raises(error, match=words) as caught:
        fetch_density_benchmark("nltcs", data_home=home, verbose=0)
    assert _files.registry()["nltcs.train"].url in str(caught.value)
    assert str(home / "sklearn_boltz" / "nltcs.train.data") in str(caught.value)
    assert list((home / "sklearn_boltz").iterdir()) == []


def test_partial_file_on_disk_is_replaced_unless_that_fails(site, home, nltcs):
    fetch_density_benchmark("nltcs", data_home=home, verbose=0)
    path = home / "sklearn_boltz" / "nltcs.valid.data"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(OSError, match=r"valid\.data does not have the expected checksum"):
        fetch_density_benchmark("nltcs", data_home=home, download_if_missing=False)
    data = fetch_density_benchmark("nltcs", data_home=home, verbose=0)
    assert_array_equal(data.valid, nltcs["valid"])
    assert path.read_bytes() == whole
    assert len(site.server.requests) == 4
    site.stop()
    path.write_bytes(b"mine")
    with pytest.raises(ConnectionError):
        fetch_density_benchmark("nltcs", data_home=home, verbose=0)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize(
    "fetch", [partial(fetch_density_benchmark, "dna"), fetch_caltech101_silhouettes, fetch_omniglot]
)
def test_may_or_can_not_download(fetch, home, site, monkeypatch):
    with pytest.raises(OSError, match="is missing, and download_if_missing=False") as caught:
        fetch(data_home=home, download_if_missing=False)
    assert site.url in str(caught.value)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install sklearn_boltz\[data\]"):
        fetch(data_home=home)
    assert site.server.requests == files_in(home) == []


def matlab_rows(images):
    """One column-major image per row, as MATLAB's reshape gives."""
    return np.stack([image.ravel(order="F") for image in images])


def test_caltech(site, home):
    rng = np.random.default_rng(0)
    sizes = {"train": 5, "val": 3, "test": 2}
    images = {key: rng.integers(2, size=(n, 28, 28), dtype=np.uint8) for key, n in sizes.items()}
    labels = {key: rng.integers(1, 102, size=(n, 1), dtype=np.uint8) for key, n in sizes.items()}
    labels["train"][0], labels["train"][1] = 1, 101
    classnames = np.empty((1, 101), dtype=object)
    classnames[0] = [f"class {i}" for i in range(101)]
    site.publish(
        "caltech101_silhouettes",
        as_mat_file(
            **{f"{key}_data": matlab_rows(images[key]) for key in sizes},
            **{f"{key}_labels": labels[key] for key in sizes},
            classnames=classnames,
        ),
    )
    data = fetch_caltech101_silhouettes(data_home=home, verbose=0)
    for split, key in [("train", "train"), ("valid", "val"), ("test", "test")]:
        assert_array_equal(data[split], images[key].reshape(-1, 784))
        assert_array_equal(data[f"{split}_target"], labels[key].ravel() - 1)
        assert data[split].dtype == data[f"{split}_target"].dtype == np.uint8
        assert data[split].flags.c_contiguous
    assert data.train_target[0] == 0 and data.train_target[1] == 100
    assert data.target_names.tolist() == [f"class {i}" for i in range(101)]
    assert data.image_shape == (28, 28) and "Caltech" in data.DESCR
    site.stop()
    fetch_caltech101_silhouettes(data_home=home)


def test_omniglot_is_checked_by_its_git_blob(site, home):
    rng = np.random.default_rng(0)
    train, test = rng.random((6, 28, 28)), rng.random((2, 28, 28))
    content = as_mat_file(data=matlab_rows(train).T, testdata=matlab_rows(test).T)
    assert site.registry["omniglot"].sha256 == ""
    site.publish("omniglot", content, sent=content[:-1])
    with pytest.raises(OSError, match="checksum"):
        fetch_omniglot(data_home=home, verbose=0)
    assert files_in(home) == []

    site.publish("omniglot", content)
    data = fetch_omniglot(data_home=home, verbose=0)
    assert_array_equal(data.train, train.reshape(-1, 784).astype(np.float32))
    assert_array_equal(data.test, test.reshape(-1, 784).astype(np.float32))
    assert data.image_shape == (28, 28) and "Omniglot" in data.DESCR


@pytest.fixture
def openml(monkeypatch):
    """A stand-in for OpenML, which gives floats and digits as strings; it records its calls."""
    calls = []
    rng = np.random.default_rng(0)
    data = rng.integers(256, size=(70, 784)).astype(np.float64)
    target = rng.integers(10, size=70).astype(str).astype(object)

    def fetch_openml(name, **options):
        calls.append((name, options))
        return Bunch(data=data, target=target)

    arrays = {
        "train": data[:60], "test": data[60:],
        "train_target": target[:60], "test_target": target[60:],
    }  # fmt: skip
    digests = {
        key: hashlib.sha256(array.astype(np.uint8).tobytes()).hexdigest()
        for key, array in arrays.items()
    }
    monkeypatch.setattr(_fetch, "_MNIST_SHA256", digests)
    monkeypatch.setattr(_fetch, "_MNIST_SIZES", {"train": 60, "test": 10})
    monkeypatch.setattr(_fetch, "fetch_openml", fetch_openml)
    return Bunch(calls=calls, data=data, target=target.astype(int))


def test_mnist_keeps_the_canonical_split_and_is_read_from_disk_afterwards(home, openml):
    data = fetch_mnist(data_home=home, verbose=0)
    again = fetch_mnist(data_home=home, download_if_missing=False)
    rows = {"train": slice(60), "test": slice(60, None)}
    for found in (data, again):
        for split, some in rows.items():
            assert_array_equal(found[split], openml.data[some])
            assert_array_equal(found[f"{split}_target"], openml.target[some])
            assert found[split].dtype == found[f"{split}_target"].dtype == np.uint8
    assert data.image_shape == (28, 28) and "MNIST" in data.DESCR
    [(name, options)] = openml.calls
    assert name == "mnist_784" and options["version"] == 1 and options["as_frame"] is False
    assert options["data_home"] == home and files_in(home) == ["mnist.npz"]


def test_mnist_checksums_are_those_of_the_original_files(shared_data):
    data = np.load(shared_data / "mnist.npz")
    arrays = {}
    for split in ("train", "test"):
        arrays[split] = data[f"X_{split}"].reshape(-1, 784)
        arrays[f"{split}_target"] = data[f"y_{split}"]
    assert _fetch._is_mnist(arrays)
    # Uncompressed files of Yann LeCun's page: a header of big-endian integers, then the bytes.
    original = {
        "train": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train_target": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "test": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "test_target": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }
    for key, array in arrays.items():
        header = (2049, len(array)) if array.ndim == 1 else (2051, len(array), 28, 28)
        content = np.array(header, dtype=">u4").tobytes() + array.tobytes()
        assert hashlib.sha256(content).hexdigest() == original[key]


@pytest.mark.parametrize("damage", ["cut", "no arrays", "another pixel"])
def test_mnist_damaged_file_counts_as_missing(home, openml, damage):
    fetch_mnist(data_home=home, verbose=0)
    path = home / "sklearn_boltz" / "mnist.npz"
    if damage == "another pixel":
        arrays = dict(np.load(path))
        arrays["test"][0, 0] ^= 1
        np.savez(path, **arrays)
    elif damage == "no arrays":
        np.savez(path, train=np.zeros(3))
    else:
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(OSError, match="missing or damaged"):
        fetch_mnist(data_home=home, download_if_missing=False)
    assert_array_equal(fetch_mnist(data_home=home, verbose=0).test, openml.data[60:])
    assert len(openml.calls) == 2


def test_mnist_off_line(home, monkeypatch, capsys):
    def fetch_openml(name, **options):
        raise URLError(socket.gaierror("no network"))

    monkeypatch.setattr(_fetch, "fetch_openml", fetch_openml)
    with pytest.raises(ConnectionError, match="openml.org") as caught:
        fetch_mnist(data_home=home)
    assert str(home / "sklearn_boltz" / "mnist.npz") in str(caught.value)
    assert "MNIST" in capsys.readouterr().err
    assert files_in(home) == []
