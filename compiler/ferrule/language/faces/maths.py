"""Functions of run-time numbers and of whole tensors.  For compile-time values they are computed at
compile time.  Integers are converted to Float32, except by `max`, `min`, `popc` and `clz`; float16
and bfloat16 are computed in float32 and rounded once more.

Special values are those of C's Annex F.  `fast=True` (or `fastmath=True`) allows a GPU's less
precise instruction; a CPU ignores it.  Precision of each function: docs/maths.md.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ferrule.language.faces.base import outside

MathOperand = Any
"""What the functions take: numbers, vectors and whole tensors."""


class RoundingMode(Enum):
    """How a result is rounded; functions round to nearest, and refuse the others."""

    NEAREST_EVEN = "rn"
    ZERO = "rz"
    UP = "rp"
    DOWN = "rm"


def exp(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """e to the power of x."""
    outside("math.exp")


def exp2(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """2 to the power of x."""
    outside("math.exp2")


def expm1(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """e to the power of x, less 1, precise near 0 too."""
    outside("math.expm1")


def log(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The natural logarithm; NaN for x < 0."""
    outside("math.log")


def log2(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The logarithm to base 2; NaN for x < 0."""
    outside("math.log2")


def log10(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The logarithm to base 10; NaN for x < 0."""
    outside("math.log10")


def log1p(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The natural logarithm of 1 + x, precise near 0 too; NaN for x < -1."""
    outside("math.log1p")


def sqrt(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The square root, correctly rounded; NaN for x < 0."""
    outside("math.sqrt")


def rsqrt(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """1 / sqrt(x)."""
    outside("math.rsqrt")


def cbrt(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The cube root."""
    outside("math.cbrt")


def pow(x: Any, y: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """x to the power of y; NaN for x < 0 and a y that is not an integer."""
    outside("math.pow")


def sin(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The sine of x in radians, precise for every x."""
    outside("math.sin")


def cos(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The cosine of x in radians, precise for every x."""
    outside("math.cos")


def tan(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The tangent of x in radians, precise for every x."""
    outside("math.tan")


def asin(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The arc sine; NaN outside [-1, 1]."""
    outside("math.asin")


def acos(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The arc cosine; NaN outside [-1, 1]."""
    outside("math.acos")


def atan(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The arc tangent."""
    outside("math.atan")


def atan2(y: Any, x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The angle of the point (x, y), in [-pi, pi]."""
    outside("math.atan2")


def sinh(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The hyperbolic sine."""
    outside("math.sinh")


def cosh(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The hyperbolic cosine."""
    outside("math.cosh")


def tanh(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The hyperbolic tangent."""
    outside("math.tanh")


def sigmoid(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """1 / (1 + e**-x)."""
    outside("math.sigmoid")


def erf(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """The error function."""
    outside("math.erf")


def erfc(x: Any, *, fast: bool = False, fastmath: bool = False) -> Any:
    """1 - erf(x), precise where that is small."""
    outside("math.erfc")


def floor(x: Any) -> Any:
    """The largest integer that is not above x, as a float."""
    outside("math.floor")


def ceil(x: Any) -> Any:
    """The smallest integer that is not below x, as a float."""
    outside("math.ceil")


def round(x: Any) -> Any:
    """The nearest integer, ties to even, as a float."""
    outside("math.round")


def trunc(x: Any) -> Any:
    """The integer towards zero, as a float."""
    outside("math.trunc")


def fabs(x: Any) -> Any:
    """|x|, as a float."""
    outside("math.fabs")


def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y."""
    outside("math.copysign")


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding."""
    outside("math.fma")


def fmod(x: Any, y: Any) -> Any:
    """The remainder of x / y with the quotient rounded towards zero: exact, with the sign of x."""
    outside("math.fmod")


def max(x: Any, y: Any) -> Any:
    """The larger of two; NaN if one of them is NaN, as numpy.maximum."""
    outside("math.max")


def min(x: Any, y: Any) -> Any:
    """The smaller of two; NaN if one of them is NaN, as numpy.minimum."""
    outside("math.min")


# ---- more names of CuTe DSL; `formulas` has what they are ----


def abs(x: Any, fastmath: bool = False) -> Any:
    """|x|; the smallest integer stays as it is."""
    outside("math.abs")


def absf(x: Any, fastmath: bool = False) -> Any:
    """|x|, as a float: `fabs`."""
    outside("math.absf")


def absi(x: Any) -> Any:
    """|x| of an integer."""
    outside("math.absi")


def neg(x: Any, fastmath: bool = False) -> Any:
    """-x."""
    outside("math.neg")


def add(x: Any, y: Any, fastmath: bool = False, rounding: RoundingMode | None = None) -> Any:
    """x + y."""
    outside("math.add")


def sub(x: Any, y: Any, fastmath: bool = False, rounding: RoundingMode | None = None) -> Any:
    """x - y."""
    outside("math.sub")


def mul(x: Any, y: Any, fastmath: bool = False, rounding: RoundingMode | None = None) -> Any:
    """x * y."""
    outside("math.mul")


def div(x: Any, y: Any, fastmath: bool = False, rounding: RoundingMode | None = None) -> Any:
    """x / y of floats; of two integers the quotient rounded towards zero."""
    outside("math.div")


def rem(x: Any, y: Any, fastmath: bool = False) -> Any:
    """What is left of x / y with the quotient rounded towards zero: it has the sign of x."""
    outside("math.rem")


def rcp(x: Any, fastmath: bool = False, rounding: RoundingMode | None = None) -> Any:
    """1 / x, correctly rounded."""
    outside("math.rcp")


def clamp(x: Any, lo: Any, hi: Any, fastmath: bool = False) -> Any:
    """x, but at least lo and at most hi; NaN if one of them is NaN."""
    outside("math.clamp")


def roundeven(x: Any, fastmath: bool = False) -> Any:
    """The nearest integer, ties to even, as a float: `round`."""
    outside("math.roundeven")


def sincos(x: Any, fastmath: bool = False) -> Any:
    """The sine and the cosine of x in radians."""
    outside("math.sincos")


def isfinite(x: Any) -> Any:
    """Whether x is neither an infinity nor NaN: a Boolean."""
    outside("math.isfinite")


def isnormal(x: Any) -> Any:
    """Whether x is finite, not zero, and not subnormal: a Boolean."""
    outside("math.isnormal")


def ipowi(x: Any, y: Any) -> Any:
    """An integer to the power of an integer that is not negative; wraps around."""
    outside("math.ipowi")


def fpowi(x: Any, y: Any, fastmath: bool = False) -> Any:
    """A float to the power of an integer, by products."""
    outside("math.fpowi")


def asinh(x: Any, fastmath: bool = False) -> Any:
    """The inverse hyperbolic sine."""
    outside("math.asinh")


def acosh(x: Any, fastmath: bool = False) -> Any:
    """The inverse hyperbolic cosine; NaN for x < 1."""
    outside("math.acosh")


def atanh(x: Any, fastmath: bool = False) -> Any:
    """The inverse hyperbolic tangent; an infinity for 1 and -1, NaN beyond."""
    outside("math.atanh")


# ---- questions and bits ----


def isnan(x: Any) -> Any:
    """Whether x is NaN: a Boolean."""
    outside("math.isnan")


def isinf(x: Any) -> Any:
    """Whether x is an infinity: a Boolean."""
    outside("math.isinf")


def popc(x: Any) -> Any:
    """The number of 1 bits in an integer: an Int32."""
    outside("math.popc")


def clz(x: Any) -> Any:
    """The number of leading 0 bits in an integer, its width for 0: an Int32."""
    outside("math.clz")
