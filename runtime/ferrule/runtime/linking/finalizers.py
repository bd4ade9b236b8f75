"""Finalisers: functions of an object that must run before its code is freed.

Their addresses are in the section `.fini_array`, or `.dtors` in LLVM's output here; linkers convert
`.dtors` to `.fini_array`.  For a shared library the system calls finalisers.  A linker into the
process calls none, so the engine does.  Their addresses are computed from the distance to a symbol
with a known address in the same section, because linkers do not split sections.  The engine calls
no initialisers: generated code has them only for libraries, which the system closes at the end of
the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.runtime.binaries import elf

_SECTIONS: Final = (b".fini_array", b".dtors")


def finalizers(data: bytes, addresses: Mapping[str, int]) -> tuple[int, ...]:
    """The addresses of an object's finalisers; `addresses` are the addresses of its symbols.

    `read_object` has checked the bytes.  Finalisers in sections without a known symbol are skipped.
    """
    header = elf.read_header(data, elf.FileType.OBJECT)
    sections = [elf.read_section(data, offset) for offset in header.sections]
    named = {
        number
        for number, offset in enumerate(header.sections)
        if _name(data, sections, offset) in _SECTIONS
    }
    found: list[int] = []
    for section in sections:
        if section.kind == elf.SHT_RELA and section.info in named:
            found += _targets(data, sections, section, addresses)
    return tuple(found)


def _name(data: bytes, sections: Sequence[elf.Section], offset: int) -> bytes:
    """The name of the section whose header is at this offset."""
    *_, strings = elf.unpack(elf.HEADER, data, 0, "the ELF header")
    if strings >= len(sections):
        return b""
    at, *_ = elf.unpack(elf.SECTION, data, offset, "a section header")
    names = sections[strings]
    return bytes(data[names.offset + at : names.offset + names.size]).partition(b"\0")[0]


def _targets(
    data: bytes,
    sections: Sequence[elf.Section],
    relocations: elf.Section,
    addresses: Mapping[str, int],
) -> list[int]:
    table = sections[relocations.link]
    symbols = list(elf.entries(elf.SYMBOL, data, table))
    bases = _bases(data, sections[table.link], symbols, addresses)
    found = []
    for _, info, addend in elf.entries(elf.RELOCATION, data, relocations):
        _, _, _, where, value, _ = symbols[info >> 32]
        if where in bases:
            found.append(bases[where] + value + addend)
    return found


def _bases(
    data: bytes,
    strings: elf.Section,
    symbols: Sequence[tuple[int, ...]],
    addresses: Mapping[str, int],
) -> dict[int, int]:
    """The address of each section that contains a symbol with a known address."""
    names = data[strings.offset : strings.offset + strings.size]
    found = {}
    for name_at, _, _, where, value, _ in symbols:
        name = names[name_at : names.index(b"\0", name_at)].decode("utf-8", "replace")
        if name in addresses and where != elf.SHN_UNDEF:
            found[where] = addresses[name] - value
    return found


def run(addresses: Sequence[int]) -> None:
    """Call finalisers, the last one first."""
    # The order in which the system's loader calls those of a library.
    for address in reversed(addresses):
        ctypes.CFUNCTYPE(None)(address)()
