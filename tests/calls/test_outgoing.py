"""`fe.call` and functions as parameters: arguments, results, errors, lifetimes."""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
_numbers = itertools.count()


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


Register = Callable[[Any], str]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers functions under new names, for the time of a test."""
    names: list[str] = []

    def one(function: Any) -> str:
        names.append(f"ferrule.test.calls.{next(_numbers)}")
        tvm_ffi.register_global_func(names[-1], function)
        return names[-1]

    yield one
    for name in names:
        tvm_ffi.registry.remove_global_func(name)


def test_arguments_come_as_what_they_are(register: Register) -> None:
    got: list[Any] = []
    name = register(lambda *args: got.append(args))

    def host(i: fe.Int8, u: fe.Uint32, x: fe.Float32, yes: fe.Boolean, s, b, dtype, device, f):
        fe.call(name, i, u, x, yes, s, b, dtype, device, f)
        fe.call(name, None, True, 7, -2.5, "gr\xfc\xdfe", b"a\0b", fe.Float16, "", x + 1)
        fe.call(name)

    function = compiled(
        host, 1, 1, 1.0, True, "s", b"s", params.DataType("t"), params.Device("d"),
        params.Function("f"),
    )  # fmt: skip
    callback = tvm_ffi.convert(lambda: 3)
    long = "\u4f60\u597d" * 20
    function(-5, 2**32 - 1, 0.5, True, long, b"", "int8", tvm_ffi.device("cuda:2"), callback)
    first, second, third = got
    assert first[:6] == (-5, 2**32 - 1, 0.5, True, long, b"")
    assert (str(first[6]), first[7]) == ("int8", tvm_ffi.device("cuda:2"))
    assert first[8]() == 3
    assert second[:6] == (None, True, 7, -2.5, "gr\xfc\xdfe", b"a\0b")
    assert (type(second[1]), type(second[2])) == (bool, int)
    assert (str(second[6]), second[7:]) == ("float16", ("", 1.5))
    assert third == ()


def test_tuples_optionals_and_unions_come_as_what_they_are(register: Register) -> None:
    got: list[Any] = []
    name = register(lambda *args: got.append(args))

    def host(x: fe.Int32 | None, s: str | None, u: fe.Int32 | str, pair: tuple[fe.Int32, str], f):
        fe.call(name, x, s, u, pair, (x, (u, [1.5, s])))
        f({"a": pair, "b": (None,)}, ())

    examples = fe.Int32 | None, str | None, fe.Int32 | str, (1, "s"), params.Function("f")
    function, long = compiled(host, *examples), "a string that is no small one"
    callback = tvm_ffi.convert(lambda *args: got.append(args))
    function(None, long, 3, (4, "x"), callback)
    function(5, None, long, (6, long), callback)
    assert [type(x) for x in got[0][2:]] == [int, tvm_ffi.Array, tvm_ffi.Array]
    assert (got[0][:3], *map(list, got[0][3:])) == (
        (None, long, 3), [4, "x"], [None, got[0][4][1]],
    )  # fmt: skip
    assert [list(got[0][4][1])[0], list(got[0][4][1][1])] == [3, [1.5, long]]
    assert (got[2][:3], list(got[2][3]), got[2][4][0]) == ((5, None, long), [6, long], 5)
    assert (dict(got[3][0])["b"][0], len(got[3][1])) == (None, 0)


def test_what_is_made_for_a_call_is_released(register: Register) -> None:
    name = register(lambda *args: 1 / len(args[0]))

    def host(x: fe.Array[int] | None, f):
        fe.call(name, (x, (f, x)))
        fe.call(name, ())

    function = compiled(host, fe.Array[int] | None, params.Function("f"))
    items, callback = tvm_ffi.Array([1, 2]), tvm_ffi.convert(lambda: None)

    def counts() -> list[int]:
        return [ctypes.c_uint32.from_address(x.__chandle__()).value for x in (items, callback)]

    before = counts()
    for given in (items, None) * 200:
        with pytest.raises(ZeroDivisionError):
            function(given, callback)
    assert counts() == before


def test_tensors_are_read_and_written_by_the_callee(register: Register) -> None:
    def fill(a: Any, value: float) -> None:
        np.from_dlpack(a)[...] = value

    seen: list[Any] = []
    name, look = register(fill), register(lambda a: seen.append(np.from_dlpack(a).copy()))

    def host(a, x: fe.Float32):
        scratch = fe.empty((a.shape[0], 2), fe.Float32)
        fe.call(name, scratch, x)
        fe.call(look, scratch)
        for i in range(a.shape[0]):
            a[i] = scratch[i, 1] + a[i]
        fe.call(look, a)

    a = np.arange(4, dtype=np.float32)
    compiled(host, vector(), 1.0)(a, 2.0)
    assert a.tolist() == [2, 3, 4, 5]
    assert seen[0].tolist() == [[2, 2]] * 4
    assert seen[1].tolist() == a.tolist()


def test_strides_and_parts_of_a_tensor_arrive(register: Register) -> None:
    seen: list[Any] = []
    name = register(lambda a: seen.append(np.from_dlpack(a).copy()))

    def host(a):
        fe.call(name, a)
        fe.call(name, a[1, None])

    shape = (fe.sym_int(), fe.sym_int())
    strides = (fe.sym_int(), fe.sym_int())
    example = fe.make_fake_tensor(fe.Int32, shape, stride=strides)
    a = np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::3]
    compiled(host, example)(a)
    assert [each.tolist() for each in seen] == [a.tolist(), a[1].tolist()]


def test_a_read_only_array_is_not_handed_to_a_callee(register: Register) -> None:
    name = register(lambda a: None)

    def host(a):
        fe.call(name, a)

    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    with pytest.raises((ValueError, TypeError, BufferError)):
        compiled(host, vector())(a)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [(fe.Int8, -128), (fe.Uint8, 255), (fe.Int32, True), (fe.Int64, -(2**63)),
     (fe.Uint64, 2**63 - 1), (fe.Float32, 0.5), (fe.Float64, 3), (fe.Float16, -2.0),
     (fe.Boolean, False), (fe.Boolean, True)],
)  # fmt: skip
def test_a_number_comes_back(register: Register, dtype: Any, given: Any) -> None:
    name = register(lambda: given)

    def host():
        return fe.call(name, result=dtype)

    assert compiled(host)() == given


@pytest.mark.parametrize(
    ("dtype", "given", "error", "message"),
    [
        (fe.Int8, 128, OverflowError, "expected int8, but got 128"),
        (fe.Uint64, -1, OverflowError, "expected uint64, but got -1"),
        (fe.Int32, 1.0, TypeError, "expected int, but got float"),
        (fe.Int32, None, TypeError, "expected int, but got None"),
        (fe.Int32, "text", TypeError, "expected int, but got str"),
        (fe.Float32, "a longer text", TypeError, "expected float, but got str"),
        (fe.Boolean, 2, ValueError, "expected True, False, 0 or 1, but got 2"),
        (fe.Boolean, 1.0, TypeError, "expected bool, but got float"),
    ],
)
def test_a_wrong_result_is_an_error(
    register: Register, dtype: Any, given: Any, error: type[Exception], message: str
) -> None:
    name = register(lambda: given)

    def host():
        return fe.call(name, result=dtype)

    with pytest.raises(error) as caught:
        compiled(host)()
    assert str(caught.value).endswith(message)
    assert f"`{name}`" in str(caught.value)


def test_an_exception_keeps_its_class_its_message_and_its_traceback(register: Register) -> None:
    def breaks(x: int) -> None:
        raise KeyError(f"no {x}")

    name = register(breaks)

    def host(a, x: fe.Int32):
        a[0] = 1
        fe.call(name, x)
        a[1] = 1

    a = np.zeros(2, np.float32)
    with pytest.raises(KeyError) as caught:
        compiled(host, vector(), 1)(a, 7)
    assert "no 7" in str(caught.value)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "breaks" in names
    assert a.tolist() == [1, 0]


class _Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("error", [_Wordless(), ValueError("\udcff")], ids=["no text", "surrogate"])
def test_an_exception_that_tvm_ffi_cannot_read_comes_out_too(error: Exception) -> None:
    def raising(*_: Any) -> None:
        raise error

    def host(f):
        f()

    try:
        compiled(host, params.Function("f"))(raising)
    except Exception as caught:  # no error of pytest shows its text, which cannot be shown
        is_same = caught is error
    else:
        is_same = False
    assert is_same


def test_a_missing_function_is_named_until_it_is_there(register: Register) -> None:
    name = "ferrule.test.calls.later"

    def host():
        return fe.call(name, result=fe.Int32)

    function = compiled(host)
    with pytest.raises(ValueError, match="tvm-ffi has no function ferrule.test.calls.later"):
        function()
    tvm_ffi.register_global_func(name, lambda: 5)
    try:
        assert function() == 5
    finally:
        tvm_ffi.registry.remove_global_func(name)
    assert function() == 5  # it is kept from the first call on


def test_a_parameter_is_called(register: Register) -> None:
    def host(f, x: fe.Int32):
        f(x)
        return fe.call(f, x + 1, result=fe.Int32) + f(x, result=fe.Int32)

    got: list[int] = []

    def callback(x: int) -> int:
        got.append(x)
        return 10 * x

    assert compiled(host, params.Function("f"), 1)(callback, 2) == 50
    assert got == [2, 3, 2]


def test_another_compiled_function_is_called(register: Register) -> None:
    def double(a):
        a[:] = a[:] * 2

    name = register(compiled(double, vector()))

    def host(a):
        for _ in range(3):
            fe.call(name, a)

    a = np.ones(5, np.float32)
    compiled(host, vector())(a)
    assert a.tolist() == [8] * 5


def test_nothing_leaks_on_any_way(register: Register) -> None:
    calls = itertools.count()

    def callee(a: Any, text: str, f: Any) -> Any:
        if next(calls) % 2:
            raise ValueError(text)
        return "a result that is an object"

    name = register(callee)

    def host(a, text, f):
        scratch = fe.empty((a.shape[0],), fe.Float32)
        fe.call(name, a, text, f)
        fe.call(name, scratch, "a constant that is long enough", f)

    class Held:
        def __call__(self) -> None: ...

    held = Held()
    alive, f = weakref.ref(held), tvm_ffi.convert(held)
    function, a = compiled(host, vector(), "s", params.Function("f")), np.zeros(100, np.float32)
    before, count = sys.getrefcount(a), ctypes.c_uint32.from_address(f.__chandle__())
    handles = count.value
    for _ in range(50):
        with pytest.raises(ValueError):
            function(a, "a text of more than seven bytes", f)
    gc.collect()
    assert (sys.getrefcount(a), count.value) == (before, handles)
    del held, f
    gc.collect()
    assert alive() is None


def test_threads_find_the_function_together(register: Register) -> None:
    name = register(lambda x: x + 1)

    def host(x: fe.Int32):
        return fe.call(name, x, result=fe.Int32)

    function, results = compiled(host, 1), []
    gate = threading.Barrier(8)

    def work(i: int) -> None:
        gate.wait()
        results.append(function(i) - i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 8


def test_a_name_may_have_any_characters() -> None:
    name = 'ferrule.test "calls" %s \\ \xfc \u4f60'

    def host():
        return fe.call(name, result=fe.Int32)

    function = compiled(host)
    with pytest.raises(ValueError) as caught:
        function()
    assert name in str(caught.value)
    tvm_ffi.register_global_func(name, lambda: 5)
    try:
        assert function() == 5
    finally:
        tvm_ffi.registry.remove_global_func(name)


def test_a_name_that_no_bytes_stand_for_is_refused() -> None:
    def host():
        fe.call("\udcff", 1)

    with pytest.raises(fe.CompileError, match=r"the function of call is '\\udcff'"):
        compiled(host)


def test_calls_in_branches_and_loops_with_new_tensors(register: Register) -> None:
    seen: list[Any] = []
    name = register(lambda a, i, s: seen.append((np.from_dlpack(a).tolist(), i, s)))

    def host(n: fe.Int32, s):
        for i in range(n):
            t = fe.full((i + 1,), i, fe.Int32)
            if i % 2 == 1:
                fe.call(name, t, i, s)
            else:
                fe.call(name, t, -i, "even")

    compiled(host, 1, "s")(3, "odd")
    assert seen == [([0], 0, "even"), ([1, 1], 1, "odd"), ([2, 2, 2], -2, "even")]


def test_an_exported_library_calls_too(register: Register, tmp_path: Path) -> None:
    name = register(lambda x: x + 1)

    def host(x: fe.Int32):
        return fe.call(name, x, result=fe.Int32) + fe.call(name, x, result=fe.Int32)

    file = tmp_path / "host.o"
    compiled(host, 1).export_to_c(file)
    module = fe.runtime.load_module(str(file))
    assert module.host(20) == 42


def test_an_unsigned_argument_beyond_int64_arrives(register: Register) -> None:
    seen: list[int] = []
    name = register(seen.append)

    def host(n: fe.Int32):
        fe.call(name, fe.Uint64(0) - fe.Uint64(n))

    compiled(host, 1)(3)
    assert seen == [2**64 - 3]


@fe.kernel
def calling(a):
    fe.call("any.name", 1)


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {}, "call takes the name of a function"),
        (("",), {}, "the function of call is ''"),
        ((3,), {}, "the function of call is 3"),
        (("f",), {"out": 1}, "a call of tvm-ffi has no argument 'out'"),
        (("f",), {"result": 3}, "the result of a call is 3"),
        (("f",), {"result": fe.Complex64}, "the result of a call is"),
        (("f", {1, 2}), {}, "the argument 0 of the call is {1, 2}"),
        (("f", 2**63), {}, "the constant 9223372036854775808 does not fit int64"),
    ],
)
def test_wrong_calls_are_compile_errors(arguments: Any, keywords: Any, message: str) -> None:
    def host():
        fe.call(*arguments, **keywords)

    assert message in wrong(host)


def test_calls_are_in_host_functions_alone() -> None:
    def launches(a):
        calling(a).launch(grid=1, block=1)

    assert "a function of tvm-ffi is called in a kernel" in wrong(launches, vector())


def test_only_functions_are_called() -> None:
    def host(s):
        s(1)

    assert "the string s cannot be called" in wrong(host, "s")
