"""Rows with missing cells: what a pairwise network says of these, given the observed cells.

Given the observed cells of a row, the missing ones are a pairwise network, too, and fall into
groups that nothing connects. A group with few joint states is enumerated; else draws or chains
serve, with random numbers that are the same for every row.
"""

import math
from functools import cached_property, partial

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from sklearn_boltz.missing._completion import all_states, patterns
from sklearn_boltz.networks.model._enumeration import importance_weights
from sklearn_boltz.networks.sampling._sampling import (
    annealed_draws,
    annealed_log_partition,
    annealed_log_sums,
    chains_of_each,
    gibbs_mode,
    gibbs_probabilities,
)
from sklearn_boltz.numerics._threads import Workers, row_blocks, slices_of_rows
from sklearn_boltz.partition._shares import (
    FIRST_CHAINS,
    MAX_ERROR,
    shares_by_chains,
    softmax_errors,
)

# Joint states of connected missing cells of a row that are enumerated at most.
MAX_STATES = 2**20
# Of a derivative by the inverse temperature: the error is about 1e-8 of the third cumulant.
STEP = 3e-4
# Chains of a row for a mean log-weight, their sweeps before and while they count.
N_FEW, N_FEW_STEPS, N_COUNTED = 10, 50, 10
# Rows whose chains are kept at once, about; the same with `N_CHAINS` of each.
FEW_ROWS, CHAINED_ROWS = 50, 10
# Rows whose probabilities are kept at once.
BLOCK_ROWS = 1000
# Where there are more states, and nothing is random for the user: the seed, the chains of a row
# and their sweeps; those of annealing, and its temperatures.
SEED, N_CHAINS, N_STEPS = 0, 200, 200
N_ANNEALED, N_TEMPERATURES = 100, 100
# The values of a column: joint states of the most strongly coupled other missing cells, which are
# summed out for each draw of the rest. The draws for each value, more and more until the standard
# errors of the probabilities are small enough, and those of their logarithms before they are
# normalised are at most MAX_LOG_ERROR. Where they are not, annealing.
MAX_CORE, N_DRAWS, MAX_LOG_ERROR = 2**9, (32, 128, 512), 0.1
# The same of sums over missing cells. With fewer draws, standard errors of skewed weights are too
# small: of 80 rows of adult with half of the cells missing, sums were off by up to 0.5 nats.
N_SUM_DRAWS, MAX_SUM_ERROR = (512,), 0.03
# The chains that find the rates of the independent columns where it begins, their sweeps before
# and while these are counted, and the least rate.
N_PILOT, N_PILOT_STEPS, LEAST_RATE = 50, 10, 0.01


# Entries of a temporary array of rows by joint states, and by values.
CHUNK = 2**19
# Joint states from which on sums over them are products of matrices, and draws are searched for.
MANY = 2**9


