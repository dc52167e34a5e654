"""Tracker: ln Z of a model in the course of its training, by a ladder of its own saved states."""

import math
from copy import copy, deepcopy

import numpy as np

from sklearn_boltz.numerics._arrays import copied
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.partition._estimates import LogPartition, temperature_ladder
from sklearn_boltz.partition._ladder import Pair, bennett
from sklearn_boltz.restricted.sampling._annealing import (
    annealed_importance_sampling,
    resampled,
    reverse_importance_sampling,
)
from sklearn_boltz.restricted.sampling._rungs import (
    CALLS,
    RBMRung,
    begin_ladder,
    laid_out,
    mend,
    saved,
)

# What following ln Z may cost, as a share of the multiplications of the training; and without
# stages, for models of fewer weights than these. As their mini-batches take less time in one
# kernel, a share of 0.07 takes 0.09 to 0.12 of the time.
TRACKING_SHARE, STEADY_SHARE = 0.12, 0.07
STEADY_WEIGHTS = 100_000
# Chains at each rung, at least: where a training takes its chains from the ladder, there are as
# many as a mini-batch has rows, for the noise of its steps depends on their number.
N_CHAINS = 100
# Saved states, at most. Each takes as much memory as the weights, also in a pickle.
MOST_RUNGS = 40
# The state of the model is saved when its chains exchange with those of the last saved one less
# often than this.
SAVED = 0.3
# A saved state is dropped where its neighbours exchange as often as this.
DENSE = 0.5
# With fewer weights, most of a ladder is calls, which the usual cost does not allow.
LADDER_WEIGHTS = 9000
# The first epochs of a fit in stages, which are measured whatever it costs, and what all figures
# but ln Z take, in temperatures.
AT_FIRST, FIGURES = 10, 60
# Rounds of the last two rungs when the model is measured, and rounds after a mini-batch, at most.
MEASURING, MOST_ROUNDS = 6, 8
# Chains of the annealing that is run beside the ladder, and its temperatures, at least and at most.
WATCHING_CHAINS, LEAST_TEMPERATURES, MOST_TEMPERATURES = 50, 60, 10_000
# One in this many chains of the top go to where annealed chains have ended.
SENT = 10
# Chains of an annealing that decides whether an epoch is the best one, and its temperatures: so
# many times those of the watch, within limits.
VERIFYING_CHAINS, SLOWER, LEAST_VERIFYING, MOST_VERIFYING = 100, 4, 200, 4000
# What that may cost, as a part of the training.
VERIFYING_SHARE = 0.25
# Each of two models that are compared at the end may cost this part of it.
COMPARED = 12
# Estimates of ladder and annealing agree within this many standard errors.
AGREEING = 2.0
# The ladder is given up when it is not connected, or when annealing finds more by this many nats,
# this many times in a row.
BEATEN_BY, BEATEN_TIMES = 1.0, 3


