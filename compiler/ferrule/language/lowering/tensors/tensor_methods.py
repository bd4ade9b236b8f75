"""Methods and functions that make views of a tensor: reshape, transpose, recast, make_tensor."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ferrule.language import layouts
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import ComposedLayout, Layout
from ferrule.language.layouts.dims import quotient, same
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering, Part
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import as_dims, named
from ferrule.language.lowering.tensors import views
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.values import (
    Fielded,
    PointerView,
    SwizzledPointer,
    SwizzledView,
    TensorView,
)
from ferrule.specs import DType
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.expr import is_dim

Arguments = list[Any]
Keywords = dict[str, Any]


def reshape(
    low: Lowering, tensor: TensorView, args: Arguments, kwargs: Keywords, node: ast.Call
) -> TensorView:
    """`a.reshape(shape)`, `a.reshape(m, n)`: the elements in row-major order, in another shape.

    One size may be -1: it is computed.  A CompileError if it would need a copy.
    """
    given = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else tuple(args)
    shape = as_dims(low, given, node)
    if kwargs or not shape or not all(map(is_dim, shape)):
        low.fail(node, "reshape takes a flat shape", expected=f"{tensor.name}.reshape(m, n)")
    old = named(low, tensor.layout)
    total = layouts.size(old)
    if shape.count(-1) == 1:
        rest = layouts.product(tuple(dim for dim in shape if dim != -1))
        missing = quotient(total, rest)
        shape = tuple(missing if dim == -1 else dim for dim in shape)
    if None in shape or not same(layouts.product(shape), total):
        low.fail(
            node,
            f"{tensor.name} of shape {layouts.format_tuple(old.shape)} is reshaped to "
            f"{layouts.format_tuple(as_dims(low, given, node))}",
            expected="as many elements, for every value of the sizes",
        )
    with refusals(low, node):
        backwards = layouts.composition(
            _reversed(layouts.flatten(old)), layouts.make_layout(shape[::-1]), operation="reshape"
        )
    if layouts.depth(backwards) > 1:
        low.fail(node, f"{old} cannot be reshaped without a copy", hint="copy it to a new tensor")
    return views.relaid(low, tensor, _reversed(backwards))


def _reversed(layout: Layout) -> Layout:
    order = range(layouts.rank(layout) - 1, -1, -1)
    return Layout(layouts.select(layout.shape, order), layouts.select(layout.stride, order))


def transpose(
    low: Lowering, tensor: TensorView, args: Arguments, kwargs: Keywords, node: ast.Call
) -> TensorView:
    """`a.transpose()` reverses the order of the modes; `a.transpose(1, 0, 2)` permutes them."""
    rank = layouts.rank(tensor.layout)
    order = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else tuple(args)
    order = order or tuple(reversed(range(rank)))
    if kwargs or set(order) != set(range(rank)) or len(order) != rank:
        low.fail(
            node,
            f"transpose takes each mode of {tensor.name} once",
            expected=f"{tensor.name}.transpose({', '.join(map(str, reversed(range(rank))))})",
        )
    arrange = partial(layouts.select, mode=order)
    return views.relaid(low, tensor, layouts.select(tensor.layout, order), arrange)


def recast_tensor(
    low: Lowering, tensor: Any, args: Arguments, kwargs: Keywords, node: ast.Call
) -> TensorView | SwizzledView:
    """`a.recast(dtype)`: the same bytes as elements of another dtype, of any size."""
    if isinstance(tensor, SwizzledView):
        from ferrule.language.lowering.tensors import swizzled

        return swizzled.recast(low, tensor, _dtype(low, args, kwargs, node), node)
    if not isinstance(tensor, TensorView):
        low.fail(node, f"recast_tensor takes a tensor, but got {describe(tensor)}")
    dtype = _dtype(low, args, kwargs, node)
    old = tensor.type
    with refusals(low, node):
        layout = layouts.recast_layout(dtype.bits, old.dtype.bits, named(low, tensor.layout))
    if old.align % dtype.itemsize:
        low.fail(
            node,
            f"{tensor.name} is aligned to {old.align} bytes, but {dtype.name} needs "
            f"{dtype.itemsize}",
            hint="give the example assumed_align=16",
        )
    flat = layouts.flatten((layout.shape,)), layouts.flatten((layout.stride,))
    view = low.builder.view(tensor.value, TensorType(dtype, *flat, old.align, old.space))
    value = low.state.with_beginning(view, tensor.value)
    if low.kind == "host":
        low.state.parts[value] = Part(tensor, layout, has_no_others=True)
    return TensorView(value, tensor.name, layout if layouts.depth(layout) > 1 else None)


def recast_pointer(
    low: Lowering, pointer: Any, args: Arguments, kwargs: Keywords, node: ast.Call
) -> PointerView | SwizzledPointer:
    """`fe.recast_ptr(p, dtype=…)`: the same address of elements of another dtype."""
    if isinstance(pointer, SwizzledPointer):
        from ferrule.language.lowering.tensors import swizzled

        return swizzled.recast_pointer(low, pointer, _dtype(low, args, kwargs, node), node)
    if not isinstance(pointer, PointerView):
        low.fail(node, f"recast_ptr takes a pointer, but got {describe(pointer)}")
    dtype = _dtype(low, args, kwargs, node)
    return views.pointer_to(low, pointer.value, dtype, pointer.type.align, pointer.name)


def align(
    low: Lowering, pointer: PointerView, args: Arguments, kwargs: Keywords, node: ast.Call
) -> PointerView:
    """`p.align(n)`: the pointer, which is known to be a multiple of n bytes.

    CuTe DSL rounds an address up that is not; here that is an error, as it would move elements.
    """
    (given,) = bound(low, "min_align", args, kwargs, node)
    wanted = coercion.plain(given)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        low.fail(node, f"align to {describe(given)}", expected="a power of two in bytes")
    if pointer.type.align % wanted:
        low.fail(
            node,
            f"{describe(pointer)} is known to be aligned to {pointer.type.align} bytes, not to "
            f"{wanted}",
            hint="give the example assumed_align=16, and sizes with sym_int(divisibility=...)",
        )
    return pointer


def _dtype(low: Lowering, args: Arguments, kwargs: Keywords, node: ast.Call) -> DType:
    given = [*args, *kwargs.values()]
    if len(given) != 1 or not set(kwargs) <= {"dtype"}:
        low.fail(node, "a recast takes one dtype", expected="fe.Float16, or another")
    checked: DType = coercion.at_compile_time(low, node, lambda: as_dtype(given[0]))
    return checked


def make_tensor(low: Lowering, args: Arguments, kwargs: Keywords, node: ast.Call) -> Any:
    """`fe.make_tensor(pointer, layout)`: the elements from an address on, with a layout or
    shape."""
    given = {**dict(zip(("iterator", "layout"), args, strict=False)), **kwargs}
    if len(args) > 2 or set(given) != {"iterator", "layout"}:
        low.fail(node, "make_tensor takes two arguments", expected="fe.make_tensor(p, layout)")
    pointer = given["iterator"]
    if isinstance(pointer, tuple):
        return _of_coordinates(low, pointer, given["layout"], node)
    several = isinstance(pointer, Fielded) and isinstance(pointer.items[0], PointerView)
    if not isinstance(pointer, (PointerView, SwizzledPointer)) and not several:
        low.fail(
            node,
            f"make_tensor: the iterator is {describe(pointer)}",
            expected="a pointer: a parameter whose example is make_ptr(dtype, 0), or a.iterator",
        )
    if low.kind == "kernel" and isinstance(pointer, PointerView):
        from ferrule.language.lowering.numbers import number_tensors  # few programs need it

        of_numbers = number_tensors.of(low, pointer, given["layout"], node)
        if of_numbers is not None:
            return of_numbers
    layout = as_dims(low, given["layout"], node)
    with refusals(low, node):
        has_layout = isinstance(layout, (Layout, ComposedLayout))
        checked = layout if has_layout else layouts.make_layout(layout)
    if isinstance(pointer, SwizzledPointer) or isinstance(checked, ComposedLayout):
        from ferrule.language.lowering.tensors import swizzled

        return swizzled.tensor(low, pointer, checked, node)
    if isinstance(pointer, Fielded):
        items = tuple(views.relaid(low, each, checked) for each in pointer.items)
        return Fielded(pointer.form, items, pointer.name)
    return views.relaid(low, pointer, checked)


def _of_coordinates(low: Lowering, origin: Any, layout: Any, node: ast.AST) -> Any:
    """`make_tensor(c.iterator, layout)`, of a tensor of coordinates."""
    from ferrule.language.lowering.tensors import coordinate_views

    found = as_dims(low, layout, node)
    if not isinstance(found, Layout):
        low.fail(node, f"a tensor of coordinates has the layout {describe(layout)}")
    return coordinate_views.tensor(found, "the coordinates", origin)
