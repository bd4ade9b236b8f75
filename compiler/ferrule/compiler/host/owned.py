"""The table of what a body owns: handles of objects, released when it ends, whatever came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.support.allocation import KEEP, LET_GO
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID

_SLOTS: Final = ir.FunctionType(VOID, [PTR, I64])


def clear(e: Emitter, table: ir.Value, count: int) -> None:
    """Null in so many places."""
    for position in range(count):
        e.store(e.null(), e.index(table, PTR, position))


def release(e: Emitter, table: ir.Value, count: int) -> None:
    """Release the handles of a table; null stays null."""
    e.call(e.symbol(LET_GO, _SLOTS), [table, e.const_i64(count)])


def retain(e: Emitter, status: ir.Value, results: ir.Value, slots: Sequence[int]) -> None:
    """Give the caller references of its own to the objects in these slots, if all went well."""
    if not slots:
        return
    with e.if_then(e.icmp("eq", status, ir.Constant(I32, 0)), likely=True):
        for slot in slots:
            e.call(e.symbol(KEEP, _SLOTS), [results, e.const_i64(slot)])
