"""Code that was compiled before, as assembly that only copies its bytes.

An assembler takes as long for a line of assembly as for a thousand bytes of data.  So the support
code, which stands in every object as it is, goes there as its machine code, with directives for
what a linker must fill in.  For ELF alone: `as_data` returns None for what it does not know, and
then the code's assembly has to do.

Invariant: every label begins with `.Lferrule_` and the name of the piece of code, and no symbol is
visible outside of the object.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")

_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_WRITE, _ALLOC, _EXECUTE, _MERGE = 1, 2, 4, 16
_CHUNK: Final = 4096

_RELOCATIONS: Final = MappingProxyType(
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


@dataclass(frozen=True, slots=True)
class _Section:
    label: str
    name: str
    kind: int
    flags: int
    data: bytes
    link: int
    info: int
    align: int

    @property
    def is_carried(self) -> bool:
        """Code and data; frames for unwinding are left behind."""
        loaded = self.kind == _PROGBITS and self.flags & _ALLOC
        return bool(loaded and self.data and self.name != ".eh_frame")


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int


def as_data(code: bytes, exported: Sequence[str], name: str) -> str | None:
    """Assembly for the sections of an object from LLVM; these of its symbols get their names.

    `name` tells the labels from those of other pieces of code in one object.
    """
    if code[:7] != b"\x7fELF\x02\x01\x01":
        return None
    machine, sections = _sections(code, f".Lferrule_{name}_")
    carried = {i: section for i, section in enumerate(sections) if section.is_carried}
    symbols = [
        symbol for each in sections if each.kind == _SYMTAB for symbol in _symbols(each, sections)
    ]
    lines = [line for section in carried.values() for line in _contents(section)]
    for symbol in symbols:
        if symbol.name in exported:
            place = f"{carried[symbol.section].label}+{symbol.value}"
            lines += [f".set {symbol.name}, {place}", f".type {symbol.name},@function"]
    for section in sections:
        if section.kind == _RELA and section.info in carried:
            for line in _relocations(machine, section, carried, symbols):
                if line is None:
                    return None
                lines.append(line)
    return "\n".join([*lines, ".text"])


def _sections(code: bytes, label: str) -> tuple[int, list[_Section]]:
    """The ELF machine, and all sections."""
    header = _HEADER.unpack_from(code)
    machine, at, count, names = header[1], header[5], header[11], header[12]
    rows = [_SECTION.unpack_from(code, at + _SECTION.size * i) for i in range(count)]
    table = code[rows[names][4] :]
    return machine, [
        _Section(
            f"{label}{i}",
            _text(table, name),
            kind,
            flags,
            code[start : start + size],
            link,
            info,
            align,
        )
        for i, (name, kind, flags, _, start, size, link, info, align, _) in enumerate(rows)
    ]


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _symbols(table: _Section, sections: Sequence[_Section]) -> Iterator[_Symbol]:
    names = sections[table.link].data
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(table.data):
        yield _Symbol(_text(names, name), section, value)


def _contents(section: _Section) -> Iterator[str]:
    flags = "".join(
        letter
        for bit, letter in ((_ALLOC, "a"), (_WRITE, "w"), (_EXECUTE, "x"))
        if section.flags & bit
    )
    # What LLVM may merge with equal strings is ordinary data here.
    name = ".rodata" if section.flags & _MERGE else section.name
    yield f'.section {name},"{flags}",@progbits'
    yield f".balign {max(1, section.align)}"
    yield f"{section.label}:"
    for start in range(0, len(section.data), _CHUNK):
        chunk = section.data[start : start + _CHUNK]
        yield '.ascii "' + "".join(f"\\{byte:03o}" for byte in chunk) + '"'


def _relocations(
    machine: int, rows: _Section, carried: dict[int, _Section], symbols: Sequence[_Symbol]
) -> Iterator[str | None]:
    """What the linker fills in; None for what has no directive."""
    place = carried[rows.info].label
    for offset, info, addend in _RELOCATION.iter_unpack(rows.data):
        symbol, kind = symbols[info >> 32], _RELOCATIONS.get((machine, info & 0xFFFFFFFF))
        if kind is None or (symbol.section and symbol.section not in carried):
            yield None
            return
        target = symbol.name
        if symbol.section:
            target, addend = carried[symbol.section].label, addend + symbol.value
        yield f".reloc {place}+{offset}, {kind}, {target}{addend:+d}"
