"""A classifying RBM: features and a label in one visible side, and what follows from a row.

p(x, y, h) ∝ exp(h·Wx + h·U_y + d_y) w(x) w(h) is an RBM whose visible side is the features and one
categorical unit, the label. Given a row x, the label and the hidden units can be summed out
exactly, as there are few classes and the hidden units are independent given both.
"""

import numpy as np

from sklearn_boltz.numerics._arrays import (
    as_numpy,
    concatenated,
    is_foreign,
    like,
    logsumexp,
    namespace_of,
    numpy_dtype,
    widened,
    zeros,
)
from sklearn_boltz.restricted.model import _class_arrays
from sklearn_boltz.restricted.model._class_kernel import class_gradients, class_log_weights
from sklearn_boltz.restricted.model._layered import Layered, stacked
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.units._stacked import Stacked


class ClassModel:
    """p(x, h) of the features and binary hidden units, the label summed out, and p(y | x).

    It has what `Model` has, as far as a row follows from its features.

    Parameters
    ----------
    joint : Model
        Of features, label and hidden units. The visible units are `Stacked`, the label last: one
        unit with a state for each class.
    """

    def __init__(self, joint):
        *parts, self.label = joint.visible.layers
        self.joint, self.dtype, self.n_classes = joint, joint.dtype, len(self.label)
        self.visible = parts[0] if len(parts) == 1 else Stacked(parts)
        self.hidden = joint.hidden

    @classmethod
    def of(cls, layered):
        """Join three layers: the features, the hidden units and, above them, the label."""
        (weights, of_label), (visible, hidden, label) = layered
        joint = concatenated([weights.T, of_label])
        if not is_foreign(joint):  # the numbers of a visible unit are next to each other
            joint = np.ascontiguousarray(joint)
        return cls(Model(joint.T, stacked([visible, label]), hidden))

    @property
    def weights(self):
        """W, of shape (n_hidden, n_visible), not copied."""
        return self.joint.weights[:, : -self.n_classes]

    @property
    def label_weights(self):
        """Weights of the label, of shape (n_hidden, n_classes), not copied."""
        return self.joint.weights[:, -self.n_classes :]

    weights_by_visible, free_energy = Model.weights_by_visible, Model.free_energy
    hidden_field, visible_field = Model.hidden_field, Model.visible_field
    mean_visible = Model.mean_visible

    def sides(self):
        """Joint distribution of features, label and hidden units, as a `Model`."""
        return self.joint

    def side(self, V):
        """Rows of the visible side for rows of features, with the most probable label."""
        log_p = self.log_probability(self.hidden_field(V))
        codes = as_numpy(namespace_of(log_p).argmax(log_p, axis=1))
        labels = one_hot(codes, self.n_classes, numpy_dtype(self.joint.weights))
        return concatenated([V, like(V, labels)], axis=1)

    def layered(self):
        """Return three layers: the features, the hidden units, and above them the label."""
        layers = [self.visible, self.hidden, self.label]
        return Layered([self.weights, self.label_weights.T], layers)

    def moved(self, convert):
        """The model with its arrays elsewhere: `convert` is for each of them."""
        return ClassModel.of(self.layered().moved(convert))

    def label_fields(self):
        """Contribution of each class to the fields of the hidden units, biases included."""
        fields = self.label_weights.T + self.hidden.intercept
        return fields if is_foreign(fields) else np.ascontiguousarray(fields)

    def class_log_weights(self, fields):
        """ln Σ_h p(x, y, h) for each class, without w(x) and a constant.

        Parameters
        ----------
        fields : ndarray of shape (n_rows, n_hidden)
            Wx of each row.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_rows, n_classes)
            d_y + Σ_j softplus(c_j + U_yj + W_j·x).
        """
        label_fields, bias = self.label_fields(), self.label.intercept
        if is_foreign(fields):
            return _class_arrays.class_log_weights(fields, label_fields, bias)
        out = np.empty((len(fields), self.n_classes))
        class_log_weights(np.ascontiguousarray(fields, self.dtype), label_fields, bias, out)
        return out

    def log_probability(self, fields):
        """ln p(y | x) for each class, from the fields of the hidden units."""
        log_weights = self.class_log_weights(fields)
        return log_weights - logsumexp(log_weights)[:, None]

    def log_sum(self, fields):
        """ln Σ_yh p(x, y, h) without w(x) and a constant, from the fields of the hidden units."""
        return logsumexp(self.class_log_weights(fields))

    def mean_hidden(self, V):
        """E[h | x] of rows."""
        fields, n = self.hidden_field(V), V.shape[0]
        if not is_foreign(fields):
            fields = np.array(fields, self.dtype, order="C")
        nothing = widened(zeros(fields, (n,)))
        return gradient_sums(self, fields, like(fields, np.full(n, -1)), nothing, nothing + 1)[0]

    def energy(self, V, H):
        """−ln Σ_y exp(−E(x, y, h)) of pairs of rows, in float64."""
        of_label = self.label.log_partition_sum(H @ self.label_weights)
        return Model(self.weights, self.visible, self.hidden).energy(V, H) - of_label


def gradient_sums(model, fields, codes, target, share, label_fields=None):
    """Sums of derivatives over rows, with E = target · onehot(y) + share · p(· | x) for each.

    With target 1 and share −1, they are those of ln p(y | x); with 1 and 0 of ln p(x, y), and with
    0 and 1 of ln p(x), without ln Z.

    Parameters
    ----------
    model : ClassModel
    fields : ndarray of shape (n_rows, n_hidden)
        Wx. A NumPy array is overwritten with the derivatives with respect to the fields.
    codes : ndarray of int of shape (n_rows,)
        Numbers of the classes; -1 for none.
    target, share : ndarray of float64 of shape (n_rows,)
    label_fields : ndarray of shape (n_classes, n_hidden), default=None
        `model.label_fields()`, where it is there already.

    Returns
    -------
    by_fields : ndarray of shape (n_rows, n_hidden)
        Derivatives by the fields, Σ_y E_y E[h | x, y].
    log_weights : ndarray of float64 of shape (n_rows, n_classes)
        As of `ClassModel.class_log_weights`.
    by_label_fields : ndarray of shape (n_classes, n_hidden)
        By U, as its transposed, over all rows.
    by_label : ndarray of float64 of shape (n_classes,)
        By d, over all rows.
    """
    if label_fields is None:
        label_fields = model.label_fields()
    if is_foreign(fields):
        bias = model.label.intercept
        return _class_arrays.class_gradients(fields, label_fields, bias, codes, target, share)
    sums = (
        np.empty((len(fields), model.n_classes)), np.zeros_like(label_fields),
        np.zeros(model.n_classes),
    )  # fmt: skip
    class_gradients(fields, label_fields, model.label.intercept, codes, target, share, *sums)
    return fields, *sums


def one_hot(codes, n_classes, dtype=np.float32):
    """Codes of classes as numbers 0 and 1; NaN where there is none."""
    rows = (codes[:, np.newaxis] == np.arange(n_classes)).astype(dtype)
    rows[codes < 0] = np.nan
    return rows
