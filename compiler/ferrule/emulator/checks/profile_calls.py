"""What is counted in a kernel while it is profiled: for each instruction, by calls in its code.

Wavefronts of shared memory are how often its 32 banks of 4 bytes must be asked: lanes are served in
groups of 32, 16 or 8 by the width of an access, and a group takes as many as the bank with the most
different words. Sectors are the different 32 bytes of global memory that a request touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.watch import call, number
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.clusters import SOURCE as CLUSTERS
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.native.places import CONSTANTS as PLACES
from ferrule.emulator.ptx.cursor import BYTES

if TYPE_CHECKING:
    from ferrule.emulator.checks.reads import Reads
    from ferrule.emulator.ptx.module import Instruction
    from ferrule.emulator.warps.emitter import Emitter

P_WARPS, P_LANES, P_PRESENT, P_FAR, P_NEAR, P_BYTES = 0, 8, 16, 24, 56, 88
"""Of an instruction: how often a warp executed it, for how many lanes, of how many that were there;
then for global and for shared memory: requests, sectors or wavefronts, the fewest that could do,
bytes."""
IN_SHARED: Final = 1 << 16
INDEX_SHIFT: Final = 32
_MOST_SECTORS: Final = 512
_CONSTANTS: Final = PLACES | {
    "P_WARPS": P_WARPS, "P_LANES": P_LANES, "P_PRESENT": P_PRESENT, "P_FAR": P_FAR,
    "P_NEAR": P_NEAR, "P_BYTES": P_BYTES, "IN_SHARED": IN_SHARED, "INDEX_SHIFT": INDEX_SHIFT,
    "MOST_SECTORS": _MOST_SECTORS,
}  # fmt: skip

_SOURCE: Final = (
    CLUSTERS
    + """
def add(at: u64, value: u64) -> i32:
    store_u64(at, load_u64(at) + value)
    return 0

def counter(w: u64, how: u64) -> u64:
    at = load_u64(load_u64(w + BLOCK) + COUNTED)
    if at == 0:
        return 0
    return at + (how >> INDEX_SHIFT) * P_BYTES

def count(w: u64, mask: u32, here: u64, how: u64) -> i32:
    at = counter(w, how)
    if at == 0:
        return 0
    add(at + P_WARPS, 1)
    add(at + P_LANES, u64(popc(mask)))
    add(at + P_PRESENT, u64(popc(u32(here))))
    return 0

def found_in(list: u64, many: u64, value: u64) -> i1:
    for i in range(many):
        if load_u64(list + i * 8) == value:
            return 1
    return 0

def sectors(mask: u32, p0: u64, size: u64) -> u64:
    list = local(4096)
    many = u64(0)
    m = mask
    while m != 0:
        a = load_u64(p0 + u64(ctz(m)) * 8)
        m = m & (m - 1)
        sector = a >> 5
        while sector <= (a + size - 1) >> 5:
            if many < MOST_SECTORS and not found_in(list, many, sector):
                store_u64(list + many * 8, sector)
                many = many + 1
            sector = sector + 1
    return many

def group_waves(mask: u32, p0: u64, size: u64) -> u64:
    list = local(4096)
    banks = local(32)
    fill(banks, 0, 32)
    many = u64(0)
    most = u64(0)
    m = mask
    while m != 0:
        a = load_u64(p0 + u64(ctz(m)) * 8)
        m = m & (m - 1)
        word = a >> 2
        while word <= (a + size - 1) >> 2:
            if many < MOST_SECTORS and not found_in(list, many, word):
                store_u64(list + many * 8, word)
                many = many + 1
                bank = banks + (word & 31)
                store_u8(bank, load_u8(bank) + 1)
                most = max(most, u64(load_u8(bank)))
            word = word + 1
    return most

def waves(mask: u32, p0: u64, size: u64, at: u64) -> u64:
    # A wavefront has at most 128 bytes.
    lanes = u32(32)
    if size > 4:
        lanes = 16
    if size > 8:
        lanes = 8
    total = u64(0)
    start = u32(0)
    while start < 32:
        # In two shifts, as a shift by all 32 bits would be none.
        group = mask & (((u32(1) << (lanes - 1) << 1) - 1) << start)
        if group != 0:
            total = total + group_waves(group, p0, size)
            add(at + 16, 1)
        start = start + lanes
    return total

def memory(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    at = counter(w, how)
    if at == 0 or mask == 0:
        return 0
    size = how & 0xFFFF
    near = how & IN_SHARED != 0
    if not near:
        near = block_with(w, load_u64(p0 + u64(ctz(mask)) * 8), 1) != 0
    at = at + (P_NEAR if near else u64(P_FAR))
    bytes = u64(popc(mask)) * size
    add(at, 1)
    add(at + 24, bytes)
    if near:
        add(at + 8, waves(mask, p0, size, at))
    else:
        many = sectors(mask, p0, size)
        add(at + 8, many)
        add(at + 16, min(many, (bytes + 31) >> 5))
    return 0
"""
)


@helper("profile")
def _profile(name: str, entry: str) -> str:
    pointers = len(functions(_SOURCE)[entry].args.args) - 2
    return helper_text(name, _SOURCE, entry, pointers, _CONSTANTS)


class ProfileWatch:
    """Counts in one kernel."""

    def started(self, reads: Reads) -> None:
        """Nothing is needed of it."""

    def before(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        what, *rest = name.split(":")
        if what in ("load", "store") and e.item.opcode in ("ld", "ldu", "st"):
            if rest[0] in ("global", "shared", "cluster", "generic") and not _private(e.item):
                self._memory(e, int(rest[1]) * int(rest[2]), rest[0], places[0], mask)
        elif what == "atomic":
            self._memory(e, BYTES[rest[2]], rest[1], places[0], mask)
        elif what == "matrix" and rest[0] != "turn":
            rows = e.op(f"and i32 {mask}, {(1 << 8 * int(rest[2])) - 1}")
            self._memory(e, 16, rest[1], places[0], rows)
        elif name.startswith("async:issue:"):
            size = next(int(each[5:]) for each in rest if each.startswith("SIZE="))
            self._memory(e, size, "global", places[1], mask)
            self._memory(e, size, "shared", places[0], mask)

    def after(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        """All is counted before."""

    def executed(self, e: Emitter, item: Instruction) -> None:
        lanes = e.mask if item.opcode in ("bra", "brx") else e.active()
        here = e.op(f"inttoptr i64 {e.op(f'zext i32 {e.mask} to i64')} to ptr")
        call(e, "profile:count", [here, number(e.index << INDEX_SHIFT)], lanes)

    def _memory(self, e: Emitter, size: int, space: str, place: str, mask: str) -> None:
        how = size | e.index << INDEX_SHIFT
        how |= IN_SHARED if space in ("shared", "cluster") else 0
        call(e, "profile:memory", [place, number(how)], mask)


def _private(item: Instruction) -> bool:
    return bool(set(item.modifiers) & {"local", "param", "param::entry", "param::func", "const"})
