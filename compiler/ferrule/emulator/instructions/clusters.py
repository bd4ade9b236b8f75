"""The blocks of a cluster: their barrier, and the shared memory of the others."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named, form
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.cluster_barriers import CONSTANTS, SOURCE
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.ptx.module import Instruction, Operand, Symbol
from ferrule.emulator.warps.emitter import Emitter


@helper("cluster")
def _cluster(name: str, entry: str, space: str) -> str:
    """`cluster:map_address:generic`: an entry of the native text."""
    pointers = len(functions(SOURCE)[entry].args.args) - 2
    constants = CONSTANTS | {"GENERIC": int(space == "generic"), "IN_CLUSTER": 1, "CHECKED": 1}
    return helper_text(name, SOURCE, entry, pointers, constants)


@form("barrier", r"\.cluster\.arrive(\.release|\.relaxed)?(\.aligned)?", 0)
def _arrive(e: Emitter, item: Instruction, named: Named) -> None:
    e.call("cluster:arrive:shared", [], [])


@form("barrier", r"\.cluster\.wait(\.acquire)?(\.aligned)?", 0)
def _wait(e: Emitter, item: Instruction, named: Named) -> None:
    e.call("cluster:wait:shared", [], [])


@form("mapa", r"(\.(?P<space>shared::cluster))?\.(?P<t>u32|u64)", 3)
def _mapa(e: Emitter, item: Instruction, named: Named) -> None:
    to, source, rank = item.operands
    given = [_address(e, source, named), ("<32 x i32>", e.read(rank, "u32"))]
    (value,) = e.call(f"cluster:map_address:{_space(named)}", given, ["<32 x i64>"])
    _write(e, to, named, value)


@form("getctarank", r"(\.(?P<space>shared::cluster))?\.(?P<t>u32|u64)", 2)
def _getctarank(e: Emitter, item: Instruction, named: Named) -> None:
    given = [_address(e, item.operands[1], named)]
    (value,) = e.call(f"cluster:rank_of_address:{_space(named)}", given, ["<32 x i32>"])
    e.write(item.operands[0], "u32", value)


@form("cvta", r"(?P<to>\.to)?\.(?P<space>shared::cluster)\.(?P<t>u64)", 2)
def _cvta(e: Emitter, item: Instruction, named: Named) -> None:
    entry = "from_generic" if named["to"] else "to_generic"
    given = [_address(e, item.operands[1], named)]
    (value,) = e.call(f"cluster:{entry}:generic", given, ["<32 x i64>"])
    e.write(item.operands[0], "u64", value)


@form("isspacep", r"\.shared::cluster", 2)
def _isspacep(e: Emitter, item: Instruction, named: Named) -> None:
    given = [("<32 x i64>", e.read(item.operands[1], "u64"))]
    (value,) = e.call("cluster:inside:generic", given, ["<32 x i32>"])
    inside = e.op(f"icmp ne <32 x i32> {value}, zeroinitializer")
    e.write(item.operands[0], "pred", inside)


def _space(named: Named) -> str:
    return "shared" if named["space"] else "generic"


def _address(e: Emitter, operand: Operand, named: Named) -> tuple[str, str]:
    """An address that is a value, or a variable."""
    if isinstance(operand, Symbol):
        space, value = e.symbol(operand)
        if space != "shared" or not named["space"]:
            raise e.refuse(f"{operand.name} is in .{space}")
        return "<32 x i64>", value
    if named["t"] == "u64":
        return "<32 x i64>", e.read(operand, "u64")
    if not named["space"]:
        raise e.refuse("generic addresses have 64 bits")
    value = e.read(operand, "u32")
    return "<32 x i64>", e.op(f"zext <32 x i32> {value} to <32 x i64>")


def _write(e: Emitter, to: Operand, named: Named, value: str) -> None:
    if named["t"] == "u32":
        value = e.op(f"trunc <32 x i64> {value} to <32 x i32>")
    e.write(to, f"u{32 if named['t'] == 'u32' else 64}", value)
