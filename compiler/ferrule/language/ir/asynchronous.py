"""Ops of the kernel IR that hand work to others: copies in the background, the next kernel.

A thread's copies since its last `commit` are a group when it commits.  `wait` with a number waits
until all groups of the thread but so many newest have arrived; other threads see what arrived
behind a barrier.  Until then the target holds anything, and nobody may write to source or target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ferrule.language.ir.operation import Effects, Operation
from ferrule.language.ir.values import Value

CacheMode = Literal["always", "global"]
ControlKind = Literal[
    "cp_async_commit_group",
    "cp_async_wait_group",
    "cp_async_bulk_commit_group",
    "cp_async_bulk_wait_group",
    "cp_async_bulk_wait_group_read",
    "griddepcontrol_wait",
    "griddepcontrol_launch_dependents",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_wait",
    "mbarrier_init_fence",
    "fence_proxy_alias",
    "fence_proxy_async",
    "fence_proxy_async_global",
    "fence_proxy_async_shared_cta",
    "fence_proxy_async_shared_cluster",
    "setmaxregister_increase",
    "setmaxregister_decrease",
]

WITH_AMOUNT: Final[tuple[ControlKind, ...]] = (
    "cp_async_wait_group",
    "cp_async_bulk_wait_group",
    "cp_async_bulk_wait_group_read",
    "setmaxregister_increase",
    "setmaxregister_decrease",
)
"""Those of which there is a number."""
COPY_BYTES: Final = (4, 8, 16)
"""What one `AsyncCopy` can copy."""


@dataclass(frozen=True, slots=True, eq=False)
class AsyncCopy(
    Operation,
    text="async_copy {target}, {source}, {count}{holds:word=if} {cache}",
    effects=("reads", "writes", "orders"),
    writes=("target",),
    place="kernel",
):
    """Copies the first `count` elements of a tensor of one dim to shared memory: PTX's `cp.async`.

    The bytes are 4, 8 or 16, and both addresses a multiple of that.  Where `holds`, a Boolean, is
    false, zeros are written and nothing is read.  `cache`: keeps the lines in all caches, or, of 16
    bytes, in those that the GPU's multiprocessors share.
    """

    target: Value
    source: Value
    count: int
    cache: CacheMode = "always"
    holds: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Control(Operation, text="{words}", effects=("orders",), place="kernel"):
    """Says something of the thread's work that has no operands; `amount` where it has a number.

    `cp_async_commit_group`, `cp_async_wait_group`: see above; those of `bulk` are the same of
    copies from shared memory, which `…_read` waits for till they have read it.
    `griddepcontrol_wait`: waits until the kernels before this one, whose end the launch did not
    wait for, have ended, and sees what they wrote.  `griddepcontrol_launch_dependents`: the next
    kernel may begin when all blocks have said so or ended.  The fences order what the thread and
    what copies do to memory.  `cluster_wait`: waits until all threads of the cluster have done
    `cluster_arrive`, or, without letting them see its memory, `cluster_arrive_relaxed`.
    `setmaxregister_…`: the warpgroup has `amount` registers a thread from now on.
    """

    kind: ControlKind
    amount: int = 0

    @property
    def effects(self) -> Effects:
        """See `Operation`."""
        waits: Effects = frozenset(("waits",))
        return self.facts.effects | waits if self.kind == "cluster_wait" else self.facts.effects

    @property
    def words(self) -> str:
        """What is said, with the number where there is one."""
        return f"{self.kind} {self.amount}" if self.kind in WITH_AMOUNT else self.kind
