"""CUDA's limits for launches, on every target, and the messages of calls that exceed them.

From the CUDA C++ Programming Guide, technical specifications for compute capability 5.0 and later:
1024 threads a block, at most 64 of them along z; a grid of at most 2**31 - 1 by 65535 by 65535
blocks; 227 KiB of shared memory, static and dynamic together, as GPUs of compute capability 9.0 and
10.0 have it: others have less or more, see `shared_limit`.  A cluster has 8 blocks at most on every
GPU that has clusters, and 16 on some, as an H100, for kernels that are allowed to have them (NVIDIA
Hopper Tuning Guide, "Thread Block Clusters").

The functions return the texts of faults, with a placeholder for each value.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ferrule.compiler.artefacts import literal

MAX_THREADS: Final = 1024
BLOCK_LIMITS: Final = (1024, 1024, 64)
GRID_LIMITS: Final = (2**31 - 1, 65535, 65535)
SMEM_LIMIT: Final = 227 << 10
CLUSTER_LIMIT: Final = 16
PORTABLE_CLUSTER: Final = 8
"""The number of blocks of a cluster that every kernel may use."""
CLUSTER_ARCH: Final = 90
"""Ten times the compute capability of the first GPUs with clusters."""
REGISTERS: Final = 1 << 16
"""The registers of an SM, and so of a block: no GPU since compute capability 5.0 has more."""
# The largest dynamic shared memory of a block, by compute capability: CUDA C++ Programming Guide,
# technical specifications. Since 8.0 it is without the 1 KiB of each block that CUDA reserves.
_KIB: Final = MappingProxyType(
    {
        48: (50, 52, 53, 60, 61, 62),
        64: (75,),
        96: (70, 72),
        99: (86, 89, 120, 121),
        163: (80, 87),
        227: (90, 100, 101, 103, 110),
        327: (107,),
    }
)
_SHARED: Final = MappingProxyType({each: kib << 10 for kib, of in _KIB.items() for each in of})
MOST_SHARED: Final = max(_SHARED.values())
"""The largest limit of a block's shared memory on any GPU, in bytes."""


def shared_limit(capability: int, or_newer: bool = False) -> int | None:
    """The bytes of shared memory that a block may use, static and dynamic together, for ten times a
    compute capability, or on any GPU from that on; None if unknown."""
    if capability not in _SHARED:
        return None
    newer = (limit for each, limit in _SHARED.items() if each > capability and or_newer)
    return max([_SHARED[capability], *newer])


def beyond(kernel: str, name: str, limits: tuple[int, int]) -> str:
    """Fault: a size is outside of its limits.  Value: the size."""
    return f"{_head(kernel)}expected {name} to be in [{limits[0]}, {limits[1]}], but got {{}}"


def another_size(kernel: str, name: str, wanted: int) -> str:
    """Fault: a size differs from the only one that a kernel supports.  Value: the size."""
    return f"{_head(kernel)}expected {name} to be {wanted}, which it was compiled for, but got {{}}"


def too_many_threads(kernel: str, most: int = MAX_THREADS) -> str:
    """Fault: a block is too large.  Values: its number of threads, and its three sizes."""
    what = f"at most {most} threads a block"
    return f"{_head(kernel)}expected {what}, but got {{}} (block {{}}, {{}}, {{}})"


def too_many_blocks(kernel: str) -> str:
    """Fault: a cluster is too large.  Values: its number of blocks, and its three sizes."""
    what = f"at most {CLUSTER_LIMIT} blocks a cluster"
    return f"{_head(kernel)}expected {what}, but got {{}} (cluster {{}}, {{}}, {{}})"


def no_whole_clusters(kernel: str, axis: str) -> str:
    """Fault: a grid does not consist of whole clusters.  Values: the sizes of cluster and grid."""
    what = f"grid {axis} to be a multiple of cluster {axis}"
    return f"{_head(kernel)}expected {what}, {{}}, but got {{}}"


def _head(kernel: str) -> str:
    return literal(f"Invalid launch of {kernel}: ")
