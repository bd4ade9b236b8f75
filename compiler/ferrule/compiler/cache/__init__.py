"""`fe.cache`: what compilations are kept where, and how to look at it and clear it.

The cache needs nothing of this; it works by itself, and `docs/cache.md` says how.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cache.store import CacheWarning as CacheWarning
    from ferrule.compiler.cache.store import Store

__all__ = ["CacheWarning", "Info", "Problem", "clear", "flush", "folder", "info", "limit", "verify"]


@dataclass(frozen=True, slots=True)
class Info:
    """The state of the cache.

    `is_on`: whether compilations use it; `folder`: where, None without a home; `entries`, `bytes`:
    how much is there, and `limit` the most bytes; `remote`: the address of the second level.
    `hits`, `misses`, `uncacheable`: compilations of this process; the last have no key, and
    `FERRULE_LOG=cache` says why.
    """

    is_on: bool
    folder: Path | None
    entries: int
    bytes: int
    limit: int
    remote: str | None
    hits: int
    misses: int
    uncacheable: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A file of the cache that is not used, and why."""

    path: Path
    why: str


def info() -> Info:
    """The state of the cache.  NotADirectoryError if its folder is a file."""
    from ferrule.compiler.cache import settings
    from ferrule.compiler.cache.through import COUNTS

    store = _store()
    files = [] if store is None else store.files()
    return Info(
        settings.is_on(),
        None if store is None else store.folder,
        len(files),
        sum(each.size for each in files),
        settings.limit(),
        settings.remote(),
        COUNTS.hits,
        COUNTS.misses,
        COUNTS.uncacheable,
    )


def clear() -> int:
    """Remove all entries of the folder, and what this process holds; the number of entries.

    Functions that were compiled stay.  The second level is not cleared.
    """
    from ferrule.compiler.cache.through import MEMORY

    MEMORY.clear()
    store = _store()
    return 0 if store is None else sum(store.remove(each.path) for each in store.files())


def verify(*, remove: bool = False) -> list[Problem]:
    """Read every entry and compare its digest: the files that are damaged, or that others can
    write.  `remove`: remove these."""
    store = _store()
    if store is None:
        return []
    told = ((each.path, store.problems(each.path)) for each in store.files())
    found = [Problem(path, why) for path, why in told if why is not None]
    if remove:
        for each in found:
            store.remove(each.path)
    return found


def folder(path: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the cache, None without a home; with a path, this is the folder of this
    process from now on, whatever the environment says.

    TypeError for what is no path, NotADirectoryError if there is a file.
    """
    from ferrule.compiler.cache import settings
    from ferrule.compiler.cache.through import MEMORY, check_folder

    if path is not None:
        if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
            raise TypeError(f"folder takes a path, a str or a Path, but got {path!r}")
        chosen = Path(path).expanduser().absolute()
        check_folder(chosen)
        settings.set_folder(chosen)
        MEMORY.clear()
    return settings.chosen_folder() or settings.default_folder()


def limit(size: int | None = None) -> int:
    """The most bytes of the folder; with a size, that of this process from now on.

    Beyond it the least recently used entries are removed.  ValueError for a negative size.
    """
    from ferrule.compiler.cache import settings

    if size is not None:
        if type(size) is not int:
            raise TypeError(f"limit takes a number of bytes, but got {size!r}")
        if size < 0:
            raise ValueError(f"limit takes a number of bytes, but got {size}")
        settings.set_limit(size)
    return settings.limit()


def flush(longest: float = 10.0) -> bool:
    """Wait until the second level has everything that was compiled, for at most so many seconds;
    whether it has."""
    from ferrule.compiler.cache import remote

    return remote.flush(longest)


def _store() -> Store | None:
    from ferrule.compiler.cache.through import store

    return store()


def __getattr__(name: str) -> Any:
    if name == "CacheWarning":
        from ferrule.compiler.cache.store import CacheWarning

        return CacheWarning
    raise AttributeError(f"module 'ferrule.compiler.cache' has no attribute {name!r}")
