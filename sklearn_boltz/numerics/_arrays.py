"""Arrays that are not NumPy's: which library made them, where they lie, and what these lack.

NumPy arrays go to the compiled kernels. All others, PyTorch tensors, CuPy arrays and whatever has
the array API, are computed with where they lie, by the functions of their own library.
"""

import warnings
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
from scipy import special
from scipy.sparse import issparse
from sklearn.utils._array_api import get_namespace_and_device


def is_foreign(array):
    """Whether an array is one of another library than NumPy."""
    return not isinstance(array, np.ndarray) and hasattr(array, "__dlpack_device__")


def dispatched(X):
    """Whether rows are arrays that scikit-learn is configured to compute with where they lie."""
    if isinstance(X, np.ndarray) or issparse(X) or not is_foreign(X):
        return False
    return bool(get_namespace_and_device(X)[1])


# By types of arrays: to look takes as long as to launch a kernel.
_NAMESPACES = {}


@cache
def _compat():
    """The package that finds the namespace of an array: scikit-learn's copy, or its own."""
    try:
        from sklearn.externals import array_api_compat
    except ImportError:  # before scikit-learn 1.7
        import array_api_compat
    return array_api_compat


def namespace_of(array):
    """The functions of the library of an array, as the array API has them."""
    if isinstance(array, np.ndarray):
        return np
    kind = type(array)
    if kind not in _NAMESPACES:
        _NAMESPACES[kind] = _compat().array_namespace(array)
    return _NAMESPACES[kind]


def device_of(array):
    """Where an array of another library lies."""
    return _compat().device(array)


def place_of(array):
    """In words, which library has an array and where it lies."""
    if not is_foreign(array):
        return "NumPy"
    name = namespace_of(array).__name__.removeprefix("sklearn.externals.")
    return f"{name.removeprefix('array_api_compat.')} on {device_of(array)}"


def as_numpy(array):
    """An array, wherever it lies, as one of NumPy."""
    if not is_foreign(array):
        return np.asarray(array)
    if hasattr(array, "detach"):  # PyTorch
        return without_gradient(array).cpu().numpy()
    if hasattr(array, "get"):  # CuPy
        return array.get()
    return np.from_dlpack(array)


def without_gradient(array):
    """An array of which PyTorch follows no gradient: steps are made in place."""
    return array.detach() if hasattr(array, "detach") else array


def _on_processor(array):
    """Whether an array of PyTorch is in the memory of the processor."""
    return getattr(getattr(array, "device", None), "type", None) == "cpu"


def host_view(array):
    """A PyTorch array in the memory of the processor as one of NumPy, which shares it, or None.

    A compiled kernel can work on it in place.
    """
    return array.numpy() if _on_processor(array) and array.is_contiguous() else None


def for_kernels(array):
    """An array, copied if only the order of its numbers in memory is not that of kernels."""
    return array.contiguous() if _on_processor(array) else array


def like(reference, array):
    """An array in the library of another one, where that lies."""
    if not is_foreign(reference):
        return as_numpy(array)
    xp, device = namespace_of(reference), device_of(reference)
    return xp.asarray(array, device=device)


def zeros(reference, shape):
    """Zeros of the type of an array, where it lies."""
    if not is_foreign(reference):
        return np.zeros(shape, reference.dtype)
    xp = namespace_of(reference)
    return xp.zeros(shape, dtype=reference.dtype, device=device_of(reference))


def empty(reference, shape):
    """An array of the type of another one and where that lies, to be filled."""
    if not is_foreign(reference):
        return np.empty(shape, reference.dtype)
    xp = namespace_of(reference)
    return xp.empty(shape, dtype=reference.dtype, device=device_of(reference))


def copied(array):
    """A copy, in the same place."""
    if not is_foreign(array):
        return np.array(array, order="C")
    return namespace_of(array).asarray(array, copy=True)


def numpy_dtype(array):
    """The type of an array of float32 or float64 by NumPy's name."""
    dtype = array.dtype
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rpartition(".")[-1])


def as_type(array, dtype):
    """An array in the type of that NumPy name."""
    if not is_foreign(array):
        return array.astype(dtype, copy=False)
    xp = namespace_of(array)
    return xp.astype(array, getattr(xp, np.dtype(dtype).name), copy=False)


def taken(array, numbers):
    """Some rows, given their numbers as NumPy has them."""
    if not is_foreign(array):
        return array[numbers]
    return namespace_of(array).take(array, like(array, numbers), axis=0)


def concatenated(arrays, axis=0):
    """Arrays one below the other, or side by side along another axis."""
    if not is_foreign(arrays[0]):
        return np.concatenate(arrays, axis=axis)
    return namespace_of(arrays[0]).concat(arrays, axis=axis)


def copied_as(array, dtype):
    """A copy in the type of that NumPy name, in the same place."""
    return array.astype(dtype) if not is_foreign(array) else copied(as_type(array, dtype))


def widest(array):
    """The widest type of float where an array lies: float64, but on Apple's GPUs."""
    xp = namespace_of(array)
    return xp.float32 if getattr(array, "is_mps", False) else xp.float64


def widened(array):
    """An array in that type."""
    if not is_foreign(array):
        return array.astype(np.float64, copy=False)
    return namespace_of(array).astype(array, widest(array), copy=False)


def all_finite(array):
    """Whether all numbers of an array are finite; of other libraries, this waits for them."""
    if not is_foreign(array):
        return np.isfinite(array).all()
    xp = namespace_of(array)
    return bool(xp.all(xp.isfinite(array)))


# Functions that the array API lacks.


def expit(x, xp=None):
    """1 / (1 + exp(−x))."""
    xp = xp or namespace_of(x)
    if hasattr(xp, "sigmoid"):  # PyTorch
        return xp.sigmoid(x)
    return 0.5 + 0.5 * xp.tanh(0.5 * x)


def at_least(x, least, xp):
    """The greater of each number of an array and another number."""
    return x.clamp(min=least) if hasattr(x, "clamp") else xp.clip(x, least)  # PyTorch, others


def converted(x, dtype, xp):
    """An array in another type, also where a library traces a function of arrays."""
    return x.astype(dtype) if hasattr(x, "astype") else xp.astype(x, dtype)


def logsumexp(x):
    """ln Σ exp(x) over the last axis of finite numbers."""
    if not is_foreign(x):
        return special.logsumexp(x, axis=-1)
    xp = namespace_of(x)
    greatest = xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - greatest), axis=-1)) + greatest[..., 0]


def cumulative_sum(x):
    """Sums of the numbers up to each, along the last axis."""
    if not is_foreign(x):
        return x.cumsum(axis=-1)
    return namespace_of(x).cumulative_sum(x, axis=-1)


def fused(function, reference):
    """A function of arrays, element by element, as one kernel where the library can make one.

    On CUDA devices, PyTorch compiles it when it is first called. Where that fails, for want of a
    compiler, its operations are made one after the other. The last argument of the function, the
    namespace `xp`, is that of the array `reference`, and not one of the result.
    """
    xp = namespace_of(reference)
    device = getattr(getattr(reference, "device", None), "type", None)
    return partial(_compiled(function) if device == "cuda" else function, xp=xp)


@cache
def _compiled(function):
    if not find_spec("triton"):
        return function
    import torch

    run = torch.compile(function, dynamic=True)

    def compiled(*arrays, xp):
        nonlocal run
        try:
            return run(*arrays, xp=xp)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            warnings.warn(
                f"PyTorch cannot compile for this device, which is then slower: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            run = function
            return function(*arrays, xp=xp)

    return compiled
