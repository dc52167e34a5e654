"""Estimates of ln Z: their figures, what they are worth, and which of several to keep."""

import math

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import Bunch

# An estimate is not to be trusted if fewer chains than this carry it, or if it is as
# uncertain as this, in nats.
MIN_ESS, MAX_STD_ERR = 5.0, 0.5
# Two estimates contradict each other if they differ by DISAGREEMENT standard errors. The ends of
# a trusted one are ENDS away: of 170 ladders 5 % were off by more than 2, and one by more than 3.
DISAGREEMENT, ENDS = 5.0, 3.0
# Ends further apart than this are told in a warning, in nats.
WIDE = 1.0
# An estimate of Z without bias is greater than e³ Z with a probability of e⁻³ = 5 % at most, by
# Markov's inequality; and less than e⁻³ Z only where modes with 95 % of the mass are missing.
MARKOV = 3.0


class LogPartition(Bunch):
    """An estimate of ln Z, whose printed form leaves out the arrays."""

    def __repr__(self):
        figures = f"ln Z = {self.value:.6g}"
        if self.std_err > 0:
            figures += f" ± {self.std_err:.2g}"
        if -math.inf < self.low < self.high:
            figures += f", from {self.low:.6g} to {self.high:.6g}"
        return f"{figures} ({self.method}). {self.verdict}"


def estimate_from_value(value):
    """An exact ln Z in the form of an estimate."""
    return LogPartition(
        value=value, std_err=0.0, low=value, high=value, ess=math.inf, log_weights=None,
        method="exact", states=None, trusted=True, verdict="Exact, by enumeration.",
    )  # fmt: skip


