"""Ints of more than 64 bits: of the right kind, so a ValueError wherever an int can stand."""

from __future__ import annotations

import random
import struct
from functools import partial
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from oracle.wrapped import Wrapped
from packed_functions import NoOrigin

import ferrule as fe
from ferrule import compiler
from ferrule.compiler.conventions import CFunction
from ferrule.runtime import Function, make_function
from ferrule.runtime.values.foreign import has_big_ints
from ferrule.specs import Signature, sym_int
from ferrule.specs.params import (
    Array,
    Constant,
    Map,
    Optional,
    Param,
    Pointer,
    Scalar,
    Shape,
    Stream,
    String,
    Tensor,
    Tuple,
    Union,
)

LARGE, SMALL = 1 << 64, -(1 << 63) - 1
ABOVE, BELOW = "an int above 9223372036854775807", "an int below -9223372036854775808"
INT32 = r"int32 range \[-2147483648, 2147483647\]"
INT64 = r"int64 range \[-9223372036854775808, 9223372036854775807\]"
ADDRESS = r"address range \[0, 9223372036854775807\]"
FLOAT64 = r"float64 range \[-1.8e308, 1.8e308\]"
HUGE, TINY = "an int above 1.8e308", "an int below -1.8e308"
S, F = Scalar("x", "int32"), Scalar("x", "float64")

CASES: list[tuple[Param, Any, str]] = [
    (Scalar("x", "bool"), LARGE, f"Invalid value on .*0 or 1, but got {ABOVE}"),
    (S, LARGE, f"Out of bound value on .*{INT32}, but got {ABOVE}"),
    (S, SMALL, f"Out of bound value on .*{INT32}, but got {BELOW}"),
    (Scalar("x", "int64"), 1 << 63, f"Out of bound value on .*{INT64}, but got {ABOVE}"),
    (Scalar("x", "uint64"), LARGE, "uint64 range .*, but got an int above 18446744073709551615"),
    (Scalar("x", "uint64"), SMALL, f"uint64 range .*, but got {BELOW}"),
    (Scalar("x", "float32"), 10**400, f"Out of bound value on .*{FLOAT64}, but got {HUGE}"),
    (Scalar("x", "float64"), -(10**400), f"Out of bound value on .*{FLOAT64}, but got {TINY}"),
    (Scalar("x", "float64"), (1 << 1024) - 1, f"Out of bound value on .*{FLOAT64}, but got {HUGE}"),
    (Tuple("x", (F,)), (10**400,), rf"Out of bound value on x\[0\] .*{FLOAT64}, but got {HUGE}"),
    (Optional("x", F), 10**400, f"Out of bound value on .*{FLOAT64}, but got {HUGE}"),
    (Union("x", (F, String("x"))), 10**400, f"Out of bound value on .*{FLOAT64}, but got {HUGE}"),
    (Array("x", F), [1, 10**400], rf"Out of bound value on x\[1\] .*{FLOAT64}, but got {HUGE}"),
    (
        Array("x", F),
        tvm_ffi.Array([1 << 64]),
        rf"Out of bound value on x\[0\] .*{INT64}, .*{ABOVE}",
    ),
    (Pointer("x"), 1 << 63, f"Out of bound value on .*{ADDRESS}, but got {ABOVE}"),
    (Stream("x"), SMALL, f"Out of bound value on .*{ADDRESS}, but got {BELOW}"),
    (Constant("x", 3), LARGE, f"Mismatched constant value on .* expected 3, but got {ABOVE}"),
    (Shape("x", (sym_int(), 4)), (LARGE, 4), rf"Out of bound x\[0\] on .*{INT64}, but got {ABOVE}"),
    (Shape("x", (2, 4)), [2, SMALL], rf"Out of bound x\[1\] on .*{INT64}, but got {BELOW}"),
    (Tuple("x", (Scalar("0", "int8"),)), (LARGE,), rf"Out of bound value on x\[0\] .* {ABOVE}"),
    (Array("x", S), [1, LARGE], rf"Out of bound value on x\[1\] .* {ABOVE}"),
    (Map("x", S, None), {LARGE: 1}, rf"Out of bound value on x.keys\(\)\[0\] .* {ABOVE}"),
    (Optional("x", S), LARGE, f"Out of bound value on .*{INT32}, but got {ABOVE}"),
    (Union("x", (S, String("x"))), LARGE, f"Out of bound value on .*{INT32}, but got {ABOVE}"),
]


