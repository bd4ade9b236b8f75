"""The checks and counts of one machine, as its kernels need them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.init import Init, InitWatch
from ferrule.emulator.checks.profile import Profile
from ferrule.emulator.checks.profile_calls import ProfileWatch
from ferrule.emulator.checks.race import Race
from ferrule.emulator.checks.race_calls import RaceWatch
from ferrule.emulator.checks.race_report import race_text
from ferrule.emulator.checks.watch import Watch, Watches
from ferrule.emulator.warps import layout

if TYPE_CHECKING:
    from ferrule.emulator.machine.memory import Memory
    from ferrule.emulator.machine.work import Work
    from ferrule.emulator.ptx.module import Instruction

Places = Mapping[str, tuple[str, int]]


class Parts:
    """The parts of a machine for the requested checks."""

    def __init__(self, checks: frozenset[str], memory: Memory) -> None:
        self._memory: Final = memory
        self._race: Final = Race(memory) if "race" in checks else None
        self._init: Final = Init(memory) if "init" in checks else None
        self._profile: Profile | None = None

    def watch(self) -> Watch | None:
        """What a kernel is translated with; None where nothing is written into it."""
        parts: list[Watch] = [RaceWatch()] if self._race is not None else []
        if self._init is not None:
            parts.append(InitWatch())
        if self._profile is not None:
            parts.append(ProfileWatch())
        return Watches(parts) if parts else None

    @property
    def idle(self) -> bool:
        """Whether nothing is noted while kernels run."""
        return self._race is None and self._init is None and self._profile is None

    @property
    def profile(self) -> Profile | None:
        """Where kernels are counted. One that is translated with it is translated anew without."""
        return self._profile

    @profile.setter
    def profile(self, profile: Profile | None) -> None:
        self._profile = profile

    def begin(self) -> None:
        """A launch begins."""
        if self._init is not None:
            self._init.begin()
        if self._race is not None:
            self._race.begin()

    def attach(self, work: Work, kernel: str, instructions: Sequence[Instruction]) -> None:
        """Blocks are about to execute with this memory."""
        if self._init is not None:
            self._init.attach(work)
        if self._profile is not None:
            self._profile.attach(work, kernel, instructions)
        if self._race is not None:
            self._race.attach(work)

    def end(
        self,
        work: Work,
        kernel: str,
        grid: tuple[int, int, int],
        instructions: Sequence[Instruction],
    ) -> None:
        """It is over."""
        if self._profile is not None:
            self._profile.launched(work, kernel, grid)
        if self._race is not None:
            self._race.end(kernel, instructions)

    def text(
        self, warp: int, instructions: Sequence[Instruction], places: Places
    ) -> tuple[str, str] | None:
        """Kind and text of the fault that a check has found in a warp; None for other faults."""
        kind = ctypes.c_uint32.from_address(warp + layout.FAULT).value
        if kind not in (layout.RACE, layout.INIT):
            return None
        block = ctypes.c_uint64.from_address(warp + layout.BLOCK).value
        address = ctypes.c_uint64.from_address(warp + layout.FAULT_ADDRESS).value
        named = self._named(block, address, places)
        if kind == layout.INIT:
            return "init", _init_text(warp, block, instructions, named)
        return "race", race_text(block, instructions, named)

    def _named(self, block: int, address: int, places: Places) -> str:
        """An address as a part of a variable or an allocation."""
        base, size = (ctypes.c_uint64 * 2).from_address(block + layout.SHARED_BASE)
        if base <= address < base + size:
            return _shared(address - base, places)
        found = self._memory.find(address)
        if found is None:
            return f"{address:#x}"
        start, length = found
        for name, (space, place) in places.items():
            if place == start and space in ("global", "const"):
                return f"{name}+{address - start}"
        return f"byte {address - start} of the {length} bytes at {start:#x} in global memory"


def _init_text(warp: int, block: int, instructions: Sequence[Instruction], named: str) -> str:
    from ferrule.emulator.machine.faults import where, word

    lane = word(warp, layout.FAULT_LANE)
    thread, place = (
        tuple(word(base, at) for at in each)
        for base, each in (
            (warp, [at + 4 * lane for at in layout.TID]),
            (block, [layout.CTAID + 4 * i for i in range(3)]),
        )
    )
    item = instructions[word(warp, layout.FAULT_INDEX)]
    return (
        f"{item.name} of {word(warp, layout.FAULT_SIZE)} bytes reads {named}, which nobody has "
        f"written; block {place}, thread {thread}; {where(item)}"
    )


def _shared(offset: int, places: Places) -> str:
    """A place in shared memory, by the variable that begins before it."""
    before = [(at, name) for name, (space, at) in places.items() if space == "shared"]
    before = [each for each in before if each[0] <= offset]
    if not before:
        return f"shared memory at {offset}"
    at, name = max(before)
    return f"shared memory, {name.partition('@')[0]}+{offset - at}"
