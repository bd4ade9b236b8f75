"""Runs Python's garbage collector less often during a compilation, an import or a load.

These make many objects that live until their end.  Python's cycle collector scans them after each
700 new objects, which takes a tenth to a fifth of the time for a long kernel, and more for imports.
Meanwhile it runs after each `MORE`.  The collector is never stopped, memory stays bounded, and the
process's own setting is restored at the end of the last of them.  Always:

* a threshold that is already as large, or 0, which means never, is unchanged;
* the collector is neither enabled nor disabled;
* a threshold that someone else sets in the meantime is kept.
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
"""The number of new objects between two runs of the collector."""


class _Compilation:
    """A running compilation, in a thread.  It counts as long as the frame that made it lives."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Collector:
    """The running compilations, and the process's threshold from before the first."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._running: WeakSet[_Compilation] = WeakSet()
        self._before: int | None = None

    def begin(self, compilation: _Compilation) -> None:
        """Raises the threshold, unless it is already as large."""
        with self._lock:
            self._running.add(compilation)
            number = gc.get_threshold()[0]
            if 0 < number < MORE:
                self._before = number
                gc.set_threshold(MORE)

    def end(self, compilation: _Compilation) -> None:
        """Restores the threshold after the last compilation, unless someone else changed it."""
        with self._lock:
            self._running.discard(compilation)
            self._restore()

    def in_child(self) -> None:
        """After a fork: drop the compilations of all other threads."""
        here = threading.get_ident()
        self._running = WeakSet(each for each in self._running if each.thread == here)
        self._restore()

    def _restore(self) -> None:
        if self._before is None or len(self._running):
            return
        # Somebody else may have set another one meanwhile, which stays.
        if gc.get_threshold()[0] == MORE:
            gc.set_threshold(self._before)
        self._before = None


_COLLECTOR: Final = _Collector()
os.register_at_fork(after_in_child=_COLLECTOR.in_child)


def with_fewer_collections(compute: Callable[[], T]) -> T:
    """The result or exception of a function, which runs with a rarer garbage collection."""
    compilation = _Compilation()
    try:
        _COLLECTOR.begin(compilation)
        return compute()
    finally:
        _COLLECTOR.end(compilation)
