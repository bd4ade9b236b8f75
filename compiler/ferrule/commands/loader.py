"""What the system's loader would say of a shared library, found without loading it.

The files are read as the loader would read them: each needed library is searched where the loader
searches it, and its own needs count as well.  Libraries that this process has open are found first,
under their names, as the loader does.  No constructor of any of them runs.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from ferrule.runtime import cpus
from ferrule.runtime.binaries.dependencies import Dependencies, read_dependencies
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.specs.deferred import dataclass

_CACHE: Final = Path("/etc/ld.so.cache")
_MAGIC: Final = b"glibc-ld.so.cache1.1"
_HEAD: Final = struct.Struct("<20sII")
_HEAD_SIZE: Final = 48
_ENTRY: Final = struct.Struct("<iIIIQ")
_LINKMAP: Final = 2
"""RTLD_DI_LINKMAP of `dlinfo`."""


class _LinkMap(ctypes.Structure):
    """The head of the loader's `struct link_map`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


@dataclass(frozen=True, slots=True)
class _Library:
    """A library of the tree: its path, its names, and the library that needs it.

    `is_open`: this process has it, so the loader resolved its symbols already.
    """

    path: str
    names: Dependencies
    parent: _Library | None
    is_open: bool


def can_tell() -> bool:
    """Whether this module knows the loader of this machine; it knows that of Linux."""
    return sys.platform == "linux"


def complaints(path: Path, data: bytes) -> list[str]:
    """The errors of the loader for a library of this machine; empty if it would load it.

    ObjectFileError for a file that cannot be read.
    """
    first = _Library(str(path.absolute()), read_dependencies(data), None, False)
    libraries, said = [first], []
    homes: dict[str, _Library] = {}
    for library in libraries:  # it grows: the loader goes through the tree in this order as well
        for name in () if library.is_open else library.names.needed:
            if name in homes:
                continue
            found = _found(name, library)
            if found is None:
                said.append(f"{_told(library)} needs the library {name}, which cannot be found")
                continue
            homes[name] = found
            libraries.append(found)
    # A missing library takes its symbols away: they would only repeat what is said.
    return said or [*_versions(libraries, homes), *_symbols(libraries)]


def _told(library: _Library) -> str:
    return "it" if library.parent is None else library.path


def _versions(libraries: list[_Library], homes: Mapping[str, _Library]) -> Iterator[str]:
    for library in libraries:
        for name, version in () if library.is_open else library.names.wanted:
            home = homes.get(name)
            # A library without versions is taken for one that has them all.
            if home and home.names.versions and version not in home.names.versions:
                wants = f"{_told(library)} needs the version {version} of {name}"
                yield f"{wants}, which {home.path} does not have"


def _symbols(libraries: list[_Library]) -> Iterator[str]:
    process = ctypes.CDLL(None)
    known = frozenset().union(*(library.names.defined for library in libraries))
    for library in libraries:
        wanted = () if library.is_open else library.names.undefined
        missing = [each for each in wanted if each not in known and not hasattr(process, each)]
        if missing:
            wants = f"{_told(library)} needs {', '.join(missing)}"
            yield f"{wants}: neither this process nor the libraries that it needs have it"


# ---- where the loader searches ----


def _found(name: str, parent: _Library) -> _Library | None:
    """The library that the loader would take for this name."""
    opened = _open_path(name)
    if opened is not None:
        return _read(opened, parent, True)
    for path in _places(name, parent):
        found = _read(path, parent, False)
        if found is not None:
            return found
    return None


def _read(path: str, parent: _Library, is_open: bool) -> _Library | None:
    """The library in a file; None for none, and for one of another machine: the loader goes on."""
    try:
        names = read_dependencies(Path(path).read_bytes())
    except (OSError, ObjectFileError):
        return None
    here = names.machine.name.lower() == cpus.host_architecture()
    return _Library(path, names, parent, is_open) if here else None