def effective_number(weights):
    """How many draws of equal weight estimate a mean as well as those of these weights (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def estimate_from_weights(method, log_weights, sign, states):
    """The logarithm of the mean weight of annealed chains, and how far it is to be trusted.

    `sign` is 1 if the mean weight estimates Z, and -1 for 1/Z; `states` are where the chains ended.
    """
    n_chains = len(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    value = sign * float(logsumexp(log_weights) - math.log(n_chains))
    ess = effective_number(weights)
    std_err = math.inf
    if n_chains > 1:
        std_err = float(weights.std(ddof=1) / weights.mean() / math.sqrt(n_chains))
    low = value - MARKOV if method == "ais" else -math.inf
    estimate = LogPartition(
        value=value, std_err=std_err, low=low, high=math.inf, ess=ess, log_weights=log_weights,
        method=method, states=states, trusted=True, verdict="",
    )  # fmt: skip
    return with_verdict(estimate)


def with_verdict(estimate):
    """Say what the estimate is worth, by itself."""
    estimate.trusted = estimate.ess >= MIN_ESS and estimate.std_err <= MAX_STD_ERR
    figures = (
        f"of {len(estimate.log_weights)} chains {estimate.ess:.1f} count, and the standard error "
        f"is {estimate.std_err:.2f} nats"
    )
    if not estimate.trusted:
        verdict = f"is not to be trusted: {figures}. Use more temperatures and more chains."
    elif estimate.method == "ais":
        verdict = (
            f"shows no sign of failure: {figures}. ln Z is at least {estimate.low:.1f} with a "
            "probability of 95 %; mass that no chain visits could make it greater."
        )
    else:
        verdict = f"shows no sign of failure: {figures}."
    estimate.verdict = f"The {estimate.method.upper()} estimate of the log-partition {verdict}"
    return estimate


def distrust(estimate, by, why):
    """Say, in place, that an estimate by some method is not to be trusted: without bounds."""
    estimate.update(trusted=False, low=-math.inf, high=math.inf)
    estimate.verdict = (
        f"The estimate of the log-partition by {by}, {estimate.value:.7g}, is not to be trusted: "
        f"{why}."
    )


def compare_with_floor(estimate, floor):
    """Distrust an estimate that an earlier run of annealing contradicts; remember the lower end.

    `floor` is empty, or has `low` and `value` of the greatest lower end so far. Both change in
    place.
    """
    if floor and floor.low > estimate.high:
        by = "the ladder" if estimate.method == "ladder" else estimate.method.upper()
        distrust(estimate, by, f"an AIS run before says {floor.low:.1f} at least")
    elif estimate.method == "ais" and estimate.low > floor.get("low", -math.inf):
        floor.update(low=estimate.low, value=estimate.value)


def contradiction(estimate, floor):
    """Warning if another run shows that the kept ln Z is too low, and all scores too high.

    The estimate stays, since scores must not depend on what was called before.
    """
    if estimate.method != "exact" and floor and floor.low > estimate.value:
        return (
            f"log_partition_ is {estimate.value:.1f}, but an AIS run shows that ln Z is at least "
            f"{floor.low:.1f} with a probability of 95 %: log-probabilities are too high by "
            f"{floor.low - estimate.value:.1f} nats or more. -free_energy(X) minus `value` of that "
            f"run, {floor.value:.1f}, is a better estimate of them."
        )
    return None


def combined(other, annealed):
    """The estimate of a ladder, or of chains annealed back, beside that of annealed chains.

    Each is too low where it misses a part of the distribution. Only a ladder that is to be trusted,
    and that annealed chains do not contradict, has ends by its standard error and what these say;
    else the upper end is `MARKOV` above both. Both change in place, and one of them is returned.
    """
    is_ladder, apart = other.method == "ladder", annealed.value - other.value
    error = DISAGREEMENT * math.hypot(other.std_err, annealed.std_err)
    carried = annealed.ess >= MIN_ESS
    # Annealed chains are the first to miss something: a little less than the ladder is no sign.
    differ = carried and not -max(error, MAX_STD_ERR) <= apart <= error
    if is_ladder and other.trusted and not differ and annealed.low <= other.value:
        ends = (other.low, other.high, annealed.value) if carried else (other.low, other.high)
        other.update(low=max(min(ends), annealed.low), high=max(ends))
        if has_wide_ends(other):
            other.verdict += f" ln Z is between {other.low:.1f} and {other.high:.1f}."
        return other
    by = "the ladder" if is_ladder else "chains that are annealed back"
    verdict = other.verdict if is_ladder else annealed.verdict
    if is_ladder and other.trusted:
        verdict = "The estimates of the log-partition contradict each other."
    # What a broken ladder says is worth less than annealed chains that show no sign of failure.
    fails = annealed.trusted and not other.trusted and annealed.value >= other.low
    kept = other if is_ladder and apart <= 0 and not fails else annealed
    low = annealed.low if other.trusted else max(other.low, annealed.low)
    high = max(other.value, annealed.value) + MARKOV
    kept.update(
        trusted=not is_ladder and annealed.trusted and abs(apart) <= MAX_STD_ERR,
        low=low, high=high,
        verdict=f"{verdict} It is {other.value:.1f} by {by} and {annealed.value:.1f} by annealed "
        f"importance sampling, and between {low:.1f} and {high:.1f}, {MARKOV:g} nats above both.",
    )  # fmt: skip
    return kept


def has_wide_ends(estimate):
    """Whether the ends of an estimate are so far apart that it takes a warning."""
    return estimate.high - estimate.low > WIDE


def temperature_ladder(n_temperatures):
    """Inverse temperatures from 0 to 1: as many equal steps, None for 1,000, or as given."""
    if np.ndim(n_temperatures) == 0:
        return np.linspace(0, 1, int(n_temperatures or 1000) + 1)
    betas = np.ascontiguousarray(n_temperatures, dtype=np.float64)
    if betas.ndim != 1 or len(betas) < 2 or betas[0] != 0 or betas[-1] != 1 or not (
        np.diff(betas) >= 0
    ).all():  # fmt: skip
        raise ValueError("n_temperatures must be an int, or inverse temperatures from 0 up to 1.")
    return betas
