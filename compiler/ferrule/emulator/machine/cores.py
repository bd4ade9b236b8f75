"""Blocks of a launch on several threads of the host: each takes some, until there are no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final

from ferrule.emulator.machine.scheduler import OVER
from ferrule.emulator.machine.work import Work
from ferrule.runtime.forks import ForkLock
from ferrule.specs.deferred import dataclass

WORTH: Final = 0.005
"""Seconds that blocks must still take: less is not worth the start of threads."""
_PIECES: Final = 8
"""How many pieces there are for each thread, since some blocks take longer than others."""


def threads() -> int:
    """How many may work: the cores of the process, or FERRULE_NUM_THREADS."""
    said = os.environ.get("FERRULE_NUM_THREADS", "")
    if said.isdecimal() and int(said):
        return int(said)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pieces:
    """The blocks that nobody has taken, the first ones first."""

    def __init__(self, first: int, total: int, threads: int) -> None:
        self.next = first
        self.total: Final = total
        self._size: Final = max(1, (total - first) // (threads * _PIECES))
        self._lock: Final = ForkLock()
        self.stopped = False

    def take(self) -> tuple[int, int] | None:
        """The numbers of the next blocks; None where there are none, or work has stopped."""
        with self._lock:
            if self.stopped or self.next >= self.total:
                return None
            first, self.next = self.next, min(self.next + self._size, self.total)
            return first, self.next

    def stop(self) -> None:
        self.stopped = True


@dataclass(frozen=True, slots=True)
class Halt:
    """A worker that has not come to the end of its blocks, the first of them, and why."""

    first: int
    work: Work
    said: int


class Team:
    """Threads with memory each; `run` executes the blocks that a memory was given."""

    def __init__(self, pieces: Pieces, run: Callable[[Work, threading.Event], int]) -> None:
        self._pieces: Final = pieces
        self._run: Final = run
        self._stop: Final = threading.Event()
        self._halts: Final[list[Halt]] = []
        self._errors: Final[list[BaseException]] = []

    def done(self, works: Sequence[Work]) -> list[Halt]:
        """All blocks; where some came to no end, those, the first blocks first.

        Blocks before such ones have all ended, or are among them.
        """
        helpers = [threading.Thread(target=self._helped, args=(each,)) for each in works[1:]]
        try:
            for each in helpers:
                each.start()
            self._through(works[0])
            for each in helpers:
                each.join()
        finally:
            self._end(helpers)
        if self._errors:
            raise self._errors[0]
        return sorted(self._halts, key=lambda each: each.first)

    def _end(self, helpers: Sequence[threading.Thread]) -> None:
        """Nothing runs any more, also where a signal came in between."""
        self._stop.set()
        self._pieces.stop()
        for each in helpers:
            if each.ident is not None:
                each.join()

    def _helped(self, work: Work) -> None:
        try:
            self._through(work)
        except BaseException as error:
            self._errors.append(error)
            self._pieces.stop()

    def _through(self, work: Work) -> None:
        while (piece := self._pieces.take()) is not None:
            work.blocks(*piece)
            said = self._run(work, self._stop)
            if self._stop.is_set():
                return
            if said != OVER:
                self._pieces.stop()
                self._halts.append(Halt(piece[0], work, said))
                return
