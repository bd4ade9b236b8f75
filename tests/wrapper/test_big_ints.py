"""Ints of more than 64 bits: of the right kind, so a ValueError wherever an int can stand."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi

from ferrule import compiler
from ferrule.compiler.conventions import CFunction
from ferrule.runtime import Function
from ferrule.runtime.foreign import has_big_ints
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
S = Scalar("x", "int32")

CASES: list[tuple[Param, Any, str]] = [
    (Scalar("x", "bool"), LARGE, f"Invalid value on .*0 or 1, but got {ABOVE}"),
    (S, LARGE, f"Out of bound value on .*{INT32}, but got {ABOVE}"),
    (S, SMALL, f"Out of bound value on .*{INT32}, but got {BELOW}"),
    (Scalar("x", "int64"), 1 << 63, f"Out of bound value on .*{INT64}, but got {ABOVE}"),
    (Scalar("x", "uint64"), LARGE, "uint64 range .*, but got an int above 18446744073709551615"),
    (Scalar("x", "uint64"), SMALL, f"uint64 range .*, but got {BELOW}"),
    (Scalar("x", "float32"), 1 << 63, f"Out of bound value on .*{INT64}, but got {ABOVE}"),
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


def test_an_int_and_a_uint64_cannot_be_told_apart() -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        Union("x", (S, Scalar("x", "uint64")))
