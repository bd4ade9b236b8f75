"""cp.async: copies of 4, 8 or 16 bytes a thread that end when somebody waits for them."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.copies.helpers import address, named_helper, space_of
from ferrule.emulator.instructions.forms import Named, form
from ferrule.emulator.ptx.module import Immediate, Instruction, Operand, Register
from ferrule.emulator.warps.emitter import Emitter, splat

_TO: Final = r"\.shared(::cta)?\.global(?P<hint>\.L2::cache_hint)?(\.L2::(64B|128B|256B))?"


@form("cp", r"\.async\.(?P<how>ca|cg)" + _TO, 3, 4, 5)
def _copy(e: Emitter, item: Instruction, named: Named) -> None:
    to, source, size, *more = item.operands
    if named["hint"]:
        more = more[:-1] if more else [Register("")]
    sizes = (4, 8, 16) if named["how"] == "ca" else (16,)
    if not isinstance(size, Immediate) or size.value not in sizes or len(more) > 1:
        raise e.refuse(f"the number of bytes must be of {sizes}")
    read = _read_bytes(e, more[0] if more else None, size.value)
    given = [address(e, to, "shared"), address(e, source, "global"), ("<32 x i32>", read)]
    e.call(named_helper(e, "issue", SIZE=size.value), given, [])


def _read_bytes(e: Emitter, operand: Operand | None, size: int) -> str:
    """How many bytes are read; a predicate that holds says none."""
    if operand is None:
        return splat("i32", str(size))
    if isinstance(operand, Register) and e.kind_of(operand.name) == "pred":
        ignored = e.read(operand, "pred")
        return e.op(
            f"select <32 x i1> {ignored}, <32 x i32> zeroinitializer, "
            f"<32 x i32> {splat('i32', str(size))}"
        )
    return e.read(operand, "b32")


@form("cp", r"\.async\.commit_group", 0)
def _commit(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(named_helper(e, "commit"), [], [])


@form("cp", r"\.async\.wait_group", 1)
def _wait_group(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(named_helper(e, "wait_groups", PENDING=pending(e, item)), [], [])


@form("cp", r"\.async\.wait_all", 0)
def _wait_all(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(named_helper(e, "wait_all"), [], [])


@form(
    "cp", r"\.async\.mbarrier\.arrive(?P<noinc>\.noinc)?(\.(?P<space>shared|shared::cta))?\.b64", 1
)
def _arrive(e: Emitter, item: Instruction, named: Named) -> None:
    space, settings = space_of(named)
    settings["INCREASES"] = int(not named["noinc"])
    e.call(named_helper(e, "later_arrival", **settings), [address(e, item.operands[0], space)], [])


def pending(e: Emitter, item: Instruction) -> int:
    """How many groups a wait leaves under way."""
    count = item.operands[0]
    if not isinstance(count, Immediate) or count.value < 0:
        raise e.refuse("the number of groups is no constant")
    return min(count.value, 1 << 20)
