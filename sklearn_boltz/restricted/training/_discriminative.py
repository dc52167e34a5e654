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
from sklearn_boltz.restricted.model._classes import gradient_sums
from sklearn_boltz.restricted.sampling._gibbs import run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import hidden_fields, moments
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._gaps import complete, seed_of_batch
from sklearn_boltz.restricted.training._sdcp import GRADIENT_ROWS, is_bias
from sklearn_boltz.units import _bernoulli_arrays
from sklearn_boltz.units._bernoulli_kernel import bernoulli_draw


class Objective(NamedTuple):
    """What goes up, and how.

    Attributes
    ----------
    generative : float
        Weight of the generative term; infinite for that term alone.
    n_gibbs : int
        Transitions of contrastive divergence.
    sparsity : float
        What is taken from the biases of the hidden units in each step.
    alpha : float
        Strength of the L2 penalty on the weights.
    binarized : bool
        Whether values of Bernoulli columns between 0 and 1 are drawn anew in each mini-batch.
    """

    generative: float = 0.01
    n_gibbs: int = 1
    sparsity: float = 0.0
    alpha: float = 0.0
    binarized: bool = True


class Gradient(NamedTuple):
    """Sums over rows of the derivatives by the parameters of a `ClassModel`.

    Attributes
    ----------
    weights : ndarray of shape (n_visible + n_classes, n_hidden)
    hidden : ndarray of shape (n_hidden,)
    label : ndarray of shape (n_classes,)
    visible : list of ndarray
        By the parameters of `visible_arrays`.
    """

    weights: np.ndarray
    hidden: np.ndarray
    label: np.ndarray
    visible: list


class Learner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    model : ClassModel
        Its arrays are changed in place.
    objective : Objective
    optimizer : object
        With a method `move`, as in `sklearn_boltz.restricted.training._optimizers`.
    stream : Stream

    Attributes
    ----------
    label_share : float
        Part of the rows that have a label, by weight.
    repeats : int
        How often rows with a label are visited for one visit of the others.
    """

    # Missing cells are drawn with the label and without.
    draws_gaps = False

    def __init__(self, model, objective, optimizer, stream):
        self._model, self.dtype = model, numpy_dtype(model.joint_weights)
        self.objective, self.optimizer, self.stream = objective, optimizer, stream
        self.label_share, self.repeats = 1.0, 1

    def scale(self, n_rows):
        """How so many rows of a mini-batch stand for all rows."""
        return Scale(n_rows, self.label_share, self.repeats)

    def moved(self, convert):
        """The learner with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        other._model, other.optimizer = self._model.moved(convert), self.optimizer.moved(convert)
        return other

    def take(self, model):
        """Go on with another model of the same sizes."""
        self._model = model

    def model(self):
        """The model as it stands; it shares the arrays."""
        return self._model

    def parameters(self):
        """All arrays, not copied: weights, biases of the hidden units and of the label, and the
        parameters of the visible units."""
        model = self._model
        return (
            model.joint_weights.T, model.hidden.intercept, model.label.intercept,
            *visible_arrays(model.visible),
        )  # fmt: skip

    def in_memory(self, rows):
        """Rows as a mini-batch."""
        return ArrayBatch(rows)

    def learn(self, batch, rate, workers):
        """Change the parameters by one mini-batch.

        Parameters
        ----------
        batch : ArrayBatch, or one on a cluster
            With the method `gradient`.
        rate : float
            Learning rate.
        workers : Workers
        """
        gradient, objective = batch.gradient(self, workers), self.objective
        arrays = self.parameters()
        if objective.alpha:
            gradient.weights[...] -= objective.alpha * arrays[0]
        slopes = [gradient.weights, gradient.hidden, gradient.label, *gradient.visible]
        self.optimizer.move(arrays, slopes, rate)
        if objective.sparsity:
            arrays[1][...] -= objective.sparsity
        self._model.visible.project()


def visible_arrays(units):
    """The parameters of visible units, not copied."""
    return [array for part, _ in units.parts() for array in part.parameters().values()]


class ArrayBatch:
    """A mini-batch in memory.

    Parameters
    ----------
    rows : LabelledRows
    """

    def __init__(self, rows):
        self.rows = rows

    def gradient(self, learner, workers):
        """The gradient of the objective, the mean over the rows."""
        seed = None
        if rows_with_gaps(self.rows.V) is not None:
            seed = seed_of_batch(learner.stream)
        scale = learner.scale(len(self.rows))
        return gradient(
            learner.model(), self.rows, learner.objective, scale, learner.stream, seed, workers
        )


