"""Values of classes that a direct entry has learned: no Python runs, nothing is kept or lost."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from entry_pairs import Answers, Named, Pair, Point, Streams, Struct
from oracle.wrapped import Wrapped
from packed_functions import NoOrigin, function, number, payload

from ferrule import specs
from ferrule.runtime import Function, from_dlpack, make_function
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.values.learned import CLASSES, Way, table

I32 = specs.Int32
POINTER = specs.Pointer("a", specs.Float32)
RECORD = specs.Tuple("a", (specs.Scalar("a", I32), specs.Scalar("b", specs.Float64)), fields=True)
PLAIN = specs.Tuple("a", (specs.Scalar("0", I32), specs.Scalar("1", I32)))
VECTOR = specs.Tensor("a", (specs.sym_int64(symbol="n"),), specs.Float32)
FLOAT = ctypes.c_float(1)


def checked(param: specs.Param) -> Function:
    """A function with the checks of its parameter, and no result."""
    wrapped = Wrapped(specs.Signature("f", (param,)))
    address = wrapped.engine.address("__tvm_ffi_f")
    made = make_function(address, wrapped.signature, NoOrigin(), owner=wrapped.engine)
    _LOGS.append(wrapped)
    return made.prepare()


_LOGS: list[Wrapped] = []
"""The functions write into the logs of these."""


def frames_of(call: Callable[[], object]) -> list[str]:
    """The functions of Python that run in a call."""
    seen: list[str] = []

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_qualname if sys.version_info >= (3, 11) else "?")

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen[1:]  # after the lambda itself


@pytest.mark.parametrize(
    ("param", "value", "methods"),
    [
        pytest.param(RECORD, Named(1, 2.5), 0, id="named tuple"),
        pytest.param(RECORD, Struct(1, 2.5), 0, id="attributes"),
        pytest.param(PLAIN, Pair(1, 2), 0, id="named tuple for a plain one"),
        pytest.param(POINTER, Answers(64), 1, id="object with an address"),
        pytest.param(POINTER, ctypes.pointer(FLOAT), 0, id="pointer of ctypes"),
        pytest.param(specs.Stream("a"), Streams((0, 64)), 1, id="stream"),
        pytest.param(specs.Optional("a", POINTER), Answers(64), 1, id="optional address"),
        pytest.param(specs.Optional("a", RECORD), Struct(1, 2.5), 0, id="optional record"),
        pytest.param(VECTOR, from_dlpack(np.zeros(3, np.float32)), 0, id="adapter"),
        pytest.param(specs.Tuple("t", (RECORD,)), (Struct(1, 2.5),), 0, id="record in a tuple"),
    ],
)
def test_a_learned_class_needs_no_python(param: specs.Param, value: Any, methods: int) -> None:
    called = function(number("  %x = add i64 0, 1"), param).prepare()
    called(value)
    assert len(frames_of(lambda: called(value))) == methods


def test_records_in_records_are_read() -> None:
    outer = specs.Tuple("o", (specs.Scalar("x", I32), RECORD), fields=True)
    object.__setattr__(outer, "items", (outer.items[0], _renamed(RECORD, "y")))
    called = function(number("  %x = add i64 0, 1"), outer).prepare()
    value = Point(1, Struct(1, 2.5))
    assert called(value) == called(value) == 1
    assert frames_of(lambda: called(value)) == []


def _renamed(param: specs.Tuple, name: str) -> specs.Tuple:
    return specs.Tuple(name, param.items, fields=param.fields)


def test_the_latest_classes_are_known_and_others_live_no_longer() -> None:
    fields = tuple(specs.Scalar(name, I32) for name in ("p", "q"))
    called = function(number("  %x = add i64 0, 1"), specs.Tuple("a", fields, fields=True))
    called.prepare()
    made = []
    for _ in range(CLASSES + 2):

        class One(NamedTuple):
            p: int
            q: int

        assert called(One(1, 2)) == 1
        assert frames_of(partial(called, One(1, 2))) == []
        made.append(weakref.ref(One))
    del One
    gc.collect()
    assert [ref() is None for ref in made] == [True, True, *[False] * CLASSES]


def test_references_stay_flat_and_values_live_through_the_call() -> None:
    """The record makes its tensor anew for each call; nobody else holds it."""
    made: list[weakref.ref[Any]] = []

    class Maker:
        @property
        def x(self) -> Any:
            array = np.full(1000, 3.0, np.float32)
            made.append(weakref.ref(array))
            return array

        y = 1.0

    record = specs.Tuple("r", (_named(VECTOR, "x"), specs.Scalar("y", specs.Float64)), fields=True)
    # The callee calls back, so that whatever is not held is gone before the tensor is read.
    called = function(_READ_AFTER_CALLBACK, record, specs.Function("f")).prepare()
    for _ in range(3):
        gc.collect()
        assert called(Maker(), lambda: [gc.collect(), np.zeros(1000, np.float32)] and None) == 3
    assert all(ref() is None for ref in made)
    value = Struct(1, 2.5)
    other = function(number("  %x = add i64 0, 1"), RECORD).prepare()
    other(value)
    counts = [sys.getrefcount(each) for each in (value, value.a, value.b, Struct)]
    for _ in range(300):
        other(value)
    assert [sys.getrefcount(each) for each in (value, value.a, value.b, Struct)] == counts


def _named(param: specs.Tensor, name: str) -> specs.Tensor:
    return specs.Tensor(name, param.shape, param.dtype, device="cpu")


_READ_AFTER_CALLBACK = f"""
  %f = getelementptr i8, ptr %args, i64 24
  %callback = load ptr, ptr %f
  %none = alloca [16 x i8]
  store [16 x i8] zeroinitializer, ptr %none
  %s = call i32 @TVMFFIFunctionCall(ptr %callback, ptr null, i32 0, ptr %none)
  %a = getelementptr i8, ptr %args, i64 8
  %array = load ptr, ptr %a
  %d = getelementptr i8, ptr %array, i64 24
  %items = load ptr, ptr %d
  %t = getelementptr i8, ptr %items, i64 8
  %given = load ptr, ptr %t
  %kind = load i32, ptr %items
  %borrowed = icmp eq i32 %kind, {int(TypeIndex.DLTENSOR_PTR)}
  %header = select i1 %borrowed, i64 0, i64 24
  %tensor = getelementptr i8, ptr %given, i64 %header
  %data = load ptr, ptr %tensor
  %e = load float, ptr %data
{number("  %x = fptosi float %e to i64")}"""


def test_what_a_class_does_later_is_seen() -> None:
    called = function(number(payload(0)), POINTER).prepare()

    class Given:
        def __tvm_ffi_opaque_ptr__(self) -> int:
            return 64

    assert [called(Given()) for _ in range(3)] == [64] * 3
    Given.__tvm_ffi_opaque_ptr__ = lambda self: 128  # type: ignore[method-assign]
    assert called(Given()) == 128
    refusing = checked(POINTER)
    assert [refusing(Given()) for _ in range(3)] == [None] * 3
    del Given.__tvm_ffi_opaque_ptr__
    with pytest.raises(TypeError, match="expected a pointer or int or None"):
        refusing(Given())


def test_an_attribute_that_is_missing_or_raises_is_told_as_before() -> None:
    called = checked(RECORD)

    class Wrong:
        a = 1

        @property
        def b(self) -> float:
            if self.error is not None:
                raise self.error
            return 2.5

        error: Exception | None = None

    assert called(Wrong()) is called(Wrong()) is None
    Wrong.error = LookupError("gone")
    with pytest.raises(LookupError, match="gone"):
        called(Wrong())
    Wrong.error = AttributeError("no b")
    with pytest.raises(TypeError, match="expected tuple or list"):
        called(Wrong())
    Wrong.error = None
    assert called(Wrong()) is None


def test_a_pointer_to_other_elements_is_refused() -> None:
    called = function(number(payload(0)), POINTER).prepare()
    address = ctypes.addressof(FLOAT)
    four = (ctypes.c_float * 4)()
    for _ in range(3):
        assert called(ctypes.pointer(FLOAT)) == called(ctypes.byref(FLOAT)) == address
        assert called(four) == ctypes.addressof(four)
        assert called(ctypes.POINTER(ctypes.c_float)()) == 0
        assert called(ctypes.cast(four, ctypes.POINTER(ctypes.c_char))) == ctypes.addressof(four)
        for other in (ctypes.c_double(1), ctypes.c_int32(1)):
            for given in (ctypes.pointer(other), ctypes.byref(other)):
                with pytest.raises(TypeError, match=f"a pointer to {type(other).__name__}"):
                    called(given)
    text = function(number(payload(0)), specs.Pointer("a", specs.Int8)).prepare()
    assert ctypes.string_at(text(ctypes.c_char_p(b"abc"))) == b"abc"
    with pytest.raises(TypeError, match="expected a pointer or int or None"):
        checked(POINTER)(ctypes.c_wchar_p("abc"))


def test_the_tensor_of_an_adapter_keeps_its_checks() -> None:
    called = function(number("  %x = add i64 0, 1"), VECTOR).prepare()
    assert called(from_dlpack(np.zeros(3, np.float32))) == 1
    frozen = np.zeros(3, np.float32)
    held = from_dlpack(frozen)
    assert called(held) == 1
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match="expected an array that can be written"):
        called(held)
    assert called(from_dlpack(from_dlpack(np.zeros(3, np.float32)))) == 1


def test_threads_learn_classes_at_once() -> None:
    called = function(number("  %x = add i64 0, 1"), RECORD).prepare()
    wrong: list[object] = []

    def work() -> None:
        for _ in range(50):

            @dataclass
            class Local:
                a: int
                b: float

            if [called(Local(1, 2.5)) for _ in range(3)] != [1] * 3:
                wrong.append(Local)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(table(("fields", "a", "b")).kinds) == CLASSES


def test_a_table_is_what_the_code_reads() -> None:
    made = table(("fields", "first", "second"))
    made.learn(Struct, Way.ATTRIBUTES)
    names = (ctypes.c_uint64 * 2).from_address(made.words[0])
    assert list(names) == [id(sys.intern("first")), id(sys.intern("second"))]
    assert list(made.words[1:4]) == [2, id(Struct), Way.ATTRIBUTES]
