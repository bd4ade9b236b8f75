"""What a launch can be: CUDA's limits, on every target.

From the CUDA C++ Programming Guide, technical specifications for compute capability 5.0 and later:
1024 threads a block, at most 64 of them along z; a grid of at most 2**31 - 1 by 65535 by 65535
blocks; 227 KiB of shared memory, static and dynamic together, as GPUs of compute capability 9.0 and
10.0 have it: others have less, and what they have is known at the call.  A cluster has 8
blocks at most on every GPU that has clusters, and 16 where the kernel is allowed to and the GPU has
room for them (CUDA C++ Programming Guide, "Thread Block Clusters"; Hopper tuning guide).
"""

from __future__ import annotations

from typing import Final

MAX_THREADS: Final = 1024
BLOCK_LIMITS: Final = (1024, 1024, 64)
GRID_LIMITS: Final = (2**31 - 1, 65535, 65535)
SMEM_LIMIT: Final = 227 << 10
CLUSTER_LIMIT: Final = 16
PORTABLE_CLUSTER: Final = 8
"""The blocks of a cluster that every kernel may have."""