class Joint:
    """All joint states of missing columns that interact with no other missing ones.

    Parameters
    ----------
    model : DiscreteModel
    codes : ndarray of int of shape (n_rows, d)
        Rows that miss the same.
    fields : ndarray of float64 of shape (n_rows, Q)
        Of these rows, as of `value_fields`.
    columns : ndarray of int of shape (k,)

    Attributes
    ----------
    log_weights : ndarray of shape (n_rows, n_states)
        Not normalised; the last column is the fastest.
    """

    def __init__(self, model, codes, fields, columns):
        self.model, self.codes, self.columns = model, codes, columns
        self.shape = tuple(model.n_values[columns].tolist())
        if model.is_pairwise:
            self.log_weights = joint_log_weights(model.potts, fields, columns)
        else:
            self.log_weights = model.joint_log_weights(codes, columns)

    @cached_property
    def states(self):
        """The states, (n_states, k)."""
        return all_states(self.shape)

    def log_partition(self):
        """ln Σ exp(log_weights) of each row."""
        return log_sum_exp(self.log_weights, axis=1)

    @cached_property
    def log_probabilities(self):
        """ln p of the states given the observed cells."""
        return self.log_weights - self.log_partition()[:, None]

    def log_marginal(self, place):
        """ln p of the values of a column, (n_rows, n_values)."""
        before = math.prod(self.shape[:place])
        log_p = self.log_probabilities.reshape(len(self.codes), before, self.shape[place], -1)
        return log_sum_exp(log_sum_exp(log_p, axis=3), axis=1)

    def reduced(self, how, generator, rows):
        """One value of each column, for rows by their numbers: "mode" or "sample"."""
        if how == "mode":
            found = self.log_weights.argmax(axis=1)[rows]
        else:
            found = self._drawn(generator, rows)
        return np.column_stack(np.unravel_index(found, self.shape))

    def _drawn(self, generator, rows):
        """The number of a state drawn for each of some rows."""
        cumulated = np.cumsum(np.exp(self.log_probabilities), axis=1)
        uniform = generator.random(len(rows)) * cumulated[rows, -1]
        if cumulated.shape[1] < MANY:
            return (cumulated[rows] <= uniform[:, None]).sum(axis=1)
        pairs = zip(rows, uniform, strict=True)
        return np.array([np.searchsorted(cumulated[row], u, side="right") for row, u in pairs])

    def gains(self, observed):
        """Contribution of these columns, summed out, to the fields of observed ones.

        ln Σ_s p(s) exp(change), with p given all observed cells, and the change by another value of
        an observed column than that of the row. Yield places in the one-hot layout, and (n_rows,
        n_values).
        """
        if not observed:
            return
        if not self.model.is_pairwise:
            yield from self._gains_by_flips(observed)
            return
        potts = self.model.potts
        if self.log_weights.shape[1] >= MANY:
            rows = zip(self.codes, np.exp(self.log_probabilities), strict=True)
            gain = [self._gain_by_product(*row, observed) for row in rows]
            if np.isfinite(gain).all():
                yield potts.places(observed), np.array(gain)
                return
        size = self.log_weights.size * potts.n_values.max()
        for some in slices_of_rows(len(observed), size, CHUNK):
            yield potts.places(observed[some]), self._gain_by_logarithms(observed[some])

    def _gains_by_flips(self, observed):
        """Compute `gains` of bits one by one, as terms and a potential connect more than two."""
        near = self.model.adjacency()[:, self.columns].any(axis=1)
        for j in np.array(observed)[near[observed]]:
            flipped, gain = self.codes.copy(), np.zeros((len(self.codes), 2))
            flipped[:, j] = 1 - self.codes[:, j]
            other = Joint(self.model, flipped, None, self.columns)
            change = other.log_partition() - self.log_partition()
            np.put_along_axis(gain, flipped[:, [j]], change[:, None], axis=1)
            yield np.array([2 * j, 2 * j + 1]), gain

    def _gain_by_logarithms(self, observed):
        potts, codes = self.model.potts, self.codes[:, observed]
        n_values, values = potts.n_values[observed], potts.places(observed)
        extra = influence(potts, self.columns, self.states, values)
        own = np.repeat(np.cumsum(n_values) - n_values + codes, n_values, axis=1)
        change = extra[None] - extra.T[own].transpose(0, 2, 1)
        return log_sum_exp(self.log_probabilities[:, :, None] + change, axis=1)

    def _gain_by_product(self, row, p, observed):
        """Compute `gains` of one row: a change is a sum over these columns, a product of matrices.

        -inf where nearly nothing is left of a sum, whose digits are lost.
        """
        potts, factors, scales = self.model.potts, [], 0.0
        values = potts.places(observed)
        own = np.repeat(potts.starts[observed] + row[observed], potts.n_values[observed])
        for part in halves(self.columns):
            states = all_states(potts.n_values[part])
            change = influence(potts, part, states, values)
            change -= influence(potts, part, states, own)
            peak = change.max(axis=0)
            factors.append(np.exp(change - peak))
            scales = scales + peak
        left, right = factors
        sums = np.einsum("st,st->t", left, p.reshape(len(left), len(right)) @ right)
        return np.where(sums > 1e-200, np.log(np.maximum(sums, 1e-300)) + scales, -np.inf)


