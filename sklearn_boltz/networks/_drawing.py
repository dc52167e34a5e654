"""Draws of a fitted network: samples, missing cells, one column given the others."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import SAMPLE_CONSTRAINTS, validate_arguments
from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.model import _incomplete
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._sampling import gibbs_sample
from sklearn_boltz.networks.sampling._tempering import Path, draw, find_betas
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import make_generator, spins_of_sampler
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.tables._numbers import numbers_of_scores, scores_of_row
from sklearn_boltz.tables._where import rows_where


def tempered_sample(path, n_samples, n_steps, n_temperatures, generator):
    """States of a ladder's top; warns if they do not come from its foot."""
    with Workers() as workers:
        if n_temperatures == "auto":
            betas = find_betas(path, [1.0], generator, workers)
        else:
            betas = np.linspace(0, 1, n_temperatures)
        codes, is_broken = draw(path, betas, n_samples, n_steps, generator, workers)
    if is_broken:
        remedy = "Use n_temperatures='auto'."
        if n_temperatures == "auto":
            remedy = (
                "The couplings are so large that no temperatures may connect the modes; fit with a "
                "larger alpha."
            )
        warn(
            f"Of {len(betas)} temperatures, some neighbours hardly exchange states: the shares of "
            f"modes in these samples are not to be trusted. {remedy}"
        )
    return codes


