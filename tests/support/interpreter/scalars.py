"""Scalars of the kernel IR by definition: what a number of each dtype is, and every operator on it.

A bool is a `bool`, an integer an `int` within its range, a float a NumPy scalar that computes as
IEEE 754 says: `np.float16`, `np.float32`, `np.float64`.  NumPy has no bfloat16, no tfloat32 and no
floats of 8 bits: their numbers are float32s, and a result is rounded to them, which for + - * / and
the square root is the same as rounding once.  Narrow floats are in memory as bytes.

The meaning is the docstring of `ferrule.language.ir.ops`; nothing here comes from code generation.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from oracle.rounding import ZEROS, bits_of

from ferrule.language.ir import scalars as rows
from ferrule.specs import DType, narrow, rounding
from interpreter import functions

Scalar: TypeAlias = "bool | int | np.floating[Any]"

_NATIVE: Final[Mapping[str, Any]] = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}


def number(dtype: DType, value: Any) -> Scalar:
    """The number of this dtype for a real number: integers wrap, floats round to nearest even."""
    match dtype.kind:
        case "bool":
            return bool(value)
        case "int" | "uint":
            return wrapped(dtype, int(value))
        case "float":
            return _nearest(dtype, value)
    raise TypeError(f"{dtype.name} has no scalar values")


def wrapped(dtype: DType, value: int) -> int:
    """The number of an integer dtype that is equal to this one modulo 2**bits."""
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


def _nearest(dtype: DType, value: Any) -> Scalar:
    native = _NATIVE.get(dtype.name)
    if native is not None and not isinstance(value, int):
        return native(value)  # type: ignore[no-any-return]
    if dtype.is_narrow:
        return np.float32(
            rounding.nearest(dtype, value if isinstance(value, int) else float(value))
        )
    if math.isnan(value):
        return np.float32(value)
    exact = value if isinstance(value, int) else float(value)
    return from_bits(dtype, bits_of(dtype.name, exact))


def bits(dtype: DType, value: Scalar) -> int:
    """The bits of an integer or a float, as an unsigned number."""
    if dtype.is_integer:
        return int(value) % (1 << dtype.bits)
    if dtype.is_narrow:
        return narrow.encode(narrow.format_of(dtype), float(value))
    native = _NATIVE.get(dtype.name, np.float32)
    (word,) = np.array([value], native).view(f"u{np.dtype(native).itemsize}")
    return int(word) >> 16 if dtype.name == "bfloat16" else int(word)


def from_bits(dtype: DType, word: int) -> Scalar:
    """The integer or float with these bits."""
    if dtype.is_integer:
        return wrapped(dtype, word)
    if dtype.is_narrow:
        kept = word % (1 << dtype.bits)
        return np.float32(narrow.decode(narrow.format_of(dtype), kept))
    if dtype.name == "bfloat16":
        word <<= 16
    native = np.dtype(_NATIVE.get(dtype.name, np.float32))
    (value,) = np.array([word], f"u{native.itemsize}").view(native)
    return value  # type: ignore[no-any-return]


def memory(dtype: DType) -> np.dtype[Any]:
    """How NumPy holds elements of this dtype: a bool is a byte, a bfloat16 its bits."""
    found = _IN_MEMORY.get(dtype.name)
    if found is None:
        found = _IN_MEMORY[dtype.name] = _in_memory(dtype)
    return found


_IN_MEMORY: Final[dict[str, np.dtype[Any]]] = {}


def _in_memory(dtype: DType) -> np.dtype[Any]:
    if dtype.kind == "bool" or dtype.is_narrow:
        return np.dtype(np.uint8)
    if dtype.name == "bfloat16":
        return np.dtype(np.uint16)
    return np.dtype("float32" if dtype.name in ZEROS else dtype.name)


def from_memory(dtype: DType, element: Any) -> Scalar:
    """The number that an element of an array holds."""
    match dtype.kind:
        case "bool":
            return bool(element != 0)
        case "int" | "uint":
            return int(element)
    if dtype.name == "bfloat16" or dtype.is_narrow:
        return from_bits(dtype, int(element))
    return number(dtype, element)


def to_memory(dtype: DType, value: Scalar) -> Any:
    """The element that holds a number."""
    return bits(dtype, value) if dtype.name == "bfloat16" or dtype.is_narrow else value


# ---- conversions ----


def cast(source: DType, target: DType, value: Scalar, *, saturate: bool = False) -> Scalar:
    """Floats to integers truncate and saturate, with 0 for NaN; to bool: is it not zero.

    With `saturate`, for a narrow float, what is beyond the largest number becomes it.
    """
    if saturate:
        return np.float32(rounding.converted(target, value, saturate=True))
    if source.kind != "float" or target.kind not in ("int", "uint"):
        return number(target, value != 0 if target.kind == "bool" else value)
    if math.isnan(value):
        return 0
    low, high = target.range
    exact = float(value)  # which Python compares with integers as they are
    return high if exact > high else low if exact < low else int(exact)


def bitcast(source: DType, target: DType, value: Scalar) -> Scalar:
    """The same bits in a dtype of the same size."""
    return from_bits(target, bits(source, value))


# ---- operators ----


def unary(op: str, dtype: DType, value: Scalar) -> Scalar:
    """`op value`."""
    match op:
        case "neg" if dtype.kind == "float":
            return -value
        case "neg":
            return wrapped(dtype, -int(value))
        case "not" if dtype.kind == "bool":
            return not value
        case "not":
            return wrapped(dtype, ~int(value))
        case "popc":
            return bits(dtype, value).bit_count()
        case "clz":
            return dtype.bits - bits(dtype, value).bit_length()
    return number(dtype, functions.UNARY[op](value))


def binary(op: str, dtype: DType, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs op rhs`."""
    return operator_of(op, dtype)(lhs, rhs)