def halves(columns):
    """Columns, cut in two."""
    cut = (len(columns) + 1) // 2
    return columns[:cut], columns[cut:]


def joint_log_weights(potts, fields, columns):
    """Logarithms of the weights of all joint states of some columns, (n_rows, n_states)."""
    if len(columns) == 1:
        return fields[:, potts.places(columns)]
    left, right = halves(columns)
    states, values = all_states(potts.n_values[right]), potts.places(right)
    chosen = np.zeros((len(states), len(values)))
    first = np.cumsum(potts.n_values[right]) - potts.n_values[right]
    np.put_along_axis(chosen, states + first, 1.0, axis=1)
    pairs = influence(potts, left, all_states(potts.n_values[left]), values) @ chosen.T
    table = joint_log_weights(potts, fields, left)[:, :, None] + pairs
    table += joint_log_weights(potts, fields, right)[:, None, :]
    return table.reshape(len(fields), -1)


def influence(potts, columns, states, values):
    """Contribution of joint states of some columns to the fields of some values."""
    total = np.zeros((len(states), len(values)))
    for column, own in zip(columns, states.T, strict=True):
        lines = slice(potts.starts[column], potts.starts[column + 1])
        total += potts.coupling[lines][:, values][own]
    return total


def log_sum_exp(values, axis):
    """ln Σ exp along an axis; SciPy's takes longer on small arrays."""
    peak = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - peak).sum(axis=axis)) + peak.squeeze(axis)


def parts(model, codes, max_states=None):
    """Yield rows that miss the same cells, not too many at once, and these cells in groups.

    The missing columns are in sets that nothing connects; None if one has too many states.
    """
    max_states = MAX_STATES if max_states is None else max_states
    adjacency = model.adjacency()
    for rows, unknown in patterns(codes < 0):
        _, label = connected_components(adjacency[np.ix_(unknown, unknown)], directed=False)
        groups = [unknown[label == g] for g in range(label.max(initial=-1) + 1)]
        sizes = [np.prod(model.n_values[group], dtype=float) for group in groups]
        largest = max(sizes, default=1.0)
        if largest > max_states:
            yield rows, None
            continue
        for some in slices_of_rows(len(rows), largest, CHUNK):
            yield rows[some], groups


def enumerated(model, codes, max_states):
    """`DiscreteModel.enumerated` of any model."""
    n = len(codes)
    p, log_sums, is_exact = np.zeros((n, model.starts[-1])), np.zeros(n), np.ones(n, dtype=bool)
    for rows, groups in parts(model, codes, max_states):
        if groups is None:
            is_exact[rows] = False
            continue
        fields = model.value_fields(codes[rows])
        for group in groups:
            joint = Joint(model, codes[rows], fields, group)
            log_sums[rows] += joint.log_partition()
            for place, j in enumerate(group):
                own = slice(model.starts[j], model.starts[j + 1])
                p[rows, own] = np.exp(joint.log_marginal(place))
    return p, log_sums, is_exact


# Sums over the missing cells.


def log_sums(model, codes):
    """ln Σ exp(log_weight) over the completions of each row.

    Rows with too many joint states take importance weights, or annealed chains where these are not
    sure enough. The random numbers are the same for every row.
    """
    blocks = row_blocks(len(codes), BLOCK_ROWS)
    found = [model.enumerated(codes[rows], MAX_STATES)[1:] for rows in blocks]
    sums, is_exact = map(np.concatenate, zip(*found, strict=True))
    many, result = np.flatnonzero(~is_exact), model.log_weight(codes) + sums
    if len(many):
        distinct, place = np.unique(codes[many], axis=0, return_inverse=True)
        result[many] = _estimated_log_sums(model, distinct)[place.ravel()]
    return result


