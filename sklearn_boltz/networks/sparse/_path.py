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


def follow(solver, alphas, criterion, of_pairs, bar):
    """Follow a path until the criterion of every part has long passed its minimum.

    Parameters
    ----------
    solver : Solver
        At the beginning of a path.
    alphas : ndarray of shape (n_alphas, n_parts)
    criterion : callable
        Of penalties, the state there and some parts, a number of each of these.
    of_pairs : bool
        Whether the criterion depends on the pairs alone, except for the error of an approximation
        that is best at the smallest penalty: those in a row with the same pairs have its value.
        If these are all that may come in, and the best, only the last penalty is left to go to.
    bar : tqdm or NoBar
        Whose steps are penalties.

    Returns
    -------
    alphas, criterion : ndarray of shape (n, n_parts)
        Of those n that were reached; NaN after the end of a part's path.
    thetas : ndarray of shape (n, n_parameters)
        The same of the parameters.
    """
    layout, n_parts = solver.layout, alphas.shape[1]
    best, begun, least = *np.zeros((2, n_parts), dtype=int), np.full(n_parts, np.inf)
    found, thetas, visited, alpha = np.full(alphas.shape, np.nan), [], [], alphas[0]
    state, pairs, going, rest = None, None, np.full(n_parts, True), range(len(alphas))
    possible = np.isfinite(solver.weights)[layout.pairs]
    np.fill_diagonal(possible, False)

    def judge(chosen):
        """Find the criterion of some parts at the penalties since `begun`."""
        k, parts = len(thetas) - 1, np.flatnonzero(chosen)
        if not len(parts):
            return
        for p, value in zip(parts, criterion(alpha, state, parts), strict=True):
            found[begun[p] : k + 1, p] = value
            if value < least[p]:
                best[p], least[p] = k, value

    while len(rest):
        k = len(thetas)
        if of_pairs:  # with the best pairs, patience does not begin to run out
            best = np.where(begun <= best, k - 1, best)
        judge(going & (k - best > PATIENCE))
        going &= k - best <= PATIENCE
        if not going.any():
            break
        # A part that has ended stays where it is.
        new_alpha = np.where(going, alphas[rest[0]], alpha)
        new = solver.go(new_alpha).state
        new_pairs = neighbours(solver.network, new.theta)
        if k > 0:
            moved = (new_pairs != pairs).any(axis=1) | (not of_pairs)
            moved = going & (layout.by_part(moved, layout.part_of_column) > 0)
            judge(moved)
            begun[moved] = k
        state, pairs, alpha = new, new_pairs, new_alpha
        thetas.append(np.where(going[layout.part_of_parameter], state.theta, np.nan))
        visited.append(rest[0])
        bar.update()
        is_whole = of_pairs and not (possible & ~pairs)[going[layout.part_of_column]].any()
        if is_whole:
            judge(going & (begun == k))
        rest = rest[1:][-1:] if is_whole and (begun <= best)[going].all() else rest[1:]
    judge(going)
    found = found[: len(thetas)]
    return np.where(np.isnan(found), np.nan, alphas[visited]), found, np.array(thetas)


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
    block, trend = prices(network, single)
    value += np.where(present, block - single, 0.0).sum(axis=1)
    change = refit(solver, state, parts, present, block - trend)
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
    for k, p in enumerate(parts):
        parameters, factor = free_curvature(solver, state, p, present)
        step[parameters] = cho_solve(factor, -gradient[parameters])
        bent = np.flatnonzero(network.is_bent[parameters]) if saved.any() else []
        if len(bent):
            covariance = cho_solve(factor, np.eye(len(parameters))[:, bent])[bent] / network.total
            estimate = (state.theta + step)[parameters[bent]]
            dropped[k] = drop(covariance, estimate, layout.groups[parameters[bent]], saved)
    return fall(network, state, step, nodes)[parts] + dropped


