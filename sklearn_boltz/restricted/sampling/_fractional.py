"""Fractional RBMs: hidden units that count any number of times (Ping, Liu and Ihler, 2016)."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.model._enumeration import log_sum_over_states
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.units._bernoulli import Bernoulli

# Visible units whose states can be enumerated in reasonable time.
MOST_UNITS = 20


class FractionalModel:
    """A density of binary vectors in which each hidden unit of an RBM counts c times.

    ln p(v) = Σ_i c_i softplus(w_i·v + a_i) + b·v − ln Z, eq. 11 of [1]_, with any c_i ≥ 0.
    Frank and Wolfe's algorithm gives such models where its steps are not 1/t. With all
    c_i = 1 it is an RBM, which block Gibbs sampling draws from. With other c_i, `gibbs` corrects
    its transitions.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The weights w.
    intercept_hidden : array-like of shape (n_components,)
        The biases a of the hidden units.
    intercept_visible : array-like of shape (n_features,)
        The biases b of the visible units.
    multiplicity : array-like of shape (n_components,)
        How often each unit counts, c.

    Attributes
    ----------
    multiplicity : ndarray of float64 of shape (n_components,)
        How often each unit counts, c.

    See Also
    --------
    sklearn_boltz.InfiniteRBM : The RBM that the algorithm of the paper gives.

    References
    ----------
    .. [1] W. Ping, Q. Liu and A. Ihler, "Learning infinite RBMs with Frank-Wolfe", NIPS
       2016. Section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.restricted import FractionalModel
    >>> model = FractionalModel([[4.0, 4.0]], [-6.0], [0.0, 0.0], [0.5])
    >>> V = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> p = np.exp(model.score_samples(V))
    >>> p.round(3)
    array([0.166, 0.177, 0.177, 0.48 ])
    >>> samples = model.gibbs(np.tile(V, (500, 1)), n_steps=20, random_state=0)
    >>> bool(abs(samples.prod(axis=1).mean() - p[3]) < 0.05)
    True
    """

    def __init__(self, components, intercept_hidden, intercept_visible, multiplicity):
        weights = np.asarray(components)
        if weights.dtype != np.float32:
            weights = weights.astype(np.float64)
        hidden, visible = (
            np.ascontiguousarray(a, dtype=weights.dtype)
            for a in (intercept_hidden, intercept_visible)
        )
        self.multiplicity = np.asarray(multiplicity, dtype=np.float64)
        if self.multiplicity.shape != hidden.shape or not (self.multiplicity >= 0).all():
            raise ValueError(
                f"multiplicity must have {len(hidden)} values of at least 0, got {multiplicity!r}."
            )
        self._model = Model(weights, Bernoulli(visible), Bernoulli(hidden))
        # A unit that counts 2.3 times is two of an RBM and one that counts 0.3 times.
        copies = np.floor(self.multiplicity).astype(int)
        rest = self.multiplicity - copies
        times = np.append(np.ones(copies.sum()), rest[rest > 0])
        chosen = np.append(np.repeat(np.arange(len(copies)), copies), np.flatnonzero(rest))
        # The RBM of eq. 12: the multiplicity goes into the softplus.
        self._proposal = Model(
            np.asfortranarray(times[:, np.newaxis] * weights[chosen], dtype=weights.dtype),
            Bernoulli(visible),
            Bernoulli((times * hidden[chosen]).astype(weights.dtype)),
        )

    @classmethod
    def from_estimator(cls, estimator, multiplicity):
        """Give the units of a fitted RBM multiplicities.

        Parameters
        ----------
        estimator : estimator
            A fitted RBM.
        multiplicity : float or array-like of shape (n_components,)
            How often each unit counts. A number α is for α / n_components each, so that
            it takes the place of α in eq. 5.

        Returns
        -------
        model : FractionalModel
            The density that results.

        Raises
        ------
        ValueError
            If the units of the RBM are not all binary.
        """
        check_is_fitted(estimator)
        layers = estimator._layered().layers if hasattr(estimator, "_layered") else ()
        if not all(units.is_binary for units in layers):
            raise ValueError("Multiplicities are for RBMs whose units are all binary.")
        n_components = len(estimator.components_)
        if np.ndim(multiplicity) == 0:
            multiplicity = np.full(n_components, multiplicity / n_components)
        return cls(
            estimator.components_,
            estimator.intercept_hidden_,
            estimator.intercept_visible_,
            multiplicity,
        )

    def free_energy(self, V):
        """Return the free energy of rows, minus the log-probability up to a constant.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_features)
            Values of the visible units.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            −Σ_i c_i softplus(w_i·v + a_i) − b·v, in nats.
        """
        V = np.asarray(V, dtype=self._model.dtype)
        softplus = self._model.hidden.log_partition(self._model.hidden_field(V))
        return -self._model.visible.log_weight(V) - softplus @ self.multiplicity

    def log_partition(self):
        """Compute the logarithm of the normalising constant by enumeration.

        Returns
        -------
        log_partition : float
            Exact, in nats.

        Raises
        ------
        ValueError
            With more than 20 visible units.
        """
        n_units = len(self._model.visible)
        if n_units > MOST_UNITS:
            raise ValueError(
                f"There are {n_units} visible units; at most {MOST_UNITS} can be enumerated."
            )
        return log_sum_over_states(lambda V: -self.free_energy(V), self._model.visible)

    def score_samples(self, V):
        """Return the log-probability of each row, by enumeration.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_features)
            Values of the visible units.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            In nats.
        """
        return -self.free_energy(V) - self.log_partition()

    def gibbs(self, V, n_steps=1, random_state=None, *, return_acceptance=False):
        """Make transitions that leave the distribution as it is, by Metropolis and Hastings.

        A transition of block Gibbs sampling in the RBM that has c_i in the argument of the
        softplus is proposed, and accepted with the probability

            min(1, Π_i [(1 + e^{x'})^c (1 + e^{cx})] / [(1 + e^x)^c (1 + e^{cx'})])

        with x and x' the field of unit i before and after. For units that count more than once,
        this concerns the fractional part only.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_features)
            Where the chains start, one a row.
        n_steps : int, default=1
            Number of transitions.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        return_acceptance : bool, default=False
            Whether to return the share of accepted proposals, too.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            Where the chains are, values 0 and 1.
        acceptance : float
            Share of the proposals that were accepted, with ``return_acceptance=True``.
        """
        V = np.array(V, dtype=self._model.dtype, order="C")
        stream = Stream.from_generator(make_generator(random_state))
        n_accepted = 0
        H = np.empty((len(V), len(self._proposal.hidden)), V.dtype)
        excess = self._log_ratio(V)
        with Workers(1) as workers:
            for _ in range(n_steps):
                proposed = V.copy()
                run_chains(self._proposal, proposed, H, 1, stream, workers)
                proposed_excess = self._log_ratio(proposed)
                accepted = np.log(stream.uniform((len(V), 1))[:, 0]) < proposed_excess - excess
                V[accepted], excess[accepted] = proposed[accepted], proposed_excess[accepted]
                n_accepted += int(accepted.sum())
        return (V, n_accepted / max(1, len(V) * n_steps)) if return_acceptance else V

    def _log_ratio(self, V):
        """ln p(v) − ln p̃(v), up to constants: whole copies of a unit cancel."""
        return self._proposal.free_energy(V) - self.free_energy(V)
