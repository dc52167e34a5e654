"""Several processes give what one gives, also where one of them is killed."""

import multiprocessing
import os
import signal
import time
from contextlib import contextmanager
from functools import partial
from itertools import chain

import joblib
import numpy as np
import pandas as pd
import pytest
from contract.estimators import random_spins
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from private import _cluster, _dask, network_rows
from sklearn_boltz import (
    SDCPRBM,
    TAP,
    TAPDBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    RBMClassifier,
)
from sklearn_boltz.batches import Batches

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.xdist_group("dask"),  # one cluster for all
    pytest.mark.filterwarnings("ignore:The rows have .* cells, and each mini-batch"),
]


@pytest.fixture(scope="module")
def shared_client():
    """Two processes."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # That a worker is killed is not the fault of its tasks.
    settings = {"distributed.scheduler.allowed-failures": 10}
    if "forkserver" in multiprocessing.get_all_start_methods():
        # A worker in the place of one that was killed need not import everything.
        settings["distributed.worker.multiprocessing-method"] = "forkserver"
        with dask.config.set(settings):
            context = distributed.utils.get_mp_context()  # which sets modules of its own, once
        context.set_forkserver_preload(["distributed", "pandas", "sklearn_boltz"])
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(shared_client):
    """Two processes, also after a test has killed one.

    Of one that is not started again for half a minute, another takes the place. The scheduler is
    asked: what the cluster has heard of its workers can be out of date.
    """
    cluster = shared_client.cluster
    if not has_both(cluster, 30):
        cluster.scale(len(cluster.workers) + 1)
        if not has_both(cluster, 60):
            raise TimeoutError("A worker was not started.")
    return shared_client


@pytest.fixture
def threads(monkeypatch):
    """Three threads of this process, which send each other what processes would."""
    monkeypatch.setattr(_cluster, "MOST_MEETING", 2)
    options = {"n_workers": 3, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**options, protocol="tcp://", dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def has_both(cluster, seconds):
    """Whether the scheduler has two workers, within some seconds."""
    end = time.monotonic() + seconds
    while len(cluster.scheduler.workers) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    return len(cluster.scheduler.workers) >= 2


class Killer(distributed.SchedulerPlugin):
    """Count the results of tasks, and kill a worker at a number of them.

    Where the scheduler is in this process, as that of a `LocalCluster` is.
    """

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def begin(self, at, other):
        """Count from 0; at that number, kill the worker that sent the result, or another one."""
        self.n_results, self.at, self.other, self.killed = 0, at, other, False

    def transition(self, key, start, finish, *args, worker=None, **options):
        """See a task change its state."""
        if start != "processing" or finish != "memory":
            return
        self.n_results += 1
        if self.n_results == self.at:
            alive = self.scheduler.workers
            others = [address for address in alive if address != worker]
            os.kill(alive[others[0] if self.other and others else worker].pid, signal.SIGKILL)
            self.killed = True


@contextmanager
def killing(client, at=None, other=False):
    """A `Killer` in the scheduler of a cluster, which begins at once."""
    scheduler = client.cluster.scheduler
    killer = Killer(scheduler)
    killer.begin(at, other)
    scheduler.add_plugin(killer, name="killer")
    try:
        yield killer
    finally:
        scheduler.remove_plugin("killer")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 8)).astype(np.float64)
    X[:, 4:] = np.where(rng.random((400, 4)) < 0.2, 1 - X[:, :4], X[:, :4])
    return X


def in_blocks(X, n_rows=90):
    return da.from_array(X, chunks=(n_rows, X.shape[1]))


def fitted(model):
    """The arrays that were fitted, by name."""
    names = ("components_", "components_classes_", "intercept_visible_", "intercept_hidden_",
             "coupling_", "intercept_", "theta_")  # fmt: skip
    arrays = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return {
        f"{name} {k}": array
        for name, value in arrays.items()
        for k, array in enumerate(value if isinstance(value, list) else [value])
    }


def assert_same_fit(model, expected, atol=1e-12):
    assert fitted(model).keys() == fitted(expected).keys() != set()
    for name, value in fitted(expected).items():
        np.testing.assert_allclose(fitted(model)[name], value, rtol=0, atol=atol, err_msg=name)
    for name in set(expected.history_) - {"seconds"}:
        np.testing.assert_allclose(model.history_[name], expected.history_[name], atol=1e-9)


@pytest.fixture
def nothing_is_collected(monkeypatch):
    def block(self, k):
        raise AssertionError("a batch was brought here")

    monkeypatch.setattr(_dask.DaskBlocks, "block", block)


def test_mini_batches_without_a_cluster(X):
    """Dask alone: the partitions come here, one by one. Before there is a client."""
    model = SDCPRBM(5, max_iter=1, random_state=0).fit(in_blocks(X))
    expected = SDCPRBM(5, max_iter=1, random_state=0).fit(Batches(X, batch_rows=90))
    np.testing.assert_array_equal(model.components_, expected.components_)


# Through joblib.


def test_grid_search_outlives_a_worker(client, X):
    grid = {"alpha": [0.5, 1.0, 2.0]}
    splits = list(KFold(2).split(X))
    expected = GridSearchCV(FSLLDensity(), grid, cv=splits).fit(X)
    # Of arrays that are not named here, joblib keeps a single copy, on some worker.
    with joblib.parallel_config("dask", scatter=[X, *chain(*splits)]), killing(client, 2) as killer:
        search = GridSearchCV(FSLLDensity(), grid, cv=splits).fit(X)
    assert killer.killed
    scores = "mean_test_score"
    np.testing.assert_array_equal(search.cv_results_[scores], expected.cv_results_[scores])
    assert search.best_params_ == expected.best_params_
    np.testing.assert_array_equal(search.best_estimator_.theta_, expected.best_estimator_.theta_)


def test_annealed_chains_have_the_same_bits(client, X):
    model = SDCPRBM(5, max_iter=1, random_state=0).fit(X)
    options = {"n_chains": 300, "n_temperatures": 50, "X": X[:10], "random_state": 0}
    for method in ("ais", "raise"):
        expected = model.log_partition(method, **options)
        with joblib.parallel_config("dask"):
            estimate = model.log_partition(method, **options)
        assert estimate.value == expected.value
        np.testing.assert_array_equal(estimate.log_weights, expected.log_weights)
        np.testing.assert_array_equal(estimate.states, expected.states)


def test_annealed_chains_outlive_another_worker(client, X):
    model = SDCPRBM(5, max_iter=1, random_state=0).fit(X)
    options = {"n_chains": 300, "n_temperatures": 5000, "random_state": 0}
    expected = model.log_partition("ais", **options)
    with joblib.parallel_config("dask"), killing(client, 1, other=True) as killer:
        found = model.log_partition("ais", **options)
    assert killer.killed
    np.testing.assert_array_equal(found.log_weights, expected.log_weights)


# Collections.


def collections(X):
    yield da.from_array(X, chunks=(90, 3))
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    yield dd.from_pandas(pd.DataFrame(X, columns=list("abcdefgh")), npartitions=3)


def test_statistics_are_reduced_on_the_workers(client, X, nothing_is_collected):
    density, estimator = FSLLDensity().fit(X), FVBMPseudoLikelihood().fit(X)
    for rows in collections(X):
        found = FSLLDensity().fit(rows)
        np.testing.assert_array_equal(found.basis_, density.basis_)
        np.testing.assert_allclose(found.theta_, density.theta_, rtol=1e-12)
        found = FVBMPseudoLikelihood().fit(rows)
        np.testing.assert_allclose(found.coupling_, estimator.coupling_, atol=1e-12)
    assert found.feature_names_in_.tolist() == list("abcdefgh")


def test_objectives_are_summed_on_the_workers(client, X, nothing_is_collected, monkeypatch):
    expected = FVBMPseudoLikelihood().fit(X)
    # A worker keeps what it finds, but here it is too much.
    monkeypatch.setattr(network_rows, "MOST_ENTRIES", 0)
    model = FVBMPseudoLikelihood().fit(in_blocks(X))
    np.testing.assert_allclose(model.coupling_, expected.coupling_, atol=1e-11)
    assert model.n_iter_ == expected.n_iter_


@pytest.mark.parametrize("kind", [BoltzmannImputer, BoltzmannOutlierDetector, BoltzmannClassifier])
def test_tables_with_words_and_gaps_stay_on_the_workers(client, kind):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = pd.DataFrame({"word": np.array(list("abc"))[y], "number": rng.normal(y).round(2)})
    X = X.mask(rng.random(X.shape) < 0.1)
    parts = [X[:100], X[100:160], X[160:]]
    y = [y] * (kind is BoltzmannClassifier)
    model = kind(FVBMPseudoLikelihood(alpha=0.1), random_state=0)
    expected = clone(model).fit(Batches(parts), *y)
    model.fit(dd.from_delayed([dask.delayed(part) for part in parts], meta=X[:0]), *y)
    use = "transform" if kind is BoltzmannImputer else "predict"
    found, wanted = (pd.DataFrame(getattr(one, use)(X)) for one in (model, expected))
    pd.testing.assert_frame_equal(found, wanted)


def test_dask_frames_are_filled_by_partitions(client):
    X = pd.DataFrame({"a": ["x", "y"] * 30, "b": ["u", "v"] * 30}).mask(np.eye(60, 2) > 0)
    imputer, parts = BoltzmannImputer().fit(X), dd.from_pandas(X, npartitions=2)
    with pytest.raises(ValueError, match=r"X\.map_partitions\(model\.transform\)"):
        imputer.transform(parts)
    filled = parts.map_partitions(imputer.transform).compute()
    pd.testing.assert_frame_equal(filled, imputer.transform(X), check_dtype=False)


def test_errors_on_workers_name_the_batch(client, X):
    bad = X.copy()
    bad[100, 2] = 7
    for model in (FVBMPseudoLikelihood(columns=range(2)), SDCPRBM(2)):
        with pytest.raises(ValueError, match="In batch 1: .*column 2.*row 10"):
            model.fit(in_blocks(bad))


# All rows make all iterations, also in parts.
EXACT = TAP(tol=0.0)
TRAINED = [
    kind(5, batch_size=100, random_state=0, **{"max_iter": 1, **options})
    for kind, options in [
        (SDCPRBM, {"n_inner": 2, "early_stopping": True}),
        (SDCPRBM, {"n_inner": 1, "n_gibbs": 2, "centered": False, "alpha": 0.1, "hidden": "relu",
                   "chains": "persistent"}),
        (SDCPRBM, {"n_inner": 2, "tempered": 0.5, "columns": "gaussian"}),
        (TAPRBM, {"inference": EXACT, "persistent": True, "penalty": "l1", "max_iter": 2}),
        (TAPRBM, {"inference": EXACT}),
    ]
] + [
    TAPDBM((5, 3, 2), inference=EXACT, pretrain_max_iter=0, max_iter=1, batch_size=100,
           random_state=0, persistent=True),
    SDCPRBM(5, chains=random_spins, max_iter=1, batch_size=100, random_state=0),
    RBMClassifier(5, max_iter=2, early_stopping=True, alpha=0.5, batch_size=100, random_state=0),
]  # fmt: skip
SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@SHORT
@pytest.mark.parametrize(
    ("number", "incomplete", "weighted"),
    [(1, False, False), (-3, True, False), (-2, False, False), (0, True, True), (2, True, True),
     (3, True, True), (-1, True, True), (4, False, False)],
)  # fmt: skip
def test_mini_batches_are_shared(threads, X, number, incomplete, weighted, nothing_is_collected):
    rng, estimator = np.random.default_rng(0), TRAINED[number]
    y = np.where(rng.random(400) < 0.3, None, X[:, 0] + X[:, 1])
    weights = rng.integers(3, size=400) if weighted else None
    if incomplete:
        X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
        X[[3, 200]] = np.nan
    rows = Batches(X, batch_rows=90)
    expected = clone(estimator).fit(rows, y, sample_weight=weights)
    labels = da.from_array(y, chunks=90) if isinstance(estimator, RBMClassifier) else None
    model = clone(estimator).fit(in_blocks(X), labels, sample_weight=weights)
    assert_same_fit(model, expected, atol=1e-12 if labels is None else 1e-9)
    untrained = clone(estimator).set_params(max_iter=0).fit(rows, y)
    assert not np.allclose(expected.components_[0], untrained.components_[0])


KILLED = [
    (SDCPRBM(5, n_inner=2, max_iter=1, batch_size=100, random_state=0), 0.3),
    (TAPRBM(5, inference=EXACT, max_iter=2, batch_size=100, random_state=0), 0.6),
    (FVBMPseudoLikelihood(alpha=0.01), 0.1),
    (FSLLDensity(), 0.9),
    (RBMClassifier(5, max_iter=2, batch_size=100, random_state=0), 0.6),
]
# The worker that has sent a result; or the other one, in the middle of a task.
KILLS = [(*KILLED[0], True), (*KILLED[2], False)] + [
    pytest.param(estimator, share, other, marks=pytest.mark.slow)
    for estimator, own in KILLED
    for share in sorted({0.1, 0.3, 0.6, 0.9, own})
    for other in (False, True)
]  # fmt: skip


@SHORT
@pytest.mark.parametrize(("estimator", "share", "other"), KILLS, ids=range(len(KILLS)))
def test_fits_outlive_a_killed_worker(client, X, estimator, share, other):
    rows, y = in_blocks(X, 50), (X[:, 0] + X[:, 1]).astype(int)
    with killing(client) as killer:
        clone(estimator).fit(rows, y)
        killer.begin(round(share * killer.n_results), other)
        model = clone(estimator).fit(rows, y)
    assert killer.killed
    assert_same_fit(model, clone(estimator).fit(Batches(X, batch_rows=50), y))


def test_a_fit_that_the_cluster_ends_changes_nothing(client, X, monkeypatch):
    rows = in_blocks(X)
    model = SDCPRBM(4, max_iter=1, batch_size=100, random_state=0).fit(rows)
    before, gather, calls = vars(model).copy(), client.gather, []

    def gather_twice(futures, **options):
        calls.append(futures)
        if len(calls) > 2:
            raise distributed.comm.CommClosedError("in <TCP>: Stream is closed")
        return gather(futures, **options)

    monkeypatch.setattr(client, "gather", gather_twice)
    with pytest.raises(RuntimeError, match="ended with CommClosedError: in <TCP>: Stream"):
        model.fit(rows)
    assert len(calls) == 2 + _dask.ATTEMPTS
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_small_tables_need_no_cluster(client, X):
    rows = in_blocks(X)
    with pytest.warns(UserWarning, match=r"3,200 cells.*X\.compute\(\)"):
        model = SDCPRBM(4, max_iter=1, batch_size=100, random_state=0).fit(rows)
    assert np.isfinite(model.score(rows.compute()))


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_cluster_without_workers_ends_the_fit_in_time(X, monkeypatch, comes_back):
    monkeypatch.setattr(_dask, "ALONE", 60.0 if comes_back else 1.0)
    monkeypatch.setattr(_dask, "LOOK", 0.2)
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        model = FSLLDensity()
        if comes_back:
            client.loop.call_later(1, cluster.scale, 1)
            model.fit(in_blocks(X))
            assert model.score(X) == pytest.approx(FSLLDensity().fit(X).score(X))
        else:
            for fit in (partial(model.fit, in_blocks(X)), partial(_dask.workers_of, client)):
                with pytest.raises(RuntimeError, match="no worker for 1 seconds. Start workers"):
                    fit()
            assert not hasattr(model, "theta_")
