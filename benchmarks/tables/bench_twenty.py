"""Density estimation on the standard binary data sets: test log-likelihoods beside peers.

Those ten of the twenty sets that the library can download, or that ``--data`` has, and one of those
of the papers on NADE, words of the NIPS conference, if ``--data`` has it. Models learn
from the training rows alone; settings are chosen on the validation rows, and the test rows are
looked at once. What an estimator sets aside by itself, as with ``early_stopping``, is of the
training rows.

Parts:

- ``default``: our estimators without an argument but the seed.
- ``validated``: the settings in ``VALIDATED``, each of them tried; the page takes the one with the
  best validation rows. Several models in one entry make a mixture, with the weights that are best
  on the validation rows.
- ``peers``: the tree of Chow and Liu, mixtures of Bernoulli products by EM, scikit-learn's
  ``BernoulliRBM`` and a continuous mixture of ``spflow`` for as many seconds as the default
  ``SDCPRBM`` took, and random circuits of ``deeprob-kit``; where these packages are installed.

Figures of papers stand beside them, with their sources.

A likelihood is exact where Z is; else it lies in a bracket. ln Z is estimated by a ladder of models
and by annealed importance sampling. From the likelihood by each, two standard errors are taken off;
the lower result is the low end. Two are added; the higher result is the high end. The errors of a
mixture's models are independent, so that the squares of their margins are added. Where the ladder
is broken, annealing in reverse from validation rows (RAISE) takes its place.

Each fit is kept in ``twenty.csv``, so that a run can be stopped and resumed or made in parts; what
is there is not made again. Seconds are those of the processor, of the fit alone, in one thread.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import warnings
from contextlib import suppress
from functools import partial

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _baselines import BernoulliMixture, BernoulliRBMPeer, as_sdcp_rbm, chow_liu, independent
from _circuits import continuous_mixture, random_circuits
from _common import (
    RESULTS,
    MissingData,
    make_parser,
    print_table,
    read_table,
    report,
    save_table,
    script,
    unfinished,
)
from _common import processor_timed as timed
from _data import load_density
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, SparseFVBM

SETS = {
    "nltcs": "NLTCS",
    "msnbc": "MSNBC",
    "plants": "Plants",
    "baudio": "Audio",
    "jester": "Jester",
    "bnetflix": "Netflix",
    "accidents": "Accidents",
    "dna": "DNA",
    "pumsb_star": "Pumsb-star",
    "bbc": "BBC",
    "nips": "NIPS",
}
PARTS = ("default", "validated", "peers")
KEY = ["set", "part", "model", "seed"]
FIGURES = ["valid", "low", "high", "ladder", "ais", "chains", "seconds"]
RBMS = SDCPRBM, TAPRBM
# FSLL has a table of all states.
FSLL_COLUMNS = 20


def rbm(rates=(), epochs=(), copies=1, *, persistent_from=None, **settings):
    """Entries of a recipe: this many RBMs, each trained at one rate after the other.

    With chains from the rows, then from one of the rates on with persistent ones. Without rates,
    RBMs stop by themselves, each on other validation rows.
    """
    phases = [dict(learning_rate=r, max_iter=n) for r, n in zip(rates, epochs, strict=True)]
    if persistent_from is not None:
        phases[persistent_from] |= dict(n_inner=1, n_gibbs=5, chains="persistent")
    return [(SDCPRBM, settings, phases)] * copies


def stages(copies, epochs, **settings):
    """RBMs of two stages of a constant rate each, and a short one: as by default, on all rows."""
    return rbm((0.05, 0.015, 0.0045), epochs, copies, **settings)


def network(**settings):
    return [(SparseFVBM, settings, [])]


def triples(alpha):
    return network(alpha=alpha, term_price=0.5, **TRIPLES)


TRIPLES = dict(penalty="l2", max_order=3, tol=0.01)
FSLL = [(FSLLDensity, dict(alpha=0.3, tol=3e-5), [])]
# Settings to be tried, by set: a name, and the machines of the mixture.
VALIDATED = {
    "nltcs": {
        "FSLL, alpha=0.3": FSLL,
        "FSLL, network and 16 RBMs":
            FSLL + triples(0.001) + stages(16, (100, 40, 20), n_components=32),
    },
    "plants": {
        "12 RBMs, persistent chains": rbm(
            (0.05, 0.02, 0.005, 0.0015), (30, 150, 50, 30), 12, persistent_from=1,
            n_components=140, alpha=1e-4,
        ),
        "9 RBMs and network":
            stages(9, (60, 25, 12), n_components=140, alpha=1e-4) + triples(0.001),
    },
    "baudio": {
        "8 RBMs and network": stages(8, (20, 10, 5), alpha=1.7e-4) + triples(0.01),
        "12 RBMs and network": rbm(copies=12) + triples(0.01),
    },
    "bnetflix": {"3 RBMs and network": stages(3, (25, 12, 6), alpha=1.7e-4) + triples(0.01)},
    "accidents": {
        "network": triples(0.003),
        "3 RBMs and network": stages(3, (90, 20, 10), alpha=2.2e-4) + triples(0.003),
        # From the strongest pairs of a sparse network.
        "4 RBMs from a network, and network": rbm(
            (0.02, 0.006, 0.003, 0.001), (20, 10, 60, 40), 4, persistent_from=2,
            n_components=700, alpha=2.2e-4, init=SparseFVBM(alpha=0.016),
        ) + triples(0.003),
    },
    "dna": {
        "network, l1": network(alpha="cv"),
        "4 networks":
            network(alpha="cv") + network() + network(alpha="cv", nodewise="and")
            + network(alpha=0.1, **TRIPLES),
    },
    "pumsb_star": {
        "tempered RBM": rbm(
            (0.02, 0.006, 0.002), (175, 85, 40), n_components=200, tempered=0.2, alpha=5e-4
        ),
    },
    "bbc": {"3 RBMs": stages(3, (250, 60, 40), alpha=1.6e-2)},
    "nips": {
        "SDCPRBM, alpha=0.05": rbm(alpha=0.05),
        "SDCPRBM, alpha=0.07": rbm(alpha=0.07),
        "8 RBMs": rbm(copies=8, alpha=0.05),
    },
}  # fmt: skip
# Mixtures, circuits and the machines of others: what is chosen among on the validation rows.
N_BERNOULLI = (20, 50, 100, 200, 400, 800)
CIRCUIT_ROWS = (512, 256, 128, 64)
PEER_RATES = ((0.1, 10), (0.02, 100))
PEER_UNITS, PEER_SECONDS = 256, 60.0


# ln Z and what follows from it. There are four estimates: two that lead to the ends of the
# likelihood's bracket, that of the ladder and that of AIS. This many standard errors are added to
# the likelihood by each.
LOW, HIGH, STD_ERRS = 0, 1, (-2, 2, 0, 0)
N_CHAINS = 500


def log_partitions(model, valid, seed):
    """Four estimates of ln Z, their standard errors, and the chains that count.

    The low end of the likelihood has the greater one, as the likelihood falls with ln Z.
    """
    with suppress(ValueError):
        exact = model.log_partition("exact").value
        return [exact, exact, np.nan, np.nan], np.zeros(4), np.nan
    annealing = dict(n_chains=N_CHAINS, n_temperatures=20_000, random_state=seed)
    ladder = model.log_partition("ladder", tol=0.015, max_rounds=5000, random_state=seed)
    ais = model.log_partition("ais", **annealing)
    ends = [ais]
    if np.isfinite(ladder.high) or ladder.trusted:
        ends.append(ladder)
    elif isinstance(model, RBMS):
        ends.append(model.log_partition("raise", X=valid[:N_CHAINS], **annealing))
    low = max(ends, key=lambda end: end.value - STD_ERRS[LOW] * _error(end))
    high = min(ends, key=lambda end: end.value - STD_ERRS[HIGH] * _error(end))
    found = low, high, ladder, ais
    return [end.value for end in found], np.array([_error(end) for end in found]), ais.ess


def _error(estimate):
    return estimate.std_err if np.isfinite(estimate.std_err) else 0.0


def judged(models, valid, test, seconds):
    """The results of a mixture of models, which may be one, by weights of the validation rows."""
    log_p, margins, chains = [], [], []
    for seed, model in enumerate(models):  # other chains for each, so that errors are independent
        dtype = np.float32 if isinstance(model, RBMS) else np.int8
        log_z, errors, n_chains = log_partitions(model, valid.astype(dtype), seed)
        rows = -model.free_energy(np.vstack([valid, test]).astype(dtype))
        log_p.append(rows - np.reshape(log_z, (-1, 1)))
        margins.append(STD_ERRS * errors)
        chains.append(n_chains)
    # (estimates, models, rows) and (estimates, models)
    log_p, margins, n = np.swapaxes(log_p, 0, 1), np.transpose(margins), len(valid)
    # By the low ends, as everything else that is chosen.
    ends = log_p[LOW, :, :n].T + margins[LOW]
    weights = likeliest_weights(ends)
    if len(models) > 1:
        print(f"  weights of the mixture: {np.round(weights, 3).tolist()}", flush=True)
    of_valid = mixed(log_p[LOW, :, :n], margins[LOW], weights)
    of_test = [mixed(log_p[k, :, n:], margins[k], weights) for k in range(len(log_p))]
    return of_valid, *of_test, min(chains), seconds


def likeliest_weights(log_p, tol=1e-5):
    """The weights of a mixture with which rows are most probable, to `tol` nats, by EM.

    The greatest mean log-likelihood is at most max_k ln g_k above that of the weights, with the
    mean ratios g_k = mean p_k / p (Cover, IEEE Transactions on Information Theory 30, 1984).
    """
    n_parts = log_p.shape[1]
    weights, p = np.full(n_parts, 1 / n_parts), np.exp(log_p - log_p.max(axis=1, keepdims=True))
    for _ in range(int(np.ceil(np.log(n_parts) / tol))):
        gains = (p / (p @ weights)[:, None]).mean(axis=0)
        if np.log(gains.max()) <= tol:
            break
        weights *= gains
    return weights


def mixed(log_p, margins, weights):
    """The mean log-likelihood of a mixture of models, and the margin of it.

    A model counts by its share of the rows, which is the derivative with respect to its ln Z.
    Errors of different models are independent.
    """
    kept = weights > 0
    joint = log_p[kept] + np.log(weights[kept])[:, np.newaxis]
    total = logsumexp(joint, axis=0)
    shares = np.exp(joint - total).mean(axis=1)
    margin = np.linalg.norm(shares * margins[kept])
    return float(total.mean() + np.sign(margins.sum()) * margin)


def known(valid, test, seconds):
    """The results of a model whose likelihood is exact."""
    return valid, test, test, np.nan, np.nan, np.nan, seconds


# Our estimators.


def fitted(make, settings, phases, X, seed):
    """A fit, and its seconds; phases are settings for one fit after another."""
    model = make(**settings)
    names = model.get_params()
    common = {"random_state": seed, "n_jobs": 1}
    model.set_params(**{name: value for name, value in common.items() if name in names})
    X = X.astype(np.float32 if make in RBMS else np.int8)
    seconds = 0.0
    for phase in phases or [{}]:
        if phases:
            model.set_params(warm_start=True, **phase)
        seconds += timed(model.fit, X)[1]
    return model, seconds


def recipe(members, seed, train, valid, test, seconds):
    found = [fitted(*member, train, 100 * k + seed) for k, member in enumerate(members)]
    models, each = zip(*found, strict=True)
    return judged(models, valid, test, sum(each))


# Peers: functions of the rows and of what the default RBM took.


def tree(train, valid, test, seconds):
    value, seconds = timed(chow_liu, train, test)
    return known(chow_liu(train, valid), value, seconds)


def products(train, valid, test, seconds):
    return known(independent(train, valid), *timed(independent, train, test))


def by_validation(make, what, grid, share, train, valid, test, seconds):
    """The best by the validation rows, along a grid until two settings in a row are no better."""
    best, worse = (-np.inf, None, 0.0), 0
    for setting in grid:
        if setting > len(train) // share:
            continue
        if worse == 2:
            break
        score, seconds = timed(make, train, valid, setting)
        value = score(valid)
        print(f"  {setting} {what}: validation {value:.3f}, {seconds:.0f} s", flush=True)
        worse = 0 if value > best[0] else worse + 1
        best = max(best, (value, score, seconds), key=lambda found: found[0])
    value, score, seconds = best
    return known(value, score(test), seconds)


def bernoulli_mixture(train, valid, n_components):
    return BernoulliMixture(n_components, seed=0).fit(train, valid).score


def circuits(train, valid, n_rows):
    """Those that are not split any more at so many rows."""
    rows = random_circuits(train, 0, n_rows)
    return lambda X: float(rows(X).mean())


def continuous(train, valid, test, seconds):
    """A continuous mixture of as many epochs as the seconds allow."""
    learn = partial(continuous_mixture, train, valid, 0)
    n_epochs = int(seconds / timed(learn, 1)[1])
    rows, seconds = timed(learn, max(1, n_epochs))
    return known(float(rows(valid).mean()), float(rows(test).mean()), seconds)


def bernoulli_rbm(train, valid, test, seconds):
    """scikit-learn's RBM: rate and batch size by the validation rows."""
    X, found = train.astype(np.float32), []
    for rate, batch_size in PEER_RATES:
        peer = BernoulliRBMPeer(X, PEER_UNITS, learning_rate=rate, batch_size=batch_size, seed=0)
        _, spent = peer.train(seconds)
        try:
            model = as_sdcp_rbm(peer.parameters(), X)
            found.append(judged([model], valid, test, spent))
        except ValueError as error:  # a machine that has diverged
            print(f"  rate {rate}, batches of {batch_size}: {error}")
    return max(found, key=lambda figures: figures[0])


