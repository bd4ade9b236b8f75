"""ldmatrix, stmatrix and movmatrix: matrices of 8 by 8 elements of 16 bits, over a warp.

Lane 8j+i has the address of row i of matrix j, 16 bytes. In registers, lane l has the elements
2(l%4) and 2(l%4)+1 of row l/4; transposed, it has those of column l/4.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.barriers import CONSTANTS
from ferrule.emulator.native.language import helper_text
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS
from ferrule.emulator.native.places import SOURCE
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, items_of

_SHAPE: Final = (
    r"\.sync\.aligned(?P<first>\.m8n8)?\.(?P<n>x1|x2|x4)(?P<trans>\.trans)?(?(first)|\.m8n8)"
)
"""The shape comes first, as documented, or last, as CUTLASS and TileLang write it: ptxas takes
both."""
_PLACE: Final = r"(\.(?P<space>shared|shared::cta))?\.b16"

_SOURCE: Final = (
    SOURCE
    + """
def row_place(w: u64, lane: u32, a: u64) -> u64:
    if SHARED_SPACE != 0:
        return shared_place(w, lane, a, 16, 16)
    return generic_place(w, lane, a, 16, 16)

def move(w: u64, p0: u64, at: u64, matrix: u32, loads: i1) -> i32:
    for i in range(u32(8)):
        lane = matrix * 8 + i
        place = row_place(w, lane, load_u64(p0 + u64(lane) * 8))
        if place == 0:
            return 1
        for j in range(u32(8)):
            row = j if TRANS != 0 else i
            column = i if TRANS != 0 else j
            there = at + u64(row * 4 + (column >> 1)) * 4 + u64(column & 1) * 2
            here = place + u64(j) * 2
            if loads:
                store_u16(there, load_u16(here))
            else:
                store_u16(here, load_u16(there))
    return 0

def transfer(w: u64, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64, loads: i1) -> i32:
    if move(w, p0, p1, 0, loads) != 0:
        return 1
    if COUNT > 1:
        if move(w, p0, p2, 1, loads) != 0:
            return 1
    if COUNT > 2:
        if move(w, p0, p3, 2, loads) != 0:
            return 1
        if move(w, p0, p4, 3, loads) != 0:
            return 1
    return 0

def load1(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p1, p1, p1, 1)

def load2(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p2, p2, p2, 1)

def load4(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p2, p3, p4, 1)

def store1(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p1, p1, p1, 0)

def store2(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p2, p2, p2, 0)

def store4(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return transfer(w, p0, p1, p2, p3, p4, 0)

def turn(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    for i in range(u64(8)):
        for j in range(u64(8)):
            store_u16(p1 + (j * 4 + (i >> 1)) * 4 + (i & 1) * 2,
                      load_u16(p0 + (i * 4 + (j >> 1)) * 4 + (j & 1) * 2))
    return 0
"""
)


@form("ldmatrix", _SHAPE + _PLACE, 2)
def _ldmatrix(e: Emitter, item: Instruction, named: Named) -> None:
    count = int(kind(named, "n")[1:])
    results = items_of(item.operands[0])
    if len(results) != count:
        raise e.refuse("the number of results is another")
    space = "shared" if named["space"] else "generic"
    address = e.address(item.operands[1], space)
    values = e.call(
        _name(e, "load", space, count, named), [("<32 x i64>", address)], ["<32 x i32>"] * count
    )
    for register, value in zip(results, values, strict=True):
        e.write(register, "b32", value)


@form("stmatrix", _SHAPE + _PLACE, 2)
def _stmatrix(e: Emitter, item: Instruction, named: Named) -> None:
    count = int(kind(named, "n")[1:])
    values = items_of(item.operands[1])
    if len(values) != count:
        raise e.refuse("the number of values is another")
    space = "shared" if named["space"] else "generic"
    given = [("<32 x i64>", e.address(item.operands[0], space))]
    given += [("<32 x i32>", e.read(each, "b32")) for each in values]
    e.call(_name(e, "store", space, count, named), given, [])


@form("movmatrix", r"\.sync\.aligned\.m8n8\.trans\.b16", 2)
def _movmatrix(e: Emitter, item: Instruction, named: Named) -> None:
    given = [("<32 x i32>", e.read(item.operands[1], "b32"))]
    (value,) = e.call("matrix:turn:shared:1:plain:free", given, ["<32 x i32>"])
    e.write(item.operands[0], "b32", value)


def _name(e: Emitter, what: str, space: str, count: int, named: Named) -> str:
    trans = "trans" if named["trans"] else "plain"
    how = "checked" if e.names.checked else "free"
    return f"matrix:{what}:{space}:{count}:{trans}:{how}"


@helper("matrix")
def _matrix(name: str, what: str, space: str, count: str, trans: str, how: str) -> str:
    """`matrix:load:shared:4:trans:checked`: addresses of rows, then a register of each matrix."""
    constants = (
        PLACE_CONSTANTS
        | CONSTANTS
        | {
            "SHARED_SPACE": int(space == "shared"),
            "COUNT": int(count),
            "TRANS": int(trans == "trans"),
            "CHECKED": int(how == "checked"),
        }
    )
    entry = "turn" if what == "turn" else what + count
    return helper_text(name, _SOURCE, entry, 1 + int(count), constants)
