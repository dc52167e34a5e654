"""Bad input to unit types, to RBMs of them, to TAP machines and to deep ones."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from private import (
    INFERENCES,
    Bernoulli,
    Iteration,
    Workers,
    act,
    differences,
    exact_log_partition,
    gathered,
    spreads,
    temperature_ladder,
    truncated_moments,
    truncated_quantile,
)
from private import RBMModel as Model
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM, InfiniteRBM
from sklearn_boltz.batches import Batches
from sklearn_boltz.inspection import ReceptiveFieldDisplay
from sklearn_boltz.restricted import FractionalModel
from sklearn_boltz.units import (
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
)

HALF, ONES = np.full(2, 0.5), np.ones((2, 4))
TG, TGB = TruncatedGaussian(HALF, HALF), TruncatedGaussBernoulli(HALF, HALF, HALF)
GAUSSIAN = Gaussian(np.zeros(2), np.ones(2))
ENDS = [(-np.inf, np.inf), (0, np.inf), (-np.inf, 0.5), (np.nan, 1), (0, np.nan)]
# Two units, of 1 and 3 columns, have 4 features: pairs of columns.
STARTS = np.array([0, 1, 4], dtype=np.intp)

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
QUICK = dict(max_iter=1, random_state=0)
ESTIMATORS = {
    "SDCPRBM": SDCPRBM(3, **QUICK),
    "TAPRBM": TAPRBM(3, **QUICK),
    "TAPDBM": TAPDBM((3, 2), pretrain_max_iter=1, **QUICK),
    "InfiniteRBM": InfiniteRBM(2, n_model_samples=100, early_stopping=False, random_state=0),
}


def make(name, **parameters):
    estimator = ESTIMATORS[name]
    return type(estimator)(**{**estimator.get_params(), **parameters})


def fit_quietly(model, X, **parameters):
    """A fit that does not tell that it was too short."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **parameters)


@cache
def of_bits(name="SDCPRBM"):
    return fit_quietly(make(name), BITS)


@cache
def of_weather(name="SDCPRBM"):
    model = make(name, visible={"degrees": "gaussian"}, unseen="error")
    return fit_quietly(model, WEATHER)


@cache
def of_interval():
    return fit_quietly(make("TAPRBM", visible="truncated_gaussian"), BITS)


