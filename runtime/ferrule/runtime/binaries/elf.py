"""ELF64 as far as ferrule reads it: headers, sections, symbols and notes, every offset checked.

For any bytes, a function returns its result or raises `ObjectFileError`. `objectfile` and
`libraryfile` use it to read whole files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from ferrule.specs.deferred import dataclass


class ObjectFileError(ValueError):
    """The bytes are not an object file that can be used here; the message says why."""


class Machine(IntEnum):
    """The processors for which ferrule emits host code, by their ELF number."""

    X86_64 = 62
    AARCH64 = 183
    RISCV64 = 243


class FileType(IntEnum):
    """The types of ELF files, by number."""

    OBJECT = 1
    EXECUTABLE = 2
    LIBRARY = 3
    CORE = 4


_WORDS: Final = {
    FileType.OBJECT: "a relocatable object (.o)",
    FileType.EXECUTABLE: "an executable",
    FileType.LIBRARY: "a shared library",
    FileType.CORE: "a core dump",
}

HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SEGMENT: Final = struct.Struct("<IIQQQQQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
RELOCATION: Final = struct.Struct("<QQq")
_NOTE: Final = struct.Struct("<III")

_ELF64_LITTLE: Final = bytes((2, 1, 1))  # class, byte order, version

# Numbers of the System V ABI (gABI, chapters 4 and 5), by the names of its tables.
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_RELA: Final = 4
SHT_NOTE: Final = 7
SHF_ALLOC: Final = 2
SHF_TLS: Final = 0x400
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_DYNSYM: Final = 11
SHN_UNDEF: Final = 0
SHN_RESERVED: Final = 0xFF00
SHN_ABS: Final = 0xFFF1
SHN_COMMON: Final = 0xFFF2
STB_LOCAL: Final = 0
STB_WEAK: Final = 2
STV_VISIBLE: Final = (0, 3)  # default, protected
PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_NOTE: Final = 4

ARCHIVE: Final = b"!<arch>\n"
"""How an archive of objects begins."""

_FOREIGN: Final = (
    (ARCHIVE, "an archive (.a)"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"MZ", "a Windows executable"),
    (b"\x64\x86", "a COFF object"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
    (b"\xca\xfe\xba\xbe", "a Mach-O universal file"),
    (b"\0asm", "a WebAssembly module"),
    (b"//", "text"),
    (b"; ModuleID", "LLVM assembly"),
)


@dataclass(frozen=True, slots=True)
class Header:
    """The ELF header: the machine, and the offsets of the headers of sections and segments.

    `names` is the index of the section with the names of sections.
    """

    machine: Machine
    sections: range
    segments: range
    names: int


@dataclass(frozen=True, slots=True)
class Section:
    """A section header."""

    kind: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int
    address: int = 0
    flags: int = 0
    name_at: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header; `size` is the size in the file, `memory` the size in the process."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int
    memory: int
    align: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol that this file exports or imports."""

    name: str
    defined: bool
    weak: bool


@dataclass(frozen=True, slots=True)
class Note:
    """An ELF note: data that tools and loaders can read without running code."""

    owner: str
    kind: int
    text: bytes


def read_header(data: bytes, wanted: FileType) -> Header:
    """The header of a file; ObjectFileError unless type and machine are supported."""
    check_magic(data)
    kind, machine, _, _, segments_at, at, _, _, segment_size, segments, size, count, text = unpack(
        HEADER, data, 0, "the ELF header"
    )
    if data[4:7] != _ELF64_LITTLE:
        raise ObjectFileError("wanted a 64-bit little-endian ELF object, got another class of ELF")
    if kind != wanted:
        got = _WORDS[FileType(kind)] if kind in list(FileType) else f"ELF type {kind}"
        raise ObjectFileError(f"wanted {_WORDS[wanted]}, got {got}")
    if machine not in list(Machine):
        *names, last = (m.name.lower() for m in Machine)
        known = f"{', '.join(names)} or {last}"
        raise ObjectFileError(f"wanted code for {known}, got ELF machine {machine}")
    if count and size != SECTION.size:
        raise ObjectFileError(f"wanted section headers of {SECTION.size} bytes, got {size}")
    if segments and segment_size != SEGMENT.size:
        raise ObjectFileError(f"wanted program headers of {SEGMENT.size} bytes")
    check_inside(data, at, size * count, "the section headers")
    check_inside(data, segments_at, segment_size * segments, "the program headers")
    return Header(
        Machine(machine),
        range(at, at + size * count, SECTION.size),
        range(segments_at, segments_at + segment_size * segments, SEGMENT.size),
        text,
    )


def check_magic(data: bytes) -> None:
    """ObjectFileError that describes the bytes, unless they begin with the magic number of ELF."""
    if data[:4] == b"\x7fELF":
        return
    got = next((what for magic, what in _FOREIGN if data.startswith(magic)), None)
    if got is None:
        got = f"bytes that begin with {data[:8].hex(' ')}" if data else "no bytes"
    raise ObjectFileError(f"wanted an ELF object, got {got}")


def read_section(data: bytes, offset: int) -> Section:
    """The section header at this offset."""
    name_at, kind, flags, address, at, size, link, info, align, entry_size = unpack(
        SECTION, data, offset, "a section header"
    )
    return Section(kind, at, size, link, info, align, entry_size, address, flags, name_at)


