"""Operators on constants of the kernel IR, with the semantics of `ferrule.language.ir.ops`.

An integer is an `int` within the range of its dtype, a float a `float` that is representable in its
dtype.  A narrow float is computed in float32 and rounded after each operator.  A float32 is
computed in float64: for + - * / and the square root, rounding twice is the same as rounding once.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.language.ir.scalars import BINARY, UNARY, BinaryOp, ScalarOp, UnaryOp
from ferrule.specs import DType, Float32
from ferrule.specs.rounding import bfloat16_bits, float16_bits, nearest, wrapped

Scalar = bool | int | float


def unary(op: UnaryOp, dtype: DType, value: Scalar) -> Scalar:
    """`op value`, for an op that is not a function of the library."""
    return computed(UNARY[op], dtype, value)


def binary(op: BinaryOp, dtype: DType, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs op rhs`, for an op that is not a function of the library."""
    return computed(BINARY[op], dtype, lhs, rhs)


def computed(row: ScalarOp, dtype: DType, *given: Scalar) -> Scalar:
    """The result of an operator, by what its row says of values."""
    if dtype.kind == "float":
        if row.floats is None:
            raise NotImplementedError("functions of the library are not computed here")
        narrow = dtype.bits < 32
        found = nearest(Float32 if narrow else dtype, row.floats(*map(float, given)))
        return nearest(dtype, found) if narrow else found
    assert row.integers is not None
    found = row.integers(*map(int, given), dtype.bits)
    return bool(found & 1) if dtype.kind == "bool" else wrapped(dtype, found)


def compare(op: str, lhs: Scalar, rhs: Scalar) -> bool:
    """`lhs op rhs`."""
    return bool(_COMPARE[op](lhs, rhs))


def bitcast(source: DType, target: DType, value: Scalar) -> Scalar:
    """The same bits in a dtype of the same size."""
    word = _bits(source, value)
    if target.is_integer:
        return wrapped(target, word)
    if target.is_narrow:
        from ferrule.specs import narrow

        return narrow.decode(narrow.format_of(target), word % (1 << target.bits))
    if target.name == "bfloat16":
        return float(struct.unpack("<f", struct.pack("<I", word << 16))[0])
    unsigned, form = _FORMS[target.bits]
    return float(struct.unpack(form, struct.pack(unsigned, word))[0])


def _bits(dtype: DType, value: Scalar) -> int:
    if dtype.is_integer:
        return int(value) % (1 << dtype.bits)
    if dtype.is_narrow:
        from ferrule.specs import narrow

        return narrow.encode(narrow.format_of(dtype), float(value))
    match dtype.name:
        case "float16":
            return float16_bits(value)
        case "bfloat16":
            return bfloat16_bits(value)
    unsigned, form = _FORMS[dtype.bits]
    return int(struct.unpack(unsigned, struct.pack(form, value))[0])


_FORMS: Final = {16: ("<H", "<e"), 32: ("<I", "<f"), 64: ("<Q", "<d")}


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
