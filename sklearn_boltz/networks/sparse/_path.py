"""Minima along a path of falling penalties, and the choice of one of them."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve
from scipy.special import chdtrc, chdtri

from sklearn_boltz.networks.sparse._penalty import group_norms

# A path ends when its criterion has not fallen below its minimum for this many penalties. Of 1,200
# columns of simulated networks, one had another minimum of the EBIC on its whole path; with 10
# penalties, 16 had.
PATIENCE = 15
# The last penalty of a path in ratio to the first: with more rows than parameters a column, and
# with fewer; as in glmnet.
LAST, LAST_OF_FEW_ROWS = 1e-4, 1e-2
# How far a Newton step is followed.
STEP_SHARES = 1.0, 0.5, 0.25
# Pairs of which half may be chance. With it, up to 5 % of tables of 18 independent columns have an
# edge; a smaller number lets in more.
FEW = 4


def alpha_grid(first, n_alphas, network):
    """Penalties of each part, in even ratios, of shape (n_alphas, n_parts)."""
    enough = network.total > network.layout.n_parameters / network.layout.n_parts
    last = LAST if enough else LAST_OF_FEW_ROWS
    return first * np.geomspace(1, last, n_alphas)[:, None]


def follow(solver, alphas, criterion, of_pairs):
    """Follow a path until the criterion of every part has long passed its minimum.

    Parameters
    ----------
    solver : Solver
        At the beginning of a path.
    alphas : ndarray of shape (n_alphas, n_parts)
    criterion : callable
        Of penalties, the state there and some parts, a number of each of these.
    of_pairs : bool
        Whether the criterion depends on the pairs alone, but for the error of an approximation
        that is best at the smallest penalty: those in a row with the same pairs have its value.

    Returns
    -------
    alphas, criterion : ndarray of shape (n, n_parts)
        Of those n that were reached; NaN after the end of a part's path.
    thetas : ndarray of shape (n, n_parameters)
        The same of the parameters.
    """
    layout, n_parts = solver.layout, alphas.shape[1]
    best, begun, least = *np.zeros((2, n_parts), dtype=int), np.full(n_parts, np.inf)
    found, thetas, alpha = np.full(alphas.shape, np.nan), [], alphas[0]
    state, pairs, going = None, None, np.full(n_parts, True)

    def judge(chosen):
        """Find the criterion of some parts at the penalties since `begun`."""
        k, parts = len(thetas) - 1, np.flatnonzero(chosen)
        if not len(parts):
            return
        for p, value in zip(parts, criterion(alpha, state, parts), strict=True):
            found[begun[p] : k + 1, p] = value
            if value < least[p]:
                best[p], least[p] = k, value

    for k in range(len(alphas)):
        if of_pairs:  # with the best pairs, patience does not begin to run out
            best = np.where(begun <= best, k - 1, best)
        judge(going & (k - best > PATIENCE))
        going &= k - best <= PATIENCE
        if not going.any():
            break
        # A part that has ended stays where it is.
        new_alpha = np.where(going, alphas[k], alpha)
        new = solver.go(new_alpha).state
        new_pairs = neighbours(solver.network, new.theta)
        if k > 0:
            moved = (new_pairs != pairs).any(axis=1) | (not of_pairs)
            moved = going & (layout.by_part(moved, layout.part_of_column) > 0)
            judge(moved)
            begun[moved] = k
        state, pairs, alpha = new, new_pairs, new_alpha
        thetas.append(np.where(going[layout.part_of_parameter], state.theta, np.nan))
    judge(going)
    n = len(thetas)
    return np.where(np.isnan(found), np.nan, alphas)[:n], found[:n], np.array(thetas)


def neighbours(network, theta):
    """Which columns enter the equation of each column, of shape (d, d)."""
    layout = network.layout
    present = (group_norms(layout.groups, theta, layout.n_groups) > 0)[layout.pairs]
    np.fill_diagonal(present, False)
    return present


def ebic_price(total, n_columns, gamma):
    """Price of a coupling in -2 ℓ, by the extended Bayesian information criterion.

    ln N + 2 γ ln(d - 1) (Chen and Chen 2008; van Borkulo et al. 2014).
    """
    # ln N would be negative of rows that hardly count.
    return np.log(max(total, 1)) + 2 * gamma * np.log(max(n_columns - 1, 1))


def fdr_price(n_pairs, n_possible, level):
    """Price of a coupling by the false discovery rate: Benjamini and Hochberg's threshold.

    The k-th of P pairs is significant below q k / P (on its use as a penalty: Abramovich et al.
    2006). A few pairs may all be there by chance, and count for less: one for a fifth.
    """
    return chdtri(1, level * n_pairs / n_possible * n_pairs / (n_pairs + FEW))


def information_criterion(solver, state, parts, single, refitted):
    """The criterion -2 ℓ plus the prices of the couplings, of some parts.

    Of the equation of a column ℓ is the log-likelihood. The joint fit has the sum of these over the
    columns, in which every pair counts at both of its ends.

    The penalty shrinks all couplings at once, so others come in to make up for it. A criterion of
    refits has for ℓ the best on a Newton step without the penalty in the selected pairs. Blocks of
    several couplings, which shrink most, have no other. They need another price, too: ln N for each
    coupling is far above what chance gains with so many; see `price`. The block of a pair with an
    ordered column is taken to be a trend where the rest of it is not worth its price; for this
    choice of two, the price of a single coupling is 2 ln 2 higher.

    Parameters
    ----------
    solver : Solver
    state : State
    parts : ndarray of int
    single : float
        The price of a coupling.
    refitted : bool
    """
    network, layout, total = solver.network, solver.layout, solver.network.total
    present = neighbours(network, state.theta)
    value = 2 * total * state.losses + present.sum(axis=1) * single
    if not refitted:
        return layout.by_part(value, layout.part_of_column)[parts]
    savings = np.zeros(present.shape)
    if network.is_categorical:
        size = network.n_values - 1
        k, k_trend = np.outer(size, size), np.outer(network.n_trends, network.n_trends)
        one = np.where(k_trend < k, single + 2 * np.log(2), single)
        prices = price(k, one)
        value += np.where(present, prices - single, 0.0).sum(axis=1)
        savings = prices - price(k_trend, one)
    change = refit(solver, state, parts, present, savings)
    return layout.by_part(value, layout.part_of_column)[parts] + change


def refit(solver, state, parts, present, savings):
    """By how much -2 ℓ, and its price, change without the penalty in the pairs that are present.

    Parameters
    ----------
    solver : Solver
    state : State
    parts : ndarray of int
    present : ndarray of bool of shape (d, d)
    savings : ndarray of shape (d, d)
        By how much a trend is cheaper than a block.

    Returns
    -------
    change : ndarray of shape (len(parts),)
    """
    network, layout, nodes = solver.network, solver.layout, solver.nodes(parts)
    gradient = layout.gradient(network.slopes(state, nodes, np.zeros(layout.places.shape)))
    saved = np.bincount(layout.pairs.ravel(), savings.ravel())
    step, dropped = np.zeros(layout.n_parameters), np.zeros(len(parts))
    chosen = solver.weights == 0
    chosen[layout.pairs[present]] = True
    for k, p in enumerate(parts):
        parameters, matrix = solver.second_derivatives(state, p, chosen)
        factor = cho_factor(matrix)
        step[parameters] = cho_solve(factor, -gradient[parameters])
        bent = np.flatnonzero(network.is_bent[parameters]) if saved.any() else []
        if len(bent):
            covariance = cho_solve(factor, np.eye(len(matrix))[:, bent])[bent] / network.total
            estimate = (state.theta + step)[parameters[bent]]
            dropped[k] = drop(covariance, estimate, layout.groups[parameters[bent]], saved)
    return fall(network, state, step, nodes)[parts] + dropped


def fall(network, state, step, nodes):
    """The change of -2 ℓ of each part by some share of a step, of those the least, at most 0.

    What the derivatives promise is too much where values rarely meet: of three-level columns with a
    level in 1 % of 355 rows, a third of independent tables had an edge by it. `nodes` are the
    columns that the step changes.
    """
    layout, least, longer = network.layout, np.zeros(network.layout.n_parts), np.inf
    for share in STEP_SHARES:
        losses = network.at(state.theta + share * step, nodes, state).losses - state.losses
        change = layout.by_part(2 * network.total * losses, layout.part_of_column)
        least = np.fmin(least, change)
        if (change >= longer).all():  # losses are convex: a still shorter step brings less
            break
        longer = change
    return least


def drop(covariance, estimate, groups, saved):
    """By how much -2 ℓ less what is saved falls, if groups of parameters that do not pay are 0.

    Parameters
    ----------
    covariance : ndarray of shape (n, n)
    estimate : ndarray of shape (n,)
    groups : ndarray of int of shape (n,)
    saved : ndarray of shape (n_groups,)
    """

    def rise(places):
        free = estimate[places]
        return free @ solve(covariance[np.ix_(places, places)], free, assume_a="pos")

    found = {g: np.flatnonzero(groups == g) for g in np.unique(groups)}
    idle = [g for g, places in found.items() if rise(places) < saved[g]]
    if not idle:
        return 0.0
    return rise(np.flatnonzero(np.isin(groups, idle))) - saved[idle].sum()


def price(n_couplings, single):
    """Price in -2 ℓ of a block of this many couplings, if `single` is that of one.

    A block without effect exceeds it as often as a single coupling does: the quantiles of χ² are
    of the same level.
    """
    level = chdtrc(1, single)  # `scipy.stats.chi2` takes ten times as long
    df = np.where(n_couplings > 0, n_couplings, np.nan)
    # Where the level is 0, so far out that only the order of the numbers matters.
    found = np.where(level > 0, chdtri(df, level), n_couplings * single)
    return np.where(n_couplings == 1, single, found)


def held_out(solver, alpha, network):
    """Minus the log pseudo-likelihood of other rows, of each part, with a penalty that falls."""
    found = solver.layout.matrices(solver.go(alpha).state.theta)
    other = network.at(network.layout.vector(*found))
    layout = network.layout
    return layout.by_part(other.losses * network.total, layout.part_of_column)
