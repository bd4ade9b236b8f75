"""Locks and forks: after `fork`, the child never waits for a thread that exists only in its parent.

* Ferrule's own locks are `ForkLock`s; they are free in the child. They guard objects that are made
  once. If another thread was making such an object during the fork, the child makes it again.
* llvmlite has a lock that lets only one thread into LLVM. The forking thread holds it during the
  fork, so that no other thread is inside LLVM. Threads hold it for one LLVM call at a time, and a
  fork waits at most `LONGEST` seconds for it. If the wait ends without the lock, the child gets a
  `RuntimeError` when it uses LLVM.
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any, Final
from weakref import WeakSet

LONGEST: Final = 10.0
"""The longest time, in seconds, that a fork waits for a thread inside LLVM."""


class ForkLock:
    """A re-entrant lock that is free in a forked child, unless the forking thread holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """In a child: replace the lock if a thread that does not exist in the child holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_LOCKS: Final[WeakSet[ForkLock]] = WeakSet()


class _Refusing:
    """Replaces llvmlite's lock in a child that must not use LLVM."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise RuntimeError(
            "this process was forked while another thread was compiling, so it cannot compile: "
            "fork at another time, or start it with 'spawn'"
        )

    def release(self) -> None:
        """Do nothing: `acquire` always fails."""


class _Fork(threading.local):
    """The LLVM lock that a forking thread holds."""

    taken: Any = None
    late: bool = False


_FORK: Final = _Fork()


def _llvm_guard() -> Any:
    """llvmlite's guard object with the lock; None if llvmlite is not imported or has no guard."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    guard = None if library is None else getattr(library, "_lock", None)
    return guard if hasattr(guard, "_lock") else None


def _before() -> None:
    _FORK.taken, _FORK.late = None, False
    guard = _llvm_guard()
    if guard is not None:
        _FORK.late = True  # until it is here: a signal's handler may raise meanwhile
        if guard._lock.acquire(timeout=LONGEST):
            _FORK.taken, _FORK.late = guard._lock, False


def _after_in_parent() -> None:
    taken, _FORK.taken = _FORK.taken, None
    if taken is not None:
        taken.release()


def _after_in_child() -> None:
    _after_in_parent()
    if _FORK.late:
        _llvm_guard()._lock = _Refusing()
    for lock in list(_LOCKS):
        lock.renew()


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