def _open_path(name: str) -> str | None:
    """The path of the open library that this name means; None if there is none."""
    try:
        # RTLD_NOLOAD: only to find what is open already; nothing is loaded for a look.
        library = ctypes.CDLL(name, os.RTLD_NOLOAD | os.RTLD_LAZY)
    except (OSError, UnicodeError, ValueError):
        return None
    found = ctypes.POINTER(_LinkMap)()
    handle = ctypes.c_void_p(library._handle)
    if ctypes.CDLL(None).dlinfo(handle, _LINKMAP, ctypes.byref(found)) != 0 or not found:
        return None
    return os.fsdecode(found.contents.name or b"") or None


def _places(name: str, parent: _Library) -> Iterator[str]:
    """The paths at which the loader looks for a library that `parent` needs, in its order."""
    if "/" in name:
        yield from _expanded(name, parent)
        return
    folders = [*_rpaths(parent), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    folders += [found for each in parent.names.runpath for found in _expanded(each, parent)]
    yield from (os.path.join(folder, name) for folder in folders)
    yield from _cached().get(name, ())
    yield from (os.path.join(folder, name) for folder in _default_folders())


def _rpaths(library: _Library) -> Iterator[str]:
    """The folders of DT_RPATH, of the library and of all that need it; DT_RUNPATH is in its place
    where a library has both, and is for the library's own needs alone."""
    if library.names.runpath:
        return
    each: _Library | None = library
    while each is not None:
        if not each.names.runpath:
            for folder in each.names.rpath:
                yield from _expanded(folder, each)
        each = each.parent
    program = _program()
    if program is not None and not program.names.runpath:
        for folder in program.names.rpath:
            yield from _expanded(folder, program)


@cache
def _program() -> _Library | None:
    """The program of this process, whose DT_RPATH is for every library that it opens."""
    path = os.path.realpath("/proc/self/exe")
    try:
        return _Library(path, read_dependencies(Path(path).read_bytes()), None, True)
    except (OSError, ObjectFileError):
        return None


def _expanded(text: str, library: _Library) -> list[str]:
    """A path of a library with its `$ORIGIN` replaced; several where `$LIB` can be several."""
    origin = os.path.dirname(os.path.realpath(library.path))
    names = {"LIB": (f"lib/{_multiarch()}", "lib64", "lib"), "PLATFORM": (_platform(),)}
    found = [text.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)]
    for name, values in names.items():
        found = [
            each.replace(f"${{{name}}}", value).replace(f"${name}", value)
            for each in found
            for value in (values if f"${name}" in each or f"${{{name}}}" in each else ("",))
        ]
    return found


def _platform() -> str:
    return cpus.host_architecture()


def _multiarch() -> str:
    return f"{_platform()}-linux-gnu"


def _default_folders() -> tuple[str, ...]:
    both = (_multiarch(), "")
    near = [os.path.join(base, each) for each in both for base in ("/lib", "/usr/lib")]
    return (*near, "/lib64", "/usr/lib64", "/usr/local/lib")


@cache
def _cached() -> Mapping[str, tuple[str, ...]]:
    """The paths in the loader's cache, by name; empty where there is none that can be read."""
    try:
        data = _CACHE.read_bytes()
        data = data[data.index(_MAGIC) :]
        _, count, _ = _HEAD.unpack_from(data)
        # `struct cache_file_new` and `struct file_entry_new` of glibc's dl-cache.h.
        entries = _ENTRY.iter_unpack(data[_HEAD_SIZE : _HEAD_SIZE + _ENTRY.size * count])
        found: dict[str, tuple[str, ...]] = {}
        for _, key, value, _, _ in entries:
            name, path = _string(data, key), _string(data, value)
            found[name] = (*found.get(name, ()), path)
        return found
    except (OSError, ValueError, struct.error):
        return {}


def _string(data: bytes, at: int) -> str:
    return os.fsdecode(data[at : data.index(b"\0", at)])
