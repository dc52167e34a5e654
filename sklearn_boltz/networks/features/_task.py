"""`Task` of a network of features."""

import numpy as np

from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.features._basis import (
    MANY_KNOTS,
    n_knots,
    of_cycle,
    of_order,
    of_values,
)
from sklearn_boltz.networks.features._fit import Rounds
from sklearn_boltz.networks.features._likelihood import raise_likelihood
from sklearn_boltz.networks.model._gauge import state_offsets
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.training._fit import label_of

# Half as many knots again, where the likelihood is maximised: diamonds that are drawn are told from
# others more often with fewer. With a pseudo-likelihood, they are with more.
MORE_KNOTS = 3


class FeatureTask(CodesTask):
    """A fit with one variance for the couplings of each pair of columns, or one for all.

    Parameters
    ----------
    codes, counts, n_values
        As for `CodesTask`.
    positions : list of ndarray or None
        Where the values of each column lie on a line; None for a column without an order.
    cyclic : ndarray of bool of shape (n_columns,)
        Which columns have them on a circle instead, in shares of a turn.
    generator : Generator or None
        The randomness of chains, if the fit goes on to the maximum of the likelihood.
    alpha : float or None
        The strength of the penalty per row; None to estimate it of each pair.
    """

    def __init__(self, codes, counts, n_values, positions, cyclic, generator=None, alpha=None):
        super().__init__(codes, counts, n_values, 0.0)
        # A missing number has 64 values: with all completions, EM takes three times as long.
        self.most_cells = 2**15
        self.positions, self.cyclic, self.generator = positions, cyclic, generator
        self.alpha = alpha
        self.ordered = np.array([p is not None for p in positions])

    @classmethod
    def of_rows(cls, rows, table, generator=None, alpha=None):
        """The task of `Rows` of a table."""
        kept, n_values = distinct_incomplete(rows.codes, rows.weights), rows.coding.n_values
        places, cyclic = positions(table, n_values, alpha is not None), table.declared("cyclic")
        task = cls(*kept, n_values, places, cyclic, generator, alpha)
        task.label = label_of(table, rows.coding)
        return task

    def bases(self):
        """Functions of the values that are fitted, of each column that varies."""
        found, offsets = [], state_offsets(self.n_fitted)
        first = state_offsets(self.column_sizes)
        most = n_knots(self.ordered.sum(), self._kept[1].sum())
        if self.generator is not None:
            most = MORE_KNOTS * min(most, MANY_KNOTS) // 2
        for j, column in enumerate(self.varying):
            own = slice(offsets[j], offsets[j + 1])
            weights, positions = self.state_weights[own], self.positions[column]
            shares = weights / weights.sum()
            if positions is None or len(shares) < 3:
                found.append(of_values(shares))
            else:
                smooth = of_cycle if self.cyclic[column] else of_order
                found.append(smooth(shares, positions[self.states[own] - first[column]], most))
        return found

    def network(self, state):
        """Couplings, intercepts, terms, their weights and the potential of all columns."""
        if isinstance(state, np.ndarray):
            return super().network(state)
        model = state if isinstance(state, PottsModel) else state.of_values(state.model())
        return self.of_all_columns(model.coupling, model.intercept)

    def steps(self, initial, n_draws, alpha, monitor):
        """Fit, and set the strength of the penalty of each pair, in place.

        Returns a warning about how the fit ended, or None.
        """
        if not len(self.varying):
            monitor.total = self.problem.total
            monitor(self.problem.at(self.initial(None, None)))
            monitor.status = "converged"
            return None
        fit = Rounds(self.bases(), *self.rows(), n_draws, self.alpha)
        monitor.total = fit.total
        try:
            fit.run(self._begin(fit.network(), *initial), monitor)
        finally:  # also of a fit that is interrupted
            alpha[np.ix_(self.varying, self.varying)] = fit.strength()
        if self.generator is None:
            monitor.keep(fit.model(monitor.last))
        elif not monitor.asked:
            raise_likelihood(fit, monitor.last, monitor, self.generator)
        if monitor.status == "max_iter":
            raised = "pseudo-likelihood" if self.generator is None else "likelihood"
            return (
                f"The fit ended at max_iter={monitor.max_iter} rounds, while the {raised} still "
                "rose. Raise max_iter."
            )
        return None

    def _begin(self, network, coupling, intercept):
        """The network where a fit begins; None are parameters of independent columns."""
        if coupling is None and intercept is None:
            return network
        n, states = len(self.base), self.states
        coupling = np.zeros((n, n)) if coupling is None else coupling
        intercept = self.base if intercept is None else intercept
        return network.near(coupling[np.ix_(states, states)], intercept[states])


def has_order(table):
    """The columns with an order by their kind; numbers of few values may be codes."""
    return table.declared("ordinal") | table.is_binned


def positions(table, n_values, by_kind=False):
    """Where values with an order lie on a line, or on a circle; None for columns without.

    `by_kind` leaves out numbers of few values that nobody has called ordinal.
    """
    found = [None] * len(n_values)
    # Numbers in an array may be codes of anything.
    ordered = table.is_ordered & (table.is_word | table.is_binned) & (n_values > 2)
    if by_kind:
        ordered &= has_order(table)
    for j in np.flatnonzero(ordered):
        bins = table.columns[j].bins
        found[j] = np.arange(n_values[j], dtype=float) if bins is None else bins.means
    for j in np.flatnonzero(table.declared("cyclic")):
        found[j] = np.arange(n_values[j]) / n_values[j]
    return found


def smooth_columns(table, coding, alpha, by_kind=False):
    """Which columns have smooth functions: with an order, unless there is no penalty."""
    if alpha == 0 or coding.is_binary:
        return np.zeros(len(coding.n_values), dtype=bool)
    found = positions(table, coding.n_values, by_kind)
    return np.array([places is not None for places in found])
