"""Functions of vectors: `v.reduce`, `fe.where`, `fe.any_`, `fe.full`, `fe.autovec_copy`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces import vectors as faces
from ferrule.language.faces.tensors import empty_like
from ferrule.language.faces.vectors import ReductionOp
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout, flatten
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.numbers.sizes import as_dims, size_number
from ferrule.language.lowering.tensors import access, allocation, vectors, whole_tensors
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.lowering.tensors.vectors import indices, load, shaped, store
from ferrule.language.values import (
    ComplexNumber,
    Number,
    SwizzledView,
    TensorView,
    Vector,
    Whole,
    is_run_time,
)
from ferrule.specs import Boolean
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.expr import is_dim


def _autovec_copy(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.autovec_copy(src, dst)`."""
    source, target = bound(low, "src dst", args, kwargs, node)
    if any(isinstance(each, SwizzledView) for each in (source, target)):
        from ferrule.language.lowering.tensors import moves

        moves.autovec(low, source, target, None, node)
        return
    for each in (source, target):
        if not isinstance(each, TensorView):
            low.fail(node, f"autovec_copy takes two tensors, but got {describe(each)}")
    if source.type.dtype is not target.type.dtype:
        low.fail(
            node,
            f"autovec_copy copies {source.type.dtype.name} to {target.name}, whose elements are "
            f"{target.type.dtype.name}",
            expected="one dtype",
            hint=f"convert it, {target.name}.store({source.name}.load().to({target.name}.dtype))",
        )
    store(low, target, load(low, source, [], {}, node), node)


def reduce(
    vector: Vector, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`v.reduce(op, init_val, reduction_profile=0)`: one number, in order, starting with `init`.

    A profile such as (None, 1) keeps the modes with None and reduces the others.
    """
    op, initial, profile = bound(low, "op init_val reduction_profile=", args, kwargs, node)
    if not isinstance(op, ReductionOp):
        known = ", ".join(f"fe.ReductionOp.{each.name}" for each in ReductionOp)
        low.fail(node, f"reduce got {describe(op)}", expected=f"one of {known}")
    whole = layouts.make_layout(vector.shape)
    if isinstance(profile, tuple):
        with refusals(low, node):
            kept, reduced = layouts.slice_(whole, profile), layouts.dice(whole, profile)
    else:
        kept, reduced = Layout((), ()), whole
    results = [
        _folded(low, op, initial, [vector.items[first + step] for step in indices(reduced)], node)
        for first in indices(kept)
    ]
    return shaped(kept.shape, results)


def _folded(
    low: Lowering, op: ReductionOp, initial: Any, items: list[Number], node: ast.AST
) -> Number:
    result = initial
    for each in items:
        result = scalars.arithmetic(low, op.value, result, each, node)
    return result  # type: ignore[no-any-return]


def _truth_of(name: str, op: ops.BinaryOp) -> Intrinsic:
    """`fe.any_(v)` or `fe.all_(v)`: a Boolean."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        (vector,) = bound(low, "x", args, kwargs, node)
        if not isinstance(vector, Vector):
            low.fail(node, f"{name} takes a vector, but got {describe(vector)}")
        result, *rest = (scalars.truth(low, each, node) for each in vector.items)
        for each in rest:
            result = Number(low.builder.binary(op, result.value, each.value))
        return result

    return emit


def _where(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.where(cond, x, y)`, element by element."""
    given = tuple(bound(low, "cond x y", args, kwargs, node))

    def one(condition: Any, x: Any, y: Any) -> Any:
        truth = coercion.as_number(low, scalars.truth(low, condition, node), node, Boolean)
        if coercion.is_complex(x) or coercion.is_complex(y):
            from ferrule.language.lowering.numbers import complexes

            return complexes.select(low, truth.value, x, y, node)
        lhs, rhs = scalars.common(low, x, y, "where", node)
        return Number(low.builder.select(truth.value, lhs.value, rhs.value))

    if scalars.are_typed_numbers(*given):
        return typed_constants.folded(low, lambda: one(*given))
    if not is_run_time(given):
        return coercion.at_compile_time(low, node, lambda: given[1] if given[0] else given[2])
    if any(_has_items(each) for each in given[1:]):
        return _where_of_several(low, given, node, one)
    return whole_tensors.lift(low, given, node, one)


def _has_items(value: Any) -> bool:
    return not isinstance(value, ComplexNumber) and structures.parts(value) is not None


def _where_of_several(
    low: Lowering, given: tuple[Any, ...], node: ast.AST, one: Callable[..., Number]
) -> Any:
    """`fe.where` of vectors, and of tuples or dataclasses of numbers, field by field."""
    condition, x, y = given
    if isinstance(x, Vector) or isinstance(y, Vector):
        return whole_tensors.lift(low, given, node, one)
    if not structures.same_form(x, y):
        low.fail(
            node,
            f"where chooses between {describe(x)} and {describe(y)}",
            expected="two values of one kind, with as many numbers",
        )
    return structures.mapped(lambda a, b: one(condition, a, b), x, y)


# ---- `fe.full` and similar functions: vectors in a kernel, new tensors in a host function ----


def _makes_vectors(low: Lowering) -> bool:
    """Also host functions that follow CuTe DSL make vectors."""
    return low.kind == "kernel" or low.is_as_cute


def _full(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.full(shape, fill_value, dtype)`."""
    given, value, dtype = bound(low, "shape fill_value dtype", args, kwargs, node)
    if not _makes_vectors(low) and not isinstance(given, Layout):
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


def _empty_like(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.empty_like(a)`: a tensor; in a kernel a vector, of zeros as each element has a value."""
    if _makes_vectors(low):
        return _like(0)(low, args, kwargs, node)
    return allocation.empty_like(low, args, kwargs, node)


def _filled(low: Lowering, shape: Any, value: Any, dtype: Any, node: ast.Call) -> Any:
    if _makes_vectors(low):
        return _vector(low, shape, value, dtype, node)
    dims = flatten((tuple(shape) if isinstance(shape, list) else shape,))
    sizes = tuple(size_number(low, dim) if is_dim(dim) else dim for dim in dims)
    return allocation.filled(low, sizes, _number(low, value, dtype, node), node)


def _vector(low: Lowering, shape: Any, value: Any, dtype: Any, node: ast.Call) -> Vector:
    number = _number(low, value, dtype, node)
    return vectors.filled(low, shape, number, ast.unparse(node), node)


def _number(low: Lowering, value: Any, dtype: Any, node: ast.Call) -> Any:
    """The value of all elements, in the dtype of the result."""
    kind = coercion.at_compile_time(low, node, lambda: as_dtype(dtype))
    stored = access.fitted(low, kind, value, ast.unparse(node), node)
    return Number(stored) if isinstance(stored, ops.Value) else stored


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.where: _where,
    faces.any_: _truth_of("any_", "or"),
    faces.all_: _truth_of("all_", "and"),
    faces.autovec_copy: _autovec_copy,
    faces.full: _full,
    faces.full_like: _full_like,
    faces.zeros_like: _like(0),
    empty_like: _empty_like,
    faces.ones_like: _like(1),
}
"""The emitters of the functions of vectors, and of tensors that are filled."""
