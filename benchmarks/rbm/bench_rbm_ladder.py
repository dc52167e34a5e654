"""The likelihood of RBMs by a ladder of models: in training, after it, and as a source of samples.

Parts, each a table of its own:

- ``tracking``: the log-likelihood that a fit reports beside annealed importance sampling at
  ``--temperatures`` temperatures on the same rows, and what following it costs: seconds of the
  processor of a fit with it, divided by those of one without it.
- ``planted``: ln Z of RBMs of 12 × 12 units with two to five planted modes, of which the exact
  value is known: errors of the ladder and of annealing that makes as many transitions.
- ``ising``: RBMs that learn samples of the Ising model on the periodic 7 × 7 lattice, of which the
  log-probability of each row is known: with chains from the rows; and with those of the ladder,
  begun at the network of the pairs that EBIC selects.
- ``pumsb``: pumsb_star with ordinary chains and with those of the ladder, several seeds; minutes.
- ``d2c3``: three clusters in two dimensions of 1,000 bits: where rows and samples lie, those of
  ordinary chains of a model trained by such, and those of the ladder.
- ``peers``: ln Z of the same parameters by the ladder and by `rbms`, where it is installed.
"""

import time
from functools import partial
from importlib.util import find_spec

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _baselines import as_sdcp_rbm
from _common import (
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    timed,
    unconverged_is_fine,
)
from _data import load_bits, load_clusters, load_density, load_ising
from sklearn.cluster import KMeans

from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood
from sklearn_boltz._random import Stream
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.model._enumeration import exact_log_partition
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._annealing import annealed_importance_sampling
from sklearn_boltz.restricted.sampling._climb import ladder_estimate, ladder_to
from sklearn_boltz.restricted.training._rows import divided
from sklearn_boltz.units import Bernoulli

# ln Z of the Ising model on the periodic 7 × 7 lattice, exact by transfer matrices.
ISING = {0.2: 35.992579, 0.4: 43.447619, 0.5: 50.957647, 0.6: 59.989710}
TRACKED = {"accidents": 200, "plants": 100, "mnist": 500}


def fitted(X, model):
    """The model after a fit, and seconds of the processor."""
    start = time.process_time()
    with unconverged_is_fine():
        model.fit(X)
    return model, time.process_time() - start


def slowly_annealed(model, n_temperatures=20_000, n_chains=200):
    """ln Z by annealed importance sampling."""
    return model.log_partition(
        "ais", n_temperatures=n_temperatures, n_chains=n_chains, random_state=0, n_jobs=1
    )


def tracking(args):
    """What is reported, and what that costs."""
    rows = []
    for name in args.sets:
        n_hidden = TRACKED[name]
        X = load_bits(name, args.data)[0] if name == "mnist" else load_density(name, args.data)[0]
        X = X.astype(np.float32)
        make = partial(SDCPRBM, n_hidden, max_iter=10, random_state=0, n_jobs=1)
        seconds, plain = [], []
        for _ in range(args.repeats):
            plain.append(fitted(X, make(track_likelihood=False))[1])
            model, needed = fitted(X, make())
            seconds.append(needed)
        estimate = slowly_annealed(model, args.temperatures, 100)
        # Of the rows that the fit looks at.
        last = model.history_["log_likelihood"][-1]
        tracked_constant = _reported_constant(model, X)
        difference = estimate.value - tracked_constant
        ratio = min(seconds) / min(plain)
        rows.append([
            name, n_hidden, f"{last:.2f}", f"{last - difference:.2f}",
            f"{model.history_['log_likelihood_std_err'][-1]:.2f}", f"{estimate.ess:.0f}",
            f"{ratio:.3f}",
        ])  # fmt: skip
        error = abs(difference)
        print_check(f"{name}: |tracked − AIS|", "< 0.3", f"{error:.2f}", error < 0.3)
        print_check(f"{name}: time, untracked = 1", "< 1.15", f"{ratio:.3f}", ratio < 1.15)
    header = ["set", "units", "tracked", "by AIS", "its error", "chains of 100", "time"]
    print_table(header, rows)
    print()


def _reported_constant(model, X):
    """ln Z that the last figure of the history rests on."""
    train, valid = divided(len(X), 0, model._training.evaluation_seed)
    monitor = model._monitor(model._training, X, train, valid)
    free_energy = model.free_energy(monitor.likelihoods.train.rows).mean()
    return -free_energy - model.history_["log_likelihood"][-1]


