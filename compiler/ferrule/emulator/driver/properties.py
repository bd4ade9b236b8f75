"""The numbers of GPUs: what cuDeviceGetAttribute says of each architecture.

Limits of a compute capability are those of the CUDA programming guide; sizes and clocks are those
of one GPU of that architecture, which the name of the device says. A newer architecture that is
not listed has the numbers of the newest one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.compiler.cuda.archs import capability
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Properties:
    """A GPU. Shared memory is in KiB, memory in GiB, the L2 cache in MiB, clocks in MHz."""

    model: str
    processors: int
    memory: int
    clock: int
    memory_clock: int
    bus: int
    l2: int
    warps: int
    blocks: int
    shared: int
    shared_per_block: int
    registers_per_block: int = 65536


_TABLE: Final[Mapping[int, Properties]] = MappingProxyType(
    {
        50: Properties("GeForce GTX 750 Ti", 5, 2, 1085, 2700, 128, 2, 64, 32, 64, 48),
        52: Properties("GeForce GTX 980", 16, 4, 1216, 3505, 256, 2, 64, 32, 96, 48),
        53: Properties("Tegra X1", 2, 4, 998, 1600, 64, 1, 64, 32, 64, 48, 32768),
        60: Properties("Tesla P100", 56, 16, 1481, 715, 4096, 4, 64, 32, 64, 48),
        61: Properties("GeForce GTX 1080", 20, 8, 1734, 5005, 256, 2, 64, 32, 96, 48),
        62: Properties("Tegra X2", 2, 8, 1300, 1600, 128, 1, 64, 32, 64, 48, 32768),
        70: Properties("Tesla V100", 80, 16, 1530, 877, 4096, 6, 64, 32, 96, 96),
        72: Properties("Xavier", 8, 32, 1377, 2133, 256, 1, 64, 32, 96, 96),
        75: Properties("Tesla T4", 40, 16, 1590, 5001, 256, 4, 32, 16, 64, 64),
        80: Properties("A100", 108, 40, 1410, 1215, 5120, 40, 64, 32, 164, 163),
        86: Properties("A10", 72, 24, 1695, 6251, 384, 6, 48, 16, 100, 99),
        87: Properties("Orin", 16, 32, 1300, 3199, 256, 4, 48, 16, 164, 163),
        89: Properties("L4", 58, 24, 2040, 6251, 192, 48, 48, 24, 100, 99),
        90: Properties("H100", 132, 80, 1980, 2619, 5120, 50, 64, 32, 228, 227),
        100: Properties("B200", 148, 180, 1965, 3996, 8192, 126, 64, 32, 228, 227),
        103: Properties("B300", 148, 270, 1920, 3996, 8192, 126, 64, 32, 228, 227),
        110: Properties("Thor", 20, 128, 1575, 4266, 256, 32, 48, 24, 228, 227),
        120: Properties("GeForce RTX 5090", 170, 32, 2407, 14001, 512, 96, 48, 24, 100, 99),
    }
)


def properties(arch: str) -> Properties:
    """Those of an architecture, `sm_90a`."""
    wanted = 110 if capability(arch) == 101 else capability(arch)  # renamed in CUDA 13
    return _TABLE[max(each for each in _TABLE if each <= wanted)]


def compute_capability(arch: str) -> tuple[int, int]:
    """`(9, 0)` for sm_90a."""
    return divmod(capability(arch), 10)


# The same for every architecture (CUDA C++ Programming Guide, technical specifications).
WARP: Final = 32
THREADS_PER_BLOCK: Final = 1024
GRID: Final = (0x7FFFFFFF, 65535, 65535)
BLOCK: Final = (1024, 1024, 64)
SHARED_BY_DEFAULT: Final = 48 << 10
_RESERVED: Final = 1 << 10
"""Bytes of shared memory that each block costs besides its own, from sm_80 on."""


def reserved_shared(arch: str) -> int:
    """Bytes of shared memory that the system takes of each block."""
    return _RESERVED if capability(arch) >= 80 else 0


def most_shared(arch: str) -> int:
    """Bytes of shared memory that a block can be allowed."""
    return properties(arch).shared_per_block << 10


def attributes(arch: str, ordinal: int) -> Mapping[int, int]:
    """The value of each `CUdevice_attribute` that the emulated GPU knows."""
    p, (major, minor) = properties(arch), compute_capability(arch)
    newer = {120: int(major >= 9), 127: int(major >= 9)}
    limits = {1: THREADS_PER_BLOCK, 8: SHARED_BY_DEFAULT, 9: 65536, 10: WARP, 11: 0x7FFFFFFF}
    limits |= dict(zip(range(2, 8), (*BLOCK, *GRID), strict=True))
    limits |= {12: p.registers_per_block, 82: 65536, 97: most_shared(arch), 81: p.shared << 10}
    limits |= {39: p.warps * WARP, 106: p.blocks, 111: reserved_shared(arch)}
    sizes = {13: p.clock * 1000, 16: p.processors, 36: p.memory_clock * 1000, 37: p.bus}
    sizes |= {38: p.l2 << 20, 75: major, 76: minor, 14: 512, 30: 512, 51: 32, 40: 3, 87: 2}
    place = {33: ordinal + 1, 34: 0, 50: 0, 85: ordinal, 130: 0, 131: -1, 134: 0}
    yes = dict.fromkeys((15, 19, 31, 41, 78, 79, 80, 83, 90, 95, 99, 115), 1)
    # What is not emulated: textures, virtual memory, IPC, operations of streams on memory …
    no = dict.fromkeys((17, 18, 20, 32, 35, 84, 86, 88, 89, *range(91, 95), 96, 98), 0)
    no |= dict.fromkeys(
        (*range(100, 106), 107, 108, 109, 110, *range(112, 115), *range(116, 120)), 0
    )
    no |= dict.fromkeys((*range(116, 120), *range(121, 127), 128, 129, 132, 133), 0)
    no |= dict.fromkeys((*range(21, 30), *range(42, 50), *range(52, 75), 77, *range(135, 148)), 0)
    return MappingProxyType(no | newer | yes | limits | sizes | place)