def _estimated_log_sums(model, codes):
    """Estimate the `log_sums` of distinct rows that have too many joint states."""
    found, betas = np.full(len(codes), np.nan), np.linspace(0, 1, N_TEMPERATURES + 1)

    def anneal(rows):
        generator = np.random.default_rng(SEED)
        return annealed_log_sums(model, model.base, betas, N_ANNEALED, generator, codes[rows])

    with Workers() as workers:
        if model.is_pairwise:
            found[:] = workers.map(model.weighed_log_sum, codes, np.inf)
        many = np.flatnonzero(np.isnan(found))
        blocks = [many[some] for some in row_blocks(len(many), FEW_ROWS)] if len(many) else []
        for rows, sums in zip(blocks, workers.map(anneal, blocks, np.inf), strict=True):
            found[rows] = sums
    return found


def log_conditionals(model, codes):
    """ln p(x_j = a | the observed cells but x_j) in the one-hot layout, (n, Q)."""
    result, many = np.empty((len(codes), model.starts[-1])), []
    for rows, groups in parts(model, codes):
        if groups is None:
            many.extend(rows)
            continue
        fields = model.value_fields(codes[rows])
        joints = [Joint(model, codes[rows], fields, group) for group in groups]
        observed = np.flatnonzero(codes[rows[0]] >= 0).tolist()
        for joint in joints:
            for values, gain in joint.gains(observed):
                fields[:, values] += gain
            for place, j in enumerate(joint.columns):
                own = slice(model.starts[j], model.starts[j + 1])
                fields[:, own] = joint.log_marginal(place)
        result[rows] = model.log_softmax(fields)
    if many:
        blocks = [many[some] for some in row_blocks(len(many), CHAINED_ROWS)]
        with Workers() as workers:
            found = workers.map(lambda rows: _by_chains(model, codes[rows]), blocks, np.inf)
        result[many] = np.concatenate(found)
    return result


def _by_chains(model, codes):
    """`log_conditionals` of a few rows, from chains that begin in the same way for every row."""
    generator = np.random.default_rng(SEED)
    chains = chains_of_each(model, codes, N_CHAINS, N_STEPS, generator)
    # The sums over the missing cells with another value of an observed one, and with its own, have
    # the mean of p(other | all cells) / p(own | all cells) as their ratio.
    log_p = model.log_conditionals(chains.codes).reshape(len(codes), N_CHAINS, -1)
    own = np.repeat(model.starts[:-1] + np.maximum(codes, 0), model.n_values, axis=1)
    fields = log_sum_exp(log_p - np.take_along_axis(log_p, own[:, None], axis=2), axis=1)
    total = chains.sums(model.intercept, N_STEPS).reshape(log_p.shape).mean(axis=1)
    missing = np.repeat(codes < 0, model.n_values, axis=1)
    fields[missing] = np.log(np.maximum(total[missing], 1e-300))
    return model.log_softmax(fields)


# Values for the missing cells.


def complete(model, codes, how, generator, n_steps):
    """Means of codes, the most probable joint states, or draws of the missing cells, as float64.

    `n_steps` are sweeps of the chains, where there are too many joint states.
    """
    if how == "mean":
        blocks = row_blocks(len(codes), BLOCK_ROWS)
        means = [_means(model, codes[rows], n_steps, generator) for rows in blocks]
        return np.where(codes < 0, np.concatenate(means), codes)
    filled, many = codes.astype(np.float64), []
    for rows, groups in parts(model, codes):
        if groups is None:
            many.append(rows)
            continue
        # Equal rows have one sum over the joint states.
        distinct, place = np.unique(codes[rows], axis=0, return_inverse=True)
        fields = model.value_fields(distinct)
        for group in groups:
            joint = Joint(model, distinct, fields, group)
            filled[np.ix_(rows, group)] = joint.reduced(how, generator, place.ravel())
    if many:
        many = np.sort(np.concatenate(many))
        for some in row_blocks(len(many), BLOCK_ROWS):
            rows = many[some]
            if how == "mode":
                filled[rows] = gibbs_mode(model, codes[rows], n_steps, generator)
            else:
                filled[rows] = annealed_draws(model, model.base, codes[rows], n_steps, generator)
    return filled