PEERS = {
    "independent columns": products,
    "Chow-Liu tree": tree,
    "mixture of Bernoullis": partial(
        by_validation, bernoulli_mixture, "components", N_BERNOULLI, 4
    ),
    "random circuits (deeprob-kit)": partial(by_validation, circuits, "rows", CIRCUIT_ROWS, 2),
    "continuous mixture (spflow)": continuous,
    "BernoulliRBM": bernoulli_rbm,
}


def fits_of(name, part, n_columns, n_seeds):
    """The name, the seed and the function of each fit. Peers have one seed."""
    if part == "peers":
        return [(model, 0, make) for model, make in PEERS.items()]
    if part == "validated":
        recipes = VALIDATED.get(name, {})
    else:
        ours = [*RBMS, FVBMPseudoLikelihood] + [FSLLDensity] * (n_columns <= FSLL_COLUMNS)
        recipes = {kind.__name__: [(kind, {}, [])] for kind in ours}
    return [
        (model, seed, partial(recipe, members, seed))
        for model, members in recipes.items()
        # Where nothing is drawn at random, one seed is all.
        for seed in range(n_seeds if any(kind in RBMS for kind, *_ in members) else 1)
    ]


def fit_set(name, args):
    """Make the fits of a set that the table does not have."""
    parts = load_density(name, args.data)
    for part in args.parts:
        for model, seed, make in fits_of(name, part, parts[0].shape[1], args.seeds):
            key = (name, part, model, seed)
            if key in fits_in(args.path)[KEY].itertuples(index=False, name=None):
                continue
            try:
                figures = make(*parts, seconds_of_default(name, args.path))
            except ImportError as error:
                print(f"{name}, {model} skipped: {error}", flush=True)
                continue
            keep(args.path, key, figures)


