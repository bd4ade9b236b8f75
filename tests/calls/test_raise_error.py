"""`fe.raise_error`, and what messages of errors show of a call's values."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def positive(a, n: fe.Int32):
    if n <= 0:
        fe.raise_error("ValueError", "n must be positive, but it is {} of {}", n, a.shape)
    a[0] = n


def test_the_error_has_its_class_its_message_and_its_line() -> None:
    function, a = compiled(positive, vector(), 1), np.zeros(3, np.float32)
    with pytest.raises(ValueError, match=r"^n must be positive, but it is -2 of \(3,\)$") as caught:
        function(a, -2)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.line) == (
        "positive",
        'fe.raise_error("ValueError", "n must be positive, but it is {} of {}", n, a.shape)',
    )
    assert not a.any()
    function(a, 2)
    assert a[0] == 2


@pytest.mark.parametrize(
    ("dtype", "value", "shown"),
    [
        (fe.Int8, -128, "-128"),
        (fe.Uint8, 255, "255"),
        (fe.Int64, -(2**63), "-9223372036854775808"),
        (fe.Uint64, 2**63 - 1, "9223372036854775807"),
        (fe.Boolean, True, "True"),
        (fe.Boolean, False, "False"),
        (fe.Float32, 0.1, "0.1"),
        (fe.Float64, -2.5e300, "-2.5e+300"),
        (fe.Float16, 1.5, "1.5"),
        (fe.Float64, float("nan"), "nan"),
    ],
)
def test_every_kind_of_number_is_shown(dtype: Any, value: Any, shown: str) -> None:
    def show(x, now: fe.Boolean):
        if now:
            fe.raise_error("ValueError", "{{{}}}", x)

    with pytest.raises(ValueError) as caught:
        compiled(show, dtype, True)(value, True)
    assert str(caught.value) == f"{{{shown}}}"


def test_an_unsigned_number_beyond_the_signed_ones_is_shown() -> None:
    def show(n: fe.Int32):
        x = fe.Uint64(0) - fe.Uint64(n)
        if n > 0:
            fe.raise_error("ValueError", "{}", x)

    with pytest.raises(ValueError, match=f"^{2**64 - 5}$"):
        compiled(show, fe.Int32)(5)


TEXTS = ["", "short", "exactly 8", "long " * 100, "gr\xfc\xdf \u4f60\u597d {} %s"]


@pytest.mark.parametrize("text", TEXTS)
def test_strings_are_shown_whole(text: str) -> None:
    def show(s, now: fe.Boolean):
        if now:
            fe.raise_error("KeyError", "<{}>", s)
        assert now, f"no: {s}"

    function = compiled(show, "s", True)
    with pytest.raises(KeyError) as caught:
        function(text, True)
    assert caught.value.args == (f"<{text}>",)
    with pytest.raises(AssertionError) as failed:
        function(text, False)
    assert failed.value.args == (f"no: {text}",)


def test_bytes_dtypes_and_devices_are_shown() -> None:
    def show(b, dtype, device, now: fe.Boolean):
        if now:
            fe.raise_error("TypeError", "{} {} {} {}", b, dtype, device, (fe.Float16, "x"))

    function = compiled(show, b"", params.DataType("d"), params.Device("e"), True)
    with pytest.raises(TypeError) as caught:
        function(b"plain", "bfloat16", tvm_ffi.device("cuda:3"), True)
    assert str(caught.value) == "plain bfloat16 cuda:3 (Float16, 'x')"


def test_a_class_that_nobody_registered_is_a_runtime_error() -> None:
    def show(n: fe.Int32):
        if n > 0:
            fe.raise_error("NoSuchClassOfErrors", "{}", n)

    with pytest.raises(RuntimeError, match="^1$"):
        compiled(show, 1)(1)


def test_a_class_of_python_is_taken_for_its_name() -> None:
    def show(n: fe.Int32):
        if n > 0:
            fe.raise_error(IndexError, "{}", n)

    with pytest.raises(IndexError, match="^1$"):
        compiled(show, 1)(1)


@fe.kernel
def checking(a):
    i = fe.arch.thread_idx()[0]
    if a[i] > 0.5:
        fe.raise_error("ValueError", "a[{}] = {}", i, a[i])


def test_a_kernel_names_the_thread() -> None:
    def show(a):
        checking(a).launch(grid=1, block=4)

    a = np.array([0, 0, 0.75, 0], np.float32)
    with pytest.raises(ValueError) as caught:
        compiled(show, vector())(a)
    assert str(caught.value) == "a[2] = 0.75 in block (0, 0, 0), thread (2, 0, 0)"


def test_a_helper_may_raise() -> None:
    def check(n, least):
        if n < least:
            fe.raise_error("ValueError", "{} < {}", n, least)
        return n

    def show(n: fe.Int32) -> fe.Int32:
        return check(n, 3) + check(n, 5)

    function = compiled(show, 1)
    assert function(6) == 12
    with pytest.raises(ValueError, match="^4 < 5$"):
        function(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ValueError",), "raise_error takes the class of the error, a text"),
        ((7, "x"), "the class of raise_error's error is 7"),
        (("", "x"), "the class of raise_error's error is ''"),
        (("ValueError", "{}"), "has 1 fields, but 0 values are given"),
        (("ValueError", "x", 1), "has 0 fields, but 1 values are given"),
        (("ValueError", "{:d}", 1), "has a field with a name or format"),
        (("ValueError", "{", 1), "the text of raise_error: "),
    ],
)
def test_wrong_arguments_are_compile_errors(arguments: Any, message: str) -> None:
    def show(n: fe.Int32):
        if n > 0:
            fe.raise_error(*arguments)

    assert message in wrong(show, 1)


def test_what_cannot_be_shown_is_a_compile_error() -> None:
    def show(a, n: fe.Int32):
        if n > 0:
            fe.raise_error("ValueError", "{}", a)

    assert "the tensor a cannot be shown in an error's message" in wrong(show, vector(), 1)


def test_an_error_in_every_call_is_a_compile_error() -> None:
    def show(n: fe.Int32):
        fe.raise_error("ValueError", "always")

    assert "the function raises ValueError in every call: always" in wrong(show, 1)
