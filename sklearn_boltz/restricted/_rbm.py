"""BaseRBM: fits of RBMs and deep machines, and their methods for rows and hidden units."""

from functools import cache, partial

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import dense, unchanged_on_error, validate_arguments
from sklearn_boltz._warnings import warn
from sklearn_boltz.callbacks import iterations
from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    copied,
    is_foreign,
    like,
    numpy_dtype,
)
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import BaseBoltzmannMachine
from sklearn_boltz.restricted._constraints import COUNT, RANDOM_STATE
from sklearn_boltz.restricted.model._coded_rows import CodedRows
from sklearn_boltz.restricted.model._model import (
    CONTINUUM,
    check_normalisable,
    log_pseudo_likelihood,
)
from sklearn_boltz.restricted.sampling import _conditional, _samples
from sklearn_boltz.restricted.sampling._observed import by_rows, rows_with_gaps
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._auto import LEAST_DIVIDED, chosen_by
from sklearn_boltz.restricted.training._epochs import train
from sklearn_boltz.restricted.training._initial import fit_init, is_model
from sklearn_boltz.restricted.training._labelled_rows import LabelledRows
from sklearn_boltz.restricted.training._mixing import sticks
from sklearn_boltz.restricted.training._monitor import RBMMonitor
from sklearn_boltz.restricted.training._progress import fall_back, held_out, tell_figures
from sklearn_boltz.restricted.training._rows import (
    divide,
    divide_labelled,
    effective_rows,
    has_rows,
    held_out_share,
)
from sklearn_boltz.tables._weights import row_weights
from sklearn_boltz.units._bernoulli import Bernoulli

# Number of transitions of a chain that draws missing values.
N_STEPS = 1000