def seconds_of_default(name, path):
    """What an RBM of another library is given."""
    default = chosen(means_in(path), name, ["default"], "SDCPRBM")
    return PEER_SECONDS if default is None else default.seconds


# Of HCLT, Liu and Van den Broeck (2021), NeurIPS: the means of five runs in the authors' repository
# (UCLA-StarAI/Tractable-PC-Regularization) at the best validation epoch.
PUBLISHED = RESULTS / "twenty_published.csv"


def published(name):
    """The likelihood of HCLT on a set, or None."""
    return dict(read_table(PUBLISHED)[1]).get(SETS[name])


def as_number(figure):
    return float(figure.replace("−", "-"))


# Tables.


def fits_in(path):
    """The table of fits."""
    if path.is_file():
        return pd.read_csv(path)
    return pd.DataFrame(columns=[*KEY, *FIGURES]).astype(dict.fromkeys(FIGURES, float))


def keep(path, key, figures):
    """Add a row to the table of fits."""
    row = [*key, *(f"{value:.5g}" for value in figures)]
    print(*row, flush=True)
    # Read once more: another process may have added a row.
    rows = read_table(path)[1] if path.is_file() else []
    save_table(path, [*KEY, *FIGURES], [*rows, row], at_once=True)


def means_in(path):
    """Means over the seeds by set, those of the models with the highest low end first."""
    fits = fits_in(path).groupby(KEY[:3], sort=False)
    spread = (fits["low"].max() - fits["low"].min()).where(fits.size() > 1)
    found = fits[FIGURES].mean().assign(seeds=fits.size(), range=spread).reset_index()
    found = found.sort_values("low", ascending=False, kind="stable")
    return found.sort_values("set", key=lambda names: names.map([*SETS].index), kind="stable")


