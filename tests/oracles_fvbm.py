"""Networks with random parameters, and their distributions by enumeration."""

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy.linalg import block_diag, null_space
from scipy.optimize import linprog
from scipy.special import logsumexp

import oracles
from private import CategoricalPseudoLikelihood, PottsModel, SpinModel
from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy

columns = st.one_of(
    st.lists(st.integers(2, 4), min_size=1, max_size=5), st.integers(1, 6).map(lambda d: [2] * d)
)
densities = st.sampled_from([1.0, 0.5, 0.0])
seeds = st.integers(0, 2**32 - 1)


def random_potts(n_values, seed=0, scale=0.7, density=1.0):
    """A model in no particular gauge, some of its blocks 0."""
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    starts = np.concatenate([[0], np.cumsum(n_values)])
    coupling = np.zeros((starts[-1],) * 2)
    for j, k in itertools.combinations(range(len(n_values)), 2):
        if rng.random() < density:
            block = rng.normal(scale=scale, size=(n_values[j], n_values[k]))
            coupling[starts[j] : starts[j + 1], starts[k] : starts[k + 1]] = block
            coupling[starts[k] : starts[k + 1], starts[j] : starts[j + 1]] = block.T
    return PottsModel(coupling, rng.normal(scale=scale, size=starts[-1]), n_values)


def unpack(theta, d):
    """Couplings and intercepts from θ: the b_j, then the m_jk."""
    coupling = np.zeros((d, d))
    coupling[np.triu_indices(d, 1)] = theta[d:]
    return coupling + coupling.T, theta[:d].copy()


def random_spins(d, seed=0, scale=0.6, density=1.0):
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(scale=scale, size=(d, d)) * (rng.random((d, d)) < density), 1)
    return SpinModel(coupling + coupling.T, rng.normal(scale=scale, size=d))


def random_interactions(d, seed=0, scale=0.4, density=1.0, potential=True):
    """Pairs, terms of three to five columns, and a potential of the number of ones."""
    pairs, rng = random_spins(d, seed, scale, density), np.random.default_rng(seed)
    orders = rng.integers(3, 6, size=4 if density else 0)
    terms = [rng.permutation(d)[:order] for order in orders if order <= d]
    terms = sorted({tuple(sorted(term.tolist())) for term in terms})
    weights = rng.normal(scale=scale, size=len(terms))
    V = rng.normal(scale=scale, size=d + 1) if potential else None
    return SpinModel(pairs.coupling, pairs.intercept, terms, weights, V)


def random_model(n_values, seed, density=1.0, strength=1.0):
    """One of several kinds of models where all columns have two values."""
    kind, d = seed % 3, len(n_values)
    if set(n_values) != {2}:
        return random_potts(n_values, seed, 0.7 * strength, density)
    if kind == 0:
        return random_spins(d, seed, 0.6 * strength, density)
    return random_interactions(d, seed, 0.4 * strength, density, potential=kind == 2)


def estimator_of(model, low=0):
    """A fitted network with the parameters of a model; `low` is the first value of bits."""
    codes = np.arange(max(model.n_values))[:, None] % model.n_values
    if isinstance(model, SpinModel):
        kind = FVBMPseudoLikelihood if model.is_pairwise else MaximumEntropy
        found = kind(alpha=1.0).fit(np.where(codes, 1, low))
    else:
        found = FVBMPseudoLikelihood(alpha=1.0).fit(codes)
    found.coupling_, found.intercept_ = model.coupling, model.intercept
    if not model.is_pairwise:
        found.terms_, found.term_weights_ = model.terms, model.weights
        found.count_potential_ = model.potential
    return found


