"""Collective operations of the threads of a warp or block, written in the kernel language itself.

A reduction or scan accepts any associative function of two values; for a reduction it must also be
commutative: a helper, a lambda, `max`, `operator.add`, a `ReductionOp`.  A value is a number, a
vector, or a tuple, named tuple or dataclass of numbers.  The order of operations depends only on
the size of the block, so results are the same in every run and on every target.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from ferrule.language.faces import maths
from ferrule.language.faces.base import outside, range_constexpr, static_assert
from ferrule.language.faces.threads import (
    alloc_smem,
    block_dim,
    lane_idx,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_up,
    sync_threads,
    thread_idx,
    warp_idx,
)
from ferrule.language.faces.vectors import ReductionOp, where

_WARPS: Final = 32
"""The largest number of warps in a block."""
_GROUPS: Final = (1, 2, 4, 8, 16, 32)
_FUNCTIONS: Final[dict[Any, Any]] = {
    ReductionOp.ADD: operator.add,
    ReductionOp.MUL: operator.mul,
    ReductionOp.MAX: maths.max,
    ReductionOp.MIN: maths.min,
}


def numbers_of(val: Any, name: str) -> Any:
    """The value with a run-time number for each constant in it; refuses what is no number."""
    outside(name)


def form_of(val: Any) -> Any:
    """The element type of memory that holds such values."""
    outside("form_of")


def result_like(result: Any, like: Any) -> Any:
    """A result of `op`, which must be of the kind of its arguments."""
    outside("result_like")


def for_cpu() -> bool:
    """Whether the kernel is compiled for the CPU, where lanes exchange values through memory."""
    outside("for_cpu")


def places_of_threads(form: Any) -> Any:
    """Memory with a place for each thread and 32 more, which does not count as shared memory and
    which no check watches."""
    outside("places_of_threads")


def initial_like(initial: Any, like: Any) -> Any:
    """An initial value, converted as in a store."""
    outside("initial_like")


def _combined(op: Any, x: Any, y: Any) -> Any:
    return result_like(_FUNCTIONS.get(op, op)(x, y), x)


def _thread() -> Any:
    """The thread's number in its block, counted along x first."""
    (x, y, z), (width, height, _) = thread_idx(), block_dim()
    return (z * height + y) * width + x


def _block_size() -> Any:
    x, y, z = block_dim()
    return x * y * z


def _lanes(warp: Any) -> Any:
    """The number of lanes in a warp; the last warp may have fewer than 32."""
    return maths.min(_block_size() - warp * 32, 32)


def warp_reduction(val: Any, op: Any, threads_in_group: int = 32) -> Any:
    """`op` of the values of neighbouring lanes, in groups of this size; each lane gets its group's
    result.

    A group at the end of the block may have fewer lanes.
    """
    static_assert(
        threads_in_group in _GROUPS, f"threads_in_group is one of {_GROUPS}: {threads_in_group}"
    )
    val = numbers_of(val, "warp_reduction")
    # The condition is uniform in the block: no warp diverges.
    if _block_size() & (threads_in_group - 1) == 0:
        total = _of_full_groups(val, op, threads_in_group)
    else:
        total = _of_groups(val, op, threads_in_group)
    return total


def _of_full_groups(val: Any, op: Any, size: int) -> Any:
    for step in range_constexpr(_GROUPS.index(size)):
        val = _combined(op, val, shuffle_sync_bfly(val, _GROUPS[step]))
    return val


def _of_groups(val: Any, op: Any, size: int) -> Any:
    """The same for groups with missing lanes: the first lane of a group combines values as in a
    full one."""
    lane, lanes = lane_idx(), _lanes(warp_idx())
    end = maths.min((lane & -size) + size, lanes)
    for step in range_constexpr(_GROUPS.index(size)):
        other = shuffle_sync_down(val, _GROUPS[step], mask_and_clamp=lanes - 1)
        val = where(lane + _GROUPS[step] < end, _combined(op, val, other), val)
    # Operand c of shfl (PTX ISA): the mask of segments in bits 8 to 12, the clamp in bits 0 to 4.
    return shuffle_sync(val, 0, mask_and_clamp=(32 - size) << 8 | 31)


def warp_reduction_sum(val: Any, threads_in_group: int = 32) -> Any:
    """The sum of the values of a group of lanes; see `warp_reduction`."""
    return warp_reduction(val, operator.add, threads_in_group)


