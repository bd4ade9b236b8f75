"""Floats where rounding is hardest: sums that cancel, ties, and all numbers of 16 bits."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from ptx_programs import BITS, Array, apply, floats, same_floats

from ferrule.emulator.machine import Machine

BF16 = ml_dtypes.bfloat16
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def as_bits(values: Array) -> Array:
    return values.view(BITS[values.dtype.itemsize])


def computed(name: str, operands: list[Array], result: type, on: Machine | None = None) -> Array:
    """The result of an instruction on floats, which travel as their bits."""
    bits = BITS[np.dtype(result).itemsize]
    return apply(name, [as_bits(each) for each in operands], bits, on=on).view(result)


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


APPROXIMATE = {
    "sin": (np.sin, 2.0**-20.5, False), "cos": (np.cos, 2.0**-20.5, False),
    "lg2": (np.log2, 2.0**-22, False), "ex2": (np.exp2, 2.0**-22, True),
    "tanh": (np.tanh, 2.0**-10.9, True), "rsqrt": (lambda x: 1 / np.sqrt(x), 2.0**-22.9, True),
    "rcp": (lambda x: 1 / x, 2.0**-23, True), "sqrt": (np.sqrt, 2.0**-23, True),
}  # fmt: skip
MOVING = Machine("sm_90a", checks=frozenset({"approx"}), schedule=None)


def check_errors(name: str, found: Array, values: Array) -> None:
    function, most, relative = APPROXIMATE[name]
    wanted = function(values.astype(np.float64))
    error = np.abs(found.astype(np.float64) - wanted)
    error /= np.abs(wanted) if relative else np.maximum(np.abs(wanted), 1)
    assert error.max() <= most


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations_are_inside_of_their_error(name: str) -> None:
    values = np.linspace(0.01, 3.1, 1000).astype(np.float32)
    found = computed(f"{name}.approx.f32", [values], np.float32)
    check_errors(name, found, values)
    moved = computed(f"{name}.approx.f32", [values], np.float32, on=MOVING)
    check_errors(name, moved, values)
    nearer, further = (moved < found).mean(), (moved > found).mean()
    assert min(nearer, further) >= 0.05
    again = computed(f"{name}.approx.f32", [values], np.float32, on=MOVING)
    assert again.tobytes() == moved.tobytes()


@pytest.mark.parametrize("name", [*APPROXIMATE, "div"])
def test_what_is_exact_is_not_moved(name: str) -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    given = [special, special[::-1].copy()] if name == "div" else [special]
    found = (computed(f"{name}.approx.f32", given, np.float32, on=on) for on in (None, MOVING))
    first, second = found
    assert first.tobytes() == second.tobytes()


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


def test_nans_are_canonical() -> None:
    nan = np.full(32, 0xFFC12345, np.uint32)
    one = np.full(32, 0x3F800000, np.uint32)
    assert (apply("add.f32", [nan, one], np.uint32) == 0x7FFFFFFF).all()
    assert (apply("cvt.rn.f16.f32", [nan], np.uint16) == 0x7FFF).all()
    assert (apply("cvt.rn.bf16.f32", [nan], np.uint16) == 0x7FFF).all()
