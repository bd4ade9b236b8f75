"""The dynamic section of a shared library: the positions of the tables for the system's loader.

Like the loader, this module finds the section through the segments: section headers are for other
tools, and `strip` may remove them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import ObjectFileError, Section, Segment, Symbol
from ferrule.specs.deferred import dataclass

_ENTRY: Final = struct.Struct("<QQ")
_WORD: Final = struct.Struct("<I")
_TWO: Final = struct.Struct("<II")
_GNU_HASH: Final = struct.Struct("<IIII")
_STT_TLS: Final = 6
_PIE: Final = 0x08000000
"""DF_1_PIE of `DT_FLAGS_1` (glibc, elf.h)."""


class Tag(IntEnum):
    """The tags of entries in the dynamic section, by number."""

    NULL = 0
    NEEDED = 1
    PLTRELSZ = 2
    PLTGOT = 3
    HASH = 4
    STRTAB = 5
    SYMTAB = 6
    RELA = 7
    RELASZ = 8
    RELAENT = 9
    STRSZ = 10
    SYMENT = 11
    INIT = 12
    FINI = 13
    SONAME = 14
    RPATH = 15
    REL = 17
    PLTREL = 20
    TEXTREL = 22
    JMPREL = 23
    INIT_ARRAY = 25
    FINI_ARRAY = 26
    INIT_ARRAYSZ = 27
    FINI_ARRAYSZ = 28
    RUNPATH = 29
    FLAGS = 30
    RELRSZ = 35
    RELR = 36
    GNU_HASH = 0x6FFFFEF5
    VERSYM = 0x6FFFFFF0
    RELACOUNT = 0x6FFFFFF9
    FLAGS_1 = 0x6FFFFFFB
    VERDEF = 0x6FFFFFFC
    VERDEFNUM = 0x6FFFFFFD
    VERNEED = 0x6FFFFFFE
    VERNEEDNUM = 0x6FFFFFFF


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A parsed dynamic section: the value of each tag, and the names of the needed libraries.

    `loads` are the loaded segments; all addresses in the section are inside of them.
    """

    data: bytes
    loads: tuple[Segment, ...]
    values: Mapping[int, int]
    needed: tuple[int, ...] = ()

    def place(self, address: int, size: int, what: str) -> int:
        """The file offset of `size` bytes at an address of the loaded library."""
        for load in self.loads:
            if load.address <= address and address + size <= load.address + load.size:
                return address - load.address + load.offset
        raise ObjectFileError(f"{what} is at {address:#x} and takes {size} bytes: not in the file")

    def table(self, tag: Tag, size: int) -> int | None:
        """The file offset of the table with this tag; None if the library has no such table."""
        address = self.values.get(tag)
        return None if address is None else self.place(address, size, f"the table {tag.name}")

    def unpack(self, form: struct.Struct, address: int, what: str) -> tuple[int, ...]:
        """One struct at this address."""
        return form.unpack_from(self.data, self.place(address, form.size, what))


def read_dynamic(data: bytes, segments: Sequence[Segment]) -> Dynamic:
    """The dynamic section of a library; an empty one where it has none."""
    loads = tuple(segment for segment in segments if segment.kind == elf.PT_LOAD)
    values: dict[int, int] = {}
    needed: list[int] = []
    for segment in segments:
        if segment.kind != elf.PT_DYNAMIC:
            continue
        whole = segment.size - segment.size % _ENTRY.size
        for tag, value in _ENTRY.iter_unpack(data[segment.offset : segment.offset + whole]):
            if tag == Tag.NULL:
                break
            values[tag] = value
            if tag == Tag.NEEDED:
                needed.append(value)
        else:
            raise ObjectFileError("the dynamic section has no end")
    return Dynamic(data, loads, values, tuple(needed))


def is_program(dynamic: Dynamic) -> bool:
    """Whether the file is a program, which no other program can load as a library."""
    return bool(dynamic.values.get(Tag.FLAGS_1, 0) & _PIE)


def symbols(dynamic: Dynamic) -> Iterator[Symbol]:
    """The symbols that the library exports or imports."""
    tables = _tables(dynamic)
    if tables is not None:
        table, strings = tables
        yield from elf.read_symbols(dynamic.data, (strings, strings), table, placed=False)


def read_constant(dynamic: Dynamic, name: str) -> bytes | None:
    """The bytes from a symbol to the end of its segment; None if the symbol is not defined."""
    tables = _tables(dynamic)
    if tables is None:
        return None
    table, strings = tables
    names = dynamic.data[strings.offset : strings.offset + strings.size]
    for name_at, info, _, where, value, _ in elf.entries(elf.SYMBOL, dynamic.data, table):
        if where in (elf.SHN_UNDEF, elf.SHN_ABS) or info & 15 == _STT_TLS:
            continue
        if elf.read_name(names, name_at) == name:
            start = dynamic.place(value, 0, f"the symbol {name}")
            ends = (load.offset + load.size for load in dynamic.loads)
            return dynamic.data[start : min(end for end in ends if end >= start)]
    return None


def _tables(dynamic: Dynamic) -> tuple[Section, Section] | None:
    """The symbols and their names, as sections."""
    count = symbol_count(dynamic)
    size = dynamic.values.get(Tag.STRSZ, 0)
    table = dynamic.table(Tag.SYMTAB, count * elf.SYMBOL.size)
    strings = dynamic.table(Tag.STRTAB, size)
    if table is None or strings is None:
        return None
    entry = dynamic.values.get(Tag.SYMENT, 0)
    return (
        Section(elf.SHT_DYNSYM, table, count * elf.SYMBOL.size, 1, 0, 8, entry),
        Section(elf.SHT_STRTAB, strings, size, 0, 0, 1, 0),
    )


def symbol_count(dynamic: Dynamic) -> int:
    """The length of the symbol table, computed from a hash table: no tag stores the length."""
    plain = dynamic.values.get(Tag.HASH)
    if plain is not None:
        return dynamic.unpack(_TWO, plain, "the hash table")[1]
    table = dynamic.values.get(Tag.GNU_HASH)
    if table is None:
        return 0
    buckets, first, bloom, _ = dynamic.unpack(_GNU_HASH, table, "the hash table")
    start = table + _GNU_HASH.size + 8 * bloom
    at = dynamic.place(start, _WORD.size * buckets, "the hash table")
    words = memoryview(dynamic.data)[at : at + _WORD.size * buckets]
    last = max((word for (word,) in _WORD.iter_unpack(words)), default=0)
    if last < first:
        return first
    chains = start + _WORD.size * (buckets - first)
    while not dynamic.unpack(_WORD, chains + _WORD.size * last, "the hash table")[0] & 1:
        last += 1
    return last + 1
