"""Processes that answer requests of this one and stay for the next: what they run may crash.

A process is started if all others are busy, and at most two wait for requests.  It ends with this
process, whatever ends that, because its standard input ends.  If a request ends it, or is
interrupted, the next request gets a new one.  In a child of a fork there are none at first.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import field
from typing import IO, Final
from weakref import WeakSet

from ferrule.specs.deferred import dataclass

_MOST_IDLE: Final = 2


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process before it had answered: its status, as of `Popen`, and what it wrote to
    its standard error meanwhile."""

    status: int
    printed: str


class Worker:
    """One process, with pipes without buffers: a fork may happen while another thread uses them."""

    __slots__ = ("__weakref__", "_printed", "_process")

    def __init__(self, command: Sequence[str]) -> None:
        """Start the process.  Raises OSError."""
        # A file, because nobody reads it before the process ends: a pipe would fill up.
        self._printed: IO[bytes] = tempfile.TemporaryFile(buffering=0)
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._printed,
            )
        except BaseException:
            self._printed.close()
            raise
        _ALL.add(self)

    def answer(self, request: bytes) -> bytes | Ended:
        """The answer to a request; both are a line with the number of bytes, and those."""
        try:
            # What it prints is for the message if this request ends it; the place is shared.
            self._printed.seek(0)
            self._printed.truncate()
            said = self._exchange(b"%d\n" % len(request) + request)
        # Ctrl-C may come when half of the answer is read: the next request would get the other
        # half.
        except BaseException:
            self.close(kill=True)
            raise
        if said is not None:
            return said
        status = self._process.wait()
        self._printed.seek(0)
        ended = Ended(status, self._printed.read().decode(errors="replace"))
        self.close()
        return ended

    def _exchange(self, request: bytes) -> bytes | None:
        to, of = self._process.stdin, self._process.stdout
        assert to is not None and of is not None
        left = memoryview(request)
        try:
            # A pipe without a buffer takes as much as it has room for.
            while left:
                left = left[to.write(left) :]
        # The worker ended before it read all; its status says why.
        except BrokenPipeError:
            return None
        size = of.readline()
        answer = bytearray()
        while size and len(answer) < int(size):
            more = of.read(int(size) - len(answer))
            if not more:
                return None
            answer += more
        return bytes(answer) if size else None

    def close(self, *, kill: bool = False) -> None:
        """End the process, which is idle or, to be killed, not."""
        if kill:
            self._process.kill()
        self._close_pipes()
        self._process.wait()
        _ALL.discard(self)

    def abandon(self) -> None:
        """In a child of a fork: close what would keep the process of the parent alive."""
        self._close_pipes()
        self._process.returncode = 0  # It is no child of this process, so nobody waits for it.

    def _close_pipes(self) -> None:
        for each in (self._process.stdin, self._process.stdout, self._printed):
            assert each is not None
            each.close()


_ALL: Final[WeakSet[Worker]] = WeakSet()


@dataclass(slots=True)
class Workers:
    """The processes of one program, which `command` starts.  Threads may use it at once."""

    command: Sequence[str]
    _idle: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Two processes must not talk to one worker.
        os.register_at_fork(after_in_child=self._idle.clear)
        atexit.register(self._end)

    def answer(self, request: bytes) -> bytes | Ended:
        """The answer of one of the processes.  Raises OSError if none can be started."""
        said = self._ask(request)
        # It may leave between two requests, with status 0, to give back its memory.
        if isinstance(said, Ended) and said.status == 0:
            said = self._ask(request)
        return said

    def _ask(self, request: bytes) -> bytes | Ended:
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = Worker([sys.executable, *self.command])
        said = worker.answer(request)
        if isinstance(said, bytes):
            self._give_back(worker)
        return said

    def _give_back(self, worker: Worker) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(worker)
        else:
            worker.close()

    def _end(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _abandon_all() -> None:
    for worker in list(_ALL):
        worker.abandon()
    _ALL.clear()


os.register_at_fork(after_in_child=_abandon_all)
