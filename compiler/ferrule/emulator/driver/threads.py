"""What the driver keeps for each thread: its stack of contexts, and how it captures.

Threads are those of the system: one that Python did not start has no lasting thread of Python's, so
that `threading.local` would forget between two calls.
"""

from __future__ import annotations

import ctypes
from dataclasses import field
from typing import TYPE_CHECKING, Final

from ferrule.emulator.driver.results import DriverError, Result
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.driver.state import Context


@dataclass(slots=True)
class Thread:
    """A thread's own state."""

    contexts: list[Context] = field(default_factory=list)
    capture_mode: int = 0


class Threads:
    """The state of each thread that calls, found by a key of pthread's."""

    def __init__(self) -> None:
        # PyDLL: these calls keep the GIL, and take a fraction of a microsecond.
        library = ctypes.PyDLL(None)
        self._key: Final = ctypes.c_uint()
        if library.pthread_key_create(ctypes.byref(self._key), None) != 0:
            raise DriverError(Result.OPERATING_SYSTEM, "the process has no more pthread keys")
        self._get, self._set = library.pthread_getspecific, library.pthread_setspecific
        self._get.restype, self._get.argtypes = ctypes.c_size_t, [ctypes.c_uint]
        self._set.argtypes = [ctypes.c_uint, ctypes.c_size_t]
        self._delete = library.pthread_key_delete
        self._number = self._key.value
        self._threads: Final[list[Thread]] = []

    def here(self) -> Thread:
        """That of the calling thread."""
        found: int = self._get(self._number)
        if not found:
            self._threads.append(Thread())
            found = len(self._threads)
            self._set(self._number, found)
        return self._threads[found - 1]

    def close(self) -> None:
        """Give the key back; nothing may be asked afterwards."""
        self._delete(self._number)
