"""The limit of BLAS: after interrupts and forks, the numbers of threads are what they were."""

import gc
import os
import threading
from contextlib import contextmanager

import pytest
from contract.state import CtrlC

from private import Workers, _blas, _disown_blas, limit_blas
from sklearn_boltz import FSLLDensity

pytestmark = pytest.mark.skipif(not _blas(), reason="threadpoolctl knows nothing of this BLAS")


def n_threads():
    return [library.num_threads for library in _blas()]


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """Garbage is looked for among new objects only: a session has millions of others."""
    gc.collect()  # tracebacks of other tests, which may still hold a limit
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def three_threads():
    """Three threads of BLAS, also where the environment or a single core asks for one."""
    gc.collect()  # as in the fixture above
    with limit_blas(1):
        pass
    before = n_threads()
    set_threads([3] * len(before))
    assert n_threads() == [3] * len(before)
    yield
    set_threads(before)


def set_threads(numbers):
    _disown_blas()
    for library, number in zip(_blas(), numbers, strict=True):
        library.set_num_threads(number)
    _disown_blas()


@contextmanager
def overlapping():
    with Workers(2), limit_blas(1):
        yield


@pytest.mark.parametrize("context", [lambda: limit_blas(1), lambda: Workers(2), overlapping])
def test_an_interrupt_at_any_call_lifts_the_limit(context):
    with CtrlC() as count, context():
        assert n_threads() == [1] * len(n_threads())
    assert count.n_calls > 10
    for n in range(1, count.n_calls + 1):
        with CtrlC(n), context():
            pass
        assert n_threads() == [3] * len(n_threads()), f"at call {n} of {count.n_calls}"
        with limit_blas(1):
            assert n_threads() == [1] * len(n_threads()), f"at call {n} of {count.n_calls}"


def forks(test):
    """A test that forks, where that can be done."""
    test = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")(test)
    return pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")(test)


def in_child(function):
    """What a function returns in a process that is forked here, or None if it failed there."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(sender, bytes(function()))
        finally:
            os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as file:
        found = list(file.read())
    os.waitpid(pid, 0)
    return found


@forks
def test_no_limit_is_in_force_in_a_child():
    with limit_blas(1):
        assert in_child(n_threads) == [3] * len(n_threads())
        assert n_threads() == [1] * len(n_threads())
    with limit_blas(1), limit_blas(1):
        assert in_child(limited_and_lifted) == [1, 3]
    assert n_threads() == [3] * len(n_threads())


def limited_and_lifted():
    with limit_blas(1):
        first = max(n_threads())
    return first, max(n_threads())


@forks
def test_forks_amid_fits_of_another_thread():
    leave = threading.Event()

    def fits():
        while not leave.is_set():
            FSLLDensity().fit([[0, 1], [1, 1], [1, 0]])

    thread = threading.Thread(target=fits)
    thread.start()
    try:
        found = [in_child(n_threads) for _ in range(12)]
    finally:
        leave.set()
        thread.join()
    assert found == [[3] * len(n_threads())] * 12
    assert n_threads() == [3] * len(n_threads())
