"""Swizzled tensors and pointers: made, taken apart, read and written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.layouts import ComposedLayout, Layout, Swizzle
from ferrule.language.layouts.composed import recast_swizzle
from ferrule.language.layouts.coordinates import has_free
from ferrule.language.lowering.arguments import method
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import named, size_numbers
from ferrule.language.lowering.numbers.tables import PYTHON_BINARY
from ferrule.language.lowering.tensors import access, coordinates, swizzles, vectors, views
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.lowering.tensors.swizzles import Indices, constant_index
from ferrule.language.values import (
    Begin,
    Number,
    PointerView,
    SwizzledPointer,
    SwizzledView,
    TensorView,
)
from ferrule.specs import DType, Int32, Int64

_NONE: Final = Swizzle(0, 0, 0)


def tensor(low: Lowering, pointer: Any, layout: Any, node: ast.AST) -> SwizzledView:
    """`make_tensor(pointer, layout)` where one of the two is swizzled."""
    if isinstance(pointer, (PointerView, SwizzledPointer)) and pointer.type.dtype.bits < 8:
        low.fail(node, f"a swizzled tensor of {pointer.type.dtype.name}: two elements share a byte")
    match pointer, layout:
        case PointerView(), ComposedLayout(inner, offset, outer):
            begin = Begin(offset) if isinstance(offset, int) else _sized(low, offset)
            return SwizzledView(pointer.value, inner, begin, views.with_rank(outer), pointer.name)
        case SwizzledPointer(root, inner, begin, name), Layout():
            return SwizzledView(root, inner, begin, views.with_rank(layout), name, of_pointer=True)
    low.fail(
        node,
        f"make_tensor of {describe(pointer)} and the composed layout {layout}: two swizzles",
        expected="a pointer or a layout with a swizzle, and the other one without",
    )


def _sized(low: Lowering, offset: Any) -> Begin:
    return Begin(0, Number(low.builder.size(Int64, offset), offset), -1)


def pointer(low: Lowering, of: PointerView, swizzle: Swizzle, node: ast.AST) -> SwizzledPointer:
    """`recast_ptr(p, swizzle)`: the swizzle is of addresses in bytes.

    The memory has to begin where the swizzle does, so that numbers of bytes from there on are
    swizzled as addresses are.
    """
    if of.type.align % swizzle.span:
        low.fail(
            node,
            f"{describe(of)} is aligned to {of.type.align} bytes, but {swizzle} repeats every "
            f"{swizzle.span}",
            expected=f"memory that is aligned to {swizzle.span} bytes",
            hint=f"fe.arch.alloc_smem(dtype, n, alignment={swizzle.span})",
        )
    with refusals(low, node):
        inner = recast_swizzle(swizzle, of.type.dtype.bits, 8)
    return SwizzledPointer(of.value, inner, Begin(), of.name)


def recast_pointer(
    low: Lowering, of: SwizzledPointer, dtype: DType, node: ast.AST
) -> SwizzledPointer:
    """The same address and swizzle, of elements of another dtype."""
    begin = of.begin
    old, new = of.type.dtype.itemsize, dtype.itemsize
    if begin.number is not None or begin.known * old % new:
        low.fail(
            node,
            f"{describe(of)} is recast to {dtype.name} where it does not begin its memory",
            hint="recast the pointer first, and move it then",
        )
    with refusals(low, node):
        inner = recast_swizzle(of.inner, dtype.bits, of.type.dtype.bits)
    root = views.pointer_to(low, of.root, dtype, of.type.align, of.name).value
    return SwizzledPointer(root, inner, Begin(begin.known * old // new), of.name)


def recast(low: Lowering, of: SwizzledView, dtype: DType, node: ast.AST) -> SwizzledView:
    """`a.recast(dtype)`: the same bytes, which the swizzle moves as before."""
    old = of.type.dtype
    if dtype.bits < 8:
        low.fail(node, f"a swizzled tensor of {dtype.name}: two elements share a byte")
    if of.begin.number is not None or of.begin.known * old.itemsize % dtype.itemsize:
        low.fail(
            node,
            f"{describe(of)} is recast to {dtype.name} where it is a part of another tensor",
            hint="recast the whole tensor, and take the part of that",
        )
    if of.type.align % dtype.itemsize:
        low.fail(
            node,
            f"{of.name} is aligned to {of.type.align} bytes, but {dtype.name} needs "
            f"{dtype.itemsize}",
            hint=f"fe.arch.alloc_smem(dtype, n, alignment={dtype.itemsize})",
        )
    with refusals(low, node):
        inner = of.inner if of.inner == _NONE else recast_swizzle(of.inner, dtype.bits, old.bits)
        layout = layouts.recast_layout(dtype.bits, old.bits, named(low, of.layout))
    root = views.pointer_to(low, of.root, dtype, of.type.align, of.name).value
    begin = Begin(of.begin.known * old.itemsize // dtype.itemsize)
    return replace(of, root=root, inner=inner, begin=begin, layout=views.with_rank(layout))


def counted(low: Lowering, of: TensorView) -> SwizzledView:
    """A tensor as memory with a beginning, without a swizzle: parts of it can be carried by loops,
    and share computed addresses."""
    root = views.iterator(low, of).value
    return SwizzledView(root, _NONE, Begin(), of.layout, of.name, of_pointer=True)


def plain_layout(low: Lowering, of: SwizzledView) -> Any:
    """`a.layout`: composed, or, of a swizzled pointer, the layout that it has."""
    if of.of_pointer:
        return named(low, of.layout)
    if of.begin.number is not None:
        return ComposedLayout(of.inner, 0, named(low, of.layout))
    return ComposedLayout(of.inner, of.begin.known, named(low, of.layout))


def iterator(low: Lowering, of: SwizzledView) -> Any:
    """`a.iterator`: the pointer with its swizzle, or that of the memory of a composed layout.

    A CompileError for a part with a composed layout: no pointer and layout would be that part.
    """
    if of.inner == _NONE:
        indices = Indices(low, of, low.here)
        memory_, known = indices.memory(indices.address(0))
        start = PointerView(memory_, f"{of.name}.iterator")
        return views.moved(low, start, known, low.here) if known else start
    if of.of_pointer:
        return SwizzledPointer(of.root, of.inner, of.begin, of.name)
    if of.begin != Begin():
        low.fail(
            low.here,
            f"{describe(of)} is a part of a tensor with a composed layout: no element of it is "
            "where its memory begins",
            hint="take the iterator of the whole tensor",
        )
    return views.pointer_to(low, of.root, of.type.dtype, of.type.align, f"{of.name}.iterator")


def relaid(of: SwizzledView, layout: Layout) -> SwizzledView:
    """The same elements in another layout."""
    return replace(of, layout=views.with_rank(layout))


def cut(
    low: Lowering,
    of: SwizzledView,
    coordinate: tuple[Any, ...],
    node: ast.AST,
    name: str | None = None,
) -> SwizzledView:
    """The part at a coordinate: the modes that it keeps with None, side by side."""
    begin = _begin(low, of, coordinate, node)
    kept = layouts.slice_(of.layout, coordinate)
    return replace(of, begin=begin, layout=kept, name=of.name if name is None else name)


def offset(
    low: Lowering, of: SwizzledView, coordinate: tuple[Any, ...], node: ast.AST
) -> SwizzledView:
    """The tensor with its layout, with the element at the coordinate as its first."""
    return replace(of, begin=_begin(low, of, coordinate, node))


def _begin(low: Lowering, of: SwizzledView, coordinate: tuple[Any, ...], node: ast.AST) -> Begin:
    found = coordinates.indices(low, of, coordinate, node, swizzles.arithmetic(low, node))
    return swizzles.moved(low, of.begin, found, of.layout, of, node)


def moved(low: Lowering, of: SwizzledPointer, by: Any, node: ast.AST) -> SwizzledPointer:
    """`p + i`: the pointer i elements further; what it reads there is swizzled."""
    known = coercion.plain(by)
    if isinstance(known, int) and not isinstance(known, bool):
        return replace(of, begin=replace(of.begin, known=of.begin.known + known))
    number = coercion.as_number(low, by, node)
    if not number.dtype.is_integer:
        low.fail(node, f"{describe(of)} is moved by {describe(by)}", expected="an integer")
    begin = swizzles.moved(low, of.begin, (number,), Layout(1, 1), of, node)
    return replace(of, begin=begin)


def arithmetic(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`p + i`, `i + p`, of a pointer with a swizzle."""
    match op, left, right:
        case ast.Add(), SwizzledPointer(), _ if not isinstance(right, SwizzledPointer):
            return moved(low, left, right, node)
        case ast.Add(), _, SwizzledPointer() if not isinstance(left, SwizzledPointer):
            return moved(low, right, left, node)
    low.fail(
        node,
        f"the operator {PYTHON_BINARY[type(op)][0]} is not supported on swizzled pointers",
        expected="p + i",
    )


