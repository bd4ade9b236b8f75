"""Keeps LLVM's linker from shortening calls whose target it cannot reach.

Position-independent code calls a function that may be far away through its address in memory,
`call *f@GOTPCREL(%rip)`. Where `f` has an address below 4 GiB LLVM's linker makes `call f` of it,
which reaches 2 GiB from where the code is: from the top of the address space, where code is put, it
goes anywhere. Functions have such addresses in a program that is linked to a fixed place, as
Debian's Python is. The relocations of such an object are made ones that are not shortened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ferrule.runtime import elf

_SHORT: Final = 1 << 32
"""Addresses below fit into 32 bits."""

_GOTPCREL: Final = 9
_RELAXED: Final = (41, 42)
"""R_X86_64_GOTPCRELX and R_X86_64_REX_GOTPCRELX: the same, but a linker may shorten the code."""


def without_relaxing(data: bytes, machine: elf.Machine, addresses: Iterable[int]) -> bytes:
    """The object, to be linked to symbols at these addresses; the same bytes where all are far.

    The bytes passed `read_object`.
    """
    if machine is not elf.Machine.X86_64 or all(address >= _SHORT for address in addresses):
        return data
    changed = bytearray(data)
    for offset in elf.read_header(data, elf.FileType.OBJECT).sections:
        section = elf.read_section(data, offset)
        if section.kind == elf.SHT_RELA:
            _change(changed, data, section)
    return bytes(changed)


def _change(changed: bytearray, data: bytes, section: elf.Section) -> None:
    for i, (at, info, addend) in enumerate(elf.entries(elf.RELOCATION, data, section)):
        symbol, kind = info >> 32, info & 0xFFFFFFFF
        if kind in _RELAXED:
            place = section.offset + i * elf.RELOCATION.size
            elf.RELOCATION.pack_into(changed, place, at, symbol << 32 | _GOTPCREL, addend)
