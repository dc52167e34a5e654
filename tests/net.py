"""What a change of code changes: results of many fits, beside another commit.

    python tests/net.py record FILE          results of this tree, in a file
    python tests/net.py compare FILE         names the results that differ from those of a file

``make net BASE=HEAD`` builds another commit, and compares both.
"""

import argparse
import itertools
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from contract.estimators import ALL, META, as_public, name_of
from contract.frames import bits, gaps, people
from contract.state import fitted_values
from sklearn.base import clone

import sklearn_boltz
from sklearn_boltz import (
    TAP,
    BoltzmannImputer,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
)


def strings():
    """Words, booleans and counts, with gaps."""
    frame = people(200)
    return frame.assign(city=frame["city"].mask(np.random.default_rng(2).random(200) < 0.1))


BITS = bits(200, 8)
TABLES = {
    "bits": BITS,
    "float32": BITS.astype(np.float32),
    "gaps": gaps(200),
    "weights": BITS,
    "CSR": sp.csr_array(BITS.astype(float)),
    "strings": strings(),
    "two threads": BITS,
}
PLAIN = FVBMPseudoLikelihood(max_iter=200)
SPARSE = SparseFVBM(max_iter=200)
ENTROPY = MaximumEntropy(random_state=0, max_iter=200)
NETWORKS = {
    "default": (PLAIN, {}),
    "plain maximum": (PLAIN, {"alpha": 0.01}),
    "L-BFGS": (PLAIN, {"solver": "lbfgs"}),
    "BSLM": (PLAIN, {"solver": "bslm", "alpha": 0.05}),
    "observed": (PLAIN, {"missing": "observed"}),
    "L1 by EBIC": (SPARSE, {"penalty": "l1"}),
    "group": (SPARSE, {"alpha": 0.02}),
    "elastic net by cross-validation": (SPARSE, {"penalty": "elasticnet", "alpha": "cv", "cv": 3}),
    "nodewise": (SPARSE, {"penalty": "l1", "nodewise": "and"}),
    "likelihood": (ENTROPY, {}),
    "triples": (SPARSE, {"penalty": "l2", "alpha": 0.0, "max_order": 3}),
    "given terms": (ENTROPY, {"terms": [(0, 1, 2)]}),
    "count potential": (ENTROPY, {"count_potential": True}),
    "ordered": (PLAIN, {"columns": "ordinal"}),
    "some edges": (SPARSE, {"penalty": "l2", "alpha": 0.0, "edges": [(0, 1), (2, 3)]}),
}
MACHINES = {
    "SDCPRBM": {
        "default": {}, "persistent": {"chains": "persistent"},
        "CD": {"n_inner": 1, "centered": False}, "tempered": {"tempered": 0.5},
        "categorical hidden": {"hidden": ("categorical", 3)},
        "from a network": {"init": FVBMPseudoLikelihood()},
        "untracked": {"track_likelihood": False},
        "early stopping": {"early_stopping": True, "max_iter": 20},
    },
    "TAPRBM": {
        "default": {}, "naive": {"inference": "naive"}, "adaptive": {"inference": "adaptive"},
        "without chains": {"inference": TAP(n_gibbs=0)}, "persistent": {"persistent": True},
        "truncated": {"hidden": "truncated_gaussian"}, "L1": {"penalty": "l1", "alpha": 0.001},
    },
    "TAPDBM": {"default": {}, "no pre-training": {"pretrain_max_iter": 0}},
    "InfiniteRBM": {
        "default": {}, "corrective": {"mode": "corrective"}, "plain": {"mode": "plain"},
        "fitted start": {"init": FVBMPseudoLikelihood()},
    },
    "RBMClassifier": {"default": {}, "generative": {"generative": 1.0}},
}  # fmt: skip
FULL = {
    "default": {}, "greedy": {"solver": "greedy"}, "float32": {"dtype": "float32"},
    "pairs": {"max_order": 2}, "cheap terms": {"alpha": 0.2},
}  # fmt: skip
SHORT = {name_of(estimator): as_public(estimator) for estimator in ALL}
META = {name_of(estimator): SHORT[name_of(estimator)] for estimator in META} | {
    "BoltzmannImputer by means, default": BoltzmannImputer(how="mean", random_state=0)
}