def chosen(found, name, parts, end=""):
    """The model of these parts with the best validation rows, or None."""
    of_set = found["set"].eq(name) & found["part"].isin(parts) & found["model"].str.endswith(end)
    return found.loc[found["valid"][of_set].idxmax()] if of_set.any() else None


def bracket(fit):
    """Text of both ends: one figure where they agree."""
    digits = 3 if abs(fit.low) < 10 else 2
    if fit.high - fit.low < 0.6 * 10.0**-digits:
        return minus(f"{fit.low:.{digits}f}")
    return minus(f"{fit.low:.{digits}f} to {fit.high:.{digits}f}")


def duration(fit):
    return f"{fit.seconds:.1f}" if fit.seconds < 10 else f"{fit.seconds:.0f}"


def known_or_not(value, digits):
    return minus(f"{value:.{digits}f}") if np.isfinite(value) else ""


def minus(text):
    return text.replace("-", "−")


SUMMARY = ["set", "HCLT (2021)", "best peer here", "ours by default", "best of ours"]


def summary(found):
    """A row a set: HCLT, and the best of peers and of ours, chosen on validation rows."""
    rows = []
    for name in found["set"].unique():
        row = [SETS[name], published(name) or ""]
        for parts in (("peers",), ("default",), ("default", "validated")):
            best = chosen(found, name, parts)
            row.append(f"{bracket(best)}, {best.model}, {duration(best)} s" if best is not None
                       else "")  # fmt: skip
        rows.append(row)
    return rows


