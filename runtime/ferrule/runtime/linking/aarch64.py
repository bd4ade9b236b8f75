"""Relocations of aarch64 objects, as Arm's ELF document defines them: those of LLVM's code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.runtime.linking.relocation import Rule, Site, Unlinkable

SLOTS: Final = frozenset((311, 312, 313))  # ADR_GOT_PAGE, LD64_GOT_LO12_NC, LD64_GOTPAGE_LO15
"""Kinds that need an entry of the global offset table."""

STUBS: Final = frozenset((282, 283))  # JUMP26, CALL26
"""Kinds that may jump through a stub."""

# adrp, ldr and br, and a brk, which nothing reaches.
STUB_SIZE: Final = 16

_PAGE: Final = 12
# All of them are of x16: Arm's calling convention lets code between a call and its callee change
# it.
_ADRP, _LDR, _BR, _BRK = 0x90000010, 0xF9400210, 0xD61F0200, 0xD4200020


def stub(at: int, slot: int) -> bytes:
    """Code at this address that jumps to the address in a slot: `adrp`, `ldr` and `br` of x16."""
    pages = (slot >> _PAGE) - (at >> _PAGE)
    words = _ADRP | _page_bits(pages), _LDR | (slot & 0xFFF) >> 3 << 10, _BR, _BRK
    return b"".join(word.to_bytes(4, "little") for word in words)


def _page_bits(pages: int) -> int:
    """The bits of `adr` and `adrp` for a distance."""
    return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _nothing(_: Site) -> None:
    pass


def _absolute(site: Site) -> None:
    site.write(site.symbol + site.addend, 8)


def _relative_wide(site: Site) -> None:
    site.write(site.symbol + site.addend - site.place, 8)


def _relative(site: Site) -> None:
    site.write_i32(site.symbol + site.addend - site.place)


def _insert(site: Site, bits: int, mask: int) -> None:
    """Put bits into an instruction, where the mask says."""
    word = int.from_bytes(site.code[site.at : site.at + 4], "little")
    site.write(word & ~mask | bits & mask, 4)


def _checked(value: int, bits: int, align: int) -> int:
    """The value; Unlinkable unless it fits into bits with sign and is aligned."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1 or value % align:
        raise Unlinkable("a relocation does not reach its symbol")
    return value


def _branch(bits: int) -> Rule:
    """A branch whose distance, in instructions, has this many bits from bit 5 on."""

    def rule(site: Site) -> None:
        reach = _checked(site.symbol + site.addend - site.place, bits + 2, 4)
        _insert(site, reach >> 2 << 5, (1 << bits) - 1 << 5)

    return rule


def _call(site: Site) -> None:
    reach = site.symbol + site.addend - site.place
    if site.stub and not -(1 << 27) <= reach < 1 << 27:
        reach = site.stub + site.addend - site.place
    _insert(site, _checked(reach, 28, 4) >> 2, (1 << 26) - 1)


def _address(site: Site) -> None:
    reach = _checked(site.symbol + site.addend - site.place, 21, 1)
    _insert(site, _page_bits(reach), _page_bits(-1))


def _to_page(site: Site, target: int) -> None:
    pages = (target >> _PAGE) - (site.place >> _PAGE)
    _insert(site, _page_bits(_checked(pages, 21, 1)), _page_bits(-1))


def _page(site: Site) -> None:
    _to_page(site, site.symbol + site.addend)


def _slot_page(site: Site) -> None:
    _to_page(site, site.slot + site.addend)


def _in_page(site: Site, value: int, shift: int) -> None:
    """The place in a page, in units of the instruction's access size."""
    if value & (1 << shift) - 1:
        raise Unlinkable("a relocation is to a place that is not aligned")
    _insert(site, (value & 0xFFF) >> shift << 10, 0xFFF << 10)


def _low(shift: int) -> Rule:
    return lambda site: _in_page(site, site.symbol + site.addend, shift)


def _slot_low(site: Site) -> None:
    _in_page(site, site.slot + site.addend, 3)


def _slot_of_table(site: Site) -> None:
    """The place of a slot behind the start of the table's page, of which 15 bits are known."""
    offset = site.slot + site.addend - (site.table >> _PAGE << _PAGE)
    if not 0 <= offset < 1 << 15 or offset % 8:
        raise Unlinkable("a relocation does not reach its entry of the table")
    _insert(site, offset >> 3 << 10, 0xFFF << 10)


def _part(number: int) -> Rule:
    """A quarter of an address."""
    return lambda site: _insert(
        site, (site.symbol + site.addend >> 16 * number & 0xFFFF) << 5, 0xFFFF << 5
    )


RULES: Final[Mapping[int, tuple[int, Rule]]] = MappingProxyType(
    {
        0: (0, _nothing),  # NONE
        256: (0, _nothing),  # NONE, as it was numbered before
        257: (8, _absolute),  # ABS64
        260: (8, _relative_wide),  # PREL64
        261: (4, _relative),  # PREL32
        264: (4, _part(0)),  # MOVW_UABS_G0_NC
        266: (4, _part(1)),  # MOVW_UABS_G1_NC
        268: (4, _part(2)),  # MOVW_UABS_G2_NC
        269: (4, _part(3)),  # MOVW_UABS_G3
        273: (4, _branch(19)),  # LD_PREL_LO19: a load encodes its distance as a branch does
        274: (4, _address),  # ADR_PREL_LO21
        275: (4, _page),  # ADR_PREL_PG_HI21
        276: (4, _page),  # ADR_PREL_PG_HI21_NC
        277: (4, _low(0)),  # ADD_ABS_LO12_NC
        278: (4, _low(0)),  # LDST8_ABS_LO12_NC
        279: (4, _branch(14)),  # TSTBR14
        280: (4, _branch(19)),  # CONDBR19
        282: (4, _call),  # JUMP26
        283: (4, _call),  # CALL26
        284: (4, _low(1)),  # LDST16_ABS_LO12_NC
        285: (4, _low(2)),  # LDST32_ABS_LO12_NC
        286: (4, _low(3)),  # LDST64_ABS_LO12_NC
        299: (4, _low(4)),  # LDST128_ABS_LO12_NC
        311: (4, _slot_page),  # ADR_GOT_PAGE
        312: (4, _slot_low),  # LD64_GOT_LO12_NC
        313: (4, _slot_of_table),  # LD64_GOTPAGE_LO15
        314: (4, _relative),  # PLT32
    }
)
"""For each kind the bytes that it changes, and its rule."""
