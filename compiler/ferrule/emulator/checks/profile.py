"""The profile: what kernels did, as counts. It says nothing of times."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.profile_calls import P_BYTES
from ferrule.emulator.warps import layout
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.machine.work import Work
    from ferrule.emulator.ptx.module import Instruction

Sizes = tuple[int, int, int]

_CLASSES: Final = {
    "memory": ("ld", "st", "ldu", "prefetch", "prefetchu", "discard"),
    "atomics": ("atom", "red"),
    "copies": ("cp",),
    "tensor": ("mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "wmma"),
    "lanes": ("shfl", "vote", "match", "redux", "activemask", "elect"),
    "order": ("bar", "barrier", "membar", "fence", "mbarrier", "griddepcontrol", "nanosleep"),
    "branches": ("bra", "brx", "ret", "exit", "call", "trap"),
    "moves": ("mov", "selp", "cvt", "cvta", "prmt", "mapa", "isspacep", "shf", "setmaxnreg"),
    "comparisons": ("setp", "set", "slct", "testp"),
}  # fmt: skip
_CLASS_OF: Final = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes}


def class_of(item: Instruction) -> str:
    """The class that an instruction is counted in."""
    known = _CLASS_OF.get(item.opcode)
    if known is not None:
        return known
    kinds = set(item.modifiers)
    for name, types in (
        ("float64", {"f64"}),
        ("half", {"f16", "bf16", "f16x2", "bf16x2"}),
        ("float32", {"f32", "f32x2"}),
    ):
        if kinds & types:
            return name
    return "integers"


@dataclass(frozen=True, slots=True)
class Line:
    """The counts of one instruction over all launches; `item` is the instruction."""

    item: Instruction
    warps: int
    """How often a warp executed it."""
    threads: int
    """For how many threads, whose guard holds."""
    present: int
    """How many threads stood there."""
    requests: int
    """Of global memory, with its 32-byte sectors, the fewest that could do, and bytes."""
    sectors: int
    least_sectors: int
    bytes: int
    shared_requests: int
    """Of shared memory, with its wavefronts, the fewest that could do, and bytes."""
    wavefronts: int
    least_wavefronts: int
    shared_bytes: int


@dataclass(slots=True)
class KernelProfile:
    """What all launches of a kernel did together."""

    name: str
    launches: int = 0
    threads: int = 0
    """Threads of all launches."""
    block: Sizes = (1, 1, 1)
    """The block of the last launch, and its bytes of shared memory."""
    shared: int = 0
    lines: tuple[Line, ...] = ()

    @property
    def thread_instructions(self) -> int:
        """Instructions, counted once for each thread."""
        return sum(each.threads for each in self.lines)

    @property
    def warp_instructions(self) -> int:
        """Instructions, counted once for each warp."""
        return sum(each.warps for each in self.lines)

    @property
    def active_lanes(self) -> float:
        """The mean number of threads that stand where a warp is, of 32; 0 without instructions."""
        return sum(each.present for each in self.lines) / max(1, self.warp_instructions)

    def classes(self) -> dict[str, int]:
        """Thread instructions by class, the most first."""
        found: dict[str, int] = {}
        for each in self.lines:
            name = class_of(each.item)
            found[name] = found.get(name, 0) + each.threads
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def moved(self) -> dict[str, int]:
        """Bytes by what moved them, such as `ld.global 4`, with the bytes of one thread."""
        found: dict[str, int] = {}
        for each in self.lines:
            for space, count in (("global", each.bytes), ("shared", each.shared_bytes)):
                if count:
                    width = count // max(1, each.threads)
                    name = f"{each.item.opcode}.{space} {width}"
                    found[name] = found.get(name, 0) + count
        return dict(sorted(found.items()))

    def total(self, name: str) -> int:
        """A field of all lines together."""
        return sum(getattr(each, name) for each in self.lines)


@dataclass(slots=True)
class _Counters:
    kept: mmap.mmap
    address: int
    instructions: Sequence[Instruction]


@dataclass(slots=True)
class Profile:
    """The counts of kernels, by name; as text it is a table."""

    kernels: dict[str, KernelProfile] = field(default_factory=dict)
    arch: str = ""
    _counters: dict[tuple[str, int], _Counters] = field(default_factory=dict)

    def attach(self, work: Work, name: str, instructions: Sequence[Instruction]) -> None:
        """Let the blocks of a launch count."""
        key = name, id(instructions)
        if key not in self._counters:
            size = max(1, len(instructions)) * P_BYTES
            kept = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
            self._counters[key] = _Counters(kept, address, instructions)
        for block in work.blocks_of_cluster:
            place = ctypes.c_uint64.from_address(block + layout.COUNTED)
            place.value = self._counters[key].address

    def launched(self, work: Work, name: str, grid: Sizes) -> None:
        """Add a launch that is over."""
        one = self.kernels.setdefault(name, KernelProfile(name))
        one.launches += 1
        one.threads += prod(grid) * prod(work.key[0])
        one.block, one.shared = work.key[0], work.key[1]
        one.lines = tuple(self._lines(name))

    def _lines(self, name: str) -> Iterator[Line]:
        for (kernel, _), each in self._counters.items():
            if kernel == name:
                for number, item in enumerate(each.instructions):
                    counts = struct.unpack_from("<11Q", each.kept, number * P_BYTES)
                    yield Line(item, *counts)

    def __str__(self) -> str:
        from ferrule.emulator.checks.profile_text import table

        return table(self)

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return self.to_html()

    def to_html(self) -> str:
        """A part of a page, with tables and bars, that needs nothing from elsewhere."""
        from ferrule.emulator.checks.profile_page import fragment

        return fragment(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the same as a page of its own."""
        from ferrule.emulator.checks.profile_page import page

        Path(path).write_text(page(self), encoding="utf-8")
