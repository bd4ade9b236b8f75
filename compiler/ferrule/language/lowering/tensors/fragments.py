"""`make_fragment` and similar functions: tensors in registers, with a compile-time layout."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces import vectors as faces
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import ComposedLayout, Layout, format_tuple
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, forms
from ferrule.language.lowering.numbers.sizes import as_dims, named
from ferrule.language.lowering.tensors import access, fields, views
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.values import CoordinateView, Fielded, SwizzledView, TensorView, Vector
from ferrule.specs import AddressSpace, DType
from ferrule.specs.dtypes import as_dtype

MAX_BYTES: Final = 65536
MAX_BYTES_TOGETHER: Final = 262144
"""The limits of one fragment, and of all of one function: stacks are small on every target."""
# The widest access of a thread of a GPU.
_ALIGN: Final = 16


def _make(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> TensorView | Fielded:
    """`fe.make_fragment(layout_or_shape, dtype)`."""
    wanted, dtype = bound(low, "layout_or_shape dtype", args, kwargs, node)
    layout = as_dims(low, wanted, node)
    with refusals(low, node):
        checked = layout if isinstance(layout, Layout) else layouts.make_layout(layout)
    form = forms.of_elements(low, dtype, "the dtype of a fragment", node)
    if isinstance(form, DType):
        return in_registers(low, checked, form, node)
    return fields.allocated(form, "fragment", lambda each: in_registers(low, checked, each, node))


def _make_like(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> TensorView:
    """`fe.make_fragment_like(src, dtype=None)`."""
    source, dtype = bound(low, "src dtype=", args, kwargs, node)
    match source:
        case TensorView() | SwizzledView():
            layout, own = named(low, source.layout), source.type.dtype
        case CoordinateView() if dtype is not None:
            layout, own = layouts.make_layout(named(low, source.layout).shape), dtype
        case ComposedLayout() if dtype is not None:
            layout, own = named(low, source.outer), dtype
        case Vector():
            layout, own = layouts.make_layout(source.shape), source.dtype
        case Layout() if dtype is not None:
            layout, own = named(low, source), dtype
        case _:
            low.fail(
                node,
                f"make_fragment_like got {describe(source)}",
                expected="a tensor or a vector, or a layout and a dtype",
            )
    return in_registers(low, _compact(layout), own if dtype is None else dtype, node)


def _compact(layout: Layout) -> Layout:
    """A compact layout of this shape; in the order of the strides, if these are all constant."""
    if layouts.is_static(layout):
        return layouts.make_ordered_layout(layout.shape, layout.stride)
    return layouts.make_layout(layout.shape)


def in_registers(low: Lowering, layout: Layout, dtype: Any, node: ast.Call) -> TensorView:
    kind: DType = coercion.at_compile_time(low, node, lambda: as_dtype(dtype))
    access.require_kept(low, kind, node)
    if not layouts.is_static(layout):
        low.fail(
            node,
            f"a fragment has the layout {layout}, whose sizes are known only at the call",
            expected="ints: a fragment is in registers",
            hint="make it as large as one thread's part, such as a tile of the tensor",
        )
    if any(stride < 0 for stride in layouts.flatten((layout.stride,))):
        low.fail(node, f"a fragment has the layout {layout}", expected="no negative strides")
    size = layouts.cosize(layout)
    assert isinstance(size, int)
    if not 0 < size * kind.itemsize <= MAX_BYTES:
        low.fail(
            node,
            f"a fragment of shape {format_tuple(layout.shape)} has {size * kind.itemsize} bytes",
            expected=f"1 to {MAX_BYTES} bytes",
        )
    low.own_bytes += size * kind.itemsize
    if low.own_bytes > MAX_BYTES_TOGETHER:
        low.fail(
            node,
            f"the fragments of this function have more than {MAX_BYTES_TOGETHER} bytes altogether",
            hint="keep what is large in a tensor that the caller passes",
        )
    return _tensor(low, layout, kind)


def _tensor(low: Lowering, layout: Layout, kind: DType) -> TensorView:
    checked = views.with_rank(layout)
    shape, stride = layouts.flatten((checked.shape,)), layouts.flatten((checked.stride,))
    type_ = TensorType(kind, shape, stride, max(_ALIGN, kind.itemsize), AddressSpace.rmem)
    nested = checked if layouts.depth(checked) > 1 else None
    return TensorView(access.made(low, type_, low.builder.fragment), "fragment", nested)


TABLE: Final[dict[Any, Callable[..., TensorView | Fielded]]] = {
    faces.make_fragment: _make,
    faces.make_rmem_tensor: _make,
    faces.make_fragment_like: _make_like,
}
"""The emitters of these functions."""
