"""BaseTAP: what TAPRBM and TAPDBM share."""

from itertools import pairwise
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.utils import Bunch
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
)
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import IMPUTE_CONSTRAINTS, dense, validate_arguments
from sklearn_boltz.numerics._arrays import as_numpy, copied_as, dispatched, like
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import by_processor
from sklearn_boltz.restricted._constraints import POSITIVE, TRACKED
from sklearn_boltz.restricted._mini_batches import MiniBatchEstimator
from sklearn_boltz.restricted.mean_field import _solutions, _tap
from sklearn_boltz.restricted.mean_field._clamped import MeanFieldModel, tap_starts
from sklearn_boltz.restricted.mean_field._inference import (
    INFERENCES,
    MOST_ITERATIONS,
    by_tap,
    check_units,
    outside_training,
    settings_of,
)
from sklearn_boltz.restricted.mean_field._tap import TAP, Evidence
from sklearn_boltz.restricted.model._cells import filled_table
from sklearn_boltz.restricted.model._layered import stacked
from sklearn_boltz.restricted.model._units import initial_hidden
from sklearn_boltz.restricted.sampling import _modes
from sklearn_boltz.restricted.sampling._observed import has_few_states
from sklearn_boltz.restricted.training._auto import chosen_decay, chosen_l1
from sklearn_boltz.restricted.training._epochs import Training
from sklearn_boltz.restricted.training._initial import initial_visible
from sklearn_boltz.restricted.training._monitor import LIKELIHOOD_ROWS
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._rows import evenly_spaced
from sklearn_boltz.restricted.training._schedule import Schedule
from sklearn_boltz.restricted.training._tap_monitor import TAPMonitor
from sklearn_boltz.restricted.training._tap_steps import TAPLearner, TAPScheme
from sklearn_boltz.tables._phrases import having
from sklearn_boltz.units._unit import UnitType

# Number of training rows that are kept as starts of TAP.
N_STARTS = 100
# Maximum number of training rows for which the log-likelihood of a deep model is measured.
DEEP_ROWS = 500
# With "auto", at most this many hidden units for each square root of the number of rows: with 6,
# the digits take 1.5 times as long and gain 0.1 nats.
UNITS_PER_ROOT = 2
# If TAP converges from a smaller share of the rows, the model is in a spin-glass phase.
LEAST_CONVERGED = 0.5
# The strength of the penalty, and the momentum, in the paper.
PAPER_ALPHA, MOMENTUM = 1e-3, 0.5
# Flip probabilities are kept this far from 0 and 1.
LEAST_PROBABILITY = 1e-12


class Seen(NamedTuple):
    """The part of the data that is kept: the distribution of independent columns, starts of TAP."""

    base: UnitType
    rows: np.ndarray
    weights: np.ndarray  # of these rows

    def more(self, X, weights, base):
        """With starts from more rows, evenly spaced, until there are enough; -> that, the base."""
        chosen = evenly_spaced(X, N_STARTS - len(self.rows))
        counts = np.ones(len(chosen)) if weights is None else weights[chosen]
        rows = np.vstack([self.rows, as_numpy(dense(X[chosen])).astype(self.rows.dtype)])
        return Seen(self.base, rows, np.append(self.weights, counts)), base


