"""Calls read the fields of torch's tensors, and see what torch's methods say; where fields do not
say it all, they do not look at them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_functions import function

from ferrule import specs
from ferrule.runtime import Function
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.entry import surroundings
from ferrule.runtime.values import tensorwords

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")

# A function that copies the DLTensor, with its sizes and strides, to memory of the test.
BODY = """
  %value = getelementptr i8, ptr %args, i64 8
  %dl = load ptr, ptr %value
  %word = getelementptr i8, ptr %args, i64 24
  %out = load ptr, ptr %word
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %dl, i64 48, i1 false)
  %at = getelementptr i8, ptr %dl, i64 16
  %rank = load i32, ptr %at
  %wide = zext i32 %rank to i64
  %bytes = shl i64 %wide, 3
  %s = getelementptr i8, ptr %dl, i64 24
  %shape = load ptr, ptr %s
  %shapes = getelementptr i8, ptr %out, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %shapes, ptr %shape, i64 %bytes, i1 false)
  %t = getelementptr i8, ptr %dl, i64 32
  %stride = load ptr, ptr %t
  %strides = getelementptr i8, ptr %out, i64 128
  call void @llvm.memcpy.p0.p0.i64(ptr %strides, ptr %stride, i64 %bytes, i1 false)
  ret i32 0
"""
COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"

DTYPES = [name for name in specs.dtypes.BY_NAME if hasattr(torch, name)]


@pytest.fixture(scope="module")
def seen() -> Callable[[Any], tuple[Any, ...]]:
    """Address, sizes, strides, dtype and device of a tensor, as a call gets them."""
    shapes = [specs.Tensor("a", (), "float32"), specs.Pointer("out")]
    called: Function = function(BODY, *shapes, constants=COPY)
    memory = (ctypes.c_int64 * 24)()
    place = ctypes.c_void_p(ctypes.addressof(memory))

    def look(tensor: Any) -> tuple[Any, ...]:
        called(tensor, place)
        rank = memory[2] & 0xFFFFFFFF
        dtype = memory[2] >> 32
        sizes, strides = (tuple(memory[at : at + rank]) for at in (8, 16))
        return memory[0] + memory[5], sizes, strides, dtype & 0xFFFFFFFF, memory[1]

    return look


def said(tensor: Any) -> tuple[Any, ...]:
    """The same as torch says it."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = specs.dtypes.BY_NAME[name].dlpack
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), dtype, 1


def test_the_fields_are_found() -> None:
    found = tensorwords.tensor_words()
    assert found is not None
    assert HEAP is not None
    assert surroundings.find_surroundings(HEAP.type, HEAP.handle_offset).words == found


VIEWS = st.lists(
    st.tuples(st.sampled_from(["slice", "transpose", "expand", "select", "unsqueeze"]), st.data()),
    max_size=5,
)


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=7), VIEWS)
def test_a_call_sees_what_torch_says(
    seen: Callable[[Any], Any], dtype: str, shape: list[int], views: list[Any]
) -> None:
    tensor = torch.zeros(shape, dtype=torch.uint8).to(getattr(torch, dtype))
    for name, data in views:
        tensor = _view(tensor, name, data)
    if tensor.dim() <= 8:
        assert seen(tensor) == said(tensor)


def _view(tensor: Any, name: str, data: Any) -> Any:
    rank = tensor.dim()
    axis = data.draw(st.integers(0, max(rank - 1, 0)))
    if name == "unsqueeze":
        return tensor.unsqueeze(axis)
    if name == "expand":
        return tensor.expand(2, *tensor.shape)
    if rank == 0:
        return tensor
    if name == "transpose":
        return tensor.transpose(axis, data.draw(st.integers(0, rank - 1)))
    size = tensor.shape[axis]
    if name == "select" and size:
        return tensor.select(axis, data.draw(st.integers(0, size - 1)))
    start, step = data.draw(st.integers(0, size)), data.draw(st.integers(1, 3))
    index = [slice(None)] * rank
    index[axis] = slice(start, None, step)
    return tensor[tuple(index)]


def test_a_tensor_in_another_state(seen: Callable[[Any], Any]) -> None:
    x = torch.zeros(6)
    parameter = torch.nn.Parameter(torch.zeros(2, 3))
    assert seen(parameter) == said(parameter)
    with torch.inference_mode():
        inferred = torch.zeros(3)
        assert seen(inferred) == said(inferred)
    x.resize_(2, 2)
    assert seen(x) == said(x)
    x.set_(torch.ones(9).untyped_storage(), 3, (2,), (2,))
    assert seen(x) == said(x)
    shared = torch.from_numpy(np.zeros((2, 3), np.int16)[:, 1:])
    assert seen(shared) == said(shared)
    x.data = torch.zeros(3, 3).t()
    assert seen(x) == said(x)


def test_memory_that_is_copied_before_a_write_is_copied(seen: Callable[[Any], Any]) -> None:
    source = torch.zeros(3)
    lazy = torch._lazy_clone(source)
    assert torch._C._is_cow_tensor(lazy)
    address = seen(lazy)[0]
    assert not torch._C._is_cow_tensor(lazy)
    assert address == lazy.data_ptr() != source.data_ptr()


LAZY = {
    "negation": lambda: torch._neg_view(torch.ones(3)),
    "conjugation": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "sparse": lambda: torch.ones(3).to_sparse(),
    "meta": lambda: torch.ones(3, device="meta"),
}


@pytest.mark.parametrize("name", list(LAZY))
def test_other_tensors_are_refused(seen: Callable[[Any], Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        seen(LAZY[name]())


@pytest.mark.parametrize("missing", ["_search", "_checks"])
def test_without_the_fields_calls_are_the_same(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError

    monkeypatch.setattr(tensorwords, missing, fails)
    tensorwords._found.cache_clear()
    try:
        assert tensorwords.tensor_words() is None
        assert HEAP is not None
        found = surroundings.find_surroundings(HEAP.type, HEAP.handle_offset)
        assert found.words is None
        assert found.has_torch
    finally:
        tensorwords._found.cache_clear()


def test_a_place_must_be_the_only_one() -> None:
    with pytest.raises(ValueError):
        tensorwords._place(range(3), [0], lambda sample, at: at != 1)
    with pytest.raises(ValueError):
        tensorwords._place(range(3), [0], lambda sample, at: False)
