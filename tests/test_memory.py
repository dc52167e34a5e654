"""One budget of memory: what does not fit is refused before it is allocated."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from contract.estimators import META, MODELS, OF_ANY_TABLE, each, fitted, name_of
from contract.frames import bits, people
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier

from private import Encoder, _coded_rows, _memory, _potts_model, _size
from sklearn_boltz import (
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FVBMPseudoLikelihood,
)

GIB = 2**30


@pytest.fixture
def budget(monkeypatch):
    """A machine with 1 GiB."""
    monkeypatch.setattr(_memory, "available_memory", lambda: GIB)
    monkeypatch.setattr(_size, "available_memory", lambda: GIB)


# What else does not fit is in contract/messages_memory.py.
@each(MODELS)
def test_more_rows_than_fit_are_not_drawn(estimator, budget):
    model = fitted(estimator)
    expected = (
        f"{name_of(model)}.sample: 1,000,000,000,000 rows of 5 columns would take more than "
        "10,000 GiB of memory, and 1 GiB are available. Draw fewer at a time."
    )
    for options in [{}, {"y": 1}] if is_classifier(model) else [{}]:
        with pytest.raises(ValueError) as error:
            model.sample(10**12, **options)
        assert str(error.value) == expected
    assert len(model.sample(3, random_state=0)) == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_small_fits_do_not_look_at_the_memory(monkeypatch):
    for module in (_memory, _size):
        monkeypatch.setattr(module, "available_memory", lambda: pytest.fail("looked"))
    for estimator in MODELS:
        clone(estimator).fit(bits(40)).sample(9, random_state=0)


@each([*OF_ANY_TABLE, META[0], *META[2:]])
def test_what_runs_out_of_memory_names_the_estimator_of_the_user(estimator, monkeypatch):
    """Not one inside of it, nor NumPy alone."""
    table = people()
    model = clone(estimator).fit(table)
    before = vars(model).copy()

    def fail(*args):
        raise MemoryError("Unable to allocate 9.1 GiB for an array")

    monkeypatch.setattr(Encoder, "encode", fail)
    expected = f"^{name_of(estimator)}: Unable to allocate 9.1 GiB for an array. Use fewer rows"
    for name in ("fit", "score_samples", "impute"):
        if hasattr(model, name):
            with pytest.raises(MemoryError, match=expected):
                getattr(model, name)(table)
            assert name != "fit" or vars(model) == before
        if name == "score_samples" and hasattr(model, "_encoder"):  # the table is known
            monkeypatch.setattr(_memory, "MANY_VALUES", 1)
            expected = r"Merge rare values of column '\w+', which has \d+, or use fewer rows"


def test_the_default_density_is_not_named(monkeypatch):
    """Nor its columns by number."""
    monkeypatch.setattr(_memory, "available_memory", lambda: 2**26)
    rng = np.random.default_rng(0)
    words = pd.DataFrame({f"w{k}": rng.integers(90, size=200) for k in range(12)})
    words = "v" + words.assign(city=np.arange(200) % 100).astype(str)
    defaults = BoltzmannOutlierDetector(), BoltzmannImputer(), BoltzmannClassifier()
    for estimator in (*defaults, BoltzmannClassifier(joint=True)):
        with pytest.raises(ValueError) as error:
            clone(estimator).fit(words, np.arange(200) % 2)
        assert str(error.value).startswith(f"{name_of(estimator)}: the columns have")
        assert "most of them column 'city' with 100" in str(error.value)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each([FVBMPseudoLikelihood(n_draws=1, max_iter=1, alpha=0.1), *MODELS[2:5]])
def test_parts_of_rows_make_no_difference(estimator, monkeypatch):
    """Nor to draws of missing cells, each of which depends on the number of its row."""
    table = people(30).drop(columns="kids")
    for k in range(6):
        table[f"c{k}"] = np.random.default_rng(k).choice(list("abcde"), 30)
    table = table.astype(object).mask(np.random.default_rng(9).random(table.shape) < 0.4)
    expected = clone(estimator).fit(table).score_samples(table)
    for module, name in ((_coded_rows, "EXPANDED"), (_potts_model, "FIELDS")):
        monkeypatch.setattr(module, name, 7)
    assert_allclose(clone(estimator).fit(table).score_samples(table), expected, rtol=1e-10)


UNDER_A_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
import numpy as np
from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood, InfiniteRBM, SDCPRBM

rng = np.random.default_rng(0)
for ask in (
    lambda: FSLLDensity(dtype=np.float64).fit(rng.integers(2, size=(99, 29))),
    lambda: FVBMPseudoLikelihood().fit(rng.integers(2, size=(3, 30_000))),
    lambda: SDCPRBM(10**8).fit(rng.integers(2, size=(9, 9))),
    lambda: SDCPRBM(2, max_iter=0).fit(rng.integers(2, size=(9, 9))).sample(10**9),
):
    try:
        ask()
    except ValueError as error:
        print(error)

# A column of 9,000 values, one-hot, is refused or expanded a few rows at a time.
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 6 * 2**30))
X = rng.integers(9000, size=(20_000, 2)).clip(max=[8999, 1]).astype(float)
options = {"columns": [range(9000), range(2)], "early_stopping": False}
try:
    InfiniteRBM(2, **options).fit(X)
except ValueError as error:
    print(error)
model = SDCPRBM(2, max_iter=0, **options).fit(X[:100])
print(np.isfinite(model.score_samples(X)).all(), model.transform(X).shape)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_under_a_limit_of_the_address_space():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UNDER_A_LIMIT], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    *lines, one_hot, found = run.stdout.splitlines()
    assert one_hot.startswith("InfiniteRBM: 10,000 rows of 9,002 numbers, 9,000 of them for the ")
    assert "column 0, would take 2.012 GiB of memory" in one_hot
    assert found == "True (20000, 2)"
    asked = ("8 GiB", "80.47 GiB", "16.76 GiB", "33.53 GiB")
    for line, size in zip(lines, asked, strict=True):
        assert size in line
        left = float(line.split(" and ")[1].split(" GiB are available")[0])
        assert 2 < left < 6  # the program itself takes some


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system of files with 8 GiB of memory, without limits."""
    monkeypatch.setattr(_memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(_memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(_memory, "resource", None)
    write(tmp_path / "proc", meminfo=f"MemTotal: 1 kB\nMemAvailable:  {8 * 2**20} kB\nHugePages: 0")
    return tmp_path


def test_control_groups_of_version_2(system):
    write(system / "proc" / "self", cgroup="0::/jobs/mine\n")
    groups = system / "cgroup"
    write(groups / "jobs" / "mine", memory__max="max\n", memory__current=f"{3 * GIB}\n")
    assert _memory.available_memory() == 8 * GIB  # "max" is no limit
    # A limit of a group above holds, too; what files keep can be had again.
    write(groups / "jobs", memory__max=f"{5 * GIB}", memory__current=f"{4 * GIB}")
    write(groups / "jobs", memory__stat=f"anon 17\ninactive_file {GIB // 2}\n")
    assert _memory.available_memory() == 1.5 * GIB
    write(groups / "jobs" / "mine", memory__max=f"{3 * GIB}", memory__stat="inactive_file 4096\n")
    assert _memory.available_memory() == 4096
    write(groups / "jobs" / "mine", memory__max=f"{2 * GIB}")
    assert _memory.available_memory() == 0  # never less


def test_limit_of_the_address_space(system, monkeypatch):
    limit = [6 * GIB]
    resource = SimpleNamespace(
        RLIMIT_AS=9,
        RLIM_INFINITY=-1,
        getrlimit=lambda which: (*limit, -1),
        getpagesize=lambda: 2**12,
    )
    monkeypatch.setattr(_memory, "resource", resource)
    assert _memory.available_memory() == 8 * GIB  # where the size of the process is not told
    write(system / "proc" / "self", statm=f"{2 * GIB // 4096} 17 4 1 0 2 0\n")
    assert _memory.available_memory() == 4 * GIB
    limit[0] = -1
    assert _memory.available_memory() == 8 * GIB


def test_other_systems(system, monkeypatch):
    (system / "proc" / "meminfo").unlink()
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}
    monkeypatch.setattr(_memory.os, "sysconf", sizes.__getitem__, raising=False)
    assert _memory.available_memory() == 4 * GIB
    monkeypatch.delattr(_memory.os, "sysconf")
    assert _memory.available_memory() is None
