"""The table of the objects that a body owns; their handles are released when it ends, also after an
error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.support.allocation import KEEP, LET_GO
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID

_SLOTS: Final = ir.FunctionType(VOID, [PTR, I64])


def clear(e: Emitter, table: ir.Value, count: int) -> None:
    """Store null in this number of slots."""
    for position in range(count):
        e.store(e.null(), e.index(table, PTR, position))


def release(e: Emitter, table: ir.Value, count: int) -> None:
    """Release the handles of a table; null stays null."""
    e.call(e.symbol(LET_GO, _SLOTS), [table, e.const_i64(count)])


def retain(e: Emitter, status: ir.Value, results: ir.Value, slots: Sequence[int]) -> None:
    """If the call succeeded, add references for the caller to the objects in these slots."""
    if not slots:
        return
    with e.if_then(e.icmp("eq", status, ir.Constant(I32, 0)), likely=True):
        for slot in slots:
            keep(e, results, slot)


def keep(e: Emitter, table: ir.Value, slot: int = 0) -> None:
    """Add a reference to the object in a slot."""
    e.call(e.symbol(KEEP, _SLOTS), [table, e.const_i64(slot)])