class Scale(NamedTuple):
    """How rows of a mini-batch stand for all rows.

    Attributes
    ----------
    n_rows : int
        Of the mini-batch.
    label_share : float
        Part of all rows that have a label, by weight.
    repeats : int
        How often rows with a label are visited for one visit of the others.
    """

    n_rows: int
    label_share: float
    repeats: int = 1

    @property
    def visits(self):
        """Visits of an epoch for each row."""
        return 1 + (self.repeats - 1) * self.label_share


def row_factors(rows, generative, scale):
    """How often the terms of each row count: ln p(y | x), and ln p(x, y) or ln p(x).

    Returns
    -------
    discriminative, generative : ndarray of float64 of shape (n_rows,)
    """
    xp, labelled = namespace_of(rows.codes), rows.codes >= 0
    share = (np.ones(len(rows)) if rows.weights is None else rows.weights) * (
        scale.visits / scale.n_rows
    )
    share = xp.where(labelled, share / scale.repeats, share)
    if np.isinf(generative):
        return 0 * share, share
    return xp.where(labelled, share / scale.label_share, 0 * share), generative * share


class Terms(NamedTuple):
    """Sums over rows of the derivatives of their terms.

    Attributes
    ----------
    V : ndarray of shape (n_rows, n_visible)
    H : ndarray of shape (n_rows, n_hidden)
        The derivatives by the weights of the features are ``V.T @ H``.
    label_weights : ndarray of shape (n_classes, n_hidden)
        By the weights of the label. Their sum over the classes is that by the hidden biases.
    label : ndarray of float64 of shape (n_classes,)
    visible : ndarray of float64 of shape (n_visible,)
        By what multiplies the values of the visible units.
    """

    V: np.ndarray
    H: np.ndarray
    label_weights: np.ndarray
    label: np.ndarray
    visible: np.ndarray


def gradient(model, rows, objective, scale, stream, seed, workers, first_row=0):
    """The part of some rows in the gradient of a mini-batch.

    Parameters
    ----------
    model : ClassModel
    rows : LabelledRows
    objective : Objective
    scale : Scale
        Of the whole mini-batch.
    stream : Stream
    seed : int or None
        Of the draws of missing cells; None where none are missing.
    workers : Workers
    first_row : int
        Number of the first of these rows in the mini-batch, for random numbers.

    Returns
    -------
    gradient : Gradient
    """
    discriminative, generative = row_factors(rows, objective.generative, scale)
    labelled, has_chains = rows.codes >= 0, bool(objective.generative)
    V, codes, xp = rows.V, rows.codes, namespace_of(rows.codes)
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
    data, fields, log_weights = _data_terms(
        model, V, codes, target, share, workers, keep=has_chains
    )
    terms = [data]
    if has_chains:
        some = slice(len(rows))
        codes = _with_drawn_labels(rows.codes, log_weights[some, :], stream, first_row)
        terms.append(_chain_terms(
            model, V[some, :], fields[some, :], codes, generative, objective.n_gibbs, stream,
            workers, first_row,
        ))  # fmt: skip
    label_weights = sum(term.label_weights for term in terms)
    weights = _weights_gradient(model, terms, label_weights, workers)
    bias, chains = sum(term.visible for term in terms), terms[1].V if has_chains else None
    if not has_chains and seed is None:
        bias = 0 * bias  # which rounding errors are not: ln p(y | x) does not depend on them
    visible = _visible_slopes(model.visible, bias, V[: len(rows), :], chains, xp.sum(generative))
    label = converted(sum(term.label for term in terms), model.dtype, xp)
    return Gradient(weights, xp.sum(label_weights, axis=0), label, visible)


