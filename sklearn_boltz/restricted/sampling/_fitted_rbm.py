"""FittedRBM: the distribution of rows of the visible units, all hidden layers summed out."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.numerics._arrays import (
    as_type,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    zeros,
)
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.model._enumeration import (
    EXACT_UNITS,
    blocks_of_states,
    exact_log_partition,
    hidden_bits,
    n_bits,
)
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.sampling import _completions, _conditional, _observed
from sklearn_boltz.restricted.sampling._array_chains import filled_by_chains
from sklearn_boltz.restricted.sampling._climb import ladder_samples, ladder_to
from sklearn_boltz.restricted.sampling._samples import chain_samples, tempered_samples

# Maximum number of chains of a ladder that gives samples.
LADDER_CHAINS = 1000


class FittedRBM(NamedTuple):
    """p(v) of an RBM, or of a deep machine, of rows of numbers in which NaN is a missing cell.

    Attributes
    ----------
    layered : Layered
    base : UnitType
        Independent units of the visible side, where annealing begins.
    marginal : Model, ClassModel or MeanFieldModel
        p(v) of complete rows.
    seed : int
        Of estimates that must be the same each time.
    n_jobs : int or None
    """

    layered: Layered
    base: Any
    marginal: Any
    seed: int
    n_jobs: int | None = None

    @property
    def model(self):
        """The two sides."""
        return self.marginal.sides()

    def _of_gaps(self, function, V):
        rows = self.layered.padded(V, np.nan)
        with Workers(self.n_jobs) as workers:
            return function(self.model, self.base, rows, self.seed, workers)

    def log_sums(self, V):
        """ln Σ exp(−E) over the missing cells and all hidden units of each row."""
        return -self._of_gaps(_observed.free_energy, V)

    def mean_hidden(self, V):
        """E[h | observed cells] of each row; of an RBM."""
        return self._of_gaps(_completions.mean_hidden, V)

    def log_pseudo_likelihood(self, V):
        """Σ ln p(v_i | the other observed cells) over the observed cells of each row; of an RBM."""
        return self._of_gaps(_completions.log_pseudo_likelihood, V)

    def log_partition(self):
        """ln Z, by enumeration."""
        return exact_log_partition(self.model)

    def tempered(self, temperature):
        """p(v, h)^(1/T), summed over h."""
        if temperature == 1:
            return self
        return self._replace(marginal=self.model.tempered(1 / temperature))

    def entropy(self):
        """−Σ p(v) ln p(v), by enumeration."""
        visible = self.layered.layers[0]
        bits = n_bits(visible) + hidden_bits(self.layered)
        if not bits <= EXACT_UNITS:
            raise ValueError(
                "`entropy` needs visible units with finitely many values, and some have real "
                "numbers."
                if n_bits(visible) == math.inf
                else f"there are {bits:g} bits to enumerate, of the visible layer and, with "
                "several hidden layers, of every second one; `entropy` enumerates "
                f"{EXACT_UNITS} at most. Minus the mean of score_samples over many rows of "
                "`sample` estimates it."
            )
        log_weights = np.concatenate([*map(self.log_sums, blocks_of_states(visible))])
        log_p = log_weights - logsumexp(log_weights)
        return float(-np.exp(log_p) @ log_p)

    def column_probabilities(self, V, unit, n_steps, seed, bar=None):
        """p(state of a unit | the other observed cells) of each row, and its standard error.

        The steps of a bar are blocks of rows.
        """
        V, units = np.array(V), self.layered.layers[0]
        V[:, units.columns_of(unit)] = np.nan
        pad, missing = self.layered.padded, np.isnan(V)
        parts = self.model, self.base, pad(V), pad(missing, True)
        with Workers(self.n_jobs, bar) as workers:
            return _conditional.column_probabilities(*parts, unit, units, n_steps, seed, workers)

    def complete(self, V, how, rng, n_steps, missing=None):
        """Rows with what `how` says of p(missing | observed) in missing cells, or some of them.

        On a device, that is by Markov chains.
        """
        if is_foreign(V):
            return self._complete_array(V, how, rng, n_steps)
        missing = np.isnan(V) if missing is None else missing
        some, filled = missing.any(axis=1), np.array(V, np.float64)
        # Units beside the visible ones are always missing.
        rows, gaps = self.layered.padded(V[some], np.nan), self.layered.padded(missing[some], True)
        found = _conditional.impute(
            self.model, self.base, rows, gaps, how, n_steps, rng, self.marginal
        )[:, : V.shape[1]]
        filled[some] = np.where(missing[some], found, V[some])
        return filled

    def _complete_array(self, V, how, rng, n_steps):
        V = as_type(V, numpy_dtype(self.layered.weights[0]))
        rows, stream = self.layered.padded(V, np.nan), Stream.from_generator(rng)
        xp, free_energy = namespace_of(V), self.marginal.free_energy
        filled = filled_by_chains(
            self.model, rows, xp.isnan(rows), how, n_steps, stream,
            free_energy=lambda states: free_energy(states[:, : V.shape[1]]),
        )  # fmt: skip
        return xp.where(xp.isnan(V), filled[:, : V.shape[1]], V)

    def sample_by_ladder(self, former, n_samples, n_steps, rng):
        """Draw rows of the visible side by chains of a ladder of models; see `ladder_to`."""
        start = self.base, former, min(n_samples, LADDER_CHAINS), Stream.from_generator(rng)
        with Workers(self.n_jobs) as workers:
            return ladder_samples(ladder_to(self.model, *start), n_samples, n_steps, workers)

    def sample(
        self, n_samples, rng, values=None, starts=None, *, temperature=1.0, n_steps=1000,
        n_temperatures=1,
    ):  # fmt: skip
        """Draw rows of the visible side by chains; given values of some, exactly if states are few.

        Parameters
        ----------
        n_samples : int
        rng : Generator
        values : ndarray of shape (n_samples, n_numbers), default=None
            Numbers that are given, the same ones in all rows, and NaN.
        starts : array of shape (n_samples, n_numbers), default=None
            Where the chains start; None for independent units.
        temperature : float
        n_steps : int
            Transitions of each chain.
        n_temperatures : int
            Of parallel tempering; 1 for none.

        Returns
        -------
        V : array of shape (n_samples, n_visible side)
        """
        model, stream = self.model, Stream.from_generator(rng)
        if temperature != 1:
            model = model.tempered(1 / temperature)
        clamped = np.zeros(len(model.visible), dtype=bool)
        if values is not None:
            clamped[: values.shape[1]] = ~np.isnan(values[0])
            values = np.pad(values, [(0, 0), (0, len(clamped) - values.shape[1])])
            if not (is_foreign(model.weights) or starts is not None or n_temperatures > 1):
                rows = model, self.base, values, ~clamped
                return _conditional.drawn(*rows, n_steps, rng, stream)
        if starts is None:
            V = self.base.sample(zeros(model.weights, (n_samples, len(clamped))), stream)
        else:
            V = self.marginal.side(starts)
        if values is not None:
            values = like(V, values.astype(numpy_dtype(V)))
            V = namespace_of(V).where(like(V, clamped), values, V)
        with Workers(self.n_jobs) as workers:
            if n_temperatures == 1:
                return chain_samples(model, V, n_steps, stream, workers, clamped)
            return tempered_samples(
                model, self.base, V, n_steps, n_temperatures, stream, workers, clamped
            )
