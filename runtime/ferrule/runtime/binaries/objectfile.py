"""Reads ELF64 relocatable objects: machine, defined and undefined symbols, sound structure.

LLVM ends the process on truncated, foreign or damaged objects, so `read_object` checks each object
before LLVM gets it. It checks each offset and index before it uses them: any bytes give an
`ObjectFile` or an `ObjectFileError`. It does not check section contents (the machine code).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import Machine, Note, ObjectFileError, Section, Symbol
from ferrule.specs.deferred import dataclass

__all__ = ["Machine", "ObjectFile", "ObjectFileError", "read_object"]

_MAX_ALIGN: Final = 1 << 16
# Half of the 2 GB that a relative relocation reaches: a place in a block plus this stays in them.
_REACH: Final = 1 << 30

_SHORT: Final = {10: "R_X86_64_32", 11: "R_X86_64_32S", 12: "R_X86_64_16", 14: "R_X86_64_8"}
"""Relocations of x86-64 with fewer bits than an address of a process has."""

_KNOWN: Final = frozenset((0, 1, 2, 4, 9, 22, 24, 25, 26, 27, 29, 41, 42))
"""Relocations that LLVM resolves; it ends the process on others."""

_BEHIND: Final = {41: 2, 42: 3}
"""Relocations whose instruction LLVM rewrites: the number of bytes before the relocated field."""

THREAD_LOCAL: Final = frozenset((19, 20, 21, 22, 23, 34, 35, 36))
"""Relocations of x86-64 to thread-local data."""

_WIDE: Final = {Machine.X86_64: {1, 24, 25, 27, 29, 31}, Machine.AARCH64: {257, 260}}
"""Relocations that change 8 bytes; others of loaded sections change 4."""

_NARROW: Final = {Machine.X86_64: {0}, Machine.AARCH64: {0, 256, 259, 262}}
"""Those that change fewer, or none."""

_BY_TABLE: Final = frozenset((9, 22, 27, 41, 42))
"""Relocations through the global offset table, which has one entry for each name."""


HAS_THREAD_LOCAL: Final = "it has thread-local data"


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """The machine, the symbols and the notes of an object."""

    machine: Machine
    defined: tuple[str, ...]
    undefined: tuple[str, ...]
    notes: tuple[Note, ...]


def read_object(
    data: bytes, resolved: frozenset[int] = frozenset(), *, thread_local: bool = False
) -> ObjectFile:
    """Read the headers of an object; ObjectFileError if it is damaged or not an object.

    `resolved` are relocations of x86-64 that the caller resolves, so LLVM need not support them.
    With `thread_local` the object may have thread-local data, which the caller leaves out.
    """
    resolved |= THREAD_LOCAL if thread_local else frozenset()
    header = elf.read_header(data, elf.FileType.OBJECT)
    if not header.sections:
        raise ObjectFileError(f"wanted section headers of {elf.SECTION.size} bytes, got 0")
    sections = [elf.read_section(data, offset) for offset in header.sections]
    for section in sections:
        _check_extent(data, section)
        if section.flags & elf.SHF_TLS and not thread_local:
            raise ObjectFileError(f"{HAS_THREAD_LOCAL}: link the object into a shared library")
    elf.check_section_names(data, sections, header.names)
    tables = [section for section in sections if section.kind == elf.SHT_SYMTAB]
    if len(tables) > 1:
        raise ObjectFileError(f"wanted an object with one symbol table, got {len(tables)}")
    for section in sections:
        if section.kind in (elf.SHT_RELA, elf.SHT_REL):
            _check_relocations(data, header.machine, sections, section, _KNOWN | resolved)
    symbols = [symbol for table in tables for symbol in elf.read_symbols(data, sections, table)]
    _check_names(symbols)
    kept = [section for section in sections if section.kind == elf.SHT_NOTE]
    return ObjectFile(
        header.machine,
        defined=tuple(symbol.name for symbol in symbols if symbol.defined),
        undefined=tuple(symbol.name for symbol in symbols if not symbol.defined),
        notes=tuple(
            note for at in kept for note in elf.read_notes(data, at.offset, at.size, at.align)
        ),
    )


def _check_names(symbols: Sequence[Symbol]) -> None:
    """ObjectFileError for two symbols with the same name: LLVM would end the process."""
    names: set[str] = set()
    for symbol in symbols:
        if symbol.name in names:
            raise ObjectFileError(f"the object is damaged: two symbols are named {symbol.name!r}")
        names.add(symbol.name)


def _check_extent(data: bytes, section: Section) -> None:
    if section.kind == 0:
        return
    power = section.align > 0 and section.align & (section.align - 1) == 0
    if section.align > _MAX_ALIGN or not power:
        raise ObjectFileError(f"wanted a section alignment, got {section.align}")
    if section.kind == elf.SHT_NOBITS:
        if section.size >= 1 << 40:
            raise ObjectFileError(f"a section asks for {section.size} bytes of zeros")
        return
    elf.check_inside(data, section.offset, section.size, "a section")
    end = section.offset + section.size
    if section.kind == elf.SHT_STRTAB and data[max(end - 1, section.offset) : end] != b"\0":
        raise ObjectFileError("the object is damaged: a table of names has no end")


def _check_relocations(
    data: bytes,
    machine: Machine,
    sections: list[Section],
    section: Section,
    known: frozenset[int],
) -> None:
    if section.kind == elf.SHT_REL or section.entry_size != elf.RELOCATION.size:
        raise ObjectFileError("wanted relocations with addends of 24 bytes, got another form")
    if section.size % elf.RELOCATION.size:
        raise ObjectFileError("the object is cut off: a relocation is not whole")
    symbols = elf.section_at(sections, section.link, elf.SHT_SYMTAB, "the symbols of relocations")
    if symbols.size % elf.SYMBOL.size:
        raise ObjectFileError("the object is cut off: a symbol is not whole")
    table = list(elf.entries(elf.SYMBOL, data, symbols))
    texts = elf.section_at(sections, symbols.link, elf.SHT_STRTAB, "the names of symbols")
    names = memoryview(data)[texts.offset : texts.offset + texts.size]
    target = elf.section_at(sections, section.info, None, "the section that relocations change")
    count = symbols.size // elf.SYMBOL.size
    limit = 0 if target.kind in (0, elf.SHT_NOBITS) else target.size
    is_loaded = bool(target.flags & elf.SHF_ALLOC)
    is_moved = is_loaded and machine is Machine.X86_64
    least: dict[int, int] = {}  # where relocations of a symbol and kind begin; most are several
    last: dict[int, int] = {}  # where they begin at most
    for at, info, addend in elf.entries(elf.RELOCATION, data, section):
        if at >= limit:
            raise ObjectFileError(f"a relocation is at {at} of a section of {limit} bytes")
        if info not in least:
            if info >> 32 >= count:
                raise ObjectFileError(f"a relocation names symbol {info >> 32} of {count}")
            if is_loaded:
                _check_symbol(sections, names, info, table[info >> 32])
            if is_moved:
                _check_kind(info & 0xFFFFFFFF, known)
            least[info] = _BEHIND.get(info & 0xFFFFFFFF, 0) if is_moved else 0
            last[info] = limit - (_width(machine, info & 0xFFFFFFFF) if is_loaded else 0)
        if at > last[info]:
            raise ObjectFileError(f"a relocation at {at} reaches past its section of {limit} bytes")
        if at < least[info]:
            raise ObjectFileError(f"a relocation of an instruction is at {at} of its section")
        if is_moved and not -_REACH <= addend < _REACH:
            raise ObjectFileError(f"a relocation is to a place {addend} bytes off a symbol")


def _width(machine: Machine, kind: int) -> int:
    """The bytes that a relocation of a loaded section changes, at least."""
    if machine not in _WIDE or kind in _NARROW[machine]:
        return 0
    return 8 if kind in _WIDE[machine] else 4


def _check_symbol(
    sections: list[Section], names: memoryview, info: int, symbol: tuple[int, ...]
) -> None:
    """Check the symbol of a relocation in a loaded section; `info` is the relocation's field."""
    name_at, _, _, home, _, _ = symbol
    _check_loaded(sections, home)
    is_nameless = name_at >= len(names) or names[name_at] == 0
    if is_nameless and (home == elf.SHN_UNDEF or info & 0xFFFFFFFF in _BY_TABLE):
        raise ObjectFileError(f"a relocation names symbol {info >> 32}, which has no name")


def _check_loaded(sections: list[Section], home: int) -> None:
    """ObjectFileError if a loaded section refers to a section that is not loaded."""
    if home == elf.SHN_UNDEF or home >= elf.SHN_RESERVED:
        return
    if home >= len(sections) or not sections[home].flags & elf.SHF_ALLOC:
        raise ObjectFileError(f"a relocation names a symbol of section {home}, which is not loaded")


def _check_kind(kind: int, known: frozenset[int]) -> None:
    if kind in _SHORT:
        raise ObjectFileError(
            f"wanted position-independent code, got a relocation {_SHORT[kind]}: "
            f"compile it with -fPIC, or link it into a shared library"
        )
    if kind not in known:
        raise ObjectFileError(
            f"a relocation is of kind {kind}, which LLVM cannot resolve: "
            f"link the object into a shared library"
        )