class Drawing:
    """Methods of an estimator with `coupling_`, `intercept_` and an `_encoder`."""

    @validate_arguments(
        SAMPLE_CONSTRAINTS
        | {
            "n_temperatures": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
            "sampler": [callable, None],
        }
    )
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        where=None,
        temperature=1.0,
        n_steps=1000,
        n_temperatures="auto",
        sampler=None,
    ):
        """Draw samples from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by label or number, in the coding of the returned rows. The
            other columns are drawn from their distribution given these.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.
        temperature : float, default=1.0
            T > 0: rows are drawn with probabilities proportional to P(x)^(1/T). It must be 1 where
            numbers have normal scores.
        n_steps : int, default=1000
            Transitions (sweeps of Gibbs sampling) for each sample, at all temperatures together. It
            is used if connected variables that are not given have more than 2**26 joint states.
        n_temperatures : "auto" or int, default="auto"
            Number of temperatures. It is used if connected variables that are not given have more
            than 2**26 joint states. Chains at neighbouring temperatures exchange their states; at
            the highest one the columns are independent. Samples therefore come from all modes, in
            the right proportions. ``"auto"`` chooses temperatures between which exchanges are
            accepted, an int takes equal steps. 1 is Gibbs sampling of the model alone, with a chain
            for each sample.
        sampler : callable, default=None
            A function that draws from a pairwise network of binary columns, such as an annealer:
            the `sampler` of :class:`~sklearn_boltz.MaximumEntropy`. It gets the couplings and
            fields of the columns that are not given, divided by `temperature`.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Samples as a table like the training data, with its columns and types. They are exact
            and independent up to 2**26 joint states of connected variables, which 26 binary ones
            have. Beyond that, each chain gives several samples if more than 1,000 are drawn.
            Only numbers in bins depend on those of other rows: in a sample, they are spread evenly
            over the training cells of each bin, in random order.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.

        Warns
        -----
        UserWarning
            If temperatures hardly exchange states, so that the proportions of modes cannot be
            trusted. If the rate of a column differs from that in the training data by more than
            0.05 and by more than chance explains: the model then has mass far from the data, see
            Notes of the class. This is checked without `given` and at temperature 1, and needs
            about ten samples or more. If no rate under the model differs by more than 0.05, at most
            one call in 10,000 warns.
        """
        check_is_fitted(self)
        check_drawn(self, n_samples)
        if where is not None:
            draw_rows = partial(
                self.sample, given=given, temperature=temperature, n_steps=n_steps,
                n_temperatures=n_temperatures, sampler=sampler,
            )  # fmt: skip
            return rows_where(draw_rows, n_samples, random_state, where, type(self).__name__)
        columns, places = self._given(given, self._encoder.coding.values)
        generator, steps = make_generator(random_state), (n_steps, n_temperatures, sampler)
        if self._gaussians is None:
            model, base = self._tempered(temperature, columns, places)
            codes = self._drawn(n_samples, model, base, columns, places, steps, generator)
            numbers = {}
        elif temperature != 1:
            raise ValueError(
                f"{type(self).__name__}.sample: temperature={temperature:g} is for tables without "
                "numbers that have normal scores. Leave it at 1."
            )
        else:
            drawn = self._drawn_numbers(n_samples, given, columns, places, steps, generator)
            codes, numbers = drawn
        if not len(columns) and temperature == 1:
            self._warn_if_far_from_data("In these samples,", codes, None, n_samples)
        cells = {j: self._encoder.columns[j].back(own) for j, own in numbers.items()}
        cells |= self._given_numbers(given)
        return self._encoder.decode(self._encoder.coding.decode(codes), generator, cells)

    def _drawn(self, n_samples, model, base, columns, places, steps, generator):
        """Codes, of which some columns are given, and the others from the model of these."""
        n_steps, n_temperatures, sampler = steps
        codes = np.empty((n_samples, self.n_features_in_), dtype=np.int64)
        codes[:, columns] = places
        free = np.setdiff1d(np.arange(self.n_features_in_), columns)
        if sampler is not None:
            if not (isinstance(model, SpinModel) and model.is_pairwise):
                raise ValueError(
                    f"{type(self).__name__}.sample: a sampler draws from pairwise networks of "
                    "binary columns. Use sampler=None."
                )
            given = model.coupling, model.intercept
            codes[:, free] = spins_of_sampler(sampler, *given, n_samples, generator) > 0
        elif model.is_enumerable():
            codes[:, free] = model.sample(n_samples, generator, n_steps)
        elif n_temperatures == 1:
            codes[:, free] = gibbs_sample(model, n_samples, n_steps, generator)
        else:
            path = Path.from_model(model, base, generator)
            codes[:, free] = tempered_sample(path, n_samples, n_steps, n_temperatures, generator)
        return codes

    def _drawn_numbers(self, n_samples, given, columns, places, steps, generator):
        """Codes and numbers, each class as often as it is drawn."""
        model = self._distribution()
        row = np.full((1, self.n_features_in_), -1)
        row[:, columns] = places
        z = scores_of_row(self._encoder, self._given_numbers(given))
        n_each = model.class_counts(row, z, n_samples, generator)
        free = np.setdiff1d(np.arange(self.n_features_in_), columns)
        base, codes, scores = model.network.base[model.network.places(free)], [], []
        for c in np.flatnonzero(n_each):
            n = int(n_each[c])
            ((_, network, fields, _),) = model.given(c, z)
            network = network.in_field(fields[0]).given(columns, places)
            drawn = self._drawn(n, network, base, columns, places, steps, generator)
            codes.append(drawn)
            known = np.repeat(z, n, axis=0)
            scores.append(model.complete_scores(c, drawn, known, "sample", generator))
        order = generator.permutation(n_samples)
        codes = np.concatenate(codes)[order]
        return codes, numbers_of_scores(self._encoder, codes, np.concatenate(scores)[order])

    def _impute(self, X, cells, how, n_steps, generator):
        if self._gaussians is not None:
            return self._impute_numbers(X, cells, how, generator)
        return super()._impute(X, cells, how, n_steps, generator)

    def _impute_numbers(self, X, cells, how, generator):
        """Impute rows of which some numbers have normal scores."""
        missing, (codes, z, _) = np.isnan(cells), self._rows_of(X, cells)
        model, rows = self._distribution(), missing.any(axis=1)
        args, z = (codes[rows], z[rows]), z[..., 0]
        codes[rows], z[rows] = model.complete(*args, how, generator)
        numbers, filled = numbers_of_scores(self._encoder, codes, z), codes.astype(np.float64)
        if how == "mean" and rows.any():
            self._set_means(X, cells, model, args, numbers, filled)
        filled = self._encoder.coding.decode(filled)
        return self._encoder.fill(
            X, filled, missing, generator if how == "sample" else None, numbers
        )

    def _set_means(self, X, cells, model, args, numbers, filled):
        """Means of numbers, and of the codes that stand for themselves, in rows with gaps."""
        missing, scored = np.isnan(cells), np.flatnonzero(self._encoder.is_scored)
        rows = missing.any(axis=1)
        for j in np.flatnonzero(self._encoder.is_binned & missing.any(axis=0)):
            numbers[j] = self._mean_numbers(X, cells, j)

        def means(codes, z, variances):
            return np.column_stack([
                self._encoder.columns[j].scores.mean(codes[:, j], z[:, k], variances[:, k])
                for k, j in enumerate(scored)
            ])  # fmt: skip

        found = model.expectation(*args, means, len(scored))
        for j, own in zip(scored, found.T, strict=True):
            numbers[j][rows] = own
        plain = np.flatnonzero(~self._encoder.is_word & missing.any(axis=0))
        p = model.category_probabilities(*args) if len(plain) else None
        for j in plain:
            filled[rows, j] = p[:, model.network.places([j])] @ np.arange(self.n_values_[j])

    def _cell_probabilities(self, X, max_states, n_steps, random_state):
        """Probabilities of missing codes, each by itself, in the one-hot layout."""
        codes, generator = self._codes(X)[0], make_generator(random_state)
        return self._model().cell_probabilities(codes, max_states, n_steps, generator)

    def _expected_log_weights(self, X):
        """`expected_log_weights` of rows without normal scores."""
        codes, _ = self._codes(X)
        return _incomplete.expected_log_weights(self._model(), codes)

    def _column_probabilities(self, X, j, n_steps, seed):
        if self._encoder.is_scored[j]:  # of its bins
            scores = self._encoder.columns[j].scores
            p = self._mean_of_scores(X, j, scores.bin_probabilities, scores.bins.n_bins)
            return p, np.zeros(1)
        bar = progress_bar("rows", None, self.verbose)
        with bar:
            return super()._column_probabilities(X, j, n_steps, seed, bar)

    def _cells_of(self, codes):
        return self._encoder.coding.decode(codes)

    def _up_to(self, X, j):
        if not self._encoder.is_scored[j]:
            return None
        scores = self._encoder.columns[j].scores
        return self._mean_of_scores(self._ignoring(X, j), j, scores.up_to, len(scores.points))

    def _mean_of_scores(self, X, j, function, n_figures):
        """Means of what a function makes of the level and the score of a number, given the rest."""
        model = self._distribution()
        codes, z, _ = model.without(self._rows_of(X, self._known_cells(X)), j)
        k = np.flatnonzero(self._encoder.is_scored).tolist().index(j)

        def own(codes, z, variances):
            return function(codes[:, j], z[:, k], variances[:, k])

        return model.expectation(codes, z, own, n_figures)
