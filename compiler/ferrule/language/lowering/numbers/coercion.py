"""Run-time numbers: from constants, and in other dtypes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.faces.base import OutsideKernel
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.promotion import computed, weak
from ferrule.language.values import ComplexNumber, Number
from ferrule.specs import Boolean, DType, Int32, Int64, Numeric, Uint64
from ferrule.specs.rounding import fits, nearest


def is_python_number(value: object) -> bool:
    """Whether this is a compile-time number (NumPy's scalars count)."""
    if isinstance(value, (bool, int, float, Numeric)):
        return True
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()


def is_complex(value: object) -> bool:
    """Whether this is a complex number, at run time or at compile time."""
    if isinstance(value, Numeric):
        return value.dtype.kind == "complex"
    return isinstance(value, (ComplexNumber, complex)) or isinstance(plain(value), complex)


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python number; anything else is returned unchanged."""
    return value.item() if type(value).__module__ == "numpy" and is_python_number(value) else value


def as_number(low: Lowering, value: Any, node: ast.AST, near: DType | None = None) -> Number:
    """A number as a run-time number; a Python number takes the dtype `near` of its neighbour."""
    if isinstance(value, Number):
        return value
    value = plain(value)
    if isinstance(value, Numeric) and not isinstance(value.value, complex):
        return constant(low, value.value, type(value), node)
    if isinstance(value, (bool, int, float)):
        near = near.part if near is not None and near.kind == "complex" else near
        return constant(low, value, weak(value, near), node)
    low.fail(node, f"expected a number, but got {describe(value)}", hint=usage_hint(value))


def operand(low: Lowering, value: Any, node: ast.AST) -> Number:
    """A number in the dtype in which operators compute."""
    number = as_number(low, value, node)
    return convert(low, number, computed(number.dtype))


def constant(low: Lowering, value: bool | int | float, dtype: DType, node: ast.AST) -> Number:
    """A constant of this dtype.  A CompileError if it does not fit."""
    value = fitted(low, value, dtype, node)
    dim = int(value) if dtype.is_integer else None
    return Number(low.builder.constant(dtype, value), dim)


def fitted(
    low: Lowering, value: bool | int | float, dtype: DType, node: ast.AST
) -> bool | int | float:
    """A Python number as a value of this dtype.  A CompileError if it does not fit."""
    if dtype.is_integer:
        require_in_range(low, value, dtype, node)
        value = int(value)
    elif dtype is not Boolean:
        if dtype.is_narrow:
            _require_within(low, value, dtype, node)
        if type(value) is not float:
            wide = at_compile_time(low, node, functools.partial(float, value))
            value = nearest(dtype, value) if isinstance(value, int) else wide
    return value


def require_in_range(low: Lowering, value: bool | int | float, dtype: DType, node: ast.AST) -> None:
    """Refuses a number that an integer dtype does not hold."""
    smallest, largest = dtype.range
    if not smallest <= value <= largest:
        low.fail(
            node,
            f"the constant {value} does not fit {dtype.name}",
            expected=f"a value in [{smallest}, {largest}]",
            hint=_wide_enough(int(value)),
        )


def _require_within(low: Lowering, value: bool | int | float, dtype: DType, node: ast.AST) -> None:
    """Refuses a number that would be NaN or infinite in a float of fewer than 16 bits."""
    if not fits(dtype, value):
        from ferrule.specs.narrow import format_of

        form = format_of(dtype)
        low.fail(
            node,
            f"the constant {value} does not fit {dtype.name}",
            expected=f"a value in [{form.minimum:g}, {form.maximum:g}]",
            hint="convert the other number to one that is wider: fe.Float32(x)",
        )


def _wide_enough(value: int) -> str | None:
    """The hint with a dtype for an integer."""
    fits = next((each for each in (Int32, Int64, Uint64) if _holds(each, value)), None)
    return None if fits is None else f"where the number is written: fe.{fits.__name__}({value})"


def _holds(dtype: DType, value: int) -> bool:
    smallest, largest = dtype.range
    return smallest <= value <= largest


def convert(low: Lowering, number: Number, dtype: DType, saturate: bool = False) -> Number:
    """A number in another dtype; it remains a known size if the integer type can hold any size."""
    if number.dtype is dtype and not saturate:
        return number
    keeps = dtype in (Int32, Int64) and number.dtype.is_integer
    cast = low.builder.cast(dtype, number.value, saturate=saturate)
    return Number(cast, number.dim if keeps else None)


def at_compile_time(low: Lowering, node: ast.AST, compute: Callable[[], Any]) -> Any:
    """Runs ordinary Python; its errors become CompileErrors at this node."""
    try:
        return compute()
    except (CompileError, OutsideKernel):
        raise
    except Exception as error:
        low.fail(node, f"{type(error).__name__} at compile time: {error}")
