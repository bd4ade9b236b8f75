"""Reductions: `fe.sum(a[:], axis=1)` as a whole-tensor expression, with a loop for each element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, Final

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault, literal
from ferrule.language.faces import reductions as faces
from ferrule.language.ir import ops
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.values import Number, TensorView, Vector, Whole
from ferrule.specs import Boolean, Dim, DType, Float32, Int64, Uint64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A reduction: its op, whether it accumulates in a wider dtype, and its initial value.

    `is_of_some`: it is undefined for no elements, so at least one is required.
    """

    name: str
    op: ops.BinaryOp
    widens: bool
    begins: Callable[[DType], bool | int | float]
    is_of_some: bool = False

    def dtype(self, dtype: DType) -> DType:
        """The dtype of the result."""
        if not self.widens or dtype.kind == "complex":
            return dtype
        if dtype.kind == "float":
            return dtype if dtype.bits >= 32 else Float32
        return Uint64 if dtype.kind == "uint" else Int64

    def operation(self, dtype: DType) -> ops.BinaryOp:
        """The operation on numbers of a dtype; the largest of bools is whether any is true."""
        return _OF_BOOLS.get(self.op, self.op) if dtype is Boolean else self.op


_OF_BOOLS: Final[Mapping[ops.BinaryOp, ops.BinaryOp]] = MappingProxyType(
    {"max": "or", "min": "and"}
)


def _lowest(dtype: DType) -> bool | int | float:
    if dtype.is_narrow:
        return _ends(dtype)[0]
    if dtype.kind == "float":
        return float("-inf")
    return False if dtype is Boolean else dtype.range[0]


def _highest(dtype: DType) -> bool | int | float:
    if dtype.is_narrow:
        return _ends(dtype)[1]
    if dtype.kind == "float":
        return float("inf")
    return True if dtype is Boolean else dtype.range[1]


def _ends(dtype: DType) -> tuple[float, float]:
    """The infinities of a narrow float, or the smallest and largest number of one without."""
    from ferrule.specs.narrow import format_of

    form = format_of(dtype)
    if form.infinity is None:
        return form.minimum, form.maximum
    return float("-inf"), float("inf")


def _reduction(reduction: _Reduction) -> Intrinsic:
    name = reduction.name

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        value, axis, keepdims = bound(low, "a axis= keepdims=", args, kwargs, node)
        if isinstance(value, Vector):
            return _of_vector(low, reduction, value, axis, node)
        if not isinstance(value, Whole) and not (isinstance(value, TensorView) and value.whole):
            what, of_numbers = describe(value), f"of numbers, write {name}((x, y))"
            whole = (
                f"write the whole of it, {value.name}[:]" if isinstance(value, TensorView) else None
            )
            low.fail(
                node,
                f"fe.{name} takes a whole tensor or a vector, but got {what}",
                expected=f"fe.{name}(a[:], axis=1)",
                hint=whole or (None if name == "prod" else of_numbers),
            )
        if not reduction.widens:
            _require_ordered(low, name, value, node)
        source = whole_tensors.lift(low, (value,), node, lambda x: _operand(low, x, node))
        axes = _axes(low, name, axis, len(source.shape), node)
        if not isinstance(keepdims, (bool, type(None))):
            low.fail(node, f"fe.{name}: keepdims is {describe(keepdims)}, not a bool")
        if reduction.is_of_some:
            _require_some(low, name, source, axes, node)
        return _of_whole(low, reduction, source, axes, bool(keepdims))

    return emit


def _operand(low: Lowering, value: Any, node: ast.AST) -> Any:
    return value if coercion.is_complex(value) else coercion.operand(low, value, node)


def _require_ordered(low: Lowering, name: str, value: Any, node: ast.AST) -> None:
    dtype = value.type.dtype if isinstance(value, TensorView) else value.dtype
    if dtype.kind == "complex":
        low.fail(
            node,
            f"fe.{name} of complex numbers, which have no order",
            expected="integers or floats",
            hint=f"of their sizes: fe.{name}(abs(z))",
        )


