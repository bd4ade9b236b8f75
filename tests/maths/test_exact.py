"""The functions that are exact, against NumPy, Python's integers and exact fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, elementwise
from maths_reference import run

from ferrule import specs
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import UNARY
from ferrule.specs import DType, Float16, Float32, Float64

CPUS = pytest.mark.parametrize("cpu", [None, BASELINE])
DTYPES = pytest.mark.parametrize("dtype", [Float32, Float64], ids=lambda d: d.name)
INTEGERS = [dtype for dtype in specs.ALL_DTYPES if dtype.is_integer and dtype.bits >= 8]


def same(found: Any, wanted: Any) -> None:
    """Equal bits, but for those of NaN."""
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def edges(dtype: DType) -> Any:
    """Special values, halves, and where floats stop having fractions."""
    info = np.finfo(dtype.name)
    most = 2.0**info.nmant
    values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 4.5, most / 2 + 0.5, most / 2 + 1.5]
    values += [most - 0.5, most, most + 1, most * 2 + 2, float(info.max), float(info.tiny)]
    values += [float(info.smallest_subnormal), float(np.nextafter(info.dtype.type(0.5), 0)), 1e10]
    values += [float(np.nextafter(info.dtype.type(1), 0)), math.inf, math.nan]
    return np.array([*values, *(-value for value in values)], dtype.name)


ROUNDINGS: dict[ops.UnaryOp, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "fabs": np.fabs,
}


@CPUS
@DTYPES
@pytest.mark.parametrize("op", ROUNDINGS)
def test_roundings(op: ops.UnaryOp, dtype: DType, cpu: str | None) -> None:
    spread = np.random.default_rng(1).standard_normal(2000) * np.exp2(np.linspace(-3, 60, 2000))
    values = np.concatenate([edges(dtype), spread.astype(dtype.name)])
    same(run(op, dtype, values, cpu=cpu), ROUNDINGS[op](values))


def pairs(dtype: DType) -> tuple[Any, Any]:
    left, right = zip(*itertools.product(edges(dtype), repeat=2), strict=True)
    return np.array(left, dtype.name), np.array(right, dtype.name)


@DTYPES
def test_copysign(dtype: DType) -> None:
    x, y = pairs(dtype)
    same(run("copysign", dtype, x, y), np.copysign(x, y))


@CPUS
@DTYPES
def test_fmod(dtype: DType, cpu: str | None) -> None:
    rng = np.random.default_rng(2)
    word = np.uint32 if dtype is Float32 else np.uint64
    parts = [pairs(dtype)]
    parts += [rng.integers(0, 1 << dtype.bits, (2, 2000), dtype=word).view(dtype.name)]
    parts += [rng.standard_normal((2, 2000)).astype(dtype.name)]
    x, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    with np.errstate(invalid="ignore"):
        same(run("fmod", dtype, x, y, cpu=cpu), np.fmod(x, y))


# ---- fma ----


def nearest(dtype: DType, value: Fraction) -> float:
    """The float that is nearest to a number that is not 0; too large is infinity."""
    info = np.finfo(dtype.name)
    below = Fraction(2) ** (abs(value.numerator).bit_length() - value.denominator.bit_length() - 1)
    power = below if below * 2 > abs(value) else below * 2
    ulp = max(power / 2**info.nmant, Fraction(float(info.smallest_subnormal)))
    whole = round(value / ulp) * ulp
    if abs(whole) > Fraction(float(info.max)):
        return math.inf if value > 0 else -math.inf
    return math.copysign(float(whole), value)


def exact_fma(dtype: DType, x: float, y: float, z: float) -> float:
    """x * y + z, rounded once."""
    if not all(map(math.isfinite, (x, y))):
        return x * y + z
    if not math.isfinite(z):
        return z
    total = Fraction(x) * Fraction(y) + Fraction(z)
    return nearest(dtype, total) if total else x * y + z


def many_exponents(rng: np.random.Generator, low: int, high: int, count: int) -> Any:
    return np.ldexp(rng.uniform(-2, 2, count), rng.integers(low, high, count))


def triples() -> list[tuple[Any, ...]]:
    """Products and addends that cancel, that underflow, that overflow, that are ties."""
    rng, n = np.random.default_rng(3), 700
    x, y = many_exponents(rng, -30, 30, n), rng.standard_normal(n)
    near = -(x * y) * (1 + rng.integers(-4, 5, n) * 2.0**-52)
    small = many_exponents(rng, -1078, -1000, n)
    half = rng.integers(-560, -480, n)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.7e308]
    ties = 1 + rng.integers(0, 1 << 10, n) * 2.0**-52, 1 + rng.integers(0, 1 << 10, n) * 2.0**-30
    whole = np.ldexp(rng.integers(1, 1 << 26, n).astype("f8"), half)
    last = np.ldexp(rng.integers(-(1 << 20), 1 << 20, n).astype("f8"), -1074)
    return [
        (x, y, -(x * y)),
        (x, y, near),
        (np.ldexp(x, half), np.ldexp(y, half), small),
        (whole, np.ldexp(y, -1074 - half), last),
        (*ties, np.ldexp(rng.choice([-1.0, 1.0], n), rng.integers(-120, 10, n))),
        (many_exponents(rng, 500, 530, n), many_exponents(rng, 480, 512, n), near * 1e300),
        tuple(many_exponents(rng, -1074, 1023, n) for _ in range(3)),
        tuple(np.array(list(itertools.product(special, repeat=3))).T),
    ]


def check_fma(dtype: DType, given: list[Any], cpu: str | None) -> None:
    wanted = [exact_fma(dtype, *map(float, each)) for each in zip(*given, strict=True)]
    same(run("fma", dtype, *given, cpu=cpu), np.array(wanted, dtype.name))


@CPUS
def test_fma_of_float64_rounds_once(cpu: str | None) -> None:
    with np.errstate(all="ignore"):
        given = [np.concatenate(column) for column in zip(*triples(), strict=True)]
    check_fma(Float64, given, cpu)


@pytest.mark.parametrize("dtype", [Float16, Float32], ids=lambda d: d.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fma_of_narrow_floats_rounds_once(dtype: DType) -> None:
    rng = np.random.default_rng(4)
    word = np.uint16 if dtype is Float16 else np.uint32
    anything = rng.integers(0, 1 << dtype.bits, (3, 4000), dtype=word).view(dtype.name)
    x, y = rng.standard_normal((2, 4000)).astype(dtype.name)
    given = [np.concatenate([a, b]) for a, b in zip(anything, (x, y, -(x * y)), strict=True)]
    check_fma(dtype, given, None)


# ---- bits ----


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_bits_of_integers(dtype: DType) -> None:
    low, high = dtype.range
    values = sorted({low, low + 1, -1 if low else 5, 0, 1, 2, 3, high // 2, high - 1, high})
    given = np.array(values, dtype.name)
    words = [value % (1 << dtype.bits) for value in values]
    expected: dict[ops.UnaryOp, list[int]] = {
        "popc": [word.bit_count() for word in words],
        "clz": [dtype.bits - word.bit_length() for word in words],
    }
    assert set(expected) == {n for n, row in UNARY.items() if row.function == "integers"}
    for op, wanted in expected.items():
        out = np.zeros_like(given)
        program = elementwise(lambda b, x, op=op: b.unary(op, x), [dtype], dtype)
        compile_program(program)(given, out, len(given))
        assert out.tolist() == wanted
