"""Draws of a fitted network: samples, missing cells, one column given the others."""

from functools import partial

import numpy as np

from sklearn_boltz._discrete import at_rows
from sklearn_boltz._methods import SAMPLE_CONSTRAINTS, named, validate_arguments
from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.location._model import MixedRows
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._tempering import Path, draw, find_betas
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator, spins_of_sampler
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.tables._form import without_words
from sklearn_boltz.tables._numbers import numbers_of_scores, scores_of_row


def tempered_sample(path, n_samples, n_steps, n_temperatures, generator, is_shown):
    """States of a ladder's top; warns if they do not come from its foot."""
    with Workers() as workers:
        if n_temperatures is None:
            betas = find_betas(path, [1.0], generator, workers)
        else:
            betas = np.linspace(0, 1, n_temperatures)
        codes, is_broken = draw(path, betas, n_samples, n_steps, generator, workers, is_shown)
    if is_broken:
        remedy = "Leave n_temperatures at None."
        if n_temperatures is None:
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

    @validate_arguments(SAMPLE_CONSTRAINTS | {"sampler": [callable, None]})
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        where=None,
        temperature=1.0,
        n_steps=1000,
        n_temperatures=None,
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
        n_temperatures : int, default=None
            Number of temperatures. It is used if connected variables that are not given have more
            than 2**26 joint states. Chains at neighbouring temperatures exchange their states; at
            the highest one the columns are independent. Samples therefore come from all modes, in
            the right proportions. None chooses temperatures between which exchanges are
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
        steps = n_steps, n_temperatures, sampler
        draw = partial(self._sample, given=given, temperature=temperature, steps=steps)
        return self._rows_where(draw, n_samples, random_state, where)

    def _sample(self, n_samples, random_state, given, temperature, steps):
        columns, places = self._given(given, self._encoder.coding.values)
        cells, generator = self._given_numbers(given), make_generator(random_state)
        with named(self):
            model = self._distribution().tempered(temperature)
        row = np.full((1, self.n_features_in_), -1)
        row[:, columns] = places
        draw = partial(self._drawn, steps=steps, generator=generator)
        if self._gaussians is None:
            codes = np.repeat(row, n_samples, axis=0)
            codes[:, row[0] < 0] = draw(model.given(columns, places), n_samples)
        else:
            scores = scores_of_row(self._encoder, cells)
            row = MixedRows(row, scores, np.zeros(scores.shape[:2]))
            codes, scores = model.sample(n_samples, generator, row=row, draw=draw)
            numbers = numbers_of_scores(self._encoder, codes, scores)
            cells = {j: self._encoder.columns[j].back(own) for j, own in numbers.items()} | cells
        if not len(columns) and temperature == 1:
            self._warn_if_far_from_data("In these samples,", codes, None, n_samples)
        return self._encoder.decode(self._encoder.coding.decode(codes), generator, cells)

    def _drawn(self, network, n_samples, steps, generator):
        """Codes of the columns of a network."""
        n_steps, n_temperatures, sampler = steps
        if sampler is not None:
            if not (isinstance(network, SpinModel) and network.is_pairwise):
                raise ValueError(
                    f"{type(self).__name__}.sample: a sampler draws from pairwise networks of "
                    "binary columns. Use sampler=None."
                )
            given = network.coupling, network.intercept
            return spins_of_sampler(sampler, *given, n_samples, generator) > 0
        if n_temperatures == 1 or network.is_enumerable():
            return network.sample(n_samples, generator, n_steps)
        path = Path.from_model(network, network.base, generator)
        return tempered_sample(path, n_samples, n_steps, n_temperatures, generator, self.verbose)

    def _completed(self, rows, how, n_steps, generator):
        if self._gaussians is None:
            return super()._completed(rows, how, n_steps, generator)
        codes, scores = self._distribution().complete(rows, how, generator)
        return codes, numbers_of_scores(self._encoder, codes, scores)

    def _mean_numbers(self, X, cells):
        found, some = super()._mean_numbers(X, cells), np.isnan(cells).any(axis=1)
        if self._gaussians is None or not some.any():
            return found
        places = np.flatnonzero(self._encoder.is_scored)
        scored = [self._encoder.columns[j].scores for j in places]

        def means(codes, z, variances):
            parts = zip(scored, codes[:, places].T, z.T, variances.T, strict=True)
            return np.column_stack([scores.mean(*own) for scores, *own in parts])

        rows = self._rows_of(X, cells)[some]
        numbers = self._distribution().expectation(rows, means, len(places))
        return found | {j: at_rows(some, own) for j, own in zip(places, numbers.T, strict=True)}

    def _column_probabilities(self, X, j, n_steps, seed):
        if self._encoder.is_scored[j]:  # of its bins
            scores = self._encoder.columns[j].scores
            p = self._mean_of_scores(X, j, scores.bin_probabilities, scores.bins.n_bins)
            return p, np.zeros(1)
        with progress_bar("rows", None, self.verbose) as bar:
            return super()._column_probabilities(X, j, n_steps, seed, bar)

    def _cells_of(self, codes):
        return self._encoder.coding.decode(codes)

    def _up_to(self, X, j):
        if not self._encoder.is_scored[j]:
            return None
        scores = self._encoder.columns[j].scores
        return self._mean_of_scores(without_words(X, j), j, scores.up_to, len(scores.points))

    def _mean_of_scores(self, X, j, function, n_figures):
        """Means of what a function makes of the level and the score of a number, given the rest."""
        model = self._distribution()
        rows = model.without(self._rows_of(X, self._known_cells(X)), j)
        k = np.flatnonzero(self._encoder.is_scored).tolist().index(j)

        def own(codes, z, variances):
            return function(codes[:, j], z[:, k], variances[:, k])

        return model.expectation(rows, own, n_figures)
