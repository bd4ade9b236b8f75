"""Copies of boxes of tensors, as `arch` has them; see `faces`.

A *tensor map* is what such a copy knows of a tensor.  The host function makes it and hands it to a
kernel, which copies the box that begins at some coordinates.  From sm_90 on.
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
    """The map of a tensor, of boxes with these sizes: an argument of a kernel; in host functions.

    A tensor of 1 to 5 dims, one of which is known to have stride 1, the innermost one; the address
    and the other strides are multiples of 16 bytes.  The sizes of a box are from 1 to 256, along
    the innermost dim a multiple of 16 bytes.  `element_strides`: a box has every so-manieth
    element, and its sizes are before that.  `swizzle`: how 16-byte chunks of the box change places
    in shared memory: "none", "32B", "64B", "128B".  `oob_fill`: what a box has outside of the
    tensor: "zero", "nan".  `interleave` ("16B", "32B") and `l2_promotion` ("64B", "128B", "256B"):
    see the CUDA Driver API, `cuTensorMapEncodeTiled`.
    """
    outside("arch.make_tensor_map")


def cp_async_bulk_tensor(
    dst: Any, src: Any, coord: Any, mbar_ptr: Any = None, *, multicast_mask: Any = None
) -> None:
    """Begins to copy the box at `coord`, one coordinate for each dim of the tensor.

    From a map to a pointer into shared memory: the bytes of the whole box arrive at a barrier, also
    those outside of the tensor.  With a `multicast_mask` the box goes to the same place in each
    block of the cluster whose bit is set, and arrives there at the barrier at the same place.  From
    a pointer into shared memory to a map: what is outside of the tensor is left out; see
    `cp_async_bulk_commit_group`.  The pointer is a multiple of 128 bytes, with a swizzle of 8 times
    its span.  One thread asks for all of it.
    """
    outside("arch.cp_async_bulk_tensor")


def prefetch_tensor(src: Any, coord: Any) -> None:
    """Begins to bring the box at `coord` of a map into the L2 cache."""
    outside("arch.prefetch_tensor")


def prefetch_tensor_map(tensor_map: Any) -> None:
    """Begins to bring a map itself to where copies need it."""
    outside("arch.prefetch_tensor_map")


def cp_async_bulk_commit_group() -> None:
    """Makes a group of the thread's copies from shared to global memory since the last one."""
    outside("arch.cp_async_bulk_commit_group")


def cp_async_bulk_wait_group(n: Any, *, read: Any = False) -> None:
    """Waits for all groups of the thread but the `n` newest; n is known at compile time.

    `read`: only till they have read shared memory, so that it may be written to again.
    """
    outside("arch.cp_async_bulk_wait_group")
