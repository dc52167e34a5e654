"""Fits that differ by rounding alone: how far apart they may be, and the rounding of others."""

import ast
import builtins
import functools
import gc
import math
import operator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType

import joblib
import numpy as np

import sklearn_boltz

# Relative to a sum over rows, what solvers take for its rounding.
ROUNDING = 1e-13


def within(tol, nats=0.0):
    """How far apart ln p of a row is in fits that end where they gain less than `tol` nats.

    An objective is flat at its maximum: at a distance δ it lacks ½ δᵀHδ, which for all rows is
    about half the square of what ln p of each is off. Less than the rounding of the objective, a
    sum of `nats`, it cannot gain. Newton's method knows more: its last step squares the distance.
    """
    return math.sqrt(max(tol, ROUNDING * nats))


# Another processor: its BLAS adds in another order, and its exp and log have other last bits.

FUNCTIONS = {
    "exp", "expit", "expm1", "log", "log1p", "log_softmax", "logaddexp", "logsumexp", "softmax",
    "tanh",
}  # fmt: skip
PRODUCTS = {"dot", "matmul", "vdot"}
ORDER = 0  # of the sums, a seed


@functools.cache
def _places(order, n):
    return np.random.default_rng([order, n]).permutation(n)


def _is_real(*arrays):
    return all(type(a) is np.ndarray and a.ndim and a.dtype.kind == "f" for a in arrays)


def _product(find, a, b, **out):
    """A product of arrays, with the terms of each sum in another order."""
    if not _is_real(a, b):
        return find(a, b, **out)
    if find is np.vdot:
        a, b = a.ravel(), b.ravel()
    places = _places(ORDER, a.shape[-1])
    return find(a[..., places], b[places] if b.ndim == 1 else b[..., places, :], **out)


def _function(find, x, *more, **kept):
    """A last bit more where some bit of `x` is 1, which none of the last is in a round number."""
    result = find(x, *more, **kept)
    if _is_real(x, result) and x.dtype == result.dtype and x.shape == result.shape:
        bits = x.view(f"u{x.itemsize}") >> ORDER % 8 & 1
        np.multiply(result, 1 + np.finfo(x.dtype).eps, out=result, where=bits == 1)
    return result


class _OnAnother(ast.NodeTransformer):
    """The same code, where products and functions go through those above."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        matmul = ast.Name("_rounding_matmul", ast.Load())
        call = ast.Call(
            ast.Name("_rounding_product", ast.Load()), [matmul, node.left, node.right], []
        )
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        n_arguments = 2 if name in PRODUCTS else 1 if name in FUNCTIONS else math.inf
        if len(node.args) < n_arguments:
            return node
        kind = "product" if name in PRODUCTS else "function"
        call = ast.Call(
            ast.Name(f"_rounding_{kind}", ast.Load()), [node.func, *node.args], node.keywords
        )
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _codes(code):
    """A code object, and all within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.cache
def _others():
    """The code of all functions of the package, and what each becomes."""
    found = {}
    for path in Path(sklearn_boltz.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = compile(tree, path, "exec", dont_inherit=True)
        other = compile(_OnAnother().visit(tree), path, "exec", dont_inherit=True)
        found.update(zip(_codes(own), _codes(other), strict=True))
    return found


@contextmanager
def another_processor(order):
    """Whatever the package computes meanwhile is rounded as on another processor, one of many.

    Only in this process: jobs run in threads.
    """
    global ORDER
    names = {"product": _product, "function": _function, "matmul": operator.matmul}
    vars(builtins).update({f"_rounding_{name}": value for name, value in names.items()})
    gc.unfreeze()  # what is frozen is not among the objects
    functions = [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__ in _others()]
    before, codes = ORDER, [f.__code__ for f in functions]
    ORDER = order
    for function in functions:
        function.__code__ = _others()[function.__code__]
    try:
        with joblib.parallel_config("threading"):
            yield
    finally:
        ORDER = before
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code
