"""Parameters and arguments that are unknown, or do not go together, or with the table."""

import math

import numpy as np
import pandas as pd
from contract.frames import bits, people, seven
from contract.once import once

from sklearn_boltz import (
    SDCPRBM,
    TAP,
    TAPDBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    statistics,
)

X = bits(40)
FRAME = pd.DataFrame(X, columns=list("abcde"))
CODES = np.random.default_rng(0).integers(3, size=(50, 3))
CONDITIONS = {
    "an unknown name": {"age": 1}, "an unknown number": {7: 1}, "a fraction of a column": {2.5: 1},
    "an illegal value": {"b": 9}, "a word for a number": {"b": "yes"}, "NaN": {"b": np.nan},
    "two values": {"b": [0, 1]}, "a column twice": {"b": 1, 1: 1},
}  # fmt: skip


def network(X, **parameters):
    return lambda: FVBMPseudoLikelihood(**parameters).fit(X)


@once
def model(kind):
    return kind().fit(FRAME)


CASES = {
    **{
        f"{kind.__name__}(columns={columns!r})": lambda kind=kind, columns=columns: kind(
            columns=columns
        ).fit(X[:, :3])
        for kind in (FSLLDensity, FVBMPseudoLikelihood, SDCPRBM)
        for columns in (["auto"] * 2, [range(2), 1, "auto"], {0: "poisson"},
                        {"z": "count"}, {0: []}, {0: [0, 0]}, {1: ("binary", [0, 1])})
    },
    **{
        f"{kind.__name__}, given {what}": lambda kind=kind, given=given: model(kind).sample(
            given=given
        )
        for kind in (FSLLDensity, FVBMPseudoLikelihood)
        for what, given in CONDITIONS.items()
    },
    **{
        f"where {what}": lambda where=where: model(FVBMPseudoLikelihood).sample(5, 0, where=where)
        for what, where in {
            "that nothing obeys": lambda table: table["a"] > 1,
            "of a table": lambda table: table > 0,
            "of numbers": lambda table: table["a"], "of one row": lambda table: True,
        }.items()
    },
    **{
        f"temperature={value}": lambda value=value: model(FSLLDensity).sample(temperature=value)
        for value in (0, -1.0, math.nan, math.inf, "hot")
    },
    **{
        f"inference={tap}": lambda tap=tap: TAPRBM(2, inference=tap).fit(X)
        for tap in (TAP(order=3), TAP(max_iter=0), TAP(damping=1), TAP(n_gibbs=-1))
    },
    "too few names of columns": lambda: network(X)().get_feature_names_out(["a"]),
    "no hidden unit": lambda: TAPDBM(0).fit(X),
    "2 of 3 values": network(CODES, columns=range(2)),
    "2 of 3 values, words": network(seven(np.resize(["x", "y", "z"], 40)), columns=range(2)),
    "a list of grey levels": lambda: FSLLDensity(columns=range(16)).fit(255 * X),
    "a list of other values": network(people(n_rare=1), columns={"city": ["Rome", "Bern"]}),
    "a list of other values, FSLLDensity": lambda: FSLLDensity(columns={"kids": range(3)}).fit(
        people(n_rare=1)
    ),
    "more values than kernels number": network(np.arange(40_000)[:, None], columns=range(40_000)),
    "bslm of categories": network(CODES, solver="bslm"),
    "counts of categories": lambda: MaximumEntropy(count_potential=True).fit(
        seven(np.arange(40) % 3)
    ),
    "init of other columns": lambda: SDCPRBM(
        5, init=FVBMPseudoLikelihood().fit(people(n_rare=2)), max_iter=0
    ).fit(people(n_rare=6)),
    "init of columns in another order": lambda: SDCPRBM(
        5, init=FVBMPseudoLikelihood().fit(FRAME), max_iter=0
    ).fit(FRAME[list("edcba")]),
    "init of other units": lambda: SDCPRBM(
        5, columns="gaussian", init=network(CODES)(), max_iter=0
    ).fit(CODES.astype(float)),
    "init of bits in truncated units": lambda: SDCPRBM(
        5, columns="truncated_gaussian", init=FVBMPseudoLikelihood(), max_iter=0
    ).fit(X),
    "init of more values": lambda: SDCPRBM(5, init=network(CODES)(), max_iter=0).fit(X[:, :3]),
    "no parameter of a contrast": lambda: statistics.inference(
        network(CODES, alpha=0.1)(), CODES
    ).contrast({"m[x0,x9]": 1}),
    "a level that `fit` has not seen": lambda: network(CODES.clip(max=1), columns=range(3))()
    .sample(given={2: 4}),
    "other columns with warm_start": lambda: network(CODES, warm_start=True)().fit(X[:, :2]),
    "other values in partial_fit": lambda: network(CODES)().partial_fit(CODES + 1),
}  # fmt: skip
