"""Tables and fits that tests of networks share."""

from itertools import combinations

import numpy as np
from scipy.stats import binom

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM


def network(kind=None, **options):
    """The network that has these parameters, without a penalty unless options have one."""
    if kind is None:
        is_plain = set(options) <= set(FVBMPseudoLikelihood().get_params())
        kind = FVBMPseudoLikelihood
        if not is_plain or options.get("alpha") in ("ebic", "cv"):
            kind, options = SparseFVBM, {"penalty": "l2"} | options
    return kind(**{"alpha": 0.0} | options)


def fit(X, sample_weight=None, **options):
    """A fitted `network`."""
    return network(**options).fit(X, sample_weight=sample_weight)


def chain(d):
    """A mask of neighbours."""
    return np.abs(np.subtract.outer(range(d), range(d))) == 1


def lattice(side):
    """1 between neighbours on a periodic square lattice."""
    x, y = np.divmod(np.arange(side**2), side)
    steps = [(np.subtract.outer(a, a) % side, np.subtract.outer(b, b)) for a, b in ((x, y), (y, x))]
    return sum(((a == 1) | (a == side - 1)) & (b == 0) for a, b in steps).astype(float)


def draw(model, n, seed=0):
    """Rows of -1 and 1."""
    return 2 * model.sample(n, np.random.default_rng(seed), 100).astype(int) - 1


def assert_share(share, n, p, false_alarm=1e-6):
    """As of n trials, each of which has the chance p."""
    low, high = binom.interval(1 - false_alarm, n, p)
    assert low / n <= share <= high / n, (low / n, share, high / n)


def spins(n_rows, d, seed=0, missing=0.0, same=0.7):
    """Rows of ±1, each cell as the one before with a probability, some NaN, but none empty."""
    rng = np.random.default_rng(seed)
    X = np.cumprod(rng.choice([-1, 1], size=(n_rows, d), p=[1 - same, same]), axis=1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def categories(n_rows, n_values=(2, 3, 4, 3), seed=0, same=0.5):
    """Independent columns, except for the second, which is often as the first."""
    rng = np.random.default_rng(seed)
    X = rng.integers(n_values, size=(n_rows, len(n_values)))
    X[:, 1] = np.where(rng.random(n_rows) < same, X[:, 0], X[:, 1])
    return X


def items(n_rows, d, seed=0, correlation=0.4):
    """Items of five levels, each of which predicts the next one."""
    z = np.random.default_rng(seed).normal(size=(n_rows, d))
    for j in range(1, d):
        z[:, j] = correlation * z[:, j - 1] + np.sqrt(1 - correlation**2) * z[:, j]
    return np.digitize(z, [-1.2, -0.4, 0.4, 1.2])


def parameter_index(n_values):
    """i, a, j and b of the parameters h_i(a), with -1 for j and b, and then J_ij(a, b), i < j."""
    columns = range(len(n_values))
    index = [(i, a, -1, -1) for i in columns for a in range(n_values[i])]
    index += [
        (i, a, j, b)
        for i, j in combinations(columns, 2)
        for a, b in np.ndindex(n_values[i], n_values[j])
    ]
    return np.array(index).T
