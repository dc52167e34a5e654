"""Every estimator takes ten frames as they come, and gives rows of values that can be."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract.estimators import ALL, name_of
from sklearn.base import clone, is_classifier

import sklearn_boltz
from sklearn_boltz import BoltzmannImputer, BoltzmannOutlierDetector, FSLLDensity, InfiniteRBM

N_ROWS, MOST_COLUMNS = 60, 5
# With their defaults, except for what takes long. MaximumEntropy is for columns of two values.
OTHERS = {"InfiniteRBM": InfiniteRBM(max_components=1, n_model_samples=64)}
ESTIMATORS = [
    OTHERS[name] if name in OTHERS else getattr(sklearn_boltz, name)()
    for name in map(name_of, ALL)
    if name != "MaximumEntropy"
]
REAL = ["attrition", "chile", "happiness", "nhefs", "wage", "yrbss"]


def dates(rng):
    days = pd.Timestamp("2024-02-29") + pd.to_timedelta(rng.integers(0, 900, N_ROWS), "D")
    return pd.DataFrame({
        "born": pd.Series(days).where(rng.random(N_ROWS) < 0.9),
        "seen": days + pd.to_timedelta(rng.integers(0, 10**6, N_ROWS), "s"),
        "date": [datetime.date(2020, 1, 1 + k) for k in rng.integers(0, 28, N_ROWS)],
        "late": rng.random(N_ROWS) < 0.3,
    })  # fmt: skip


def counts_and_identifiers(rng):
    return pd.DataFrame({
        "id": np.arange(1, N_ROWS + 1),
        "number": rng.permutation(10**6 + np.arange(N_ROWS)),
        "children": pd.array(rng.poisson(1.5, N_ROWS), dtype="Int64"),
        "visits": rng.negative_binomial(1, 0.05, N_ROWS),
        "stars": pd.Categorical(rng.integers(1, 6, N_ROWS), range(1, 6), ordered=True),
    })  # fmt: skip


def constant_and_empty(rng):
    return pd.DataFrame({
        "empty": np.nan,
        "none": None,
        "one word": "yes",
        "one number": 3.5,
        "zero": 0,
        "nearly": [1.5, *[np.nan] * (N_ROWS - 1)],
        "city": rng.choice(["Bern", "Oslo"], N_ROWS),
        "pay": rng.normal(size=N_ROWS),
    })  # fmt: skip


def of_polars(rng):
    size = pl.Series(rng.choice(["s", "m", None], N_ROWS).tolist(), dtype=pl.Enum(["s", "m", "l"]))
    return pl.DataFrame({
        "size": size,
        "pay": rng.lognormal(size=N_ROWS).tolist(),
        "member": [None, *(rng.random(N_ROWS - 1) < 0.4).tolist()],
        "day": [datetime.date(2023, 5, 1 + k) for k in rng.integers(0, 30, N_ROWS).tolist()],
        "kids": pl.Series(rng.poisson(1, N_ROWS), dtype=pl.UInt8),
    })  # fmt: skip


MADE = [dates, counts_and_identifiers, constant_and_empty, of_polars]


@pytest.fixture
def frame(request):
    if request.param in MADE:
        return request.param(np.random.default_rng(0))
    folder = request.getfixturevalue("shared_data")
    X = pd.read_csv(folder / "mixed" / f"{request.param}.csv.gz")
    X = X.iloc[:, :: -(-X.shape[1] // MOST_COLUMNS)]
    return X.sample(N_ROWS, random_state=0).reset_index(drop=True)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Trainings of a few epochs: the data are looked at as in long ones."""
    here = "sklearn_boltz.restricted"
    monkeypatch.setattr(f"{here}._mini_batches.MOST_BEFORE_STOP", 2)
    monkeypatch.setattr(f"{here}._mini_batches.LEAST_EPOCHS", 1)
    monkeypatch.setattr(f"{here}._mini_batches.MOST_LAST", 1)
    monkeypatch.setattr(f"{here}._mini_batches.MiniBatchEstimator._auto_batches", 2)
    monkeypatch.setattr(f"{here}._base_tap.BaseTAP._auto_batches", 2)
    monkeypatch.setattr(f"{here}._rbm_classifier.AUTO_BATCHES", 2)
    monkeypatch.setattr(f"{here}._rbm_classifier.LEAST_EPOCHS", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_possible(found, X, *, complete):
    """The columns and types of X, and values that its columns have or lie between."""
    assert list(found.columns) == list(X.columns)
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        cells, own = pd.Series(list(found[name])), pd.Series(list(X[name])).dropna()
        if not len(own):
            assert cells.isna().all()
            continue
        assert not (complete and cells.isna().any()), name
        cells = cells.dropna()
        if isinstance(own.iloc[0], (str, bool, np.bool_)):
            assert set(cells) <= set(own), name
        else:
            assert cells.between(own.min(), own.max()).all(), name
        if str(dtype).lower().startswith(("int", "uint")):
            assert (cells == cells.round()).all(), name


# Frames from files are told from each other by how they are read, which is the same for all.
PAIRS = [(e, frame) for k, e in enumerate(ESTIMATORS) for frame in [*MADE, *REAL[k % 3 :: 3]]]


@pytest.mark.parametrize(
    ("estimator", "frame"), PAIRS, indirect=["frame"],
    ids=[f"{name_of(e)}-{getattr(frame, '__name__', frame)}" for e, frame in PAIRS],
)  # fmt: skip
def test_frames_as_they_come(estimator, frame):
    model, X = clone(estimator), frame
    if isinstance(model, FSLLDensity):  # with a table of all joint states
        X = X[list(X.columns)[:MOST_COLUMNS]]
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    y = [np.arange(N_ROWS) % 2] if is_classifier(model) else []
    model.fit(X, *y)
    if hasattr(model, "score_samples"):
        assert np.isfinite(model.score_samples(X)).all()
    if hasattr(model, "sample") and not y:
        check_possible(model.sample(20, random_state=0), X, complete=False)
    if isinstance(model, BoltzmannImputer):
        model.transform(X)
    elif hasattr(model, "impute"):
        check_possible(model.impute(X, how="sample", random_state=0), X, complete=True)
    if isinstance(model, BoltzmannOutlierDetector):
        assert set(model.predict(X)) <= {-1, 1}