def _means(model, codes, n_steps, generator):
    """Means of missing codes, (n, d); entries of observed ones have no meaning."""
    p = cell_probabilities(model, codes, MAX_STATES, n_steps, generator)
    values = np.concatenate([np.arange(m) for m in model.n_values])
    return np.add.reduceat(p * values, model.starts[:-1], axis=1)


def cell_probabilities(model, codes, max_states, n_steps, generator):
    """p(x_j = a | the observed cells) of the missing cells in the one-hot layout, (n, Q).

    Entries of observed cells have no meaning. Rows of which connected missing cells have more
    than `max_states` joint states take chains.
    """
    p, _, is_exact = model.enumerated(codes, max_states)
    many = np.flatnonzero(~is_exact)
    if len(many):
        p[many] = model.cells_by_chains(codes[many], n_steps, generator)
    return p


def expected_log_weights(model, codes):
    """E[log-weight | the observed cells] of each row, the derivative of ln Z by 1 / temperature.

    Also p(x_j = a | the observed cells) of missing cells, (n, Q). Rows with too many joint states
    take the means of chains, with random numbers that are the same for every row.
    """
    p, low, is_exact = model.scaled(1 - STEP).enumerated(codes, MAX_STATES)
    other, high, _ = model.scaled(1 + STEP).enumerated(codes, MAX_STATES)
    p += other
    p /= 2
    log_weights = model.log_weight(codes) + (high - low) / (2 * STEP)
    many = np.flatnonzero(~is_exact)
    for part in row_blocks(len(many), FEW_ROWS) if len(many) else []:
        generator, weight, share = np.random.default_rng(SEED), 0, 0
        chains = chains_of_each(model, codes[many[part]], N_FEW, N_FEW_STEPS, generator)
        for _ in range(N_COUNTED):
            chains.sweep(model.intercept)
            weight = weight + chains.log_weight(model.intercept) / N_COUNTED
            share = share + chains.probabilities(model.intercept) / N_COUNTED
        log_weights[many[part]] = weight.reshape(-1, N_FEW).mean(axis=1)
        p[many[part]] = share.reshape(-1, N_FEW, p.shape[1]).mean(axis=1)
    return log_weights, p


def column_probabilities(model, codes, column, n_steps, seed, workers):
    """p(x_column | the observed cells) of each row, which depends on this row alone, and errors.

    The cells of the column itself are ignored. Chains seldom pass between values of a column to
    which all others are coupled. So rows with many joint states take p(x_column = a, the observed
    cells) from draws with the value a, or from annealed chains that hold it. The random numbers are
    the same for every row. The error is the greatest standard error of a row; 0 where sums are
    exact.
    """
    codes = codes.copy()
    codes[:, column] = -1
    own = slice(model.starts[column], model.starts[column + 1])
    bits = np.where(codes < 0, np.log2(model.n_values), 0).sum(axis=1)
    n_states = np.exp2(np.minimum(bits, np.log2(MAX_STATES))).sum()

    def of_block(rows):
        p, _, is_exact = model.enumerated(codes[rows], MAX_STATES)
        return p[:, own].copy(), is_exact

    found = workers.map(of_block, row_blocks(len(codes)), n_states)
    result, is_exact = map(np.concatenate, zip(*found, strict=True))
    many, errors = np.flatnonzero(~is_exact), np.zeros(len(codes))
    if len(many):
        distinct, place = np.unique(codes[many], axis=0, return_inverse=True)
        work = len(distinct) * model.n_values[column] * FIRST_CHAINS * own.stop
        estimate = partial(model.estimated, column=column, n_steps=n_steps, seed=seed)
        p, of_row = zip(*workers.map(estimate, distinct, work), strict=True)
        result[many], errors[many] = np.array(p)[place.ravel()], np.array(of_row)[place.ravel()]
    return result, errors


