"""What an entry relies on is tried first; what a framework gives a call is put back behind it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packed_functions import function, number, payload

from ferrule import specs
from ferrule.runtime import Function
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.calls.callpath import name_hidden, prepare_call
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.entry import entries, surroundings
from ferrule.runtime.entry.key import CallTraits
from ferrule.runtime.entry.readers import Form
from ferrule.runtime.linking.engine import libtvm_ffi
from ferrule.runtime.values.views import DLTensor

pytestmark = pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")

N = specs.sym_int(symbol="n")
INDEX = number("  %k = load i32, ptr %args\n  %x = sext i32 %k to i64")
STREAM = number("  %p = call ptr @TVMFFIEnvGetStream(i32 2, i32 1)\n  %x = ptrtoint ptr %p to i64")
BROKEN = "  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @kind)\n  ret i32 -1"
KIND = '@kind = constant [11 x i8] c"ValueError\\00"'

OUTSIDE, INSIDE = 0x7700, 0x5500


def tensor(name: str = "a") -> specs.Tensor:
    return specs.Tensor(name, (N,), specs.Float32)


def with_own_entries(called: Function) -> object:
    """Let the function have entries that are made anew; whoever calls it holds what comes back."""
    from ferrule.runtime.calls.gate import Gate

    assert HEAP is not None
    gate = Gate(HEAP, prepare_call, name_hidden)
    gate.install(called, called.call_plan)
    return gate


def test_every_form_is_found_here() -> None:
    assert HEAP is not None
    found = surroundings.find_surroundings(HEAP.type, HEAP.handle_offset)
    torch = {Form.TORCH} if surroundings.torch_is_there() else set()
    assert found.forms == set(Form) - {Form.TORCH} | torch
    assert found.has_compact_ints
    assert sum(map(bool, found.dtypes)) >= 13


@pytest.mark.parametrize("name", ["_arrays_fit", "_floats_fit", "_compact_ints_fit"])
def test_values_of_an_unknown_layout_take_the_other_path(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(surroundings, name, lambda: False)
    array, float_ = specs.Optional("a", tensor()), specs.Scalar("b", specs.Float64)
    index = function(INDEX, array)
    bits = function(number(payload(0)), float_)
    gates = [with_own_entries(index), with_own_entries(bits)]
    expected = TypeIndex.TENSOR if name == "_arrays_fit" else TypeIndex.DLTENSOR_PTR
    assert index(np.zeros(2, np.float32)) == expected
    assert [bits(value) for value in (7, -(1 << 40), 1.0)] == [7, -(1 << 40), 0x3FF << 52]
    del gates


@pytest.mark.parametrize(
    ("word", "digit", "value"),
    [(1, 5, 5), (-1, 5, -5), (0, 9, 0), (2, 1, None), (-2, 1, None)],
)
def test_short_ints_before_3_12(
    monkeypatch: pytest.MonkeyPatch, word: int, digit: int, value: int | None
) -> None:
    monkeypatch.setattr(surroundings.sys, "version_info", (3, 11))
    assert surroundings.compact_int(word, digit) == value


@pytest.mark.parametrize(
    ("word", "digit", "value"), [(8, 5, 5), (10, 5, -5), (1, 9, 0), (16, 1, None), (18, 1, None)]
)
def test_short_ints_since_3_12(
    monkeypatch: pytest.MonkeyPatch, word: int, digit: int, value: int | None
) -> None:
    monkeypatch.setattr(surroundings.sys, "version_info", (3, 12))
    assert surroundings.compact_int(word, digit) == value


# ---- the current stream ----


@pytest.fixture
def outside() -> Iterator[None]:
    """A current stream of the thread."""
    set_stream = libtvm_ffi().TVMFFIEnvSetStream
    set_stream(2, 1, ctypes.c_void_p(OUTSIDE), None)
    yield
    set_stream(2, 1, None, None)


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """torch's tensors are said to be on a GPU, where torch's current stream is `INSIDE`.

    A tensor on a GPU has other dispatch keys, with which the exchange function reads it.
    """

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
    def read(_: object, out: Any) -> int:
        out[0] = DLTensor(0, 2, 1, 0, 0x00012002)
        return 0

    @ctypes.PYFUNCTYPE(
        ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64)
    )
    def stream(kind: int, index: int, out: Any) -> int:
        assert (kind, index) == (2, 1)
        out[0] = INSIDE
        return 0

    kept = {"torch_read": read, "torch_work_stream": stream}
    forged = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in kept.items()}
    find = surroundings.find_surroundings

    def found(*given: Any) -> surroundings.Surroundings:
        real = find(*given)
        return replace(real, words=None, symbols={**real.symbols, **forged})

    monkeypatch.setattr(entries, "find_surroundings", found)
    return list(kept.values())


@pytest.mark.needs_torch
@pytest.mark.usefixtures("outside", "on_a_gpu")
@pytest.mark.parametrize("releases", [True, False])
def test_the_call_has_the_stream_of_the_framework(releases: bool) -> None:
    import torch

    value = torch.zeros(2)
    used = function(STREAM, tensor("a"), tensor("b"), traits=CallTraits(releases))
    unused = function(STREAM, tensor(), traits=CallTraits(releases, uses_stream=False))
    broken = function(BROKEN, tensor(), traits=CallTraits(releases), constants=KIND)
    gates = [with_own_entries(each) for each in (used, unused, broken)]
    outer = function(STREAM)
    assert (used(value, value), outer()) == (INSIDE, OUTSIDE)
    assert (used(np.zeros(2, np.float32), value), outer()) == (INSIDE, OUTSIDE)
    assert (used(*[np.zeros(2, np.float32)] * 2), outer()) == (OUTSIDE, OUTSIDE)
    assert (unused(value), outer()) == (OUTSIDE, OUTSIDE)
    with pytest.raises(ValueError, match="ValueError"):
        broken(value)
    assert outer() == OUTSIDE
    del gates
