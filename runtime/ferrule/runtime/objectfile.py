"""Reads ELF64 relocatable objects: machine, defined and undefined symbols, sound structure.

LLVM ends the process on objects that are cut off, foreign or damaged, so whatever is handed to it
passes `read_object` first. Every offset and index is checked against what it points into before it
is used: any bytes at all give an `ObjectFile` or an `ObjectFileError`. Section contents (the
machine code) are not judged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class ObjectFileError(ValueError):
    """The bytes are no object file to use here; says what was wanted and what came."""


class Machine(IntEnum):
    """The processors that ferrule emits host code for, by their ELF number."""

    X86_64 = 62
    AARCH64 = 183


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """What an object's headers say."""

    machine: Machine
    defined: tuple[str, ...]
    undefined: tuple[str, ...]


_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")

_ELF64_LITTLE: Final = bytes((2, 1, 1))  # class, byte order, version
_ET_REL: Final = 1
_TYPES: Final = {2: "an executable", 3: "a shared library", 4: "a core dump"}

_SHT_SYMTAB: Final = 2
_SHT_STRTAB: Final = 3
_SHT_RELA: Final = 4
_SHT_NOBITS: Final = 8
_SHT_REL: Final = 9
_SHN_UNDEF: Final = 0
_SHN_RESERVED: Final = 0xFF00
_SHN_ABS: Final = 0xFFF1
_STB_LOCAL: Final = 0
_STV_VISIBLE: Final = (0, 3)  # default, protected

_MAX_ALIGN: Final = 1 << 16

