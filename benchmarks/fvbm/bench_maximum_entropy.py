"""Maximum entropy: the likelihood of networks of neurons against their pseudo-likelihood.

Rows are shuffled; half of them train, of the others a quarter validates and the rest tests. The
penalty of the pseudo-likelihood is the best of a grid by the validation rows, that of the
likelihood is 0.0001; "P(K)" is with a potential of the number of ones, where it is exact. How far
the moments are from those of the training rows is measured with 400,000 samples of the model,
new simulations. Of 15 neurons also the exact maximum against a general optimiser with a table of
all states in NumPy, and against ConIII if it is installed. A report for each set.

Needs the data sets in --data.
"""

import itertools
import warnings

import _path  # noqa: F401
import numpy as np
from _baselines import independent
from _common import make_parser, print_check, print_table, report, run_script, timed
from _data import load_density, load_spikes
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FVBMPseudoLikelihood

ALPHAS = {
    "pseudo-likelihood": (1e-3, 0.01, 0.05, 0.1, 0.15, 0.3),
    "likelihood": (1e-4,),
    "likelihood and P(K)": (1e-4,),
}
# How near to those of the data the moments are to be, in standard errors, and ln Z, in nats.
MOMENT_TOL, LOG_PARTITION_TOL = 0.25, 0.004
EXACT = 25  # columns
N_DRAWS, N_SAMPLES, N_STEPS = 4, 100_000, 40


def split(X):
    """Training, validation and test rows."""
    order = np.random.default_rng(0).permutation(len(X))
    half, rest = len(X) // 2, len(X) // 8
    return X[order[:half]], X[order[half : half + rest]], X[order[half + rest :]]


def moments(model, train):
    """The largest differences of means and of correlations from those of the training rows.

    Of conditional means given the other columns, which have less noise than the samples.
    """
    d, total = train.shape[1], N_DRAWS * N_SAMPLES
    means, products = np.zeros(d), np.zeros((d, d))
    for seed in range(N_DRAWS):
        sample = model.sample(N_SAMPLES, random_state=seed, n_steps=N_STEPS).astype(np.float32)
        conditional = model.transform(sample)
        means += conditional.sum(axis=0) / total
        products += sample.T @ conditional / total
    covariance = (products + products.T) / 2 - np.outer(means, means)
    deviation = np.sqrt(means * (1 - means))
    pairs = np.triu_indices(d, 1)
    correlations = (covariance / np.outer(deviation, deviation))[pairs]
    off = np.abs(correlations - np.corrcoef(train.T)[pairs]).max()
    return np.abs(means - train.mean(axis=0)).max(), off


def fitted(name, alphas, train, valid):
    """The model whose validation rows are likeliest, its penalty, and seconds of its fit."""
    best = None
    for alpha in alphas:
        objective, _, counts = name.partition(" and ")
        model = FVBMPseudoLikelihood(
            objective=objective, alpha=alpha, count_potential=bool(counts),
            moment_tol=MOMENT_TOL, random_state=0,
        )  # fmt: skip
        _, seconds = timed(model.fit, train)
        score = model.score(valid)
        print(f"  {name}, alpha = {alpha:g}: validation {score:.4f}, {seconds:.1f} s, "
              f"{model.n_iter_} iterations, converged: {model.converged_}", flush=True)  # fmt: skip
        if best is None or score > best[0]:
            best = score, model, alpha, seconds
    return best[1:]


def compare(name, train, valid, test):
    """Held-out likelihood and moments of both objectives."""
    print(f"{name}: {train.shape[1]} columns, {len(train)} training, {len(valid)} validation and "
          f"{len(test)} test rows")  # fmt: skip
    alone, rows, found = independent(train, test), [], {}
    rows.append(["independent", "", f"{alone:.4f}", "", "", "", ""])
    for objective, alphas in ALPHAS.items():
        if "P(K)" in objective and train.shape[1] > EXACT:
            continue  # by chains, many minutes
        model, alpha, seconds = fitted(objective, alphas, train, valid)
        found_z = model.log_partition(tol=LOG_PARTITION_TOL, max_rounds=20_000, random_state=0)
        score, error = -model.free_energy(test).mean() - found_z.value, found_z.std_err
        means, correlations = moments(model, train)
        found[objective] = score, error, means, correlations
        rows.append(
            [objective, f"{alpha:g}", f"{score:.4f}", f"{error:.4f}", f"{means:.4f}",
             f"{correlations:.4f}", f"{seconds:.1f}"]
        )  # fmt: skip
    head = ["model", "alpha", "test log-likelihood", "error of ln Z"]
    print_table([*head, "means", "correlations", "seconds"], rows)
    print("(means, correlations: largest difference from the training rows)")
    (score, error, means, correlations), other = found["likelihood"], found["pseudo-likelihood"]
    print_check("above independent", f"> {alone:.4f}", f"{score:.4f}", score - 2 * error > alone)
    if name == "spikes50":
        better = score - other[0] > 2 * np.hypot(error, other[1])
        print_check("above the best pseudo-likelihood", f"> {other[0]:.4f}", f"{score:.4f}", better)
        print_check("means", "< 0.005", f"{means:.4f}", means < 0.005)
        print_check("correlations", "< 0.01", f"{correlations:.4f}", correlations < 0.01)
    print()