def read_segments(data: bytes, header: Header) -> list[Segment]:
    """The segments of a file.

    Loaded segments, notes and the dynamic section are read later, so they must be inside the file.
    """
    found = []
    for at in header.segments:
        kind, flags, offset, address, _, size, memory, align = unpack(
            SEGMENT, data, at, "a program header"
        )
        if kind in (PT_LOAD, PT_DYNAMIC, PT_NOTE):
            check_inside(data, offset, size, "a segment")
        found.append(Segment(kind, flags, offset, address, size, memory, align))
    return found


def read_notes(data: bytes, offset: int, size: int, align: int) -> Iterator[Note]:
    """The notes of a section or segment, up to the first damaged one."""
    # Notes of GNU's properties are aligned to 8; all others to 4, whatever the alignment says.
    pad = 8 if align == 8 else 4
    end = offset + size
    while offset + _NOTE.size <= end:
        owner_size, text_size, kind = _NOTE.unpack_from(data, offset)
        owner_at = offset + _NOTE.size
        text_at = owner_at + -(-owner_size // 4) * 4
        if text_at + text_size > end:
            return
        owner = bytes(data[owner_at : owner_at + owner_size]).rstrip(b"\0")
        text = bytes(data[text_at : text_at + text_size])
        yield Note(owner.decode("utf-8", "backslashreplace"), kind, text)
        offset = text_at + -(-text_size // pad) * pad


def read_symbols(
    data: bytes, sections: Sequence[Section], table: Section, *, placed: bool = True
) -> Iterator[Symbol]:
    """The symbols of a table that the file exports or imports.

    `placed`: values are offsets in sections, and each must be inside of its section.
    """
    if table.entry_size != SYMBOL.size or table.size % SYMBOL.size:
        raise ObjectFileError(f"wanted symbols of {SYMBOL.size} bytes, got another size")
    strings = section_at(sections, table.link, SHT_STRTAB, "the names of symbols")
    names = data[strings.offset : strings.offset + strings.size]
    for name_at, info, other, where, value, size in entries(SYMBOL, data, table):
        name = read_name(names, name_at)
        if placed:
            _check_place(sections, name, where, value, size)
        binding = info >> 4
        if binding == STB_LOCAL or not name:
            continue
        if where == SHN_UNDEF or other & 3 in STV_VISIBLE:
            yield Symbol(name, where != SHN_UNDEF, binding == STB_WEAK)


def read_constant(
    data: bytes, sections: Sequence[Section], table: Section, name: str
) -> bytes | None:
    """The bytes from a symbol to the end of its section; None if the symbol is not defined."""
    strings = section_at(sections, table.link, SHT_STRTAB, "the names of symbols")
    names = data[strings.offset : strings.offset + strings.size]
    for name_at, _, _, where, value, _ in entries(SYMBOL, data, table):
        if where in (SHN_UNDEF, SHN_ABS) or read_name(names, name_at) != name:
            continue
        section = section_at(sections, where, None, f"the symbol {name}")
        start = value - section.address
        if section.kind == SHT_NOBITS or not 0 <= start <= section.size:
            raise ObjectFileError(f"the symbol {name} is not in its section")
        check_inside(data, section.offset, section.size, "a section")
        return bytes(data[section.offset + start : section.offset + section.size])
    return None


def _check_place(sections: Sequence[Section], name: str, where: int, value: int, size: int) -> None:
    if where in (SHN_UNDEF, SHN_ABS):
        return
    if where == SHN_COMMON:
        raise ObjectFileError(
            f"the variable {name!r} is common, which only a linker places: compile it with "
            "-fno-common"
        )
    if where >= SHN_RESERVED or where >= len(sections):
        raise ObjectFileError(f"symbol {name!r} is in section {where} of {len(sections)}")
    limit = sections[where].size
    if value > limit or size > limit - value:
        raise ObjectFileError(f"symbol {name!r} reaches past its section of {limit} bytes")


def check_section_names(data: bytes, sections: Sequence[Section], names: int) -> None:
    """ObjectFileError where a section's name is outside of the section `names`."""
    table = section_at(sections, names, SHT_STRTAB, "the names of sections")
    text = data[table.offset : table.offset + table.size]
    for section in sections:
        read_name(text, section.name_at, "section")


def read_name(names: bytes, at: int, what: str = "symbol") -> str:
    """The name at this offset of a string table; `what` names its owner in errors."""
    end = names.find(b"\0", at)
    if at >= len(names) or end < 0:
        raise ObjectFileError(f"a {what}'s name is outside the table of names")
    return names[at:end].decode("utf-8", "backslashreplace")


def section_at(sections: Sequence[Section], index: int, kind: int | None, what: str) -> Section:
    """The section at this index; ObjectFileError unless it has this kind (None: any kind)."""
    if not 0 < index < len(sections):
        raise ObjectFileError(f"{what}: section {index} of {len(sections)}")
    section = sections[index]
    if kind is not None and section.kind != kind:
        raise ObjectFileError(f"{what}: wanted a section of type {kind}, got {section.kind}")
    return section


def entries(form: struct.Struct, data: bytes, section: Section) -> Iterator[tuple[int, ...]]:
    """The entries of a section that is an array."""
    return form.iter_unpack(memoryview(data)[section.offset : section.offset + section.size])


def unpack(form: struct.Struct, data: bytes, offset: int, what: str) -> tuple[int, ...]:
    """Unpack one struct; the error for a truncated file calls it `what`."""
    check_inside(data, offset, form.size, what)
    return form.unpack_from(data, offset)


def check_inside(data: bytes, offset: int, size: int, what: str) -> None:
    """ObjectFileError where a part of the file reaches past its end."""
    if offset > len(data) or size > len(data) - offset:
        raise ObjectFileError(
            f"the object is cut off: {what} is at {offset} and takes {size} bytes, "
            f"but there are {len(data)}"
        )
