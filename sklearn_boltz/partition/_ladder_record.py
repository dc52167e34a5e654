"""Rounds of a ladder of models: ln Z, its error, and what it is worth."""

import math

import numpy as np
from scipy.special import expit

from sklearn_boltz.partition._estimates import ENDS, MAX_STD_ERR, LogPartition, distrust
from sklearn_boltz.partition._ladder import BROKEN, bennett

# Rounds of a block of a record; blocks before the first look at them; and the share of all
# blocks, at the beginning, that is not used.
RECORD_ROUNDS, FIRST_LOOK, BURN_IN = 16, 8, 0.25
# States that came from the first rung to the top: with fewer, the shares of modes are unknown.
# With ALL of them for each chain, those that are where they began do not get away.
MIN_ARRIVALS, ALL = 20, 200
# Standard errors by which two halves of a record may differ.
SETTLED = 4.0


class Record:
    """Rounds of a ladder of models that do not change, and the figures that follow from them.

    Exchanges are between chains of the same number, so that the populations of a number are one
    simulation, independent of all others. Standard errors are those of the mean of these: they
    account for the correlation of rounds and of rungs.

    Parameters
    ----------
    ladder : Ladder
    workers : Workers

    Attributes
    ----------
    blocks : list of (ndarray, ndarray, int)
        Of some rounds each: ln of the ratios of neighbouring constants, (n_rungs − 1, n_chains),
        whose mean over the chains is the estimate and whose spread its error; mean probabilities
        of exchanges, (n_rungs − 1,); and how many states came from the first rung to the top.
    """

    # What the rungs are, and what to do where they are not connected.
    rungs, remedy = "models", "There may be modes that nothing connects"

    def __init__(self, ladder, workers):
        self.ladder, self.workers, self.blocks = ladder, workers, []

    @property
    def n_rounds(self):
        """All of them."""
        return RECORD_ROUNDS * len(self.blocks)

    def run(self, n_blocks):
        """Make rounds."""
        for _ in range(n_blocks):
            self.blocks.append(self._block())

    def _block(self):
        works, n_arrivals = [[] for _ in self.ladder.pairs], 0
        for _ in range(RECORD_ROUNDS):
            for i, differences in self.ladder.round(self.workers).items():
                works[i].append(differences)
            n_arrivals += self.ladder.arrivals()
        ratios, accepted = [], []
        for rounds in works:
            forward, backward = (np.array(side) for side in zip(*rounds, strict=True))
            ratios.append(ratios_by_chain(forward[np.newaxis], backward[np.newaxis])[0])
            accepted.append(np.exp(np.minimum(forward + backward, 0)).mean())
        return np.array(ratios), np.array(accepted), n_arrivals

    def kept(self):
        """The blocks that count."""
        return self.blocks[int(BURN_IN * len(self.blocks)) :]

    def acceptances(self):
        """Mean probabilities of exchanges between neighbours, (n_rungs − 1,)."""
        return np.mean([accepted for _, accepted, _ in self.kept()], axis=0)

    def n_arrivals(self):
        """How many states came from the first rung to the top."""
        return sum(n_arrivals for *_, n_arrivals in self.kept())

    def log_partitions(self, blocks=None):
        """ln Z of each rung by each simulation, (n_rungs, n_chains): the mean is the estimate."""
        ratios = np.mean([by_chain for by_chain, *_ in blocks or self.kept()], axis=0)
        first = np.full((1, ratios.shape[1]), self.ladder.first_log_partition)
        return np.cumsum(np.concatenate([first, ratios]), axis=0)

    def log_partition(self):
        """ln Z of the top by each simulation, (n_chains,)."""
        return self.log_partitions()[-1]

    def is_settled(self):
        """Whether both halves of the rounds say the same of ln Z."""
        blocks = self.kept()
        half = len(blocks) // 2
        first, second = (self.log_partitions(part)[-1] for part in (blocks[:half], blocks[half:]))
        _, error = mean_and_error(first - second)
        return abs((first - second).mean()) <= SETTLED * error + 1e-9

    def run_until(self, tol, max_rounds, figures=None):
        """Make rounds until the standard errors of some figures are within `tol`; -> if they are.

        `figures` is a function of this record, whose result has the figures by each simulation,
        (..., n_chains); None for ln Z of the top.
        """
        figures = figures or type(self).log_partition
        max_blocks = max(FIRST_LOOK, max_rounds // RECORD_ROUNDS)
        look = FIRST_LOOK
        while True:
            self.run(look - len(self.blocks))
            error = mean_and_error(figures(self))[1].max()
            enough = self.n_arrivals() >= MIN_ARRIVALS and not self.ladder.n_left()
            if error <= tol and enough and self.is_settled():
                return True
            if look >= max_blocks or self.is_broken() or self.is_stuck():
                return False
            look = min(look + look // 2, max_blocks)

    def is_stuck(self):
        """Whether some chains are where they began, although the others have come far."""
        n_chains = len(self.ladder.rungs[0])
        return self.ladder.n_left() > 0 and self.n_arrivals() > ALL * n_chains

    def is_broken(self):
        """Whether neighbours somewhere hardly exchange states."""
        return bool((self.acceptances() < BROKEN).any())

    def estimate(self, tol, reached):
        """ln Z at the top as an estimate; `reached` tells whether the error is at most `tol`."""
        values, errors = mean_and_error(self.log_partitions())
        value, std_err = float(values[-1]), float(errors[-1])
        estimate = LogPartition(
            value=value, std_err=std_err, low=value - ENDS * std_err, high=value + ENDS * std_err,
            ess=float(self.n_arrivals()), log_weights=None, method="ladder", states=None,
            acceptances=self.acceptances(), log_partitions=values, log_partition_errors=errors,
            n_rounds=self.n_rounds, trusted=True,
            verdict="The ladder's estimate of the log-partition shows no sign of failure: "
            f"{self.figures()}, and the standard error is {std_err:.2g} nats.",
        )  # fmt: skip
        against = None if reached else self.objection(std_err)
        if against:
            distrust(estimate, f"{len(self.ladder)} {self.rungs}", against)
        elif std_err > tol:
            estimate.verdict += f" More than {tol:.2g} after {self.n_rounds} rounds, though."
        return estimate

    def figures(self):
        """Description of how well the rungs are connected."""
        return (
            f"between {len(self.ladder)} {self.rungs} {self.acceptances().min():.2f} of the "
            f"exchanges and more are accepted, and {self.n_arrivals()} states came from "
            "independent columns to the model"
        )

    def objection(self, std_err):
        """Reasons to doubt the estimates; None if there are none."""
        if self.is_broken():
            lowest = self.acceptances().min()
            return (
                f"of the exchanges between two of them only {lowest:.1g} are accepted. "
                f"{self.remedy}"
            )
        if self.n_arrivals() < MIN_ARRIVALS:
            return (
                f"in {self.n_rounds} rounds only {self.n_arrivals()} states came from independent "
                "columns to the model. Use more (max_rounds)"
            )
        if self.ladder.n_left() and (self.is_stuck() or not self.ladder.leaves_alike()):
            return (
                f"{self.ladder.n_left()} of {len(self.ladder.rungs[0])} chains are still where "
                "they began. There may be modes that nothing connects. Use more rounds (max_rounds)"
            )
        if not self.is_settled():
            return "the two halves of the rounds differ. Use more (max_rounds)"
        if not std_err <= MAX_STD_ERR:
            return (
                f"the standard error is {std_err:.2g} nats. Use more rounds (max_rounds) or chains"
            )
        return None


def ratios_by_chain(forward, backward):
    """Bennett's ratios with the contributions of the chains, (n_pairs, n_chains).

    From `forward` and `backward`, as of `bennett`, of shape (n_pairs, n_rounds, n_chains).
    """
    n_pairs = len(forward)
    value, _ = bennett(forward.reshape(n_pairs, -1), backward.reshape(n_pairs, -1))
    x = value[:, np.newaxis, np.newaxis]
    f, b = expit(forward - x), expit(backward + x)
    # The root x of mean(f) − mean(b), and how it moves with what each chain adds.
    slope = (f * (1 - f) + b * (1 - b)).mean(axis=(1, 2))
    share = (f - b).mean(axis=1)
    share -= share.mean(axis=1, keepdims=True)
    return value[:, np.newaxis] + share / np.maximum(slope, 1e-300)[:, np.newaxis]


def mean_and_error(values):
    """Mean over the last axis, and its standard error."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / math.sqrt(values.shape[-1])
