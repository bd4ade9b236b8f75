"""`fe.raise_error`, and what messages of errors show of a call's values."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from lowered import vector

import ferrule as fe

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


@pytest.mark.parametrize("text", ["", "short", "exactly 8", "long " * 100, "gr\xfc\xdf \u4f60\u597d {} %s"])
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
