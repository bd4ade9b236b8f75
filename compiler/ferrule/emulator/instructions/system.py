"""Functions of the system: a kernel calls them, the emulator has them."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named, form
from ferrule.emulator.instructions.helpers import by_lane, failed, helper, lane_value, loaded, put
from ferrule.emulator.ptx.module import Address, Instruction, Operand, Symbol
from ferrule.emulator.warps.emitter import Emitter
from ferrule.emulator.warps.layout import ASSERT, BLOCK, FAULT_FILE, FAULT_FUNCTION, PRINT


def _argument(e: Emitter, operand: Operand, kind: str) -> str:
    """A parameter that the caller has stored."""
    assert isinstance(operand, Symbol)
    bits = int(kind[1:])
    how = "checked" if e.names.checked else "free"
    address = [("<32 x i64>", e.address(Address(operand, 0), "local"))]
    (value,) = e.call(f"load:generic:{bits // 8}:1:{how}", address, [f"<32 x {kind}>"])
    return value


@form("vprintf", "", 3)
def _vprintf(e: Emitter, item: Instruction, named: Named) -> None:
    result, text, values = item.operands
    given = [("<32 x i64>", _argument(e, each, "i64")) for each in (text, values)]
    (said,) = e.call("print:", given, ["<32 x i32>"])
    assert isinstance(result, Symbol)
    how = "checked" if e.names.checked else "free"
    place = e.address(Address(result, 0), "local")
    e.call(f"store:generic:4:1:{how}", [("<32 x i64>", place), ("<32 x i32>", said)], [])


@helper("print")
def _print(name: str, _: str) -> str:
    body = lane_value("%p0", "i64", "text") + lane_value("%p1", "i64", "values")
    body += "  %said = call i32 %print(i64 %text, i64 %values)\n" + put("%p2", "i32", "%said")
    before = loaded("%w", BLOCK, "ptr", "block") + loaded("%block", PRINT, "ptr", "print")
    return by_lane(name, 3, before, body + "  br label %next\n")


@form("__assertfail", "", 5)
def _assertfail(e: Emitter, item: Instruction, named: Named) -> None:
    message, file, line, function, _ = item.operands
    given = [("<32 x i64>", _argument(e, each, "i64")) for each in (message, file, function)]
    given.append(("<32 x i32>", _argument(e, line, "i32")))
    e.call("assert:", given, [])


@helper("assert")
def _assert(name: str, _: str) -> str:
    body = lane_value("%p0", "i64", "message") + lane_value("%p3", "i32", "number")
    for place, parameter in ((FAULT_FILE, "%p1"), (FAULT_FUNCTION, "%p2")):
        body += lane_value(parameter, "i64", f"said{place}")
        body += f"  %to{place} = getelementptr i8, ptr %w, i64 {place}\n"
        body += f"  store i64 %said{place}, ptr %to{place}\n"
    body += failed(ASSERT, "%message").replace(
        "store i32 0, ptr %size", "store i32 %number, ptr %size"
    )
    return by_lane(name, 4, "", body + "unused:\n  br label %next\n", "", True)
