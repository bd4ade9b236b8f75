"""The threads of a kernel and their cooperation; see `base` for the meaning of a face.

`arch` has these functions, under the names of CuTe DSL.  Every `mask` has a bit for each lane of
the warp; the default is all lanes.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.language.faces.base import outside

WARP_SIZE: Final = 32
"""The threads of a warp."""
FULL_MASK: Final = 0xFFFFFFFF
"""The mask of all lanes."""

# ---- coordinates ----


def thread_idx() -> tuple[Any, Any, Any]:
    """The thread's coordinates in its block, three Int32 (x, y, z)."""
    outside("arch.thread_idx")


def block_idx() -> tuple[Any, Any, Any]:
    """The block's coordinates in the grid, three Int32."""
    outside("arch.block_idx")


def block_dim() -> tuple[Any, Any, Any]:
    """The number of threads of a block along each axis, three Int32."""
    outside("arch.block_dim")


def grid_dim() -> tuple[Any, Any, Any]:
    """The number of blocks of the grid along each axis, three Int32."""
    outside("arch.grid_dim")


def cluster_idx() -> tuple[Any, Any, Any]:
    """The cluster's coordinates in the grid of clusters, three Int32.

    On a CPU and on GPUs before sm_90 each block is a cluster of its own.
    """
    outside("arch.cluster_idx")


def cluster_dim() -> tuple[Any, Any, Any]:
    """The number of clusters of the grid along each axis, three Int32."""
    outside("arch.cluster_dim")


def block_in_cluster_idx() -> tuple[Any, Any, Any]:
    """The block's coordinates in its cluster, three Int32."""
    outside("arch.block_in_cluster_idx")


def block_in_cluster_dim() -> tuple[Any, Any, Any]:
    """The number of blocks of a cluster along each axis, three Int32."""
    outside("arch.block_in_cluster_dim")


def lane_idx() -> Any:
    """The thread's number in its warp, an Int32 from 0 to 31."""
    outside("arch.lane_idx")


def warp_idx() -> Any:
    """The warp's number in its block, an Int32: threads are counted along x first."""
    outside("arch.warp_idx")


def make_warp_uniform(value: Any) -> Any:
    """The value, an integer that all threads of the warp have, and all of them call this.

    A GPU takes it from the first thread, so that ptxas knows that it is uniform.
    """
    outside("arch.make_warp_uniform")


def elect_one() -> Any:
    """Whether this is the first thread of its warp, a Boolean: `if fe.arch.elect_one():`.

    `with fe.arch.elect_one():` is the same.
    """
    outside("arch.elect_one")


# ---- barriers and fences ----


def sync_threads() -> None:
    """Waits for all threads of the block; their earlier writes are visible after it."""
    outside("arch.sync_threads")


def barrier(*, barrier_id: Any = None, number_of_threads: Any = None) -> None:
    """Waits until this number of threads of the block wait at the barrier with this number.

    `barrier_id`: from 0 (which `sync_threads` uses too) to 15; `number_of_threads`: a multiple of
    32, by default all.
    """
    outside("arch.barrier")


def barrier_arrive(barrier_id: Any, number_of_threads: Any) -> None:
    """Arrives at a barrier without waiting; `number_of_threads` includes the threads that wait
    there in `barrier`.  Only on GPUs."""
    outside("arch.barrier_arrive")


def sync_warp(mask: Any = FULL_MASK) -> None:
    """Waits for the lanes of the mask; their earlier writes are visible after it."""
    outside("arch.sync_warp")


def fence_acq_rel_cta() -> None:
    """Orders the thread's earlier writes before its later accesses, for the threads of its
    block."""
    outside("arch.fence_acq_rel_cta")


def fence_acq_rel_cluster() -> None:
    """The same for the threads of its cluster."""
    outside("arch.fence_acq_rel_cluster")


def fence_acq_rel_gpu() -> None:
    """The same for all threads of the device."""
    outside("arch.fence_acq_rel_gpu")


def fence_acq_rel_sys() -> None:
    """The same for the whole machine."""
    outside("arch.fence_acq_rel_sys")


# ---- warps ----


