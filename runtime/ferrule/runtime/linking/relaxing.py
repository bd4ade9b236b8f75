"""Keeps LLVM's linker from shortening calls whose target it cannot reach.

Position-independent code calls a function that may be far away through its address in memory,
`call *f@GOTPCREL(%rip)`. If the address of `f` is below 4 GiB, LLVM's linker relaxes this to
`call f`, which reaches only 2 GiB from the call. Generated code lies at the top of the address
space, so such a call would jump to a wrong address. Functions have low addresses in a program that
is linked at a fixed address, such as Debian's Python. This module replaces the relocations of such
an object by ones that the linker does not relax.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ferrule.runtime.binaries import elf

_SHORT: Final = 1 << 32
"""Addresses below this limit fit into 32 bits."""

_GOTPCREL: Final = 9
_RELAXED: Final = (41, 42)
"""R_X86_64_GOTPCRELX and R_X86_64_REX_GOTPCRELX: the same, but a linker may relax the code."""


def without_relaxing(data: bytes, machine: elf.Machine, addresses: Iterable[int]) -> bytes:
    """The object, prepared for symbols at these addresses; unchanged if no address is low.

    `read_object` has checked the bytes.
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
