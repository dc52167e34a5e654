"""A deep Boltzmann machine: layers of units in a row, each joined to the next by weights.

Its even layers, 0 (the visible one), 2, ..., and its odd ones are two sides like those of an
RBM: the units of a side are independent given the other side. So all that is written for the
two sides of a `Model` (mean field, Gibbs sampling, annealing, enumeration) serves a deep model as
it is. New are the weights between the sides, which are mostly zero, sides of several unit types,
and what follows from a row of data: unlike in an RBM, the hidden layers are dependent given it.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from sklearn_boltz.numerics._arrays import as_type, concatenated, numpy_dtype, zeros
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.model._units import parameter_names, published, with_published
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._stacked import Stacked

# What public attributes call the layers of an RBM, of which a classifier has the third one, too.
LAYERS = "visible", "hidden", "classes"


class Layered(NamedTuple):
    """p(x_0, ..., x_L) ∝ exp(Σ_l x_l · W_l x_{l−1}) Π_l w_l(x_l); for L = 1 an RBM.

    Attributes
    ----------
    weights : list of ndarray of shape (n_units of layer l, n_units of layer l - 1)
    layers : list of UnitType
        One more than weights; the first is the visible layer.
    """

    weights: list
    layers: list

    @property
    def dtype(self):
        """Type that the model computes in."""
        return self.weights[0].dtype

    @property
    def columns(self):
        """Columns of each layer in the arrays of its side: a list of slices."""
        columns, ends = [], [0, 0]
        for k, units in enumerate(self.layers):
            columns.append(slice(ends[k % 2], ends[k % 2] + len(units)))
            ends[k % 2] += len(units)
        return columns

    @classmethod
    def of(cls, model):
        """Layers of what a learner trains: a `Model`, a `ClassModel` or layers."""
        if isinstance(model, Model):
            return cls([model.weights], [*model[1:]])
        return model if isinstance(model, cls) else model.layered()

    @classmethod
    def read(cls, attributes, kinds):
        """Layers from public attributes, as `exposed` has them, and units of their types."""
        components = attributes["components_"]
        deep = isinstance(components, (list, tuple))
        weights = list(components) if deep else [components]
        if not deep:
            weights += [attributes[f"components_{name}_"].T for name in LAYERS[2 : len(kinds)]]
        dtype, layers = numpy_dtype(weights[0]), []
        for k, kind in enumerate(kinds):
            layer = LAYERS[min(k, 1) if deep else k]
            values = {name: attributes[f"{name}_{layer}_"] for name in parameter_names(kind)}
            if deep and k:
                values = {name: of_layers[k - 1] for name, of_layers in values.items()}
            layers.append(with_published(kind, values, dtype))
        return cls([as_type(W, dtype) for W in weights], layers)

    def exposed(self, deep):
        """The public attributes that hold the parameters; of a deep machine, in lists."""
        (visible, *hidden), further = self.layers, zip(LAYERS[2:], self.weights[1:], strict=False)
        found = {f"{name}_visible_": value for name, value in published(visible).items()}
        if not deep:
            for layer, units in zip(LAYERS[1:], hidden, strict=False):
                found |= {f"{name}_{layer}_": value for name, value in published(units).items()}
            found |= {f"components_{layer}_": W.T for layer, W in further}
            return {"components_": self.weights[0], **found}
        parameters = [units.parameters() for units in hidden]
        for name in {name for of_layer in parameters for name in of_layer}:
            found[f"{name}_hidden_"] = [of_layer.get(name) for of_layer in parameters]
        return {"components_": list(self.weights), **found}

    def moved(self, convert):
        """The layers with their arrays elsewhere: `convert` is for each of them."""
        return Layered(list(map(convert, self.weights)), [u.moved(convert) for u in self.layers])

    def astype(self, dtype):
        """The layers in another type of float."""
        weights = [as_type(W, dtype) for W in self.weights]
        return Layered(weights, [units.astype(dtype) for units in self.layers])

    def parameters(self):
        """All arrays that the distribution depends on, not copied."""
        units = [value for layer in self.layers for value in layer.parameters().values()]
        return [*self.weights, *units]

    def sides(self):
        """Return the distribution as a `Model`, whose visible units are the even layers."""
        if len(self.weights) == 1:
            return Model(self.weights[0], *self.layers)
        columns = self.columns
        blocks = [
            # The rows are those of the odd side.
            (columns[k + 1], columns[k], W) if k % 2 == 0 else (columns[k], columns[k + 1], W.T)
            for k, W in enumerate(self.weights)
        ]
        even, odd = stacked(self.layers[::2]), stacked(self.layers[1::2])
        return Model(BlockWeights(blocks, (len(odd), len(even))), even, odd)

    def hidden_layers(self):
        """The hidden layers by themselves, the first of them in the visible place."""
        return Layered(self.weights[1:], self.layers[1:])

    def split(self, even, odd):
        """Cut arrays of the two sides into arrays of the layers."""
        return [(even, odd)[k % 2][:, columns] for k, columns in enumerate(self.columns)]

    def split_tilts(self, even, odd):
        """Cut pairs (B, A) of the two sides into those of the layers; A may be 0.0."""
        B = self.split(even[0], odd[0])
        if np.ndim(even[1]) == 0:
            return [(field, 0.0) for field in B]
        return list(zip(B, self.split(even[1], odd[1]), strict=True))

    def padded(self, rows, rest=0):
        """Rows of the visible layer as rows of its side; `rest` fills the other even layers."""
        n_rest = sum(map(len, self.layers[::2])) - rows.shape[1]
        if n_rest == 0:
            return rows
        return concatenated([rows, zeros(rows, (rows.shape[0], n_rest)) + rest], axis=1)


class BlockWeights(NDArrayOperatorsMixin):
    """A matrix of weights between two sides of layers, zero except for some blocks.

    To NumPy it looks like an array: it can be multiplied from the left, transposed and squared,
    block by block; elsewhere it becomes an ordinary array. The work is that of the blocks.

    Parameters
    ----------
    blocks : list of (slice, slice, ndarray)
        Rows, columns and weights; each row and each column is in one block at least.
    shape : tuple of int
    """

    ndim = 2

    def __init__(self, blocks, shape):
        self.blocks, self.shape = blocks, shape

    @property
    def dtype(self):
        """Type of the weights."""
        return self.blocks[0][2].dtype

    @property
    def size(self):
        """Number of weights."""
        return sum(W.size for _, _, W in self.blocks)

    @property
    def T(self):
        """The transposed matrix; nothing is copied."""
        return BlockWeights([(j, i, W.T) for i, j, W in self.blocks], self.shape[::-1])

    def __array__(self, dtype=None, copy=None):
        whole = np.zeros(self.shape, self.dtype if dtype is None else dtype)
        for i, j, W in self.blocks:
            whole[i, j] = W
        return whole

    def __array_ufunc__(self, ufunc, method, *inputs, out=(None,), **kwargs):
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc is np.matmul and not isinstance(inputs[0], BlockWeights):
            return self._product(inputs[0], out[0])
        if ufunc not in (np.multiply, np.negative):  # these keep a zero
            return NotImplemented

        def block(a, k):
            return a.blocks[k][2] if isinstance(a, BlockWeights) else a

        blocks = [
            (i, j, ufunc(*(block(a, k) for a in inputs), out=block(out[0], k)))
            for k, (i, j, _) in enumerate(self.blocks)
        ]
        return BlockWeights(blocks, self.shape)

    def _product(self, X, out):
        """X @ self."""
        if out is None:
            out = np.empty((len(X), self.shape[1]), np.result_type(X, self.dtype))
        begun = set()
        for i, j, W in self.blocks:
            if j.start in begun:
                out[:, j] += X[:, i] @ W
            else:
                np.matmul(X[:, i], W, out=out[:, j])
                begun.add(j.start)
        return out


def stacked(layers):
    """Layers side by side as one: of binary units again binary ones, for which kernels exist."""
    if len(layers) == 1:
        return layers[0]
    if all(units.is_binary for units in layers):
        return Bernoulli(np.concatenate([units.intercept for units in layers]))
    return Stacked([part for units in layers for part, _ in units.parts()])