_FOREIGN: Final = (
    (b"!<arch>\n", "an archive (.a)"),
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
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


def read_object(data: bytes) -> ObjectFile:
    """Read the headers of an object; ObjectFileError where it is none or is damaged."""
    machine, table = _read_header(data)
    sections = [_read_section(data, offset) for offset in table]
    for section in sections:
        _check_extent(data, section)
    tables = [section for section in sections if section.kind == _SHT_SYMTAB]
    if len(tables) > 1:
        raise ObjectFileError(f"wanted an object with one symbol table, got {len(tables)}")
    for section in sections:
        if section.kind in (_SHT_RELA, _SHT_REL):
            _check_relocations(data, sections, section)
    symbols = [symbol for table in tables for symbol in _symbols(data, sections, table)]
    return ObjectFile(
        machine,
        defined=tuple(name for name, defined in symbols if defined),
        undefined=tuple(name for name, defined in symbols if not defined),
    )


def _read_header(data: bytes) -> tuple[Machine, range]:
    """The machine and the offsets of the section headers."""
    _check_magic(data)
    kind, machine, _, _, _, at, _, _, _, _, size, count, _ = _unpack(
        _HEADER, data, 0, "the ELF header"
    )
    if data[4:7] != _ELF64_LITTLE:
        raise ObjectFileError("wanted a 64-bit little-endian ELF object, got another class of ELF")
    if kind != _ET_REL:
        got = _TYPES.get(kind, f"ELF type {kind}")
        raise ObjectFileError(f"wanted a relocatable object (.o), got {got}")
    if machine not in list(Machine):
        wanted = " or ".join(m.name.lower() for m in Machine)
        raise ObjectFileError(f"wanted an object for {wanted}, got ELF machine {machine}")
    if size != _SECTION.size or count == 0:
        raise ObjectFileError(
            f"wanted section headers of {_SECTION.size} bytes, got {count} of {size}"
        )
    _check_inside(data, at, size * count, "the section headers")
    return Machine(machine), range(at, at + size * count, size)


def _check_magic(data: bytes) -> None:
    if data[:4] == b"\x7fELF":
        return
    got = next((what for magic, what in _FOREIGN if data.startswith(magic)), None)
    if got is None:
        got = f"bytes that begin with {data[:8].hex(' ')}" if data else "no bytes"
    raise ObjectFileError(f"wanted an ELF object, got {got}")


def _read_section(data: bytes, offset: int) -> _Section:
    _, kind, _, _, at, size, link, info, align, entry_size = _unpack(
        _SECTION, data, offset, "a section header"
    )
    return _Section(kind, at, size, link, info, align, entry_size)


def _check_extent(data: bytes, section: _Section) -> None:
    if section.kind == 0:
        return
    if section.align > _MAX_ALIGN or section.align & (section.align - 1):
        raise ObjectFileError(f"wanted a section alignment, got {section.align}")
    if section.kind == _SHT_NOBITS:
        if section.size >= 1 << 40:
            raise ObjectFileError(f"a section asks for {section.size} bytes of zeros")
        return
    _check_inside(data, section.offset, section.size, "a section")


def _check_relocations(data: bytes, sections: list[_Section], section: _Section) -> None:
    if section.kind == _SHT_REL or section.entry_size != _RELOCATION.size:
        raise ObjectFileError("wanted relocations with addends of 24 bytes, got another form")
    if section.size % _RELOCATION.size:
        raise ObjectFileError("the object is cut off: a relocation is not whole")
    symbols = _section_at(sections, section.link, _SHT_SYMTAB, "the symbols of relocations")
    target = _section_at(sections, section.info, None, "the section that relocations change")
    count = symbols.size // _SYMBOL.size
    limit = 0 if target.kind in (0, _SHT_NOBITS) else target.size
    for at, info, _ in _entries(_RELOCATION, data, section):
        if info >> 32 >= count:
            raise ObjectFileError(f"a relocation names symbol {info >> 32} of {count}")
        if at >= limit:
            raise ObjectFileError(f"a relocation is at {at} of a section of {limit} bytes")


def _symbols(data: bytes, sections: list[_Section], table: _Section) -> Iterator[tuple[str, bool]]:
    """Name and definedness of each symbol that other objects can see or that it needs."""
    if table.entry_size != _SYMBOL.size or table.size % _SYMBOL.size:
        raise ObjectFileError(f"wanted symbols of {_SYMBOL.size} bytes, got another size")
    strings = _section_at(sections, table.link, _SHT_STRTAB, "the names of symbols")
    names = data[strings.offset : strings.offset + strings.size]
    for name_at, info, other, where, value, size in _entries(_SYMBOL, data, table):
        name = _name(names, name_at)
        _check_place(sections, name, where, value, size)
        if info >> 4 == _STB_LOCAL or not name:
            continue
        if where == _SHN_UNDEF:
            yield name, False
        elif other & 3 in _STV_VISIBLE:
            yield name, True


def _check_place(sections: list[_Section], name: str, where: int, value: int, size: int) -> None:
    if where in (_SHN_UNDEF, _SHN_ABS):
        return
    if where >= _SHN_RESERVED or where >= len(sections):
        raise ObjectFileError(f"symbol {name!r} is in section {where} of {len(sections)}")
    limit = sections[where].size
    if value > limit or size > limit - value:
        raise ObjectFileError(f"symbol {name!r} reaches past its section of {limit} bytes")


def _name(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    if at >= len(names) or end < 0:
        raise ObjectFileError("a symbol's name is outside the table of names")
    return names[at:end].decode("utf-8", "backslashreplace")


def _section_at(sections: list[_Section], index: int, kind: int | None, what: str) -> _Section:
    if not 0 < index < len(sections):
        raise ObjectFileError(f"{what}: section {index} of {len(sections)}")
    section = sections[index]
    if kind is not None and section.kind != kind:
        raise ObjectFileError(f"{what}: wanted a section of type {kind}, got {section.kind}")
    return section


def _entries(form: struct.Struct, data: bytes, section: _Section) -> Iterator[tuple[int, ...]]:
    return form.iter_unpack(memoryview(data)[section.offset : section.offset + section.size])


def _unpack(form: struct.Struct, data: bytes, offset: int, what: str) -> tuple[int, ...]:
    _check_inside(data, offset, form.size, what)
    return form.unpack_from(data, offset)


def _check_inside(data: bytes, offset: int, size: int, what: str) -> None:
    if offset > len(data) or size > len(data) - offset:
        raise ObjectFileError(
            f"the object is cut off: {what} is at {offset} and takes {size} bytes, "
            f"but there are {len(data)}"
        )
