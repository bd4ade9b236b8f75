"""Float instructions of the emulated GPU against NumPy, exact fractions and mpmath."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from ptx_programs import BITS, Array, apply, every_pair, floats, integers, same_floats

BF16 = ml_dtypes.bfloat16
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def as_bits(values: Array) -> Array:
    return values.view(BITS[values.dtype.itemsize])


def computed(name: str, operands: list[Array], result: type) -> Array:
    """The result of an instruction on floats, which travel as their bits."""
    found = apply(name, [as_bits(each) for each in operands], BITS[np.dtype(result).itemsize])
    return found.view(result)


def check(name: str, operands: list[Array], wanted: Array) -> None:
    found = computed(name, operands, wanted.dtype.type)
    words = BITS[wanted.dtype.itemsize]
    nan = np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    wrong = np.flatnonzero(~(nan | (found.view(words) == wanted.view(words))))
    first = wrong[0] if len(wrong) else 0
    assert not len(wrong), (name, [each[first] for each in operands], found[first], wanted[first])


def bfloats(count: int, seed: int) -> Array:
    return floats(np.float32, count, seed).astype(BF16)


def some(kind: str, count: int, seed: int) -> Array:
    return bfloats(count, seed) if kind == "bf16" else floats(TYPES[kind], count, seed)


OPS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_arithmetic(op: str, kind: str) -> None:
    if op == "div" and kind in ("f16", "bf16"):
        pytest.skip("there is no such instruction")
    a, b = every_pair(some(kind, 64, 1), some(kind, 64, 2))
    with np.errstate(all="ignore"):
        if kind == "bf16":
            # Sums and products of bfloat16 are exact in float64.
            wanted = rounded(OPS[op](a.astype(np.float64), b.astype(np.float64)))
        else:
            wanted = OPS[op](a, b)
    check(f"{op}.rn.{kind}", [a, b], wanted)


def rounded(values: Array) -> Array:
    """float64 to bfloat16 at once."""
    found = []
    for value in values:
        if not np.isfinite(value) or value == 0:
            found.append(np.float32(value).astype(BF16))
        else:
            found.append(nearest(Fraction(float(value)), 8, -126, 127, BF16))
    return np.array(found, BF16)


def nearest(value: Fraction, bits: int, least: int, most: int, result: type) -> object:
    """The nearest float with that many bits of significand, to even; exact."""
    if not value:
        return result(0)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - bits + 1)
    number = round(size / unit) * unit
    if number >= Fraction(2) ** (most + 1):
        return result(np.inf if value > 0 else -np.inf)
    return result(float(number) * (1 if value > 0 else -1))


FORMATS = {"f32": (24, -126, 127, np.float32), "f16": (11, -14, 15, np.float16),
           "bf16": (8, -126, 127, BF16), "f64": (53, -1022, 1023, np.float64)}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_fma_rounds_once(kind: str) -> None:
    bits, least, most, result = FORMATS[kind]
    a, b = some(kind, 900, 1), some(kind, 900, 2)
    rng = np.random.default_rng(3)
    # Some thirds nearly take the product away, others nearly reach a tie.
    with np.errstate(all="ignore"):
        product = (a.astype(np.float64) * b.astype(np.float64)).astype(a.dtype)
    c = np.where(rng.random(len(a)) < 0.4, -product, some(kind, 900, 4))
    tiny = (
        product.astype(np.float64) * 2.0 ** -rng.integers(bits - 2, 2 * bits + 3, len(a))
    ).astype(a.dtype)
    c = np.where(rng.random(len(a)) < 0.4, tiny, c).astype(a.dtype)
    wanted = []
    for x, y, z in zip(a, b, c, strict=True):
        if all(np.isfinite(float(each)) for each in (x, y, z)):
            exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            wanted.append(nearest(exact, bits, least, most, result) if exact else None)
        elif np.isfinite(float(x)) and np.isfinite(float(y)):
            wanted.append(z)
        else:
            with np.errstate(all="ignore"):
                wanted.append(result(np.float64(x) * np.float64(y) + np.float64(z)))
    found = computed(f"fma.rn.{kind}", [a, b, c], a.dtype.type)
    for i, each in enumerate(wanted):
        if each is None:
            assert found[i] == 0
        else:
            assert found[i] == each or (np.isnan(float(each)) and np.isnan(float(found[i]))), (
                a[i],
                b[i],
                c[i],
                found[i],
                each,
            )


def test_pairs_are_two_operations() -> None:
    a, b = floats(np.float16, 300, 1), floats(np.float16, 300, 2)
    a, b = np.resize(a, 512), np.resize(b, 512)
    with np.errstate(all="ignore"):
        for op in ("add", "sub", "mul"):
            found = apply(f"{op}.rn.f16x2", [a.view(np.uint32), b.view(np.uint32)], np.uint32)
            assert same_floats(found.view(np.float16), OPS[op](a, b)), op


def test_saturation_is_between_0_and_1() -> None:
    a, b = every_pair(floats(np.float32, 40, 1), floats(np.float32, 40, 2))
    with np.errstate(all="ignore"):
        total = a + b
        wanted = np.where(np.isnan(total), 0, np.clip(total, 0, 1)).astype(np.float32)
    check("add.sat.f32", [a, b], wanted + np.float32(0))


def flushed(a: Array) -> Array:
    tiny = np.abs(a) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), a), a).astype(np.float32)


@pytest.mark.parametrize("op", OPS)
def test_subnormal_numbers_are_flushed(op: str) -> None:
    a, b = every_pair(floats(np.float32, 50, 1), floats(np.float32, 50, 2))
    small = np.float32(1.5e-39) * np.arange(-5, 6).astype(np.float32)
    a, b = np.concatenate([a, np.resize(small, 121)]), np.concatenate([b, np.repeat(small, 11)])
    with np.errstate(all="ignore"):
        check(f"{op}.rn.ftz.f32", [a, b], flushed(OPS[op](flushed(a), flushed(b))))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_roots_and_reciprocals(kind: str) -> None:
    values = floats(TYPES[kind], 2000, 1)
    with np.errstate(all="ignore"):
        check(f"sqrt.rn.{kind}", [values], np.sqrt(values))
        check(f"rcp.rn.{kind}", [values], TYPES[kind](1) / values)


def lesser(a: float, b: float, nan: bool, sign: int) -> float:
    if np.isnan(a) or np.isnan(b):
        return float("nan") if nan or (np.isnan(a) and np.isnan(b)) else b if np.isnan(a) else a
    if a == b:
        return a if np.signbit(a) == (sign > 0) else b
    return min(a, b) if sign > 0 else max(a, b)


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("nan", [False, True])
def test_min_and_max(kind: str, nan: bool) -> None:
    if nan and kind == "f64":
        pytest.skip("there is no such instruction")
    a, b = every_pair(some(kind, 40, 1), some(kind, 40, 2))
    for op, sign in (("min", 1), ("max", -1)):
        wanted = [lesser(float(x), float(y), nan, sign) for x, y in zip(a, b, strict=True)]
        check(f"{op}{'.NaN' if nan else ''}.{kind}", [a, b], np.array(wanted).astype(a.dtype))


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_signs(kind: str) -> None:
    values = some(kind, 300, 1)
    values = values[~np.isnan(values.astype(np.float64))]
    check(f"neg.{kind}", [values], -values)
    check(f"abs.{kind}", [values], np.abs(values))
    if kind in ("f32", "f64"):
        other = np.resize(some(kind, 200, 2), len(values))
        check(f"copysign.{kind}", [other, values], np.copysign(values, other))


def test_classes() -> None:
    for kind in ("f32", "f64"):
        values = floats(TYPES[kind], 400, 1)
        tiny = np.finfo(TYPES[kind]).tiny
        small = (values != 0) & (np.abs(values) < tiny)
        wanted = {
            "finite": np.isfinite(values), "infinite": np.isinf(values),
            "number": ~np.isnan(values), "notanumber": np.isnan(values),
            "normal": np.isfinite(values) & (np.abs(values) >= tiny), "subnormal": small,
        }  # fmt: skip
        for name, expected in wanted.items():
            assert (apply(f"testp.{name}.{kind}", [as_bits(values)], bool) == expected).all(), name


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_comparisons(kind: str) -> None:
    a, b = every_pair(some(kind, 40, 1), some(kind, 40, 2))
    x, y = a.astype(np.float64), b.astype(np.float64)
    none = np.isnan(x) | np.isnan(y)
    plain = {
        "eq": x == y,
        "ne": (x != y) & ~none,
        "lt": x < y,
        "le": x <= y,
        "gt": x > y,
        "ge": x >= y,
    }
    wanted = {
        **plain,
        **{f"{name}u": value | none for name, value in plain.items()},
        "num": ~none,
        "nan": none,
    }
    for name, expected in wanted.items():
        found = apply(f"setp.{name}.{kind}", [as_bits(a), as_bits(b)], bool)
        assert (found == expected).all(), name


APPROXIMATE = {
    "sin": (np.sin, 2.0**-20.5, False), "cos": (np.cos, 2.0**-20.5, False),
    "lg2": (np.log2, 2.0**-22, False), "ex2": (np.exp2, 2.0**-22, True),
    "tanh": (np.tanh, 2.0**-10.9, True), "rsqrt": (lambda x: 1 / np.sqrt(x), 2.0**-22.9, True),
    "rcp": (lambda x: 1 / x, 2.0**-23, True), "sqrt": (np.sqrt, 2.0**-23, True),
}  # fmt: skip


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations_are_inside_of_their_error(name: str) -> None:
    function, most, relative = APPROXIMATE[name]
    values = np.linspace(0.01, 3.1, 1000).astype(np.float32)
    found = computed(f"{name}.approx.f32", [values], np.float32).astype(np.float64)
    wanted = function(values.astype(np.float64))
    error = np.abs(found - wanted) / (np.abs(wanted) if relative else 1)
    assert error.max() <= most


WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
def test_conversions_to_integers(mode: str, kind: str) -> None:
    values = floats(TYPES[kind], 500, 1)
    for bits in (8, 16, 32, 64):
        for sign in "su":
            info = np.iinfo(f"{'int' if sign == 's' else 'uint'}{bits}")
            wanted = [
                0
                if np.isnan(value)
                else int(max(info.min, min(info.max, value)))
                if np.isinf(value)
                else max(int(info.min), min(int(info.max), int(value)))
                for value in WHOLE[mode](values.astype(np.float64))
            ]
            found = apply(f"cvt.{mode}.{sign}{bits}.{kind}", [as_bits(values)], info.dtype)
            assert (found == np.array(wanted, info.dtype)).all(), (sign, bits)


@pytest.mark.parametrize("target", ["f32", "f64", "f16", "bf16"])
def test_conversions_from_integers(target: str) -> None:
    bits, least, most, result = FORMATS[target]
    for width in (8, 16, 32, 64):
        for sign in "su":
            if target == "bf16" and width == 64:
                continue
            values = integers(f"{'int' if sign == 's' else 'uint'}{width}", 300)
            wanted = np.array(
                [nearest(Fraction(int(v)), bits, least, most, result) for v in values], result
            )
            found = apply(
                f"cvt.rn.{target}.{sign}{width}", [values], BITS[np.dtype(result).itemsize]
            )
            assert (found == as_bits(wanted)).all(), (sign, width)


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f32"])
def test_conversions_that_round(source: str, target: str) -> None:
    if source == target or (source, target) == ("f64", "bf16"):
        pytest.skip("there is no such instruction here")
    bits, least, most, result = FORMATS[target]
    values = floats(TYPES[source], 1500, 1)
    ties = (1 + (2 * np.arange(200) + 1) * 2.0**-bits) * (
        1 + np.array([-1, 0, 1])[:, None] * 2.0**-40
    )
    values = np.concatenate([values, ties.ravel().astype(TYPES[source])])
    wanted = np.array(
        [
            nearest(Fraction(float(v)), bits, least, most, result)
            if np.isfinite(v) and v else np.array(v, np.float32).astype(result)
            for v in values
        ],
        result,
    )  # fmt: skip
    check(f"cvt.rn.{target}.{source}", [values], wanted)


def test_conversions_that_are_exact() -> None:
    halves = np.arange(65536, dtype=np.uint16)
    found = apply("cvt.f32.f16", [halves], np.uint32).view(np.float32)
    assert same_floats(found, halves.view(np.float16).astype(np.float32))
    found = apply("cvt.f32.bf16", [halves], np.uint32).view(np.float32)
    assert same_floats(found, halves.view(BF16).astype(np.float32))
    values = floats(np.float32, 500, 1)
    found = apply("cvt.f64.f32", [as_bits(values)], np.uint64).view(np.float64)
    assert same_floats(found, values.astype(np.float64))


@pytest.mark.parametrize("mode", WHOLE)
def test_whole_floats(mode: str) -> None:
    for kind in ("f32", "f64"):
        values = floats(TYPES[kind], 500, 1)
        check(f"cvt.{mode}.{kind}.{kind}", [values], WHOLE[mode](values))


def test_tf32_rounds_ties_away() -> None:
    values = floats(np.float32, 800, 1)
    values = values[np.isfinite(values) & (np.abs(values) < 3e38)]
    found = apply("cvt.rna.tf32.f32", [as_bits(values)], np.uint32)
    wanted = (as_bits(values).astype(np.uint64) + 0x1000 & 0xFFFFE000).astype(np.uint32)
    assert (found == wanted).all()


def test_nans_are_canonical() -> None:
    nan = np.full(32, 0xFFC12345, np.uint32)
    one = np.full(32, 0x3F800000, np.uint32)
    assert (apply("add.f32", [nan, one], np.uint32) == 0x7FFFFFFF).all()
    assert (apply("cvt.rn.f16.f32", [nan], np.uint16) == 0x7FFF).all()
    assert (apply("cvt.rn.bf16.f32", [nan], np.uint16) == 0x7FFF).all()
