"""Figures 3 to 7 of the TAP paper: three kinds of machines in training, and their solutions.

Binary MNIST (pixels > 0.5), MNIST grey levels with truncated Gauss–Bernoulli units, and CBCL
faces with truncated Gaussian ones, with the settings of the paper's Table 1. One script trains
them once and draws

* Figure 3: the TAP log-likelihood per unit against the epoch,
* Figure 4: receptive fields with the widest spread and of the most active units,
* Figure 5: free energies and number of the solutions in the course of training,
* Figure 6: the solutions of all epochs on one plane, by Isomap,
* Figure 7: rows and the solutions that are reached from them on one plane, likewise,
* Figure 5 once more (tap_solutions): how many solutions the starts of one machine lead to, of those
  that converge. Two are the same if no mean differs by more than a threshold, and the number is
  given for several: the paper does not say what is the same there.

E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone, F. Krzakala (2018). "Deterministic and
generalized framework for unsupervised learning with restricted Boltzmann machines". Physical
Review X 8, 041006.
"""

from functools import partial
from types import SimpleNamespace

import _path  # noqa: F401
import joblib
import numpy as np
from _common import script, unconverged_is_fine
from _data import binary, load_images
from _reproduction import (
    compare,
    keep_curves,
    keep_rows,
    kept,
    plt,
    reproduction,
    save_picture,
    settings,
)
from sklearn.manifold import Isomap

from sklearn_boltz import TAP, TAPRBM
from sklearn_boltz.inspection import ReceptiveFieldDisplay

NAMES = {"binary": "binary MNIST", "real": "grey MNIST", "cbcl": "CBCL faces"}
LAWS = {"binary": "probability", "real": "truncated_gauss_bernoulli", "cbcl": "truncated_gaussian"}
# The machine of each kind whose fields and solutions are drawn.
SHOWN = {"binary": 100, "real": 100, "cbcl": 256}
# Where the solutions are looked at, as parts of the training.
STAGES = (0.1, 0.2, 0.4, 0.7, 1.0)
SAME = (0.001, 0.005, 0.02, 0.1, 0.3)


def machine_of(kind, X, n_hidden, args):
    """A machine with its course of training; kept, so that a run can go on with the next one."""
    rates = dict(binary=args.binary_rate, real=args.real_rate, cbcl=args.cbcl_rate)
    model = TAPRBM(
        n_hidden, columns=LAWS[kind], learning_rate=rates[kind], warm_start=True, random_state=0,
        alpha=0.01 if kind == "cbcl" else 0.001, batch_size=20 if kind == "cbcl" else 100,
        inference=TAP(max_iter=10, n_gibbs=0), init=0.001, n_jobs=args.jobs,
    )  # fmt: skip
    key = joblib.hash((X, model, args.epochs, args.starts, args.most))
    return kept(args, f"tap_machine_{key}", partial(train, kind, X, model, args))


def train(kind, X, model, args):
    """Train in stages; -> model, epochs and solutions at the end of each stage."""
    epochs, solutions, detailed = [], [], model.n_components == SHOWN[kind]
    with unconverged_is_fine():  # the report says how many converge
        for stage in STAGES:
            upto = max(round(stage * args.epochs), 1)
            if (more := upto - getattr(model, "n_iter_", 0)) > 0:
                model.set_params(max_iter=more).fit(X)
                if detailed:
                    epochs.append(upto)
                    landscape = model.tap_solutions(X[: args.starts], max_iter=args.most)
                    solutions.append(landscape)
    return SimpleNamespace(kind=kind, model=model, epochs=epochs, solutions=solutions,
                           rows=X[: args.starts])  # fmt: skip


def per_unit(model):
    """The log-likelihood over the training, divided by the number of units as in the paper."""
    return model.history_["tap_log_likelihood"] / sum(model.components_.shape)


def figure_3(machines, path):
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    for ax, (kind, title) in zip(axes, NAMES.items(), strict=True):
        for machine in machines:
            if machine.kind == kind:
                values = per_unit(machine.model)
                label = f"{len(machine.model.components_)} hidden units"
                ax.plot(np.arange(1, len(values) + 1), values, label=label)
        ax.set(title=title, xlabel="epoch")
        ax.legend(fontsize="small")
    axes[0].set_ylabel("TAP log-likelihood per unit, nats")
    save_picture(figure, path)


