"""Casts between all dtypes, on edge values; the 2-byte floats exhaustively and at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, elementwise, elementwise_each
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.rounding import bits_of

from ferrule import specs
from ferrule.specs import DType
from ferrule.specs.rounding import bfloat16_bits, float16_bits, tfloat32_value

CPUS = pytest.mark.parametrize("cpu", [None, BASELINE])
INTEGERS = [dtype for dtype in specs.ALL_DTYPES if dtype.is_integer and dtype.bits >= 8]
WIDE = [specs.Float32, specs.Float64]
FLOATS = [specs.Float16, specs.BFloat16, *WIDE]
STORAGE = {specs.BFloat16: "uint16", specs.Boolean: "uint8", specs.TFloat32: "float32"}
ALL_HALVES = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def storage(dtype: DType) -> str:
    """The NumPy dtype of an array of these elements."""
    return STORAGE.get(dtype, dtype.name)


def cast(source: DType, target: DType, values: Any, cpu: str | None = None) -> Any:
    return casts(source, [target], values, cpu)[0]


def casts(source: DType, targets: Sequence[DType], values: Any, cpu: str | None = None) -> Any:
    """The same values as each of these, compiled in one program."""
    made = [(lambda b, x, to=target: b.cast(to, x), target) for target in targets]
    outs = [np.zeros(len(values), storage(target)) for target in targets]
    compile_program(elementwise_each(made, [source]), cpu)(values, *outs, len(values))
    return outs


def bfloat16_values(bits: Any) -> Any:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def float_edges() -> list[float]:
    powers = [2.0**e for e in (-1, 0, 7, 8, 15, 16, 31, 32, 62, 63, 64, 100)]
    edges = [0.0, 0.25, 0.5, 1.5, 2.5, 1e9, math.inf, *powers]
    edges += [math.nextafter(p, 0) for p in powers]
    return [*edges, *(-x for x in edges), math.nan]


def integer_edges(dtype: DType) -> list[int]:
    low, high = dtype.range
    near = [s * ((1 << e) + d) for e in range(64) for d in (-1, 0, 1) for s in (1, -1)]
    return sorted({x for x in (low, high, low + 1, high - 1, *near) if low <= x <= high})


def saturated(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return 0
    low, high = dtype.range
    return high if value >= high else low if value <= low else int(value)


@CPUS
@pytest.mark.parametrize("source", WIDE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_to_integer_saturates(source: DType, cpu: str | None) -> None:
    values = np.array(float_edges(), source.name)
    for target, out in zip(INTEGERS, casts(source, INTEGERS, values, cpu), strict=True):
        assert out.tolist() == [saturated(float(x), target) for x in values], target


@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer_wraps(source: DType) -> None:
    values = np.array(integer_edges(source), source.name)
    for target, out in zip(INTEGERS, casts(source, INTEGERS, values), strict=True):
        np.testing.assert_array_equal(out, values.astype(target.name))


@CPUS
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_integer_to_float_rounds_once(source: DType, cpu: str | None) -> None:
    values = np.array(integer_edges(source), source.name)
    targets = (*WIDE, specs.Float16)
    *outs, bfloats = casts(source, (*targets, specs.BFloat16), values, cpu)
    for target, out in zip(targets, outs, strict=True):
        np.testing.assert_array_equal(out, values.astype(target.name))
    assert bfloats.tolist() == [nearest_bfloat16(Fraction(int(x))) for x in values]


def nearest_bfloat16(value: Fraction) -> int:
    """The nearest bfloat16 of a rational number, ties to even, by search."""
    bits = 0x8000 if value < 0 else 0
    magnitude = abs(value)
    low, high = 0, 0x7F80

    def worth(b: int) -> Fraction:
        if b == 0x7F80:
            return Fraction(2) ** 128
        exponent, mantissa = b >> 7, b & 0x7F
        if exponent == 0:
            return Fraction(mantissa) * Fraction(2) ** -133
        return Fraction(128 + mantissa) * Fraction(2) ** (exponent - 134)

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if worth(middle) <= magnitude else (low, middle)
    if magnitude >= worth(high):
        return bits | high
    down, up = magnitude - worth(low), worth(high) - magnitude
    nearer_up = up < down or (up == down and low % 2 == 1)
    return bits | (high if nearer_up else low)


def test_bool_casts() -> None:
    truth = np.array([0, 1, 2], np.uint8)
    targets = (*INTEGERS, *WIDE, specs.Float16)
    for target, out in zip(targets, casts(specs.Boolean, targets, truth), strict=True):
        assert out.tolist() == [0, 1, 1], target
    for source in (*WIDE, specs.Float16):
        values = np.array([0.0, -0.0, 1.0, math.nan, math.inf, 6e-8], source.name)
        assert cast(source, specs.Boolean, values).tolist() == [0, 0, 1, 1, 1, 1]
    for source in INTEGERS:
        values = np.array([0, 1, source.range[0] or 9, source.range[1]], source.name)
        assert cast(source, specs.Boolean, values).tolist() == [0, 1, 1, 1]


@CPUS
def test_every_float16_widens(cpu: str | None) -> None:
    values = ALL_HALVES.view(np.float16)
    for target, out in zip(WIDE, casts(specs.Float16, WIDE, values, cpu), strict=True):
        np.testing.assert_array_equal(out, values.astype(target.name))
        np.testing.assert_array_equal(np.signbit(out), np.signbit(values))


@CPUS
def test_every_bfloat16_widens(cpu: str | None) -> None:
    out = cast(specs.BFloat16, specs.Float32, ALL_HALVES, cpu)
    np.testing.assert_array_equal(out.view(np.uint32), ALL_HALVES.astype(np.uint32) << 16)


def interesting_floats() -> Any:
    """Random bits, every float16 and bfloat16 value, the middles between them and their nearest."""
    random = np.random.default_rng(1).integers(0, 1 << 32, 500_000, np.uint32)
    halves = ALL_HALVES.view(np.float16).astype(np.float32).view(np.uint32)
    values = [random]
    for bits, middle in ((halves, 0x1000), (ALL_HALVES.astype(np.uint32) << 16, 0x8000)):
        values += [bits, bits + middle, bits + middle - 1, bits + middle + 1]
    return np.concatenate(values).view(np.float32)


@CPUS
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float32_to_float16(cpu: str | None) -> None:
    values = interesting_floats()
    out = cast(specs.Float32, specs.Float16, values, cpu)
    np.testing.assert_array_equal(out, values.astype(np.float16))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(values))


@CPUS
@pytest.mark.needs_torch
def test_float32_to_bfloat16(cpu: str | None) -> None:
    import torch

    values = interesting_floats()
    out = cast(specs.Float32, specs.BFloat16, values, cpu)
    wanted = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    nan = np.isnan(values)
    np.testing.assert_array_equal(out[~nan], wanted[~nan])
    assert np.isnan(bfloat16_values(out[nan])).all()


@CPUS
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float64_to_halves_rounds_once(cpu: str | None) -> None:
    middles = interesting_floats()[::7].astype(np.float64)
    values = np.concatenate([middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)])
    np.testing.assert_array_equal(
        cast(specs.Float64, specs.Float16, values, cpu), values.astype(np.float16)
    )
    some = np.ascontiguousarray(values[np.isfinite(values)][::997])
    signs = np.signbit(some).astype(int) << 15
    wanted = [nearest_bfloat16(Fraction(x)) | s for x, s in zip(some, signs, strict=True)]
    assert cast(specs.Float64, specs.BFloat16, some, cpu).tolist() == wanted


def tfloat32_of(values: Any) -> list[int]:
    return [bits_of("tfloat32", float(x)) for x in values]


@CPUS
def test_float32_to_tfloat32(cpu: str | None) -> None:
    values = interesting_floats()[::499]
    middles = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-137, 3 * 2.0**-137, 3.4028e38]
    values = np.concatenate([values, np.array([*middles, *(-x for x in middles)], np.float32)])
    out = cast(specs.Float32, specs.TFloat32, values, cpu)
    nan = np.isnan(values)
    assert out[~nan].view(np.uint32).tolist() == tfloat32_of(values[~nan])
    assert nan.any() and np.isnan(out[nan]).all()
    assert not (out.view(np.uint32) & 0x1FFF).any()


@CPUS
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_to_tfloat32_rounds_once(cpu: str | None) -> None:
    middles = interesting_floats()[::997].astype(np.float64)
    values = np.concatenate([middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)])
    some = np.append(values[np.isfinite(values)], [1 + 2.0**-11 + 2.0**-40, 1e300])
    out = cast(specs.Float64, specs.TFloat32, some, cpu)
    assert out.view(np.uint32).tolist() == tfloat32_of(some)
    for source in (specs.Int64, specs.Int32, specs.Uint16):
        integers = np.array(integer_edges(source), source.name)
        out = cast(source, specs.TFloat32, integers, cpu)
        # Fractions: a float cannot hold every int64.
        wanted = [Fraction(int(x)) for x in integers]
        steps = [Fraction(2) ** max(0, abs(x.numerator).bit_length() - 11) for x in wanted]
        nearest = [round(x / step) * step for x, step in zip(wanted, steps, strict=True)]
        assert [Fraction(float(x)) for x in out] == nearest


def test_from_tfloat32() -> None:
    values = np.array([0.0, -0.0, 1.5, -2.5, 2.0**100, math.inf], np.float32)
    values = np.append(values, np.float32(1 + 2.0**-11 + 2.0**-20))
    for target in (specs.Float32, specs.Float64, specs.Float16, specs.Int8, specs.Boolean):
        out = cast(specs.TFloat32, target, values)
        read = np.array([*values[:-1], 1 + 2.0**-10], np.float32)  # a load rounds
        np.testing.assert_array_equal(out, cast(specs.Float32, target, read))


@given(st.floats(allow_nan=False))
@settings(max_examples=200, deadline=None)
def test_tfloat32_constants_round_once(value: float) -> None:
    found = np.float32(tfloat32_value(value)).view(np.uint32)
    assert int(found) == bits_of("tfloat32", value)


@given(st.floats(allow_nan=False))
@settings(max_examples=200, deadline=None)
def test_constants_round_once(value: float) -> None:
    with np.errstate(all="ignore"):
        assert float16_bits(value) == np.float64(value).astype(np.float16).view(np.uint16)
    exact = Fraction(value) if math.isfinite(value) else Fraction(2) ** 200
    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    assert bfloat16_bits(value) == nearest_bfloat16(abs(exact)) | sign


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_between_halves() -> None:
    values = ALL_HALVES.view(np.float16)
    out = bfloat16_values(cast(specs.Float16, specs.BFloat16, values))
    exact = values.astype(np.float32)
    inside = np.isfinite(exact)
    assert (np.abs(out[inside] - exact[inside]) <= np.abs(exact[inside]) * 2.0**-8).all()
    back = cast(specs.BFloat16, specs.Float16, ALL_HALVES)
    np.testing.assert_array_equal(back, bfloat16_values(ALL_HALVES).astype(np.float16))


def test_bitcast_keeps_bits() -> None:
    values = np.array([0.0, -1.5, math.inf, math.nan], np.float32)
    program = elementwise(lambda b, x: b.bitcast(specs.Uint32, x), [specs.Float32], specs.Uint32)
    out = np.zeros(4, np.uint32)
    compile_program(program)(values, out, 4)
    np.testing.assert_array_equal(out, values.view(np.uint32))
