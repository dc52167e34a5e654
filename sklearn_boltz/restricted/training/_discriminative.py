"""Discriminative and hybrid steps of a classifying RBM (Larochelle and Bengio, 2008).

With labelled rows (x, y) and unlabelled ones x, what goes up is

    mean ln p(y | x) + α (mean ln p(x, y) or ln p(x)).

The gradient of ln p(y | x) is exact, and so is the positive phase of the generative term, in which
a missing label is summed out: both are sums over classes and hidden units with other factors, and
one pass over the rows makes them. The negative phase is contrastive divergence.

Missing cells x_m of a row are summed out by draws: ∇ ln p(y | x_o) is the mean of ∇ ln p(x, y) over
p(x_m | x_o, y) less the mean of ∇ ln p(x) over p(x_m | x_o).
"""

from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import (
    as_type,
    concatenated,
    converted,
    cumulative_sum,
    empty,
    for_kernels,
    is_foreign,
    namespace_of,
    numpy_dtype,
    taken,
    widened,
)
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.model._classes import gradient_sums, one_hot
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import hidden_fields, moments
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._gaps import complete, seed_of_batch
from sklearn_boltz.restricted.training._sdcp import GRADIENT_ROWS, has_shape, is_bias
from sklearn_boltz.units import _bernoulli_arrays
from sklearn_boltz.units._bernoulli_kernel import bernoulli_draw


class ClassObjective(NamedTuple):
    """Objective of the training of a classifier, and its settings.

    Attributes
    ----------
    generative : float
        Weight of the generative term; infinite for that term alone.
    n_gibbs : int
        Transitions of contrastive divergence.
    sparsity : float
        Amount subtracted from the biases of the hidden units in each step.
    alpha : float
        Strength of the L2 penalty on the weights.
    binarized : bool
        Whether values of Bernoulli columns between 0 and 1 are drawn anew in each mini-batch.
    label_share : float
        Part of the rows that have a label, by weight.
    """

    generative: float = 0.01
    n_gibbs: int = 1
    sparsity: float = 0.0
    alpha: float = 0.0
    binarized: bool = True
    label_share: float = 1.0


class ClassLearner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    model : ClassModel
        Its arrays are changed in place.
    objective : ClassObjective
    optimizer : object
        With a method `move`, as in `sklearn_boltz.restricted.training._optimizers`.
    stream : Stream
    """

    # Missing cells are drawn with the label and without.
    draws_gaps = False

    def __init__(self, model, objective, optimizer, stream):
        self._model, self.dtype = model, numpy_dtype(model.joint.weights)
        self.objective, self.optimizer, self.stream = objective, optimizer, stream

    def moved(self, convert):
        """The learner with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        other._model, other.optimizer = self._model.moved(convert), self.optimizer.moved(convert)
        return other

    def model(self):
        """The model as it stands; it shares the arrays."""
        return self._model

    def parameters(self):
        """All arrays, not copied: weights, biases of the hidden units, and the parameters of the
        visible units, those of the label last."""
        joint = self._model.joint
        return joint.weights.T, joint.hidden.intercept, *joint.visible.parameters().values()

    def in_memory(self, rows):
        """Rows as a mini-batch: what finds the gradient."""
        return partial(gradient_in_memory, rows)

    def learn(self, batch, rate, workers):
        """Change the parameters by one mini-batch.

        Parameters
        ----------
        batch : callable
            From learner and workers to the gradient.
        rate : float
            Learning rate.
        workers : Workers
        """
        slopes, arrays = batch(self, workers), self.parameters()
        if self.objective.alpha:
            slopes[0][...] -= self.objective.alpha * arrays[0]
        self.optimizer.move(arrays, slopes, rate)
        if self.objective.sparsity:
            arrays[1][...] -= self.objective.sparsity
        self._model.joint.visible.project()


def gradient_in_memory(rows, learner, workers):
    """The gradient of the objective, the mean over `LabelledRows`, as the learner's parameters."""
    gaps = rows_with_gaps(rows.V) is not None
    seed = seed_of_batch(learner.stream) if gaps else None
    model, objective, stream = learner.model(), learner.objective, learner.stream
    return gradient(model, rows, objective, 1 / len(rows), stream, seed, workers)


