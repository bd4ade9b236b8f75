"""Asynchronous copies, also of boxes of tensors, and kernels that begin early, available in `arch`;
see `base`.

A *tensor map* is the description of a tensor for a copy of a box.  The host function makes it and
passes it to a kernel, which copies the box at some coordinates.  From sm_90 on.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def cp_async(dst: Any, src: Any, count: Any, *, cache: str = "always", pred: Any = None) -> None:
    """Begins a copy of `count` elements from global to shared memory: 4, 8 or 16 bytes.

    Both pointers are multiples of this number of bytes.  If `pred` is false, zeros are written and
    nothing is read.  `cache`: "always", or "global" (only for 16 bytes), which bypasses L1.  Until
    `cp_async_wait_group` the contents of the target are undefined.  From sm_80 on.
    """
    outside("arch.cp_async")


def cp_async_commit_group() -> None:
    """Makes a group of the thread's copies since the last group."""
    outside("arch.cp_async_commit_group")


def cp_async_wait_group(n: Any) -> None:
    """Waits for all groups of the thread except the `n` newest; n is known at compile time.

    Other threads see the copied data after a barrier.
    """
    outside("arch.cp_async_wait_group")


def griddepcontrol_wait() -> None:
    """Waits until the preceding kernels have ended, and sees their writes; it has an effect only
    with `use_pdl=True`.  From sm_90 on."""
    outside("arch.griddepcontrol_wait")


def griddepcontrol_launch_dependents() -> None:
    """Lets the next kernel begin once all blocks have called this or ended; that kernel waits with
    `griddepcontrol_wait` for the writes of this one.  From sm_90 on."""
    outside("arch.griddepcontrol_launch_dependents")


def cluster_arrive() -> None:
    """Arrives at the barrier of the cluster: each thread of the cluster arrives, then waits.

    From sm_90 on, like the next two functions.
    """
    outside("arch.cluster_arrive")


def cluster_arrive_relaxed() -> None:
    """The same, without making the thread's writes visible to the others."""
    outside("arch.cluster_arrive_relaxed")


def cluster_wait() -> None:
    """Waits until all threads of the cluster have arrived; their earlier writes are visible
    then."""
    outside("arch.cluster_wait")


def load_peer(ptr: Any, peer_cta_rank_in_cluster: Any) -> Any:
    """The element at the same place in the shared memory of another block of the cluster.

    That block must still be running: both blocks ensure it with the barrier of the cluster.  From
    sm_90 on.
    """
    outside("arch.load_peer")


def store_peer(ptr: Any, value: Any, peer_cta_rank_in_cluster: Any) -> None:
    """Writes the element at the same place in the shared memory of another block; see `load_peer`.

    The write is visible after the barrier of the cluster.
    """
    outside("arch.store_peer")


def setmaxregister_increase(reg_count: Any) -> None:
    """Gives each thread of the warpgroup this number of registers, a multiple of 8 from 24 to 256.

    Waits until other warpgroups have released them.  All warps of the warpgroup must run it.  On
    architectures with the suffix `a`, from sm_90a on.
    """
    outside("arch.setmaxregister_increase")


def setmaxregister_decrease(reg_count: Any) -> None:
    """Reduces the registers of each thread of the warpgroup to this number; see
    `setmaxregister_increase`."""
    outside("arch.setmaxregister_decrease")


def make_tensor_map(
    tensor: Any,
    box: Any,
    *,
    element_strides: Any = None,
    interleave: Any = "none",
    swizzle: Any = "none",
    l2_promotion: Any = "none",
    oob_fill: Any = "zero",
) -> Any:
    """The map of a tensor, for boxes of these sizes: an argument of a kernel; in host functions.

    The tensor has 1 to 5 dims, of which one, the innermost, is known to have stride 1; the address
    and the other strides are multiples of 16 bytes.  The sizes of a box are from 1 to 256, along
    the innermost dim a multiple of 16 bytes.  `element_strides`: the steps between the elements of
    a box; its sizes count the elements before that.  `swizzle`: the permutation of 16-byte chunks
    of the box in shared memory: "none", "32B", "64B", "128B".  `oob_fill`: the value of elements
    outside of the tensor: "zero", "nan".  `interleave` ("16B", "32B") and `l2_promotion` ("64B",
    "128B", "256B"): see the CUDA Driver API, `cuTensorMapEncodeTiled`.
    """
    outside("arch.make_tensor_map")


def cp_async_bulk_tensor(
    dst: Any, src: Any, coord: Any, mbar_ptr: Any = None, *, multicast_mask: Any = None
) -> None:
    """Begins a copy of the box at `coord`, one coordinate for each dim of the tensor.

    From a map to a pointer into shared memory: the bytes of the whole box arrive at a barrier,
    including those outside of the tensor.  With a `multicast_mask` the box goes to the same place
    in each block of the cluster whose bit is set, and arrives there at the barrier at the same
    place.  From a pointer into shared memory to a map: elements outside of the tensor are skipped;
    see `cp_async_bulk_commit_group`.  The pointer is a multiple of 128 bytes, with a swizzle a
    multiple of 8 times its span.  One thread requests the whole copy.
    """
    outside("arch.cp_async_bulk_tensor")


def prefetch_tensor(src: Any, coord: Any) -> None:
    """Begins to load the box at `coord` of a map into the L2 cache."""
    outside("arch.prefetch_tensor")


def prefetch_tensor_map(tensor_map: Any) -> None:
    """Begins to load a map itself into the cache for copies."""
    outside("arch.prefetch_tensor_map")


def cp_async_bulk_commit_group() -> None:
    """Makes a group of the thread's copies from shared to global memory since the last group."""
    outside("arch.cp_async_bulk_commit_group")


def cp_async_bulk_wait_group(n: Any, *, read: Any = False) -> None:
    """Waits for all groups of the thread except the `n` newest; n is known at compile time.

    `read`: wait only until they have read shared memory, so that it may be overwritten.
    """
    outside("arch.cp_async_bulk_wait_group")
