"""What mean field of one-hot and mixed units costs, and how right it is.

An epoch of `TAPRBM` on the words of ALARM, 37 columns of 2 to 4 values, 105 numbers: with
categorical units, with the units that the table asks for by itself (bits where there are two
values), and with one more real column; against as many Bernoulli units, in turn. Then the errors of
ln Z of random machines of one-hot units on either side, as couplings grow: to the second order, it
should fall as the third power.
"""

import itertools
import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import interleaved, make_parser, print_check, print_table, report, run_script
from _data import load_table
from scipy.special import logsumexp

from sklearn_boltz import TAPRBM
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._tap import Iteration
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.units import Bernoulli, Categorical

N_HIDDEN, REPEATS = 100, 3
SCALES = [0.05, 0.1, 0.2, 0.4, 0.8]
MACHINES = 20
# Pairs of layers: the states of each unit, 1 for a bit.
LAYERS = {
    "bits, bits": ([1] * 8, [1] * 6),
    "words, bits": ([3, 3, 2, 4], [1] * 6),
    "words, words": ([3, 3, 2, 4], [3, 3, 3]),
    "20 states, bits": ([20, 20], [1] * 6),
}


def fits(T, rng):
    """Fits of one epoch, by what they are of."""
    numbers = np.hstack([pd.get_dummies(T[name]).to_numpy(np.float32) for name in T])
    codes = np.column_stack([T[name].astype("category").cat.codes for name in T])
    real = T.assign(real=rng.normal(size=len(T)) + (T["HR"] == "HIGH"))
    settings = dict(max_iter=1, learning_rate=0.1, n_jobs=1, random_state=0)

    def fit(X, **visible):
        model = TAPRBM(N_HIDDEN, **visible, **settings)
        return lambda: model.fit(X).history_["seconds"][0]

    return numbers.shape[1], {
        "Bernoulli": fit(numbers),
        "categorical": fit(codes, visible="categorical"),
        "as the table has them": fit(T),
        "and a real column": fit(real, visible={"real": "gaussian"}),
    }


def seconds_of_epochs(fits):
    """Least seconds of an epoch, of fits in turn; not those of reading the table."""
    found = {name: [] for name in fits}
    interleaved([lambda n=n, f=f: found[n].append(f()) for n, f in fits.items()], REPEATS)
    return {name: min(values) for name, values in found.items()}


def units(widths, rng):
    """Bits, or one-hot units of those numbers of states."""
    fields = rng.normal(size=sum(widths))
    return Bernoulli(fields) if max(widths) == 1 else Categorical(widths, fields)


def exact_log_partition(model):
    """By enumeration of the visible layer."""
    of_units = model.visible.unit_states()
    rows = [np.concatenate(parts) for parts in itertools.product(*(s for s, _ in of_units))]
    logs = [sum(parts) for parts in itertools.product(*(w for _, w in of_units))]
    hidden = model.hidden.log_partition(np.array(rows) @ model.weights.T)
    return logsumexp(np.array(logs) + hidden.sum(axis=1))


def median_errors(widths, order, workers):
    """Of ln Z over random machines, for each scale of their couplings."""
    errors = np.empty((len(SCALES), MACHINES))
    for place in np.ndindex(errors.shape):
        rng = np.random.default_rng(place)
        visible, hidden = (units(each, rng) for each in widths)
        W = SCALES[place[0]] * rng.normal(size=(len(hidden), len(visible)))
        model = Model(W, visible, hidden)
        start = visible.mean(np.zeros((1, len(visible))))
        found = by_tap(model, start, Iteration(order, 2000, 1e-14), workers)
        errors[place] = abs(found.free_energy[0] + exact_log_partition(model))
    return np.median(errors, axis=1)


def main():
    args = make_parser(__doc__).parse_args()
    T = load_table("alarm", args.data)[:10_000]
    with Workers(1) as workers, report(args.output / "tap_units.txt", "Mean field of words"):
        n_numbers, each = fits(T, np.random.default_rng(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an epoch is no training
            seconds = seconds_of_epochs(each)
        print(f"An epoch of {len(T):,} rows of {n_numbers} numbers, {N_HIDDEN} hidden units")
        rows = [
            [name, f"{s:.2f}", f"{s / seconds['Bernoulli']:.2f}"] for name, s in seconds.items()
        ]
        print_table(["visible units", "s", "× Bernoulli"], rows)
        ratio = seconds["categorical"] / seconds["Bernoulli"]
        print_check("categorical / Bernoulli", "≤ 4", f"{ratio:.2f}", ratio <= 4)
        errors = {
            (name, order): median_errors(widths, order, workers)
            for name, widths in LAYERS.items()
            for order in (1, 2)
        }
        print(f"|ln Z − exact|, nats: median of {MACHINES} machines")
        rows = [[f"{name}: order {order}", *(f"{e:.1e}" for e in its)]
                for (name, order), its in errors.items()]  # fmt: skip
        print_table(["couplings", *(f"{scale:g}" for scale in SCALES)], rows)
        for name in LAYERS:
            slope = np.polyfit(np.log(SCALES[:3]), np.log(errors[name, 2][:3]), 1)[0]
            print_check(f"power of the coupling, {name}", "3 ± 0.4", f"{slope:.2f}",
                        abs(slope - 3) < 0.4)  # fmt: skip


if __name__ == "__main__":
    run_script(main)