def operator_of(op: str, dtype: DType) -> Callable[[Any, Any], Scalar]:
    """What computes `lhs op rhs` of numbers of this dtype."""
    match dtype.kind:
        case "float":
            function = _FLOAT.get(op) or functions.BINARY[op]
            return lambda lhs, rhs: number(dtype, function(lhs, rhs))
        case "bool":
            return lambda lhs, rhs: bool(_BITS[op](lhs, rhs))
        case "int" | "uint":
            exact = _BITS.get(op) or partial(_integer, op, dtype)
            (low, _), size = dtype.range, 1 << dtype.bits
            return lambda lhs, rhs: (exact(int(lhs), int(rhs)) - low) % size + low
    raise TypeError(f"{op} of {dtype.name}")


def fma(dtype: DType, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """`x * y + z`, rounded once."""
    return number(dtype, functions.fma(x, y, z, odd=dtype.bits < 64))


def compare(op: str, lhs: Scalar, rhs: Scalar) -> bool:
    """`lhs op rhs`; NaN is unequal to everything, and not less or greater."""
    return bool(_COMPARE[op](lhs, rhs))


def c_format(text: str, values: Sequence[Scalar]) -> str:
    """What C's `printf` writes: Python's `%` knows the same conversions, without the lengths."""
    return re.sub(r"(%[^%a-zA-Z]*)ll", r"\1", text) % tuple(values)


def _maximum(x: Any, y: Any) -> Any:
    """IEEE 754-2019 maximum: NaN if one is, and -0.0 below 0.0."""
    if math.isnan(x) or math.isnan(y):
        return x + y
    if x == y == 0:
        return y if np.signbit(x) else x
    return x if x > y else y


def _minimum(x: Any, y: Any) -> Any:
    return -_maximum(-x, -y)


def _integer(op: str, dtype: DType, x: int, y: int) -> int:
    """The result of an integer operator before it wraps."""
    match op:
        case "floordiv":
            return x // y if y else 0
        case "mod":
            return x % y if y else 0
        case "shl" | "shr":
            # The count is unsigned; Python shifts every bit out where it is the width or more.
            count = min(y % (1 << dtype.bits), dtype.bits)
            return x << count if op == "shl" else x >> count
        case "max" | "min":
            return max(x, y) if op == "max" else min(x, y)
    raise KeyError(op)


_BITS: Final[Mapping[str, Callable[[Any, Any], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_FLOAT: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "max": _maximum,
    "min": _minimum,
}
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

_UNARY: Final = {"neg", "not", "popc", "clz", *functions.UNARY}
_INTEGER: Final = {"floordiv", "mod", "shl", "shr", "max", "min"}
rows.require_all("interpreter.scalars.unary", _UNARY, rows.UNARY)
rows.require_all(
    "interpreter.scalars.binary", {*_INTEGER, *_BITS, *_FLOAT, *functions.BINARY}, rows.BINARY
)