def by_table(X, alpha):
    """The maximum by L-BFGS with a table of all states; -> its mean log-likelihood."""
    d = X.shape[1]
    j, k = np.triu_indices(d, 1)
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    terms = np.hstack([states, states[:, j] * states[:, k]])
    spins = 2.0 * X - 1
    data = np.hstack([spins, spins[:, j] * spins[:, k]]).mean(axis=0)

    def negative(theta):
        weights = terms @ theta
        log_z = logsumexp(weights)
        gradient = data - np.exp(weights - log_z) @ terms
        gradient[d:] -= alpha * theta[d:]
        penalty = alpha / 2 * (theta[d:] ** 2).sum()
        return -(theta @ data - log_z - penalty), -gradient

    found = minimize(
        negative, np.zeros(len(data)), jac=True, method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-8},
    )  # fmt: skip
    return -found.fun


def by_coniii(X):
    """Seconds of ConIII, by a table of all states, and how far its moments are off; or None."""
    try:
        from coniii.solvers import Enumerate
        from coniii.utils import pair_corr
    except ImportError:
        return None
    spins = 2 * X.astype(int) - 1
    solver = Enumerate(spins)
    data = pair_corr(spins, concat=True)
    _, seconds = timed(solver.solve, constraints=data)
    return seconds, np.abs(solver.model.calc_observables(solver.multipliers) - data).max()


def exact(X, alpha):
    """15 neurons: the same maximum as others find, and how long it takes."""
    model = FVBMPseudoLikelihood(objective="likelihood", alpha=alpha, tol=1e-8)
    seconds = min(timed(model.fit, X)[1] for _ in range(5))
    value, other_seconds = timed(by_table, X, alpha)
    gap = abs(model.history_["log_likelihood"][-1] - value)
    spins = 2.0 * X - 1
    j, k = np.triu_indices(X.shape[1], 1)
    tables = [model.marginal([a, b]) for a, b in zip(j, k, strict=True)]
    pairs = np.array([t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0] for t in tables])
    data = (spins[:, j] * spins[:, k]).mean(axis=0)
    print(f"spikes15, all {len(X)} rows, alpha = {alpha:g}: exact, {seconds:.3f} s; "
          f"L-BFGS with a table in NumPy {other_seconds:.1f} s, "
          f"{other_seconds / seconds:.0f} times as long")  # fmt: skip
    print_check("same maximum, nats a row", "< 1e-7", f"{gap:.1e}", gap < 1e-7)
    if alpha == 0:
        print_check("moments", "< 1e-6", f"{np.abs(pairs - data).max():.1e}",
                    np.abs(pairs - data).max() < 1e-6)  # fmt: skip
        peer = by_coniii(X)
        if peer is not None:
            print(f"ConIII: {peer[0]:.1f} s, {peer[0] / seconds:.0f} times as long; "
                  f"its moments are off by {peer[1]:.1e}")  # fmt: skip
    print()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["spikes15", "spikes50", "bnetflix"])
    args = parser.parse_args()
    spikes = load_spikes(args.data)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    for name in args.sets:
        with report(args.output / f"maximum_entropy_{name}.txt", "Maximum entropy"):
            is_spikes = name in spikes
            compare(name, *(split(spikes[name]) if is_spikes else load_density(name, args.data)))
            if name == "spikes15":
                exact(spikes[name], 0.0)
                exact(spikes[name], 1e-3)


if __name__ == "__main__":
    run_script(main)
