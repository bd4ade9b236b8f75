"""What the maths library approximates: functions, ranges and weights, and constants in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mpmath as mp

Real = Any
"""A number of mpmath."""


@dataclass(frozen=True)
class Fit:
    """One polynomial: `function` on [low, high] with `weight`; `counts` of coefficients."""

    name: str
    meaning: str
    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]
    low: float
    high: float
    counts: dict[str, int]


def both(single: int, double: int) -> dict[str, int]:
    return {"Float32": single, "Float64": double}


# ---- what is approximated; series where a quotient would cancel ----


def series(terms: Callable[[int], Real], x: Real) -> Real:
    """The sum of terms(k) x**k."""
    total, power = mp.mpf(0), mp.mpf(1)
    for k in range(400):
        term = terms(k) * power
        total += term
        power *= x
        if k > 8 and abs(term) < abs(total) * mp.mpf(10) ** -58:
            break
    return total


def alternating(k: int) -> int:
    return -1 if k % 2 else 1


def exp_rest(r: Real) -> Real:
    return series(lambda k: 1 / mp.factorial(k + 2), r)


def exp2_rest(r: Real) -> Real:
    return mp.log(2) ** 2 * exp_rest(r * mp.log(2))


def log_rest(z: Real) -> Real:
    return series(lambda k: mp.mpf(2) / (2 * k + 3), z)


def log_far_rest(z: Real) -> Real:
    return series(lambda k: mp.mpf(2) / (2 * k + 5), z)


def sin_rest(z: Real) -> Real:
    return series(lambda k: alternating(k + 1) / mp.factorial(2 * k + 3), z)


def cos_rest(z: Real) -> Real:
    return series(lambda k: alternating(k) / mp.factorial(2 * k + 4), z)


def asin_rest(z: Real) -> Real:
    def term(k: int) -> Real:
        n = k + 1
        return mp.binomial(2 * n, n) / mp.mpf(4) ** n / (2 * n + 1)

    return series(term, z)


def atan_rest(z: Real) -> Real:
    return series(lambda k: mp.mpf(alternating(k + 1)) / (2 * k + 3), z)


def erf_rest(w: Real) -> Real:
    factor = 2 / mp.sqrt(mp.pi)
    total = series(lambda k: factor * alternating(k) / mp.factorial(k) / (2 * k + 1), w + 0.5)
    return total - 1


def tanh_rest(z: Real) -> Real:
    x = mp.sqrt(z)
    return (mp.tanh(x) / x - 1) / z if z else mp.mpf(-1) / 3


ERFC_CENTRE: Final = 3.75


def erfcx_rest(t: Real) -> Real:
    x = ERFC_CENTRE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x) - 1


def erfcx_end(x: float) -> float:
    return (x - ERFC_CENTRE) / (x + ERFC_CENTRE)


HALF_LN2: Final = 0.3466
QUARTER_PI: Final = 0.7855**2
LOG_RANGE: Final = 0.02945

FITS: Final = (
    Fit(
        "EXP",
        "(e**r - 1 - r) / r**2",
        exp_rest,
        lambda r: abs(r * r / mp.expm1(r)),
        -HALF_LN2,
        HALF_LN2,
        both(6, 11),
    ),
    Fit(
        "EXP_SHORT",
        "(e**r - 1 - r) / r**2, for e**r alone",
        exp_rest,
        lambda r: r * r / mp.exp(r),
        -HALF_LN2,
        HALF_LN2,
        both(5, 10),
    ),
    Fit(
        "EXP2",
        "(2**r - 1 - r ln 2) / r**2",
        exp2_rest,
        lambda r: r * r / 2**r,
        -0.5,
        0.5,
        both(6, 11),
    ),
    Fit(
        "LOG",
        "(log((1 + s) / (1 - s)) / s - 2) / z with z = s**2",
        log_rest,
        lambda z: z / 2,
        0.0,
        LOG_RANGE,
        both(3, 7),
    ),
    Fit(
        "LOG_FAR",
        "((log((1 + s) / (1 - s)) / s - 2) / z - 2 / 3) / z with z = s**2",
        log_far_rest,
        lambda z: z * z / 2,
        0.0,
        LOG_RANGE,
        both(4, 9),
    ),
    Fit(
        "SIN",
        "(sin(r) / r - 1) / z with z = r**2",
        sin_rest,
        lambda z: z,
        0.0,
        QUARTER_PI,
        both(4, 6),
    ),
    Fit(
        "COS",
        "((cos(r) - 1) / z + 1 / 2) / z with z = r**2",
        cos_rest,
        lambda z: z * z,
        0.0,
        QUARTER_PI,
        both(3, 6),
    ),
    Fit(
        "ASIN",
        "(asin(x) / x - 1) / z with z = x**2",
        asin_rest,
        lambda z: z,
        0.0,
        0.25,
        both(6, 13),
    ),
    Fit(
        "ATAN",
        "(atan(t) / t - 1) / z with z = t**2",
        atan_rest,
        lambda z: z,
        0.0,
        0.1716,
        both(5, 11),
    ),
    Fit(
        "CBRT",
        "the cube root, to start from",
        lambda m: mp.cbrt(m),
        lambda m: 1 / mp.cbrt(m),
        1.0,
        2.0,
        both(5, 5),
    ),
    Fit(
        "ERF",
        "erf(x) / x - 1 with w = x**2 - 1/2",
        erf_rest,
        lambda z: mp.mpf(1),
        -0.5,
        0.5,
        both(8, 15),
    ),
    Fit(
        "ERF_FAR",
        "-log(erfc(x)) / x",
        lambda x: -mp.log(mp.erfc(x)) / x,
        lambda x: x * mp.erfc(x),
        0.9,
        4.0,
        {"Float32": 7},
    ),
    Fit(
        "TANH",
        "(tanh(x) / x - 1) / z with z = x**2",
        tanh_rest,
        lambda z: z,
        0.0,
        0.55**2,
        {"Float32": 5},
    ),
    Fit(
        "ERFC",
        f"(1 + 2 x) e**(x**2) erfc(x) - 1 with t = (x - {ERFC_CENTRE}) / (x + {ERFC_CENTRE})",
        erfcx_rest,
        lambda t: 1 / (1 + erfcx_rest(t)),
        -1.0,
        erfcx_end(27.3),
        both(13, 25),
    ),
)


# ---- constants in parts ----


@dataclass(frozen=True)
class Constant:
    """A number as a sum: each part but the last has the given count of bits."""

    name: str
    meaning: str
    value: Callable[[], Real]
    single: tuple[int, ...]
    double: tuple[int, ...]


CONSTANTS: Final = (
    Constant(
        "LN2", "ln 2; times an exponent the first part is exact", lambda: mp.ln2, (15,), (40,)
    ),
    Constant("LN2_FULL", "ln 2", lambda: mp.ln2, (24,), (53,)),
    Constant("LOG2_E_FULL", "1 / ln 2", lambda: 1 / mp.ln2, (24,), (53,)),
    Constant("LOG2_E", "1 / ln 2; the first is half a float", lambda: 1 / mp.ln2, (12,), (26,)),
    Constant("LOG10_E", "1 / ln 10; the first is half a float", lambda: 1 / mp.ln10, (12,), (26,)),
    Constant(
        "LOG10_2",
        "log10 2; times an exponent the first part is exact",
        lambda: mp.ln2 / mp.ln10,
        (15,),
        (40,),
    ),
    Constant("TWO_THIRDS", "2 / 3", lambda: mp.mpf(2) / 3, (24,), (53,)),
    Constant(
        "QUARTER_PI", "pi / 4; up to 4 times the first is exact", lambda: mp.pi / 4, (21,), (50,)
    ),
    Constant("HALF_PI", "pi / 2", lambda: mp.pi / 2, (24,), (53,)),
    Constant("HALF_PI_THREE", "pi / 2 in three floats", lambda: mp.pi / 2, (24, 24), (53, 53)),
    Constant(
        "HALF_PI_PARTS",
        "pi / 2 in float64s; times the quadrants of a reduction all but the last are exact",
        lambda: mp.pi / 2,
        (36,),
        (33, 33, 33),
    ),
)


# ---- polynomials ----


def horner(coefficients: Sequence[Real], x: Real) -> Real:
    """The polynomial at x, the lowest power first."""
    result = mp.mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def error_bits(wanted: Fit, coefficients: Sequence[Real], points: int = 500) -> float:
    """The base-2 logarithm of the largest weighted error."""
    worst = mp.mpf(0)
    for i in range(1, points):
        x = mp.mpf(wanted.low) + mp.mpf(wanted.high - wanted.low) * (i + 0.25) / points
        error = (horner(coefficients, x) - wanted.function(x)) * wanted.weight(x)
        worst = max(worst, abs(error))
    return float(mp.log(worst, 2))
