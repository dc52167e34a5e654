"""ln Z and modes of the Ising model by the ladder of temperatures, beside the exact ones.

The true couplings on the periodic 7 × 7 lattice, below whose critical temperature (β = .44 for
an infinite one) there are two modes, that plain Gibbs chains do not leave. Needs the stored samples
in --data.
"""

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, timed
from _data import load_ising

from sklearn_boltz import FVBMPseudoLikelihood

# ln Z by transfer matrix, and with it the mean log-likelihood of the stored samples.
EXACT = {
    0.2: (35.992579, -31.7974),
    0.4: (43.447619, -19.0078),
    0.5: (50.957647, -8.1532),
    0.6: (59.989710, -3.9036),
}
SIDE = 7
N_CHAINS, N_SAMPLES = 100, 4000


def lattice(beta):
    """Couplings between neighbours on the periodic lattice."""
    coupling = np.zeros((SIDE,) * 4)
    i, j = np.indices((SIDE, SIDE)).reshape(2, -1)
    for k, m in (((i + 1) % SIDE, j), (i, (j + 1) % SIDE)):
        coupling[i, j, k, m] = coupling[k, m, i, j] = beta
    return coupling.reshape(SIDE**2, SIDE**2)


def true_model(X, beta):
    """An estimator that has the true parameters."""
    model = FVBMPseudoLikelihood(alpha=0.1).fit(X[:100])
    model.coupling_, model.intercept_ = lattice(beta), np.zeros(SIDE**2)
    return model


def log_partition(beta, field):
    """ln Z with equal intercepts, by the transfer matrix between rows."""
    rows = 2.0 * ((np.arange(2**SIDE)[:, np.newaxis] >> np.arange(SIDE)) & 1) - 1
    inside = beta * (rows * np.roll(rows, 1, axis=1)).sum(axis=1) + field * rows.sum(axis=1)
    transfer = beta * rows @ rows.T + (inside[:, np.newaxis] + inside) / 2
    peak = transfer.max()
    values = np.linalg.eigvalsh(np.exp(transfer - peak))
    return SIDE * (peak + np.log(values[-1])) + np.log(((values / values[-1]) ** SIDE).sum())


def measure_tilted(X, beta, field):
    """Two modes of different mass: ln Z and mean spin, a row of a table."""
    model = true_model(X, beta)
    model.intercept_ = np.full(SIDE**2, field)
    exact, step = log_partition(beta, field), 1e-5
    slope = (log_partition(beta, field + step) - log_partition(beta, field - step)) / (2 * step)
    found = model.log_partition("ladder", random_state=0)
    rows = model.sample(N_SAMPLES, random_state=0)
    plain = model.sample(N_SAMPLES, random_state=0, n_temperatures=1)
    return [field, f"{exact:.4f}", f"{found.value:.4f}", f"{found.std_err:.4f}",
            f"{slope / SIDE**2:.3f}", f"{rows.mean():.3f}", f"{plain.mean():.3f}"]  # fmt: skip


def share_up(X):
    """Percent of the rows with more ones than minus ones."""
    return 100 * (X.sum(axis=1) > 0).mean()


def measure(X, beta, tol):
    """The figures of one temperature, as rows of the three tables."""
    model, (exact, truth) = true_model(X, beta), EXACT[beta]
    found, seconds = timed(
        model.log_partition, "ladder", tol=tol, max_rounds=100_000, random_state=0
    )
    sweeps = found.n_rounds * len(found.betas) * N_CHAINS
    ais, ais_seconds = timed(
        model.log_partition, "ais", n_temperatures=max(sweeps // 500, 1), random_state=0
    )
    rows, sampling = timed(model.sample, N_SAMPLES, random_state=0)
    plain = model.sample(N_SAMPLES, random_state=0, n_temperatures=1)
    score = -model.energy(X).mean() - found.value
    ladder = [beta, f"{exact:.4f}", f"{found.value:.4f}", f"{found.value - exact:+.4f}",
              f"{found.std_err:.4f}", f"{found.low:.3f}", f"{found.high:.3f}", len(found.betas),
              f"{found.acceptances.min():.2f}", found.n_rounds, f"{seconds:.0f}"]  # fmt: skip
    annealed = [beta, f"{ais.value:.4f}", f"{ais.value - exact:+.4f}", f"{ais.std_err:.4f}",
                f"{ais.low:.2f}", f"{ais.ess:.0f}", f"{ais_seconds:.0f}"]  # fmt: skip
    shares = [beta, f"{truth:.4f}", f"{score:.4f}", f"{share_up(X):.1f}", f"{share_up(rows):.1f}",
              f"{share_up(plain):.1f}", f"{sampling:.0f}"]  # fmt: skip
    return ladder, annealed, shares, abs(found.value - exact), share_up(rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--tol", type=float, default=0.008, help="standard error asked for")
    args = parser.parse_args()
    data = load_ising(args.data)
    with report(args.output / "fvbm_ladder.txt", "Ising model, 7 × 7, periodic: true couplings"):
        found = [measure(X, beta, args.tol) for beta, X in data.items()]
        print("The ladder")
        header = ["β", "exact ln Z", "ladder", "error", "std_err", "low", "high", "temperatures",
                  "lowest acceptance", "rounds", "seconds"]  # fmt: skip
        print_table(header, [row[0] for row in found])
        print("Annealed importance sampling with as many sweeps, 500 chains")
        header = ["β", "AIS", "error", "std_err", "low", "chains that count", "seconds"]
        print_table(header, [row[1] for row in found])
        print(f"Mean log-likelihood of the stored samples; percent up of these and of {N_SAMPLES}")
        header = ["β", "exact", "by the ladder", "stored up", "ladder up", "plain Gibbs up",
                  "seconds of the ladder's samples"]  # fmt: skip
        print_table(header, [row[2] for row in found])
        print("β = .6 with equal intercepts: modes of different mass, defaults of log_partition")
        header = ["intercept", "exact ln Z", "ladder", "std_err", "exact mean spin", "ladder",
                  "plain Gibbs"]  # fmt: skip
        print_table(header, [measure_tilted(data[0.6], 0.6, field) for field in (0.01, 0.03)])
        *_, error, up = found[-1]
        print_check("ln Z at β = .6", "within .02", f"{error:.4f}", error < 0.02)
        print_check("samples up at β = .6", "50 ± 3 %", f"{up:.1f} %", abs(up - 50) < 3)


if __name__ == "__main__":
    run_script(main)
