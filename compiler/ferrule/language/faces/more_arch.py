"""More names of `fe.arch`, those of CuTe DSL, written in the kernel language over the others."""

from __future__ import annotations

import operator
from typing import Any, Final

from ferrule import specs
from ferrule.language.faces import maths
from ferrule.language.faces.asynchronous import setmaxregister_decrease, setmaxregister_increase
from ferrule.language.faces.base import static_assert
from ferrule.language.faces.collectives import warp_reduction
from ferrule.language.faces.mbarriers import fence_proxy, mbarrier_try_wait
from ferrule.language.faces.tensors import recast_ptr
from ferrule.language.faces.threads import (
    FULL_MASK,
    WARP_SIZE,
    atomic_add,
    atomic_and,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
    block_in_cluster_dim,
    block_in_cluster_idx,
    lane_idx,
    match_all_sync,
    match_any_sync,
)
from ferrule.language.faces.vectors import where

# Numbers of the call have operators, which Python's numbers of these dtypes lack.
BFloat16: Any = specs.BFloat16
Boolean: Any = specs.Boolean
Float32: Any = specs.Float32
Int32: Any = specs.Int32
Uint32: Any = specs.Uint32

WARPS_PER_WARPGROUP: Final = 4
"""The warps of a warpgroup."""
THREADS_PER_WARPGROUP: Final = 128
"""Its threads."""
_REDUCTIONS: Final = {
    "add": operator.add,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    **dict.fromkeys(("max", "umax", "fmax"), maths.max),
    **dict.fromkeys(("min", "umin", "fmin"), maths.min),
}
_REDS: Final = {
    "add": atomic_add,
    "and": atomic_and,
    "or": atomic_or,
    "xor": atomic_xor,
    **dict.fromkeys(("max", "umax"), atomic_max),
    **dict.fromkeys(("min", "umin"), atomic_min),
}


def warpsize() -> Any:
    """The threads of a warp, an Int32: 32."""
    return Int32(WARP_SIZE)


def block_idx_in_cluster() -> Any:
    """The number of the block in its cluster, an Int32: blocks are counted along x first."""
    x, y, z = block_in_cluster_idx()
    nx, ny, _ = block_in_cluster_dim()
    return x + nx * (y + ny * z)


def cluster_size() -> Any:
    """The number of blocks in a cluster, an Int32."""
    nx, ny, nz = block_in_cluster_dim()
    return nx * ny * nz


def lanemask_eq() -> Any:
    """The bit of the thread's lane, a Uint32."""
    return Uint32(1) << Uint32(lane_idx())


def lanemask_lt() -> Any:
    """The bits of the lanes below the thread's."""
    return lanemask_eq() - 1


def lanemask_le() -> Any:
    """The bits of the lanes up to the thread's."""
    return lanemask_eq() | lanemask_lt()


def lanemask_gt() -> Any:
    """The bits of the lanes above the thread's."""
    return ~lanemask_le()


def lanemask_ge() -> Any:
    """The bits of the lanes from the thread's on."""
    return ~lanemask_lt()


def match_sync(mask: Any, value: Any, kind: str = "any") -> Any:
    """`match_any_sync` or `match_all_sync`."""
    static_assert(kind in ("any", "all"), "the kind of match_sync is 'any' or 'all'")
    return match_any_sync(value, mask) if kind == "any" else match_all_sync(value, mask)


def warp_redux_sync(value: Any, kind: str, mask_and_clamp: Any = FULL_MASK) -> Any:
    """The combination of the values of all lanes, which each of them gets.

    `kind`: "add", "max", "min", "and", "or", "xor"; "umax", "umin", "fmax" and "fmin" are for the
    dtypes of their letter.  Fewer lanes than all are refused.
    """
    static_assert(kind in _REDUCTIONS, f"the kind of warp_redux_sync is one of {[*_REDUCTIONS]}")
    known = isinstance(mask_and_clamp, int) and mask_and_clamp in (FULL_MASK, -1)
    static_assert(known, "warp_redux_sync is for all lanes of the warp")
    return warp_reduction(value, _REDUCTIONS[kind])