def _axes(low: Lowering, name: str, axis: Any, rank: int, node: ast.AST) -> tuple[int, ...]:
    """The reduced axes, in order; all for None."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    if not all(type(each) is int and -rank <= each < rank for each in given):
        low.fail(
            node,
            f"fe.{name}: the axis is {describe(axis)}",
            expected=f"an int known at compile time, from {-rank} to {rank - 1}, or a tuple of "
            f"them",
            hint=None if name in ("sum", "prod") else f"of numbers, {name}(x, y)",
        )
    axes = sorted({each % rank for each in given})
    if len(axes) != len(given):
        low.fail(node, f"fe.{name}: an axis of {axis} is given twice", expected="each axis once")
    return tuple(axes)


def _require_some(
    low: Lowering, name: str, source: Whole, axes: tuple[int, ...], node: ast.AST
) -> None:
    """Ends the call if a reduced axis is empty, as in NumPy."""
    build, shape = low.builder, source.shape
    if all(isinstance(size, int) and size > 0 for size in map(shape.__getitem__, axes)):
        return
    zero = build.constant(Int64, 0)
    sizes = [build.size(Int64, dim) for dim in shape]
    some = [build.compare("ne", sizes[axis], zero) for axis in axes]
    shown = sizes if len(sizes) <= MAX_FAULT_VALUES else []
    fields = ", ".join("{}" for _ in shown) + ("," if len(shown) == 1 else "")
    told = f"{literal(source.name)} has the shape ({fields})" if shown else literal(source.name)
    fault = Fault("ValueError", f"fe.{name} of no elements: {told}", low.location(node))
    build.check(reduce(partial(build.binary, "and"), some), fault, *shown)


def _of_vector(
    low: Lowering, reduction: _Reduction, vector: Vector, axis: Any, node: ast.AST
) -> Any:
    if axis is not None:
        low.fail(
            node,
            f"fe.{reduction.name} of a vector takes no axis",
            hint="v.reduce(fe.ReductionOp.ADD, 0, reduction_profile=(None, 1)) keeps modes",
        )
    dtype = reduction.dtype(vector.dtype)
    result, *rest = (scalars.in_dtype(low, each, dtype, node) for each in vector.items)
    for each in rest:
        result = scalars.arithmetic(low, reduction.op, result, each, node)
    return result


def _of_whole(
    low: Lowering, reduction: _Reduction, source: Whole, axes: tuple[int, ...], keepdims: bool
) -> Whole:
    kept = [axis for axis in range(len(source.shape)) if axis not in axes]
    dtype = reduction.dtype(source.dtype)
    settings = low.builder.later()

    def element(coordinates: tuple[ops.Value, ...]) -> Any:
        found = iter(coordinates)
        given = coordinates if keepdims else [next(found) for _ in kept]
        indices = dict(enumerate(given)) if keepdims else dict(zip(kept, given, strict=True))
        with low.in_elements(), settings():
            begin = _begin(low, reduction, dtype)
            return _loops(low, reduction, source, list(axes), indices, begin)

    shape: tuple[Dim, ...] = tuple(
        1 if axis in axes else size
        for axis, size in enumerate(source.shape)
        if keepdims or axis in kept
    )
    return Whole(shape, source.name, dtype, element, source.since, reduces=True)


def _begin(low: Lowering, reduction: _Reduction, dtype: DType) -> Any:
    if dtype.kind == "complex":
        return scalars.in_dtype(low, reduction.begins(dtype), dtype, ast.Pass())
    return Number(low.builder.constant(dtype, reduction.begins(dtype)))


def _loops(
    low: Lowering,
    reduction: _Reduction,
    source: Whole,
    axes: list[int],
    indices: dict[int, ops.Value],
    so_far: Any,
) -> Any:
    """Combines the result so far with the elements at these indices, with a loop for each axis."""
    build = low.builder
    if not axes:
        found = source.element(tuple(indices[axis] for axis in sorted(indices)))
        dtype = reduction.dtype(source.dtype)
        if dtype.kind == "complex":
            return scalars.arithmetic(low, reduction.op, so_far, found, ast.Pass())
        converted = coercion.convert(low, found, dtype)
        return Number(build.binary(reduction.operation(dtype), so_far.value, converted.value))
    axis, *rest = axes
    first, step = build.constant(Int64, 0), build.constant(Int64, 1)
    end = build.size(Int64, source.shape[axis])
    index = ops.Value(Int64, "k")
    begins = _values(so_far)
    inside, results = (
        tuple(ops.Value(each.type, reduction.name) for each in begins) for _ in range(2)
    )
    with build.region() as body:
        within = structures.mapped(_next(inside), so_far)
        following = _loops(low, reduction, source, rest, {**indices, axis: index}, within)
    region = body.freeze(*_values(following))
    build.append(ops.For(results, index, first, end, step, begins, inside, region))
    return structures.mapped(_next(results), so_far)


def _values(number: Any) -> tuple[ops.Value, ...]:
    """The values of a number: two of a complex one."""
    return tuple(each.value for _, each in structures.leaves(number))


def _next(values: tuple[ops.Value, ...]) -> Callable[[Any], Number]:
    rest = iter(values)
    return lambda _: Number(next(rest))


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.sum: _reduction(_Reduction("sum", "add", True, lambda _: 0)),
    faces.prod: _reduction(_Reduction("prod", "mul", True, lambda _: 1)),
    faces.max: _reduction(_Reduction("max", "max", False, _lowest, is_of_some=True)),
    faces.min: _reduction(_Reduction("min", "min", False, _highest, is_of_some=True)),
}
"""The emitters of the functions of `ferrule.language.faces.reductions`."""