ALL = ["set", "model", "part", "test", "ladder", "AIS", "chains", "validation", "seconds", "seeds",
       "range"]  # fmt: skip


def all_fits(found):
    """A row a model."""
    return [
        [SETS[fit.set], fit.model, fit.part, bracket(fit), known_or_not(fit.ladder, 2),
         known_or_not(fit.ais, 2), known_or_not(fit.chains, 0), known_or_not(fit.valid, 2),
         duration(fit), fit.seeds, known_or_not(fit.range, 2)]
        for fit in found.itertuples()
    ]  # fmt: skip


def tell(args):
    """Print and keep the tables, and draw the picture."""
    found = means_in(args.path)
    for stem, header, rows in [
        ("twenty_summary", SUMMARY, summary(found)),
        ("twenty_fits", ALL, all_fits(found)),
    ]:
        print_table(header, rows)
        save_table(args.output / f"{stem}.csv", header, rows)
    if len(found):
        draw(found, args.output / "twenty.png")


# The picture.

# Label, colour, marker, part and end of the name of a model. Of several, the one with the best
# validation rows is shown. What is grey may lie off the picture.
OTHERS = "#777777"
SHOWN = [
    ("SDCPRBM by default", "#0f5c8e", "o", ["default"], "SDCPRBM"),
    ("network by default", "#5b9bc8", "s", ["default"], "FVBMPseudoLikelihood"),
    ("best of ours", "#f0a04b", "D", ["default", "validated"], ""),
    ("circuits run here", OTHERS, "^", ["peers"], "(deeprob-kit)"),
    ("BernoulliRBM", OTHERS, "v", ["peers"], "BernoulliRBM"),
    ("mixture of Bernoullis", OTHERS, "x", ["peers"], "mixture of Bernoullis"),
    ("Chow–Liu tree", OTHERS, "+", ["peers"], "Chow-Liu tree"),
]