def build(param: Param) -> Function:
    """A function of one parameter that does nothing with it."""
    return compiler.build(Signature("f", (param,)), CFunction("getpid"))


@pytest.mark.skipif(not has_big_ints(), reason="this tvm-ffi passes ints of 64 bits alone")
@pytest.mark.parametrize(("param", "value", "message"), CASES)
def test_ints_beyond_64_bits(param: Param, value: Any, message: str) -> None:
    function = build(param)
    with pytest.raises(ValueError, match=message):
        function(value)
    with pytest.raises(ValueError, match=message):
        tvm_ffi.Function.__call__(function, value)


@pytest.mark.skipif(not has_big_ints(), reason="this tvm-ffi passes ints of 64 bits alone")
@pytest.mark.parametrize("param", [Tensor("x", (2,), "float32", device="cpu"), String("x")])
def test_where_no_int_can_stand_it_is_another_kind(param: Param) -> None:
    with pytest.raises(TypeError, match="Mismatched type .* got an int of more than 64 bits"):
        build(param)(LARGE)


def floats() -> list[int]:
    """Ints at and beside what lies in the middle of two floats, and at the ends."""
    choose = random.Random(0)
    found = [1 << 63, (1 << 64) - 1, 10**30, 10**308, (1 << 1024) - (1 << 970) - 1]
    for bits in (64, 65, 127, 128, 129, 500, 1023, 1024):
        for _ in range(40):
            odd = choose.getrandbits(54) | 1 << 53 | 1
            middle = odd << (bits - 54)
            beside = middle + choose.choice([-1, 0, 1]) * (1 << choose.randrange(bits - 54))
            found += [middle, beside, choose.getrandbits(bits) | 1 << (bits - 1)]
    return [sign * each for each in found for sign in (1, -1) if each < (1 << 1024) - (1 << 970)]


@pytest.mark.skipif(not has_big_ints(), reason="this tvm-ffi passes ints of 64 bits alone")
def test_a_float_of_an_int_is_pythons() -> None:
    wrapped = Wrapped(Signature("f", (Scalar("x", "float64"),)))
    called = make_function(
        wrapped.engine.address("__tvm_ffi_f"), wrapped.signature, NoOrigin(), owner=wrapped.engine
    )
    for number in floats():
        for call in (called, partial(tvm_ffi.Function.__call__, called)):
            wrapped.log[1] = 0
            call(number)
            (seen,) = struct.unpack("<d", struct.pack("<Q", wrapped.log[1] % (1 << 64)))
            assert seen == float(number), number


def test_a_large_int_is_a_float_in_all_places() -> None:
    number = 10**30

    def first(out: fe.Tensor, x: fe.Float64, pair: tuple[fe.Float64, int], items: fe.Array[float]):
        out[0], out[1], out[2] = x, pair[0], items[0]

    out = np.zeros(3)
    compiled = fe.compile(first, out, 1.0, (1.0, 1), [1.0], options="--target cpu")
    compiled(out, number, (number, 1), [number])
    assert out.tolist() == [1e30] * 3
    compiled(out, x=-number, pair=(-number, 1), items=[-number])
    assert out.tolist() == [-1e30] * 3


def test_an_int_and_a_uint64_cannot_be_told_apart() -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        Union("x", (S, Scalar("x", "uint64")))