class Tracker:
    """A ladder whose top is the model in training, and annealing beside it.

    The ladder follows a model that moves slowly, at a small cost. It does not see a new mode
    before some chain does. So short runs of annealed importance sampling, which come from
    independent units, watch over it: where they find more, their estimate counts. Where they do so
    again and again, or the model moves away faster than the ladder can follow, the ladder is given
    up for longer runs.

    What all this costs is counted in multiplications, not in seconds: a fit is the same each time.

    Parameters
    ----------
    base : UnitType
        Independent visible units fitted to the data, where ladder and annealing begin.
    share : float
        What it may cost, as a part of the training.
    seed : int
    keep : bool
        Whether the training itself needs the ladder, which is then not given up.
    n_chains : int
        At each rung.
    has_ladder : bool
        Whether there is a ladder from the start.

    Attributes
    ----------
    ladder : Ladder or None
        None before the first mini-batch, and where it was given up.
    """

    def __init__(self, base, share, seed, keep=False, n_chains=N_CHAINS, has_ladder=True):
        self.base, self.share, self.keep = base, share, keep
        self.n_chains = n_chains
        self.stream, self.ladder = Stream(seed), None
        self.work = 0.0  # multiplications of all mini-batches so far
        # What may be spent on looks at the top, on rounds of the ladder, on annealing and on
        # slower annealing.
        self._looks = self._rounds = self._annealing = self._verifying = 0.0
        self._place = 0  # the rung that was looked at last, whether it can go
        self._n_beaten, self._n_measured = 0 if has_ladder else BEATEN_TIMES, 0
        self._n_temperatures = LEAST_TEMPERATURES  # of the last annealing

    def __deepcopy__(self, memo):
        other = copy(self)
        other.ladder, other.stream = deepcopy((self.ladder, self.stream), memo)
        return other

    @classmethod
    def begun(
        cls, former, base, share, seed, *, in_stages=True, tempered=0.0, batch_size=0,
        n_weights=np.inf,
    ):  # fmt: skip
        """A new tracker, or that of the last fit with other settings.

        Parameters
        ----------
        former : Tracker or None
        base : UnitType
        share : bool or float
            The parameter `track_likelihood` of an estimator.
        seed : int
        in_stages : bool
            Whether the training goes by what is measured.
        tempered : float
            If the training takes chains from the ladder, what this may cost, as a part of the
            training.
        batch_size : int
            Rows of a mini-batch.
        n_weights : int
            Of the model; with few of them there is a ladder only if it may cost more than usual.
        """
        if isinstance(share, (bool, np.bool_)):
            is_small = not in_stages and n_weights < STEADY_WEIGHTS
            share = STEADY_SHARE if is_small else TRACKING_SHARE
            share = tempered or share
        tempered = tempered > 0
        n_chains = max(N_CHAINS, batch_size) if tempered else N_CHAINS
        if former is None or (former.keep, former.n_chains) != (tempered, n_chains):
            has_ladder = n_weights >= LADDER_WEIGHTS or share > TRACKING_SHARE
            return cls(base, share, seed, tempered, n_chains, has_ladder)
        former.share = share
        return former

    def has_ladder(self):
        """Whether the ladder has not been given up."""
        return self._n_beaten < BEATEN_TIMES or self.keep

    def top(self, model):
        """The top of the ladder, with the model as it is now.

        Parameters
        ----------
        model : Model
            That may be changed in place.

        Returns
        -------
        rung : RBMRung
        """
        if self.ladder is None:
            self.ladder = begin_ladder(model, self.base, self.n_chains, self.stream)
        rung = self.ladder.rungs[-1]
        rung.model = laid_out(model)
        return rung

    def follow(self, model, work, workers):
        """Follow the model that a mini-batch has changed, as far as the cost allows.

        Parameters
        ----------
        model : Model
        work : float
            Multiplications of the mini-batch.
        workers : Workers
        """
        funds = self.share * work
        self.work += work
        self._verifying += VERIFYING_SHARE * work
        if not self.has_ladder():
            self._annealing += funds
            return
        self.top(model)
        ladder = self.ladder
        self._looks += funds / 4
        self._rounds += funds / 2
        self._annealing += funds / 4
        cost = ladder.cost(len(ladder) - 2)
        if self._looks >= cost:
            self._looks = min(self._looks - cost, cost)
            self._look(workers)
        for _ in range(MOST_ROUNDS):
            cost = ladder.cost()
            if self._rounds < cost:
                break
            ladder.pairs[-1] = Pair()  # of the model as it was
            ladder.round(workers)
            if len(ladder) < MOST_RUNGS:
                mend(ladder)
            self._thin()
            self._rounds -= cost
        self._rounds = min(self._rounds, ladder.cost())

    def _look(self, workers, n_rounds=1):
        """Compare the model with the last saved one, and save it if it has moved far."""
        ladder = self.ladder
        ladder.pairs[-1] = Pair()
        for _ in range(n_rounds):
            ladder.round(workers, first=len(ladder) - 2)
        if ladder.pairs[-1].acceptance < SAVED:
            top = ladder.rungs[-1]
            rung, pair = RBMRung(saved(top.model), copied(top.states)), ladder.pairs[-1]
            ladder.insert(len(ladder) - 1, rung, below=pair)
            if len(ladder) > MOST_RUNGS:
                self._drop_one()

    def _thin(self):
        """Look at one rung; drop it if its neighbours exchange often enough."""
        ladder = self.ladder
        if len(ladder) < 4:
            return
        self._place = self._place % (len(ladder) - 3) + 1
        pair = ladder.pair(self._place - 1, self._place + 1)
        self._rounds -= 4 * self.n_chains * ladder.rungs[0].model.n_weights
        if pair.acceptance > DENSE:
            ladder.remove(self._place, pair)

    def _drop_one(self):
        """Drop the rung between whose neighbours the acceptance is highest, by what is known."""
        ladder = self.ladder
        known = ladder.acceptances
        place = 1 + int(np.argmax(known[:-2] * known[1:-1]))
        ladder.remove(place)

    def can_measure(self, model, in_stages):
        """Whether enough has been trained since the last time, or a training in stages begins."""
        is_early = in_stages and self._n_measured < AT_FIRST
        return self.keep or is_early or self._affordable(model) >= LEAST_TEMPERATURES

    def log_partition(self, model, workers):
        """ln Z of the model as it is: a `LogPartition`, of which value and error count."""
        self._n_measured += 1
        climbed = self._climb(model, workers) if self.has_ladder() else None
        annealed = self._anneal(model, workers)
        if self.has_ladder() and (climbed is None or annealed.value > climbed.value):
            self._send(annealed)
        best = annealed if climbed is None else self._better_of(model, climbed, annealed, workers)
        beaten = climbed is None or abs(best.value - climbed.value) > BEATEN_BY
        self._n_beaten = self._n_beaten + 1 if beaten else 0
        if not self.has_ladder():
            self.ladder = None
        return best

    def _better_of(self, model, climbed, annealed, workers):
        """Which estimate counts, that of the ladder or that of annealed chains."""
        # Either is too low where it misses a part of the distribution. Of two that agree, the
        # greater would be too high in the mean.
        apart = abs(annealed.value - climbed.value)
        if apart <= AGREEING * math.hypot(annealed.std_err, climbed.std_err):
            return min(annealed, climbed, key=lambda found: found.std_err)
        if climbed.value < annealed.value:
            return annealed
        # The rungs may not be in equilibrium. What the ladder has found beyond annealing is in the
        # states at its top, and chains that are annealed back from there see it.
        back = self._annealed_back(model, workers)
        if climbed.value <= back.value:
            return climbed
        value, error = bennett(annealed.log_weights, back.log_weights)
        return LogPartition(value=float(value), std_err=float(error), method="ais")

    def _climb(self, model, workers):
        """The estimate of the ladder; None if it is not connected."""
        self.top(model)
        ladder = self.ladder
        n_rounds = int(np.clip(self._looks / ladder.cost(len(ladder) - 2), 2, MEASURING))
        self._look(workers, n_rounds)
        ladder.complete()
        if ladder.is_broken():
            return None
        values, errors = ladder.log_partitions()
        value, error = float(values[-1]), float(errors[-1])
        return LogPartition(value=value, std_err=error, method="ladder")

    def _anneal(self, model, workers):
        """The estimate of annealed chains, of a few temperatures at least.

        Without these, nothing would reveal a mode that the chains of the ladder have missed.
        """
        n_temperatures = int(
            np.clip(self._affordable(model), LEAST_TEMPERATURES, MOST_TEMPERATURES)
        )
        self._annealing, self._n_temperatures = 0.0, n_temperatures
        return self._annealed(model, n_temperatures, WATCHING_CHAINS, workers)

    def _send(self, found):
        """Let some chains of the top go to where annealed chains have ended, by their weights.

        A mode that is new since the last saved model is not in the ladder yet. If its mass is
        small, exchanges take the chains away again.
        """
        states, drawn = self.ladder.rungs[-1].states, resampled(found, self.stream.generator())
        states = states[::SENT, ...]
        n_sent = min(states.shape[0], drawn.shape[0])
        states[:n_sent, ...] = drawn[:n_sent, ...]

    def _annealed(self, model, n_temperatures, n_chains, workers):
        return annealed_importance_sampling(
            model, self.base, temperature_ladder(n_temperatures), n_chains, self.stream, workers
        )

    def _annealed_back(self, model, workers):
        """ln Z by chains annealed from the states at the top, which is too high in the mean."""
        states = self.ladder.rungs[-1].states
        # As many as chains that are annealed forward, which Bennett's ratio asks for.
        step = states.shape[0] // WATCHING_CHAINS
        states = states[: step * WATCHING_CHAINS : step, ...]
        betas = temperature_ladder(self._n_temperatures)
        return reverse_importance_sampling(
            laid_out(model), self.base, betas, states, self.stream, workers
        )

    def anneal_slowly(self, model, workers):
        """ln Z by annealing as slow as a part of what is left to spend allows.

        For each of two models that are compared at the end of a training.
        """
        affordable = self._verifying / COMPARED / self._cost_of_annealing(model, VERIFYING_CHAINS)
        n_temperatures = int(np.clip(affordable, LEAST_VERIFYING, MOST_VERIFYING))
        return self._annealed(laid_out(model), n_temperatures, VERIFYING_CHAINS, workers)

    def verified(self, model, workers, can_wait):
        """ln Z by many chains that are annealed slowly.

        Of many epochs, the one whose ln Z is most underestimated looks like the best. So an epoch
        that looks so is measured once more: None if that can wait until more has been trained.
        """
        wanted = np.clip(SLOWER * self._n_temperatures, LEAST_VERIFYING, MOST_VERIFYING)
        cost = int(wanted) * self._cost_of_annealing(model, VERIFYING_CHAINS)
        if can_wait and self._verifying < cost:
            return None
        self._verifying -= cost
        return self._annealed(laid_out(model), int(wanted), VERIFYING_CHAINS, workers)

    def _affordable(self, model):
        """Temperatures of an annealing."""
        return self._annealing / self._cost_of_annealing(model, WATCHING_CHAINS) - FIGURES

    @staticmethod
    def _cost_of_annealing(model, n_chains):
        """Multiplications of one temperature, or what takes as long."""
        return 2.5 * n_chains * model.work + CALLS / 20
