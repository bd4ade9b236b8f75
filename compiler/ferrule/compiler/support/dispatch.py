"""Tables of handlers in support code, as offsets from the table: constants without relocations.

An object contains only the handlers that it needs, see `precompiled`; the offsets of others are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llvmlite import ir

from ferrule.compiler.checker.format import Op
from ferrule.compiler.messages import table
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR


def define_table(
    emitter: Emitter, name: str, function: ir.FunctionType, handlers: Sequence[str | None]
) -> None:
    """The table of these functions, of this module or another; None for a number without a
    handler."""
    for handler in handlers:
        if handler is not None:
            emitter.symbol(handler, function)
    kind = ir.ArrayType(I32, len(handlers))
    table = ir.GlobalVariable(emitter.module, kind, name)
    table.global_constant = True
    table.linkage = "internal"
    table.initializer = ir.Constant(kind, [_offset(handler, name) for handler in handlers])
    table.align = I32.width // 8


def handler_of(emitter: Emitter, name: str, number: ir.Value) -> ir.Value:
    """The address of a handler; `number` is an i64."""
    table = ir.FormattedConstant(PTR, f"@{name}")
    offset = emitter.load(emitter.index(table, I32, number), I32)
    return emitter.index(table, I8, emitter.builder.sext(offset, I64))


def _offset(handler: str | None, table: str) -> ir.Constant:
    if handler is None:
        return ir.Constant(I32, 0)
    ends = (f"i64 ptrtoint (ptr @{symbol} to i64)" for symbol in (handler, table))
    return ir.FormattedConstant(I32, f"trunc (i64 sub ({', '.join(ends)}) to i32)")


# ---- what a check program and its messages need ----


def op_symbol(op: Op) -> str:
    """The handler of a row."""
    return f"ferrule_op_{op.name.lower()}"


def part_symbol(op: table.Op) -> str:
    """The handler of an operation in a message."""
    return f"ferrule_part_{op.name.lower()}"


def needed_by(ops: Iterable[Op], shown: Iterable[table.Op]) -> frozenset[str]:
    """The handlers of these rows, and of these operations in messages."""
    return frozenset([*map(op_symbol, ops), *map(part_symbol, shown)])
