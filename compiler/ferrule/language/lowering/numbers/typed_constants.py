"""Typed constants, such as `fe.Uint8(200)`: results have the same bits as at run time.

An operation on them is lowered like one on run-time numbers, so that types, errors and roundings
are the same, and the emitted ops are folded at once.  If that is impossible (a division by zero in
a host function raises in the call), the ops remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import Number, is_run_time
from ferrule.specs import Numeric


def are_typed(*operands: Any) -> bool:
    """Whether all of these are compile-time values, and one of them has a dtype."""
    return any(map(holds_typed, operands)) and not is_run_time(operands)


def holds_typed(value: Any) -> bool:
    """Whether this is, or contains, a typed constant."""
    if isinstance(value, Numeric):
        return True
    items = value if isinstance(value, list) else [x for _, x in structures.parts(value) or ()]
    return any(map(holds_typed, items))


def folded(low: Lowering, emit: Callable[[], Any]) -> Any:
    """The typed constant that results from this operation; the run-time number if it cannot be
    folded."""
    from ferrule.language.folding import regions

    with low.builder.region() as region:
        result = emit()
    if isinstance(result, Number):
        value = regions.constant(region.ops, result.value)
        if value is not None:
            return result.dtype(value)
    for op in region.ops:
        low.builder.append(op)
    return result
