"""Locks and forks: a child that `fork` made never waits for a thread that only its parent has.

* `ForkLock`, which ferrule's own locks are, is free in the child. What it guards is made once and
  kept; where another thread was making it, the child makes it anew.
* The lock by which llvmlite lets one thread at a time into LLVM is held across the fork, so that
  no thread is inside of LLVM meanwhile. It is held for one call of LLVM's at a time; a fork waits
  `LONGEST` seconds for it at most. A child that was forked while another thread was in LLVM for
  longer gets a `RuntimeError` where it uses LLVM.
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any, Final
from weakref import WeakSet

LONGEST: Final = 10.0
"""Seconds that a fork waits for a thread that is inside of LLVM."""


class ForkLock:
    """A re-entrant lock that a forked child finds free, unless the thread that forked has it."""

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
        """In a child: a new lock where a thread has it that is no more."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_LOCKS: Final[WeakSet[ForkLock]] = WeakSet()


class _Refusing:
    """What stands for llvmlite's lock in a child that must not use LLVM."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise RuntimeError(
            "this process was forked while another thread was compiling, so it cannot compile: "
            "fork at another time, or start it with 'spawn'"
        )

    def release(self) -> None:
        """Nothing was taken."""


class _Fork(threading.local):
    """What a thread that forks has taken."""

    taken: Any = None
    late: bool = False


_FORK: Final = _Fork()


def _llvm_guard() -> Any:
    """llvmlite's guard of LLVM, which has the lock; None where it is not imported, or has none."""
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
