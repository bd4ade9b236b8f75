"""The maths library run on arrays, and how far its results are from the true values, in ulp.

The ulp of a result is the distance of the two floats around the true value.  The reference of
float32 is NumPy's and Python's float64; that of float64 is NumPy's long double where that is wider
(`WIDE`), and mpmath for what NumPy has not and for cases that are hard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, get_args

import mpmath
import numpy as np
from cpu_machine import Compiled, compile_program, elementwise

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import DType, Float32, Float64

Array = Any
WIDE: Final = np.finfo(np.longdouble).nmant > 60
"""Whether NumPy has a float that is wider than float64."""


@cache
def compiled(op: str, dtype: DType, cpu: str | None = None, fmad: bool = False) -> Compiled:
    """`out[i] = op(a[i], …)`, with `fmad` by the formula with fma."""
    if op == "fma":
        return compile_program(
            elementwise(lambda b, x, y, z: b.fma(x, y, z), [dtype] * 3, dtype), cpu
        )

    def make(b: Builder, *operands: ops.Value) -> ops.Value:
        with b.inlined(fmad, library=False):
            return getattr(b, "unary" if len(operands) == 1 else "binary")(op, *operands)

    count = 1 if op in get_args(ops.UnaryOp) else 2
    return compile_program(elementwise(make, [dtype] * count, dtype), cpu)


def run(op: str, dtype: DType, *arrays: Array, cpu: str | None = None, fmad: bool = False) -> Array:
    """The op on each element."""
    out = np.zeros_like(arrays[0])
    called = compiled(op, dtype, cpu, fmad)
    assert called(*map(np.ascontiguousarray, arrays), out, len(out)) == 0
    return out


# ---- references ----


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    called = np.frompyfunc(function, 1, 1)
    return lambda x: called(x.astype("f8")).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


NUMPY: Final[Mapping[str, Callable[..., Array]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sigmoid": _sigmoid,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
}
"""The functions in the dtype of their operand; erf and erfc are at best float64."""

MPMATH: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(mpmath, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "cbrt")},
    **{name: getattr(mpmath, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(mpmath, name) for name in ("sinh", "cosh", "tanh", "erf", "erfc", "atan2")},
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.ln2,
    "log10": lambda x: mpmath.log(x) / mpmath.ln10,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "pow": mpmath.power,
}


def precise(op: str, *operands: float) -> Any:
    """The true value to 60 digits; the operands are finite and in the domain."""
    with mpmath.workdps(60):
        if op == "cbrt" and operands[0] < 0:
            return -mpmath.cbrt(mpmath.mpf(-operands[0]))
        return MPMATH[op](*map(mpmath.mpf, operands))


# ---- errors ----


@np.errstate(all="ignore")
def errors(op: str, dtype: DType, *arrays: Array, fmad: bool = False) -> Array:
    """How far each result is from the reference, in ulp; infinity where one is no number."""
    wide = np.float64 if dtype is Float32 else np.longdouble
    exact = NUMPY[op](*(array.astype(wide) for array in arrays))
    return distance(run(op, dtype, *arrays, fmad=fmad), exact)


@np.errstate(all="ignore")
def distance(found: Array, exact: Array) -> Array:
    """How far floats are from true values of a wider format, in ulp of the floats."""
    info = np.finfo(found.dtype)
    lowest = np.frexp(info.smallest_normal)[1]
    exponents = np.maximum(np.frexp(exact)[1], lowest) - info.nmant - 1
    error = np.abs(found.astype(exact.dtype) - exact) / np.ldexp(np.ones_like(exact), exponents)
    overflows = np.abs(exact) >= np.ldexp(np.ones_like(exact), info.maxexp)
    same = np.where(overflows, found == np.copysign(np.inf, exact), found == exact)
    same |= np.isnan(found) & np.isnan(exact)
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error)).astype("f8")


def precise_error(op: str, found: float, *operands: float) -> float:
    """How far a float64 is from the true value, in ulp."""
    exact = precise(op, *operands)
    with mpmath.workdps(60):
        if abs(exact) >= mpmath.mpf(2) ** 1024:
            return 0.0 if math.isinf(found) else math.inf
        return float(abs(mpmath.mpf(found) - exact) / math.ulp(float(exact)))


DTYPES: Final = (Float32, Float64)
