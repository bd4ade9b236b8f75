"""`base ** exponent`: products for a small constant exponent, else `fe.math.pow`."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import maths
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.python import operators
from ferrule.language.lowering.python.conversions import convert_to
from ferrule.language.promotion import weak
from ferrule.language.values import Number, Vector, Whole
from ferrule.specs import Numeric

_MAX_PRODUCTS: Final = 4
"""Up to this exponent, products are as exact as the function, and faster."""


def power(low: Lowering, base: Any, exponent: Any, node: ast.AST) -> Any:
    """`base ** exponent`, with at least one run-time value.

    Integers accept constant exponents from 0 on, and wrap; anything else is computed with floats.
    """
    call = ast.copy_location(ast.Call(ast.Constant(None), [], []), node)
    if low.is_as_cute:
        from ferrule.language.lowering.numbers import as_cute  # other functions need it not

        dtype = as_cute.dtype_of_power(base, exponent)
        base = base if dtype is None else convert_to(low, dtype, [base], {}, call)
    known = coercion.plain(exponent)
    if isinstance(exponent, Numeric) and _is_integer(base):
        known = exponent.value
        if not isinstance(base, (Number, Vector, Whole, Numeric)):
            base = weak(coercion.plain(base), type(exponent))(base)
    if type(known) is int and (1 <= known <= _MAX_PRODUCTS or known >= 0 and _is_integer(base)):
        return _products(low, base, known, node)
    if _is_integer(base) and (type(known) is int or _is_integer(known)):
        low.fail(
            node,
            f"an integer to the power of {describe(exponent)} may be no integer",
            expected="a constant exponent of 0 or more, or floats",
            hint="convert the base, fe.Float32(x) ** n",
        )
    from ferrule.language.lowering.python.mathematics import TABLE

    return TABLE[maths.pow](low, [base, exponent], {}, call)


def _is_integer(value: Any) -> bool:
    """Whether this is a number or whole tensor of integers or bools."""
    if isinstance(value, (Number, Vector, Whole)):
        return value.dtype.kind != "float"
    value = coercion.plain(value.value if isinstance(value, Numeric) else value)
    return isinstance(value, int)


def _products(low: Lowering, base: Any, exponent: int, node: ast.AST) -> Any:
    """The product of `exponent` times the base, by squaring."""

    def multiply(x: Any, y: Any) -> Any:
        return operators.binary(low, ast.Mult(), x, y, node)

    result, square = None, base
    while exponent:
        if exponent & 1:
            result = square if result is None else multiply(result, square)
        exponent >>= 1
        if exponent:
            square = multiply(square, square)
    if result is None:  # in the type of the base
        return operators.binary(low, ast.BitOr(), multiply(base, 0), 1, node)
    return result
