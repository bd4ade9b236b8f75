"""The second level: entries that several machines share, in anything that fsspec can open.

It is read where this machine has no entry, and written behind a compilation, by a thread.  What
comes from there is code that will run, so it has the digest of an entry and, with
`FERRULE_CACHE_KEY`, a signature; what does not match is a miss.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
from functools import lru_cache
from queue import Empty, Full, Queue
from typing import Any, Final

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.entries import EntryError, signed, unpacked, verified
from ferrule.compiler.cache.keys import Key
from ferrule.compiler.cache.store import SUFFIX, warn_once
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs.deferred import dataclass

THREAD: Final = "ferrule cache"
"""The name of the thread that writes."""
_WAITING: Final = 256
"""The most entries that wait to be written; more of them are not written at all."""
_AT_EXIT: Final = 10.0
"""The longest time, in seconds, that the end of a process waits for the last of them."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A folder of a file system of fsspec."""

    files: Any
    folder: str
    address: str

    def read(self, key: Key) -> bytes | None:
        """The bytes of an entry, compared with its digest and signature; None where there is none.

        A level that cannot be reached is a miss, with one warning.
        """
        try:
            data = self.files.cat_file(self._path(key))
        except FileNotFoundError:
            return None
        # Each protocol of fsspec raises exceptions of its own packages.
        except Exception as error:
            warn_once(f"{self.address} of {settings.REMOTE} cannot be read: {error!r}")
            return None
        try:
            data = verified(bytes(data), settings.secret())
            unpacked(data, key.digest)
        except EntryError as error:
            warn_once(f"an entry of {self.address} is not used: {error}")
            return None
        return data

    def write(self, key: Key, data: bytes) -> None:
        """Keep an entry, later and by another thread."""
        _writer().put(self, self._path(key), signed(data, settings.secret()))

    def put(self, path: str, data: bytes) -> None:
        """Write a file; an error is a warning."""
        try:
            self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.files.pipe_file(path, data)
        except Exception as error:
            warn_once(f"{self.address} of {settings.REMOTE} cannot be written: {error!r}")

    def _path(self, key: Key) -> str:
        return f"{self.folder}/{key.group[:2]}/{key.group}-{key.digest}{SUFFIX}"


def remote() -> Remote | None:
    """The second level that the environment names.  CompileError if it cannot be opened."""
    address = settings.remote()
    return None if address is None else _opened(address)


@lru_cache(maxsize=4)
def _opened(address: str) -> Remote:
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError:
        raise CompileError(
            Diagnostic(
                f"{settings.REMOTE} is {address!r}, and fsspec, which opens it, is not installed",
                hint="pip install 'ferrule[remote]', or unset the variable",
            )
        ) from None
    try:
        files, folder = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise CompileError(
            Diagnostic(
                f"{settings.REMOTE} is {address!r}, which fsspec cannot open: {error}",
                hint="install the package of this protocol, or name another address",
            )
        ) from None
    return Remote(files, str(folder).rstrip("/"), address)


class _Writer:
    """A thread that writes entries in the order in which they came."""

    def __init__(self) -> None:
        self._queue: Queue[tuple[Remote, str, bytes]] = Queue(_WAITING)
        threading.Thread(target=self._run, name=THREAD, daemon=True).start()
        # The thread is a daemon, so that what waits would be lost.
        atexit.register(self.flush)

    def put(self, remote: Remote, path: str, data: bytes) -> None:
        """Write this later; drop it if too much waits already."""
        try:
            self._queue.put_nowait((remote, path, data))
        except Full:
            warn_once(f"{remote.address} is slow: entries are compiled faster than it takes them")

    def flush(self, longest: float = _AT_EXIT) -> bool:
        """Wait until all is written, or for so many seconds; whether all is."""
        done = threading.Event()

        def wait() -> None:
            self._queue.join()
            done.set()

        threading.Thread(target=wait, daemon=True).start()
        return done.wait(longest)

    def _run(self) -> None:
        while True:
            try:
                remote, path, data = self._queue.get(timeout=60)
            except Empty:
                continue
            try:
                remote.put(path, data)
            finally:
                self._queue.task_done()


@lru_cache(maxsize=1)
def _writer() -> _Writer:
    return _Writer()


def flush(longest: float = _AT_EXIT) -> bool:
    """Wait until the second level has everything; whether it has."""
    return _writer.cache_info().currsize == 0 or _writer().flush(longest)


# A forked child has no such thread, and what waits is the parent's to write.
os.register_at_fork(after_in_child=_writer.cache_clear)