def warned(model, X, **parameters):
    """A fit of which a warning is expected, and not that it was too short."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    model.fit(X, **parameters)


def infer(name):
    model = Model(np.zeros((2, 3)), Categorical([3], np.zeros(3)), Bernoulli(np.zeros(2)))
    with Workers(1) as workers:
        INFERENCES[name](model, np.eye(3), Iteration(), workers)


def fit_table(**visible):
    return lambda: SDCPRBM(2, max_iter=1, **visible).fit(TABLE)


def fit_layers(sizes=(3, 2), **parameters):
    return lambda: TAPDBM(sizes, **parameters).fit(BITS)


def fit_hidden(hidden, X=BITS, **parameters):
    return lambda: SDCPRBM(4, hidden=hidden, **parameters).fit(X)


def sample(given):
    return lambda: SDCPRBM(2, **QUICK).fit(WEATHER[["wet", "city"]].assign(n=1)).sample(
        2, given=given
    )  # fmt: skip


KINDS = [TruncatedGaussian, TruncatedGaussBernoulli]
PARAMETERS = {kind: [HALF] * len(kind.neutral(1).parameters()) for kind in KINDS}
OF_UNITS = {
    "lengths of moments": lambda: truncated_moments(HALF, HALF[:1], 0, 1, HALF, HALF, HALF),
    "lengths of quantiles": lambda: truncated_quantile(HALF, HALF, HALF, 0, 1, HALF[:1]),
    "bounds in the wrong order": lambda: TruncatedGaussian(HALF, HALF, 1, 1),
    "bounds without zero": lambda: TruncatedGaussBernoulli(HALF, HALF, HALF, 1, 2),
    **{
        f"rho of {rho}": lambda rho=rho: TruncatedGaussBernoulli(np.array([0.5, rho]), HALF, HALF)
        for rho in (0.0, 1.0, np.nan)
    },
    **{
        f"precision of {bad}": lambda bad=bad: Gaussian(np.zeros(2), np.array([1.0, bad]))
        for bad in (0.0, -1.0, np.nan)
    },
    **{
        f"{kind.__name__} from {low} to {high}": lambda kind=kind, ends=(low, high): kind(
            *PARAMETERS[kind], *ends
        )
        for kind in KINDS
        for low, high in ENDS
    },
    **{
        f"{kind.__name__}, neutral without an end": lambda kind=kind: kind.neutral(
            2, np.float64, 0, np.inf
        )
        for kind in KINDS
    },
    **{
        f"{kind.__name__} from data without an end": lambda kind=kind: kind.from_data(
            np.full((3, 2), 0.25), -np.inf, 1
        )
        for kind in KINDS
    },
    "numbers of states of other units": lambda: Categorical(3, np.zeros(4)),
    "a number of states of 0": lambda: Categorical([2, 0, 2], np.zeros(4)),
    "all numbers of states 0": lambda: Categorical(0, np.zeros(4)),
    "more states than intercepts": lambda: Categorical([2, 3], np.zeros(4)),
    "one number of states, no intercept": lambda: Categorical(3, None),
    "states of different numbers": lambda: Categorical([3, 1, 2], np.zeros(6)).state_log_weights(),
    "states of a continuum": TG.state_log_weights,
    "states of different units": Stacked([Bernoulli(HALF), Categorical([3])]).state_log_weights,
    **{
        f"shares of states of {type(units).__name__}": lambda units=units: units.state_shares(
            0, np.zeros((2, 1))
        )
        for units in (GAUSSIAN, TG, TGB, Stacked([TG, Categorical([2])]))
    },
    "no layer side by side": lambda: Stacked([]),
    "a single layer side by side": lambda: Stacked(Bernoulli(HALF)),
    "a number side by side": lambda: Stacked([Bernoulli(HALF), 3]),
    "a class side by side": lambda: Stacked([Bernoulli(HALF), Gaussian]),
}
OF_KERNELS = {
    **{
        f"{name} of {n} features": lambda call=call, n=n: call(np.empty((2, n)))
        for n in (3, 5)
        for name, call in {
            "spreads": lambda out: spreads(ONES, ONES, STARTS, 8, out),
            "act": lambda A: act(A, ONES, STARTS, 8, ONES, ONES),
            "differences": lambda out: differences(ONES, STARTS, 8, out),
            "gathered": lambda D: gathered(D, STARTS, 8, ONES),
        }.items()
    },
    "spreads of other shapes": lambda: spreads(ONES, ONES[:1], STARTS, 8, np.empty((2, 4))),
}
OF_LADDERS = {
    f"temperatures {betas}": lambda betas=betas: temperature_ladder(betas)
    for betas in ([0.1, 1], [0, 0.9], [0, 0.5, 0.4, 1], [[0, 1]])
}
OF_MODELS = {
    "sums over two continua": lambda: exact_log_partition(Model(np.zeros((2, 2)), TG, TGB)),
    "sums over 27 bits": lambda: exact_log_partition(
        Model(np.zeros((27, 2)), TG, Bernoulli(np.zeros(27)))
    ),
    "categories by relaxed messages": lambda: infer("rbp"),
    "categories by adaptive TAP": lambda: infer("adatap"),
}
OF_COLUMNS = {
    "visible of too few columns": fit_table(visible=["auto"]),
    "visible of a column that is not there": fit_table(visible={"d": "gaussian"}),
    "visible of a name that is none": fit_table(visible={"a": "poisson"}),
    "two units for a column": fit_table(visible={"a": GAUSSIAN}),
    "words as bits": fit_table(visible={"b": "bernoulli"}),
    "units of four columns": fit_table(visible=Bernoulli(np.zeros(4))),
    "three words as two": fit_table(visible={"b": Categorical([2])}),
    "a class that is no unit type": fit_table(visible=int),
    "real numbers by default": lambda: SDCPRBM(2).fit(TABLE.assign(a=[33.5, 41.25, 7.0])),
    "whole numbers by default": lambda: SDCPRBM(2).fit(np.arange(12).reshape(4, 3) % 5),
    "categories of batches": lambda: SDCPRBM(3, visible={1: "categorical"}).fit(
        Batches([CODES, CODES])
    ),
    "a code beyond those of the units": lambda: SDCPRBM(
        3, visible=Stacked([Categorical([2]), Bernoulli(np.zeros(1))])
    ).fit(CODES),
    "categorical without a number of states": fit_hidden("categorical"),
    "categorical of one state": fit_hidden(("categorical", 1)),
    "bits of two states": fit_hidden(("bernoulli", 2)),
    "hidden of another number": fit_hidden(Bernoulli(np.zeros(3))),
    "hidden that is no unit type": fit_hidden(int),
    "Gaussians in both layers": fit_hidden("gaussian", WEATHER, visible={"degrees": "gaussian"}),
    "a range in the wrong order": lambda: TAPRBM(
        3, visible="truncated_gaussian", visible_range=(3, -2)
    ).fit(BITS),
    "a range of bits": lambda: TAPRBM(3, visible_range=(0, 1)).fit(BITS),
    "values beyond the range": lambda: of_interval().transform(BITS + 5),
    "a fit to values beyond the range": lambda: make("TAPRBM", visible="truncated_gaussian").fit(
        BITS + 5
    ),
    "other inferences of words": lambda: TAPRBM(3, inference="rbp").fit(WEATHER[["city"]]),
    "other inferences of real columns": lambda: TAPRBM(
        3, visible={"degrees": "gaussian"}, inference="adatap"
    ).fit(WEATHER),
    **{
        f"{name}: no cell is known": lambda name=name: make(name).fit(np.full((3, 2), np.nan))
        for name in ESTIMATORS
    },
    **{
        f"{name}: a sparse column without a value": lambda name=name: make(name).fit(
            sp.csr_array(np.array([[0, np.nan], [1, 0]]))
        )
        for name in ESTIMATORS
    },
    **{
        f"{name}: a column that is known in rows of weight 0": lambda name=name: warned(
            make(name), HALF_KNOWN, sample_weight=np.arange(40) >= 20
        )
        for name in ESTIMATORS
    },
    **{
        f"{name}: batches with a column without a value": lambda name=name: make(name).fit(
            Batches([UNKNOWN[:9], UNKNOWN[9:]])
        )
        for name in ("SDCPRBM", "TAPRBM")
    },
}
OF_LAYERS = {
    **{f"layers of {sizes}": fit_layers(sizes) for sizes in [(), (3, 0), (3, 2.5), ((3,), (2,))]},
    "one unit type of two": fit_layers(hidden=["bernoulli"]),
    "an unknown unit type of a layer": fit_layers(hidden=["bernoulli", "gauss"]),
    "units for one of the layers": fit_layers(hidden=Bernoulli(np.zeros(3))),
    "an output layer that is not there": fit_layers(output_layer=2),
    "other layers at a warm start": lambda: TAPDBM(
        (3, 2), max_iter=1, pretrain_max_iter=1, warm_start=True
    ).fit(BITS).set_params(hidden_layer_sizes=(3, 3)).fit(BITS),
    "rows for RAISE of deep models": lambda: of_bits("TAPDBM").log_partition("raise", X=BITS),
    "features of another layer": lambda: of_bits("TAPDBM").inverse_transform(np.zeros((2, 3))),
    "hidden layers as an array": lambda: of_bits("TAPDBM").mean_visible(np.zeros((2, 3))),
    "one hidden layer of two": lambda: of_bits("TAPDBM").mean_visible([np.zeros((2, 3))]),
    "hidden layers in another order": lambda: of_bits("TAPDBM").mean_visible(
        [np.zeros((2, 2)), np.zeros((2, 3))]
    ),
    "hidden layers of different rows": lambda: of_bits("TAPDBM").mean_visible(
        [np.zeros((2, 3)), np.zeros((1, 2))]
    ),
    "energies of fewer hidden rows": lambda: of_bits("TAPDBM").energy(
        BITS[:7], [np.zeros((3, 3)), np.zeros((3, 2))]
    ),
}  # fmt: skip
OF_FITTED = {
    **{
        f"{name}: {what}": lambda name=name, call=call: call(of_weather(name))
        for name in ESTIMATORS
        for what, call in {
            "a given category that is not there": lambda m: m.sample(2, given={"city": "Bonn"}),
            "probabilities of a real column": lambda m: m.predict_column_proba(WEATHER, "degrees"),
            "entropy of real columns": lambda m: m.entropy(),
            "pseudo-likelihood of real columns": lambda m: m.log_pseudo_likelihood(WEATHER),
            "a category that is not there": lambda m: m.score_samples(
                WEATHER[:3].assign(city=["Bonn", "Oslo", "Bonn"])
            ),
        }.items()
    },
    **{
        f"entropy of 24 bits: {name}": lambda name=name: make(name).fit(
            np.tile(BITS, 4)
        ).entropy()
        for name in ("SDCPRBM", "TAPRBM", "InfiniteRBM")
    },
    **{
        f"given {given}": sample(given)
        for given in [
            {"d": 1}, {7: 1}, {1.5: 1}, {"n": 2}, {"n": "x"}, {"n": np.nan},
            {"wet": 1, 0: 0}, {"wet": 2},
        ]
    },
    **{
        f"a temperature of {t}": lambda t=t: of_bits().sample(2, temperature=t) for t in (0, -1)
    },
    "probabilities of a column that is not there": lambda: of_weather().predict_column_proba(
        WEATHER, "z"
    ),
    "probabilities of an interval": lambda: of_interval().predict_column_proba(BITS, 1),
    "entropy of an interval": lambda: of_interval().entropy(),
    "pseudo-likelihood of an interval": lambda: of_interval().log_pseudo_likelihood(BITS),
    "tempered features beyond 1": lambda: make("SDCPRBM", transform_temperature=3.0).fit(
        BITS
    ).inverse_transform(np.full((1, 3), 1.5)),
    "tempered features without a value": lambda: make("SDCPRBM", transform_temperature=3.0).fit(
        BITS
    ).inverse_transform(np.full((1, 3), np.nan)),
    "tempered features of categories": lambda: make(
        "SDCPRBM", transform_temperature=3.0, hidden=("categorical", 3)
    ).fit(BITS).inverse_transform(np.full((1, 9), 1 / 3)),
    "flips in a table with real columns": lambda: of_weather("TAPRBM").denoise(
        WEATHER, flip_probability=0.1
    ),
    "flips of an interval": lambda: of_interval().denoise(BITS, 0.1),
    "no noise": lambda: of_bits("TAPRBM").denoise(BITS),
    "no noise of a deep model": lambda: of_bits("TAPDBM").denoise(BITS),
    "samples by TAP": lambda: of_bits("TAPRBM").impute(UNKNOWN, how="sample", method="tap"),
    "powers of other units": lambda: FractionalModel.from_estimator(
        SDCPRBM(3, hidden=("categorical", 2), **QUICK).fit(BITS), 2.0
    ),
    "a start at other units": lambda: InfiniteRBM(
        4, init=SDCPRBM(3, hidden=("categorical", 2), **QUICK).fit(BITS)
    ).fit(BITS),
    "pictures of columns of several numbers": lambda: ReceptiveFieldDisplay.from_estimator(
        of_weather()
    ),
}  # fmt: skip
CASES = {
    **OF_UNITS, **OF_KERNELS, **OF_LADDERS, **OF_MODELS, **OF_COLUMNS, **OF_LAYERS, **OF_FITTED
}  # fmt: skip