class BaseTAP(MiniBatchEstimator):
    """A model of one or more hidden layers, trained and used by mean field."""

    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        **TRACKED,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "persistent": ["boolean"],
        "tempered": ["boolean", StrOptions({"auto"})],
        "inference": [StrOptions(set(INFERENCES)), TAP],
        "penalty": [StrOptions({"l1", "l2"}), None],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    # A mini-batch takes one step, where S-DCP takes six. Solutions are looked for after each epoch:
    # of small data that costs more than the epoch.
    _schedule = Schedule(ladder_share=4.0, length=(800, 10, 200))

    def _marginal(self):
        layered = self._layered()
        if len(layered.weights) == 1:
            return layered.sides()
        return MeanFieldModel(layered, outside_training(self.inference), self.n_jobs)

    # Training: what `BaseRBM` asks for.

    def _training_of(self, kinds, sizes, scheme, X, weights, visible=None, rng=None):
        """A training of hidden layers of these types and sizes, from small weights on."""
        rng = make_generator(self.random_state) if rng is None else rng
        hidden = [initial_hidden(*pair, X.dtype) for pair in zip(kinds, sizes, strict=True)]
        if visible is None:
            visible = initial_visible(self._encoder.coding, X, weights)
        layers = [visible, *hidden]
        matrices = [
            self._initial_weights(rng, above, below, X.dtype)
            for below, above in pairwise(map(len, layers))
        ]
        check_units(scheme.tap, layers)
        visible = layers[0].astype(X.dtype)
        learner = TAPLearner(matrices, layers, scheme, SGD(MOMENTUM), Stream.from_generator(rng))
        others = [layer.base() for layer in layers[2::2]]
        base = stacked([visible, *others]) if others else visible
        seen = Seen(visible, np.empty((0, X.shape[1]), X.dtype), np.empty(0))
        return Training(learner, rng, *seen.more(X, weights, base))

    def _restore(self, training):
        layered, learner = self._layered(), training.learner
        learner.weights = [copied_as(W, learner.dtype) for W in layered.weights]
        learner.layers = [layer.astype(learner.dtype) for layer in layered.layers]
        n_numbers = learner.weights[0].shape[1]
        learner.scheme = self._scheme(training.n_rows, n_numbers, self.max_iter)

    def _scheme(self, n_rows, n_numbers, max_iter):
        alpha = self.alpha
        if alpha == "auto" and max_iter != "auto":
            alpha = PAPER_ALPHA
        elif alpha == "auto":
            choose = chosen_l1 if self.penalty == "l1" else chosen_decay
            alpha = choose(n_rows, n_numbers)
        persistent = self.persistent or self.tempered is True
        n_chains = self._schedule.batch_size(self.batch_size, n_rows)
        return TAPScheme(settings_of(self.inference), persistent, n_chains, self.penalty, alpha)

    def _monitor(self, training, X, train, valid, weights=None):
        # In a deep model, inference for a row takes iterations.
        n_rows = LIKELIHOOD_ROWS if len(training.learner.weights) == 1 else DEEP_ROWS
        return TAPMonitor(
            X, train[:n_rows], valid, training.seen, outside_training(self.inference),
            weights, self._encoder.coding.log_scale, self._is_deep,
        )  # fmt: skip

    def _failure_message(self, status, comparison):
        names = {"share_converged_clamped"}
        if not settings_of(self.inference).n_gibbs:  # else training does not need the solutions
            names.add("share_converged")
        figures = self._training.measured(self.n_iter_)
        converged = min((figures[name] for name in names & figures.keys()), default=1.0)
        if status == "diverged" or converged >= LEAST_CONVERGED:
            return super()._failure_message(status, comparison)
        return (
            f"TAP converges from only {converged:.0%} of the training rows: the model may be in "
            "a spin-glass phase. Use a smaller learning_rate, a larger alpha or fewer hidden "
            "units."
        )

    # Solutions and likelihood.

    @validate_arguments(
        {
            "X0": ["array-like", "sparse matrix", None],
            "unique": ["boolean"],
            "max_iter": POSITIVE,
            "tol": [Interval(Real, 0, None, closed="left"), None],
        }
    )
    def tap_solutions(self, X0=None, unique=True, *, max_iter=MOST_ITERATIONS, tol=None):
        """Find fixed points of the free energy from many starts at once.

        Parameters
        ----------
        X0 : {array-like, sparse matrix} of shape (n_starts, n_features), default=None
            Starts of the iteration. None means 100 training rows.
        unique : bool, default=True
            If True, each distinct solution is returned once, in the order of free energies. Two
            solutions are the same if the means of no unit differ by more than 0.02 of its range.
            If False, there is one solution for each start.
        max_iter : int, default=1000
            Maximum number of iterations from each start.
        tol : float, default=None
            The iteration has converged when the mean squared change of the means is below this.
            None means the `tol` of `inference`.

        Returns
        -------
        solutions : Bunch
            The solutions, with

            - `visible_mean`, `visible_variance` of shape (n_solutions, n_features);
            - `hidden_mean`, `hidden_variance` of shape (n_solutions, n_components); in a TAPDBM,
              lists with one array for each hidden layer;
            - `free_energy` of shape (n_solutions,), in nats;
            - `converged`, `n_iter` and `order` of shape (n_solutions,): 1 is naive mean field;
            - `assignment` of shape (n_starts,): the index of the solution that each start reached.

        References
        ----------
        .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018. Algorithm 1.
        """
        check_is_fitted(self)
        model = self._model()
        V = None if X0 is None else dense(self._checked(X0))
        iteration, kept = outside_training(self.inference), self._training.seen.rows
        V = tap_starts(self._distribution(), V, kept, iteration)
        iteration = iteration._replace(max_iter=max_iter, tol=iteration.tol if tol is None else tol)
        with Workers(self.n_jobs) as workers:
            solutions = by_tap(model, V, iteration, workers)
        kept, assignment = np.arange(V.shape[0]), np.arange(V.shape[0])
        if unique:
            kept, assignment = _solutions.distinct(model, solutions)
        chosen = {
            name: like(V, value[kept])
            for name, value in solutions.items()
            if name not in ("change", "first_hidden")
        }
        if self._is_deep:
            for what in ("mean", "variance"):
                names = f"visible_{what}", f"hidden_{what}"
                layers = self._layered().split(*(chosen[name] for name in names))
                chosen[names[0]], *chosen[names[1]] = layers
        return Bunch(**chosen, assignment=assignment)

    def tap_log_likelihood(self, X):
        """Return the log-probability of each row, with the normalising constant by TAP.

        This is the objective of the training. It is neither a bound nor unbiased, so compare models
        by `score_samples`, which does not use TAP for the constant.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            ``-free_energy(X)`` minus ln Z, in nats, both as in training: with several hidden
            layers, free energies are those of TAP, too. Here ln Z ≈ ln Σ exp(−F), with the sum over
            the free energies F of the distinct solutions that are reached from 100 training rows.
        """
        free_energy = self._tap_free_energy(X)
        return -free_energy - self._cached("tap", lambda: self.log_partition("tap").value)

    def _tap_free_energy(self, V):
        """F(v) as in training; it is exact with one hidden layer."""
        return self.free_energy(V)

    # Evidence: noisy and missing values.

    @by_processor
    @validate_arguments(
        {
            "Y": ["array-like", "sparse matrix"],
            "flip_probability": [Interval(Real, 0, 1, closed="both"), None],
            "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
            "max_iter": POSITIVE,
        }
    )
    def denoise(self, Y, flip_probability=None, *, noise_variance=None, max_iter=MOST_ITERATIONS):
        """Estimate rows from noisy observations, with the model as the prior.

        The iteration of TAP starts at the estimate of each value from its own observation and from
        its distribution in the training data.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_features)
            The noisy rows.
        flip_probability : float, default=None
            For binary columns and columns of categories: the probability that the noise has
            replaced a value by another one. All other values are equally likely.
        noise_variance : float, default=None
            For columns of numbers: the variance of the Gaussian noise that was added to the
            values. Give exactly one of `flip_probability` and `noise_variance`.
        max_iter : int, default=1000
            Maximum number of iterations.

        Returns
        -------
        X : ndarray of shape (n_samples, n_visible)
            Estimated means of the values given the noisy rows. For a column of three or more
            categories, the probability of each category.

        References
        ----------
        .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018. Section VII.D.
        """
        check_is_fitted(self)
        if (flip_probability is None) == (noise_variance is None):
            raise ValueError(
                "denoise needs exactly one of flip_probability (columns of bits or categories) "
                "and noise_variance (columns of numbers)."
            )
        model = self._model()
        if noise_variance is None:
            field, precision = self._flipped(Y, flip_probability), 0.0
        else:
            # The noise may have moved values out of their range.
            Y = self._validate(Y, dtype=model.dtype, reset=False)
            Y, noise_variance = self._noisy(Y, noise_variance)
            field, precision = Y / noise_variance, 1 / noise_variance
        mean, variance = self._training.seen.base.moments(field, precision)
        pad = self._layered().padded
        field = np.asarray(field, model.dtype)
        evidence = Evidence(pad(field), pad(np.full_like(field, precision)))
        means = self._mean_given(model, mean, variance, evidence, max_iter)
        return self._encoder.coding.unscaled(means)

    def _flipped(self, Y, flip_probability):
        """The field of observations through a symmetric channel."""
        p = np.clip(flip_probability, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        base, layout = self._training.seen.base, self._encoder.coding
        fields, parts = [], base.parts()
        numbers = [
            (int(np.searchsorted(layout.starts, k, side="right")) - 1, type(units).__name__)
            for units, columns in parts
            if not (units.is_binary or units.one_hot.all())
            for k in range(len(base))[columns]
        ]
        if numbers:
            remedy = (
                "A table with both kinds of columns cannot be denoised; `impute` fills cells "
                "that are set to NaN."
                if layout.one_hot.any()
                else "Give noise_variance."
            )
            kinds = " and ".join(dict.fromkeys(kind for _, kind in numbers))
            raise ValueError(
                "flip_probability is for columns with Bernoulli or categorical units; "
                f"{having(self._column(j) for j, _ in numbers)} {kinds} ones. {remedy}"
            )
        Y = dense(self._checked(Y))
        for units, columns in parts:
            # The paper has the fraction upside down.
            field = (2 * Y[:, columns] - 1) * Y.dtype.type(logit(1 - p))
            if not units.is_binary:
                others = np.maximum(np.repeat(units.widths, units.widths) - 1, 1)
                field = Y[:, columns] * (logit(1 - p) + np.log(others)).astype(Y.dtype)
            fields.append(field)
        return np.hstack(fields)

    def _noisy(self, Y, noise_variance):
        """Noisy rows as numbers of the model, and the variance of the noise on their scale."""
        layout = self._encoder.coding
        if layout.one_hot.any():
            raise ValueError(
                "noise_variance is for columns of numbers, but the table has columns of "
                "categories. If all columns are bits or categories, give flip_probability."
            )
        if layout.scale is None:
            return Y, noise_variance
        return layout.expand(Y), (noise_variance / layout.scale**2).astype(Y.dtype)

    def _mean_given(self, model, mean, variance, evidence, max_iter=MOST_ITERATIONS):
        """Means of the visible units by TAP from a given start, with evidence."""
        iteration = outside_training(self.inference, max_iter)
        mean, variance = self._marginal().side(mean), self._layered().padded(variance)
        with Workers(self.n_jobs) as workers:
            solutions = _tap.solve(model, mean, iteration, workers, variance, evidence)
        return solutions.visible_mean[:, : self._encoder.coding.n_numbers]

    @validate_arguments(IMPUTE_CONSTRAINTS | {"method": [StrOptions({"auto", "tap", "gibbs"})]})
    def impute(self, X, *, how="mean", n_steps=1000, random_state=None, method="auto"):
        """Fill missing values from their distribution given the observed values of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing value.
        how : {"mean", "mode", "sample"}, default="mean"
            What replaces the missing values of a row, given its observed values:

            - ``"mean"``: the conditional mean of each missing value. A column of categories has no
              mean and gets its most probable category;
            - ``"mode"``: the most probable joint state of all missing values. It is exact if the
              missing values can be enumerated. Otherwise, it is the best state found: TAP climbs
              from the states nearest to the means, Markov chains keep the best state they visited.
              For continuous values, the mean is used;
            - ``"sample"``: a draw of all missing values from their joint conditional distribution.
        n_steps : int, default=1000
            Number of transitions of the chains of a row.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        method : {"auto", "tap", "gibbs"}, default="auto"
            - ``"tap"``: mean field with the observed values clamped. It starts at the means of the
              training data;
            - ``"gibbs"``: exact if the missing values (the units of all even hidden layers count as
              missing), or the units of the odd hidden layers, have no more joint states than 2**23
              divided by the number of all units; otherwise by annealed Markov chains with the
              observed values clamped;
            - ``"auto"``: as ``"gibbs"``, except for modes that are not exact, which are by TAP, as
              are means of unit types without `sample` or `annealed`.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            A copy of `X`, of the same type, with the missing values filled.
        """
        if method == "tap" and how == "sample":
            raise ValueError(
                f"method={method!r} cannot be used with how={how!r}: TAP gives means, not "
                "samples. Use method='gibbs' or 'auto'."
            )
        if dispatched(X):
            self._check_library(X)
            if method == "gibbs" or how == "sample":
                return super().impute(X, how=how, n_steps=n_steps, random_state=random_state)
            here = self.move_to(np)
            filled = here.impute(as_numpy(X), how=how, method=method, random_state=random_state)
            return like(X, filled)
        check_is_fitted(self)
        table, X = X, self._validated(X, allow_nan=True, clip=True)
        model, missing = self._model(), np.isnan(X)
        some = missing.any(axis=1)
        without_chains = how == "mode" or not self._can_anneal()
        by_tap = some & (
            method == "tap" or (method == "auto" and how != "sample" and without_chains)
        )
        if method == "auto":
            # The other even layers are always missing.
            of_side = self._layered().padded(missing, True)
            by_tap &= ~has_few_states(model, of_side)
        rng, rest = make_generator(random_state), missing & ~by_tap[:, np.newaxis]
        filled = self._distribution().complete(X, how, rng, n_steps, rest)
        if by_tap.any():
            rows = X[by_tap], missing[by_tap]
            found = self._imputed_by_tap(model, *rows)
            filled[by_tap] = self._ascended(model, *rows, found) if how == "mode" else found
        return filled_table(self._encoder, table, filled, missing, how, rng)

    def _can_anneal(self):
        """Whether all unit types define what annealed chains need: a user's may not."""
        types = [type(units) for layer in self._layered().layers for units, _ in layer.parts()]
        return all(
            kind.sample is not UnitType.sample and kind.annealed is not UnitType.annealed
            for kind in types
        )

    def _ascended(self, model, X, missing, means):
        """Raise the probability of missing values, from the states nearest to the means."""
        layered = self._layered()
        visible = layered.layers[0]
        if not np.isfinite(visible.state_counts).any():
            return means
        start = visible.nearest(means)
        V = np.where(missing, start, X).astype(model.dtype)
        if len(layered.weights) == 1:
            return _modes.coordinate_ascent(model, V, missing)

        marginal = self._marginal()

        def mean_field(rows):
            return marginal.clamped(rows).means()[1] @ layered.weights[0]

        return _modes.expectation_maximisation(visible, mean_field, V, missing)

    def _imputed_by_tap(self, model, X, missing):
        mean, variance = self._training.seen.base.moments(np.zeros(X.shape, model.dtype))
        start = np.where(missing, mean, X).astype(model.dtype)
        variance = np.where(missing, variance, 0).astype(model.dtype)
        known = self._layered().padded(~missing, False)
        return self._mean_given(model, start, variance, Evidence(known=known))
