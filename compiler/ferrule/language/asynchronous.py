"""Copies in the background, and kernels that begin early, as `arch` has them; see `faces`."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def cp_async(dst: Any, src: Any, count: Any, *, cache: str = "always", pred: Any = None) -> None:
    """Begins a copy of `count` elements from global to shared memory: 4, 8 or 16 bytes.

    Both pointers are multiples of so many bytes.  Where `pred` is false, zeros are written and
    nothing is read.  `cache`: "always", or "global" (only of 16 bytes), which leaves L1 alone.
    Until `cp_async_wait_group` the target holds anything.  From sm_80 on.
    """
    outside("arch.cp_async")


def cp_async_commit_group() -> None:
    """Makes a group of the thread's copies since the last one."""
    outside("arch.cp_async_commit_group")


def cp_async_wait_group(n: Any) -> None:
    """Waits for all groups of the thread but the `n` newest; n is known at compile time.

    Other threads see what arrived behind a barrier.
    """
    outside("arch.cp_async_wait_group")


def griddepcontrol_wait() -> None:
    """Waits until the kernels before have ended, and sees what they wrote; needs `use_pdl=True` to
    mean anything.  From sm_90 on."""
    outside("arch.griddepcontrol_wait")


def griddepcontrol_launch_dependents() -> None:
    """Lets the next kernel begin when all blocks have said so or ended; it decides itself with
    `griddepcontrol_wait` when it needs what this one writes.  From sm_90 on."""
    outside("arch.griddepcontrol_launch_dependents")


def cluster_arrive() -> None:
    """Arrives at the barrier of the cluster, where each thread of it arrives, then waits.

    From sm_90 on, as all three.
    """
    outside("arch.cluster_arrive")


def cluster_arrive_relaxed() -> None:
    """The same, without letting the others see what the thread wrote."""
    outside("arch.cluster_arrive_relaxed")


def cluster_wait() -> None:
    """Waits until all threads of the cluster have arrived; what they wrote before is seen."""
    outside("arch.cluster_wait")


def load_peer(ptr: Any, peer_cta_rank_in_cluster: Any) -> Any:
    """The element at the same place in the shared memory of another block of the cluster.

    That block must run still: both see to it with the barrier of the cluster.  From sm_90 on.
    """
    outside("arch.load_peer")


def store_peer(ptr: Any, value: Any, peer_cta_rank_in_cluster: Any) -> None:
    """Writes the element at the same place in the shared memory of another block; see `load_peer`.

    It is seen behind the barrier of the cluster.
    """
    outside("arch.store_peer")


def setmaxregister_increase(reg_count: Any) -> None:
    """Gives each thread of the warpgroup so many registers, a multiple of 8 from 24 to 256.

    Waits until others have given them up.  All warps of the warpgroup run it.  Of the architectures
    with an `a`, from sm_90a on.
    """
    outside("arch.setmaxregister_increase")


def setmaxregister_decrease(reg_count: Any) -> None:
    """Leaves each thread of the warpgroup so many registers; see `setmaxregister_increase`."""
    outside("arch.setmaxregister_decrease")