def figure_4(machines, path, n_units=15):
    figure, axes = plt.subplots(len(machines), 2, figsize=(10, 2.6 * len(machines)),
                                layout="constrained")  # fmt: skip
    for pair, machine in zip(axes, machines, strict=True):
        W = machine.model.components_
        # As in the paper: the l_p norm for p = 0.1 is large where a field is spread out.
        spread = (np.abs(W).astype(float) ** 0.1).sum(axis=1)
        activity = machine.model.transform(machine.rows).mean(axis=0)
        for ax, rank, title in zip(pair, (spread, activity), ("spread", "activity"), strict=True):
            units = np.argsort(-rank, kind="stable")[:n_units]
            display = ReceptiveFieldDisplay(weights=W[units], units=units, rank=rank[units])
            display.plot(ax=ax, n_columns=n_units // 3)
            ax.set_title(f"{NAMES[machine.kind]}, {len(W)} units, by {title}")
    save_picture(figure, path)


def figure_5(machines, path):
    figure, axes = plt.subplots(2, len(machines), figsize=(4.4 * len(machines), 7),
                                squeeze=False, layout="constrained")  # fmt: skip
    for (top, bottom), machine in zip(axes.T, machines, strict=True):
        for epoch, solutions in zip(machine.epochs, machine.solutions, strict=True):
            energies = solutions.free_energy
            top.plot(np.full(len(energies), epoch), energies, "C0.", alpha=0.15, mew=0)
            bottom.hist(energies, bins=25, histtype="step", label=f"epoch {epoch}")
        top.plot(machine.epochs, [s.free_energy.mean() for s in machine.solutions], "C3-o", ms=3)
        counts = top.twinx()
        counts.plot(machine.epochs, [len(s.free_energy) for s in machine.solutions], "C2")
        counts.set_ylabel("different solutions", color="C2")
        counts.set_ylim(0, None)
        top.set(title=NAMES[machine.kind], xlabel="epoch", ylabel="free energy, nats")
        bottom.set(xlabel="free energy, nats", ylabel="solutions")
        bottom.legend(fontsize="small")
    save_picture(figure, path)


def plane(points):
    """Where points are on a plane, by Isomap."""
    return Isomap(n_neighbors=min(10, len(points) - 1)).fit(points)


def figure_6(machine, path):
    if n_found(machine) < 5:
        print("Figure 6: too few solutions for a map")
        return
    means = [np.hstack([s.visible_mean, s.hidden_mean]) for s in machine.solutions]
    fitted = plane(means[-1])
    figure, axes = plt.subplots(1, len(means), figsize=(3.2 * len(means), 3.4), sharex=True,
                                sharey=True, layout="constrained")  # fmt: skip
    of_stages = zip(axes, means, machine.solutions, machine.epochs, strict=True)
    for ax, points, solutions, epoch in of_stages:
        dots = ax.scatter(*fitted.transform(points).T, c=solutions.free_energy, s=12)
        ax.set(title=f"epoch {epoch}: {len(points)}", xticks=[], yticks=[])
        bar = figure.colorbar(dots, ax=ax, location="bottom", label="free energy, nats")
        bar.ax.locator_params(nbins=3)
    save_picture(figure, path)


def figure_7(machines, path):
    shown = (0, len(STAGES) // 2, len(STAGES) - 1)
    figure, axes = plt.subplots(len(machines), len(shown), figsize=(10, 3.3 * len(machines)),
                                squeeze=False, layout="constrained")  # fmt: skip
    for row, machine in zip(axes, machines, strict=True):
        fitted = plane(machine.rows)
        for ax, stage in zip(row, shown, strict=True):
            k = min(stage, len(machine.epochs) - 1)
            solutions = machine.solutions[k]
            colours = solutions.assignment % 10
            ax.scatter(*fitted.embedding_.T, c=colours, cmap="tab10", s=8, alpha=0.6, lw=0)
            ax.scatter(*fitted.transform(solutions.visible_mean).T, color="black", s=14)
            title = f"{NAMES[machine.kind]}, epoch {machine.epochs[k]}"
            ax.set(title=title, xticks=[], yticks=[])
    save_picture(figure, path)


def keep(machines, args):
    """Print and keep a row for each machine; keep the curves."""
    rows, curves = [], {}
    for machine in machines:
        history, name, n_starts = machine.model.history_, NAMES[machine.kind], len(machine.rows)
        n_hidden, path = len(machine.model.components_), per_unit(machine.model)
        share = f"{n_found(machine) / n_starts:.0%}" if machine.solutions else ""
        rows.append([name, n_hidden, f"{path[0]:.3f}", f"{path[-1]:.3f}",
                     *(f"{history['n_solutions'][k]:.0f}" for k in (0, -1)), share,
                     f"{history['share_converged'][-1]:.0%}",
                     f"{history['seconds'].sum():.0f}"])  # fmt: skip
        curves[f"{name}, {n_hidden}"] = path
    header = ["data", "hidden units", "per unit: first epoch", "last",
              "solutions from 100 rows: first", "last", f"of all starts, at most {args.starts}",
              "converged", "seconds"]  # fmt: skip
    keep_rows(args, header, rows)
    keep_curves(args, range(1, args.epochs + 1), curves, 4)


def n_found(machine):
    """How many solutions there are in the end."""
    return len(machine.solutions[-1].free_energy)


def claims(machines, args):
    """What the paper says of its figures."""
    paths = [machine.model.history_["tap_log_likelihood"] for machine in machines]
    counts = [machine.model.history_["n_solutions"] for machine in machines]
    points = [(path[0], path[len(path) // 2], path[-1]) for path in paths]
    rises = [last > first for first, _, last in points]
    shapes = [middle - first > last - middle for first, middle, last in points]
    late = [last > middle for _, middle, last in points]
    more = [n[-1] > n[0] for n in counts]
    digits = [n_found(m) / len(m.rows) for m in machines if m.solutions and m.kind != "cbcl"]
    start = machines[0].model
    first = TAPRBM(len(start.components_), max_iter=0, init=0.001, random_state=0)
    at_start = len(first.fit(machines[0].rows).tap_solutions(machines[0].rows).free_energy)
    n = len(machines)
    return [
        ("settings (Table 1)", "60,000 rows, 100 epochs, 10,000 starts",
         f"{args.rows:,} rows, {args.epochs} epochs, {args.starts} starts", None),
        ("Figure 3: the log-likelihood per unit rises", "in all machines",
         f"{sum(rises)} of {n}", all(rises)),
        ("Figure 3: it rises faster in the first half", "in all machines",
         f"{sum(shapes)} of {n}", all(shapes)),
        ("Figure 3: it still rises in the second half", "in all machines",
         f"{sum(late)} of {n}", all(late)),
        ("Figure 5: solutions before training, binary MNIST", "1", str(at_start), at_start == 1),
        ("Figure 5: their number rises", "in all machines", f"{sum(more)} of {n}", all(more)),
        ("Figure 5: solutions by starts, MNIST, 100 units", "below 10 %",
         ", ".join(f"{share:.0%}" for share in digits), max(digits, default=1) < 0.1),
    ]  # fmt: skip


def count(points, same):
    """How many points differ by more than a threshold in some coordinate."""
    n = 0
    while len(points):
        points = points[np.abs(points - points[0]).max(axis=1) > same]
        n += 1
    return n


def reproduce_solutions(machine, args):
    """Figure 5 once more, from each start alone."""
    with reproduction("tap_solutions", "TAP, Figure 5, solutions that have converged", args):
        key = joblib.hash((machine.rows, machine.model, args.most))
        make = partial(machine.model.tap_solutions, machine.rows, unique=False, max_iter=args.most)
        found, n_starts = kept(args, f"tap_solutions_{key}", make), len(machine.rows)
        points = np.hstack([found.visible_mean, found.hidden_mean])[found.converged]
        sizes = [n for n in (100, 300, 1000, 3000, 10_000) if n < len(points)] + [len(points)]
        table = [[n, *(count(points[:n], same) for same in SAME)] for n in sizes]
        keep_rows(args, ["converged starts", *(f"same within {same}" for same in SAME)], table)
        share = table[-1][1 + SAME.index(0.02)] / len(points)
        compare(args, [
            ("settings", "60,000 rows, 100 epochs, 10,000 starts",
             f"{args.rows:,} rows, {args.epochs} epochs, {n_starts:,} starts", None),
            ("starts that converge", "", f"{len(points) / n_starts:.0%}", None),
            ("solutions by starts, same within 0.02", "below 10 %", f"{share:.0%}", share < 0.1),
        ])  # fmt: skip


@script
def main():
    args = settings(
        __doc__,
        full=dict(rows=60_000, real_rows=60_000, epochs=100, starts=10_000, most=1000, jobs=1,
                  binary=[25, 50, 100, 500], real=[100, 500], cbcl=[256],
                  binary_rate=0.005, real_rate=0.005, cbcl_rate=0.005),
        quick=dict(rows=4_000, real_rows=1_500, epochs=8, starts=200, most=200,
                   binary=[25, 50, 100], real=[100],
                   binary_rate=0.1, real_rate=0.1, cbcl_rate=0.02),
    )  # fmt: skip
    mnist, faces = (load_images(name, args.data, args.rows)[0] for name in ("mnist", "cbcl"))
    sets = {"binary": binary(mnist), "real": mnist[: args.real_rows], "cbcl": faces}
    with reproduction("tap_figures3to7", "TAP, Figures 3 to 7", args):
        machines = []
        for kind, X in sets.items():
            for n_hidden in getattr(args, kind):
                machines.append(machine_of(kind, X, n_hidden, args))
                print(f"{NAMES[kind]}, {n_hidden}: trained", flush=True)
        print()
        keep(machines, args)
        compare(args, claims(machines, args))
    chosen = [machine for machine in machines if machine.solutions]
    stem = args.stem.replace("figures3to7", "figure")
    figure_3(machines, f"{stem}3.png")
    figure_4(chosen, f"{stem}4.png")
    figure_5(chosen, f"{stem}5.png")
    figure_6(chosen[0], f"{stem}6.png")
    figure_7(chosen, f"{stem}7.png")
    with unconverged_is_fine():
        reproduce_solutions(chosen[0], args)
