"""`fe.full` and similar functions: vectors in a kernel, new tensors in a host function."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import vectors as faces
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout, flatten
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.numbers.sizes import as_dims, size_number
from ferrule.language.lowering.tensors import access, allocation, vectors
from ferrule.language.values import Number, TensorView, Vector, Whole
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.expr import is_dim


def _full(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.full(shape, fill_value, dtype)`."""
    given, value, dtype = bound(low, "shape fill_value dtype", args, kwargs, node)
    if low.kind == "host" and not isinstance(given, Layout):
        return _filled(low, given, value, dtype, node)
    shape = as_dims(low, given, node)
    shape = shape.shape if isinstance(shape, Layout) else shape
    if not all(map(is_dim, flatten((shape,)))):
        low.fail(node, f"full: the shape is {describe(given)}", expected="(m, n)")
    return _filled(low, shape, value, dtype, node)


def _full_like(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.full_like(a, fill_value, dtype=None)`."""
    like, value, dtype = bound(low, "a fill_value dtype=", args, kwargs, node)
    shape: Any
    match like:
        case Vector():
            kind = like.dtype if dtype is None else dtype
            return _vector(low, like.shape, value, kind, node)
        case TensorView():
            shape, own = like.layout.shape, like.type.dtype
        case Whole():
            shape, own = like.shape, like.dtype
        case _:
            what = describe(like)
            low.fail(node, f"full_like got {what}", expected="a tensor or a vector")
    return _filled(low, shape, value, own if dtype is None else dtype, node)


def _like(number: int) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        like, dtype = bound(low, "a dtype=", args, kwargs, node)
        return _full_like(low, [like, number, dtype], {}, node)

    return emit


def _filled(low: Lowering, shape: Any, value: Any, dtype: Any, node: ast.Call) -> Any:
    if low.kind == "kernel":
        return _vector(low, shape, value, dtype, node)
    dims = flatten((tuple(shape) if isinstance(shape, list) else shape,))
    sizes = tuple(size_number(low, dim) if is_dim(dim) else dim for dim in dims)
    return allocation.filled(low, sizes, _number(low, value, dtype, node), node)


def _vector(low: Lowering, shape: Any, value: Any, dtype: Any, node: ast.Call) -> Vector:
    number = _number(low, value, dtype, node)
    return vectors.filled(low, shape, number, ast.unparse(node), node)


def _number(low: Lowering, value: Any, dtype: Any, node: ast.Call) -> Any:
    """The value of all elements, in the dtype of the result."""
    kind = scalars.at_compile_time(low, node, lambda: as_dtype(dtype))
    stored = access.fitted(low, kind, value, ast.unparse(node), node)
    return Number(stored) if isinstance(stored, ops.Value) else stored


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.full: _full,
    faces.full_like: _full_like,
    faces.zeros_like: _like(0),
    faces.ones_like: _like(1),
}
"""The emitters of these functions."""
