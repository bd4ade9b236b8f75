"""Copies of boxes of tensors, available in `arch`; see `faces`.

A *tensor map* is the description of a tensor for such a copy.  The host function makes it and
passes it to a kernel, which copies the box at some coordinates.  From sm_90 on.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


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