def planted_model(n_modes, barrier, rng, n=12):
    """An RBM in which random patterns are probable, and what lies between is not.

    Each hidden unit stands for a pattern: it is on where the visible units agree with it.
    """
    patterns = rng.integers(2, size=(n_modes, n))
    of_unit = patterns[np.arange(n) % n_modes]
    strength = barrier / n * (n_modes / 2)
    weights = strength * (2 * of_unit - 1.0)
    hidden = -strength * (of_unit.sum(axis=1) - n / 4)
    visible = rng.normal(scale=0.3, size=n)
    return Model(np.asfortranarray(weights), Bernoulli(visible), Bernoulli(hidden))


def planted(args):
    """Errors of ln Z at the same cost."""
    rng, errors = np.random.default_rng(0), {"ladder": [], "AIS": []}
    with Workers(1) as workers:
        for k in range(args.runs):
            model = planted_model(2 + k % 4, rng.uniform(5, 20), rng)
            base, exact = Bernoulli(np.zeros(12)), exact_log_partition(model)
            ladder = ladder_to(model, base, None, 100, Stream(k), workers)
            found = ladder_estimate(ladder, 0.02, 1000, workers)
            errors["ladder"].append(found.value - exact)
            # A round is a transition of each rung, and log-weights at two places.
            n_temperatures = int(ladder.n_rounds * len(ladder) * 2)
            betas = np.linspace(0, 1, n_temperatures + 1)
            found = annealed_importance_sampling(model, base, betas, 100, Stream(k), workers)
            errors["AIS"].append(found.value - exact)
    errors = {name: np.abs(values) for name, values in errors.items()}
    rows = [
        [name, f"{np.median(values):.4f}", f"{np.quantile(values, 0.95):.4f}",
         f"{values.max():.4f}", int((values < 0.05).sum()), int((values > 1).sum())]
        for name, values in errors.items()
    ]  # fmt: skip
    print(f"{args.runs} RBMs of 12 × 12 units with two to five planted modes")
    print_table(["|error|", "median", ".95 quantile", "largest", "< .05", "> 1"], rows)
    share = (errors["ladder"] < 0.05).mean()
    print_check("ladder: share of errors below .05", ">= 0.95", f"{share:.2f}", share >= 0.95)
    print()


def lattice_network(X):
    """The pairs that EBIC selects with γ = 1, fitted without a penalty; and the seconds."""
    selected, seconds = fitted(X, FVBMPseudoLikelihood(penalty="l1", alpha="ebic", ebic_gamma=1.0))
    network, more = fitted(X, FVBMPseudoLikelihood(edges=selected.coupling_ != 0))
    return network, seconds + more


