"""Schedule: how long and how fast an estimator trains where its parameters are ``"auto"``."""

from typing import NamedTuple

import numpy as np

# By what the learning rate is multiplied, from one stage to the next and where progress ends.
FALL = 0.3


class Stages(NamedTuple):
    """A training in stages, each of which ends after this many epochs without progress.

    A last one has persistent chains, which visit states of the model far from the data, and ends
    with a mean of its parameters, which has less noise than those after any step.

    Attributes
    ----------
    patience : int
        Epochs without progress that end a stage.
    n_stages : int
    last_epochs : int
        Of the last stage, after these; 0 for none. The mean is over the last two thirds of them.
    last_rate : float
        Its learning rate, as a part of the initial one.
    plateau : float
        Until this epoch, a training that is no better than independent columns is not yet judged.
    later : float
        Patience of the stages after the first, if less: what they gain, they gain soon.
    longest : float
        Epochs of a stage, at most: of many uncertain estimates, one is a new best again and again.
    """

    patience: int
    n_stages: int
    last_epochs: int = 0
    last_rate: float = 0.0
    plateau: float = np.inf
    later: float = np.inf
    longest: float = np.inf


class Schedule(NamedTuple):
    """The constants of a training by mini-batches.

    Where a length has epochs and mini-batches, it is as many epochs as it takes to have both.

    Attributes
    ----------
    mini_batches : int
        Of an epoch with ``batch_size="auto"``, at least, as far as `batch_sizes` allow.
    batch_sizes : (int, int)
        The smallest and the largest ``"auto"``.
    length, longest : (int, int, int)
        With ``max_iter="auto"``, without and with early stopping: the number of mini-batches to aim
        at, or at most, and limits of the number of epochs.
    steady_rate : float
        The learning rate without stages, and that of columns of real numbers, whose unit is
        arbitrary.
    rate_of_variance : float
        That of a first stage times the summed variance of the columns, of which a quarter is about
        the curvature of the log-likelihood: at four times this rate, steps would diverge.
    rates : (float, float)
        Limits of that rate.
    n_stages : int
        Each has `FALL` times the learning rate of the one before. Those whose rate would be less
        than that of a last stage are left out.
    patience : (int, int)
        Epochs and mini-batches without improvement that end the first stage, and with a last one to
        come, which makes up for what it leaves, half as many mini-batches. The epochs alone end the
        stages after the first. Without stages, what ends the training.
    fall_after : (int, int)
        Epochs and mini-batches without improvement after which the rate falls, without stages.
    plateau : (int, int)
        Epochs, and mini-batches, in which a training should become better than independent columns:
        with the rate of ``"auto"``, the parity of three columns beside five others takes 900.
    longest_stage : (int, int)
        Epochs and mini-batches of a stage, at most.
    last_rates : (float, float)
        Limits of the rate of the last stage, as a part of the first one and as such.
    last_length : (int, int)
        Mini-batches of the last stage, and epochs for each mini-batch of an epoch, at most.
    last_epochs : (int, int)
        Limits of its length. With 30 epochs in place of 100, Pumsb-star loses a nat, the digits
        0.02.
    patience_of_tables : (int, int)
        `patience` where a last stage comes and not all columns are bits: tables of words and
        numbers then have held-out log-likelihoods as high as with more.
    ladder_share : float
        What a ladder that training needs may cost, as a part of the training.
    """

    mini_batches: int = 20
    batch_sizes: tuple = (10, 100)
    length: tuple = (1500, 10, 200)
    longest: tuple = (100_000, 10, 1000)
    steady_rate: float = 0.05
    rate_of_variance: float = 2.0
    rates: tuple = (0.03, 0.4)
    n_stages: int = 3
    patience: tuple = (8, 400)
    fall_after: tuple = (8, 400)
    plateau: tuple = (20, 4000)
    longest_stage: tuple = (20, 20_000)
    last_rates: tuple = (0.12, 0.006)
    last_length: tuple = (15_000, 2)
    last_epochs: tuple = (30, 100)
    patience_of_tables: tuple = (5, 200)
    ladder_share: float = 1.0

    def batch_size(self, given, n_rows):
        """Number of rows of a mini-batch: as given, if that is not "auto"."""
        if given != "auto":
            return given
        return int(np.clip(n_rows // self.mini_batches, *self.batch_sizes))

    def lengths(self, batch_size, max_iter, n_rows, stops):
        """-> rows of a mini-batch, mini-batches of an epoch, epochs: as given, if not "auto"."""
        size = self.batch_size(batch_size, n_rows)
        n_batches = max(1, round(n_rows / size))
        if max_iter == "auto":
            n, *limits = self.longest if stops else self.length
            max_iter = int(np.clip(round(n / n_batches), *limits))
        return size, n_batches, max_iter

    def first_rate(self, base, n_visible):
        """The learning rate that a training in stages begins with.

        Parameters
        ----------
        base : UnitType
            Independent units fitted to the data, the visible ones first.
        n_visible : int
            How many numbers these take.
        """
        if not base.is_enumerable:
            return self.steady_rate
        variance = float(np.sum(base.variance(np.zeros((1, len(base))))[:, :n_visible]))
        return float(np.clip(self.rate_of_variance / max(variance, 1e-3), *self.rates))

    def stages(self, n_batches, rate, has_last, is_binary):
        """The stages where an epoch has so many mini-batches, with a last one or without."""
        n_stages, last, patience = self.n_stages, (0, 0.0), self.patience
        if has_last:
            n, per_batch = self.last_length
            n_last = min(n // n_batches, per_batch * n_batches)
            last_rate = min(self.last_rates[0], self.last_rates[1] / rate)
            last = int(np.clip(n_last, *self.last_epochs)), last_rate
            later, least = patience if is_binary else self.patience_of_tables
            patience = later, least // 2
            n_stages = sum(FALL**k > last_rate for k in range(n_stages))
        lengths = patience, self.plateau, self.longest_stage
        n_waited, plateau, longest = (enough(length, n_batches) for length in lengths)
        return Stages(n_waited, n_stages, *last, plateau, patience[0], longest)


def enough(length, n_batches):
    """Smallest number of epochs that has a number of epochs and one of mini-batches."""
    n_epochs, n_mini_batches = length
    return max(n_epochs, -(-n_mini_batches // n_batches))
