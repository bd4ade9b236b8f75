"""Where things lie in the memory of a warp and of a block, in bytes from its start.

A lane is *live* until it exits, *ready* while it is live and waits at no barrier of the block, and
*parked* while it waits for other lanes of its warp at the instruction that its counter names.
"""

from __future__ import annotations

from typing import Final

LANES: Final = 32

# A warp.
LIVE: Final = 0
READY: Final = 4
PARKED: Final = 8
KEY: Final = 12
"""0 where the smallest block number goes first, `ALL_ONES` where the greatest does."""
FUEL: Final = 16
"""Jumps back until other warps have their turn."""
WARP_ID: Final = 20
FAULT: Final = 24
FAULT_LANE: Final = 28
FAULT_ADDRESS: Final = 32
FAULT_INDEX: Final = 40
FAULT_SIZE: Final = 44
BLOCK: Final = 48
SHARED: Final = 56
PARAMETERS: Final = 64
LOCAL: Final = 72
LOCAL_STRIDE: Final = 80
LOCAL_SIZE: Final = 88
"""The bytes that a thread has; its stride is at least so many."""
FAULT_FILE: Final = 104
FAULT_FUNCTION: Final = 112
INITIAL: Final = 96
"""The lanes that have a thread."""
PC: Final = 128
TID: Final = (256, 384, 512)
BARRIER: Final = 640
"""The barrier that each lane waits at."""
RESULT: Final = 768
"""What a barrier found out about a predicate: threads where it holds, 65536 times the others."""
WAIT_LANES: Final = 896
"""The lanes that found an mbarrier incomplete when they looked last, and at which instruction."""
WAITED: Final = 900
WAIT_INDEX: Final = 904
ARRIVED: Final = 908
"""The lanes that have arrived at the barrier of the cluster and not waited, and in which phase."""
ARRIVED_PHASE: Final = 912
ASYNC: Final = 920
"""The address of what the warp has of asynchronous copies and products; 0 if a kernel has none."""
PASSED: Final = 928
"""The lanes that met others at an instruction while a lane waited there for them with another mask,
and the lanes that waited so."""
MIXED: Final = 932
MEMBERS: Final = 960
"""The mask that each parked lane waits with."""
FRAME: Final = 1088

# A block.
CTAID: Final = 0
NTID: Final = 16
NCTAID: Final = 32
SHARED_BASE: Final = 48
SHARED_SIZE: Final = 56
WARPS: Final = 64
THREADS: Final = 68
"""How many live."""
FIRST_WARP: Final = 72
WARP_STRIDE: Final = 80
SHADOW: Final = 88
ARENA: Final = 96
GLOBAL_SIZE: Final = 104
"""The part of the arena that is global memory; the memory of blocks and threads lies behind it."""
ARENA_SIZE: Final = 112
PRINT: Final = 120
TOTAL_SHARED: Final = 128
DYNAMIC_SHARED: Final = 132
RESERVED_START: Final = 136
RESERVED_SIZE: Final = 140
"""Where in its shared memory the system's lies, which begins as zeros, and how much that is."""
BARRIERS: Final = 144
"""16 of: threads that arrived, threads that must (0 for all that live)."""
NEXT: Final = 272
END: Final = 280
CURSOR: Final = 288
RANDOM: Final = 296
YIELDS: Final = 304
BEGUN: Final = 308
ALL_THREADS: Final = 312
INSTRUCTIONS: Final = 320
LAUNCH_ID: Final = 328
GRID_WORKSPACE: Final = 352
"""The address of what a cooperative launch has for barriers of the grid; 0 for other launches."""
WATCHED: Final = 360
"""What the race check has of the block; 0 without it."""
INITIALISED: Final = 344
"""What the check of reads of fresh memory has of the block; 0 without it."""
COUNTED: Final = 368
"""What is counted of each instruction; 0 while nobody profiles."""
REDUCED: Final = 384
"""The same of each barrier, while threads arrive."""
CLUSTER: Final = 512
RANK: Final = 520
CLUSTER_CTAID: Final = 524
IDLE: Final = 536
"""Looks at mbarriers in a row that found them incomplete, of a cluster's first block."""
ALL_WARPS: Final = 540
"""Warps of all blocks of the cluster, of its first block."""
PATIENCE: Final = 544
"""How often warps of a block may end their turn in a loop before other blocks have theirs."""
TURNS: Final = 548
"""Turns of warps until the caller of the scheduler has one, of a cluster's first block."""
ORDER_STEP: Final = 552
ORDER_START: Final = 560
ORDER_COUNT: Final = 568
"""The block (or cluster) that comes as number n is (start + n * step) % count; n where it is 0."""
BLOCK_BYTES: Final = 576

# A cluster: what its blocks have together. A block alone is a cluster of one.
C_SIZE: Final = 0
C_DIM: Final = 4
C_COUNTS: Final = 16
C_ID: Final = 28
C_PHASE: Final = 40
C_MISSING: Final = 44
"""Threads that the barrier of the cluster still waits for in this phase."""
C_LIVE: Final = 48
C_FIRST: Final = 52
"""The bulk copies under way: numbers of the first entry and behind the last."""
C_END: Final = 56
C_EXPLICIT: Final = 60
C_BLOCKS: Final = 64
"""The addresses of its blocks by rank."""
MOST_BLOCKS: Final = 16
C_ENTRIES: Final = 256
MOST_BULK: Final = 512
B_BYTES: Final = 128
CLUSTER_BYTES: Final = C_ENTRIES + MOST_BULK * B_BYTES

# What a warp has of asynchronous copies and products.
A_FIRST: Final = 0
A_END: Final = 4
A_WGMMA: Final = 8
A_WGMMA_GROUP: Final = 12
A_WGMMA_END: Final = 16
"""The first product under way, committed groups of them, and behind the last product."""
A_GROUP: Final = 128
"""Committed groups of cp.async of each lane, and of bulk copies."""
A_BULK_GROUP: Final = 256
A_RESET: Final = 384
A_PRODUCTS: Final = 384
MOST_PRODUCTS: Final = 64
P_BYTES: Final = 64
A_ENTRIES: Final = A_PRODUCTS + MOST_PRODUCTS * P_BYTES
MOST_ENTRIES: Final = 64
E_BYTES: Final = 832
ASYNC_BYTES: Final = A_ENTRIES + MOST_ENTRIES * E_BYTES

ALL_ONES: Final = 0xFFFFFF
FUEL_AT_ONCE: Final = 4096
CLUSTER_BARRIER: Final = 16
"""What BARRIER has for the barrier of the cluster."""

# What `step` returns.
DONE, YIELD, FAILED = 0, 1, 2

PARAMETER_SIZE: Final = 336

FAULTS: Final = (
    "none", "memory", "misaligned", "space", "sync", "trap", "assert", "deadlock", "stack",
    "sync", "race", "init", "sync",
)  # fmt: skip
"""The kinds of faults by their number."""
MEMORY, MISALIGNED, SPACE, SYNC, TRAP, ASSERT, DEADLOCK, STACK, LANE, RACE, INIT = range(1, 12)
ENDED: Final = 12
"""An access of the shared memory of a block that has ended."""
