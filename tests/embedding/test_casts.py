"""Numbers that a kernel takes in another type: rounded once, to nearest, ties to even."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest
from cuda_device import FakeCuda
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule import compiler
from ferrule.compiler import conventions
from ferrule.compiler.conventions import CudaLaunch, Struct, cast
from ferrule.specs import Scalar, Signature

FORMATS = {"float32": (24, 128, "<f"), "bfloat16": (8, 128, "<f"), "float16": (11, 16, "<e")}
"""Bits of the significand, the first exponent that is too large, and how Python packs it."""
PTX = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .b32 a, .param .b16 b, .param .b16 c) { ret; }
"""


def nearest(number: int, name: str) -> bytes:
    """The bytes of the float that is nearest to a number, by exact arithmetic."""
    digits, limit, code = FORMATS[name]
    step = 1 << max(0, abs(number).bit_length() - digits)
    rounded = round(Fraction(abs(number), step)) * step
    value = float(rounded) if rounded < 1 << limit else float("inf")
    packed = struct.pack(code, -value if number < 0 else value)
    return packed[2:] if name == "bfloat16" else packed


def converted(dtype: str) -> fe.Function:
    """A launch with a number of this dtype as each of `FORMATS`."""
    sig = Signature("f", [Scalar("v", dtype)])
    order = ("float32", "bfloat16", "float16")
    params = [cast(sig["v"], name) for name in order]
    return compiler.build(sig, CudaLaunch(fe.DeviceCode.from_ptx(PTX), "k", params, 1, 1))


@pytest.fixture
def signed(fake_cuda: FakeCuda) -> fe.Function:
    return converted("int64")


@pytest.fixture
def unsigned(fake_cuda: FakeCuda) -> fe.Function:
    return converted("uint64")


# Near a power of two, where ties and what is lost of them are.
NEAR = st.builds(
    lambda power, half, by: (1 << power) + (half << max(0, power - 24)) + by,
    st.integers(0, 62),
    st.integers(0, 3),
    st.integers(-2, 2),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=NEAR | st.integers(-(1 << 63), (1 << 63) - 1))
@example(number=(1 << 60) + (1 << 36) + 1)
@example(number=-((1 << 60) + (1 << 52) + 1))
@example(number=65519)
@example(number=65520)
def test_an_integer_becomes_the_nearest_float(
    fake_cuda: FakeCuda, signed: fe.Function, unsigned: fe.Function, number: int
) -> None:
    expected = tuple(nearest(number, name) for name in ("float32", "bfloat16", "float16"))
    fake_cuda.clear()
    signed(number)
    assert fake_cuda.launches()[0].parameters == expected
    if number >= 0:
        unsigned(number)
        assert fake_cuda.launches()[1].parameters == expected


@pytest.mark.needs_wide_ints
def test_an_unsigned_integer_of_all_bits_is_rounded_once(
    fake_cuda: FakeCuda, unsigned: fe.Function
) -> None:
    for number in ((1 << 64) - 1, (1 << 63) + (1 << 39) + 1, (1 << 63) + (1 << 39)):
        fake_cuda.clear()
        unsigned(number)
        assert fake_cuda.launches()[0].parameters[0] == nearest(number, "float32")


def test_what_cannot_be_is_refused_when_it_is_written() -> None:
    with pytest.raises(ValueError, match="a power of two up to 4096, but got 3"):
        Struct([cast(1, "int8")], align=3)
    with pytest.raises(ValueError, match=r"parameter #0 of k does not fit 64 bits: 9223372036854"):
        CudaLaunch(fe.DeviceCode.from_ptx(PTX), "k", [1 << 63], 1, 1)
    with pytest.raises(TypeError, match=r"must be a parameter, .* but got .*3"):
        Struct([np.int64(3), conventions.NULL])
