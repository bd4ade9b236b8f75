"""Generator functions: their items are computed at once, like those of a generator expression.

The number of items is known at compile time, so a `yield` is not under a run-time condition.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import branches, exits
from ferrule.language.values import Generated


def items_of(low: Lowering, node: ast.FunctionDef) -> Generated:
    """The items of the generator function that the current frame has entered.

    A generator that writes is refused: in Python its writes come between those of its caller.  So
    is one with a run-time loop, which may write.
    """
    items: list[Any] = []
    low.frame.yielded = items
    writes = low.state.writes
    low.execute(node.body)
    if low.state.writes != writes and items:
        low.fail(
            node,
            f"the generator {node.name} writes or has a run-time loop, but its items are computed "
            "before the first is used",
            hint="yield values, and let the caller write them",
        )
    exits.result(low, node, node.name)
    return Generated(items)


def give(low: Lowering, node: ast.Yield | ast.YieldFrom) -> None:
    """`yield x`, `yield from xs`: more items of the generator; the value is None, as of a generator
    in a loop."""
    items = low.frame.yielded
    if items is None:
        low.fail(node, "yield is not supported in a compiled function")
    if low.frame.depth_of_regions():
        low.fail(
            node,
            "yield is under a run-time condition or in a run-time loop, so the number of items is "
            "not known at compile time",
            hint="yield x if c else y, or loop over fe.range_constexpr",
        )
    if isinstance(node, ast.Yield):
        items.append(None if node.value is None else low.evaluate(node.value))
    else:
        items += branches.compile_time_items(low, low.evaluate(node.value), node.value)
