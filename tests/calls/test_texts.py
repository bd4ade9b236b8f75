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


def test_texts_are_searched_as_in_python() -> None:
    def host(a, b):
        own = fe.call("ferrule.test.texts.same", a, result=str)
        ends = a.startswith(b), own.endswith(b), a.startswith("ab"), a.endswith("")
        return ends, b in a, b not in own, "x" in a, a in ("ab", "", b), own not in ("ab", "x")

    def python(a: str, b: str) -> Any:
        ends = a.startswith(b), a.endswith(b), a.startswith("ab"), a.endswith("")
        return ends, b in a, b not in a, "x" in a, a in ("ab", "", b), a not in ("ab", "x")

    fe.register_global_func("ferrule.test.texts.same", lambda x: x, override=True)
    function = compiled(host, "a", "b")
    for a in (*TEXTS, "abab", "xab", "aab", "x", "gr\xfc\xdfe x ab"):
        for b in (*TEXTS, "abab", "ab", "\xfc"):
            assert function(a, b) == python(a, b)


def test_bytes_are_searched_too() -> None:
    def host(a):
        return b"\0b" in a, a.startswith(b"a\0"), a.endswith(b"\0")

    assert [compiled(host, b"a")(x) for x in (b"a\0b", b"a\0", b"")] == [
        (True, True, False), (False, True, True), (False, False, False),
    ]  # fmt: skip


def test_dtypes_and_devices_are_looked_for_among_several() -> None:
    def host(t, d):
        return t in (fe.Float16, "float32"), t not in [fe.Int8], d in ("cpu", "cuda:1")

    function = compiled(host, params.DataType("t"), params.Device("d"))
    assert function(tvm_ffi.dtype("float32"), tvm_ffi.device("cuda:1")) == (True, True, True)
    assert function(tvm_ffi.dtype("int8"), tvm_ffi.device("cuda:0")) == (False, False, False)


def test_the_type_and_index_of_a_device_parameter_are_read() -> None:
    def host(d):
        if d.type in ("cpu", "cuda"):
            return d.type, d.index
        return "other" if d.type == "rocm" else "", fe.Int32(len(d.type))

    function = compiled(host, params.Device("d"))
    names = ("cpu", "cuda:3", "rocm:1", "metal")
    found = [function(tvm_ffi.device(name)) for name in names]
    assert found == [("cpu", 0), ("cuda", 3), ("other", 4), ("", 5)]


def test_texts_dtypes_and_devices_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def host(t, d, s, b, a):
        fe.printf("{} {} [{:>7}] [{:<7}] [%]", t, d, s, s)
        fe.printf("%s|%7s|%-7s|%d", s, t, b, 3)
        fe.printf(s, (b, a.device), a.dtype, end="")

    examples = params.DataType("t"), params.Device("d"), "s", b"b", vector()
    function, array = compiled(host, *examples), np.zeros(1, np.float32)
    function(tvm_ffi.dtype("int8x4"), tvm_ffi.device("cuda:3"), "%s", b"bytes", array)
    function(tvm_ffi.dtype("float16"), tvm_ffi.device("cpu"), "x" * 100, b"", array)
    long = "x" * 100
    assert capfd.readouterr().out == (
        "int8x4 cuda:3 [     %s] [%s     ] [%]\n%s| int8x4|bytes  |3\n%s (bytes, cpu:0) float32"
        f"float16 cpu:0 [{long}] [{long}] [%]\n{long}|float16|       |3\n{long} (, cpu:0) float32"
    )


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda a: a + "x", "the string a is an operand of +"),
        (lambda a: a.upper(), "the string a has no attribute 'upper'"),
        (lambda a: 3 in a, "3 (int) is looked for in the string a"),
        (lambda a: fe.printf("{:.3}", a), "the string a is printed as %.3s"),
        (lambda a: fe.printf("%d", a), "the string a is printed as %d"),
    ],
)
def test_what_is_not_made_of_strings_is_a_compile_error(expression: Any, message: str) -> None:
    def host(a):
        return expression(a)

    with pytest.raises(fe.CompileError) as caught:
        compiled(host, "a")
    assert message in str(caught.value)