def gradient(model, rows, objective, share, stream, seed, workers, first_row=0):
    """The part of some rows in the gradient of a mini-batch.

    Parameters
    ----------
    model : ClassModel
    rows : LabelledRows
    objective : ClassObjective
    share : float
        What a row of weight 1 is of the mini-batch.
    stream : Stream
    seed : int or None
        Of the draws of missing cells; None where none are missing.
    workers : Workers
    first_row : int
        Number of the first of these rows in the mini-batch, for random numbers.

    Returns
    -------
    gradient : list of ndarray
        By the parameters of a `ClassLearner`.
    """
    V, codes, has_chains = rows.V, rows.codes, bool(objective.generative)
    xp, labelled, d = namespace_of(codes), codes >= 0, len(model.visible)
    share = share * rows.weights
    if np.isinf(objective.generative):
        discriminative, generative = 0 * share, share
    else:
        discriminative = xp.where(labelled, share * (1 / objective.label_share), 0 * share)
        generative = objective.generative * share
    if not is_foreign(V):
        V = np.ascontiguousarray(V, dtype=model.dtype)
    if objective.binarized:
        V = binarized(model.visible, V, stream, first_row)
    # ln p(y | x) or ln p(x, y), and ln p(x), as of `gradient_sums`.
    target = xp.where(labelled, discriminative + generative, 0 * generative)
    share = xp.where(labelled, -discriminative, generative)
    if seed is not None:
        V, codes, target, share = _without_gaps(
            model, V, codes, target, share, seed, workers, first_row
        )
    fields, by_fields, log_weights, of_label, by_label = _sums(
        model, V, codes, target, share, workers
    )
    parts = [(V, by_fields)]
    bias = widened(converted(target + share, V.dtype, xp) @ V)
    if not has_chains and seed is None:
        bias = 0 * bias  # which rounding errors are not: ln p(y | x) does not depend on them
    bias, states = concatenated([bias, by_label]), None
    if has_chains:
        some = slice(len(rows))
        codes = _with_drawn_labels(rows.codes, log_weights[some, :], stream, first_row)
        states, means = _chains(
            model, fields[some, :], codes, objective.n_gibbs, stream, workers, first_row
        )
        factors = -converted(generative, model.dtype, xp)
        means *= factors[:, None]
        parts.append((states[:, :d], means))
        of_label = of_label + states[:, d:].T @ means
        bias = bias + widened(factors @ states)
    weights = _weights_gradient(model, parts, of_label, workers)
    slopes = _visible_slopes(
        model.joint.visible, bias, V[: len(rows), :], states, xp.sum(generative)
    )
    return [weights, xp.sum(of_label, axis=0), *slopes]


def _weights_gradient(model, parts, of_label, workers):
    """Derivatives by the weights of the features and, below, of the label."""
    if is_foreign(of_label):
        return concatenated([sum(V.T @ H for V, H in parts), of_label])
    weights, n_visible = np.empty(model.joint.weights.T.shape, model.dtype), len(model.visible)

    def block(units):
        for k, (V, H) in enumerate(parts):
            moments(V[:, units], H, 1, weights[units], k > 0)

    work = n_visible * sum(H.size for _, H in parts)
    workers.map(block, row_blocks(n_visible, GRADIENT_ROWS), work)
    weights[n_visible:] = of_label
    return weights


def binarized(units, V, stream, first_row):
    """Rows in which values of Bernoulli units between 0 and 1 are drawn with that probability."""
    if is_foreign(V):  # to look whether all are 0 or 1 would wait for the device
        return _bernoulli_arrays.draw(for_kernels(V), stream)
    step, drawn = stream.take(1), None
    for part, columns in units.parts():
        if not part.is_binary:
            continue
        p = np.ascontiguousarray(V[:, columns])
        if ((p == 0) | (p == 1)).all():
            continue
        bits = np.empty_like(p)
        bernoulli_draw(bits, p, stream.seed, step, first_row)
        bits[np.isnan(p)] = np.nan
        drawn = V.copy() if drawn is None else drawn
        drawn[:, columns] = bits
    return V if drawn is None else drawn