def ising(args):
    """Likelihoods beside the truth, and shares of the two modes."""
    rows = []
    for beta, samples in load_ising(args.data).items():
        samples = samples[np.random.default_rng(0).permutation(len(samples))]
        lattice = samples.reshape(-1, 7, 7)
        neighbours = np.roll(lattice, 1, 1) + np.roll(lattice, 1, 2)
        log_p = beta * (lattice * neighbours).sum(axis=(1, 2)) - ISING[beta]
        X = ((samples + 1) / 2).astype(np.float32)
        train, test, truth = X[:8000], X[8000:], log_p[8000:].mean()
        network, seconds_of_network = lattice_network(train)
        n_pairs = np.count_nonzero(np.triu(network.coupling_))
        common = {"n_inner": 1, "n_gibbs": 2, "batch_size": 1000, "random_state": 0, "n_jobs": 1}
        models = {
            "chains from the rows": SDCPRBM(n_pairs, **common),
            "network": SDCPRBM(n_pairs, init=network, max_iter=0, **common),
            "ladder": SDCPRBM(n_pairs, init=network, sampler="tempered", tempered_fraction=1.0,
                              **common),
        }  # fmt: skip
        for name, model in models.items():
            seconds = 0 if name.startswith("chains") else seconds_of_network
            if name != "network":
                model.set_params(max_iter=args.epochs // 2)
            seconds += fitted(train, model)[1]
            if name != "network":
                model.set_params(warm_start=True, learning_rate=0.02)
                seconds += fitted(train, model)[1]
            free_energy = model.free_energy(test).mean()
            with unconverged_is_fine():
                own = model.log_partition(random_state=0, n_jobs=1)
                exhaustive = slowly_annealed(model, 5000, n_chains=2000)
            likelihood = -free_energy - exhaustive.value
            up = (model.sample(2000, init="ladder", random_state=0).mean(axis=1) > 0.5).mean()
            rows.append([
                beta, name, f"{truth:.3f}", f"{likelihood:.3f}", f"{exhaustive.ess:.0f}",
                f"{-free_energy - own.value:.3f}", own.method, f"{(test.mean(1) > 0.5).mean():.3f}",
                f"{up:.3f}", f"{seconds:.0f}",
            ])  # fmt: skip
            if name == "ladder":
                least = truth - (0.15 if beta <= 0.5 else 0.2)
                what = f"β = {beta}: log-likelihood"
                print_check(what, f">= {least:.3f}", f"{likelihood:.3f}", likelihood >= least)
                gap = abs(own.value - exhaustive.value)
                print_check(f"β = {beta}: its own estimate", "< 0.05", f"{gap:.3f}", gap < 0.05)
    header = ["β", "training", "truth", "test", "chains", "own", "by", "rows up", "samples up", "s"]
    print_table(header, rows)
    print()


def pumsb(args):
    """Test log-likelihoods with the two sources of the negative phase."""
    X, _, test = (part.astype(np.float32) for part in load_density("pumsb_star", args.data))
    # Most is learned at the first rate; the others take out modes that do not last.
    tempered = {0.02: 175, 0.006: 85, 0.002: 40}
    common = {"learning_rate_schedule": "constant", "early_stopping": False, "n_jobs": 1}
    settings = {
        "gibbs": {"weight_decay": 0.0},
        "tempered": {"weight_decay": 5e-4, "tempered_fraction": 0.2, "max_rungs": 60},
    }
    runs = [("gibbs", {0.05: 40}, 0)]
    runs += [("tempered", tempered, seed) for seed in range(args.seeds)]
    rows = []
    for sampler, rates, seed in runs:
        model = SDCPRBM(200, sampler=sampler, random_state=seed, **settings[sampler], **common)
        seconds = 0
        for rate, n_epochs in rates.items():
            model.set_params(warm_start=seconds > 0, learning_rate=rate, max_iter=n_epochs)
            seconds += fitted(X, model)[1]
        free_energy = model.free_energy(test).mean()
        with unconverged_is_fine():
            own = model.log_partition(random_state=0, n_jobs=1)
            slow = slowly_annealed(model, 8000)
        ends = max(own.high, slow.value) - max(own.low, slow.low)
        best = -free_energy - max(own.value, slow.value)
        rows.append([
            sampler, seed, f"{best:.2f}", f"{-free_energy - own.value:.2f}", own.method,
            own.trusted, f"{-free_energy - slow.value:.2f}", f"{slow.ess:.0f}", f"{ends:.2f}",
            f"{seconds:.0f}",
        ])  # fmt: skip
        if sampler == "gibbs":
            print_check("gibbs: trusted", "False", own.trusted, not own.trusted)
            continue
        print_check(f"seed {seed}: test", ">= -22.8", f"{best:.2f}", best >= -22.8)
        print_check(f"seed {seed}: ends apart", "< 1", f"{ends:.2f}", ends < 1)
        print_check(f"seed {seed}: seconds", "< 600", f"{seconds:.0f}", seconds < 600)
    header = [
        "sampler", "seed", "test", "own", "by", "trusted", "AIS", "chains of 200", "ends", "s"
    ]  # fmt: skip
    print_table(header, rows)
    print()


def d2c3(args):
    """Rows and samples along the two directions of the largest variance."""
    X = load_clusters(args.data).astype(np.float32)
    centre = X.mean(axis=0)
    _, _, directions = np.linalg.svd(X[:2000] - centre, full_matrices=False)
    samples, seconds = {"rows": X}, {}
    for sampler, rate in (("gibbs", 0.05), ("tempered", 0.01)):
        model = SDCPRBM(
            100, sampler=sampler, learning_rate=rate, max_iter=15, random_state=0, n_jobs=1
        )
        seconds[sampler] = fitted(X, model)[1]
        init = "ladder" if sampler == "tempered" else None
        samples[sampler] = model.sample(1000, init=init, n_steps=100, random_state=0)
    fig, axes = plt.subplots(
        1, 3, figsize=(11, 3.6), layout="constrained", sharex=True, sharey=True
    )
    modes = KMeans(3, n_init=3, random_state=0).fit((X - centre) @ directions[:2].T)
    radius = modes.transform((X - centre) @ directions[:2].T).min(axis=1).max()
    shares = {}
    for ax, (name, rows) in zip(axes, samples.items(), strict=True):
        place = (rows - centre) @ directions[:2].T
        distances = modes.transform(place)
        # Those far from all modes of the rows count as a fourth one.
        mode = np.where(distances.min(axis=1) > radius, 3, distances.argmin(axis=1))
        shares[name] = np.bincount(mode, minlength=4) / len(mode)
        ax.hist2d(*place.T, bins=60, cmap="viridis", cmin=1)
        ax.set(title={"gibbs": "ordinary chains", "tempered": "ladder"}.get(name, name))
    fig.savefig(args.output / "rbm_ladder_d2c3.png", dpi=110)
    table = [[name, *(f"{share:.3f}" for share in share_of)] for name, share_of in shares.items()]
    print_table(["shares", "mode 1", "mode 2", "mode 3", "elsewhere"], table)
    for name in ("gibbs", "tempered"):
        distance = 0.5 * np.abs(shares[name] - shares["rows"]).sum()
        print_check(
            f"{name}: shares of the modes off by", "< 0.1", f"{distance:.2f}", distance < 0.1
        )
    print()


def peers(args):
    """ln Z and seconds, of models with a known ln Z and of a trained one."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.partition_function.ais import compute_partition_function_ais
    from rbms.sampling.pt import pt_sampling

    torch.set_num_threads(1)
    rng, rows, failed = np.random.default_rng(0), [], ""
    models = {}
    for barrier in (10, 20):
        model = as_fitted(planted_model(3, barrier, rng))
        models[f"3 modes, barrier {barrier}"] = model, model.log_partition("exact").value
    X = load_density("plants", args.data)[0].astype(np.float32)
    model, _ = fitted(X, SDCPRBM(100, max_iter=20, random_state=0, n_jobs=1))
    models["plants, 100 units"] = model, slowly_annealed(model).value
    for name, (model, known) in models.items():
        theirs = BBRBM(*(
            torch.from_numpy(np.ascontiguousarray(x, np.float32))
            for x in (model.components_.T, model.intercept_visible_, model.intercept_hidden_)
        ))  # fmt: skip
        ours, seconds = timed(
            lambda model=model: model.log_partition("ladder", random_state=0, n_jobs=1)
        )
        rows.append([name, "ladder", f"{ours.value:.3f}", f"{ours.value - known:+.3f}",
                     f"{ours.std_err:.3f}", f"{seconds:.2f}", "1"])  # fmt: skip
        for n_temperatures in (1_000, 10_000):
            torch.manual_seed(0)
            value, needed = timed(
                partial(compute_partition_function_ais, 1000, n_temperatures, theirs)
            )
            rows.append([name, f"rbms AIS, {n_temperatures:,}", f"{value:.3f}",
                         f"{value - known:+.3f}", "", f"{needed:.2f}",
                         f"{needed / seconds:.1f}"])  # fmt: skip
        try:
            pt_sampling(10, 1, 0.3, 100, theirs, "", False)
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
    print_table(["model", "method", "ln Z", "error", "std. err.", "s", "ratio"], rows)
    print("Known are exact values, and of plants AIS with 20,000 temperatures and 200 chains.")
    print("The parallel tempering of rbms " + (f"fails: {failed}" if failed else "runs."))


def as_fitted(model):
    """An estimator with the parameters of a model."""
    parameters = model.weights, model.visible.intercept, model.hidden.intercept
    rows = np.random.default_rng(0).integers(2, size=(50, len(model.visible))).astype(float)
    return as_sdcp_rbm(parameters, rows)


PARTS = {f.__name__: f for f in (tracking, planted, ising, pumsb, d2c3, peers)}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=1, help="fits of each kind, of `tracking`")
    parser.add_argument("--sets", nargs="+", choices=list(TRACKED), default=list(TRACKED))
    parser.add_argument("--temperatures", type=int, default=20_000, help="of AIS, of `tracking`")
    parser.add_argument("--runs", type=int, default=100, help="models of `planted`")
    parser.add_argument("--epochs", type=int, default=100, help="of `ising`")
    parser.add_argument("--seeds", type=int, default=3, help="of `pumsb`")
    args = parser.parse_args()
    if "peers" in args.parts and find_spec("rbms") is None:
        print("peers skipped: rbms is not installed")
        args.parts = [name for name in args.parts if name != "peers"]
    for name in args.parts:
        with report(args.output / f"rbm_ladder_{name}.txt", f"Ladder of models: {name}"):
            PARTS[name](args)


if __name__ == "__main__":
    run_script(main)
