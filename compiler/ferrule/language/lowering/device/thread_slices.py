"""`tiled.get_slice(thread)`, and what a thread has of tensors: partitions and fragments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.atoms import copies, mmas
from ferrule.language.atoms.copies import TiledCopy
from ferrule.language.atoms.mmas import TiledMma
from ferrule.language.layouts import Layout
from ferrule.language.layouts.tiling import place_of
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import as_dims, named
from ferrule.language.lowering.tensors import arranged, fragments, swizzled, swizzles
from ferrule.language.lowering.tensors.arranged import ARRANGED, Arranged
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.values import BoundMethod, CoordinateView, TensorView, ThreadSlice
from ferrule.specs import Numeric

_Args = list[Any]
_Kwargs = dict[str, Any]


def attribute(low: Lowering, value: ThreadSlice, attr: str, node: ast.AST) -> Any:
    """An attribute of a slice: a method of its own, or what the tiled object has."""
    if attr == "thr_idx":
        return value.thread
    table = _OF_COPY if isinstance(value.of, TiledCopy) else _OF_MMA
    if attr in table:
        return BoundMethod(partial(table[attr], value), attr)
    found = method(value.of, attr)
    if found is not None:
        return found
    if not hasattr(value.of, attr):
        low.fail(node, f"{describe(value)} has no attribute {attr!r}")
    return coercion.at_compile_time(low, node, lambda: getattr(value.of, attr))


def method(value: Any, attr: str) -> BoundMethod | None:
    """A method of a tiled copy or matrix multiplication; None for other attributes."""
    known = {TiledCopy: _TILED_COPY, TiledMma: {**_TILED, **_TILED_MMA}}.get(type(value), {})
    return BoundMethod(partial(known[attr], value), attr) if attr in known else None


def _slice(of: Any, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> ThreadSlice:
    """`tiled.get_slice(thr_idx)`."""
    (given,) = bound(low, "thr_idx", args, kwargs, node)
    known = coercion.plain(given.value if isinstance(given, Numeric) else given)
    if isinstance(known, int) and not isinstance(known, bool):
        if not 0 <= known < of.size:
            low.fail(node, f"there is no thread {known} of {of.size}")
        return ThreadSlice(of, known)
    number = coercion.as_number(low, given, node)
    if not number.dtype.is_integer:
        low.fail(node, f"the thread is {describe(given)}", expected="an integer")
    return ThreadSlice(of, number)


def _arranged(low: Lowering, name: str, value: Any, node: ast.AST) -> Arranged:
    if isinstance(value, ARRANGED):
        return value
    low.fail(node, f"{name} takes a tensor, but got {describe(value)}")


# ---- copies ----


def _copy_part(side: str) -> Callable[..., Any]:
    def emit(
        value: ThreadSlice, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call
    ) -> Arranged:
        """`thr_copy.partition_S(tensor)`, `partition_D`."""
        (given,) = bound(low, "tensor", args, kwargs, node)
        tensor = _arranged(low, f"partition_{side}", given, node)
        values = value.of.atom.values
        target = values.source if side == "S" else values.target
        with refusals(low, node):
            layout = copies.partitioned(value.of, named(low, tensor.layout), target)
        thread = _thread(low, value, node)
        return _cut(low, tensor, layout, (thread,), node)

    return emit


def _thread(low: Lowering, value: ThreadSlice, node: ast.AST) -> Any:
    """The number of the thread, which is known to be below that of the threads."""
    return swizzles.arithmetic(low, node).mod(value.thread, value.of.size)


def _cut(
    low: Lowering, tensor: Arranged, layout: Layout, place: tuple[Any, ...], node: ast.AST
) -> Arranged:
    """The part at a place in the first modes of another layout."""
    if isinstance(tensor, TensorView) and tensor.type.is_shared and layouts.is_static(layout):
        tensor = swizzled.counted(low, tensor)
    at = (*place, *(None,) * (len(layout) - len(place)))
    relaid = arranged.relaid(low, tensor, layout)
    return arranged.cut(low, relaid, at, node, name=ast.unparse(node))


def _retile(value: Any, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Arranged:
    """`thr_copy.retile(tensor)`: the values of a thread, in the order of this copy."""
    (given,) = bound(low, "tensor", args, kwargs, node)
    tensor = _arranged(low, "retile", given, node)
    tiled = value.of if isinstance(value, ThreadSlice) else value
    with refusals(low, node):
        layout = copies.retiled(tiled, named(low, tensor.layout))
    return arranged.relaid(low, tensor, layout)


# ---- matrix multiplications ----


def _mma_part(matrix: str) -> Callable[..., Any]:
    def emit(
        value: ThreadSlice, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call
    ) -> Arranged:
        """`thr_mma.partition_A(tensor)`, `partition_B`, `partition_C`."""
        (given,) = bound(low, "tensor", args, kwargs, node)
        tensor = _arranged(low, f"partition_{matrix}", given, node)
        with refusals(low, node):
            layout = mmas.partitioned(value.of, named(low, tensor.layout), matrix)
            emit_ = swizzles.arithmetic(low, node)
            place = place_of(value.of.thr_layout_vmnk, value.thread, emit_)
        modes = tuple(place[mode + 1] for mode in mmas.MODES[matrix])
        return _cut(low, tensor, layout, (place[0], modes), node)

    return emit


def _fragment(matrix: str) -> Callable[..., Any]:
    def emit(tiled: TiledMma, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
        """`tiled_mma.make_fragment_A(part)`, `…_B`, `…_C`: registers for a part, or a shape."""
        (given,) = bound(low, "input", args, kwargs, node)
        if _stays(tiled, matrix):
            return _in_place(low, matrix, given, node)
        shape = given.layout.shape if isinstance(given, ARRANGED) else as_dims(low, given, node)
        dtype = tiled.op.dtypes["ABC".index(matrix)]
        with refusals(low, node):
            layout = layouts.make_layout(shape)
        return fragments.in_registers(low, layout, dtype, node)

    return emit


def _stays(tiled: TiledMma, matrix: str) -> bool:
    """Whether a matrix is read from shared memory, so that its fragment is that part."""
    if not getattr(tiled.op, "warpgroup", False) or matrix == "C":
        return False
    return matrix == "B" or tiled.op.a_src.name == "SMEM"


def _in_place(low: Lowering, matrix: str, given: Any, node: ast.AST) -> Any:
    if isinstance(given, ARRANGED) and not isinstance(given, CoordinateView):
        if given.type.is_shared:
            return given
    low.fail(
        node,
        f"make_fragment_{matrix} of {describe(given)}",
        expected=f"a part in shared memory, such as thr_mma.partition_{matrix}(tile)",
    )


def _setter(name: str) -> Callable[..., Any]:
    def emit(tiled: TiledMma, low: Lowering, *given: Any) -> Any:
        """`tiled_mma.set(field, value)`, `tiled_mma.get(field)`."""
        from ferrule.language.lowering.device import warpgroup_products

        return getattr(warpgroup_products, f"{name}_field")(tiled, low, *given)

    return emit


def _shape(matrix: str) -> Callable[..., Any]:
    def emit(tiled: TiledMma, low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
        """`tiled_mma.partition_shape_C((m, n))`: the shape of what a thread has."""
        (given,) = bound(low, "shape", args, kwargs, node)
        with refusals(low, node):
            return mmas.shape_of_part(tiled, as_dims(low, given, node), matrix)

    return emit


_OF_COPY: Final = {
    "partition_S": _copy_part("S"),
    "partition_D": _copy_part("D"),
    "retile": _retile,
}
_OF_MMA: Final = {f"partition_{m}": _mma_part(m) for m in mmas.MODES}
_TILED: Final[dict[str, Callable[..., Any]]] = {"get_slice": _slice}
_TILED_COPY: Final = {**_TILED, "retile": _retile}
_TILED_MMA: Final = {
    **{f"make_fragment_{m}": _fragment(m) for m in mmas.MODES},
    **{f"partition_shape_{m}": _shape(m) for m in mmas.MODES},
    "set": _setter("set"),
    "get": _setter("get"),
}