# ---- elements ----


def memory(
    low: Lowering, of: SwizzledView, at: tuple[Any, ...], node: ast.AST
) -> tuple[ops.Value, tuple[ops.Value, ...]]:
    """The memory and the index of the element at a coordinate."""
    single = replace(of, begin=_begin(low, of, at, node))
    indices = Indices(low, single, node)
    view, known = indices.memory(indices.address(0))
    return view, (constant_index(low, known),)


def read(low: Lowering, of: SwizzledView, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`a[...]`: an element, or a part."""
    at = coordinates.whole_as_all(of, at)
    if has_free(at):
        return cut(low, of, at, node, ast.unparse(node))
    access.require_reachable(low, of, node)
    access.require_element(low, of.type.dtype, node)
    return Number(low.builder.load(*memory(low, of, at, node)))


def write(low: Lowering, of: SwizzledView, at: tuple[Any, ...], value: Any, node: ast.AST) -> None:
    """`a[...] = value`: of an element, or, with a vector, of a part."""
    at = coordinates.whole_as_all(of, at)
    if has_free(at):
        vectors.store(low, cut(low, of, at, node, ast.unparse(node)), value, node)
        return
    access.require_reachable(low, of, node)
    stored = access.stored(low, of.type.dtype, value, of.name, node)
    low.builder.store(*memory(low, of, at, node), stored)
    low.state.writes += 1


# ---- attributes ----

TENSOR: Final[dict[str, Callable[[Lowering, SwizzledView], Any]]] = {
    "shape": lambda low, t: size_numbers(low, t.layout.shape),
    "stride": lambda low, t: size_numbers(low, t.layout.stride),
    "layout": plain_layout,
    "iterator": iterator,
    "element_type": lambda low, t: t.type.dtype,
    "dtype": lambda low, t: t.type.dtype,
    "memspace": lambda low, t: t.type.space,
    "ndim": lambda low, t: len(t.layout),
    "load": method(vectors.load),
    "store": method(vectors.store_method),
    "fill": method(vectors.fill),
}


def begin_of(low: Lowering, of: SwizzledView | SwizzledPointer, behind: int = 0) -> ops.Value:
    """The index, before the swizzle, at which this begins, and so many elements behind that."""
    index = low.builder.constant(Int32, of.begin.known + behind)
    number = of.begin.number
    if number is None:
        return index
    return low.builder.binary("add", coercion.convert(low, number, Int32).value, index)


def _plain(low: Lowering, of: SwizzledPointer) -> PointerView:
    """`p.llvm_ptr`: the address without the swizzle, of the memory in which it arranges tiles."""
    start = views.pointer_to(low, of.root, of.type.dtype, of.type.dtype.itemsize, of.name)
    place = low.builder.view(start.value, start.type, (begin_of(low, of),))
    return PointerView(place, of.name)


POINTER: Final[dict[str, Callable[[Lowering, SwizzledPointer], Any]]] = {
    "dtype": lambda low, p: p.type.dtype,
    "element_type": lambda low, p: p.type.dtype,
    "value_type": lambda low, p: p.type.dtype,
    "alignment": lambda low, p: p.type.align,
    "max_alignment": lambda low, p: p.type.align,
    "memspace": lambda low, p: p.type.space,
    "llvm_ptr": _plain,
}