def _weights_gradient(model, terms, label_weights, workers):
    """Derivatives by the weights of the features and, below, of the label."""
    if is_foreign(label_weights):
        return concatenated([sum(term.V.T @ term.H for term in terms), label_weights])
    weights, n_visible = np.empty(model.joint_weights.T.shape, model.dtype), len(model.visible)

    def block(units):
        for k, term in enumerate(terms):
            moments(term.V[:, units], term.H, 1, weights[units], k > 0)

    work = n_visible * sum(term.H.size for term in terms)
    workers.map(block, row_blocks(n_visible, GRADIENT_ROWS), work)
    weights[n_visible:] = label_weights
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
    joint, gaps = model.joint(), np.isnan(V).any(axis=1)
    rows = model.joint_rows(V, codes)
    n_visible = len(model.visible)
    given = complete(joint, rows, np.isnan(rows), seed, workers, first_row)[:, :n_visible]
    given = np.where(np.isnan(V), given, V)
    again = gaps & (codes >= 0) & (share != 0)
    free = np.empty((0, n_visible), V.dtype)
    if again.any():
        # The rows keep their places, on which the random numbers depend.
        rows = model.joint_rows(V)
        missing = np.isnan(rows) & again[:, np.newaxis]
        rows[~again] = 0
        free = complete(joint, rows, missing, seed + 1, workers, first_row)[again, :n_visible]
    target = np.append(target, np.zeros(len(free)))
    share, of_free = np.where(again, 0, share), share[again]
    codes = np.append(codes, np.full(len(free), -1, dtype=codes.dtype))
    V = np.ascontiguousarray(np.vstack([given, free]), dtype=model.dtype)
    return V, codes, target, np.append(share, of_free)


def _data_terms(model, V, codes, target, share, workers, keep):
    """-> the terms of rows, the fields of their hidden units if wanted, and class log-weights."""
    xp = namespace_of(V)
    visible = converted(target + share, V.dtype, xp) @ V
    if is_foreign(V):
        fields = model.hidden_field(V)
        sums = gradient_sums(model, fields, codes, target, share)
        terms = Terms(V, sums.fields, sums.label_fields, sums.label, visible)
        return terms, fields, sums.log_weights
    weights = np.ascontiguousarray(model.weights.T)
    H = np.empty((len(V), weights.shape[1]), model.dtype)
    fields, label_fields = np.empty_like(H) if keep else None, model.label_fields()

    def block(rows):
        hidden_fields(weights, V[rows], H[rows])
        if keep:
            fields[rows] = H[rows]
        return gradient_sums(model, H[rows], codes[rows], target[rows], share[rows], label_fields)

    parts = workers.map(block, row_blocks(len(V)), V.size * weights.shape[1])
    terms = Terms(
        V,
        H,
        sum(part.label_fields for part in parts),
        sum(part.label for part in parts),
        visible,
    )
    return terms, fields, np.concatenate([part.log_weights for part in parts])


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


def _chain_terms(model, V, fields, codes, generative, n_gibbs, stream, workers, first_row):
    """The terms of states that chains reach from rows and their labels, with the sign changed.

    Parameters
    ----------
    model : ClassModel
    V : ndarray of shape (n_rows, n_visible)
    fields : ndarray of shape (n_rows, n_hidden)
        What the rows add to the fields of the hidden units; of NumPy, overwritten.
    codes : ndarray of int of shape (n_rows,)
    generative : ndarray of float64 of shape (n_rows,)
        How often each row counts.
    n_gibbs : int
    stream : Stream
    workers : Workers
    first_row : int
    """
    joint, factors = model.joint(), -converted(generative, model.dtype, namespace_of(V))
    of_labels = taken(model.label_weights.T, codes)
    if is_foreign(fields):  # of which the products may be of lower precision
        fields = fields + of_labels
    else:
        fields += of_labels
    means = joint.hidden.sample(fields, stream, first_row)
    states = empty(V, (V.shape[0], len(joint.visible)))
    run_chains(
        joint, states, means, n_gibbs, stream, workers, from_hidden=True, first_row=first_row
    )
    means *= factors[:, None]
    features, labels = states[:, : V.shape[1]], states[:, V.shape[1] :]
    total = factors @ states
    return Terms(
        features, means, labels.T @ means, widened(total[V.shape[1] :]),
        total[: V.shape[1]],
    )  # fmt: skip


def _visible_slopes(units, bias, V, chains, total):
    """Derivatives by the parameters of visible units, as `visible_arrays` has them.

    Parameters
    ----------
    units : UnitType
    bias : ndarray of shape (n_visible,)
        Derivative by what multiplies the values.
    V, chains : ndarray of shape (n_rows, n_visible)
        Rows and states of chains; None without chains.
    total : float
        How often the generative terms of the rows count together. Parameters that are no biases
        go by means over rows without weights.
    """
    slopes = []
    for part, columns in units.parts():
        names = list(part.parameters())
        if chains is not None and not all(map(is_bias, names)):
            at_data, at_chains = part.gradients(V[:, columns]), part.gradients(chains[:, columns])
        for name in names:
            if is_bias(name):
                slope = bias[columns]
            elif chains is None:
                slope = 0 * part.parameters()[name]
            else:
                slope = total * (at_data[name] - at_chains[name])
            slopes.append(as_type(slope, numpy_dtype(part.parameters()[name])))
    return slopes
