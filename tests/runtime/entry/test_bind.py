"""`Function.bind`: what it keeps, what each call of it sees, what it raises and when."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from oracle.wrapped import Wrapped
from packed_functions import KEEP, NoOrigin, function, number, outcome, payload

import ferrule as fe
from ferrule import specs
from ferrule.runtime import Function, make_function
from ferrule.runtime.entry.key import CallTraits

N = specs.sym_int(symbol="n")


def vector(name: str = "a") -> specs.Tensor:
    return specs.Tensor(name, (N,), specs.Float32, device="cpu")


def integer(name: str, default: Any = specs.REQUIRED) -> specs.Scalar:
    return specs.Scalar(name, specs.Int64, default)


def checked(*params: specs.Param) -> Function:
    wrapped = Wrapped(specs.Signature("f", params))
    address = wrapped.engine.address("__tvm_ffi_f")
    return make_function(address, wrapped.signature, NoOrigin(), owner=(wrapped.engine, wrapped))


FIRST = number(
    "  %p = getelementptr i8, ptr %args, i64 8\n  %o = load ptr, ptr %p\n"
    "  %d = getelementptr i8, ptr %o, i64 24\n  %data = load ptr, ptr %d\n"
    "  %x = load i64, ptr %data"
)
"""The first element of a tensor that is an object."""


def test_a_bound_call_gives_what_the_call_gives() -> None:
    called = function(number(payload(1)), vector(), integer("k", 9))
    array = np.zeros(3, np.float32)
    assert [called.bind(array)(), called.bind(array, 5)(), called.bind(k=6, a=array)()] == [9, 5, 6]
    assert called.bind(array, np.int8(7))() == 7
    with pytest.raises(TypeError, match="takes no arguments"):
        called.bind(array)(1)  # type: ignore[call-arg]


def test_it_sees_what_tensors_hold_at_the_call() -> None:
    array = np.array([1, 2])
    first = function(FIRST, specs.Tensor("a", (N,), specs.Int64)).bind(array)
    assert first() == 1
    array[0] = 41
    assert first() == 41


def test_forms_are_refused_by_bind_and_values_by_each_call() -> None:
    called = checked(vector("a"), vector("b"))
    for given in ((), (1, 2, 3)):
        assert outcome(lambda g=given: called.bind(*g)) == outcome(lambda g=given: called(*g))
    one, other = np.zeros(3, np.float32), np.zeros(4, np.float32)
    bound = called.bind(one, other)
    for _ in range(2):
        assert outcome(bound) == outcome(lambda: called(one, other))
    assert "b.shape[0]" in outcome(bound)[1]


def test_arguments_and_code_live_as_long_as_the_bound_call() -> None:
    called, array = checked(vector()), np.zeros(3, np.float32)
    alive, held = weakref.ref(called), sys.getrefcount(array)
    bound = called.bind(array)
    del called
    gc.collect()
    assert bound() is None
    assert sys.getrefcount(array) == held + 1
    del bound
    gc.collect()
    assert (sys.getrefcount(array), alive()) == (held, None)


def test_it_stays_when_the_function_is_moved_away() -> None:
    called = function(number(payload(0)), integer("k"))
    bound = called.bind(8)
    thief = tvm_ffi.Function.__new__(tvm_ffi.Function)
    thief.__move_handle_from__(called)
    del thief, called
    gc.collect()
    assert bound() == 8


def test_references_stay_flat() -> None:
    called, array = checked(vector(), integer("k")), np.zeros(3, np.float32)
    bound = called.bind(array, 1 << 40)
    bound()
    before = sys.getrefcount(array), sys.getrefcount(bound), sys.getallocatedblocks()
    for _ in range(50_000):
        bound()
    for _ in range(200):
        called.bind(array, 3)()
    gc.collect()
    after = sys.getrefcount(array), sys.getrefcount(bound)
    assert after == before[:2]
    assert sys.getallocatedblocks() - before[2] < 200


@fe.jit
def two(a: fe.Tensor):
    return a.shape[0], 2.5


def test_a_tuple_comes_back_as_one() -> None:
    sizes = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    compiled = fe.compile(two, sizes, options="--target cpu")
    array = np.zeros(7, np.float32)
    assert compiled.bind(array)() == compiled(array) == (7, 2.5)


@pytest.mark.needs_torch
def test_the_framework_of_the_arguments_is_there() -> None:
    import torch

    echo = function(
        "  %s = call i32 @TVMFFIAnyViewToOwnedAny(ptr %args, ptr %result)\n  ret i32 %s",
        specs.Tensor("a", (N,), specs.Float32, owning=True),
        specs.Optional("b", vector("b")),
    )
    kept = torch.arange(3.0)
    for bound in (echo.bind(kept, None), echo.bind(tvm_ffi.from_dlpack(kept), kept)):
        came = bound()
        assert type(came) is torch.Tensor
        assert came.data_ptr() == kept.data_ptr()
    for traits in (KEEP, CallTraits()):
        plain = function(number(payload(1)), vector(), integer("k"), traits=traits)
        assert plain.bind(kept, 4)() == 4