def weighed(potts, row, column, strengths, seed):
    """p(x_column | the observed cells) of one row from importance weights, and its error.

    None if it is too uncertain. `strengths` tell how strongly each pair of columns is coupled.
    """
    missing, own = np.setdiff1d(np.flatnonzero(row < 0), [column]), potts.places([column])
    known = potts.fields(row[None])[0]
    fields = known + potts.coupling[own]
    estimates = _weighed_sums(potts, fields, missing, strengths, seed, N_DRAWS)
    for sums, log_errors in estimates:
        p = softmax(known[own] + sums)
        error = softmax_errors(p, log_errors).max()
        if error <= MAX_ERROR and log_errors.max() <= MAX_LOG_ERROR:
            return p, error
    return None


def weighed_log_sum(potts, row, strengths, seed):
    """ln Σ exp(log_weight) over the completions of a row by importance weights.

    NaN if its standard error is above MAX_SUM_ERROR.
    """
    fields, missing = potts.fields(row[None]), np.flatnonzero(row < 0)
    sums = _weighed_sums(potts, fields, missing, strengths, seed, N_SUM_DRAWS)
    for (found,), (error,) in sums:
        if error <= MAX_SUM_ERROR:
            return found + potts.log_weight(row[None])[0]
    return np.nan


def _weighed_sums(potts, fields, missing, strengths, seed, n_draws):
    """Yield ln of the sums over missing cells given rows of fields, and errors, with more draws.

    The missing cells that are least coupled to others are drawn, and the others summed out.
    """
    order, n_drawn = _drawn_first(strengths[np.ix_(missing, missing)], potts.n_values[missing])
    places = potts.places(missing[order])
    fields = np.ascontiguousarray(fields[:, places])
    coupling = potts.coupling[np.ix_(places, places)]
    starts = np.concatenate([[0], np.cumsum(potts.n_values[missing[order]])])
    log_weights = np.empty((len(fields), 0))
    for n in n_draws:
        first = log_weights.shape[1]
        more = importance_weights(fields, coupling, starts, n_drawn, n - first, seed, first)
        log_weights = np.hstack([log_weights, more])
        peak = log_weights.max(axis=1, keepdims=True)
        weights = np.exp(log_weights - peak)
        means = weights.mean(axis=1)
        yield peak[:, 0] + np.log(means), weights.std(axis=1, ddof=1) / means / np.sqrt(n)


def _drawn_first(strengths, n_values):
    """An order of missing columns, and how many of them to draw; the others are summed out."""
    core, n_states = np.zeros(len(n_values), dtype=bool), 1
    order = np.argsort(-(strengths**2).sum(axis=0), kind="stable")
    for j in order:
        if n_states * n_values[j] <= MAX_CORE:
            core[j], n_states = True, n_states * n_values[j]
    return np.concatenate([order[~core[order]], order[core[order]]]), int((~core).sum())


def annealed(model, row, column, n_steps, seed):
    """p(x_column | the observed cells) of one row, and its standard error, by annealed chains."""
    rows, generator = np.tile(row, (model.n_values[column], 1)), np.random.default_rng(seed)
    rows[:, column] = np.arange(len(rows))
    bases = [_independent_intercept(model, one, generator) for one in rows]

    def weights_of_chains(n_chains, n_temperatures):
        betas = np.linspace(0, 1, n_temperatures + 1)
        return np.array([
            annealed_log_partition(model, base, betas, n_chains, generator, one).log_weights
            for base, one in zip(bases, rows, strict=True)
        ])  # fmt: skip

    return shares_by_chains(np.zeros(len(rows)), weights_of_chains, n_steps)


def _independent_intercept(model, row, generator):
    """Intercepts of independent columns with the rates that chains find given a row."""
    rows = np.tile(row, (N_PILOT, 1))
    rates = gibbs_probabilities(model, rows, N_PILOT_STEPS, generator).mean(axis=0)
    return model.independent_intercept(np.log(np.maximum(rates, LEAST_RATE)))
