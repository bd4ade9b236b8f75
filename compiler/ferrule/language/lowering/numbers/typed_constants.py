"""Typed constants, such as `fe.Uint8(200)`: what is made of them has the bits of the call.

An operation on them is lowered as one on run-time numbers, so that types, refusals and roundings
are the same, and what was emitted is computed at once.  Where it cannot be (a division by zero of
a host function raises at the call) it stays what was emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrule.language.folding import regions
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import Number, is_run_time
from ferrule.specs import Numeric


def are_typed(*operands: Any) -> bool:
    """Whether all of these are known, and one of them has a dtype."""
    return any(map(holds_typed, operands)) and not is_run_time(operands)


def holds_typed(value: Any) -> bool:
    """Whether this is a typed constant, or has one among its items."""
    if isinstance(value, Numeric):
        return True
    items = value if isinstance(value, list) else [x for _, x in structures.parts(value) or ()]
    return any(map(holds_typed, items))


def folded(low: Lowering, emit: Callable[[], Any]) -> Any:
    """The typed constant that this operation gives; the run-time number where it is none."""
    with low.builder.region() as region:
        result = emit()
    if isinstance(result, Number):
        value = regions.constant(region.ops, result.value)
        if value is not None:
            return result.dtype(value)
    for op in region.ops:
        low.builder.append(op)
    return result