def exp2(a: Any) -> Any:
    """2 to the power of a Float32."""
    return maths.exp2(a)


def exp(a: Any) -> Any:
    """e to the power of a Float32."""
    return maths.exp(a)


def warpgroup_reg_alloc(reg_count: Any) -> None:
    """`setmaxregister_increase`."""
    setmaxregister_increase(reg_count)


def warpgroup_reg_dealloc(reg_count: Any) -> None:
    """`setmaxregister_decrease`."""
    setmaxregister_decrease(reg_count)


def mbarrier_test_wait(mbar_ptr: Any, phase: Any) -> Any:
    """Whether the phase with this number has ended; it may wait, as `mbarrier_try_wait`."""
    return mbarrier_try_wait(mbar_ptr, phase)


def mbarrier_conditional_try_wait(cond: Any, mbar_ptr: Any, phase: Any) -> Any:
    """`mbarrier_try_wait` if the condition holds, else true."""
    ended = Boolean(True)
    if cond:
        ended = mbarrier_try_wait(mbar_ptr, phase)
    return ended


def fence_view_async_shared() -> None:
    """Orders the thread's writes to shared memory before later copies from there."""
    fence_proxy("async.shared", space="cta")


def load(ptr: Any, dtype: Any) -> Any:
    """The number of this dtype at a pointer."""
    return recast_ptr(ptr, dtype=dtype)[0]


def store(ptr: Any, val: Any) -> None:
    """Writes a number to the element at a pointer."""
    ptr[0] = val


def red(ptr: Any, val: Any, *, op: str, dtype: Any, sem: Any = None, scope: Any = None) -> None:
    """An atomic change of the element at a pointer, whose old value is not needed.

    `op`: "add", "min", "max", "umin", "umax", "and", "or", "xor"; `dtype` is that of the element.
    """
    static_assert(op in _REDS, f"the op of red is one of {[*_REDS]}")
    static_assert(not isinstance(dtype, str), "red takes a dtype such as fe.Float32")
    _REDS[op](recast_ptr(ptr, dtype=dtype), val, sem=sem, scope=scope)


def atomic_fmax(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None) -> Any:
    """`atomic_max` of floats."""
    return atomic_max(ptr, val, sem=sem, scope=scope)


def atomic_fmin(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None) -> Any:
    """`atomic_min` of floats."""
    return atomic_min(ptr, val, sem=sem, scope=scope)


def atomic_max_float32(ptr: Any, value: Any, *, positive_only: bool = True) -> Any:
    """`atomic_max` of a Float32, of either sign."""
    return atomic_max(ptr, value)


def cvt_i8x2_to_f32x2(src_vec2: Any) -> Any:
    """A vector of integers as Float32."""
    return src_vec2.to(Float32)


def cvt_i8x4_to_f32x4(src_vec4: Any) -> Any:
    """A vector of integers as Float32."""
    return src_vec4.to(Float32)


def cvt_i8x2_to_bf16x2(src_vec2: Any) -> Any:
    """A vector of integers as BFloat16."""
    return src_vec2.to(BFloat16)


def cvt_i8x4_to_bf16x4(src_vec4: Any) -> Any:
    """A vector of integers as BFloat16."""
    return src_vec4.to(BFloat16)


def cvt_f32_tf32(src_f32: Any) -> Any:
    """A Float32 as TFloat32, its bits in an Int32: to nearest, ties away from 0, as `cvt.rna`."""
    bits = Float32(src_f32).bitcast(Int32)
    size = bits & 0x7FFFFFFF
    # Half of the 13 bits that go, added to the magnitude: ties go away from 0.
    rounded = ((size + 0x1000) & ~0x1FFF) | (bits & ~0x7FFFFFFF)
    infinity = 0x7F800000
    return where(size > infinity, Int32(0x7FFFFFFF), where(size == infinity, bits, rounded))


def cvt_i8_bf16(src_i8: Any) -> Any:
    """An integer as BFloat16."""
    return src_i8.to(BFloat16)


def cvt_f32x2_bf16x2(src_vec2: Any) -> Any:
    """A vector of floats as BFloat16."""
    return src_vec2.to(BFloat16)