def configurations():
    """Yield (name, estimator) of each set of parameters."""
    for name, parameters in FULL.items():
        yield f"FSLLDensity, {name}", FSLLDensity(**parameters)
    for name, (kind, parameters) in NETWORKS.items():
        yield f"{type(kind).__name__}, {name}", clone(kind).set_params(**parameters)
    for kind, sets in MACHINES.items():
        for name, parameters in sets.items():
            yield f"{kind}, {name}", clone(SHORT[kind]).set_params(**parameters)
    yield from META.items()


def fits():
    """The fits by name: (estimator, name of the table).

    Defaults are fitted to all tables, other parameters to bits, and to gaps and strings by turns.
    """
    found = {}
    for k, (name, estimator) in enumerate(configurations()):
        is_default = name.endswith("default") or "," not in name
        tables = TABLES if is_default else ["bits", ["gaps", "strings", "weights"][k % 3]]
        for table in tables:
            if table != "two threads" or "n_jobs" in estimator.get_params():
                found[f"{name} on {table}"] = estimator, table
    return found


def fit(estimator, table):
    """The fitted estimator; a refusal is a result, too."""
    model, X = clone(estimator), TABLES[table]
    y = [np.arange(200) % 3 % 2] if hasattr(model, "predict_proba") else []
    options = {"sample_weight": 0.5 + np.arange(200) % 3} if table == "weights" else {}
    if table == "two threads":
        model.set_params(n_jobs=2)
    return model.fit(X, *y, **options)


def results(estimator, table):
    """Arrays and numbers by name: attributes, scores, samples, imputed cells."""
    try:
        model = fit(estimator, table)
    except (ValueError, TypeError) as error:
        return {"refused": str(error)}
    X, found = TABLES[table], fitted_values(model)
    for name, use in {
        "score_samples": lambda: model.score_samples(X),
        "transform": lambda: model.transform(X),
        "sample": lambda: model.sample(20, random_state=0),
        "impute": lambda: model.impute(X if sp.issparse(X) else X[:50], how="mode", random_state=0),
        "predict_proba": lambda: model.predict_proba(X),
    }.items():
        if hasattr(model, name):
            try:
                found[name] = use()
            except (ValueError, TypeError) as error:
                found[name] = str(error)
    parts = {n: v if isinstance(v, tuple) else (v,) for n, v in found.items()}
    return {f"{n}[{k}]": plain(v) for n, values in parts.items() for k, v in enumerate(values)}


def plain(value):
    """Arrays, frames, numbers and words as an array; of other things, what they are."""
    is_frame = hasattr(value, "columns") and hasattr(value, "shape")
    if is_frame or isinstance(value, (np.ndarray, np.generic, int, float, str, type(None))):
        return np.asarray(value)
    return np.asarray(type(value).__name__)


def all_results():
    warnings.simplefilter("ignore")
    return {name: results(*its) for name, its in fits().items()}


def difference(old, new):
    """How two values differ, in words; None if they are the same to the bit."""
    if old is None or new is None:
        return "new" if old is None else "gone"
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{old.dtype}{old.shape} -> {new.dtype}{new.shape}"
    if old.dtype.kind != "f":
        return None if old.astype(str).tolist() == new.astype(str).tolist() else "other values"
    if np.array_equal(old, new, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"by up to {np.nanmax(np.abs(old - new)):.1e}, of {np.nanmax(np.abs(old)):.1e}"


def compare(old, new):
    """Print what differs; -> how many fits do."""
    n_different = 0
    for name in dict.fromkeys([*old, *new]):
        theirs, ours = ({k: np.asarray(v) for k, v in r.get(name, {}).items()} for r in (old, new))
        parts = {p: difference(theirs.get(p), ours.get(p)) for p in dict.fromkeys([*theirs, *ours])}
        parts = {part: how for part, how in parts.items() if how is not None}
        n_different += bool(parts)
        if parts:
            shown = "; ".join(f"{p} {how}" for p, how in itertools.islice(parts.items(), 4))
            print(f"{name}: {shown}" + (f"; {len(parts) - 4} more" if len(parts) > 4 else ""))
    print(f"{n_different} of {len(new)} fits differ")
    return n_different


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["record", "compare"])
    parser.add_argument("path", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "record":
        found = all_results()
        arguments.path.write_bytes(pickle.dumps(found))
        print(f"{len(found)} fits of {sklearn_boltz.__file__}")
    else:
        sys.exit(bool(compare(pickle.loads(arguments.path.read_bytes()), all_results())))


if __name__ == "__main__":
    main()
