"""Writes an ELF object that defines one symbol: constant bytes for a linker, with their digest."""

from __future__ import annotations

import struct
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.digest import EMPTY_NOTE, sealed_object
from ferrule.runtime.binaries.elf import Machine
from ferrule.runtime.binaries.metadata import NOTE_SECTION

_SHT_PROGBITS: Final = 1
_SHF_ALLOC: Final = 2
_STB_GLOBAL: Final = 1
_STT_OBJECT: Final = 1
# Where `e_flags` lies in an ELF64 header: a linker refuses objects whose flags differ.
_FLAGS_AT: Final = 48
_ALIGN: Final = 16
_IDENT: Final = b"\x7fELF\x02\x01\x01" + bytes(9)


def data_object(symbol: str, data: bytes, machine: Machine, flags: int = 0) -> bytes:
    """The object for a machine; `flags` are the ELF flags of the objects that join it in a link."""
    strings = b"\0" + symbol.encode() + b"\0"
    symbols = elf.SYMBOL.pack(0, 0, 0, 0, 0, 0) + elf.SYMBOL.pack(
        1, _STB_GLOBAL << 4 | _STT_OBJECT, 0, 1, 0, len(data)
    )
    note = NOTE_SECTION.encode() + b"\0"
    names = b"\0.rodata\0.symtab\0.strtab\0.note.GNU-stack\0" + note
    parts = [data, symbols, strings, names, EMPTY_NOTE]
    offsets, end = [], elf_header_size()
    for part in parts:
        end = -(-end // _ALIGN) * _ALIGN
        offsets.append(end)
        end += len(part)
    end = -(-end // _ALIGN) * _ALIGN

    def section(name: bytes, kind: int, part: int, *rest: int, flag: int = 0) -> bytes:
        at, size = (offsets[part], len(parts[part])) if part >= 0 else (0, 0)
        return elf.SECTION.pack(names.index(name + b"\0"), kind, flag, 0, at, size, *rest)

    headers = [
        bytes(elf.SECTION.size),
        section(b".rodata", _SHT_PROGBITS, 0, 0, 0, _ALIGN, 0, flag=_SHF_ALLOC),
        section(b".symtab", elf.SHT_SYMTAB, 1, 3, 1, 8, elf.SYMBOL.size),
        section(b".strtab", elf.SHT_STRTAB, 2, 0, 0, 1, 0),
        section(b".strtab", elf.SHT_STRTAB, 3, 0, 0, 1, 0),
        section(b".note.GNU-stack", _SHT_PROGBITS, -1, 0, 0, 1, 0),
        section(NOTE_SECTION.encode(), elf.SHT_NOTE, 4, 0, 0, 4, 0, flag=_SHF_ALLOC),
    ]
    header = _header(machine, flags, end, len(headers), names=4)
    file = bytearray(end)
    for at, part in zip([0, *offsets], [header, *parts], strict=True):
        file[at : at + len(part)] = part
    return sealed_object(bytes(file) + b"".join(headers))


def elf_header_size() -> int:
    """The bytes of an ELF64 header."""
    return elf.HEADER.size


def _header(machine: Machine, flags: int, sections_at: int, count: int, names: int) -> bytes:
    packed = elf.HEADER.pack(
        elf.FileType.OBJECT,
        machine,
        1,
        0,
        0,
        sections_at,
        flags,
        elf.HEADER.size,
        0,
        0,
        elf.SECTION.size,
        count,
        names,
    )
    return _IDENT + packed[len(_IDENT) :]


def flags_of(code: bytes) -> int:
    """The flags in the ELF header of an object; a linker requires equal flags of all objects."""
    return int(struct.unpack_from("<I", code, _FLAGS_AT)[0])
