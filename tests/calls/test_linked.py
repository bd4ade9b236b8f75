"""Calls of compiled functions: their code becomes a part of the caller's."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.specs import params

HEAP = "a string of more than seven bytes"


def vector(symbol: str = "n", dtype: Any = fe.Float32, **others: Any) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol=symbol),), **others)


def compiled(function: Any, *examples: Any, options: str = "--target cpu") -> fe.Function:
    return fe.compile(function, *examples, options=options)


def scale(a: fe.Tensor, k: fe.Float32 = 2.0):
    a[:] = a[:] * k


def both(a: fe.Tensor, b: fe.Tensor):
    for i in range(a.shape[0]):
        b[i] = b[i] + a[i]
    return a.shape[0], "done"


def positive(x: fe.Int64) -> fe.Int64:
    if x <= 0:
        fe.raise_error("ValueError", "{} is not positive", x)
    return x


SCALE = compiled(scale, vector("m"), 2.0)
BOTH = compiled(both, vector("m"), vector("m"))
POSITIVE = compiled(positive, 1)


def calls_of(function: fe.Function) -> list[str]:
    """The calls in its IR: `body` for those whose checks are proved, `wrapper` for others."""
    words = {"call_body": "body", "call linked": "wrapper", "call extern": "extern"}
    lines = function.inspect_ir().splitlines()
    return [word for line in lines for text, word in words.items() if f"= {text} " in line]


def test_what_the_types_prove_is_not_checked() -> None:
    def host(a, b):
        SCALE(a, 3)
        SCALE(k=0.5, a=b)
        SCALE(a)
        return BOTH(a, a)

    function = compiled(host, vector("n"), vector("p"))
    a, b = np.ones(3, np.float32), np.ones(4, np.float32)
    assert function(a, b) == (3, "done")
    assert (a.tolist(), b.tolist()) == ([12] * 3, [0.5] * 4)
    assert calls_of(function) == ["body"] * 4


def test_what_is_left_is_checked_by_the_wrapper() -> None:
    def host(a, b):
        return BOTH(a, b)

    function = compiled(host, vector("n"), vector("p"))
    assert calls_of(function) == ["wrapper"]
    a = np.ones(3, np.float32)
    assert function(a, a) == (3, "done")
    with pytest.raises(ValueError, match=r"Mismatched b.shape\[0\] on argument #1 .*both\(a: Tens"):
        function(a, np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("inner", "given", "way"),
    [
        (fe.Int32, 1, "body"),
        (fe.Int64, 1, "body"),
        (fe.Int32, fe.Int64, "wrapper"),
        (fe.Int64, fe.Int32, "body"),
        (fe.Uint8, fe.Uint16, "wrapper"),
        (fe.Float32, fe.Float64, "body"),
        (fe.Float64, fe.Float16, "body"),
        (fe.Float32, fe.Int32, "wrapper"),
        (fe.Boolean, True, "body"),
        (fe.Float16, 2.5, "body"),
    ],
)
def test_numbers_arrive_as_from_any_caller(inner: Any, given: Any, way: str) -> None:
    def callee(x: inner):
        return x

    function = compiled(callee, inner)
    if isinstance(given, (int, float)):

        def constant():
            return function(given)

        host, value, arguments = compiled(constant), given, ()
    else:

        def run_time(x: given):
            return function(x)

        host, value = compiled(run_time, given), 77
        arguments = (value,)
    assert calls_of(host) == [way]
    assert host(*arguments) == function(value) == value
    assert type(host(*arguments)) is type(function(value))


def test_a_number_out_of_range_is_refused_as_from_any_caller() -> None:
    def callee(x: fe.Int8):
        return x

    function = compiled(callee, 1)

    def host(x: fe.Int32):
        return function(x)

    with pytest.raises(ValueError, match="int8 range") as plain:
        function(300)
    with pytest.raises(ValueError, match="int8 range") as caught:
        compiled(host, 1)(300)
    assert str(caught.value) == str(plain.value)


def test_divisibility_widths_and_alignment_are_proved_or_checked() -> None:
    def nothing(a: fe.Tensor):
        a[0] = 1

    n = fe.sym_int(symbol="m", divisibility=4)
    even = compiled(nothing, fe.make_fake_compact_tensor(fe.Float32, (n,), assumed_align=16))

    def host(a):
        even(a)

    four = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(divisibility=8),), assumed_align=32)
    assert calls_of(compiled(host, four)) == ["body"]
    function = compiled(host, vector())
    assert calls_of(function) == ["wrapper"]
    with pytest.raises(ValueError, match="divisible by 4"):
        function(np.zeros(3, np.float32))


def test_an_error_inside_has_its_class_its_message_and_its_place() -> None:
    def host(x: fe.Int64):
        return POSITIVE(x) + POSITIVE(x - 1)

    function = compiled(host, 1)
    assert function(2) == 3
    for x in (0, 1):
        with pytest.raises(ValueError, match=r"^0 is not positive$") as caught:
            function(x)
        frame = caught.traceback[-1]
        assert (frame.name, Path(frame.path).name) == ("positive", "test_linked.py")


def test_new_tensors_of_the_callee_belong_to_the_caller() -> None:
    def table(a: fe.Tensor, k: fe.Int32):
        return fe.zeros((a.shape[0], k), fe.Float32), k

    made = compiled(table, vector("m"), 1)

    def host(a, k: fe.Int32):
        for i in range(k):
            t, width = made(a, i + 1)
            t[0, i] = 5
            if i == 2:
                return t, t.shape[1], width
        return fe.zeros((a.shape[0], k + 5), fe.Float32), k, k

    with pytest.raises(fe.CompileError):  # shapes of results that differ
        compiled(host, vector(), 1)

    def only(a, k: fe.Int32):
        t, width = made(a, k)
        made(a, k)
        t[0, 1] = 5
        return t, t.shape[1], width

    function = compiled(only, vector(), 1)
    assert calls_of(function) == ["body", "body"]
    t, *sizes = function(np.zeros(2, np.float32), 3)
    assert (np.from_dlpack(t).tolist(), sizes) == ([[0, 5, 0], [0, 0, 0]], [3, 3])
    with pytest.raises(ValueError, match="at least 0, but got -1"):
        function(np.zeros(2, np.float32), -1)


def test_objects_and_texts_go_through_unharmed() -> None:
    def callee(s, f, b):
        return f, s, b

    through = compiled(callee, "s", params.Function("f"), b"b")

    def host(s, f, b):
        g, text, data = through(s, f, b)
        h, other, _ = through("constant", g, b"")
        return h(len(text), result=fe.Int32), other, text, data, h

    function = compiled(host, "s", params.Function("f"), b"b")
    assert calls_of(function) == ["body", "body"]
    callback = tvm_ffi.convert(lambda n: n + 1)
    count = ctypes.c_uint32.from_address(callback.__chandle__())
    before = count.value
    for _ in range(50):
        number, *texts, found = function(HEAP, callback, b"a\0b")
        assert (number, texts) == (len(HEAP) + 1, ["constant", HEAP, b"a\0b"])
        del found
    gc.collect()
    assert count.value == before


def test_texts_of_callees_of_callees_live_until_they_are_returned() -> None:
    name = "ferrule.test.linked.text"

    def inner(k: fe.Int32):
        return fe.call(name, k, result=str)

    first = compiled(inner, 1)

    def middle(k: fe.Int32):
        return first(k), first(k + 1)

    second = compiled(middle, 1)

    def host(k: fe.Int32):
        for i in range(k):
            a, b = second(i)
            if len(a) + len(b) > 30:
                return b, a
        return first(k), "none"

    tvm_ffi.register_global_func(name, lambda k: "x" * (5 * k))
    try:
        function = compiled(host, 1)
        assert function(9) == ("x" * 20, "x" * 15)
        assert function(2) == ("x" * 10, "none")
    finally:
        tvm_ffi.registry.remove_global_func(name)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (lambda a: SCALE(), "scale(): missing the argument 'a'"),
        (lambda a: SCALE(a, 1, 2), "scale(): too many positional arguments"),
        (lambda a: SCALE(a, j=2), "scale(): got an unexpected keyword argument 'j'"),
        (lambda a: SCALE(3), "the argument 'a' of scale is the constant 3"),
        (lambda a: SCALE(a, "x"), "the argument 'k' of scale is"),
        (lambda a: POSITIVE(a[0]), "the argument 'x' of positive is a run-time float32"),
        (lambda a: POSITIVE(2**70), "the argument 'x' of positive is"),
        (lambda a: POSITIVE(1.5), "the argument 'x' of positive is"),
        (lambda a: SCALE(a[None, 0]), "the argument 'a' of scale is"),
    ],
)
def test_what_is_known_to_be_wrong_is_a_compile_error(host: Any, message: str) -> None:
    def function(a):
        host(a)

    with pytest.raises(fe.CompileError) as caught:
        compiled(function, vector())
    assert message in str(caught.value)


def test_another_dtype_is_a_compile_error() -> None:
    def host(a):
        SCALE(a)

    with pytest.raises(fe.CompileError, match="the argument 'a' of scale is"):
        compiled(host, vector(dtype=fe.Float64))


def test_calls_stand_in_host_functions() -> None:
    @fe.kernel
    def kernel(a):
        a[0] = POSITIVE(1)

    def host(a):
        kernel(a).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError, match="called in a kernel"):
        compiled(host, vector(dtype=fe.Int64))


def test_targets_must_agree() -> None:
    def host(a):
        SCALE(a)

    with pytest.raises(fe.CompileError, match="was compiled for cpu, but .* for cuda"):
        compiled(host, vector(), options="--target cuda --gpu-arch sm_90a")


def test_what_is_only_read_may_be_read_only() -> None:
    def total(a: fe.Tensor):
        return a[0] + a[3]

    inner = compiled(total, vector("m"))

    def host(a):
        return inner(a)

    a = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    assert compiled(host, vector())(a) == 3


@pytest.mark.parametrize("suffix", [".o", ".s", ".ll", ".bc"])
def test_exported_code_needs_nothing_of_the_callee(tmp_path: Path, suffix: str) -> None:
    def host(a, b):
        SCALE(a)
        return BOTH(a, b)

    file = tmp_path / f"host{suffix}"
    compiled(host, vector("n"), vector("p")).export_to_c(file)
    assert file.stat().st_size
    if suffix == ".o":
        symbols = file.read_bytes()
        assert b"__tvm_ffi_host\0" in symbols
        assert b"__tvm_ffi_both" not in symbols
        a = np.ones(2, np.float32)
        assert fe.runtime.load_module(file).host(a, a) == (2, "done")


def test_a_function_that_was_loaded_is_called_as_an_extern_one(tmp_path: Path) -> None:
    file = tmp_path / "both.o"
    BOTH.export_to_c(file)

    def caller(loaded: fe.Function) -> fe.Function:
        def host(a, b):
            return loaded(a, b)

        return compiled(host, vector("n"), vector("p"))

    function, a = caller(fe.runtime.load_module(file).both), np.ones(2, np.float32)
    gc.collect()
    assert calls_of(function) == ["extern"]
    assert function(a, a) == (2, "done")
    with pytest.raises(ValueError, match="Mismatched b.shape"):
        function(a, np.ones(3, np.float32))


def test_a_call_may_be_long_where_the_callee_is() -> None:
    def host(x: fe.Int64):
        return POSITIVE(x)

    def long(a):
        SCALE(a)

    assert not compiled(host, 1).release_gil
    assert compiled(long, vector()).release_gil
