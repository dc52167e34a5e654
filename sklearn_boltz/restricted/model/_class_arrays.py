"""The sum over classes and hidden units of a classifying RBM, of arrays of other libraries.

Each function equals the kernel of the same name, and returns what that writes. Arrays of rows ×
classes × units are held in memory, for as many classes at a time as `MOST_NUMBERS` allows.
"""

from sklearn.utils import gen_batches

from sklearn_boltz.numerics._arrays import (
    at_least,
    concatenated,
    converted,
    device_of,
    expit,
    fused,
    namespace_of,
    widened,
)

MOST_NUMBERS = 2**25


def class_log_weights(fields, label_fields, bias):
    """d_y + Σ_j softplus(x_j + u_yj), in the widest type of float.

    Parameters
    ----------
    fields : array of shape (n_rows, n_hidden)
    label_fields : array of shape (n_classes, n_hidden)
    bias : array of shape (n_classes,)

    Returns
    -------
    log_weights : array of shape (n_rows, n_classes)
    """
    sums, bias = fused(_softplus_sums, fields), widened(bias)
    return concatenated(
        [sums(fields, label_fields[some, :], bias[some]) for some in _classes(fields, bias)], axis=1
    )


def class_gradients(fields, label_fields, bias, codes, target, share):
    """Sums of derivatives, with E = target · onehot(y) + share · p(· | x) for each row.

    Parameters
    ----------
    fields, label_fields, bias : array
        As of `class_log_weights`.
    codes : array of int of shape (n_rows,)
    target, share : array of shape (n_rows,)

    Returns
    -------
    by_fields : array of shape (n_rows, n_hidden)
    log_weights : array of shape (n_rows, n_classes)
    by_label_fields : array of shape (n_classes, n_hidden)
    by_bias : array of shape (n_classes,)
    """
    xp, log_weights = namespace_of(fields), class_log_weights(fields, label_fields, bias)
    weights = xp.exp(log_weights - xp.max(log_weights, axis=1, keepdims=True))
    classes = xp.arange(bias.shape[0], dtype=codes.dtype, device=device_of(codes))
    target = target[:, None] * converted(codes[:, None] == classes, target.dtype, xp)
    E = target + share[:, None] * (weights / xp.sum(weights, axis=1, keepdims=True))
    sums, factors = fused(_sums_of_means, fields), converted(E, label_fields.dtype, xp)
    by_fields, by_label_fields = zip(*(
        sums(fields, label_fields[some, :], factors[:, some])
        for some in _classes(fields, label_fields)
    ), strict=True)  # fmt: skip
    return sum(by_fields), log_weights, concatenated(by_label_fields), xp.sum(E, axis=0)


def _classes(fields, of_classes):
    """Slices of the classes that are worked on at once."""
    size = max(1, MOST_NUMBERS // max(1, fields.shape[0] * fields.shape[1]))
    return list(gen_batches(of_classes.shape[0], size))


def _softplus_sums(fields, label_fields, bias, xp):
    y = fields[:, None, :] + label_fields
    softplus = at_least(y, 0.0, xp) + xp.log1p(xp.exp(-xp.abs(y)))
    return xp.sum(softplus, axis=2, dtype=bias.dtype) + bias


def _sums_of_means(fields, label_fields, factors, xp):
    parts = factors[:, :, None] * expit(fields[:, None, :] + label_fields, xp)
    return xp.sum(parts, axis=1), xp.sum(parts, axis=0)
