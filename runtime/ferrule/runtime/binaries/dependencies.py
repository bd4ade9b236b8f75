"""What a shared library asks of the system's loader: other libraries, symbols and versions.

Everything is read from the file.  Only what the loader itself would look at counts, so section
headers do not: `strip` may remove them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from ferrule.runtime.binaries import dynamic, elf
from ferrule.runtime.binaries.dynamic import Dynamic, Tag
from ferrule.runtime.binaries.elf import FileType, Machine, ObjectFileError
from ferrule.specs.deferred import dataclass

_NEED: Final = struct.Struct("<HHIII")
_WANTED: Final = struct.Struct("<IHHII")
_DEFINED: Final = struct.Struct("<HHHHIII")
_NAME: Final = struct.Struct("<I")
_WEAK: Final = 2
"""VER_FLG_WEAK: the loader only warns where such a version is missing."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The names that a library has for the loader.

    `needed` are libraries; `rpath` and `runpath` are folders to search them in, as they are
    written.  `undefined` are the symbols that others must have, without weak ones.  `versions` are
    those that the library defines, `wanted` are those that it needs, each with its library.
    """

    machine: Machine
    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    defined: frozenset[str]
    undefined: tuple[str, ...]
    versions: frozenset[str]
    wanted: tuple[tuple[str, str], ...]


def read_dependencies(data: bytes) -> Dependencies:
    """The names in a library; ObjectFileError for a damaged, truncated or other file."""
    header = elf.read_header(data, FileType.LIBRARY)
    section = dynamic.read_dynamic(data, elf.read_segments(data, header))
    symbols = list(dynamic.symbols(section))
    try:
        return Dependencies(
            machine=header.machine,
            soname=_text(section, Tag.SONAME) or None,
            needed=tuple(needed_names(section)),
            rpath=_folders(section, Tag.RPATH),
            runpath=_folders(section, Tag.RUNPATH),
            defined=frozenset(symbol.name for symbol in symbols if symbol.defined),
            undefined=tuple(each.name for each in symbols if not (each.defined or each.weak)),
            versions=frozenset(_defined_versions(section)),
            wanted=tuple(dict.fromkeys(_wanted_versions(section))),
        )
    except struct.error as error:
        raise ObjectFileError(f"the library is damaged: {error}") from None


def needed_names(section: Dynamic) -> Iterator[str]:
    """The names of the libraries that a library needs."""
    for name in section.needed:
        yield _name(section, name)


def _name(section: Dynamic, at: int) -> str:
    start = section.table(Tag.STRTAB, 1)
    if start is None:
        raise ObjectFileError("the library needs others, but has no names")
    return elf.read_name(section.data[start:], at, "library")


def _text(section: Dynamic, tag: Tag) -> str:
    return _name(section, section.values[tag]) if tag in section.values else ""


def _folders(section: Dynamic, tag: Tag) -> tuple[str, ...]:
    # An empty folder means the working directory, as in PATH; an empty list means none.
    text = _text(section, tag)
    return tuple(text.split(":")) if text else ()


def _wanted_versions(section: Dynamic) -> Iterator[tuple[str, str]]:
    at = section.values.get(Tag.VERNEED, 0)
    for _ in range(section.values.get(Tag.VERNEEDNUM, 0) if at else 0):
        _, count, file, aux, following = section.unpack(_NEED, at, "a version")
        inner = at + aux
        for _ in range(count):
            _, flags, _, name, step = section.unpack(_WANTED, inner, "a version")
            if not flags & _WEAK:
                yield _name(section, file), _name(section, name)
            inner += step
        at += following


def _defined_versions(section: Dynamic) -> Iterator[str]:
    at = section.values.get(Tag.VERDEF, 0)
    for _ in range(section.values.get(Tag.VERDEFNUM, 0) if at else 0):
        _, _, _, _, _, aux, following = section.unpack(_DEFINED, at, "a version")
        (name,) = section.unpack(_NAME, at + aux, "a version")
        yield _name(section, name)
        at += following
