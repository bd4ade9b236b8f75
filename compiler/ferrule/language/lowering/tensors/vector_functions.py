"""Functions of vectors: `v.reduce`, `fe.where`, `fe.any_`, `fe.all_`, `fe.autovec_copy`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces import vectors as faces
from ferrule.language.faces.vectors import ReductionOp
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import scalars, typed_constants
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.lowering.tensors.vectors import indices, load, shaped, store
from ferrule.language.values import (
    ComplexNumber,
    Number,
    SwizzledView,
    TensorView,
    Vector,
    is_run_time,
)
from ferrule.specs import Boolean


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
        truth = scalars.as_number(low, scalars.truth(low, condition, node), node, Boolean)
        if scalars.is_complex(x) or scalars.is_complex(y):
            from ferrule.language.lowering.numbers import complexes

            return complexes.select(low, truth.value, x, y, node)
        lhs, rhs = scalars.common(low, x, y, "where", node)
        return Number(low.builder.select(truth.value, lhs.value, rhs.value))

    if scalars.are_typed_numbers(*given):
        return typed_constants.folded(low, lambda: one(*given))
    if not is_run_time(given):
        return scalars.at_compile_time(low, node, lambda: given[1] if given[0] else given[2])
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


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.where: _where,
    faces.any_: _truth_of("any_", "or"),
    faces.all_: _truth_of("all_", "and"),
    faces.autovec_copy: _autovec_copy,
}
"""The emitters of the functions of vectors."""
