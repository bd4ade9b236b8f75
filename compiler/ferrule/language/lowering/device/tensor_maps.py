"""`fe.arch.make_tensor_map` and the copies of boxes."""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import Any, Final, TypeVar

from ferrule.compiler.cuda.tilings import (
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    Tiling,
    data_type,
    innermost_first,
    named,
)
from ferrule.language.faces import asynchronous as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.asynchronous import group_count
from ferrule.language.lowering.device.mbarriers import barrier_at
from ferrule.language.lowering.device.shared_memory import shared_pointer
from ferrule.language.lowering.device.threads import integer, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import PointerView, TensorMapView, TensorView, is_run_time
from ferrule.specs import Int32

_Mode = TypeVar("_Mode", bound=IntEnum)
_WORDS: Final = "tensor box element_strides= interleave= swizzle= l2_promotion= oob_fill="


def _make(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> TensorMapView:
    """`fe.arch.make_tensor_map(tensor, box, ...)`."""
    tensor, box, steps, *modes = bound(low, _WORDS, args, kwargs, node)
    if low.kind != "host":
        low.fail(
            node,
            "make_tensor_map is known only in a host function",
            hint="make it in @fe.jit, and pass it to the kernel",
        )
    _require_tensor(low, tensor, node)
    rank = len(tensor.type.shape)
    sizes = _numbers(low, "box", box, rank, node)
    every = (1,) * rank if steps is None else _numbers(low, "element_strides", steps, rank, node)
    try:
        order = innermost_first(tensor.type.strides)
        tiling = Tiling(
            data_type(tensor.type.dtype),
            tuple(sizes[dim] for dim in order),
            tuple(every[dim] for dim in order),
            *_modes(modes),
        )
    except ValueError as error:
        low.fail(node, f"make_tensor_map of {tensor.name}: {error}")
    return TensorMapView(tensor.value, tensor.name, ops.Boxes(tiling, order))


def _modes(given: list[Any]) -> tuple[Interleave, Swizzle, L2Promotion, OobFill]:
    interleave, swizzle, l2_promotion, oob_fill = given
    return (
        named(Interleave, "interleave", "none" if interleave is None else interleave),
        named(Swizzle, "swizzle", "none" if swizzle is None else swizzle),
        named(L2Promotion, "l2_promotion", "none" if l2_promotion is None else l2_promotion),
        named(OobFill, "oob_fill", "zero" if oob_fill is None else oob_fill),
    )


def _require_tensor(low: Lowering, tensor: Any, node: ast.AST) -> None:
    holds = isinstance(tensor, TensorView) and tensor.nested is None and not tensor.type.is_own
    if not holds:
        low.fail(
            node,
            f"make_tensor_map of {describe(tensor)}",
            expected="a tensor in global memory whose dims do not nest",
        )


def _numbers(low: Lowering, what: str, given: Any, rank: int, node: ast.AST) -> tuple[int, ...]:
    """One int for each dim, known at compile time."""
    items = given if isinstance(given, (tuple, list)) else (given,)
    found = [coercion.plain(item) for item in items]
    whole = all(isinstance(item, int) and not isinstance(item, bool) for item in found)
    if is_run_time(given) or not whole or len(found) != rank:
        low.fail(
            node,
            f"the {what} of make_tensor_map is {describe(given)}",
            expected=f"{rank} ints known at compile time, one for each dim of the tensor",
        )
    return tuple(found)


# ---- in kernels ----


def _map(low: Lowering, name: str, given: Any, node: ast.AST) -> TensorMapView:
    if isinstance(given, TensorMapView):
        return given
    low.fail(
        node,
        f"{name} of {describe(given)}",
        expected="a tensor map",
        hint="fe.arch.make_tensor_map(a, box=...) in the host function",
    )


def _coordinates(
    low: Lowering, map_: TensorMapView, given: Any, node: ast.AST
) -> tuple[ops.Value, ...]:
    items = given if isinstance(given, (tuple, list)) else (given,)
    rank = map_.boxes.tiling.rank
    if len(items) != rank:
        low.fail(
            node,
            f"{len(items)} coordinates in the tensor map of {map_.name}",
            expected=f"{rank} of them, one for each dim of the tensor",
        )
    return tuple(integer(low, item, Int32, "a coordinate", node) for item in items)


def _copy(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async_bulk_tensor(dst, src, coord, mbar_ptr=None, *, multicast_mask=None)`."""
    words = "dst src coord mbar_ptr= multicast_mask="
    target, source, coordinates, barrier, mask = bound(low, words, args, kwargs, node)
    name = "cp_async_bulk_tensor"
    require_kernel(low, name, node)
    loads = not isinstance(target, TensorMapView)
    map_ = _map(
        low,
        f"the src of {name}" if loads else f"the dst of {name}",
        source if loads else target,
        node,
    )
    shared = _shared(low, map_, target if loads else source, "dst" if loads else "src", node)
    at = _coordinates(low, map_, coordinates, node)
    if loads == (barrier is None) or (mask is not None and not loads):
        low.fail(
            node,
            f"{name} {'to' if loads else 'from'} shared memory",
            expected="an mbar_ptr, at which the box arrives"
            if loads
            else "no mbar_ptr and no multicast_mask: arch.cp_async_bulk_commit_group() ends it",
        )
    to = barrier_at(low, name, barrier, node) if loads else None
    several = None if mask is None else integer(low, mask, Int32, "the multicast_mask", node)
    low.state.writes += 1
    kind: ops.TensorCopyKind = "load" if loads else "store"
    low.builder.append(ops.TensorCopy(kind, map_.value, map_.boxes, at, shared.value, to, several))


def _shared(
    low: Lowering, map_: TensorMapView, pointer: Any, what: str, node: ast.AST
) -> PointerView:
    found = shared_pointer(low, f"the {what} of cp_async_bulk_tensor", pointer, node)
    dtype = map_.value.tensor.dtype
    if found.type.dtype is not dtype:
        low.fail(
            node,
            f"cp_async_bulk_tensor between {dtype.name} and {found.type.dtype.name}",
            expected="a tensor and a pointer of one dtype",
        )
    return found


def _prefetch(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.prefetch_tensor(src, coord)`."""
    source, coordinates = bound(low, "src coord", args, kwargs, node)
    require_kernel(low, "prefetch_tensor", node)
    map_ = _map(low, "prefetch_tensor", source, node)
    at = _coordinates(low, map_, coordinates, node)
    low.builder.append(ops.TensorCopy("prefetch", map_.value, map_.boxes, at))


def _prefetch_map(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.prefetch_tensor_map(tensor_map)`."""
    (given,) = bound(low, "tensor_map", args, kwargs, node)
    require_kernel(low, "prefetch_tensor_map", node)
    map_ = _map(low, "prefetch_tensor_map", given, node)
    low.builder.append(ops.TensorCopy("prefetch_map", map_.value, map_.boxes))


def _commit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    bound(low, "", args, kwargs, node)
    require_kernel(low, "cp_async_bulk_commit_group", node)
    low.state.writes += 1
    low.builder.control("cp_async_bulk_commit_group")


def _wait(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async_bulk_wait_group(n, *, read=False)`."""
    count, read = bound(low, "n read=", args, kwargs, node)
    require_kernel(low, "cp_async_bulk_wait_group", node)
    known = group_count(low, "cp_async_bulk_wait_group", count, node)
    if read not in (None, True, False):
        low.fail(
            node,
            f"read is {describe(read)}",
            expected="True or False, known at compile time",
        )
    low.state.writes += 1
    form: ops.ControlKind = "cp_async_bulk_wait_group_read" if read else "cp_async_bulk_wait_group"
    low.builder.control(form, known)


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.make_tensor_map: _make,
    faces.cp_async_bulk_tensor: _copy,
    faces.prefetch_tensor: _prefetch,
    faces.prefetch_tensor_map: _prefetch_map,
    faces.cp_async_bulk_commit_group: _commit,
    faces.cp_async_bulk_wait_group: _wait,
}
"""The emitters of these functions."""
