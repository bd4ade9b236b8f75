"""`fe.arch`: coordinates, barriers, fences, shuffles, votes and matches."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.compiler.artefacts import Location
from ferrule.language.faces import threads as faces
from ferrule.language.ir import ops
from ferrule.language.ir.rules.threads import MATCHED
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering, users
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, forms
from ferrule.language.values import Number
from ferrule.specs import Boolean, DType, Int32, Uint32


def require_kernel(low: Lowering, name: str, node: ast.AST) -> None:
    """Requires a kernel: only its threads have coordinates and cooperate."""
    if low.kind == "host":
        low.fail(node, f"{name} is known only in a kernel", hint="call it in @fe.kernel")


def place(low: Lowering, node: ast.AST) -> Location:
    """The place in the user's code, not in the library that is written in the language."""
    frame, at = users(low.frame, node)
    return frame.source.location(at)


def integer(low: Lowering, value: Any, dtype: DType, what: str, node: ast.AST) -> ops.Value:
    """An integer of at most 32 bits, in this dtype."""
    number = coercion.as_number(low, value, node, dtype)
    if not number.dtype.is_integer or number.dtype.bits > 32:
        low.fail(
            node,
            f"{what} is {describe(value)}",
            expected="an integer of at most 32 bits",
            hint=f"convert it, fe.{dtype.__name__}(x)",
        )
    return coercion.convert(low, number, dtype).value


def mask_of(low: Lowering, mask: Any, node: ast.AST) -> ops.Value:
    """The lanes of a mask; the default is all."""
    known = coercion.plain(faces.FULL_MASK if mask is None else mask)
    if isinstance(known, int) and not isinstance(known, bool):
        if not -(1 << 31) <= known <= faces.FULL_MASK or known == 0:
            low.fail(
                node,
                f"the mask is {known}",
                expected="32 bits, one for each lane that takes part, from 1 to 0xffffffff",
            )
        return low.builder.constant(Uint32, known & faces.FULL_MASK, "mask")
    return integer(low, mask, Uint32, "the mask", node)


# ---- coordinates ----


def _coordinates(name: str, register: ops.Register) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        _none(low, name, args, kwargs, node)
        return tuple(Number(low.builder.special(register, axis)) for axis in range(3))

    return emit


