"""What the ways of mean-field inference cost, and how right they are (Figure 10 of the paper).

Naive mean field, TAP, relaxed belief propagation and adaptive TAP on random machines: the error
of ln Z and of the means against enumeration as the couplings grow, and the time of a solution as
the machine grows. TAP should be nearly as right as the costlier two, at the price of naive mean
field.
"""

from time import perf_counter

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script

from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field._inference import INFERENCES
from sklearn_boltz.restricted.mean_field._tap import Iteration
from sklearn_boltz.restricted.model._enumeration import all_states, exact_log_partition
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.units import Bernoulli

METHODS = {
    "naive mean field": ("tap", 1),
    "TAP": ("tap", 2),
    "relaxed BP": ("rbp", 2),
    "adaptive TAP": ("adatap", 2),
}
SCALES = [0.05, 0.1, 0.2, 0.4, 0.8]
SIZES = [(20, 10), (40, 20), (80, 40), (160, 80), (320, 160)]


def machine(n_visible, n_hidden, scale, rng):
    """Couplings and biases N(0, scale²) and N(0, 1)."""
    visible, hidden = (Bernoulli(rng.normal(size=n)) for n in (n_visible, n_hidden))
    return Model(scale * rng.normal(size=(n_hidden, n_visible)), visible, hidden)


def exact_means(model):
    """Means of the visible units by enumeration of the hidden ones."""
    H = all_states(model.hidden)
    field = model.visible_field(H)
    log_weight = model.hidden.log_weight(H) + model.visible.log_partition_sum(field)
    weight = np.exp(log_weight - log_weight.max())
    return weight @ model.visible.mean(field) / weight.sum()


def solved(method, model, workers):
    """-> ln Z, visible means, seconds of one solution."""
    name, order = METHODS[method]
    start = perf_counter()
    solution = INFERENCES[name](
        model, np.full((1, len(model.visible)), 0.5), Iteration(order, 500, 1e-14, 0.5), workers
    )
    return -solution.free_energy[0], solution.visible_mean[0], perf_counter() - start


def errors(n_machines, workers):
    """Median absolute error of ln Z, and root mean square error of the means."""
    found = {method: np.empty((len(SCALES), n_machines, 2)) for method in METHODS}
    for k, scale in enumerate(SCALES):
        for seed in range(n_machines):
            model = machine(12, 8, scale, np.random.default_rng([seed, k]))
            log_partition, means = exact_log_partition(model), exact_means(model)
            for method, table in found.items():
                value, mean, _ = solved(method, model, workers)
                wrong = np.sqrt(np.mean((mean - means) ** 2))
                table[k, seed] = abs(value - log_partition), wrong
    return {method: np.nanmedian(table, axis=1) for method, table in found.items()}


def times(workers):
    """Least seconds of a solution at couplings of weak disorder, for each size."""
    seconds = {method: [] for method in METHODS}
    for n_visible, n_hidden in SIZES:
        model = machine(n_visible, n_hidden, 0.5 / np.sqrt(n_visible), np.random.default_rng(0))
        for method, column in seconds.items():
            column.append(min(solved(method, model, workers)[2] for _ in range(3)))
    return seconds


def plot(found, seconds, file):
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for method in METHODS:
        for ax, column in zip(axes, found[method].T, strict=False):
            ax.loglog(SCALES, column, "o-", label=method)
        axes[2].loglog([n + m for n, m in SIZES], seconds[method], "o-", label=method)
    for ax, title in zip(axes, ("error of ln Z, nats", "error of the means"), strict=False):
        ax.set(xlabel="standard deviation of the couplings", title=title)
    axes[2].set(xlabel="units", title="seconds of a solution")
    axes[0].legend(frameon=False)
    fig.savefig(file, dpi=130)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--machines", type=int, default=20, help="random ones for each scale")
    args = parser.parse_args()
    with (
        Workers(1) as workers,
        report(args.output / "tap_inference.txt", "Mean-field inference"),
    ):
        found, seconds = errors(args.machines, workers), times(workers)
        for k, title in enumerate(("|ln Z − exact|, nats", "RMS error of the means")):
            print(f"{title}: median of {args.machines} machines of 12 × 8 units")
            header = ["", *(f"{scale:g}" for scale in SCALES)]
            print_table(header, [[m, *(f"{x:.1e}" for x in found[m][:, k])] for m in METHODS])
        print("seconds of a solution, by visible × hidden units")
        header = ["", *(f"{n} × {m}" for n, m in SIZES)]
        print_table(header, [[m, *(f"{x:.1e}" for x in seconds[m])] for m in METHODS])
        gain = found["naive mean field"][1, 0] / found["TAP"][1, 0]
        print_check("error of ln Z at 0.1, naive / TAP", "≥ 10", f"{gain:.0f}",
                    gain >= 10)  # fmt: skip
        plot(found, seconds, args.output / "tap_inference.png")


if __name__ == "__main__":
    run_script(main)
