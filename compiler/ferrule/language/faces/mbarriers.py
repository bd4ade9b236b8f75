"""Barriers in shared memory and copies that arrive at them, available in `arch`; see `base`.

A barrier is at a pointer into shared memory, to an `Int64` that no other code reads or writes.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def mbarrier_init(mbar_ptr: Any, cnt: Any) -> None:
    """Initialises a barrier for `cnt` arrivals; other threads see it after a `sync_threads()`.

    From sm_90 on, like all functions here.
    """
    outside("arch.mbarrier_init")


def mbarrier_init_fence() -> None:
    """Makes initialised barriers visible to copies and to other blocks of the cluster."""
    outside("arch.mbarrier_init_fence")


def mbarrier_arrive(mbar_ptr: Any, peer_cta_rank_in_cluster: Any = None) -> None:
    """Arrives at a barrier, or at the one at the same place of another block of the cluster."""
    outside("arch.mbarrier_arrive")


def cp_async_mbarrier_arrive_noinc(mbar_ptr: Any) -> None:
    """Arrives at a barrier as soon as all is there that the thread's `cp_async` so far copy.

    It is one of the arrivals that the barrier was initialised for.  The thread goes on.
    """
    outside("arch.cp_async_mbarrier_arrive_noinc")


def mbarrier_expect_tx(mbar_ptr: Any, bytes: Any) -> None:
    """Makes the current phase of a barrier wait for this number of bytes more."""
    outside("arch.mbarrier_expect_tx")


def mbarrier_arrive_and_expect_tx(mbar_ptr: Any, bytes: Any) -> None:
    """`mbarrier_expect_tx` and `mbarrier_arrive` in one step."""
    outside("arch.mbarrier_arrive_and_expect_tx")


def mbarrier_wait(mbar_ptr: Any, phase: Any) -> None:
    """Waits until the phase with this number, 0 or 1, has ended; the first is 0."""
    outside("arch.mbarrier_wait")


def mbarrier_try_wait(mbar_ptr: Any, phase: Any) -> Any:
    """Whether the phase with this number has ended, after the thread has waited for a while.

    On a CPU it waits until the phase has ended.
    """
    outside("arch.mbarrier_try_wait")


def cp_async_bulk(dst: Any, src: Any, bytes: Any, mbar_ptr: Any = None) -> None:
    """Begins a copy of this number of bytes from global to shared memory; they arrive at a barrier.

    Copies from shared to global memory have no barrier: `cp_async_bulk_commit_group` makes a group
    of them.  One thread requests the whole copy.  The size and both addresses are multiples of 16
    bytes.
    """
    outside("arch.cp_async_bulk")


def fence_proxy(kind: str, space: str | None = None) -> None:
    """Orders the thread's earlier memory accesses before later accesses by copies.

    `kind`: "alias", "async", "async.global" or "async.shared", of the `space` "cta" or "cluster".
    """
    outside("arch.fence_proxy")
