"""The handlers of the support code that a check program and its messages need."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.compiler.checker.format import Op
from ferrule.compiler.messages import table


def op_symbol(op: Op) -> str:
    """The handler of a row."""
    return f"ferrule_op_{op.name.lower()}"


def part_symbol(op: table.Op) -> str:
    """The handler of an operation in a message."""
    return f"ferrule_part_{op.name.lower()}"


def needed_by(ops: Iterable[Op], shown: Iterable[table.Op]) -> frozenset[str]:
    """The handlers of these rows, and of these operations in messages."""
    return frozenset([*map(op_symbol, ops), *map(part_symbol, shown)])
