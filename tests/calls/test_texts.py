"""Strings, bytes, dtypes and devices as parameters: compared, measured, asked, handed back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
TEXTS = [
    "",
    "a",
    "x" * 300,
    "a\0b",
    "mean",
    "means",
    "seven77",
    "eight888",
    "gr\xfc\xdfe",
    "\u4f60\u597d",
]


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def which(mode) -> fe.Int32:
    if mode == "sum":
        return 1
    if mode != "mean" and mode != "gr\xfc\xdfe":
        return 0
    return 2


def test_a_string_is_compared_with_constants() -> None:
    function = compiled(which, "s")
    assert [function(text) for text in ("sum", "mean", "gr\xfc\xdfe", "sums", "su", "")] == [
        1,
        2,
        2,
        0,
        0,
        0,
    ]


def test_strings_are_compared_with_each_other() -> None:
    def same(a, b):
        return a == b, a != b

    function = compiled(same, "s", "s")
    for a in TEXTS:
        for b in TEXTS:
            assert function(a, str(b)) == (a == b, a != b)


def test_bytes_are_compared_whole() -> None:
    def same(a, b):
        return a == b, a == b"x\0y"

    function = compiled(same, b"", b"")
    for a in (b"", b"x", b"x\0y", b"x\0z", b"x\0y" * 50):
        for b in (b"", b"x\0y", b"x\0y" * 50):
            assert function(a, b) == (a == b, a == b"x\0y")


def test_length_and_truth_are_those_of_python() -> None:
    def about(text, data):
        full = 1 if text else 0
        return len(text), len(data), full, not data

    function = compiled(about, "s", b"")
    for text in TEXTS:
        data = text.encode()
        assert function(text, data) == (len(text), len(data), int(bool(text)), not data)


def test_a_string_goes_back_as_it_came() -> None:
    def choose(a, b, first: fe.Boolean):
        if first and a:
            return a
        return b

    function = compiled(choose, "s", "s", True)
    assert function("left \xfc", "right", True) == "left \xfc"
    assert (function("left", "right", False), function("", "right", True)) == ("right", "right")


def test_a_dtype_is_compared() -> None:
    def code(dtype, other):
        if dtype == fe.Float16:
            return 1
        if "bfloat16" == dtype:
            return 2
        return 3 if dtype == other else 4

    function = compiled(code, params.DataType("dtype"), params.DataType("other"))
    found = [function(name, "int8") for name in ("float16", "bfloat16", "int8", "float32")]
    assert found == [1, 2, 3, 4]


def test_a_device_is_compared_by_type_or_as_a_whole() -> None:
    def code(device, other):
        if device == "cuda:1":
            return 1
        if device == "cuda":
            return 2
        return 3 if device != other else 4

    function = compiled(code, params.Device("device"), params.Device("other"))
    devices = [tvm_ffi.device(name) for name in ("cuda:1", "cuda:0", "cpu:0")]
    assert [function(device, devices[0]) for device in devices] == [1, 2, 3]
    assert function(devices[2], tvm_ffi.device("cpu")) == 4


def test_the_dtype_of_a_tensor_is_compared_at_compile_time() -> None:
    def width(a):
        return 16 if fe.const_expr(a.dtype == fe.Float16) else 32

    assert compiled(width, vector(fe.Float16))(np.zeros(1, np.float16)) == 16
    assert compiled(width, vector(fe.Float32))(np.zeros(1, np.float32)) == 32


@pytest.mark.parametrize(
    ("example", "wanted", "message"),
    [
        ("s", 5, "the string x is compared with 5 (int)"),
        ("s", b"s", "the string x is compared with"),
        (b"s", "s", "the bytes x is compared with"),
        (params.DataType("d"), "float17", "'float17' is no dtype"),
        (params.DataType("d"), 3, "the datatype x is compared with 3"),
        (params.Device("d"), "cdua", "'cdua' is no device"),
        (params.Device("d"), "cuda:x", "'cuda:x' is no device"),
    ],
)
def test_what_cannot_be_equal_is_a_compile_error(example: Any, wanted: Any, message: str) -> None:
    def same(x):
        return x == wanted

    assert message in wrong(same, example)


def test_an_order_of_strings_is_a_compile_error() -> None:
    def before(a, b):
        return a < b

    assert "expected: == or !=" in wrong(before, "a", "b")
