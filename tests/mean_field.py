"""Small random machines of all unit types for the tests of mean field."""

import numpy as np

from private import TAP, Layered, Stacked, Stream, by_tap, clamp
from private import RBMModel as Model
from sklearn_boltz import TAPDBM
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
    UnitType,
)

EXACTLY = TAP(max_iter=5000, n_gibbs=0, tol=1e-26)


def bits(n, rng):
    return Bernoulli(rng.standard_normal(n))


def words(*widths):
    return lambda rng: Categorical(widths, rng.standard_normal(sum(widths)))


# Layers: what is made from a generator.
LAYERS = {
    "bits": lambda rng: bits(4, rng),
    "truncated": lambda rng: TruncatedGaussian(*(rng.normal(0, [[3], [5]], (2, 4))), -0.5, 1.0),
    "spiked": lambda rng: TruncatedGaussBernoulli(
        rng.uniform(0.2, 0.8, 4), *rng.normal(0, [[3], [5]], (2, 4))
    ),
    "words": words(3, 2, 4),
    "one word": words(3, 3),
    "bits and words": lambda rng: Stacked([bits(2, rng), words(3, 1, 4)(rng)]),
    "mixed": lambda rng: Stacked(
        [bits(2, rng), words(3, 2)(rng), Gaussian(rng.normal(size=1), np.full(1, 4.0))]
    ),
    "spiked and bits": lambda rng: Stacked([LAYERS["spiked"](rng), bits(2, rng)]),
    "gaussian": lambda rng: Gaussian(rng.normal(size=3), rng.uniform(1, 2, 3)),
}
# The first of them of units of one number.
PAIRS = [
    ("bits", "bits"),
    ("truncated", "spiked"),
    ("spiked", "bits"),
    ("bits", "truncated"),
    ("bits", "words"),
    ("words", "one word"),
    ("bits and words", "bits and words"),
    ("gaussian", "bits"),
    ("words", "gaussian"),
    ("mixed", "words"),
    ("mixed", "truncated"),
]
OF_NUMBERS = PAIRS[:4]


def random_layered(kinds, scale=0.3, seed=0):
    rng = np.random.default_rng(seed)
    layers = [LAYERS[kind](rng) for kind in kinds]
    sizes = [len(units) for units in layers]
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return Layered([scale * rng.standard_normal(pair) for pair in pairs], layers)


def random_model(pair, scale=0.3, seed=0):
    layered = random_layered(pair, scale, seed)
    return Model(layered.weights[0], *layered.layers)


def layered_of(dbm):
    """A machine of bits, as `SmallDBM` has it."""
    return Layered(dbm.weights, [Bernoulli(b) for b in dbm.intercepts])


def rows_of(units, n=5, seed=0):
    """Rows of values of some units, drawn without a field."""
    return units.sample(np.zeros((n, len(units))), Stream(seed))


def tap_log_likelihood(layered, V, order, workers, starts=None):
    """Its mean over rows, with ln Z = −F averaged over the solutions from the starts."""
    iteration = EXACTLY._replace(order=order)
    clamped = clamp(layered, V, iteration, workers)
    starts = clamped.visible_side() if starts is None else starts
    free = by_tap(layered.sides(), starts, iteration, workers)
    assert clamped.converged.all() and free.converged.all()
    return free.free_energy.mean() - clamped.free_energy(order).mean()


def power_of(scales, errors):
    """The power of the scale by which errors of random machines fall: their slope in logarithms.

    Parameters
    ----------
    scales : list of float
    errors : ndarray of shape (n_scales, n_machines)
    """
    sizes = np.sqrt((np.asarray(errors) ** 2).mean(axis=1))
    return np.polyfit(np.log(scales), np.log(sizes), 1)[0]


def deep(dbm):
    """An estimator with the parameters of a `SmallDBM`."""
    sizes = [len(b) for b in dbm.intercepts]
    model = TAPDBM(sizes[1:], max_iter=1, pretrain_max_iter=0, random_state=0)
    model.fit(np.random.default_rng(0).integers(2, size=(60, sizes[0])).astype(float))
    model.components_ = [W.copy() for W in dbm.weights]
    model.intercept_visible_, *model.intercept_hidden_ = [b.copy() for b in dbm.intercepts]
    return model


class Spin(UnitType):
    """Units with the values -1 and 1, as a user would write them for training."""

    bounds = (-1.0, 1.0)

    def __init__(self, intercept):
        self.intercept = intercept

    def parameters(self):
        return {"intercept": self.intercept}

    def log_weight(self, X):
        return X @ self.intercept

    def log_partition(self, field, precision=0.0):
        log_odds = self.intercept + field
        return np.logaddexp(log_odds, -log_odds) - 0.5 * precision

    def moments(self, field, precision=0.0):
        mean = np.tanh(self.intercept + field + 0 * precision)
        return mean, 1 - mean**2

    def gradients(self, X, field=None, precision=0.0):
        mean = X if field is None else self.moments(field, precision)[0]
        return {"intercept": np.asarray(mean).mean(axis=0)}