def draw(found, path):
    """Nats above HCLT, a strip for each set."""
    names = [name for name in found["set"].unique() if published(name)]
    fig, axes = plt.subplots(
        len(names), 1, figsize=(7, 0.5 + 0.78 * len(names)), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[:, 0], names, strict=True):
        draw_set(ax, found, name)
    handles = [
        plt.Line2D([], [], color=color, marker=marker, ls="", ms=8, label=label)
        for label, color, marker, *_ in SHOWN
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=11)
    axes[-1, 0].set_xlabel("nats per row above HCLT (line)", fontsize=11)
    fig.savefig(unfinished(path), dpi=130)
    plt.close(fig)


def draw_set(ax, found, name):
    """A strip: brackets of ours and figures of others, less that of HCLT."""
    best = as_number(published(name))
    shown = []
    for _, color, marker, parts, end in SHOWN:
        fit = chosen(found, name, parts, end)
        if fit is not None:
            shown.append((fit.low - best, fit.high - best, color, marker))
    # What is far below would squeeze the rest.
    near = [low for low, _, color, _ in shown if color != OTHERS]
    right = max([high for _, high, *_ in shown] + [0.0])
    left = min([*near, -0.2 * max(right, 0.01)])
    width = right - left
    left, right = left - 0.06 * width, right + 0.08 * width
    ax.axvline(0, color="k", lw=1)
    for low, high, color, marker in shown:
        if high < left:
            ax.annotate("", (left, 0), (left + 0.03 * width, 0),
                        arrowprops=dict(arrowstyle="->", color=color, lw=1.5))  # fmt: skip
            continue
        ax.plot([low, high], [0, 0], color=color, lw=3, solid_capstyle="butt")
        ax.plot(low, 0, marker, color=color, ms=8)
    ax.set(xlim=(left, right), ylim=(-1, 1), yticks=[])
    ax.set_ylabel(SETS[name], rotation=0, ha="right", va="center", fontsize=12)
    ax.xaxis.set_major_locator(plt.MaxNLocator(5))
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)


@script
def main():
    parser = make_parser(__doc__, seeds=3, sets=SETS)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    args.path = args.output / "twenty.csv"
    warnings.filterwarnings("ignore", category=UserWarning)
    with threadpool_limits(1), report(args.output / "twenty.txt", __doc__.split("\n")[0]):
        for name in args.sets:
            try:
                fit_set(name, args)
            except MissingData as error:
                print(f"{name} skipped: {error}")
        print()
        tell(args)
