"""A classifying RBM: features and a label in one visible side, and what follows from a row.

p(x, y, h) ∝ exp(h·Wx + h·U_y + d_y) w(x) w(h) is an RBM whose visible side is the features and one
categorical unit, the label. Given a row x, the label and the hidden units can be summed out
exactly, as there are few classes and the hidden units are independent given both.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from sklearn_boltz.numerics._arrays import (
    concatenated,
    is_foreign,
    logsumexp,
)
from sklearn_boltz.restricted.model import _class_arrays
from sklearn_boltz.restricted.model._class_kernel import class_gradients, class_log_weights
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._stacked import Stacked
from sklearn_boltz.units._unit import UnitType


class ClassModel(NamedTuple):
    """p(x, y, h) ∝ exp(h·Wx + h·U_y + d_y) w(x) w(h), with binary hidden units.

    Attributes
    ----------
    joint_weights : ndarray of shape (n_hidden, n_visible + n_classes)
        The weights W of the features, and then those of the label, Uᵀ.
    visible : UnitType
    hidden : Bernoulli
    label : Categorical
        One unit with a state for each class.
    """

    joint_weights: np.ndarray
    visible: UnitType
    hidden: Bernoulli
    label: Categorical

    @classmethod
    def of(cls, weights, label_weights, visible, hidden, label):
        """From the weights of the features and of the label."""
        if is_foreign(weights):
            return cls(concatenated([weights.T, label_weights.T]).T, visible, hidden, label)
        joint = np.empty((weights.shape[1] + label_weights.shape[1], len(weights)), weights.dtype)
        joint[: weights.shape[1]], joint[weights.shape[1] :] = weights.T, label_weights.T
        return cls(joint.T, visible, hidden, label)

    @property
    def dtype(self):
        """Type that the model computes in."""
        return self.joint_weights.dtype

    @property
    def n_classes(self):
        """Number of classes."""
        return len(self.label)

    @property
    def weights(self):
        """W, of shape (n_hidden, n_visible), not copied."""
        return self.joint_weights[:, : len(self.visible)]

    @property
    def label_weights(self):
        """Weights of the label, of shape (n_hidden, n_classes), not copied."""
        return self.joint_weights[:, len(self.visible) :]

    def moved(self, convert):
        """The model with its arrays elsewhere: `convert` is for each of them."""
        # The numbers of a visible unit stay next to each other.
        return ClassModel(
            convert(self.joint_weights.T).T, *(units.moved(convert) for units in self[1:])
        )

    def in_double(self):
        """The model in float64, for exact sums."""
        visible, hidden, label = (units.astype(np.float64) for units in self[1:])
        return ClassModel(self.joint_weights.astype(np.float64, order="F"), visible, hidden, label)

    def hidden_field(self, V):
        """What the features add to the fields of the hidden units."""
        if is_foreign(V):
            return V @ self.weights.T
        return safe_sparse_dot(V, self.weights.T, dense_output=True)

    def joint(self):
        """The same distribution as a `Model`, whose visible rows are `joint_rows`."""
        return Model(self.joint_weights, joint_units(self.visible, self.label), self.hidden)

    def layered(self):
        """The same as layers: the features, the hidden units, and above them the label."""
        layers = [self.visible, self.hidden, self.label]
        return Layered([self.weights, self.label_weights.T], layers)

    def joint_rows(self, V, codes=None):
        """Rows of the features and the label: one-hot, and NaN where there is none.

        Parameters
        ----------
        V : ndarray of shape (n_rows, n_visible)
        codes : ndarray of int of shape (n_rows,), default=None
            Numbers of classes, -1 for none; None for rows without labels.
        """
        if is_foreign(V):
            return _class_arrays.joint_rows(V, codes, self.n_classes)
        rows = np.empty((len(V), len(self.visible) + self.n_classes), self.dtype)
        rows[:, : len(self.visible)] = V
        rows[:, len(self.visible) :] = np.nan if codes is None else one_hot(codes, self.n_classes)
        return rows

    def label_fields(self):
        """What each class adds to the fields of the hidden units, with their biases."""
        fields = self.label_weights.T + self.hidden.intercept
        return fields if is_foreign(fields) else np.ascontiguousarray(fields)

    def class_log_weights(self, fields):
        """ln Σ_h p(x, y, h) for each class, but for w(x) and a constant.

        Parameters
        ----------
        fields : ndarray of shape (n_rows, n_hidden)
            Wx of each row.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_rows, n_classes)
            d_y + Σ_j softplus(c_j + U_yj + W_j·x).
        """
        if is_foreign(fields):
            return _class_arrays.class_log_weights(
                fields, self.label_fields(), self.label.intercept
            )
        out = np.empty((len(fields), self.n_classes))
        fields = np.ascontiguousarray(fields, dtype=self.dtype)
        class_log_weights(fields, self.label_fields(), self.label.intercept, out)
        return out

    def log_probability(self, fields):
        """ln p(y | x) for each class, from the fields of the hidden units."""
        log_weights = self.class_log_weights(fields)
        return log_weights - logsumexp(log_weights)[:, None]

    def mean_hidden(self, fields):
        """E[h | x], the label summed out, from the fields of the hidden units."""
        if is_foreign(fields):
            shares = _class_arrays.probabilities(self.class_log_weights(fields))
            return _class_arrays.weighted_means(fields, self.label_fields(), shares)[0]
        means, n = np.array(fields, self.dtype, order="C"), len(fields)
        gradient_sums(self, means, np.full(n, -1), np.zeros(n), np.ones(n))
        return means

    def free_energy(self, V, fields):
        """−ln Σ_yh p(x, y, h), but for ln Z, of rows and their fields."""
        return -self.visible.log_weight(V) - logsumexp(self.class_log_weights(fields))


class ClassSums(NamedTuple):
    """Derivatives of Σ_y E_y ln Σ_h p(x, y, h), but for those of fields summed over the rows.

    Attributes
    ----------
    fields : ndarray of shape (n_rows, n_hidden)
        By the fields, Σ_y E_y E[h | x, y].
    log_weights : ndarray of float64 of shape (n_rows, n_classes)
        As of `ClassModel.class_log_weights`.
    label_fields : ndarray of shape (n_classes, n_hidden)
        By U, as its transposed.
    label : ndarray of float64 of shape (n_classes,)
        By d.
    """

    fields: np.ndarray
    log_weights: np.ndarray
    label_fields: np.ndarray
    label: np.ndarray


def gradient_sums(model, fields, codes, target, share, label_fields=None):
    """Sums of derivatives over rows, with E = target · onehot(y) + share · p(· | x) for each.

    With target 1 and share −1, they are those of ln p(y | x); with 1 and 0 of ln p(x, y), and with
    0 and 1 of ln p(x), without ln Z.

    Parameters
    ----------
    model : ClassModel
    fields : ndarray of shape (n_rows, n_hidden)
        Wx. Of NumPy, overwritten by the derivatives by the fields.
    codes : ndarray of int of shape (n_rows,)
        Numbers of the classes; -1 for none.
    target, share : ndarray of float64 of shape (n_rows,)
    label_fields : ndarray of shape (n_classes, n_hidden), default=None
        `model.label_fields()`, where it is there already.

    Returns
    -------
    sums : ClassSums
    """
    if label_fields is None:
        label_fields = model.label_fields()
    if is_foreign(fields):
        bias = model.label.intercept
        return ClassSums(*_class_arrays.class_gradients(
            fields, label_fields, bias, codes, target, share
        ))  # fmt: skip
    sums = ClassSums(
        fields,
        np.empty((len(fields), model.n_classes)),
        np.zeros_like(label_fields),
        np.zeros(model.n_classes),
    )
    class_gradients(fields, label_fields, model.label.intercept, codes, target, share, *sums[1:])
    return sums


def joint_units(visible, label):
    """The units of the features and that of the label as one layer."""
    return Stacked([*(part for part, _ in visible.parts()), label])


def one_hot(codes, n_classes):
    """Codes of classes as numbers 0 and 1; NaN where there is none."""
    rows = (codes[:, np.newaxis] == np.arange(n_classes)).astype(np.float32)
    rows[codes < 0] = np.nan
    return rows