def _none(low: Lowering, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> None:
    if args or kwargs:
        low.fail(node, f"{name} takes 0 arguments, but got {len(args) + len(kwargs)}")
    require_kernel(low, name, node)


def _linear(low: Lowering) -> ops.Value:
    """The thread's number in its block, x fastest."""
    b = low.builder
    number = b.special("thread_idx", 2)
    for axis in (1, 0):
        row = b.binary("mul", number, b.special("block_dim", axis))
        number = b.binary("add", row, b.special("thread_idx", axis))
    return number


def _of_number(name: str, op: ops.BinaryOp, by: int) -> Intrinsic:
    """An `op` on the thread's number in its block."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
        _none(low, name, args, kwargs, node)
        return Number(low.builder.binary(op, _linear(low), low.builder.constant(Int32, by)))

    return emit


def _elect_one(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
    _none(low, "elect_one", args, kwargs, node)
    return Number(is_first_lane(low))


def lane_of(low: Lowering) -> ops.Value:
    """The number of the thread in its warp."""
    return low.builder.binary("and", _linear(low), low.builder.constant(Int32, 31))


def is_first_lane(low: Lowering) -> ops.Value:
    """Whether this is the first thread of its warp."""
    return low.builder.compare("eq", lane_of(low), low.builder.constant(Int32, 0))


def _uniform(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    (value,) = bound(low, "value", args, kwargs, node)
    require_kernel(low, "make_warp_uniform", node)
    number = coercion.as_number(low, value, node, Int32)
    if low.state.target == "cpu":
        return value
    # What ptxas cannot see of a thread's own number, it sees of a shuffle: all lanes have it.
    first = low.builder.constant(Int32, 0)
    lanes, clamp = mask_of(low, None, node), low.builder.constant(Int32, 31)
    where = place(low, node)
    return Number(low.builder.shuffle("idx", number.value, first, lanes, clamp, where))


# ---- barriers and fences ----


def _sync_threads(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    _none(low, "sync_threads", args, kwargs, node)
    low.state.writes += 1
    low.builder.barrier(location=place(low, node))


def _barrier_arrive(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    number, count = bound(low, "barrier_id number_of_threads", args, kwargs, node)
    require_kernel(low, "barrier_arrive", node)
    _require_barrier(low, number, count, node)
    id_ = integer(low, number, Int32, "barrier_id", node)
    threads = integer(low, count, Int32, "number_of_threads", node)
    low.state.writes += 1
    low.builder.append(ops.BarrierArrive(id_, threads, place(low, node)))


def _require_barrier(low: Lowering, number: Any, count: Any, node: ast.AST) -> None:
    """Checks the number and the count of a named barrier, if they are known."""
    if isinstance(number, int) and not 0 <= number < ops.MAX_BARRIERS:
        low.fail(node, f"barrier_id is {number}", expected="a number from 0 to 15")
    if isinstance(count, int) and (count % 32 or not 0 < count <= 1024):
        low.fail(
            node,
            f"number_of_threads is {count}",
            expected="a multiple of 32, up to 1024: whole warps wait at a barrier",
        )


def _barrier(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    number, count = bound(low, "barrier_id= number_of_threads=", args, kwargs, node)
    require_kernel(low, "barrier", node)
    _require_barrier(low, number, count, node)
    low.state.writes += 1
    id_ = None if number is None else integer(low, number, Int32, "barrier_id", node)
    threads = None if count is None else integer(low, count, Int32, "number_of_threads", node)
    low.builder.barrier(id_, threads, place(low, node))


def _sync_warp(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    (mask,) = bound(low, "mask=", args, kwargs, node)
    require_kernel(low, "sync_warp", node)
    low.state.writes += 1
    low.builder.warp_barrier(mask_of(low, mask, node), place(low, node))


def _fence(name: str, scope: ops.FenceScope) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
        _none(low, name, args, kwargs, node)
        low.builder.fence(scope)

    return emit


# ---- warps ----


def _shuffle(name: str, op: ops.ShuffleOp, clamp: int) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        words = "value offset mask= mask_and_clamp="
        value, offset, mask, bounds = bound(low, words, args, kwargs, node)
        require_kernel(low, name, node)
        lane = integer(low, offset, Int32, "the offset", node)
        lanes = mask_of(low, mask, node)
        given = clamp if bounds is None else bounds
        bound_ = integer(low, given, Int32, "mask_and_clamp", node)
        where = place(low, node)

        def one(number: Number) -> Number:
            return Number(low.builder.shuffle(op, number.value, lane, lanes, bound_, where))

        return forms.each(low, value, name, node, one)

    return emit


def _vote(name: str, op: ops.VoteOp) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
        condition, mask = bound(low, "pred mask=", args, kwargs, node)
        require_kernel(low, name, node)
        number = coercion.as_number(low, condition, node, Boolean)
        truth = coercion.convert(low, number, Boolean).value
        return Number(low.builder.vote(op, truth, mask_of(low, mask, node), place(low, node)))

    return emit


def _match(name: str, op: ops.MatchOp) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
        value, mask = bound(low, "value mask=", args, kwargs, node)
        require_kernel(low, name, node)
        number = coercion.as_number(low, value, node)
        if number.dtype not in MATCHED:
            low.fail(
                node,
                f"{name} of {describe(value)}",
                expected="a number of " + ", ".join(dtype.name for dtype in MATCHED),
                hint="convert it, fe.Int32(x)",
            )
        lanes = mask_of(low, mask, node)
        return Number(low.builder.match(op, number.value, lanes, place(low, node)))

    return emit


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.thread_idx: _coordinates("thread_idx", "thread_idx"),
    faces.block_idx: _coordinates("block_idx", "block_idx"),
    faces.block_dim: _coordinates("block_dim", "block_dim"),
    faces.grid_dim: _coordinates("grid_dim", "grid_dim"),
    faces.cluster_idx: _coordinates("cluster_idx", "cluster_idx"),
    faces.cluster_dim: _coordinates("cluster_dim", "cluster_dim"),
    faces.block_in_cluster_idx: _coordinates("block_in_cluster_idx", "block_in_cluster_idx"),
    faces.block_in_cluster_dim: _coordinates("block_in_cluster_dim", "block_in_cluster_dim"),
    faces.lane_idx: _of_number("lane_idx", "and", 31),
    faces.warp_idx: _of_number("warp_idx", "shr", 5),
    faces.elect_one: _elect_one,
    faces.make_warp_uniform: _uniform,
    faces.sync_threads: _sync_threads,
    faces.barrier: _barrier,
    faces.barrier_arrive: _barrier_arrive,
    faces.sync_warp: _sync_warp,
    faces.fence_acq_rel_cta: _fence("fence_acq_rel_cta", "block"),
    faces.fence_acq_rel_cluster: _fence("fence_acq_rel_cluster", "device"),
    faces.fence_acq_rel_gpu: _fence("fence_acq_rel_gpu", "device"),
    faces.fence_acq_rel_sys: _fence("fence_acq_rel_sys", "system"),
    faces.shuffle_sync: _shuffle("shuffle_sync", "idx", 31),
    faces.shuffle_sync_up: _shuffle("shuffle_sync_up", "up", 0),
    faces.shuffle_sync_down: _shuffle("shuffle_sync_down", "down", 31),
    faces.shuffle_sync_bfly: _shuffle("shuffle_sync_bfly", "bfly", 31),
    faces.vote_all_sync: _vote("vote_all_sync", "all"),
    faces.vote_any_sync: _vote("vote_any_sync", "any"),
    faces.vote_uni_sync: _vote("vote_uni_sync", "uni"),
    faces.vote_ballot_sync: _vote("vote_ballot_sync", "ballot"),
    faces.match_any_sync: _match("match_any_sync", "any"),
    faces.match_all_sync: _match("match_all_sync", "all"),
}
"""The emitters of these functions."""
