"""Numbers of the call with which it fills tensors: PyTorch raises for one that is too large."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule import specs
from ferrule.compiler.conventions import Require
from ferrule.specs import DType
from ferrule.specs.conditions import Condition, FloatExpr, FloatRelation, Real

LARGEST: Final[Mapping[DType, float]] = MappingProxyType(
    {
        specs.Float16: 65504.0,
        specs.BFloat16: (2 - 2**-7) * 2.0**127,
        specs.Float32: (2 - 2**-23) * 2.0**127,
    }
)
"""The largest finite number of each dtype.  Of a float64 there is no larger one."""


def fitting(number: FloatExpr, dtype: DType) -> list[Require]:
    """A step that refuses a finite number that is larger than those of a dtype.

    PyTorch does not round it before: 65504.1 is none of a float16.  Infinity and NaN are.
    """
    largest = LARGEST.get(dtype)
    if largest is None:
        return []
    above = _between(number, largest, math.inf)
    below = _between(number, -math.inf, -largest)
    said = f"PyTorch raises for what fills a tensor of {dtype.name} and is too large for it"
    return [Require(~(above | below), said)]


def _between(number: FloatExpr, low: float, high: float) -> Condition:
    return FloatRelation("gt", number, Real.of(low)) & FloatRelation("lt", number, Real.of(high))
