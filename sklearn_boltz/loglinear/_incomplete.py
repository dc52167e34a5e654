"""The search of one table where cells of the rows are missing: structural EM."""

import math

import numpy as np

from sklearn_boltz._completion import Model, independent_columns, maximise, patterns
from sklearn_boltz._random import make_generator
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.loglinear._search import rounding, search

# A round of EM that lowers the cost by less than this share of `tol` is the last. The rounds that
# follow lower it by some multiple of that.
SHARE_OF_TOL = 0.01
MAX_ROUNDS = 500


class ObservedCost:
    """The cost of a model by the observed cells of incomplete rows.

    It is the divergence of the model from the data, for each pattern of missing cells by itself
    and in proportion to the rows that have it, plus the penalties. The one observation that is
    spread evenly counts as a complete one.

    Parameters
    ----------
    data : IncompleteRows
    space : StateSpace
    """

    def __init__(self, data, space):
        self._data, self._space = data, space
        self._total = float(data.weights.sum()) + 1
        missing = data.rows < 0
        complete = data.weights[~missing.any(axis=1)]
        self._constant = _negative_entropy(complete, self._total, space.size)
        self._constant -= _x_log_x((complete.sum() + 1) / self._total)
        for rows, unknown in patterns(missing):
            if len(unknown):
                weights = data.weights[rows]
                self._constant += weights @ np.log(weights / weights.sum()) / self._total

    def of(self, state, log_likelihood):
        """The cost of a state.

        Parameters
        ----------
        state : State
        log_likelihood : float
            Σ_r w_r ln Σ_m exp(Σ_y θ_y Φ_y(x_o, x_m)).
        """
        spread = state.theta @ _uniform_moments(self._space, state.codes)
        expected = (log_likelihood + spread) / self._total - state.log_partition
        return float(self._constant - expected + state.penalty.sum())

    def bound(self, state, completed, log_shares):
        """An upper bound on `of(state, ...)` by completions with any weights.

        Parameters
        ----------
        state : State
            Without terms.
        completed : Completed
        log_shares : float
            Σ w_r p(x_m | x_o) ln p(x_m | x_o) over all rows and completions.
        """
        return float(self._constant + log_shares / self._total + math.log(self._space.size))


def search_incomplete(table, state, data, history, **options):
    """Search for the terms of one table by EM: complete the rows, search on, and again.

    The search goes on from the terms that are there, so that it never raises the cost of the
    completed rows. With all completions enumerated, no round raises the cost of the observed
    cells then.

    Parameters
    ----------
    table : DualTable
        Its data are replaced in each round.
    state : State
        Without terms; changed in place.
    data : IncompleteRows
    history : History
    **options : dict
        Of `search`, where `max_iter` counts the moves of all rounds.

    Returns
    -------
    converged : bool
    """
    cost, space, finished = ObservedCost(data, table.space), table.space, True
    follow = history.follow(state)

    def refit(rows, weights, model):
        nonlocal finished
        table.set_data(space.encode(rows), weights)
        table.refresh(state.codes, state.theta)
        finished = search(table, state, end_iteration=follow, **options)
        if not data.is_exact:
            settle(log_likelihood())
        return fitted

    def log_likelihood():
        basis = space.decode(state.codes)
        model = LogLinearModel(space.n_values, basis, state.theta)
        rows, missing = data.rows.astype(np.int64), data.rows < 0
        return data.weights @ model.log_marginal(np.where(missing, 0, rows), missing)

    def settle(value):
        """Write down the cost as it is."""
        exact = cost.of(state, value)
        history.correct(exact - state.cost)
        state.cost = exact
        return -exact

    fitted = Model(
        # The table is free between two searches.
        lambda rows: table.log_weights(state.codes, state.theta)[space.encode(rows)],
        lambda rows, generator: _draw(space, state, rows, generator),
        settle,
    )
    first = independent_columns(data)._replace(objective=lambda value: -state.cost)
    tol = max(SHARE_OF_TOL * options["tol"], rounding(table, state.cost))
    end = maximise(
        data,
        first,
        refit,
        tol=tol,
        max_rounds=MAX_ROUNDS,
        generator=make_generator(0),  # the search is deterministic
        stop=lambda: history.stopped or not finished,
    )
    return end.converged and finished


def initial_cost(data, space, state):
    """An upper bound on the cost without terms: that of the rows completed by their columns."""
    model, cost = independent_columns(data), ObservedCost(data, space)
    if not data.is_exact:
        known = np.where(data.rows < 0, 1.0, space.n_values).prod(axis=1)
        return cost.of(state, data.weights @ (np.log(space.size) - np.log(known)))
    completed = data.complete(model)
    log_shares = completed.weights @ model.log_weight(completed.rows) - completed.log_likelihood
    return cost.bound(state, completed, log_shares)


def _draw(space, state, rows, generator):
    model = LogLinearModel(space.n_values, space.decode(state.codes), state.theta)
    missing = rows < 0
    states = np.where(missing, 0, rows).astype(np.int64)
    return model.impute(states, missing, "sample", generator).astype(np.int64)


def _uniform_moments(space, codes):
    """E[Φ_y] under the uniform distribution."""
    moments = space.uniform_moments()[codes // space.n_fast]
    return np.where(codes % space.n_fast == 0, moments, 0.0)


def _negative_entropy(weights, total, size):
    """Σ q ln q of q(x) = (N_x + 1/size) / total."""
    each = 1 / size
    unseen = (size - len(weights)) * _x_log_x(each / total)
    return float(sum(map(_x_log_x, (weights + each) / total)) + unseen)


def _x_log_x(x):
    return x * math.log(x)
