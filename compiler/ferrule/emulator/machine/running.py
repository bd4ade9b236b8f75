"""How the blocks of a launch are executed: in slices, on several cores, or side by side.

A kernel's code is first what is compiled quickly, and what is fast where much time goes by.  The
quick code is of loops over single lanes; the fast code has vectors, and takes ten times as long
to compile. Both have the same frame, so that one can go on where the other stopped. Code is kept by
its text: the same kernel is compiled once in a process.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Final

from ferrule.emulator.machine.cores import WORTH, Pieces, Team, threads
from ferrule.emulator.machine.faults import Fault, deadlock, thread_fault
from ferrule.emulator.machine.jit import Code, compiled, helper_addresses, scheduler_code
from ferrule.emulator.machine.scheduler import FAILED, OVER, RESTED, SPINNING
from ferrule.emulator.machine.work import Work
from ferrule.emulator.ptx.module import Instruction, Register
from ferrule.emulator.warps.flow import WAITING, Flow
from ferrule.emulator.warps.liveness import reads_and_writes
from ferrule.emulator.warps.translate import STEP, Translation
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.machine.modules import Machine


_KEPT: Final = 512
_SECONDS_AN_INSTRUCTION: Final = 0.002
"""What compiling the fast code costs, about: so long the quick one may run."""
_LEAST: Final = 0.02

QUICK, FAST = 1, 8
"""The lanes that an iteration of a loop does."""


class Tiers:
    """The addresses of a kernel's function, the better the more it was used."""

    def __init__(self, translation: Translation) -> None:
        self._translation: Final = translation
        self._limit: Final = max(_LEAST, _SECONDS_AN_INSTRUCTION * len(translation.instructions))
        self._spent = 0.0
        self._code: Code | None = None
        self._before: Code | None = None
        self.fast = False

    def step(self) -> int:
        """The function's address."""
        if self._code is None:
            self._code = self._compiled(QUICK)
        return self._code.addresses[STEP]

    def spent(self, seconds: float) -> None:
        """The kernel has run for so long: after a while it becomes faster."""
        self._spent += seconds
        if not self.fast and self._spent > self._limit:
            self.fast = True
            # Products under way have addresses in the code that began them.
            self._before = self._code
            self._code = self._compiled(FAST)

    def _compiled(self, part: int) -> Code:
        helpers = tuple(sorted(self._translation.helpers))
        return _code(self._translation.text(part), helpers, part == FAST)


@lru_cache(maxsize=_KEPT)
def _code(text: str, helpers: tuple[str, ...], fast: bool) -> Code:
    return compiled(text, (STEP,), helper_addresses(helpers), 1 if fast else 0)


Sizes = tuple[int, int, int]
_RESIDENT: Final = 128
"""Blocks that run side by side where they wait for each other."""

_FIRST_THREADS: Final = 16_384
"""Threads that run before it is asked whether faster code is worth its time."""

_FIRST_TURNS: Final = 4096
_MOST_TURNS: Final = 1 << 30
_SHORT, _LONG = 0.02, 0.1
"""Seconds that the scheduler runs without a look at signals of the process, such as Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What all blocks of a launch have in common."""

    grid: Sizes
    smem: int
    parameters: bytes
    workspace: int
    """Where the barriers of a grid count; 0 if its blocks may not wait for each other."""

    def begin(self, work: Work, random: int) -> None:
        """Give memory for a block what is new with this launch."""
        work.start(self.grid, self.smem, self.parameters, random, self.workspace)


