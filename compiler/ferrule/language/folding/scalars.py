"""Operators on constants of the kernel IR, with the semantics of `ferrule.language.ir.ops`.

An integer is an `int` within the range of its dtype, a float a `float` that is representable in its
dtype.  A narrow float is computed in float32 and rounded after each operator.  A float32 is
computed in float64: for + - * / and the square root, rounding twice is the same as rounding once.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.language.ir.scalars import BINARY, UNARY, UnaryOp, require_all
from ferrule.specs import DType, Float32
from ferrule.specs.rounding import bfloat16_bits, float16_bits, nearest, wrapped

Scalar = bool | int | float


def unary(op: UnaryOp, dtype: DType, value: Scalar) -> Scalar:
    """`op value`, for an op that is not a function of the library."""
    match op:
        case "neg":
            return -value if dtype.kind == "float" else wrapped(dtype, -int(value))
        case "not":
            return not value if dtype.kind == "bool" else wrapped(dtype, ~int(value))
        case "sqrt":
            return nearest(dtype, _square_root(float(value)))
    bits = UNARY[op].bits
    if bits is not None:
        return wrapped(dtype, bits(int(value) % (1 << dtype.bits), dtype.bits))
    raise NotImplementedError(op)


def binary(op: str, dtype: DType, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs op rhs`, for an op that is not a function of the library."""
    match dtype.kind:
        case "float":
            narrow = dtype.bits < 32
            found = nearest(Float32 if narrow else dtype, _FLOAT[op](float(lhs), float(rhs)))
            return nearest(dtype, found) if narrow else found
        case "bool":
            return bool(_BITS[op](lhs, rhs))
    return wrapped(dtype, _integer(op, dtype, int(lhs), int(rhs)))


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


def _square_root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _quotient(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _maximum(x: float, y: float) -> float:
    """NaN if one is, and -0.0 below 0.0."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == y:
        return y if math.copysign(1.0, x) < 0 else x
    return max(x, y)


def _minimum(x: float, y: float) -> float:
    return -_maximum(-x, -y)


def _integer(op: str, dtype: DType, x: int, y: int) -> int:
    """The result before it wraps."""
    emit = _OF_WIDTH.get(op)
    return emit(dtype.bits, x, y) if emit else _BITS[op](x, y)


def _shifted(shift: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    """A shift by a count that is read as unsigned: one of the width or more shifts all bits out."""
    return lambda width, x, y: shift(x, min(y % (1 << width), width))


_OF_WIDTH: Final[Mapping[str, Callable[[int, int, int], int]]] = {
    "floordiv": lambda _, x, y: x // y if y else 0,
    "mod": lambda _, x, y: x % y if y else 0,
    "shl": _shifted(operator.lshift),
    "shr": _shifted(operator.rshift),
}
"""Of the width and two integers."""
_BITS: Final[Mapping[str, Callable[[Any, Any], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "max": max,
    "min": min,
}
_FLOAT: Final[Mapping[str, Callable[[float, float], float]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "max": _maximum,
    "min": _minimum,
}
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _own(*kinds: str) -> list[str]:
    """The binary operators of these kinds that are not functions of the library."""
    return [name for name, row in BINARY.items() if not row.library and set(kinds) & set(row.kinds)]


require_all("folding.scalars._BITS", {*_OF_WIDTH, *_BITS}, _own("int", "uint"))
require_all("folding.scalars._BITS", _BITS, _own("bool"))
require_all("folding.scalars._FLOAT", _FLOAT, _own("float"))
