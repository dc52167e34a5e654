"""The search of one table where cells of the rows are missing: structural EM."""

import math

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.loglinear._search import FINAL, N_JOINT, choose, refit, rounding, search
from sklearn_boltz.missing._completion import (
    CompletionModel,
    independent_columns,
    maximise,
    patterns,
)
from sklearn_boltz.numerics._random import make_generator

# A round of EM that lowers the cost by less than this share of `tol` is the last. The rounds that
# follow lower it by some multiple of that.
SHARE_OF_TOL = 0.01
MAX_ROUNDS = 500
# Terms that the score test looks at, and their values that are in memory at once.
N_PROMISING = 200
ENTRIES_AT_ONCE = 2**22


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
        """The cost of a state, from Σ_r w_r ln Σ_m exp(Σ_y θ_y Φ_y(x_o, x_m))."""
        spread = state.theta @ _uniform_moments(self._space, state.codes)
        expected = (log_likelihood + spread) / self._total - state.log_partition
        return float(self._constant - expected + state.penalty.sum())

    def bound(self, log_shares):
        """An upper bound on the cost without terms, by completions with any weights.

        `log_shares` is Σ w_r p(x_m | x_o) ln p(x_m | x_o) over all rows and completions.
        """
        return float(self._constant + log_shares / self._total + math.log(self._space.size))


