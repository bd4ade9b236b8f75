"""Conditions over single parameters; `ferrule.specs.conditions` has what they are."""

from __future__ import annotations

from ferrule.specs.conditions import (
    Aligned,
    ComparisonOp,
    FloatComparison,
    Present,
    require_comparison,
)
from ferrule.specs.params.compound import Optional
from ferrule.specs.params.numbers import Scalar
from ferrule.specs.params.tensors import Data


def compare_float(op: ComparisonOp, param: Scalar, number: float) -> FloatComparison:
    """`param op number` of a float parameter; `number` is rounded to its dtype.

    Raises TypeError for another parameter and for what is no number, ValueError for another op.
    """
    if not isinstance(param, Scalar) or param.dtype.kind != "float":
        raise TypeError(f"compare_float: expected a float parameter, but got {param!r}")
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"compare_float: expected a number, but got {number!r}")
    require_comparison("compare_float", op)
    return FloatComparison(op, param, float(param.dtype(float(number)).value))


def aligned(data: Data, to: int) -> Aligned:
    """Whether an address is aligned to `to` bytes.  ValueError unless `to` is a power of two."""
    if not isinstance(data, Data):
        raise TypeError(f"aligned: expected the .data of a tensor, but got {data!r}")
    if isinstance(to, bool) or not isinstance(to, int) or to < 1 or to & (to - 1):
        raise ValueError(f"aligned: expected a power of two in bytes, but got {to!r}")
    return Aligned(data, to)


def present(param: Optional) -> Present:
    """Whether the caller gave an optional parameter.  TypeError for a parameter of another kind."""
    if not isinstance(param, Optional):
        raise TypeError(f"present: expected an optional parameter, but got {param!r}")
    return Present(param)
