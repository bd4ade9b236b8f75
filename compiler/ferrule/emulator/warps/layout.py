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
FRAME: Final = 896

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
REDUCED: Final = 384
"""The same of each barrier, while threads arrive."""
BLOCK_BYTES: Final = 512

ALL_ONES: Final = 0xFFFFFF
FUEL_AT_ONCE: Final = 4096

# What `step` returns.
DONE, YIELD, FAILED = 0, 1, 2

PARAMETER_SIZE: Final = 336

FAULTS: Final = (
    "none", "memory", "misaligned", "space", "sync", "trap", "assert", "deadlock", "stack",
    "sync",
)  # fmt: skip
"""The kinds of faults by their number."""
MEMORY, MISALIGNED, SPACE, SYNC, TRAP, ASSERT, DEADLOCK, STACK, LANE = range(1, 10)
