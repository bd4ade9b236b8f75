"""Asynchronous copies, and kernels that begin early, available in `arch`; see `faces`."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


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
