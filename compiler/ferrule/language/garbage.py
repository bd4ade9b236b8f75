"""Fewer collections of garbage while a program is compiled.

A compilation makes many objects that live until it ends. Python's collector of cycles looks at them
again and again, at each 700 that are new: a tenth to a fifth of the time of a long kernel. So it
looks at each `MORE` meanwhile. The collector is never stopped, memory stays bounded, and what the
process had is there again at the end of the last compilation. Always:

* a number that is as large already, or 0, which means never, stays as it is;
* whether the collector is enabled is not touched;
* a number that somebody sets in the meantime stays.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakSet

from ferrule.runtime.forks import ForkLock

T = TypeVar("T")

MORE: Final = 5_000
"""How many new objects there are before the collector looks at them."""


class _Compilation:
    """One that runs, in a thread. It counts as long as the frame that made it lives."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Collector:
    """The compilations that run, and the process's number from before the first."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._running: WeakSet[_Compilation] = WeakSet()
        self._before: int | None = None

    def begin(self, compilation: _Compilation) -> None:
        """Raises the number, unless it is as large."""
        with self._lock:
            self._running.add(compilation)
            number = gc.get_threshold()[0]
            if 0 < number < MORE:
                self._before = number
                gc.set_threshold(MORE)

    def end(self, compilation: _Compilation) -> None:
        """Puts the number back after the last one, unless somebody else set it."""
        with self._lock:
            self._running.discard(compilation)
            self._restore()

    def in_child(self) -> None:
        """After a fork: the compilations of all other threads are no more."""
        here = threading.get_ident()
        self._running = WeakSet(each for each in self._running if each.thread == here)
        self._restore()

    def _restore(self) -> None:
        if self._before is None or len(self._running):
            return
        if gc.get_threshold()[0] == MORE:
            gc.set_threshold(self._before)
        self._before = None


_COLLECTOR: Final = _Collector()
os.register_at_fork(after_in_child=_COLLECTOR.in_child)


def with_fewer_collections(compute: Callable[[], T]) -> T:
    """What a function returns or raises; while it runs, garbage is looked for less often."""
    compilation = _Compilation()
    try:
        _COLLECTOR.begin(compilation)
        return compute()
    finally:
        _COLLECTOR.end(compilation)
