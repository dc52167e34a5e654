"""The normalising constant by annealed importance sampling, in both directions."""

import math
from copy import copy
from functools import partial
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp

from sklearn_boltz.numerics._arrays import (
    as_numpy,
    copied,
    device_of,
    empty,
    is_foreign,
    namespace_of,
    taken,
    widest,
    zeros,
)
from sklearn_boltz.numerics._threads import (
    blocks_of_narrow_rows,
    has_other_processes,
    limit_blas,
    row_blocks,
)
from sklearn_boltz.partition._estimates import (
    MARKOV,
    estimate_from_weights,
    with_verdict,
)
from sklearn_boltz.restricted.model._model import check_normalisable
from sklearn_boltz.restricted.sampling._gibbs import (
    fields_by_kernels,
    joined_intercepts,
    parameters_of_layers,
    run_chains,
    steps_of_transition,
)
from sklearn_boltz.restricted.sampling._gibbs_kernel import anneal

# How often temperatures and chains are doubled if a standard error is asked for.
MOST_DOUBLINGS = 6


def resampled(estimate, rng):
    """States at the ends of the chains, drawn by the weights of the chains."""
    weights = np.exp(estimate.log_weights - estimate.log_weights.max())
    chosen = rng.choice(len(weights), size=len(weights), p=weights / weights.sum())
    return taken(estimate.states, chosen)


def base_log_partition(model, base):
    """ln Z of independent units: visible ones as in `base`, hidden ones without bias."""
    zero, weights = model.hidden.base(), model.weights
    visible = base.log_partition_sum(zeros(weights, (1, len(base))))[0]
    return float(visible + zero.log_partition_sum(zeros(weights, (1, len(zero))))[0])


def annealed_importance_sampling(model, base, betas, n_chains, stream, workers):
    """Estimate ln Z from chains that come from independent units.

    Parameters
    ----------
    model : Model
        Of any unit types.
    base : UnitType
        The visible units at infinite temperature, ideally fitted to the data.
    betas : ndarray of float64
        Inverse temperatures from 0 to 1.
    n_chains : int
    stream : Stream
    workers : Workers

    Returns
    -------
    estimate : Bunch
        `value`, `std_err` (delta method), `ess`, `log_weights`; exp(value) is unbiased, so that
        ln Z is above `low` with a probability of 95 %. `states` are the ends of the chains.
    """
    check_normalisable(model)
    V = base.sample(zeros(model.weights, (n_chains, len(base))), stream)
    log_weights = _anneal(model, base, betas, V, stream, workers)
    log_weights += base_log_partition(model, base)
    return estimate_from_weights("ais", log_weights, 1, V)


def annealed_within(tol, model, base, betas, n_chains, stream, workers):
    """`annealed_importance_sampling` with ever more temperatures and chains.

    Parameters
    ----------
    tol : float or None
        The wanted standard error; two runs may differ by twice as much. None for one run.
    model, base, betas, n_chains, stream, workers
        As of `annealed_importance_sampling`.

    Returns
    -------
    estimate : Bunch
        Of the last run; its verdict says so if the error is greater than wanted.
    """
    run = partial(annealed_importance_sampling, model, base)
    estimate = run(betas, n_chains, stream, workers)
    if tol is None:
        return estimate
    for _ in range(MOST_DOUBLINGS):
        former = estimate
        betas, n_chains = doubled(betas), 2 * n_chains
        estimate = run(betas, n_chains, stream, workers)
        estimate.low = max(estimate.low, former.low)
        if estimate.std_err <= tol and abs(estimate.value - former.value) <= 2 * tol:
            return estimate
    estimate.trusted = False
    estimate.verdict += (
        f" With {len(betas) - 1} temperatures and {n_chains} chains it is not within {tol:g}."
    )
    return estimate


def doubled(betas):
    """Inverse temperatures with one more between neighbours."""
    return np.sort(np.concatenate([betas, (betas[1:] + betas[:-1]) / 2]))


