"""st.async and red.async: stores and reductions in the shared memory of the cluster's blocks, whose
bytes an mbarrier counts."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.copies.helpers import address, named_helper
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.native.reductions import OPS, TYPES
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter, bits_of, items_of

_TO: Final = r"\.shared::cluster\.mbarrier::complete_tx::bytes"
_WORD: Final = r"\.(?P<t>[bsu](32|64)|f(32|64))"
_MOST: Final = 16


@form("st", r"\.async(\.weak)?" + _TO + r"(\.(?P<v>v2|v4))?" + _WORD, 3)
def _store(e: Emitter, item: Instruction, named: Named) -> None:
    values = items_of(item.operands[1])
    if len(values) != int((named["v"] or "v1")[1]) or len(values) * BYTES[kind(named)] > _MOST:
        raise e.refuse("it stores up to 16 bytes")
    _send(e, item, kind(named), values, 0)


@form("red", r"\.async(\.relaxed\.cluster)?" + _TO + r"\.(?P<op>inc|dec)\.(?P<t>u32)", 3)
@form("red", r"\.async(\.relaxed\.cluster)?" + _TO + r"\.(?P<op>min|max)\.(?P<t>[su]32)", 3)
@form("red", r"\.async(\.relaxed\.cluster)?" + _TO + r"\.(?P<op>and|or|xor)\.(?P<t>b32)", 3)
@form("red", r"\.async(\.relaxed\.cluster)?" + _TO + r"\.(?P<op>add)\.(?P<t>[su]32|u64)", 3)
def _reduce(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    how = 1 + OPS.index(kind(named, "op")) + 16 * TYPES.index("u32" if t == "b32" else t)
    _send(e, item, t, (item.operands[1],), how)


def _send(e: Emitter, item: Instruction, t: str, values: tuple[Operand, ...], how: int) -> None:
    place, _, barrier = item.operands
    bits = bits_of(t)
    given = [address(e, place, "cluster"), address(e, barrier, "cluster")]
    words = [(f"<32 x i{bits}>", e.cast(e.read(each, t), t, f"b{bits}")) for each in values]
    given += words + words[:1] * (4 - len(words))
    name = named_helper(e, "store_async", SIZE=bits // 8, VALUES=len(values), HOW=how)
    e.call(name, given, [])
