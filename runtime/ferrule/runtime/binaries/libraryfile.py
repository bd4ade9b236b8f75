"""Reads ELF64 shared libraries: machine, symbols and notes, and whether the file is whole.

The system's loader would map a truncated file and crash later, so `read_library` checks a library
before it is loaded.
"""

from __future__ import annotations

from ferrule.runtime.binaries import dynamic, elf
from ferrule.runtime.binaries.elf import Machine, Note
from ferrule.runtime.binaries.importtree import SYMBOL as IMPORT_TREE
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """The machine, the symbols and the notes of a library."""

    machine: Machine
    defined: tuple[str, ...]
    undefined: tuple[str, ...]
    notes: tuple[Note, ...]


def read_library(data: bytes) -> LibraryFile:
    """Read the headers of a library; ObjectFileError for a damaged, truncated or other file."""
    header = elf.read_header(data, elf.FileType.LIBRARY)
    segments = elf.read_segments(data, header)
    notes: list[Note] = []
    for segment in segments:
        if segment.kind == elf.PT_NOTE:
            notes += elf.read_notes(data, segment.offset, segment.size, segment.align)
    symbols = list(dynamic.symbols(dynamic.read_dynamic(data, segments)))
    return LibraryFile(
        header.machine,
        defined=tuple(symbol.name for symbol in symbols if symbol.defined),
        undefined=tuple(symbol.name for symbol in symbols if not symbol.defined),
        notes=tuple(notes),
    )


def read_import_bytes(data: bytes) -> bytes | None:
    """The bytes at `__tvm_ffi__library_bin` in a library or object that has been checked."""
    kind = elf.FileType(int.from_bytes(data[16:18], "little"))
    header = elf.read_header(data, kind)
    if kind is elf.FileType.LIBRARY:
        segments = elf.read_segments(data, header)
        return dynamic.read_constant(dynamic.read_dynamic(data, segments), IMPORT_TREE)
    sections = [elf.read_section(data, offset) for offset in header.sections]
    for table in sections:
        if table.kind == elf.SHT_SYMTAB:
            found = elf.read_constant(data, sections, table, IMPORT_TREE)
            if found is not None:
                return found
    return None
