"""`fe.math` of Python numbers, in Python: what a call means whose operands are known already.

The results are Python floats, also of `floor` and its like, as those of run-time numbers are
floats.  What Python's math refuses (a logarithm of 0, an overflow) it refuses here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final


def _exp2(x: float) -> float:
    return math.pow(2.0, x)


def _cbrt(x: float) -> float:
    """The cube root; Python has one of its own only from 3.11 on."""
    if x == 0 or not math.isfinite(x):
        return float(x)
    root = math.copysign(abs(x) ** (1 / 3), x)
    return root - float((Fraction(root) ** 3 - Fraction(x)) / (3 * Fraction(root) ** 2))


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))
    return (small if x < 0 else 1.0) / (1.0 + small)


def _fma(x: float, y: float, z: float) -> float:
    plain = x * y + z
    if not all(map(math.isfinite, (x, y, z))):
        return float(plain)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact else float(plain)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding as a float, with the sign of its operand."""

    def rounded(x: float) -> float:
        return math.copysign(function(x), x) if math.isfinite(x) else float(x)

    return rounded


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(math, name) for name in ("exp", "expm1", "log2", "log10", "log1p", "sqrt")},
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(math, name) for name in ("atan2", "sinh", "cosh", "tanh", "erf", "erfc")},
    **{name: getattr(math, name) for name in ("fabs", "copysign", "fmod", "isnan", "isinf", "pow")},
    "log": lambda x: math.log(x),
    "exp2": _exp2,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "cbrt": _cbrt,
    "sigmoid": _sigmoid,
    "fma": _fma,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "trunc": _whole(math.trunc),
}
