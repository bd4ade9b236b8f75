"""Memory that the threads of a block or a cluster share: `fe.arch.alloc_smem`, `load_peer`."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any, Final

from ferrule.compiler.cuda.limits import MAX_THREADS, SMEM_LIMIT
from ferrule.language.faces import collectives
from ferrule.language.faces import threads as faces
from ferrule.language.faces.asynchronous import load_peer, store_peer
from ferrule.language.ir import ops
from ferrule.language.ir.shared import after, size_of
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import integer, place, require_kernel
from ferrule.language.lowering.numbers import coercion, forms
from ferrule.language.lowering.tensors import access, fields, views
from ferrule.language.values import Fielded, Number, PointerView, TensorView, is_run_time
from ferrule.specs import AddressSpace, DType, Int32, Uint8
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.expr import INT64_MAX

STATIC_LIMIT: Final = 48 << 10
"""The largest static shared memory of a kernel in bytes (CUDA C++ Programming Guide)."""
_ALIGN: Final = 16
"""The default alignment in bytes: that of the widest access."""
_LEAST: Final = 4
"""The smallest alignment in bytes: atomics on 2 bytes change the surrounding word of 4."""
_SHOWN: Final = 6
_PLACES: Final = MAX_THREADS + ops.WARP_SIZE
"""Of threads, and of lanes that the last warp does not have."""


def _alloc(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> PointerView | Fielded:
    """`fe.arch.alloc_smem(element_type, size_in_elems, alignment=None)`."""
    words = "element_type size_in_elems alignment="
    wanted, count, alignment = bound(low, words, args, kwargs, node)
    require_kernel(low, "alloc_smem", node)
    form = forms.of_elements(low, wanted, "the element_type of alloc_smem", node)
    size = _count(low, count, node)

    def one(dtype: DType) -> PointerView:
        return _of_dtype(low, dtype, size, alignment, node)

    return one(form) if isinstance(form, DType) else fields.allocated(form, "smem", one)


def _of_dtype(
    low: Lowering, dtype: DType, size: int, alignment: Any, node: ast.Call
) -> PointerView:
    access.require_kept(low, dtype, node)
    align = max(_LEAST, _alignment(low, dtype, alignment, node))
    type_ = TensorType(dtype, (size,), (1,), align, AddressSpace.smem)
    low.shared.append((type_, place(low, node).line))
    _require_room(low, node)
    return views.pointer_to(low, access.made(low, type_, low.builder.shared), dtype, align, "smem")


def _of_threads(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> PointerView | Fielded:
    """`places_of_threads(form)`."""
    (form,) = bound(low, "form", args, kwargs, node)
    make = partial(low.builder.shared, extra=True)

    def one(dtype: DType) -> PointerView:
        align = max(_ALIGN, dtype.itemsize)
        type_ = TensorType(dtype, (_PLACES,), (1,), align, AddressSpace.smem)
        return views.pointer_to(low, access.made(low, type_, make), dtype, align, "smem")

    return one(form) if isinstance(form, DType) else fields.allocated(form, "smem", one)


def _dynamic(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> PointerView:
    """`fe.arch.get_dyn_smem(element_type, alignment=None)`."""
    wanted, alignment = bound(low, "element_type alignment=", args, kwargs, node)
    require_kernel(low, "get_dyn_smem", node)
    dtype = _dtype(low, "get_dyn_smem", wanted, node)
    align = _alignment(low, dtype, alignment, node)
    if low.dynamic:
        low.fail(
            node,
            "get_dyn_smem beside a SmemAllocator, which divides the dynamic shared memory",
            hint="allocate all of it: smem.allocate_array(dtype, count)",
        )
    low.has_all_dynamic = True
    type_ = TensorType(dtype, (INT64_MAX,), (1,), align, AddressSpace.smem)
    return PointerView(access.made(low, type_, low.builder.dynamic_shared), "dynamic smem")


def _allocate(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> PointerView:
    """`SmemAllocator.allocate(size, alignment)`: bytes behind those of the calls before."""
    size, alignment = bound(low, "size alignment", args, kwargs, node)
    require_kernel(low, "SmemAllocator", node)
    if low.has_all_dynamic:
        low.fail(
            node,
            "a SmemAllocator beside get_dyn_smem, which is all of the dynamic shared memory",
            hint="allocate all of it: smem.allocate_array(dtype, count)",
        )
    count = _count(low, size, node)
    align = _alignment(low, Uint8, alignment, node)
    start = after(low.dynamic, align)
    low.dynamic = start + count
    if low.dynamic > SMEM_LIMIT:
        low.fail(
            node,
            f"the shared memory of this kernel takes {low.dynamic} bytes",
            expected=f"at most {SMEM_LIMIT} bytes",
        )
    # All of it begins at the largest alignment, so a place may have more than was asked for.
    align = max(align, min(start & -start, ops.MAX_SHARED_ALIGN) or ops.MAX_SHARED_ALIGN)
    type_ = TensorType(Uint8, (count,), (1,), align, AddressSpace.smem)
    place_ = low.builder.dynamic_shared(type_, start)
    return views.pointer_to(low, place_, Uint8, align, "smem")


def _dtype(low: Lowering, name: str, wanted: Any, node: ast.Call) -> DType:
    if is_run_time(wanted):
        low.fail(
            node,
            f"the element_type of {name} is {describe(wanted)}",
            expected="a dtype, such as fe.Float32",
        )
    dtype: DType = coercion.at_compile_time(low, node, lambda: as_dtype(wanted))
    access.require_kept(low, dtype, node)
    return dtype


def _count(low: Lowering, count: Any, node: ast.Call) -> int:
    """The number of elements."""
    known = coercion.plain(count)
    if is_run_time(count):
        low.fail(
            node,
            f"alloc_smem of {describe(count)} elements, which is known only at the call",
            expected="an int: static shared memory is known at compile time",
            hint="fe.arch.get_dyn_smem(dtype), and launch(..., smem=bytes)",
        )
    if isinstance(known, bool) or not isinstance(known, int) or known < 1:
        low.fail(node, f"alloc_smem of {known!r} elements", expected="an int from 1 on")
    return known


def _alignment(low: Lowering, dtype: DType, given: Any, node: ast.Call) -> int:
    align = _ALIGN if given is None else coercion.plain(given)
    ok = isinstance(align, int) and not isinstance(align, bool) and align > 0
    if not ok or align & (align - 1) or align > ops.MAX_SHARED_ALIGN:
        low.fail(
            node,
            f"the alignment of shared memory is {describe(given)}",
            expected=f"a power of two up to {ops.MAX_SHARED_ALIGN}",
        )
    return max(int(align), dtype.itemsize)


def _require_room(low: Lowering, node: ast.Call) -> None:
    """Requires that all allocations of a kernel so far fit."""
    end = 0
    for type_, _ in low.shared:
        end = after(end, type_.align) + size_of(type_)
    if end <= STATIC_LIMIT:
        return
    shown = [
        f"line {line}: {type_.shape[0]} of {type_.dtype.name}, {size_of(type_)} bytes"
        for type_, line in low.shared
    ]
    if len(shown) > _SHOWN:
        shown[_SHOWN - 1 : -1] = [f"... {len(shown) - _SHOWN} more ..."]
    low.fail(
        node,
        f"the static shared memory of this kernel takes {end} bytes",
        expected=f"at most {STATIC_LIMIT} bytes",
        hint="allocate less, or use one place for two things that are not needed at one time",
        note="; ".join(shown),
    )


def shared_pointer(low: Lowering, name: str, pointer: Any, node: ast.AST) -> PointerView:
    """A pointer into shared memory.  A CompileError for anything else."""
    if isinstance(pointer, PointerView) and pointer.type.is_shared:
        return pointer
    of = pointer.name if isinstance(pointer, TensorView) else "tile"
    low.fail(
        node,
        f"{name} of {describe(pointer)}",
        expected="a pointer into shared memory",
        hint=f"{of}.iterator + i, of a tensor of arch.alloc_smem",
    )


# ---- other blocks of the cluster ----

_PEER: Final = "the peer_cta_rank_in_cluster"


def _load_peer(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
    """`fe.arch.load_peer(ptr, peer_cta_rank_in_cluster)`."""
    pointer, peer = bound(low, "ptr peer_cta_rank_in_cluster", args, kwargs, node)
    require_kernel(low, "load_peer", node)
    source = shared_pointer(low, "load_peer", pointer, node)
    access.require_element(low, source.type.dtype, node)
    result = ops.Value(source.type.dtype, "of_peer")
    block = integer(low, peer, Int32, _PEER, node)
    low.builder.append(ops.PeerLoad(result, source.value, block))
    return Number(result)


def _store_peer(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.store_peer(ptr, value, peer_cta_rank_in_cluster)`."""
    pointer, value, peer = bound(low, "ptr value peer_cta_rank_in_cluster", args, kwargs, node)
    require_kernel(low, "store_peer", node)
    target = shared_pointer(low, "store_peer", pointer, node)
    stored = access.stored(low, target.type.dtype, value, target.name, node)
    block = integer(low, peer, Int32, _PEER, node)
    low.state.writes += 1
    low.builder.append(ops.PeerStore(target.value, stored, block))


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.alloc_smem: _alloc,
    collectives.places_of_threads: _of_threads,
    faces.get_dyn_smem: _dynamic,
    faces.reserve_dyn_smem: _allocate,
    load_peer: _load_peer,
    store_peer: _store_peer,
}
"""The emitters of these functions."""
