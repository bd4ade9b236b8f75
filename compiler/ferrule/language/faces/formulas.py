"""Functions of `fe.math` that are written in the kernel language itself, of single numbers.

Floats come in Float32 or Float64: narrower ones are computed in Float32 and rounded once more.
"""

from __future__ import annotations

import math
from typing import Any, Final

from ferrule import specs
from ferrule.language.faces import maths
from ferrule.language.faces.vectors import where

# Numbers of the call have operators, which Python's numbers of these dtypes lack.
BFloat16: Any = specs.BFloat16
Float16: Any = specs.Float16
Float32: Any = specs.Float32
Float64: Any = specs.Float64

_FLOATS: Final = (float, Float16, BFloat16, Float32, Float64)
_LN2: Final = math.log(2.0)
_LARGE: Final = 1e9
"""From here on the square of a number and 1 more are the same float, also in Float64."""
_LEAST_NORMAL: Final = {
    Float16: 2.0**-14,
    BFloat16: 2.0**-126,
    Float32: 2.0**-126,
    Float64: 2.0**-1022,
}


def absolute(x: Any) -> Any:
    """`abs`."""
    return abs(x)


def negative(x: Any) -> Any:
    """`neg`."""
    return -x


def total(x: Any, y: Any) -> Any:
    """`add`."""
    return x + y


def difference(x: Any, y: Any) -> Any:
    """`sub`."""
    return x - y


def product(x: Any, y: Any) -> Any:
    """`mul`."""
    return x * y


def quotient(x: Any, y: Any) -> Any:
    """`div`."""
    if isinstance(x, _FLOATS) or isinstance(y, _FLOATS):
        return x / y
    return _towards_zero(x, y)


def remainder(x: Any, y: Any) -> Any:
    """`rem`."""
    if isinstance(x, _FLOATS) or isinstance(y, _FLOATS):
        return maths.fmod(x, y)
    return x - _towards_zero(x, y) * y


def _towards_zero(x: Any, y: Any) -> Any:
    below = x // y
    return where((below < 0) & (below * y != x), below + 1, below)


def clamped(x: Any, lo: Any, hi: Any) -> Any:
    """`clamp`."""
    return min(max(x, lo), hi)


def reciprocal(x: Any) -> Any:
    """`rcp`."""
    return 1.0 / x


def is_finite(x: Any) -> Any:
    """`isfinite`."""
    return maths.fabs(x) < math.inf


def is_normal(x: Any) -> Any:
    """`isnormal`."""
    a = maths.fabs(x)
    return (a < math.inf) & (a >= _LEAST_NORMAL[a.dtype])


def power(x: Any, y: Any) -> Any:
    """x to the power of y, which is at least 0, by squares."""
    result, square, rest = x * 0 + 1, x, y
    while rest > 0:
        if rest % 2 == 1:
            result = result * square
        square = square * square
        rest = rest // 2
    return result


def float_power(x: Any, y: Any) -> Any:
    """`fpowi`."""
    found = power(x, abs(y))
    return where(y < 0, 1.0 / found, found)


def asinh(x: Any) -> Any:
    """`asinh`."""
    a = maths.fabs(x)
    near = maths.log1p(a + a * a / (1.0 + maths.sqrt(a * a + 1.0)))
    return maths.copysign(where(a > _LARGE, maths.log(a) + _LN2, near), x)


def acosh(x: Any) -> Any:
    """`acosh`."""
    t = x - 1.0
    near = maths.log1p(t + maths.sqrt(t * (t + 2.0)))
    return where(x < 1.0, math.nan, where(x > _LARGE, maths.log(x) + _LN2, near))


def atanh(x: Any) -> Any:
    """`atanh`."""
    a = maths.fabs(x)
    return maths.copysign(0.5 * maths.log1p(2.0 * a / (1.0 - a)), x)
