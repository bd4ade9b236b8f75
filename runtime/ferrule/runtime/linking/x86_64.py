"""Relocations of x86-64 objects, as the psABI defines them: those of LLVM's code, small or large.

Jumps and loads through the global offset table become direct ones where the symbol is near enough,
as LLVM's linker and GNU's make them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.runtime.linking.relocation import I32, Rule, Site

SLOTS: Final = frozenset((9, 27, 41, 42))  # GOTPCREL, GOT64, GOTPCRELX, REX_GOTPCRELX
"""Kinds that need an entry of the global offset table."""

STUBS: Final = frozenset((4,))  # PLT32
"""Kinds that may jump through a stub."""

# Six bytes of a jump, and ud2, which nothing reaches.
STUB_SIZE: Final = 8


def stub(at: int, slot: int) -> bytes:
    """Code at this address that jumps to the address in a slot: `jmp *slot(%rip)`."""
    return b"\xff\x25" + (slot - at - 6).to_bytes(4, "little", signed=True) + b"\x0f\x0b"


def _nothing(_: Site) -> None:
    pass


def _absolute(site: Site) -> None:
    site.write(site.symbol + site.addend, 8)


def _relative(site: Site) -> None:
    site.write_i32(site.symbol + site.addend - site.place)


def _relative_wide(site: Site) -> None:
    site.write(site.symbol + site.addend - site.place, 8)


def _call(site: Site) -> None:
    reach = site.symbol + site.addend - site.place
    if site.stub and not -I32 <= reach < I32:
        reach = site.stub + site.addend - site.place
    site.write_i32(reach)


def _through_table(site: Site) -> None:
    site.write_i32(site.slot + site.addend - site.place)


def _relaxed(site: Site) -> None:
    """An instruction that reads a symbol's address from the table, or jumps to it."""
    if not _relax(site):
        _through_table(site)


def _relax(site: Site) -> bool:
    """Make the instruction a direct one, if it is known and reaches the symbol."""
    code, at = site.code, site.at
    reach = site.symbol + site.addend - site.place
    # With another addend the four bytes do not end the instruction. One less than 32 bits hold, for
    # the jump below, which is a byte shorter than it was.
    if site.addend != -4 or not -I32 <= reach < I32 - 1:
        return False
    if code[at - 2] == 0x8B:  # mov slot(%rip), register: lea symbol(%rip), register
        code[at - 2] = 0x8D
        site.write(reach, 4)
    elif code[at - 2 : at] == b"\xff\x15":  # call *slot(%rip): addr32 call symbol
        # A call is five bytes; the prefix, which changes nothing there, is the sixth.
        code[at - 2 : at] = b"\x67\xe8"
        site.write(reach, 4)
    elif code[at - 2 : at] == b"\xff\x25":  # jmp *slot(%rip): jmp symbol; nop
        code[at - 2 : at + 4] = b"\xe9" + (reach + 1).to_bytes(4, "little", signed=True) + b"\x90"
    else:
        return False
    return True


def _offset_in_table(site: Site) -> None:
    site.write(site.symbol + site.addend - site.table, 8)


def _table(site: Site) -> None:
    site.write_i32(site.table + site.addend - site.place)


def _table_wide(site: Site) -> None:
    site.write(site.table + site.addend - site.place, 8)


def _slot_in_table(site: Site) -> None:
    site.write(site.slot + site.addend - site.table, 8)


RULES: Final[Mapping[int, tuple[int, Rule]]] = MappingProxyType(
    {
        0: (0, _nothing),  # NONE
        1: (8, _absolute),  # 64
        2: (4, _relative),  # PC32
        4: (4, _call),  # PLT32
        9: (4, _through_table),  # GOTPCREL
        24: (8, _relative_wide),  # PC64
        25: (8, _offset_in_table),  # GOTOFF64
        26: (4, _table),  # GOTPC32
        27: (8, _slot_in_table),  # GOT64
        29: (8, _table_wide),  # GOTPC64
        41: (4, _relaxed),  # GOTPCRELX
        42: (4, _relaxed),  # REX_GOTPCRELX
    }
)
"""For each kind the bytes that it changes, and its rule."""