def _without_gaps(model, V, codes, target, share, seed, workers, first_row):
    """Rows with missing cells drawn given the label, and once more for all classes together."""
    layered, n_visible, gaps = model.layered(), len(model.visible), np.isnan(V).any(axis=1)
    rows = layered.padded(V, np.nan)
    missing = np.isnan(rows) & (gaps & (codes >= 0) & (share != 0))[:, np.newaxis]
    rows[:, n_visible:] = one_hot(codes, model.n_classes)
    given = complete(model.joint, rows, np.isnan(rows), seed, workers, first_row)[:, :n_visible]
    given = np.where(np.isnan(V), given, V)
    again, free = missing.any(axis=1), np.empty((0, n_visible), V.dtype)
    if again.any():
        # The rows keep their places, on which the random numbers depend.
        rows = np.where(again[:, np.newaxis], layered.padded(V, np.nan), 0)
        free = complete(model.joint, rows, missing, seed + 1, workers, first_row)
        free = free[again, :n_visible]
    target = np.append(target, np.zeros(len(free)))
    share, of_free = np.where(again, 0, share), share[again]
    codes = np.append(codes, np.full(len(free), -1, dtype=codes.dtype))
    V = np.ascontiguousarray(np.vstack([given, free]), dtype=model.dtype)
    return V, codes, target, np.append(share, of_free)


def _sums(model, V, codes, target, share, workers):
    """-> what rows add to the fields of the hidden units, and the arrays of `gradient_sums`."""
    if is_foreign(V):
        fields = model.hidden_field(V)
        return fields, *gradient_sums(model, fields, codes, target, share)
    weights = np.ascontiguousarray(model.weights.T)
    fields, label_fields = np.empty((len(V), weights.shape[1]), model.dtype), model.label_fields()

    def block(rows):
        hidden_fields(weights, V[rows], fields[rows])
        of_rows = fields[rows].copy()
        return gradient_sums(model, of_rows, codes[rows], target[rows], share[rows], label_fields)

    parts = workers.map(block, row_blocks(len(V)), V.size * weights.shape[1])
    by_fields, log_weights, of_label, by_label = zip(*parts, strict=True)
    by_rows = np.concatenate(by_fields), np.concatenate(log_weights)
    return fields, *by_rows, sum(of_label), sum(by_label)


def _with_drawn_labels(codes, log_weights, stream, first_row):
    """The labels of rows; where a row has none, one that is drawn given the row."""
    xp, shape = namespace_of(log_weights), (codes.shape[0], 1)
    if is_foreign(codes):  # to look whether all have one would wait for the device
        u = stream.uniform_beside(log_weights, shape, first_row)
    else:
        u = stream.uniform(shape, first_row=first_row)
        if (codes >= 0).all():
            return codes
    greatest = xp.max(log_weights, axis=1, keepdims=True)
    weights = cumulative_sum(xp.exp(log_weights - greatest))
    below = converted(weights < u * weights[:, -1:], codes.dtype, xp)
    return xp.where(codes < 0, xp.sum(below, axis=1), codes)


def _chains(model, fields, codes, n_gibbs, stream, workers, first_row):
    """-> states of chains from rows and their labels, and the means of the hidden units."""
    fields = fields + taken(model.label_weights.T, codes)
    means = model.hidden.sample(fields, stream, first_row)
    states = empty(fields, (fields.shape[0], len(model.joint.visible)))
    run_chains(
        model.joint, states, means, n_gibbs, stream, workers, from_hidden=True, first_row=first_row
    )
    return states, means


def _visible_slopes(units, bias, V, states, total):
    """Derivatives by the parameters of visible units.

    Parameters
    ----------
    units : Stacked
        Of the features and the label, which has a bias alone.
    bias : ndarray of float64 of shape (n_numbers,)
        Derivative by what multiplies the values.
    V : ndarray of shape (n_rows, n_visible)
    states : ndarray of shape (n_rows, n_numbers) or None
        Of chains; None without chains.
    total : float
        How often the generative terms of the rows count together. Parameters that are no biases
        go by means over rows without weights.
    """
    slopes = []
    for part, columns in units.parts():
        reshapes = states is not None and has_shape(part)
        if reshapes:
            at_data, at_chains = part.gradients(V[:, columns]), part.gradients(states[:, columns])
        for name, value in part.parameters().items():
            slope = bias[columns] if is_bias(name) else 0 * value
            if reshapes and not is_bias(name):
                slope = total * (at_data[name] - at_chains[name])
            slopes.append(as_type(slope, numpy_dtype(value)))
    return slopes