def warp_reduction_max(val: Any, threads_in_group: int = 32) -> Any:
    """The largest value of a group of lanes; see `warp_reduction`."""
    return warp_reduction(val, maths.max, threads_in_group)


def warp_reduction_min(val: Any, threads_in_group: int = 32) -> Any:
    """The smallest value of a group of lanes; see `warp_reduction`."""
    return warp_reduction(val, maths.min, threads_in_group)


def _first_of_warp(val: Any, op: Any, lane: Any, warp: Any) -> Any:
    """`op` of the values of all present lanes, in lane 0; the other results are meaningless."""
    lanes = _lanes(warp)
    for step in range_constexpr(5):
        other = shuffle_sync_down(val, 16 >> step, mask_and_clamp=lanes - 1)
        val = _combined(op, val, other) if lane + (16 >> step) < lanes else val
    return val


def warp_scan(val: Any, op: Any) -> Any:
    """`op` of the values of the lanes up to and including this one."""
    lane, val = lane_idx(), numbers_of(val, "warp_scan")
    for step in range_constexpr(5):
        other = shuffle_sync_up(val, 1 << step)
        val = _combined(op, other, val) if lane >= 1 << step else val
    return val


def block_reduction(val: Any, op: Any) -> Any:
    """`op` of the values of all threads of the block; each of them gets the result.

    A block may have any size.  All threads must call it; it has two barriers.
    """
    val = numbers_of(val, "block_reduction")
    return _through_memory(val, op) if for_cpu() else _through_warps(val, op)


def _through_memory(val: Any, op: Any) -> Any:
    """The same operations as `_through_warps`, for the CPU: one loop for the five steps of a warp
    is compiled once, and a vector takes a step.

    Reads and writes have no conditions, so CPUs without masks have vectors, too.
    """
    lane, size = lane_idx(), _block_size()
    thread = _thread()  # `warp * 32 + lane` has masks, behind which LLVM sees no neighbours
    values = places_of_threads(form_of(val))
    values[thread] = val
    sync_threads()
    for step in range(5):
        far = 16 >> step
        own, other = values[thread], values[thread + far]
        # Others than these lanes store what they had, so nobody reads what another changes.
        values[thread] = _combined(op, own, other) if lane < far and thread + far < size else own
        sync_threads()
    total = values[0]
    for first in range(32, size, 32):
        total = _combined(op, total, values[first])
    sync_threads()
    return total


def _through_warps(val: Any, op: Any) -> Any:
    parts = alloc_smem(form_of(val), _WARPS)
    lane, warp = lane_idx(), warp_idx()
    own = _first_of_warp(val, op, lane, warp)
    if lane == 0:
        parts[warp] = own
    sync_threads()
    total = parts[0]
    for other in range(1, (_block_size() + 31) // 32):
        total = _combined(op, total, parts[other])
    sync_threads()
    return total


def block_scan(val: Any, op: Any) -> Any:
    """`op` of the values of the block's threads up to and including this one, numbered along x
    first.

    A block may have any size.  All threads must call it; it has two barriers.
    """
    val = numbers_of(val, "block_scan")
    parts = alloc_smem(form_of(val), _WARPS)
    own, warp = warp_scan(val, op), warp_idx()
    if lane_idx() == _lanes(warp) - 1:
        parts[warp] = own
    sync_threads()
    if warp > 0:
        before = parts[0]
        for other in range(1, warp):
            before = _combined(op, before, parts[other])
        own = _combined(op, before, own)
    sync_threads()
    return own


def block_scan_exclusive(val: Any, op: Any, initial: Any) -> Any:
    """`op` of `initial` and the values of the threads before this one; see `block_scan`."""
    val = numbers_of(val, "block_scan_exclusive")
    parts = alloc_smem(form_of(val), _WARPS)
    sums, lane, warp = warp_scan(val, op), lane_idx(), warp_idx()
    if lane == _lanes(warp) - 1:
        parts[warp] = sums
    sync_threads()
    own = initial_like(initial, val)
    for other in range(warp):
        own = _combined(op, own, parts[other])
    below = shuffle_sync_up(sums, 1)
    if lane > 0:
        own = _combined(op, own, below)
    sync_threads()
    return own