class IncompleteSearch:
    """The search for the terms of one table by EM: complete the rows, search on, and again.

    The search goes on from the terms that are there, so that it never raises the cost of the
    completed rows. With all completions enumerated, no round raises the cost of the observed
    cells then.

    Parameters
    ----------
    table : DualTable
        Its data are replaced in each round.
    state : SearchState
        Without terms; changed in place.
    data : IncompleteRows
    history : SearchHistory
    solver, tol, max_iter, max_basis
        As in `search`; `max_iter` counts the moves of all rounds.
    """

    def __init__(self, table, state, data, history, **options):
        self._table, self._space, self._state, self._data = table, table.space, state, data
        self._cost, self._history, self._options = ObservedCost(data, table.space), history, options
        self._follow, self._finished = history.follow(state), True

    def run(self):
        """Search until neither a round nor more terms lower the cost; return whether so."""
        first = independent_columns(self._data)._replace(objective=lambda value: -self._state.cost)
        converged = self._maximise(first, self._search_on)
        if self._options["solver"] == "newton" and self._data.is_exact:
            while converged and self._widen():
                converged = self._maximise(self._model(self._settle), self._search_on)
        return converged

    def _maximise(self, model, refit, share=SHARE_OF_TOL):
        tol = max(share * self._options["tol"], rounding(self._table, self._state.cost))
        converged = maximise(
            self._data,
            model,
            refit,
            tol=tol,
            max_rounds=MAX_ROUNDS,
            generator=make_generator(0),  # the search is deterministic
            stop=lambda: self._history.stopped or not self._finished,
        )
        return converged and self._finished

    def _model(self, objective):
        # The table is free between two searches.
        table, space, state = self._table, self._space, self._state
        return CompletionModel(
            lambda rows: table.log_weights(state.codes, state.theta)[space.encode(rows)],
            lambda rows, generator: _draw(self._terms(), rows, generator),
            objective,
        )

    def _terms(self):
        state = self._state
        return LogLinearModel(self._space.n_values, self._space.decode(state.codes), state.theta)

    def _fill(self, rows, weights):
        """Make the tables from completed rows and from the weights of the terms."""
        self._table.set_data(self._space.encode(rows), weights)
        self._state.log_partition = self._table.refresh(self._state.codes, self._state.theta)

    def _search_on(self, rows, weights, model):
        self._fill(rows, weights)
        self._finished = search(
            self._table, self._state, end_iteration=self._follow, **self._options
        )
        if not self._data.is_exact:
            log_sums = self._terms().log_sums(self._data.rows.astype(np.int64))
            self._settle(self._data.weights @ log_sums)
        return self._model(self._settle)

    def _settle(self, log_likelihood):
        """Write down the cost as it is now known."""
        exact = self._cost.of(self._state, log_likelihood)
        self._history.cost_path[-1] += exact - self._state.cost
        self._state.cost = exact
        return -exact

    # What is lost to missing cells.

    def _widen(self):
        """Append terms that the observed cells call for; return whether the cost fell by `tol`.

        Completions follow the model, and so hide in part what it lacks: where a share s of the
        information on a term is observed, the gain of the term by completed rows is s times the
        true one. The score test by the observed cells knows the latter.
        """
        state, n_free = self._state, self._options["max_basis"] - len(self._state.codes)
        if state.n_moves >= self._options["max_iter"] or n_free <= 0 or not len(state.codes):
            return False
        states, shares = self._data.conditional(self._model(None))
        self._fill(states, shares.T @ self._data.weights)
        codes = self._table.promising(N_PROMISING, without=state.codes)
        penalty = np.array([self._table.penalty(code) for code in codes])
        chosen = self._choose(codes, penalty, min(n_free, N_JOINT), states, shares)
        while chosen:
            if self._append(codes[chosen], penalty[chosen]):
                return True
            chosen = chosen[: len(chosen) // 2]
        return False

    def _choose(self, codes, penalty, n_terms, states, shares):
        """Places of the terms that lower the cost by `tol` as the score test has it."""
        every = np.append(self._state.codes, codes)
        means = self._table.t[every].astype(np.float64)
        residual = self._table.d[codes].astype(np.float64) - means[len(self._state.codes) :]
        n_active, information = len(self._state.codes), np.zeros((len(every), len(every)))
        basis, start = self._space.decode(every), 0
        while start < len(self._data.rows):
            most = shares.indptr[start] + ENTRIES_AT_ONCE // len(every)
            end = max(start + 1, int(np.searchsorted(shares.indptr, most, side="right")) - 1)
            part, weights = shares[start:end], self._data.weights[start:end, None]
            used, places = np.unique(part.indices, return_inverse=True)
            part = csr_array((part.data, places, part.indptr), (end - start, len(used)))
            scores = part @ self._space.signs(states[used].astype(np.int64), basis) - means
            information += scores.T @ (weights * scores)
            start = end
        information /= self._data.weights.sum()
        among = information[n_active:, n_active:]
        return choose(
            residual,
            np.diag(among),
            information[:n_active, :n_active],
            information[:n_active, n_active:],
            lambda k: among[k],
            penalty,
            self._options["tol"],
            n_terms,
        )

    def _append(self, codes, penalty):
        """Append terms and fit all weights by EM; undo it unless the cost falls by `tol`."""
        state, before = self._state, vars(self._state).copy()
        state.append(codes, penalty)

        def objective(log_likelihood):
            state.cost = self._cost.of(state, log_likelihood)
            return -state.cost

        def fit_weights(rows, weights, model):
            self._fill(rows, weights)
            refit(self._table, state, FINAL)
            return model

        self._maximise(self._model(objective), fit_weights, share=10 * SHARE_OF_TOL)
        if state.cost < before["cost"] - self._options["tol"]:
            state.n_moves = before["n_moves"] + 1
            self._follow()
            return True
        vars(state).update(before)
        return False


def initial_cost(data, space, state):
    """An upper bound on the cost without terms: that of the rows completed by their columns."""
    model, cost = independent_columns(data), ObservedCost(data, space)
    if not data.is_exact:
        known = np.where(data.rows < 0, 1.0, space.n_values).prod(axis=1)
        return cost.of(state, data.weights @ (np.log(space.size) - np.log(known)))
    completed = data.complete(model)
    log_shares = completed.weights @ model.log_weight(completed.rows) - completed.log_likelihood
    return cost.bound(log_shares)


def _draw(model, rows, generator):
    return model.complete(rows.astype(np.int64), "sample", generator).astype(np.int64)


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
