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
from contract.estimators import ALL, MODELS, VALUES, as_public, legal_values, name_of
from contract.frames import bits, gaps, people
from contract.state import fitted_values
from sklearn.base import clone

import sklearn_boltz


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


def configurations():
    """Yield (name, estimator): defaults, and each parameter of a model at a legal value."""
    for estimator in ALL:
        yield f"{name_of(estimator)}, default", as_public(estimator)
    for estimator in MODELS:
        for k, name in enumerate(sorted(VALUES.keys() & estimator.get_params().keys())):
            legal = legal_values(estimator, name)
            value = legal[k % len(legal)]
            model = clone(as_public(estimator)).set_params(**{name: value})
            yield f"{name_of(estimator)}, {name}={getattr(value, '__name__', value)}", model


def fits():
    """The fits by name: (estimator, name of the table).

    Defaults are fitted to all tables, others to bits, and to gaps and strings by turns.
    """
    found = {}
    for k, (name, estimator) in enumerate(configurations()):
        some = ["bits", ["gaps", "strings", "weights"][k % 3]]
        for table in TABLES if name.endswith("default") else some:
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