def reverse_importance_sampling(model, base, betas, V, stream, workers, n_rows=1):
    """Estimate ln Z from chains that go from the model back to independent units.

    Where the chains start at samples of the model, the mean weight is unbiased for 1/Z, so that ln
    Z is overestimated on average. Where they start at rows of data (RAISE, Burda et al., 2015), the
    mean weight of the chains of one row, times f(v), is unbiased for the probability of that row
    under the distribution in which annealing ends: the logarithms of the means are averaged over
    the rows, and with them the likelihood of *that distribution* is underestimated on average. The
    likelihood of the model itself may be overestimated, if the model has mass that neither the rows
    nor the chains visit.

    Parameters
    ----------
    model : Model
    base : UnitType
    betas : ndarray of float64
        Inverse temperatures from 0 to 1.
    V : ndarray of shape (n_chains, n_visible)
        Where the chains start.
    stream : Stream
    workers : Workers
    n_rows : int
        Number of rows of data where the chains start, in turn; 1 for samples of the model.

    Returns
    -------
    estimate : Bunch
        As of `annealed_importance_sampling`.
    """
    check_normalisable(model)
    V = copied(V) if is_foreign(V) else np.array(V, dtype=model.dtype, order="C")
    H = empty(V, (V.shape[0], len(model.hidden)))
    run_chains(model, V, H, 1, stream, workers)
    log_weights = _anneal(model, base, betas[::-1].copy(), V, stream, workers)
    log_weights -= base_log_partition(model, base)
    if n_rows == 1:
        return estimate_from_weights("raise", log_weights, -1, V)
    # As many chains for each row; the last ones that do not make a round are left out.
    by_row = log_weights[: len(log_weights) // n_rows * n_rows].reshape(-1, n_rows)
    values = math.log(len(by_row)) - logsumexp(by_row, axis=0)
    estimate = estimate_from_weights("raise", log_weights, -1, V)
    estimate.update(value=float(values.mean()))
    estimate.update(std_err=float(values.std(ddof=1) / math.sqrt(n_rows)), ess=float(n_rows))
    return with_verdict(estimate)


def _anneal(model, base, betas, V, stream, workers):
    """Carry the chains V along the ladder, in place; -> their log-weights."""
    if is_foreign(V):
        log_weights = namespace_of(V).zeros(V.shape[0], dtype=widest(V), device=device_of(V))
        first = stream.step
        _anneal_any_units(model, base, betas, V, log_weights, stream, 0)
        if base.is_binary and model.visible.is_binary and model.hidden.is_binary:
            stream.step = first + 2 * len(betas)  # as of `_anneal_layers`
        return np.array(as_numpy(log_weights), dtype=np.float64)
    log_weights = np.zeros(len(V))
    model = model._replace(weights=np.asfortranarray(model.weights))  # once for all blocks
    fast = parameters_of_layers(model) is not None
    anneal_block = _anneal_layers if fast else _anneal_any_units
    n_rows, n_columns = len(V), sum(model.weights.shape)
    blocks = row_blocks(n_rows) if fast else blocks_of_narrow_rows(n_rows, n_columns)
    first = stream.take(0)

    def block(rows):
        # Each block takes the same steps of the stream: a number depends on its row as well.
        own = copy(stream)
        anneal_block(model, base, betas, V[rows], log_weights[rows], own, rows.start)
        return own.step

    if len(blocks) > 1 and has_other_processes():
        # One tuple for each: of arrays that are arguments, Dask's backend keeps a single copy on
        # some worker, which may die.
        settings = anneal_block, model, base, betas, stream
        found = Parallel()(delayed(_anneal_elsewhere)((*settings, V[b], b.start)) for b in blocks)
        for rows, (states, weights, _) in zip(blocks, found, strict=True):
            V[rows], log_weights[rows] = states, weights
        last = found[-1][-1]
    else:
        work = len(V) * model.weights.size * 2 * len(betas)
        last = workers.map(block, blocks, work)[-1]
    stream.take(last - first)
    return log_weights


def _anneal_elsewhere(settings):
    """A block in another process; -> where the chains are, their log-weights, the next step."""
    anneal_block, model, base, betas, stream, V, first_row = settings
    # joblib may send several blocks with one and the same stream.
    V, log_weights, own = np.array(V), np.zeros(len(V)), copy(stream)
    with limit_blas(1):
        anneal_block(model, base, betas, V, log_weights, own, first_row)
    return V, log_weights, own.step


def _anneal_layers(model, base, betas, V, log_weights, stream, first_row):
    weights, bias, hidden_bias, *layers = parameters_of_layers(model)
    of_base, H = joined_intercepts(base), np.empty((len(V), len(hidden_bias)), model.dtype)
    first = stream.take(steps_of_transition(model) * len(betas))
    anneal(
        weights, of_base, bias - of_base, hidden_bias, *layers, betas, V, H, np.empty_like(bias),
        np.empty_like(hidden_bias), log_weights, stream.seed, first, first_row,
    )  # fmt: skip


def _anneal_any_units(model, base, betas, V, log_weights, stream, first_row):
    """Each rung adds the change of ln f(v), and, except for the last, makes a transition."""
    hidden_base = model.hidden.base()
    hidden_field, visible_field = fields_by_kernels(model)

    def layers(beta):
        return model.visible.annealed(beta, base), model.hidden.annealed(beta, hidden_base)

    betas = betas.tolist()
    visible, hidden = layers(betas[0])
    for k, (low, high) in enumerate(pairwise(betas), start=1):
        field = hidden_field(V)
        log_weights -= visible.log_weight(V) + hidden.log_partition_sum(low * field)
        visible, hidden = layers(high)
        log_weights += visible.log_weight(V) + hidden.log_partition_sum(high * field)
        if k < len(betas) - 1:
            H = hidden.sample(high * field, stream, first_row)
            V[...] = visible.sample(high * visible_field(H), stream, first_row)


def bracketed(forward, backward, from_model):
    """The estimate of the reverse chains, combined with what AIS says.

    Parameters
    ----------
    forward, backward : Bunch
        Estimates of `annealed_importance_sampling` and `reverse_importance_sampling`.
    from_model : bool
        Whether the reverse chains started at what ought to be samples of the model.

    Returns
    -------
    estimate : Bunch
        `backward` with `low`, `high` and `verdict`.
    """
    backward.low = forward.low
    if forward.low > backward.value:
        backward.trusted = False
        backward.verdict = (
            "The RAISE estimate of the log-partition is not to be trusted: it is "
            f"{backward.value:.1f}, but AIS shows that ln Z is at least {forward.low:.1f} with a "
            "probability of 95 %. The model has mass that the reverse chains do not visit. "
            "score_samples uses log_partition_, not this estimate."
        )
    elif from_model:
        backward.high = backward.value + MARKOV
    return backward
