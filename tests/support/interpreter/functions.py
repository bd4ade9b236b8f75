"""Functions of floats for the reference interpreter: from NumPy and Python, in float64.

Those in `EXACT` give the exact number.  The others are right only to within a few roundings of
float64: a program whose maths is expanded into other ops does not have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

EXACT: Final = ("sqrt", "fabs", "floor", "ceil", "round", "trunc", "copysign", "fmod")


def fma(x: Any, y: Any, z: Any, *, odd: bool) -> Any:
    """`x * y + z` in float64: the nearest, or with `odd` one that narrower formats round well."""
    a, b, c = float(x), float(y), float(z)
    if not (math.isfinite(a) and math.isfinite(b)):
        return np.float64(a) * np.float64(b) + np.float64(c)
    if not math.isfinite(c):
        return np.float64(c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # the sum of two zeros, or of a number and its negative
        return np.float64(a * b + c if 0 in (a, b) else 0.0)
    return np.float64(_odd(exact) if odd else _nearest(exact))


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _odd(exact: Fraction) -> float:
    """The float64 at or next to a number whose last bit says that something was cut off."""
    nearest = _nearest(exact)
    if math.isinf(nearest) or Fraction(nearest) == exact:
        return nearest
    down = nearest if abs(Fraction(nearest)) < abs(exact) else math.nextafter(nearest, 0.0)
    return (
        down if np.float64(down).view(np.uint64) & 1 else math.nextafter(down, nearest * math.inf)
    )


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes in float64."""
    return lambda *operands: function(*map(np.float64, operands))


UNARY: Final[Mapping[str, Callable[..., Any]]] = {
    "sqrt": np.sqrt,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "exp": _wide(np.exp),
    "exp2": _wide(np.exp2),
    "expm1": _wide(np.expm1),
    "log": _wide(np.log),
    "log2": _wide(np.log2),
    "log10": _wide(np.log10),
    "log1p": _wide(np.log1p),
    "rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "cbrt": _wide(np.cbrt),
    "sin": _wide(np.sin),
    "cos": _wide(np.cos),
    "tan": _wide(np.tan),
    "asin": _wide(np.arcsin),
    "acos": _wide(np.arccos),
    "atan": _wide(np.arctan),
    "sinh": _wide(np.sinh),
    "cosh": _wide(np.cosh),
    "tanh": _wide(np.tanh),
    "sigmoid": _wide(lambda x: 1 / (1 + np.exp(-x))),
    "erf": _wide(math.erf),
    "erfc": _wide(math.erfc),
}
BINARY: Final[Mapping[str, Callable[..., Any]]] = {
    "copysign": np.copysign,
    "fmod": np.fmod,
    "pow": _wide(np.power),
    "atan2": _wide(np.arctan2),
}
