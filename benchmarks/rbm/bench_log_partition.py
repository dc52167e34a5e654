"""How often the ends of ``log_partition()`` contain ln Z, and whether `trusted` can be trusted.

Machines whose ln Z is known, although the default estimates it by chains:

- trained: 21 hidden units, on parts of the digits, of Plants and of Accidents; every second one
  without following its likelihood;
- planted: groups of equal hidden units, one for each of two to six patterns, with barriers of up to
  20 nats between them; annealing begins at the rates of rows of all patterns, or of one;
- adversarial: 14 hidden units trained on parts of the same sets, and eight equal ones added for a
  pattern far from all rows, which has 10 to 99 % of the mass behind such a barrier;
- networks: 8 to 24 columns with couplings of random signs or of patterns, by the ladder.

An estimate covers if the truth is between its ends; `trusted` is wrong where it does not.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, processor_timed, report, script
from _data import binary, load_density, load_small_digits
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood

HIGHEST_BARRIER, N_ROWS = 20, 800


def given(rows, W, b, c):
    """A machine with these parameters, whose annealing begins at the rates of some rows."""
    model = SDCPRBM(len(c), max_iter=0, random_state=0).fit(rows.astype(np.float32))
    model.components_, model.intercept_visible_, model.intercept_hidden_ = (
        np.asarray(a, np.float32) for a in (W, b, c)
    )
    return model


def log_choices(k, n):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def log_partition_of_groups(W, b, c, n_equal):
    """ln Z where each row of W stands for equal hidden units: the sum over how many are on."""
    counts = np.indices([n_equal + 1] * len(W)).reshape(len(W), -1).T
    on = np.logaddexp(0, b + counts @ W).sum(axis=1)
    return logsumexp(on + counts @ c + log_choices(counts, n_equal).sum(axis=1))


def barrier(model, one, other, rng):
    """How far the free energy rises between two rows, from bit to bit in random order."""
    order = rng.permutation(np.flatnonzero(one != other))
    way = np.tile(np.float32(one), (len(order) + 1, 1))
    for k, i in enumerate(order):
        way[k + 1 :, i] = other[i]
    F = model.free_energy(way)
    return F.max() - max(F[0], F[-1])


def trained(rows, rng, seed):
    rate, n_epochs = rng.choice([0.02, 0.05, 0.1]), int(rng.integers(20, 80))
    options = dict(learning_rate=rate, max_iter=n_epochs, track_likelihood=seed % 2 == 0)
    model = SDCPRBM(21, **options, random_state=seed).fit(rows)
    return model, model.log_partition("exact").value


def planted(rows, rng, seed):
    n_patterns, n_visible = seed % 5 + 2, int(rng.integers(24, 41))
    n_equal = -(-24 // n_patterns)
    while True:
        signs = rng.choice([-1, 1], (n_patterns, n_visible))
        W = rng.uniform(1.2, 4) / n_equal * signs
        b = -rng.uniform(0, n_equal) * W.sum(axis=0) / 2 + rng.normal(0, 0.3, n_visible)
        # A group is half on where this much more than half of its pattern is there.
        more = rng.uniform(0.05, 0.35) * n_visible
        c = -W.sum(axis=1) / 2 - abs(W[0, 0]) * more
        near = signs[rng.integers(1 if seed % 2 else n_patterns, size=300)]
        near = np.where(rng.random(near.shape) < 0.1, -near, near) > 0
        model = given(near, np.repeat(W, n_equal, axis=0), b, np.repeat(c, n_equal))
        if 1 < barrier(model, *(signs[:2] > 0), rng) < HIGHEST_BARRIER:
            return model, log_partition_of_groups(W, b, c, n_equal)


def adversarial(rows, rng, seed):
    first, k = SDCPRBM(14, max_iter=30, random_state=seed).fit(rows), np.arange(9)
    b, log_share = first.intercept_visible_.copy(), np.log(rng.uniform(0.1, 0.99))

    def excess(bias, logs):
        """ln of the share of the states in which most of the new units are on, over the wanted."""
        logs = logs + bias * k
        return logsumexp(logs[5:]) - logsumexp(logs) - log_share

    while True:
        far = rng.random(len(b)) < 0.5
        w, logs = rng.uniform(10, 50) / len(b) * (2 * far - 1), log_choices(k, 8)
        for n_on in k:  # of the new units
            first.intercept_visible_ = (b + n_on * w).astype(np.float32)
            logs[n_on] += first.log_partition("exact").value
        bias = brentq(excess, -200, 200, args=(logs,))
        W = np.vstack([first.components_, np.tile(w, (8, 1))])
        model = given(rows, W, b, np.append(first.intercept_hidden_, np.full(8, bias)))
        if 5 < barrier(model, rows[0], far, rng) < HIGHEST_BARRIER:
            return model, logsumexp(logs + bias * k)


def network(rows, rng, seed):
    d = int(rng.integers(8, 25))
    if seed % 2:
        J = rng.normal(0, rng.uniform(0.2, 1.5) / np.sqrt(d), (d, d))
    else:
        patterns = rng.choice([-1, 1], (int(rng.integers(1, 4)), d))
        J = rng.uniform(0.5, 2) / d * patterns.T @ patterns
    J = np.triu(J, 1)
    model = FVBMPseudoLikelihood.from_couplings(J + J.T, rng.normal(0, 0.2, d))
    return model, model.log_partition("exact").value


KINDS = dict(trained=trained, planted=planted, adversarial=adversarial, networks=network)


def judged(kind, rows, seed):
    """By how much the ends miss, how far they are apart, `trusted`, and seconds."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    rows = rng.permutation(rows)[:N_ROWS].astype(np.float32)
    method = "ladder" if kind == "networks" else "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, exact = KINDS[kind](rows, rng, seed)
        found, seconds = processor_timed(model.log_partition, method, random_state=seed)
    miss = max(found.low - exact, exact - found.high, 0.0)
    return miss, found.high - found.low, found.trusted, seconds


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--machines", type=int, default=30, help="of each kind")
    args = parser.parse_args()
    sets = [binary(load_small_digits()[0])]
    sets += [load_density(name, args.data)[0] for name in ("plants", "accidents")]
    with report(args.output / "log_partition.txt", "The ends of estimates of ln Z"):
        lines, missed, wrong = [], [], []
        for kind in args.kinds:
            figures = [judged(kind, sets[seed % 3], seed) for seed in range(args.machines)]
            miss, width, trusted, seconds = np.array(figures, float).T
            missed += [*(miss > 0)]
            wrong += [*(miss > 0) & (trusted > 0)]
            lines.append([
                kind, len(miss), (miss == 0).sum(), miss.max(), np.isfinite(width).sum(),
                np.median(width), trusted.sum(), sum(wrong[-len(miss) :]), seconds.mean(),
                seconds.max(),
            ])  # fmt: skip
        header = ["machines", "all", "covered", "worst miss", "finite", "median width", "trusted",
                  "of these wrong", "mean seconds", "most"]  # fmt: skip
        print_table(header, lines, ",,.2f,,.2f,.0f,,.1f,.1f")
        share, wrong = 1 - np.mean(missed), np.mean(wrong)
        print_check("truth between the ends", ">= 0.95", f"{share:.3f}", share >= 0.95)
        print_check("trusted and wrong", "< 0.02", f"{wrong:.3f}", wrong < 0.02)