def free_curvature(solver, state, part, present):
    """The parameters of a part of the pairs that are present, and their second derivatives.

    The latter as a Cholesky factor.
    """
    chosen = solver.weights == 0
    chosen[solver.layout.pairs[present]] = True
    parameters, matrix = solver.second_derivatives(state, part, chosen)
    return parameters, cho_factor(matrix)


def prices(network, single):
    """Prices of the block of each pair, and of its trend, of shape (d, d); see `price`."""
    if not network.is_categorical:
        return np.full((2, network.n_columns, network.n_columns), single)
    ranks, trends = network.ranks, network.n_trends
    k, k_trend = np.outer(ranks, ranks), np.outer(trends, trends)
    one = np.where(k_trend < k, single + 2 * np.log(2), single)
    return price(k, one), price(k_trend, one)


def idle_groups(solver, state, single):
    """The groups of pairs that are present and, beside the others, not worth their price.

    A path may have no set without them: where a large block comes in late, as it is dear, what has
    come in before it by chance stays. They are left out one by one, the least worth first.

    Parameters
    ----------
    solver : Solver
    state : State
    single : float
        The price of a coupling.
    """
    layout, present = solver.layout, neighbours(solver.network, state.theta)
    pair_prices = prices(solver.network, single)
    costs = [np.bincount(layout.pairs.ravel(), each.ravel()) for each in pair_prices]
    parts = range(layout.n_parts)
    return [g for p in parts for g in idle_of_part(solver, state, p, present, *costs)]


def idle_of_part(solver, state, part, present, block, trend):
    """Those of a part; `block` and `trend` are the prices of each group and of its trend.

    By second derivatives alone, strong couplings would seem to be worth little.
    """
    network, gradient, nodes = solver.network, solver.gradient(state), solver.nodes([part])
    parameters, factor = free_curvature(solver, state, part, present)
    step, idle, strong = np.zeros(len(state.theta)), [], []
    step[parameters] = -cho_solve(factor, gradient[parameters])
    estimate = (state.theta + step)[parameters]
    covariance = cho_solve(factor, np.eye(len(parameters))) / network.total
    before = fall(network, state, step, nodes)[part]
    while True:
        groups, bent = solver.layout.groups[parameters], network.is_bent[parameters]
        worth, price_of = {}, {}
        for g in np.setdiff1d(groups[solver.weights[groups] > 0], strong):
            without_bend = trend[g] + rise(covariance, estimate, (groups == g) & bent)
            price_of[g] = min(block[g], without_bend)
            worth[g] = rise(covariance, estimate, groups == g) - price_of[g]
        least = min(worth, key=worth.get, default=None)
        if least is None or worth[least] > 0:
            return idle
        out, kept = groups == least, groups != least
        share = solve(covariance[np.ix_(out, out)], covariance[np.ix_(out, kept)], assume_a="pos")
        left, theta = estimate[kept] - estimate[out] @ share, state.theta.copy()
        theta[np.isin(solver.layout.groups, [*idle, least])] = 0
        theta[parameters[kept]] = left
        losses = network.at(theta, nodes, state).losses - state.losses
        after = 2 * network.total * losses.sum()
        if after - before > price_of[least]:
            strong.append(least)
            continue
        idle.append(least)
        before, estimate, parameters = after, left, parameters[kept]
        covariance = covariance[np.ix_(kept, kept)] - covariance[np.ix_(kept, out)] @ share


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
    idle = [g for g in np.unique(groups) if rise(covariance, estimate, groups == g) < saved[g]]
    if not idle:
        return 0.0
    return rise(covariance, estimate, np.isin(groups, idle)) - saved[idle].sum()


def rise(covariance, estimate, chosen):
    """By how much -2 ℓ rises where some parameters are 0, by the covariance of the estimates."""
    free = estimate[chosen]
    return free @ solve(covariance[np.ix_(chosen, chosen)], free, assume_a="pos")


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
