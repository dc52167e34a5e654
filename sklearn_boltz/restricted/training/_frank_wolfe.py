"""Frank–Wolfe on the distribution of hidden units: an RBM that grows (Ping, Liu and Ihler, 2016).

In ln p(v) = Σ_i softplus(w_i·v) + b·v − ln Z the sum over the hidden units is an integral over
a measure of weights, in which the log-likelihood is concave. A step of Frank–Wolfe maximises its
linearisation, which is to find one unit, and adds that unit to the measure. With the step
sizes 1/t and α_t = t of the paper, each unit counts once, and the model is an ordinary RBM.

A unit is one array: its weights, and last its bias, the weight of a dummy visible unit that is
always 1. Expectations are over a `Sample`: of the data, or of the distribution of the model.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.utils.extmath import safe_sparse_dot

from sklearn_boltz.restricted.model._coded_rows import CodedRows, gaps_of
from sklearn_boltz.restricted.model._enumeration import all_states
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.training._gaps import complete, seed_of_batch
from sklearn_boltz.restricted.training._sdcp import SDCPLearner, has_shape, reshape
from sklearn_boltz.units._bernoulli import Bernoulli

# Without a penalty, weights can grow for ever. A unit is switched on and off by far less.
LARGEST_WEIGHT = 100.0
# Where the linearised objective is minimised to: a change of 1e-6 nats is far below the noise
# of the samples, and more iterations fit a unit to that noise.
L_BFGS = {"maxiter": 60, "ftol": 1e-6}
# Scales that the line search tries. A unit for which too few samples count is shrunk; one that
# the penalty has kept small grows.
SCALES = 0.7 ** np.arange(-3, 20)
LOG_2 = np.log(2)
# Part of the samples that must still count when weighted by the change of the distribution.
MIN_ESS = 0.2
# Transitions of chains that start at data, and not at a sample of the model before a change.
BURN_IN = 100
# Rows that a unit is fitted to; of more, this many are drawn for each unit. A unit has one
# weight a feature, and the samples of the model are fewer: more rows would not add to it.
FITTED_ROWS = 10_000
# Copies of a row of mean weight, where rows have weights.
COPIES = 10
# The means of the model match those of the data when they differ by no more than this times
# the noise of independent samples.
MATCH = 1.2
# Steps of the visible biases after an insertion, at most. Units as printed take 30 to 250 with
# the penalties .05 to 1, and 200 to 1,000 with .01 (digits, MNIST, silhouettes); safe ones take 40.
MOST_BIAS_STEPS = 1000
# Steps, at least, of units with precisions and other such parameters, for which nothing says
# when these match.
SHAPE_STEPS = 30


def without_codes(rows):
    """Rows as numbers, an array or a CSR matrix."""
    return rows.toarray() if isinstance(rows, CodedRows) else rows


class Sample:
    """Rows, and expectations over them.

    Parameters
    ----------
    rows : {ndarray, CSR, CodedRows} of shape (n_rows, n_visible)
    probability : ndarray of float64 of shape (n_rows,), default=None
        Of each row; None for equal ones.
    """

    def __init__(self, rows, probability=None):
        self.rows, self.probability = rows, probability

    def __len__(self):
        return self.rows.shape[0]

    def parts(self, numbers=None):
        """Slices of rows of some numbers, and these rows; of codes, a few at a time."""
        rows = self.rows if numbers is None else self.rows[numbers]
        return rows.parts() if isinstance(rows, CodedRows) else [(slice(None), rows)]

    def field(self, unit):
        """w·v + c of each row, in float64."""
        weights = unit[:-1].astype(self.rows.dtype)
        field = np.concatenate([safe_sparse_dot(rows, weights) for _, rows in self.parts()])
        return field.astype(np.float64) + unit[-1]

    def mean(self, values):
        """E[x], one value a row."""
        return values.mean() if self.probability is None else self.probability @ values

    def moment(self, values):
        """E[x v], and last E[x], for the dummy visible unit."""
        weighted = values / len(self) if self.probability is None else values * self.probability
        each = weighted.astype(self.rows.dtype)
        moments = [safe_sparse_dot(rows.T, each[some]) for some, rows in self.parts()]
        return np.append(np.sum(moments, axis=0, dtype=np.float64), weighted.sum())

    def log_mean_exp(self, values):
        """ln E[exp(x)], and the part of the rows that counts when weighted by exp(x)."""
        with np.errstate(divide="ignore"):
            log_p = -math.log(len(self)) if self.probability is None else np.log(self.probability)
        log_weights = values + log_p
        log_mean = logsumexp(log_weights)
        weights = np.exp(log_weights - log_mean)
        return log_mean, 1 / (len(self) * (weights**2).sum())

    def visible_mean(self):
        """E[v]."""
        return self.moment(np.ones(len(self)))[:-1]

    def shape_slopes(self, units):
        """E of the derivatives of ln w(v) by the parameters that are no biases."""
        numbers = None
        if self.probability is not None:  # to whole numbers of copies
            ends = np.round(np.cumsum(self.probability) * COPIES * len(self)).astype(int)
            numbers = np.repeat(np.arange(len(self)), np.diff(ends, prepend=0))
        found = [(rows.shape[0], units.gradients(rows)) for _, rows in self.parts(numbers)]
        n_rows = sum(n for n, _ in found)
        return {name: sum(n / n_rows * of[name] for n, of in found) for name in found[0][1]}

    def draw(self, rng, n_rows):
        """Numbers of rows, drawn by their probabilities with replacement."""
        if self.probability is None:
            return rng.integers(len(self), size=n_rows)
        return rng.choice(len(self), size=n_rows, p=self.probability)


class IncompleteSample(Sample):
    """Rows of the data with missing cells, at draws given the others as the model has them.

    Parameters
    ----------
    rows : {ndarray, CodedRows} of shape (n_rows, n_visible)
        NaN in missing cells, which are filled in place.
    probability : ndarray of float64 of shape (n_rows,) or None
    """

    def __init__(self, rows, probability=None):
        super().__init__(rows.standardised() if isinstance(rows, CodedRows) else rows, probability)
        self.missing = gaps_of(rows)

    def follow(self, learner, workers):
        """Draw the missing cells under the model as it stands."""
        model, seed = learner.model(), seed_of_batch(learner.stream)
        # Other numbers the next time.
        learner.stream.take(1)
        if not isinstance(self.rows, CodedRows):
            self.rows = complete(model, self.rows, self.missing, seed, workers)
            return
        layout, codes = self.rows.layout, self.rows.codes
        for some, rows in self.parts():
            missing = layout.spread(self.missing[some])
            rows = complete(model, rows, missing, seed, workers, some.start)
            codes[some] = layout.without_one_hot(rows)


class ChainSample(Sample):
    """Persistent Markov chains: one unit changes the distribution little, and they follow it."""

    min_ess = MIN_ESS

    def follow(self, learner, n_steps, workers):
        """Make transitions under the model as it stands."""
        H = np.empty((len(self), len(learner.hidden)), self.rows.dtype)
        run_chains(learner.model(), self.rows, H, n_steps, learner.stream, workers)

    def noise(self, mean):
        """Mean squared error of `visible_mean`."""
        low, high = self.rows.min(), self.rows.max()
        within = low >= 0 and high <= 1
        variance = mean * (1 - mean) if within else self.rows.var(axis=0, dtype=np.float64)
        return float(np.mean(variance)) / len(self)


class Enumeration(Sample):
    """All states and their probabilities: chains without noise, where the states are few."""

    # There is nothing to guard against.
    min_ess = 0.0

    @classmethod
    def of(cls, learner):
        """The distribution of a model."""
        units = learner.model().visible
        sample = cls(all_states(units).astype(learner.weights.dtype))
        sample.follow(learner, 0, None)
        return sample

    def follow(self, learner, n_steps, workers):
        """Take on the distribution of the model as it stands."""
        self.probability = softmax(-learner.model().free_energy(self.rows))

    def noise(self, mean):
        """There is none: what a mean may be off, squared, for about 1e-5 nats."""
        return 1e-6


class GrowingLearner(SDCPLearner):
    """An RBM to which hidden units can be added; without any, it holds a neutral one.

    Parameters
    ----------
    weights, visible, hidden, visible_offset, scheme, optimizer, stream
        As of `SDCPLearner`.

    Attributes
    ----------
    sample : ChainSample, Enumeration or None
        Of the distribution of the model.
    """

    sample = None

    def __init__(self, weights, *args):
        super().__init__(weights, *args)
        self.n_units = len(self.weights) if self.weights.any() else 0

    def insert(self, unit, scale=1.0, shift=0.0):
        """Add a scaled unit; the visible biases fall by `shift` times its weights."""
        n, dtype = self.n_units, self.weights.dtype
        weights, bias = (scale * unit[:-1]).astype(dtype), dtype.type(scale * unit[-1])
        self.weights = np.asfortranarray(np.vstack([self.weights[:n], weights]))
        self.hidden = Bernoulli(np.append(self.hidden.intercept[:n], bias))
        self.hidden_offset = np.append(self.hidden_offset[:n], dtype.type(0.5))
        self.visible.shift(-(shift * unit[:-1]).astype(dtype))
        self.n_units = n + 1


# The linearised objective, and its minimum.


def linearised_objective(unit, data, model, alpha, mismatch=0.0):
    """Objective of a new unit, to be minimised (eq. 9), and its gradient.

    Its negative is the derivative of the penalised mean log-likelihood by the weight of the
    unit, up to a constant. With a `mismatch` of the means, the unit comes with the shift of
    the visible biases that takes back its mean pushes, s = E_data[σ(w·v)]. Otherwise a unit
    that is always on, and does no more than shift the biases, would look best where the means
    do not match quite.

    Parameters
    ----------
    unit : ndarray of float64 of shape (n_visible + 1,)
    data, model : Sample
        Of the data and of the model.
    alpha : float
        λ of the paper.
    mismatch : ndarray of float64 of shape (n_visible + 1,), default=0.0
        E_data[v] − E_model[v], and last 0; 0 for the objective as printed.

    Returns
    -------
    objective : float
        λ/2 ‖w‖² + E_model[softplus(w·v)] − E_data[softplus(w·v)] + s w·mismatch.
    gradient : ndarray of float64 of shape (n_visible + 1,)
    """
    model_field, data_field = model.field(unit), data.field(unit)
    on = expit(data_field)
    shift, push = data.mean(on), float(np.sum(unit * mismatch))
    objective = (
        alpha / 2 * (unit @ unit)
        + model.mean(np.logaddexp(0, model_field))
        - data.mean(np.logaddexp(0, data_field))
        + shift * push
    )
    gradient = alpha * unit + model.moment(expit(model_field)) + shift * mismatch
    return objective, gradient - data.moment(on - push * on * (1 - on))


def starting_point(kind, data, model, rng):
    """A unit to start from: where data and model differ, at a row of the data, or at random.

    To second order in w, the objective is −w·Cw / 8 with C the difference of the second
    moments of data and model: a few products with C lead to where it is largest.

    Parameters
    ----------
    kind : int
        Which of the three, modulo 3.
    data, model : Sample
    rng : Generator

    Returns
    -------
    unit : ndarray of float64 of shape (n_visible + 1,)
        Half on in the mean of the data, with fields of variance 1.
    """
    n_visible, mean = data.rows.shape[1], data.visible_mean()
    if kind % 3 == 1:
        row = data.rows[data.draw(rng, 1)]
        direction = (row if isinstance(row, np.ndarray) else row.toarray())[0] - mean
    else:
        direction = rng.normal(size=n_visible)
    for _ in range(4 if kind % 3 == 0 else 0):
        centred = np.append(direction, -direction @ mean)
        direction = sum(
            sign * s.moment(s.field(centred))[:-1] for s, sign in ((data, 1), (model, -1))
        )
        direction /= np.linalg.norm(direction) or 1.0
    unit = np.append(direction, -direction @ mean)
    return unit / (data.field(unit).std() or 1.0)


# What a change of one unit is worth.


class Change(NamedTuple):
    """A hidden unit that gets another scale, and what it is worth.

    Attributes
    ----------
    unit : ndarray of float64 of shape (n_visible + 1,)
        At scale 1.
    scale : float
        0 for none.
    shift : float
        The visible biases fall by this times the weights.
    gain : float
        Of the mean log-likelihood, in nats.
    ess : float
        Part of the samples of the model that vouches for it.
    """

    unit: np.ndarray
    scale: float
    shift: float
    gain: float
    ess: float


def rescaled(unit, fields, scales, data, model, *, centered=True):
    """The exact gains of giving a unit other scales, by samples of the present model.

    A unit of scale 0 is a constant factor. With a unit come its mean pushes on the visible units,
    E_data[σ(s w·v)] s w; if `centered`, the visible biases take them back at once. Then

        ΔL = E_data[Δ(v)] − ln E_model[exp Δ(v)],
        Δ(v) = softplus(s w·v) − ln 2 + Δb·v.

    Parameters
    ----------
    unit : ndarray of float64 of shape (n_visible + 1,)
    fields : pair of ndarray of float64
        w·v + c of the rows of the data and of the model: all that is needed of the rows.
    scales : array-like of float
    data, model : Sample
    centered : bool

    Returns
    -------
    changes : list of Change
    """
    data_field, model_field = fields
    changes = []
    for scale in scales:
        shift = scale * data.mean(expit(scale * data_field)) if centered else 0.0

        def log_ratio(field, scale=scale, shift=shift):
            push = shift * (field - unit[-1])
            return np.logaddexp(0, scale * field) - LOG_2 - push

        log_mean, ess = model.log_mean_exp(log_ratio(model_field))
        gain = data.mean(log_ratio(data_field)) - log_mean
        changes.append(Change(unit, float(scale), float(shift), float(gain), float(ess)))
    return changes


def find_unit(data, subset, model, alpha, rng, *, plain=False, n_failed=0):
    """Look for the unit to insert.

    Parameters
    ----------
    data : Sample
        All rows, for the line search.
    subset : Sample
        Rows for the linearised objective.
    model : ChainSample or Enumeration
    alpha : float
        λ of the paper.
    rng : Generator
    plain : bool
        The paper's way, without line search and centring.
    n_failed : int
        Searches in vain before this one, which begins with another kind of start.

    Returns
    -------
    change : Change or None
        None if no unit improves the linearised objective.
    """
    start = starting_point(n_failed, subset, model, rng)
    mismatch = np.zeros(len(start))
    if not plain:
        mismatch[:-1] = subset.visible_mean() - model.visible_mean()
    end = minimize(
        linearised_objective, start, (subset, model, alpha, mismatch), "L-BFGS-B", jac=True,
        bounds=[(-LARGEST_WEIGHT, LARGEST_WEIGHT)] * len(start), options=L_BFGS,
    )  # fmt: skip
    if not end.fun < 0:  # that of w = 0
        return None
    fields, scales = (data.field(end.x), model.field(end.x)), np.ones(1) if plain else SCALES
    changes = rescaled(end.x, fields, scales, data, model, centered=not plain)
    least = 0.0 if plain else model.min_ess
    vouched = [change for change in changes if change.ess >= least]
    return max(vouched, key=lambda change: change.gain, default=None)


def match_means(learner, model, data, rate, workers):
    """Steps of the visible biases until the model has the means of the data (eq. 10).

    The means match when their mean squared difference is within the noise of the chains. As
    Algorithm 1 repeats the step without a limit, `MOST_BIAS_STEPS` only ends what oscillates.

    Of units with other parameters, such as the precisions of Gaussian ones, these go up their own
    gradients at the same time: a unit that is inserted adds to the variance.

    Parameters
    ----------
    learner : GrowingLearner
    model : ChainSample or Enumeration
    data : Sample
    rate : float
        η of the paper.
    workers : Workers

    Returns
    -------
    n_steps : int
        Number of steps made.
    """
    target, shaped = data.visible_mean(), has_shape(learner.visible)
    slopes = data.shape_slopes(learner.visible) if shaped else {}
    least = SHAPE_STEPS if shaped else 0
    for step in range(MOST_BIAS_STEPS):
        mean = model.visible_mean()
        if step >= least and np.mean((target - mean) ** 2) <= MATCH * model.noise(mean):
            return step
        learner.visible.shift((rate * (target - mean)).astype(learner.dtype))
        if shaped:
            reshape(learner.visible, slopes, model.shape_slopes(learner.visible), rate)
        model.follow(learner, 1, workers)
    return MOST_BIAS_STEPS