class BaseRBM(BaseBoltzmannMachine):
    """A Boltzmann machine of any units, with one hidden layer, or in a deep one with several.

    A fit changes only a `Training`; the attributes are set from it at the end. A subclass has

    - `_source(X, y, sample_weight, reset)`, the rows to train on and their weights;
    - `_new_training(X, weights, n_rows)`, a new `Training` for rows X; parameters that are
      ``"auto"`` are chosen by n_rows;
    - `_restore(training)`, which has it continue from the public attributes;
    - `_tracker(training, stops)`, which follows ln Z, or None;
    - `_plan(training, n_rows, stops)`, which says what an epoch is, and how many there are;
    - `_failure_message(status, comparison)`, the warning of a failed fit, or None.

    Rows have NaN in missing cells. Weights are None for 1 each.
    """

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _checked_hidden(self, H):
        """Values of each hidden layer: a list of arrays."""
        check_is_fitted(self)
        weights, given = [self.components_], [H]
        if self._is_deep:
            weights, given = self.components_, H if isinstance(H, (list, tuple)) else []
        if is_foreign(weights[0]):
            layers = [as_type(like(weights[0], h), numpy_dtype(weights[0])) for h in given]
        else:
            layers = [np.ascontiguousarray(h, dtype=weights[0].dtype) for h in given]
        shapes, sizes = [tuple(h.shape) for h in layers], [W.shape[0] for W in weights]
        if not layers or shapes != [(*shapes[0][:1], size) for size in sizes]:
            wanted = (
                f"be a list of arrays with {sizes} columns, one for each hidden layer, all with "
                f"the same number of rows; got {shapes or type(H).__name__}"
                if self._is_deep
                else f"have shape (n_samples, {sizes[0]}), got {shapes[0]}"
            )
            raise ValueError(f"H must {wanted}.")
        return layers

    def _check_bits(self, what, visible, hidden):
        """Refuse units that are no bits, and so no spins of an Ising model."""
        if visible.is_binary and hidden.is_binary:
            return
        other = [k for k, kind in enumerate(self._encoder.coding.kinds) if kind is not Bernoulli]
        have = self._have(other) if other else "its hidden units have"
        raise ValueError(
            f"{what} needs an RBM of bits, and {have} other values. Use binary columns and "
            "hidden='bernoulli'."
        )

    # Training.

    def _fit(self, X, y, sample_weight):
        """Train on a table."""
        status, name = None, type(self).__name__
        with unchanged_on_error(self):
            going_on = self.warm_start and hasattr(self, "components_")
            sample_weight = row_weights(sample_weight, tell=True)
            rows, weights = self._source(X, y, sample_weight, reset=not going_on)
            if not going_on and is_model(self.init):
                fit_init(self, X, sample_weight)
            n_rows = effective_rows(rows, weights)
            stops = self._stops_early(rows, n_rows)
            training = (
                self._resume_training(n_rows) if going_on else self._new(rows, weights, n_rows)
            )
            training.tracker = self._tracker(training, stops)
            rows = rows.astype(training.dtype, copy=False)
            rows, monitor = self._divide(training, rows, weights, stops)
            plan = self._plan(training, rows.n_rows, stops)
            if self._tells:
                self._tell_columns()
                self._tell_choice(training, rows.n_rows, stops)
            n_before = training.n_epochs
            bar = progress_bar(f"{plan.name}s", None if stops else plan.n_epochs, self.verbose == 1)
            with (
                Workers(self.n_jobs) as workers,
                iterations(self, X, y, name=plan.name, max_iter=plan.n_epochs) as end_epoch,
            ):

                def tell(training):
                    bar.update()
                    if training.mean is not None:  # in the last stage, whose length is known
                        bar.total = bar.n + plan.stages.last_epochs - training.mean.n_epochs
                    if self.verbose > 1:
                        n_epochs = training.n_epochs
                        tell_figures(name, plan.name, n_epochs, training.figures(n_epochs))
                    return end_epoch(partial(self._attributes, training))

                with bar:
                    training, status = train(training, rows, monitor, plan, workers, tell)
                    training, status = self._settled(training, status, rows, monitor, workers, tell)
                nothing_new = training.n_epochs == n_before and not training.before
                if status == "interrupted" and nothing_new:
                    raise KeyboardInterrupt
                vars(self).update(self._attributes(training))
                if self._tells:
                    kept = training.of_epoch
                    tell_figures(name, f"end, {plan.name}", kept, training.measured(kept))
                if status != "interrupted":
                    check_normalisable(self._model())
                    self._conclude(training, status, monitor, workers)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    def _settled(self, first, status, rows, monitor, workers, tell):
        """Train anew if chains stick, and fall back to what was clearly better; -> as `train`."""
        training, ended = first, status in ("converged", "max_iter")
        if ended and first.start is not None and sticks(first, monitor(), workers):
            training, status = self._tempered_anew(first, rows, monitor, workers, tell)
        # What the next fit goes on from is not to be changed.
        is_part = status == "interrupted" or (status == "max_iter" and self.warm_start)
        if not is_part:
            for other in (training.peak, first.peak, first):
                fall_back(training, other, monitor, workers)
        training.start = training.peak = first.peak = None
        return training, status

    def _tempered_anew(self, first, rows, monitor, workers, tell):
        """Train once more, with states from a ladder; -> the training, its status."""
        training = first.copy()
        training.learner, training.tempered, training.start = first.start, True, None
        training.learner.turn_tempered()
        training.best = training.stage = training.mean = None
        training.rate_factor, training.fallen_at, training.n_stages = 1.0, first.n_epochs, 0
        training.tracker = self._tracker(training, stops=True)
        plan = self._plan(training, rows.n_rows, stops=True)
        return train(training, rows, monitor, plan, workers, tell)

    def _new(self, X, weights, n_rows):
        """A new training, where the rows lie."""
        training = self._new_training(X, weights, n_rows)
        training.n_rows, rows = n_rows, X.V if isinstance(X, LabelledRows) else X
        there = isinstance(rows, DeviceRows)
        return training.moved(partial(like, rows.array)) if there else training

    def _resume_training(self, n_rows=None):
        """A copy of the last training, which goes on from the public attributes."""
        found = [units.n_units for units in self._layered().layers[1:]]
        name, shown = "hidden_layer_sizes", f"layers of {found} units"
        if not self._is_deep:
            name, found = "n_components", found[0]
            shown = f"{found} components"
        given = getattr(self, name, "auto")
        if not (isinstance(given, str) or np.array_equal(np.ravel(given), np.ravel(found))):
            raise ValueError(
                f"{type(self).__name__}: {name} is {given}, but the model to continue from has "
                f"{shown}. Set {name}={found}, or fit with warm_start=False."
            )
        training = self._training.copy()
        training.n_rows = n_rows or training.n_rows
        self._restore(training)
        if training.tempered and self.tempered == "auto":
            training.learner.turn_tempered()
        return training

    def _stops_early(self, rows, n_rows):
        """Whether some rows are set aside, which tell when to end."""
        if not isinstance(self.early_stopping, str):
            return has_rows(self.early_stopping) or bool(self.early_stopping)
        if isinstance(rows, LabelledRows):
            return rows.are_enough()
        return self.max_iter == "auto" and n_rows >= LEAST_DIVIDED

    def _divide(self, training, rows, weights, stops):
        """-> the rows to train on, and a function that returns the monitor, made when needed."""
        share, seed = held_out_share(self.early_stopping) if stops else 0, training.evaluation_seed
        if isinstance(rows, LabelledRows):
            chosen, train, valid = divide_labelled(rows, share, seed, type(self).__name__)
        else:
            n_given = 0
            if stops and not share:
                rows, weights, n_given = self._with_validation_rows(rows, weights)
            chosen, train, valid = divide(rows, weights, share, seed, n_given, training.kept)
            training.kept = getattr(chosen, "kept", training.kept)
        return chosen, cache(partial(self._monitor, training, rows, train, valid, weights))

    def _with_validation_rows(self, X, weights):
        """-> the rows to train on, then those of `early_stopping`; their weights, and how many."""
        if not (isinstance(X, (np.ndarray, CodedRows)) or issparse(X)):
            raise ValueError(
                f"{type(self).__name__}: early_stopping has validation rows, which is for rows in "
                "memory, but X comes in batches or lies on a device. Give a share, such as "
                "early_stopping=0.1, or an array of some of the rows."
            )
        valid = self._validated(self.early_stopping, allow_nan=True, lazily=True)
        if weights is not None:
            weights = np.append(weights, np.ones(valid.shape[0]))
        if isinstance(X, CodedRows):
            codes = np.concatenate([X.codes, valid.codes])
            return CodedRows(X.layout, codes, X.dtype), weights, len(valid)
        valid = dense(valid)
        stack = partial(vstack, format="csr") if issparse(X) else np.vstack
        return stack([X, valid.astype(X.dtype, copy=False)]), weights, len(valid)

    def _monitor(self, training, X, train, valid, weights=None):
        """Monitor of the progress of a training."""
        base, seed = training.base, training.evaluation_seed
        return RBMMonitor(X, train, valid, base, seed, weights, self._encoder.coding.log_scale)

    def _tell_choice(self, training, n_rows, stops):
        """Print what was chosen by the data."""
        params = self.get_params(deep=False)
        found = chosen_by(training.learner, [name for name in self._chosen if name in params])
        chosen = {"rows": n_rows, **found, "early_stopping": stops}
        chosen = ", ".join(
            f"{name} {value if isinstance(value, list) else f'{value:.4g}'}"
            for name, value in chosen.items()
        )
        print(f"[{type(self).__name__}] trains with {chosen}")

    def _conclude(self, training, status, monitor, workers):
        """Warn if the fit failed."""
        comparison = trouble = None
        if training.history and status != "diverged":
            model, figures = training.learner.model(), training.measured(training.of_epoch)
            comparison = monitor().compare(figures, model, workers)
            trouble = self._worse_than_tree(training, monitor(), workers)
        message = self._failure_message(status, comparison) or trouble
        if message is not None:
            warn(message, ConvergenceWarning)

    def _worse_than_tree(self, training, monitor, workers):
        """The text of the warning for a model that a tree of pairs of columns beats, or None."""
        now, _ = held_out(training)
        if np.isnan(now):
            return None
        tree = monitor.tree(now, training.learner.model(), workers)
        if tree is None:
            return None
        never = getattr(self, "tempered", "auto") in (0, False)
        remedy = "tempered='auto'" if never else "SparseFVBM(), a pairwise network,"
        return (
            f"The held-out rows have a mean log-likelihood of {now:.4g} nats, and {tree:.4g} "
            "with a tree of pairs of columns, which takes a moment. Chains of the model may not "
            f"mix. Use {remedy} or more rows."
        )

    # Conditionals.

    def transform(self, X):
        """Return the means of the hidden units, as features for a classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `mean_hidden`.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            E[h | v] for each row v. For units with the values 0 and 1, this is P(h = 1 | v).
        """
        return self.mean_hidden(X)

    def mean_hidden(self, V):
        """Return the means of the hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value, which is summed out: exactly if the
            missing values, or the hidden units, have no more joint states than 2**23 divided by the
            number of all units, and otherwise by short Markov chains with the observed values
            clamped. The random numbers are the same in each call.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            E[h | v]. For units with the values 0 and 1, this is P(h = 1 | v).
        """
        V, model = self._checked(V, allow_nan=True, lazily=True), self._marginal()
        if rows_with_gaps(V) is None and not isinstance(V, CodedRows):
            return model.mean_hidden(V)
        return by_rows(model.mean_hidden, self._distribution().mean_hidden, V)

    def mean_visible(self, H):
        """Return the means of the visible units given the hidden ones.

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components)
            Values or means of the hidden units; of a :class:`~sklearn_boltz.TAPDBM`, a list with
            an array for each hidden layer, of which only the first matters: the visible units are
            independent of the others given it.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            E[v | h], in the order of `visible_names_`. For units with the values 0 and 1, this is
            P(v = 1 | h); for a column of categories, the probability of each category.
        """
        H = self._checked_hidden(H)
        return self._encoder.coding.unscaled(self._marginal().mean_visible(H[0]))

    def inverse_transform(self, X):
        """Return the means of the visible units for features made by `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Means of the hidden units.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            E[v | h] with h at its mean, in the order of `visible_names_`.
        """
        return self.mean_visible(X)

    def sample_hidden(self, V, random_state=None):
        """Draw the hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value: it is drawn first, as by `impute`.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Values of the hidden units.
        """
        V, model = self._checked(V, allow_nan=True), self._model()
        rng = make_generator(random_state)
        rows = self._layered().padded(V if is_foreign(V) else dense(V), np.nan)
        if is_foreign(V) and rows is not V:
            here = self.move_to(np)
            return like(V, here.sample_hidden(as_numpy(V), rng))
        if rows_with_gaps(rows) is not None:
            missing, base = np.isnan(rows), self._distribution().base
            drawn = _conditional.impute(model, base, rows, missing, "sample", N_STEPS, rng)
            rows = np.where(missing, drawn, rows).astype(model.dtype)
        return model.hidden.sample(model.hidden_field(rows), Stream.from_generator(rng))

    def sample_visible(self, H, random_state=None):
        """Draw the visible units given the hidden ones.

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components)
            Values of the hidden units; of a :class:`~sklearn_boltz.TAPDBM`, a list as in
            `mean_visible`.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        V : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like the training data.
        """
        H = self._checked_hidden(H)
        rng, model = make_generator(random_state), self._marginal()
        stream = Stream.from_generator(rng)
        return self._as_table(model.visible.sample(model.visible_field(H[0]), stream), rng)

    @validate_arguments(
        {"V": ["array-like", "sparse matrix"], "n_steps": COUNT, "random_state": RANDOM_STATE}
    )
    def gibbs(self, V, n_steps=1, random_state=None):
        """Make transitions of block Gibbs sampling.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            The start of the chains, one for each row. In a :class:`~sklearn_boltz.TAPDBM`, the
            second, fourth, ... hidden layers start at their means given the row, by TAP.
        n_steps : int, default=1
            Number of transitions. Each one draws all hidden units given the visible ones, and then
            all visible units given the hidden ones; in a :class:`~sklearn_boltz.TAPDBM`, the first,
            third, ... hidden layers given all other layers, and then all other layers given these.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        V : ndarray or data frame of shape (n_samples, n_features)
            The end of the chains, in a table like the training data. Hidden layers are not
            returned: with several of them, two calls with one step are not the same as one call
            with ``n_steps=2``.
        """
        V = dense(self._checked(V))
        V = copied(self._marginal().side(V))
        rng = make_generator(random_state)
        stream = Stream.from_generator(rng)
        with Workers(self.n_jobs) as workers:
            states = _samples.chain_samples(self._model(), V, n_steps, stream, workers)
        return self._as_table(states, rng)

    # Energies and likelihoods.

    def energy(self, X, H):
        """Return the energy of joint states.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units.
        H : array-like of shape (n_samples, n_components)
            Values of the hidden units; of a :class:`~sklearn_boltz.TAPDBM`, a list with an array
            for each hidden layer.

        Returns
        -------
        energy : ndarray of float64 of shape (n_samples,)
            E(v, h) = −h·Wv − ln w(v) − ln w(h), in nats, or −Σ_l x_l·W_l x_{l−1} − Σ_l ln w_l(x_l)
            with x_0 = v. For Bernoulli units, −ln w(v) − ln w(h) is −b·v − c·h.
        """
        V, H = self._checked(X), self._checked_hidden(H)
        if V.shape[0] != H[0].shape[0]:
            raise ValueError(
                f"X has {V.shape[0]} rows, but H has {H[0].shape[0]}. Both need one row for each "
                "joint state."
            )
        return self._marginal().energy(V, *H)

    def _free_energy(self, V, cells=None):
        V = self._checked(V, allow_nan=True, lazily=True, cells=cells)
        return by_rows(self._marginal().free_energy, self._free_energy_of_gaps, V)

    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. A value between 0 and 1 is taken as the probability of a 1. NaN is a missing
            value.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the columns of ln p(v_i | all other columns), exact, in nats. In a row
            with missing values, the sum is over the observed columns, each given the other
            observed ones; the missing values are summed out as in `mean_hidden`.

        Raises
        ------
        ValueError
            If visible units have continuous values.
        """
        X, model = self._checked(X, allow_nan=True, lazily=True), self._marginal()
        if not model.visible.is_enumerable:
            raise ValueError(CONTINUUM)
        of_gaps = self._distribution().log_pseudo_likelihood
        return by_rows(partial(log_pseudo_likelihood, model), of_gaps, X)