class Runner:
    """The blocks of one kernel; `new_work` makes memory for more of them, of a `Work.key`."""

    def __init__(
        self,
        name: str,
        machine: Machine,
        translation: Translation,
        flow: Flow,
        places: Mapping[str, tuple[str, int]],
        new_work: Callable[[Sizes, int, Sizes, int], Work],
    ) -> None:
        self.name: Final = name
        self._machine: Final = machine
        self._translation: Final = translation
        self._places: Final = places
        self._new_work: Final = new_work
        self._tiers: Final = Tiers(translation)
        self._more: Final[list[Work]] = []
        """Memory for the blocks of other threads."""
        self._flow: Final = flow
        self._turns = _FIRST_TURNS
        self._waits: Final = {
            number: block.instructions[0]
            for number, block in enumerate(flow.blocks)
            if block.instructions and block.instructions[0].opcode in WAITING
        }

    def close(self) -> None:
        """Give the memory back that it keeps."""
        while self._more:
            self._more.pop().close()

    def run(self, work: Work, total: int, launch: Launch) -> None:
        """All blocks, to their end.  Fault where a thread fails, or none can go on."""
        said = self._slices(work, total, launch)
        if said == SPINNING and total > 1:
            self._run_together([work], [range(work.next, total)], launch)
        while said == SPINNING:
            said = self._timed(work)
        if said != OVER:
            raise self._fault(work, said)
        if self._machine.random:
            self._machine.random = work.random or 1

    def _slices(self, work: Work, total: int, launch: Launch) -> int:
        """All blocks; more at a time as they go, so that the code can become faster in between,
        and on several cores what takes longer."""
        done, count = 0, max(1, _FIRST_THREADS // work.threads)
        threads = self._threads(total)
        while True:
            whole = self._tiers.fast and threads == 1
            end = total if whole else min(total, done + count)
            work.blocks(done, end)
            start = perf_counter()
            said = self._timed(work)
            if said != OVER or end == total:
                return said
            left = (perf_counter() - start) * (total - end) / (end - done)
            if threads > 1 and self._tiers.fast and left > WORTH:
                return self._on_cores(work, Pieces(end, total, threads), threads, launch)
            done, count = end, 2 * count

    def _threads(self, total: int) -> int:
        """How many threads may execute the blocks of a launch."""
        # Only one thread gives the same random schedule again, and what checks and the profile
        # note while kernels run is noted by one thread.
        if self._machine.random or not self._machine.parts.idle or total == 1:
            return 1
        count = min(threads(), total)
        return count if count == 1 or self._independent else 1

    @cached_property
    def _independent(self) -> bool:
        return independent(self._flow)

    def _on_cores(self, work: Work, pieces: Pieces, count: int, launch: Launch) -> int:
        """Blocks that have nothing to do with each other."""
        while len(self._more) < count - 1:
            self._more.append(self._new_work(*work.key))
        works = [work, *self._more[: count - 1]]
        for each in works[1:]:
            launch.begin(each, 0)
        for each in works:
            each.stale = True  # where several fail, one of them is told
        halts = Team(pieces, self._timed).done(works)
        for halt in halts:
            if halt.said != SPINNING:
                raise self._fault(halt.work, halt.said)
        if halts:
            rest = [each.work.rest for each in halts]
            rest.append(range(pieces.next, pieces.total))
            self._run_together([each.work for each in halts], rest, launch)
        return OVER

    def _timed(self, work: Work, stop: Event | None = None) -> int:
        """Go on with a block; Python looks for signals whenever the scheduler returns."""
        run = _run()
        while True:
            step = self._tiers.step()
            work.set_turns(self._turns)
            start = perf_counter()
            said = run(work.block, step)
            spent = perf_counter() - start
            self._tiers.spent(spent)
            if spent > _LONG:
                self._turns = max(self._turns // 2, 1)
            if said != RESTED or (stop is not None and stop.is_set()):
                return said
            if spent < _SHORT:
                self._turns = min(2 * self._turns, _MOST_TURNS)

    def _run_together(self, begun: list[Work], rest: Iterable[range], launch: Launch) -> None:
        """Blocks that may wait for each other: each goes on until it only spins.

        `begun` have one each, and the numbers of the others are in `rest`. Where none of them ends,
        they may wait for blocks that have not begun: then more begin.
        """
        numbers, most = chain.from_iterable(rest), _RESIDENT
        for each in begun:
            each.blocks(each.next, each.next, keep=True)
            each.set_patience(len(each.warps))
        resident = list(begun)
        try:
            while resident:
                for number in islice(numbers, max(most - len(resident), 0)):
                    resident.append(self._another(begun[0], number, launch))
                count = len(resident)
                resident = self._round(resident, begun)
                most = 2 * most if len(resident) == count == most else most
        finally:
            for each in resident:
                if each not in begun:
                    each.close()

    def _another(self, like: Work, number: int, launch: Launch) -> Work:
        """Memory for one more block, which begins."""
        found = self._new_work(*like.key)
        launch.begin(found, self._machine.random)
        found.set_patience(len(found.warps))
        found.blocks(number, number + 1)
        self._machine.parts.attach(found, self.name, self._translation.instructions)
        return found

    def _round(self, resident: list[Work], begun: list[Work]) -> list[Work]:
        left = []
        for each in resident:
            said = self._timed(each)
            if said == SPINNING:
                left.append(each)
            elif said != OVER:
                raise self._fault(each, said)
            elif each not in begun:
                each.close()
        return left

    def _fault(self, work: Work, said: int) -> Fault:
        work.stale = True
        if said == FAILED:
            warp = work.warps[work.cursor]
            found = self._machine.parts.text(warp, self._translation.instructions, self._places)
            if found is not None:
                return Fault(found[0], f"{self.name}: {found[1]}")
            return thread_fault(
                self.name,
                work.warps[work.cursor],
                self._translation.instructions,
                self._machine.memory,
            )
        return deadlock(self.name, work.warps, self._waits, self._translation.instructions)


@cache
def _run() -> Callable[[int, int], int]:
    found: Callable[[int, int], int] = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
    )(scheduler_code().addresses["run"])
    return found


# ---- whether the blocks of a kernel have nothing to do with each other ----


_STRONG: Final = frozenset({"volatile", "mmio", "relaxed", "acquire", "release", "acq_rel"})
_SHARED: Final = frozenset({"shared", "shared::cta"})
_WIDE: Final = frozenset({"gl", "gpu", "sys"})
_ANY_ORDER: Final = frozenset({"add", "and", "or", "xor", "min", "max"})
"""What gives the same, whichever thread comes first, of integers."""


def independent(flow: Flow) -> bool:
    """Whether blocks may run at the same time, and leave what they leave one after the other.

    False where one could wait for another or see how far it is: strong accesses and fences beyond
    the block, atomics whose order shows, and text that is printed.
    """
    items = [
        item
        for block in flow.blocks
        for item in (*block.instructions, *filter(None, (block.branch,)))
    ]
    read = {name for each in items for name in reads_and_writes(each)[0]}
    return all(_alone(item, read) for item in items)


def _alone(item: Instruction, read: AbstractSet[str]) -> bool:
    words = frozenset(item.modifiers)
    if item.opcode in ("vprintf", "multimem"):
        return False
    if item.opcode in ("membar", "fence"):
        return not words & _WIDE
    if item.opcode in ("atom", "red"):
        return bool(words & _SHARED) or _in_any_order(item, words, read)
    if item.opcode == "cp":
        return "reduce" not in words
    return not words & _STRONG or bool(words & _SHARED) or item.opcode not in ("ld", "st")


def _in_any_order(item: Instruction, words: AbstractSet[str], read: AbstractSet[str]) -> bool:
    """Whether an atomic on global memory has a result that does not depend on the others."""
    result = item.operands[0]
    seen = item.opcode == "atom" and not (isinstance(result, Register) and result.name not in read)
    of_integers = re.fullmatch(r"[bsu]\d+", item.modifiers[-1]) is not None
    return not seen and bool(words & _ANY_ORDER) and of_integers