def enumerate_states(model):
    """All joint states, and the logarithms of their probabilities and weights."""
    states = oracles.states(model.n_values)
    if isinstance(model, SpinModel):
        x = 2 * states - 1
        weights = 0.5 * np.einsum("ij,jk,ik->i", x, model.coupling, x) + x @ model.intercept
        if not model.is_pairwise:
            for term, weight in zip(model.terms, model.weights, strict=True):
                weights += weight * x[:, term].prod(axis=1)
            weights += model.potential[states.sum(axis=1)]
    else:
        starts = np.concatenate([[0], np.cumsum(model.n_values)])[:-1]
        x = np.zeros((len(states), len(model.intercept)))
        np.put_along_axis(x, states + starts, 1, axis=1)
        weights = 0.5 * np.einsum("ij,jk,ik->i", x, model.coupling, x) + x @ model.intercept
    return states, weights - logsumexp(weights), weights


def with_gaps(states, n, seed, share=0.4):
    """Rows of codes, -1 for what is missing."""
    rng = np.random.default_rng(seed)
    codes = states[rng.integers(len(states), size=n)].copy()
    codes[rng.random(codes.shape) < share] = -1
    return codes


def agreeing(states, row):
    """Which states have the observed cells of a row."""
    return ((states == row) | (row < 0)).all(axis=1)


def brute_conditional(model, states, log_p, row, j):
    """p(x_j | the observed cells of the row but j)."""
    row = row.copy()
    row[j] = -1
    p = np.exp(log_p) * agreeing(states, row)
    found = np.bincount(states[:, j], p, minlength=model.n_values[j])
    return found / found.sum()


def zero_sum_slopes(codes, n_values, model, atol):
    """Numbers of each pair, ∂/∂J of the mean log pseudo-likelihood, zero-sum, and J of its block.

    Those by the intercepts are 0 within `atol`.
    """
    problem = CategoricalPseudoLikelihood(codes, n_values, np.ones(len(codes)))
    _, gradient = problem.evaluate(problem.pack(model.coupling_, model.intercept_))
    slopes, intercepts = problem.unpack(gradient / problem.total)
    assert np.abs(intercepts).max() <= atol
    ends = np.cumsum(n_values)
    for i, j, _ in problem.blocks():
        states = np.ix_(*(np.arange(ends[k] - n_values[k], ends[k]) for k in (i, j)))
        slope = slopes[states] - slopes[states].mean(axis=0)
        yield i, j, slope - slope.mean(axis=1, keepdims=True), model.coupling_[states]


def separated_parameters(X, q):
    """Those that change along some direction that never lowers a field and raises one.

    By one linear program over all cells of the table, for h_i(a), then J_ij(a, b), zero-sum.
    """
    d = X.shape[1]
    pairs = list(itertools.combinations(range(d), 2))
    center = np.eye(q) - 1 / q
    zero_sum = block_diag(*[center] * d, *[np.kron(center, center)] * len(pairs))

    def place(i, a, j, b):
        i, a, j, b = (i, a, j, b) if i < j else (j, b, i, a)
        return d * q + pairs.index((i, j)) * q * q + a * q + b

    gains = []
    for x in np.unique(X, axis=0):
        known = np.flatnonzero(~np.isnan(x))
        x = np.nan_to_num(x).astype(int)
        for i in known:
            for a in set(range(q)) - {x[i]}:
                gain = np.zeros(len(zero_sum))
                for state, sign in ((x[i], 1), (a, -1)):
                    gain[i * q + state] += sign
                    for j in set(known) - {i}:
                        gain[place(i, state, j, x[j])] += sign
                gains.append(gain @ zero_sum)
    gains = np.array(gains)
    m, size = gains.shape
    found = linprog(
        np.append(np.zeros(size), -np.ones(m)),
        A_ub=np.hstack([-gains, np.eye(m)]),
        b_ub=np.zeros(m),
        bounds=[(None, None)] * size + [(0, 1)] * m,
    )
    # What gains nothing where the cone of these directions does not is in its span.
    span = null_space(gains[found.x[size:] < 0.5])
    return np.abs(zero_sum @ span).max(axis=1, initial=0) > 1e-6
