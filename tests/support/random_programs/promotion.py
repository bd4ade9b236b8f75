"""Which dtype numbers have together: the language's promotion, by what dtypes can hold."""

from __future__ import annotations

from typing import Final

from oracle.rounding import FORMATS

from ferrule import specs
from ferrule.specs import Boolean, DType, Float32, Int32

INTEGERS: Final[tuple[DType, ...]] = (
    specs.Int8,
    specs.Uint8,
    specs.Int16,
    specs.Uint16,
    specs.Int32,
    specs.Uint32,
    specs.Int64,
    specs.Uint64,
)
FLOATS: Final[tuple[DType, ...]] = (
    specs.Float16,
    specs.BFloat16,
    specs.Float32,
    specs.Float64,
)
DTYPES: Final = (Boolean, *INTEGERS, *FLOATS)
_CLASSES: Final = {"bool": 0, "int": 1, "uint": 1, "float": 2}


def promoted(left: DType, right: DType) -> DType | None:
    """The dtype of an operation on two numbers; None where there is none.

    Between bools, integers and floats the later class decides; within one, it is the smallest
    dtype that holds every number of both.
    """
    if left is right or _CLASSES[left.kind] != _CLASSES[right.kind]:
        return left if _CLASSES[left.kind] >= _CLASSES[right.kind] else right
    holding = [d for d in (INTEGERS if left.is_integer else FLOATS) if _holds(d, left, right)]
    return min(holding, key=lambda d: d.bits, default=None)


def _holds(dtype: DType, *others: DType) -> bool:
    if dtype.is_integer:
        low, high = dtype.range
        return all(low <= d.range[0] and d.range[1] <= high for d in others)
    ours, *theirs = (FORMATS.get(d.name, (53, -1022, 1023)) for d in (dtype, *others))
    return all(ours[0] >= f[0] and ours[1] <= f[1] and ours[2] >= f[2] for f in theirs)


def weak(value: bool | int | float, other: DType | None) -> DType:
    """The dtype that a Python number takes beside a number of another dtype, or beside nothing."""
    own = {bool: Boolean, int: Int32, float: Float32}[type(value)]
    return own if other is None or _CLASSES[other.kind] < _CLASSES[own.kind] else other


def is_wide(dtype: DType) -> bool:
    """Whether a range over such numbers counts in 64 bits."""
    return not _holds(Int32, dtype)
