"""Takes precompiled code apart: the functions and constants of an object file from LLVM.

Each of them is in a section of its own.  It supports ELF only: `read` returns None for anything
unknown.  `placement` decides which parts go into an object, and in which form.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ferrule.specs.deferred import dataclass

_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")

_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_WRITE, _ALLOC = 1, 2

RELOCATIONS: Final = MappingProxyType(
    {
        (62, 1): "R_X86_64_64",
        (62, 2): "R_X86_64_PC32",
        (62, 4): "R_X86_64_PLT32",
        (183, 257): "R_AARCH64_ABS64",
        (183, 261): "R_AARCH64_PREL32",
        (183, 275): "R_AARCH64_ADR_PREL_PG_HI21",
        (183, 277): "R_AARCH64_ADD_ABS_LO12_NC",
        (183, 278): "R_AARCH64_LDST8_ABS_LO12_NC",
        (183, 282): "R_AARCH64_JUMP26",
        (183, 283): "R_AARCH64_CALL26",
        (183, 284): "R_AARCH64_LDST16_ABS_LO12_NC",
        (183, 285): "R_AARCH64_LDST32_ABS_LO12_NC",
        (183, 286): "R_AARCH64_LDST64_ABS_LO12_NC",
        (183, 299): "R_AARCH64_LDST128_ABS_LO12_NC",
    }
)
"""Relocations by ELF machine and number."""
RELATIVE: Final = frozenset({"R_X86_64_PC32", "R_X86_64_PLT32", "R_AARCH64_PREL32"})
"""The relocations that are a 32-bit distance from their place."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a piece that refers to an outside symbol, or to a place in a piece by its number.

    `offset` is the place, `kind` the relocation's name; without a symbol, `addend` counts from the
    start of the target piece.
    """

    offset: int
    kind: str
    symbol: str
    piece: int
    addend: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A function, constant or variable."""

    section: str
    data: bytes
    align: int
    is_written: bool
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Precompiled:
    """The pieces by number, and where each symbol is: the piece and the offset in it."""

    pieces: Mapping[int, Piece]
    symbols: Mapping[str, tuple[int, int]]


def joined(first: Precompiled, second: Precompiled) -> Precompiled:
    """Merges two objects and resolves the references between them."""
    after = max(first.pieces, default=0) + 1
    symbols = {name: (after + number, at) for name, (number, at) in second.symbols.items()}
    symbols |= first.symbols

    def found(each: Reference, moved: int) -> Reference:
        if not each.symbol:
            return replace(each, piece=each.piece + moved)
        if each.symbol not in symbols:
            return each
        number, at = symbols[each.symbol]
        return replace(each, symbol="", piece=number, addend=each.addend + at)

    pieces = {
        moved + number: replace(piece, references=tuple(found(r, moved) for r in piece.references))
        for code, moved in ((first, 0), (second, after))
        for number, piece in code.pieces.items()
    }
    return Precompiled(MappingProxyType(pieces), MappingProxyType(symbols))


class _UnknownError(Exception):
    """The object contains something that this reader does not support."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    data: bytes
    link: int
    info: int
    align: int

    @property
    def is_carried(self) -> bool:
        """Whether it is code or data; frames for unwinding are omitted."""
        loaded = self.kind == _PROGBITS and self.flags & _ALLOC
        return bool(loaded and self.data and self.name != ".eh_frame")


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int


def read(code: bytes) -> Precompiled | None:
    """The pieces of an object file; None if it contains anything unsupported."""
    if code[:7] != b"\x7fELF\x02\x01\x01":
        return None
    machine, sections = _sections(code)
    carried = {i for i, section in enumerate(sections) if section.is_carried}
    symbols = [symbol for each in sections for symbol in _symbols(each, sections)]
    references: dict[int, list[Reference]] = {i: [] for i in carried}
    try:
        for rows in sections:
            if rows.kind == _RELA and rows.info in carried:
                references[rows.info] += _references(machine, rows, carried, symbols)
    except _UnknownError:
        return None
    return Precompiled(
        MappingProxyType({i: _piece(sections[i], references[i]) for i in sorted(carried)}),
        MappingProxyType(
            {each.name: (each.section, each.value) for each in symbols if each.section in carried}
        ),
    )


def _sections(code: bytes) -> tuple[int, list[_Section]]:
    """The ELF machine, and all sections."""
    header = _HEADER.unpack_from(code)
    machine, at, count, names = header[1], header[5], header[11], header[12]
    rows = [_SECTION.unpack_from(code, at + _SECTION.size * i) for i in range(count)]
    table = code[rows[names][4] :]
    return machine, [
        _Section(
            _text(table, name), kind, flags, code[start : start + size], link, info, max(1, align)
        )
        for name, kind, flags, _, start, size, link, info, align, _ in rows
    ]


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _symbols(table: _Section, sections: Sequence[_Section]) -> list[_Symbol]:
    if table.kind != _SYMTAB:
        return []
    names = sections[table.link].data
    rows = _SYMBOL.iter_unpack(table.data)
    return [_Symbol(_text(names, name), section, value) for name, _, _, section, value, _ in rows]


def _references(
    machine: int, rows: _Section, carried: set[int], symbols: Sequence[_Symbol]
) -> list[Reference]:
    found = []
    for offset, info, addend in _RELOCATION.iter_unpack(rows.data):
        symbol, kind = symbols[info >> 32], RELOCATIONS.get((machine, info & 0xFFFFFFFF))
        if kind is None or (symbol.section and symbol.section not in carried):
            raise _UnknownError
        if symbol.section:
            found.append(Reference(offset, kind, "", symbol.section, addend + symbol.value))
        else:
            found.append(Reference(offset, kind, symbol.name, 0, addend))
    return found


def _piece(section: _Section, references: Sequence[Reference]) -> Piece:
    # LLVM makes constants with references writable for the linker; relative references do not need
    # it.
    is_constant = section.name.startswith(".rodata.")
    is_relative = all(each.kind in RELATIVE for each in references)
    is_written = bool(section.flags & _WRITE) and not (is_constant and is_relative)
    return Piece(section.name, section.data, section.align, is_written, tuple(references))
