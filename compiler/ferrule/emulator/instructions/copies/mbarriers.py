"""mbarrier: barriers in shared memory that count threads and bytes; and fences.

An mbarrier also counts the bytes of st.async and red.async: stores and reductions in the shared
memory of the cluster's blocks.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.copies.helpers import address, named_helper, space_of, word
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.native.reductions import OPS, TYPES
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Instruction, Operand, Register
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.emitter import Emitter, bits_of, items_of

_OWN: Final = r"(\.(?P<space>shared|shared::cta))?\.b64"
_ANY: Final = r"(\.(?P<space>shared|shared::cta|shared::cluster))?\.b64"
_RESTRICTED: Final = r"\.(acquire|release)\.sync_restrict::shared::(cta|cluster)\.cluster"
_RELEASE: Final = r"(\.(release|relaxed)\.(cta|cluster))?"
_ACQUIRE: Final = r"(\.(acquire|relaxed)\.(cta|cluster))?"


@form("mbarrier", r"\.init" + _OWN, 2)
def _init(e: Emitter, item: Instruction, named: Named) -> None:
    space, settings = space_of(named)
    given = [address(e, item.operands[0], space), word(e, item.operands[1])]
    e.call(named_helper(e, "init", **settings), given, [])


@form("mbarrier", r"\.inval" + _OWN, 1)
def _inval(e: Emitter, item: Instruction, named: Named) -> None:
    space, settings = space_of(named)
    e.call(named_helper(e, "inval", **settings), [address(e, item.operands[0], space)], [])


@form("mbarrier", r"\.(?P<what>arrive|arrive_drop)" + _RELEASE + _ANY, 2, 3)
@form("mbarrier", r"\.(?P<what>arrive|arrive_drop)\.(?P<tx>expect_tx)" + _RELEASE + _ANY, 3)
@form("mbarrier", r"\.(?P<what>arrive|arrive_drop)\.(?P<no>noComplete)(\.release\.cta)?" + _OWN, 3)
def _arrive(e: Emitter, item: Instruction, named: Named) -> None:
    space, settings = space_of(named)
    result, place, *count = item.operands
    if space == "cluster" and result != Register("_"):
        raise e.refuse("there is no state of a remote mbarrier")
    settings["REMOTE"] = 1
    settings["DROPS"] = int(named["what"] == "arrive_drop")
    settings["EXPECTS"] = int(named.get("tx") is not None)
    settings["NO_COMPLETE"] = int(named.get("no") is not None)
    given = [address(e, place, space), word(e, count[0] if count else None, 1)]
    (state,) = e.call(named_helper(e, "arrive", **settings), given, ["<32 x i64>"])
    e.write(result, "b64", state)


@form("mbarrier", r"\.(?P<what>expect_tx|complete_tx)(\.relaxed\.(cta|cluster))?" + _ANY, 2)
def _transfer(e: Emitter, item: Instruction, named: Named) -> None:
    space, settings = space_of(named)
    settings |= {"REMOTE": 1, "EXPECTS": int(named["what"] == "expect_tx")}
    given = [address(e, item.operands[0], space), word(e, item.operands[1])]
    e.call(named_helper(e, "transfer", **settings), given, [])


@form("mbarrier", r"\.test_wait(?P<parity>\.parity)?" + _ACQUIRE + _OWN, 3)
@form("mbarrier", r"\.try_wait(?P<parity>\.parity)?" + _ACQUIRE + _OWN, 3, 4)
def _test(e: Emitter, item: Instruction, named: Named) -> None:
    """Whether the phase is complete; if not, other warps have their turn at the next jump back."""
    space, settings = space_of(named)
    result, place, phase = item.operands[:3]
    state = word(e, phase) if named["parity"] else ("<32 x i64>", e.read(phase, "b64"))
    if named["parity"]:
        settings["BY_PARITY"] = 1
    at = e.op(f"getelementptr i8, ptr %w, i64 {layout.WAIT_INDEX}")
    e.do(f"store i32 {e.index}, ptr {at}")
    name = named_helper(e, "test", **settings)
    (found,) = e.call(name, [address(e, place, space), state], ["<32 x i32>"])
    e.write(result, "pred", e.op(f"icmp ne <32 x i32> {found}, zeroinitializer"))


@form("mbarrier", r"\.pending_count\.b64", 2)
def _pending_count(e: Emitter, item: Instruction, named: Named) -> None:
    given = [("<32 x i64>", e.read(item.operands[1], "b64"))]
    (found,) = e.call(named_helper(e, "count"), given, ["<32 x i32>"])
    e.write(item.operands[0], "u32", found)


@form("fence", r"\.mbarrier_init\.release\.cluster", 0)
@form("fence", _RESTRICTED, 0)
@form("fence", r"\.proxy\.(alias|async|async\.global|async\.shared::(cta|cluster))", 0)
@form("fence", r"\.proxy\.async::generic" + _RESTRICTED, 0)
@form("fence", r"\.proxy\.tensormap::generic\.release\.(cta|cluster|gpu|sys)", 0)
@form("fence", r"\.proxy\.tensormap::generic\.acquire\.(cta|cluster|gpu|sys)", 2)
@form("griddepcontrol", r"\.(launch_dependents|wait)", 0)
def _nothing(e: Emitter, item: Instruction, named: Named) -> None:
    """Memory is sequentially consistent, and kernels run one after the other."""


@form("setmaxnreg", r"\.(inc|dec)\.sync\.aligned\.u32", 1)
def _setmaxnreg(e: Emitter, item: Instruction, named: Named) -> None:
    """Registers are not scarce."""
    count = getattr(item.operands[0], "value", -1)
    if not 24 <= count <= 256 or count % 8:
        raise e.refuse("the number of registers is from 24 to 256, a multiple of 8")


@form("tcgen05", r".*", *range(16))
def _tcgen05(e: Emitter, item: Instruction, named: Named) -> None:
    raise e.refuse("the emulated GPU has no tensor memory, as sm_100a does; try sm_90a")


# ---- st.async and red.async ----


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
