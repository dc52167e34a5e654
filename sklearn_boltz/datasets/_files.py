"""Files that are downloaded once, checked, and then read from disk.

`data/registry.csv` lists the original files. A file that already exists with the right checksum is
read without a network and without pooch, also if a user has put it there.
"""

import csv
import hashlib
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from sklearn.datasets import get_data_home

# A mirror with the same paths can be used instead.
BASE_URL = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Source:
    """One row of the registry. If `sha256` is blank, the git blob id is the checksum."""

    name: str
    repository: str
    commit: str
    path: str
    bytes: str
    sha256: str
    git_blob: str

    @property
    def url(self):
        return f"{BASE_URL}/{self.repository}/{self.commit}/{self.path}"

    def matches(self, content):
        if self.sha256:
            return hashlib.sha256(content).hexdigest() == self.sha256
        blob = b"blob %d\0" % len(content) + content
        return hashlib.sha1(blob, usedforsecurity=False).hexdigest() == self.git_blob


@cache
def registry():
    """The sources, by name."""
    text = resources.files("sklearn_boltz.datasets").joinpath("data", "registry.csv").read_text()
    return {row["name"]: Source(**row) for row in csv.DictReader(text.splitlines())}


def local_path(file_name, data_home):
    return Path(get_data_home(data_home), "sklearn_boltz", file_name)


def read_source(name, data_home, download_if_missing, verbose):
    """Content of a file of the registry, downloaded if missing, with a checked checksum."""
    source = registry()[name]
    path = local_path(Path(source.path).name, data_home)
    problem = "is missing"
    if path.is_file():
        content = path.read_bytes()
        if source.matches(content):
            return content
        problem = "does not have the expected checksum"
    if not download_if_missing:
        raise OSError(
            f"{path} {problem}, and download_if_missing=False. "
            f"Set download_if_missing=True, or put the file from {source.url} there yourself."
        )
    return _download(source, path, verbose)


def _download(source, path, verbose):
    downloader = _make_downloader(path.name, verbose)
    with whole_file(path) as partial:
        try:
            downloader(source.url, str(partial), None)
        except OSError as error:
            raise download_error(source.url, path, error) from error
        content = partial.read_bytes()
        if not source.matches(content):
            raise OSError(
                f"The file from {source.url} does not have the expected checksum "
                f"({len(content)} bytes received, {source.bytes or 'an unknown number'} expected) "
                f"and was deleted. Try again, or put the right file at {path}"
            )
    return content


@contextmanager
def whole_file(path):
    """Yield a temporary path; the file is renamed to `path` only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        partial = Path(folder, path.name)
        yield partial
        os.replace(partial, path)


def download_error(url, path, error):
    """The error for a failed download, with a remedy."""
    return ConnectionError(
        f"Could not download {url}: {error}. Without a network, put the file at {path} yourself."
    )


def _make_downloader(name, verbose):
    try:
        from pooch import HTTPDownloader

        return HTTPDownloader(progressbar=bool(verbose))
    except ImportError as error:
        raise ImportError(
            f"Downloading {name} needs pooch: pip install sklearn_boltz[data]"
        ) from error
