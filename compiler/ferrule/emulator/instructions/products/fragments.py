"""The parts of wmma that PTX has no words for; `warps.fragments` writes the rest of it."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.barriers import CONSTANTS
from ferrule.emulator.native.language import helper_text
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS
from ferrule.emulator.native.places import SOURCE
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter

_SOURCE: Final = (
    SOURCE
    + """
def start(w: u64, mask: u32) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    return 0

def check(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    base = load_u64(p0)
    stride = load_u64(p1)
    for lane in range(u64(32)):
        if load_u64(p0 + lane * 8) != base or load_u64(p1 + lane * 8) != stride:
            return fault(w, SYNC, u32(lane), 0, NOT_THE_SAME)
    if CHECKED == 0:
        return 0
    if not aligned(w, 0, base, WHOLE):
        return 1
    if not aligned(w, 0, base + stride, ROW):
        return 1
    return 0
"""
)


@form("wmma", r"\.start", 0)
def _start(e: Emitter, item: Instruction, named: Named) -> None:
    """All threads of the warp are here."""
    e.call("wmma:start:1:1:free", [], [])


@form("wmma", r"\.check\.(?P<whole>\d+)\.(?P<row>\d+)", 2)
def _check(e: Emitter, item: Instruction, named: Named) -> None:
    """Address and stride are the same in all lanes, and multiples of these numbers of bytes."""
    given = [("<32 x i64>", e.read(each, "u64")) for each in item.operands]
    how = "checked" if e.names.checked else "free"
    e.call(f"wmma:check:{kind(named, 'whole')}:{kind(named, 'row')}:{how}", given, [])


@helper("wmma")
def _wmma(name: str, what: str, whole: str, row: str, how: str) -> str:
    """`wmma:check:32:16:checked`: the address and the stride in bytes."""
    constants = (
        PLACE_CONSTANTS
        | CONSTANTS
        | {"WHOLE": int(whole), "ROW": int(row), "CHECKED": int(how == "checked")}
    )
    return helper_text(name, _SOURCE, what, 2 if what == "check" else 0, constants)
