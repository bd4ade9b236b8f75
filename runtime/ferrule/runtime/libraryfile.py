"""Reads ELF64 shared libraries: machine, symbols and notes, and whether the file is whole.

The system's loader maps a file that is cut off and dies of it later, so a library passes
`read_library` before it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ferrule.runtime import elf
from ferrule.runtime.elf import Machine, Note
from ferrule.runtime.importtree import SYMBOL as IMPORT_TREE

_PT_LOAD: Final = 1
_PT_NOTE: Final = 4


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """What a library's headers say, and its notes."""

    machine: Machine
    defined: tuple[str, ...]
    notes: tuple[Note, ...]


def read_library(data: bytes) -> LibraryFile:
    """Read the headers of a library; ObjectFileError where it is none, is damaged or cut off."""
    header = elf.read_header(data, elf.FileType.LIBRARY)
    notes: list[Note] = []
    for offset in header.segments:
        kind, _, at, _, _, size, _, align = elf.unpack(
            elf.SEGMENT, data, offset, "a program header"
        )
        if kind in (_PT_LOAD, _PT_NOTE):
            elf.check_inside(data, at, size, "a segment")
        if kind == _PT_NOTE:
            notes += elf.read_notes(data, at, size, align)
    return LibraryFile(header.machine, tuple(_defined(data, header)), tuple(notes))


def read_import_bytes(data: bytes) -> bytes | None:
    """What stands at `__tvm_ffi__library_bin` in a library or object that was read before."""
    kind = elf.FileType(int.from_bytes(data[16:18], "little"))
    header = elf.read_header(data, kind)
    sections = [elf.read_section(data, offset) for offset in header.sections]
    wanted = elf.SHT_SYMTAB if kind is elf.FileType.OBJECT else elf.SHT_DYNSYM
    for table in sections:
        if table.kind == wanted:
            found = elf.read_constant(data, sections, table, IMPORT_TREE)
            if found is not None:
                return found
    return None


def _defined(data: bytes, header: elf.Header) -> Iterator[str]:
    """The symbols that the library gives to others; nothing where its section headers are gone."""
    sections = [elf.read_section(data, offset) for offset in header.sections]
    for table in sections:
        if table.kind != elf.SHT_DYNSYM:
            continue
        strings = elf.section_at(sections, table.link, elf.SHT_STRTAB, "the names of symbols")
        for section in (table, strings):
            elf.check_inside(data, section.offset, section.size, "a section")
        for symbol in elf.read_symbols(data, sections, table, placed=False):
            if symbol.defined:
                yield symbol.name
