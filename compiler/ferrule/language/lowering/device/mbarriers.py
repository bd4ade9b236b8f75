"""`fe.arch.mbarrier_…`, `cp_async_bulk` and `fence_proxy`: barriers in shared memory."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import mbarriers as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.asynchronous import global_pointer
from ferrule.language.lowering.device.shared_memory import shared_pointer
from ferrule.language.lowering.device.threads import integer, place, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number, PointerView
from ferrule.specs import Int32, Int64

_PROXIES: Final[dict[tuple[str, str | None], ops.ControlKind]] = {
    ("alias", None): "fence_proxy_alias",
    ("async", None): "fence_proxy_async",
    ("async.global", None): "fence_proxy_async_global",
    ("async.shared", "cta"): "fence_proxy_async_shared_cta",
    ("async.shared", "cluster"): "fence_proxy_async_shared_cluster",
}


def barrier_at(low: Lowering, name: str, pointer: Any, node: ast.AST) -> ops.Value:
    """The barrier behind a pointer."""
    given = shared_pointer(low, name, pointer, node)
    if given.type.dtype is not Int64:
        low.fail(
            node,
            f"{name} of the pointer {given.name}, whose elements are {given.type.dtype.name}",
            expected="a pointer to int64: a barrier takes 8 bytes",
            hint="arch.alloc_smem(fe.Int64, 1)",
        )
    return given.value


def _positive(low: Lowering, what: str, value: Any, node: ast.AST) -> ops.Value:
    known = coercion.plain(value)
    limit = (1 << 20) - 1
    if isinstance(known, int) and not isinstance(known, bool) and not 0 < known <= limit:
        low.fail(node, f"{what} is {known}", expected=f"a number from 1 to {limit}")
    return integer(low, value, Int32, what, node)


def _change(name: str, kind: ops.MBarrierKind, amount: str) -> Intrinsic:
    """A change of a barrier, with an amount of this name."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
        pointer, given = bound(low, f"mbar_ptr {amount}", args, kwargs, node)
        require_kernel(low, name, node)
        barrier = barrier_at(low, name, pointer, node)
        number = _positive(low, f"the {amount} of {name}", given, node)
        low.state.writes += 1
        low.builder.mbarrier(kind, barrier, number)

    return emit


def _arrive(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.mbarrier_arrive(mbar_ptr, peer_cta_rank_in_cluster=None)`."""
    pointer, peer = bound(low, "mbar_ptr peer_cta_rank_in_cluster=", args, kwargs, node)
    require_kernel(low, "mbarrier_arrive", node)
    barrier = barrier_at(low, "mbarrier_arrive", pointer, node)
    what = "the peer_cta_rank_in_cluster of mbarrier_arrive"
    block = None if peer is None else integer(low, peer, Int32, what, node)
    low.state.writes += 1
    low.builder.mbarrier("arrive", barrier, peer=block)


def _copies_arrive(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async_mbarrier_arrive_noinc(mbar_ptr)`."""
    (pointer,) = bound(low, "mbar_ptr", args, kwargs, node)
    name = "cp_async_mbarrier_arrive_noinc"
    require_kernel(low, name, node)
    barrier = barrier_at(low, name, pointer, node)
    low.state.writes += 1
    low.builder.mbarrier("copies_arrive", barrier)


def _phase(
    low: Lowering, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> tuple[ops.Value, ops.Value]:
    """The barrier and the phase of a wait."""
    pointer, phase = bound(low, "mbar_ptr phase", args, kwargs, node)
    require_kernel(low, name, node)
    known = coercion.plain(phase)
    if isinstance(known, int) and known not in (0, 1):
        low.fail(node, f"the phase of {name} is {known}", expected="0 or 1")
    barrier = barrier_at(low, name, pointer, node)
    low.state.writes += 1
    return barrier, integer(low, phase, Int32, f"the phase of {name}", node)


def _try_wait(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
    """`fe.arch.mbarrier_try_wait(mbar_ptr, phase)`."""
    barrier, phase = _phase(low, "mbarrier_try_wait", args, kwargs, node)
    return Number(low.builder.mbarrier_try(barrier, phase, place(low, node)))


def _wait(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.mbarrier_wait(mbar_ptr, phase)`."""
    barrier, phase = _phase(low, "mbarrier_wait", args, kwargs, node)
    low.builder.mbarrier_wait(barrier, phase, place(low, node))


def _bulk(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async_bulk(dst, src, bytes, mbar_ptr=None)`."""
    target, source, size, pointer = bound(low, "dst src bytes mbar_ptr=", args, kwargs, node)
    require_kernel(low, "cp_async_bulk", node)
    stores = pointer is None and isinstance(source, PointerView) and source.type.is_shared
    inside, outside = (source, target) if stores else (target, source)
    shared = shared_pointer(low, "the dst of cp_async_bulk", inside, node)
    dtype = global_pointer(low, "cp_async_bulk", outside, node, "dst" if stores else "src")
    if shared.type.dtype is not dtype:
        of, to = (shared.type.dtype, dtype) if stores else (dtype, shared.type.dtype)
        low.fail(
            node,
            f"cp_async_bulk copies {of.name} to {to.name}",
            expected="pointers to one dtype",
        )
    known = coercion.plain(size)
    if isinstance(known, int) and known % 16:
        low.fail(node, f"cp_async_bulk of {known} bytes", expected="a multiple of 16")
    count = _positive(low, "the size of cp_async_bulk", size, node)
    if stores:
        low.state.writes += 1
        low.builder.append(ops.BulkStore(target.value, source.value, count))
        return
    if pointer is None:
        low.fail(
            node,
            "cp_async_bulk to shared memory without an mbar_ptr",
            expected="the barrier at which the bytes arrive",
        )
    barrier = barrier_at(low, "cp_async_bulk", pointer, node)
    low.state.writes += 1
    low.builder.bulk_copy(target.value, source.value, count, barrier)


def _init_fence(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    bound(low, "", args, kwargs, node)
    require_kernel(low, "mbarrier_init_fence", node)
    low.builder.control("mbarrier_init_fence")


def _fence_proxy(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.fence_proxy(kind, space=None)`."""
    kind, space = bound(low, "kind space=", args, kwargs, node)
    require_kernel(low, "fence_proxy", node)
    known = _PROXIES.get((kind, space)) if isinstance(kind, str) else None
    if known is None:
        low.fail(
            node,
            f"fence_proxy of {describe(kind)}, {describe(space)}",
            expected='"alias", "async", "async.global", or "async.shared" with space="cta" or '
            '"cluster"',
        )
    low.state.writes += 1
    low.builder.control(known)


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.mbarrier_init: _change("mbarrier_init", "init", "cnt"),
    faces.mbarrier_init_fence: _init_fence,
    faces.mbarrier_arrive: _arrive,
    faces.cp_async_mbarrier_arrive_noinc: _copies_arrive,
    faces.mbarrier_expect_tx: _change("mbarrier_expect_tx", "expect_tx", "bytes"),
    faces.mbarrier_arrive_and_expect_tx: _change(
        "mbarrier_arrive_and_expect_tx", "arrive_and_expect_tx", "bytes"
    ),
    faces.mbarrier_wait: _wait,
    faces.mbarrier_try_wait: _try_wait,
    faces.cp_async_bulk: _bulk,
    faces.fence_proxy: _fence_proxy,
}
"""The emitters of these functions."""
