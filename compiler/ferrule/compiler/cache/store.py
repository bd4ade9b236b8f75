"""Entries in a folder: written aside and renamed, checked when read, the oldest removed first.

Whatever the file system does, an entry is read whole or not at all, and no error reaches a
compilation.  There are no locks: processes that make one entry at the same time write the same.
The time of a file is when its entry was last used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from ferrule.compiler.cache.entries import Entry, EntryError, packed, unpacked
from ferrule.compiler.cache.keys import Key
from ferrule.specs.deferred import dataclass

SUFFIX: Final = ".ferrule"
_ASIDE: Final = ".new-"
_OLD: Final = 3600.0
"""Seconds after which a file that was written aside and never renamed is removed."""
_SLACK: Final = 16
"""The size of a folder is looked at after each 1/16 of its limit that this process wrote."""
_LOOKED: Final = ".looked"
_OFTEN: Final = 600.0
"""Seconds in which one look, whose time and limit the file `.looked` has, serves the first writes
of all processes: for tens of thousands of entries it takes longer than a compilation."""
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_WARNED: Final[set[str]] = set()


class CacheWarning(RuntimeWarning):
    """The cache cannot be used, and compilations go on without it."""


def warn_once(text: str) -> None:
    """A CacheWarning, once in a process for each text."""
    if text not in _WARNED:
        _WARNED.add(text)
        warnings.warn(text, CacheWarning, stacklevel=2)


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of the folder: its size in bytes, and when it was last used."""

    path: Path
    size: int
    used: float


@dataclass(slots=True)
class Store:
    """The entries of one folder."""

    folder: Path
    limit: int
    _written: int | None = field(default=None)

    def read(self, key: Key) -> Entry | None:
        """The entry of a key.  What is there and is not this entry is removed."""
        path = self._path(key)
        try:
            data = self._data(path)
            if data is None:
                return None
            entry = unpacked(data, key.digest)
        except EntryError:
            self.remove(path)
            return None
        except (OSError, MemoryError):
            return None
        with contextlib.suppress(OSError):
            # `shrink` removes what was used longest ago, by this time.
            os.utime(path)
        return entry

    def write(self, entry: Entry, key: Key) -> bool:
        """Keep an entry; whether that was possible."""
        return self.write_bytes(packed(entry), key)

    def write_bytes(self, data: bytes, key: Key) -> bool:
        """Keep the bytes of an entry; whether that was possible."""
        path = self._path(key)
        try:
            if len(data) > self.limit or not self._is_ours(make=True):
                return False
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _replace(path, data)
        except (OSError, MemoryError):
            return False
        self._shrink(len(data))
        return True

    def near(self, key: Key) -> list[Entry]:
        """The latest entries of the same function, for an explanation of a miss."""
        paths = (self.folder / key.group[:2]).glob(f"{key.group}-*{SUFFIX}")
        found = []
        for kept in sorted(_kept(paths), key=lambda each: -each.used)[:16]:
            with contextlib.suppress(EntryError, OSError, MemoryError):
                if (data := self._data(kept.path)) is not None:
                    found.append(unpacked(data))
        return found

    def files(self) -> list[Kept]:
        """All entries, the least recently used first."""
        found = (each for each in self._scan() if each.path.name.endswith(SUFFIX))
        return sorted(found, key=lambda each: each.used)

    def problems(self, path: Path) -> str | None:
        """What is wrong with an entry; None if nothing is."""
        try:
            data = self._data(path)
            if data is None:
                return "it can be written by others"
            unpacked(data, path.name.removesuffix(SUFFIX).partition("-")[2])
        except (EntryError, OSError, MemoryError) as error:
            return str(error)
        return None

    def remove(self, path: Path) -> bool:
        """Remove a file; whether it is gone by this call."""
        try:
            path.unlink()
        except OSError:
            return False
        return True

    def shrink(self) -> None:
        """Remove what was written aside and left, and the oldest entries, until 9/10 of the limit
        are in use."""
        self._note_look()
        now, files = time.time(), []
        for each in self._scan():
            if each.path.name.endswith(SUFFIX):
                files.append(each)
            elif each.path.name.startswith(_ASIDE) and now - each.used > _OLD:
                self.remove(each.path)
        files.sort(key=lambda each: each.used)
        size = sum(each.size for each in files)
        if size <= self.limit:
            return
        for each in files:
            if size <= self.limit * 9 // 10:
                break
            if self.remove(each.path):
                size -= each.size

    def _shrink(self, written: int) -> None:
        """Look at the folder's size at the first write, unless somebody has done it lately, and
        then now and then."""
        first = self._written is None
        self._written = (self._written or 0) + written
        if (first and not self._is_looked_at()) or self._written > self.limit // _SLACK:
            self._written = 0
            with contextlib.suppress(OSError):
                self.shrink()

    def _is_looked_at(self) -> bool:
        """Whether a process has looked at the size a short time ago, with this limit."""
        stamp = self.folder / _LOOKED
        try:
            age = time.time() - stamp.stat().st_mtime
            return 0 <= age < _OFTEN and stamp.read_bytes() == str(self.limit).encode()
        except OSError:
            return False

    def _note_look(self) -> None:
        with contextlib.suppress(OSError):
            _replace(self.folder / _LOOKED, str(self.limit).encode())

    def _scan(self) -> Iterator[Kept]:
        """The files in the folders of entries, without a file that goes meanwhile."""
        for folder in _scanned(self.folder):
            if len(folder.name) == 2 and folder.is_dir(follow_symlinks=False):
                for file in _scanned(Path(folder.path)):
                    with contextlib.suppress(OSError):
                        found = file.stat(follow_symlinks=False)
                        if stat.S_ISREG(found.st_mode):
                            yield Kept(Path(file.path), found.st_size, found.st_mtime)

    def _path(self, key: Key) -> Path:
        return self.folder / key.group[:2] / f"{key.group}-{key.digest}{SUFFIX}"

    def _data(self, path: Path) -> bytes | None:
        """The content of a file that nobody else can have written; None for another one.  OSError
        where there is none."""
        with open(path, "rb", opener=_without_links) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise EntryError("it is no file")
            if not self._is_ours():
                return None
            if not _is_private(found):
                warn_once(f"{path} can be written by others, and is not used: {_ADVICE}")
                return None
            return file.read()

    def _is_ours(self, *, make: bool = False) -> bool:
        """Whether nobody else can write to the folder.  OSError if there is none."""
        if make:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(os.stat(self.folder)):
            return True
        warn_once(f"the cache {self.folder} can be written by others, and is not used: {_ADVICE}")
        return False


_ADVICE: Final = "chmod go-w it, or name a folder of your own with FERRULE_CACHE_DIR"


def _is_private(found: os.stat_result) -> bool:
    """Whether only this user, or the system, can write to a file.

    A folder of another user is not private, whatever its permissions say: its owner may change
    them.
    """
    # This process runs the code of an entry: its writer could do all that this user can.
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & _OTHERS


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)


def _for_us(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _replace(path: Path, data: bytes) -> None:
    """Write a file aside and rename it: others see all of it or nothing."""
    # Not tempfile, whose import takes longer than all else here.
    name = path.parent / f"{_ASIDE}{os.getpid()}-{os.urandom(8).hex()}"
    try:
        with open(name, "xb", opener=_for_us) as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _scanned(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _kept(paths: Iterator[Path]) -> Iterator[Kept]:
    """Size and time of files; those that go meanwhile are left out."""
    while True:
        try:
            path = next(paths, None)
            if path is None:
                return
            found = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield Kept(path, found.st_size, found.st_mtime)