def shuffle_sync(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The value of the lane with number `offset`.

    Of any dtype, or a vector.  `mask_and_clamp` is as in PTX: the bound in bits 0 to 4, and in 8 to
    12 the bits of a lane's number that select its segment of the warp; for a lane beyond the bound
    the result is the lane's own value.
    """
    outside("arch.shuffle_sync")


def shuffle_sync_up(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 0) -> Any:
    """The value of the lane `offset` below; the lane's own value if there is none."""
    outside("arch.shuffle_sync_up")


def shuffle_sync_down(
    value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31
) -> Any:
    """The value of the lane `offset` above; the lane's own value if there is none."""
    outside("arch.shuffle_sync_down")


def shuffle_sync_bfly(
    value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31
) -> Any:
    """The value of the lane whose number is the own number xor `offset`."""
    outside("arch.shuffle_sync_bfly")


def vote_all_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether the condition holds in all lanes of the mask, a Boolean."""
    outside("arch.vote_all_sync")


def vote_any_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether the condition holds in any lane of the mask, a Boolean."""
    outside("arch.vote_any_sync")


def vote_uni_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether the condition is the same in all lanes of the mask, a Boolean."""
    outside("arch.vote_uni_sync")


def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """The lanes of the mask in which the condition holds, a Uint32."""
    outside("arch.vote_ballot_sync")


def match_any_sync(value: Any, mask: Any = FULL_MASK) -> Any:
    """The lanes of the mask with the own lane's value, a Uint32; of 32 or 64 bits."""
    outside("arch.match_any_sync")


def match_all_sync(value: Any, mask: Any = FULL_MASK) -> Any:
    """The lanes of the mask, as far as the block has them, if all have the same value, else 0.

    A Uint32; of 32 or 64 bits.
    """
    outside("arch.match_all_sync")


# ---- atomics ----


def atomic_add(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """Adds to the element at a pointer, `a.iterator + i`, in one step; returns the old element.

    Of integers of 32 and 64 bits and floats of 16, 32 and 64.  `sem`: "relaxed" (the default),
    "acquire", "release" or "acq_rel"; `scope`, the threads for which it is one step: "cta",
    "cluster", "gpu" (the default) or "sys".
    """
    outside("arch.atomic_add")


def atomic_min(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """Stores the smaller one; see `atomic_add`."""
    outside("arch.atomic_min")


def atomic_max(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """Stores the larger one; see `atomic_add`."""
    outside("arch.atomic_max")


def atomic_and(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """`old & val` of integers of 32 and 64 bits; see `atomic_add`."""
    outside("arch.atomic_and")


def atomic_or(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """`old | val`; see `atomic_and`."""
    outside("arch.atomic_or")


def atomic_xor(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """`old ^ val`; see `atomic_and`."""
    outside("arch.atomic_xor")


def atomic_exch(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """Stores the new one; see `atomic_add`."""
    outside("arch.atomic_exch")


def atomic_inc(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """`0 if old >= val else old + 1`, of Uint32; see `atomic_add`."""
    outside("arch.atomic_inc")


def atomic_dec(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None) -> Any:
    """`val if old == 0 or old > val else old - 1`, of Uint32; see `atomic_add`."""
    outside("arch.atomic_dec")


def atomic_cas(
    ptr: Any, cmp: Any, val: Any, *, sem: str | None = None, scope: str | None = None
) -> Any:
    """`val if old == cmp else old`, compared bit by bit; see `atomic_add`."""
    outside("arch.atomic_cas")


# ---- shared memory ----


def alloc_smem(element_type: Any, size_in_elems: Any, alignment: Any = None) -> Any:
    """A pointer to new uninitialised memory that the threads of the block share.

    The number of elements is known at compile time; a kernel has at most 48 KiB of it.  Each call
    in the source is one place, also in a run-time loop.
    """
    outside("arch.alloc_smem")


def get_dyn_smem(element_type: Any, alignment: Any = None) -> Any:
    """A pointer to the memory that the launch requests with `smem=`, in bytes."""
    outside("arch.get_dyn_smem")


def reserve_dyn_smem(size: Any, alignment: Any) -> Any:
    """A pointer to so many more bytes of the dynamic shared memory, of which the launch then
    provides enough."""
    outside("SmemAllocator")
