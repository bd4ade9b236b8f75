"""Ints outside of int64, which are objects of tvm-ffi: as arguments, results and any values."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import ferrule as fe
from ferrule.specs import params

LARGE = [2**63, 2**63 + 1, 2**64 - 1]
NUMBERS = [0, 1, 2**63 - 1, *LARGE]
TOO_LARGE = [2**64, -(2**63) - 1, 10**30]


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cpu")


def calling(wanted: Any) -> fe.Function:
    @fe.jit
    def call(f):
        return fe.call(f, result=wanted)

    return compiled(call, params.Function("f"))


@fe.jit
def optional(t: fe.Uint64 | None):
    return t


@fe.jit
def union(t: fe.Uint64 | str):
    return t


@fe.jit
def any_value(t: fe.Uint64, n: fe.Int32) -> Any:
    if n > 0:
        return t
    return "s"


@fe.jit
def array(t: fe.Uint64):
    return fe.Array(t, 1)


@fe.jit
def tell(f, t: fe.Uint64):
    f(t, t)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_uint64_goes_out_whole(number: int) -> None:
    assert compiled(optional, 1)(number) == number
    assert compiled(union, 1)(number) == number
    assert compiled(any_value, 1, 1)(number, 1) == number
    assert list(compiled(array, 1)(number)) == [number, 1]
    told: list[int] = []
    compiled(tell, params.Function("f"), 1)(lambda *given: told.extend(given), number)
    assert told == [number, number]


def test_a_uint64_that_goes_out_is_released() -> None:
    told = compiled(tell, params.Function("f"), 1)

    def nothing(*_: int) -> None: ...

    told(nothing, 2**64 - 1)
    before = sys.getallocatedblocks()
    for _ in range(2000):
        told(nothing, 2**64 - 1)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


@pytest.mark.parametrize("number", NUMBERS)
def test_a_uint64_comes_back_whole(number: int) -> None:
    assert calling(fe.Uint64)(lambda: number) == number
    assert calling((fe.Uint64, fe.Boolean))(lambda: (number, 1)) == (number, True)


@pytest.mark.parametrize("dtype", [fe.Int8, fe.Uint8, fe.Int32, fe.Uint32, fe.Int64, fe.Uint64])
def test_an_int_that_does_not_fit_is_an_overflow(dtype: Any) -> None:
    called = calling(dtype)
    smallest, largest = dtype.range
    for number in (smallest, largest):
        assert called(lambda n=number: n) == number
    for number in (smallest - 1, largest + 1, *TOO_LARGE):
        with pytest.raises(OverflowError, match="Out of bound result of the function f, expected"):
            called(lambda n=number: n)


def test_a_float_takes_the_ints_of_an_argument() -> None:
    called = calling(fe.Float64)
    assert called(lambda: 2**62) == 2.0**62
    with pytest.raises(OverflowError, match=r"expected an int in \[-2\*\*63, 2\*\*63\), but got"):
        called(lambda: 2**63)


def test_a_boolean_takes_0_and_1() -> None:
    called = calling(fe.Boolean)
    assert [called(lambda x=x: x) for x in (0, 1, True, False)] == [False, True, True, False]
    for number, shown in ((2, "2"), (-1, "-1"), (2**63, "an int of more than 64 bits")):
        with pytest.raises(ValueError, match=f"expected True, False, 0 or 1, but got {shown}$"):
            called(lambda n=number: n)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        ("s", "str"),
        ("a text of more than seven bytes", "str"),
        (b"s", "bytes"),
        (b"bytes of more than seven", "bytes"),
        ((1, 2), "tuple or list"),
        ({"a": 1}, "dict"),
    ],
)
def test_messages_have_pythons_names(value: Any, shown: str) -> None:
    for wanted, kind in ((fe.Int32, "int"), (fe.Uint64, "int"), (fe.Boolean, "bool")):
        with pytest.raises(TypeError, match=f"expected {kind}, but got {shown}$"):
            calling(wanted)(lambda: value)


@fe.jit
def what(x):
    if isinstance(x, str):
        return "str"
    return "int" if isinstance(x, (int, str)) else "other"


@fe.jit
def doubled(x):
    if isinstance(x, int):
        return x + x
    return fe.Int64(-1)


@fe.jit
def narrow(x):
    return fe.as_type(x, fe.Int8)


@fe.jit
def truth(x):
    return fe.as_type(x, fe.Boolean)


def test_a_large_int_of_any_kind_is_an_int() -> None:
    asks, number = compiled(what, params.AnyValue("x")), compiled(doubled, params.AnyValue("x"))
    for value in (1, 2**63, 2**70, -(2**70)):
        assert asks(value) == "int"
    assert [asks("x"), asks(1.5), number(4), number("x")] == ["str", "other", 8, -1]
    for value in TOO_LARGE:
        with pytest.raises(OverflowError, match="Out of bound x, expected int64"):
            number(value)


def test_as_type_of_an_int_that_does_not_fit_is_an_overflow() -> None:
    called = compiled(narrow, params.AnyValue("x"))
    for value in (300, *TOO_LARGE):
        with pytest.raises(OverflowError, match="Out of bound x, expected int8"):
            called(value)
    for value in (0, 1, True):
        assert compiled(truth, params.AnyValue("x"))(value) is bool(value)
    with pytest.raises(ValueError, match="Invalid x, expected True, False, 0 or 1, but got 7"):
        compiled(truth, params.AnyValue("x"))(7)
