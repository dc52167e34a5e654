"""Bad input to unit types, to RBMs of them, to TAP machines and to deep ones."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse as sp
from contract.once import once
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mean_field import Spin
from private import RBMModel as Model
from private import exact_log_partition
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz.batches import Batches
from sklearn_boltz.inspection import ReceptiveFieldDisplay
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
)

HALF = np.full(2, 0.5)
TG, TGB = TruncatedGaussian(HALF, HALF), TruncatedGaussBernoulli(HALF, HALF, HALF)
GAUSSIAN = Gaussian(np.zeros(2), np.ones(2))
ENDS = [(-np.inf, np.inf), (0, np.inf), (-np.inf, 0.5), (np.nan, 1), (0, np.nan)]

BITS = np.random.default_rng(0).integers(2, size=(40, 6)).astype(float)
TABLE = pd.DataFrame({"a": [0, 1, 0], "b": ["x", "y", "z"], "c": [0.5, 0.0, 1.0]})
CODES = np.column_stack([np.arange(40) % 3, BITS[:, 0]])
UNKNOWN = np.insert(BITS[:, :2], 1, np.nan, axis=1)
HALF_KNOWN = np.where(np.arange(40)[:, np.newaxis] < 20, BITS, BITS * [np.nan, 1, 1, 1, 1, 1])
WEATHER = pd.DataFrame({
    "wet": BITS[:, 0] == 1,
    "city": np.array(["Cairo", "Oslo", "Rome"])[np.arange(40) % 3],
    "degrees": np.linspace(-3, 30, 40),
})  # fmt: skip
REAL = {"degrees": "gaussian"}
QUICK = dict(max_iter=1, random_state=0)
ESTIMATORS = {
    "SDCPRBM": SDCPRBM(3, **QUICK),
    "TAPRBM": TAPRBM(3, **QUICK),
    "TAPDBM": TAPDBM((3, 2), pretrain_max_iter=1, **QUICK),
    "InfiniteRBM": InfiniteRBM(2, n_model_samples=100, early_stopping=False, random_state=0),
}


# Tables, and parameters of those who learn them.
TABLES = {
    "bits": (BITS, {}),
    "24 bits": (np.tile(BITS, 4), {}),
    "hidden words": (BITS, {"hidden": ("categorical", 2)}),
    "an interval": (BITS, {"columns": "truncated_gaussian"}),
    "weather": (WEATHER, {"columns": REAL, "unseen": "error"}),
    "a small table": (WEATHER[["wet", "city"]].assign(n=1), {}),
}


@once
def fitted(table, name="SDCPRBM"):
    X, parameters = TABLES[table]
    return clone(ESTIMATORS[name]).set_params(**parameters).fit(X)


weather, deep = partial(fitted, "weather"), partial(fitted, "bits", "TAPDBM")
interval = partial(fitted, "an interval", "TAPRBM")


def fit(model, X, **parameters):
    """A fit that is refused, or of which a warning is expected, but not that it was too short."""

    def call():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, **parameters)

    return call


def fit_table(columns):
    return fit(SDCPRBM(2, max_iter=1, columns=columns), TABLE)


KINDS = [TruncatedGaussian, TruncatedGaussBernoulli]


def parameters_of(kind):
    return [HALF] * len(kind.neutral(1).parameters())


OF_UNITS = {
    "bounds in the wrong order": lambda: TruncatedGaussian(HALF, HALF, 1, 1),
    "bounds without zero": lambda: TruncatedGaussBernoulli(HALF, HALF, HALF, 1, 2),
    "numbers of states of other units": lambda: Categorical(3, np.zeros(4)),
    "a number of states of 0": lambda: Categorical([2, 0, 2], np.zeros(4)),
    "more states than intercepts": lambda: Categorical([2, 3], np.zeros(4)),
    "one number of states, no intercept": lambda: Categorical(3, None),
    "states of different numbers": Categorical([3, 1, 2], np.zeros(6)).state_log_weights,
    "states of a continuum": TG.state_log_weights,
    "states of different units": Stacked([Bernoulli(HALF), Categorical([3])]).state_log_weights,
    "no layer side by side": lambda: Stacked([]),
    "a single layer side by side": lambda: Stacked(Bernoulli(HALF)),
    "a number side by side": lambda: Stacked([Bernoulli(HALF), 3]),
    "a class side by side": lambda: Stacked([Bernoulli(HALF), Gaussian]),
}
for rho in (0.0, 1.0, np.nan):
    OF_UNITS[f"rho of {rho}"] = partial(TruncatedGaussBernoulli, np.array([0.5, rho]), HALF, HALF)
for bad in (0.0, -1.0, np.nan):
    OF_UNITS[f"precision of {bad}"] = partial(Gaussian, np.zeros(2), np.array([1.0, bad]))
for units in (GAUSSIAN, TG, TGB, Stacked([TG, Categorical([2])])):
    shares = partial(units.state_shares, 0, np.zeros((2, 1)))
    OF_UNITS[f"shares of states of {type(units).__name__}"] = shares
for kind in KINDS:
    name = kind.__name__
    for low, high in ENDS:
        OF_UNITS[f"{name} from {low} to {high}"] = partial(kind, *parameters_of(kind), low, high)
    OF_UNITS[f"{name}, neutral without an end"] = partial(kind.neutral, 2, np.float64, 0, np.inf)
    from_data = partial(kind.from_data, np.full((3, 2), 0.25), -np.inf, 1)
    OF_UNITS[f"{name} from data without an end"] = from_data

TWO_CONTINUA = Model(np.zeros((2, 2)), TG, TGB)
MANY_BITS = Model(np.zeros((27, 2)), TG, Bernoulli(np.zeros(27)))
WORDS_BESIDE_BITS = Stacked([Categorical([2]), Bernoulli(np.zeros(1))])
OF_COLUMNS = {
    "sums over two continua": lambda: exact_log_partition(TWO_CONTINUA),
    "sums over 27 bits": lambda: exact_log_partition(MANY_BITS),
    "words as bits": fit_table(columns={"b": "probability"}),
    "two units for a column": fit_table(columns={"a": GAUSSIAN}),
    "units of four columns": fit_table(columns=Bernoulli(np.zeros(4))),
    "a class that is no unit type": fit_table(columns=int),
    "a code beyond those of the units": fit(SDCPRBM(3, columns=WORDS_BESIDE_BITS), CODES),
    "categorical without a number of states": fit(SDCPRBM(4, hidden="categorical"), BITS),
    "categorical of one state": fit(SDCPRBM(4, hidden=("categorical", 1)), BITS),
    "bits of two states": fit(SDCPRBM(4, hidden=("bernoulli", 2)), BITS),
    "hidden of another number": fit(SDCPRBM(4, hidden=Bernoulli(np.zeros(3))), BITS),
    "hidden that is no unit type": fit(SDCPRBM(4, hidden=int), BITS),
    "Gaussians in both layers": fit(SDCPRBM(4, hidden="gaussian", columns=REAL), WEATHER),
    "values beyond the range": lambda: interval().transform(BITS + 5),
    "a fit to values beyond the range": fit(TAPRBM(3, columns="truncated_gaussian"), BITS + 5),
    "adaptive TAP of words": fit(TAPRBM(3, inference="adaptive"), WEATHER[["city"]]),
    "zeros out of the range": fit(
        SDCPRBM(2, columns=TruncatedGaussian(np.ones(6), np.ones(6), 1, 2)), sp.csr_array(BITS)
    ),
    "units without samples": fit(TAPRBM(3, columns=Spin(np.zeros(BITS.shape[1]))), BITS),
}
for name in ESTIMATORS:
    OF_COLUMNS |= {
        f"{name}: no cell is known": fit(ESTIMATORS[name], np.full((3, 2), np.nan)),
        f"{name}: a sparse column without a value": fit(
            ESTIMATORS[name], sp.csr_array(np.array([[0, np.nan], [1, 0]]))
        ),
        f"{name}: a column that is known in rows of weight 0": fit(
            ESTIMATORS[name], HALF_KNOWN, sample_weight=np.arange(40) >= 20
        ),
    }
for name in ("SDCPRBM", "TAPRBM"):
    OF_COLUMNS[f"{name}: batches with a column without a value"] = fit(
        ESTIMATORS[name], Batches([UNKNOWN[:9], UNKNOWN[9:]])
    )

H3, H2 = np.zeros((2, 3)), np.zeros((2, 2))
OF_LAYERS = {
    f"layers of {sizes}": fit(TAPDBM(sizes), BITS) for sizes in [(), (3, 0), (3, 2.5), ((3,), (2,))]
} | {
    "an unknown unit type of a layer": fit(TAPDBM((3, 2), hidden=["bernoulli", "gauss"]), BITS),
    "features of another layer": lambda: deep().inverse_transform(H3),
    "hidden layers as an array": lambda: deep().mean_visible(H3),
    "one hidden layer of two": lambda: deep().mean_visible([H3]),
    "hidden layers in another order": lambda: deep().mean_visible([H2, H3]),
    "energies of fewer hidden rows": lambda: deep().energy(BITS[:7], [H3, H2]),
}

OF_FITTED = {
    "probabilities of an interval": lambda: interval().predict_column_proba(BITS, 1),
    "entropy of an interval": lambda: interval().entropy(),
    "pseudo-likelihood of an interval": lambda: interval().log_pseudo_likelihood(BITS),
    "flips in a table with continuous columns": lambda: weather("TAPRBM").denoise(
        WEATHER, flip_probability=0.1
    ),
    "flips of an interval": lambda: interval().denoise(BITS, 0.1),
    "temperatures that end at 0.9": lambda: fitted("bits").log_partition(
        "ais", n_temperatures=[0, 0.9]
    ),
    "no noise": lambda: fitted("bits", "TAPRBM").denoise(BITS),
    "samples by TAP": lambda: fitted("bits", "TAPRBM").impute(UNKNOWN, how="sample", method="tap"),
    "pictures of columns of several numbers": lambda: ReceptiveFieldDisplay.from_estimator(
        weather()
    ),
}
ON_A_TABLE = {
    "a given category that is not there": lambda m: m.sample(2, given={"city": "Bonn"}),
    "probabilities of a continuous column": lambda m: m.predict_column_proba(WEATHER, "degrees"),
    "entropy of continuous columns": lambda m: m.entropy(),
    "pseudo-likelihood of continuous columns": lambda m: m.log_pseudo_likelihood(WEATHER),
    "a category that is not there": lambda m: m.score_samples(WEATHER[:3].assign(city="Bonn")),
}
for name in ESTIMATORS:
    for what, call in ON_A_TABLE.items():
        OF_FITTED[f"{name}: {what}"] = lambda name=name, call=call: call(weather(name))
    if name != "TAPDBM":
        OF_FITTED[f"{name}: entropy of 24 bits"] = lambda name=name: fitted(
            "24 bits", name
        ).entropy()
for given in [
    {"d": 1}, {7: 1}, {1.5: 1}, {"n": 2}, {"n": "x"}, {"n": np.nan}, {"wet": 1, 0: 0}, {"wet": 2}
]:  # fmt: skip
    OF_FITTED[f"given {given}"] = lambda given=given: fitted("a small table").sample(2, given=given)

CASES = {**OF_UNITS, **OF_COLUMNS, **OF_LAYERS, **OF_FITTED}
