"""Atomics of the reference interpreter: one thread runs at a time, so they are what they say."""

from __future__ import annotations

from ferrule.specs import DType
from interpreter import scalars
from interpreter.scalars import Scalar


def updated(op: str, dtype: DType, old: Scalar, value: Scalar, compare: Scalar | None) -> Scalar:
    """The new element."""
    match op:
        case "exch":
            return value
        case "cas":
            assert compare is not None, "cas compares"
            same = scalars.bits(dtype, old) == scalars.bits(dtype, compare)
            return value if same else old
        case "inc":
            return 0 if old >= value else scalars.wrapped(dtype, int(old) + 1)
        case "dec":
            return value if old == 0 or old > value else scalars.wrapped(dtype, int(old) - 1)
    return scalars.binary(op, dtype, old, value)
