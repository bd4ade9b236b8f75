"""A user's allocator, and what happens where an allocator fails."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lowered import vector

import ferrule as fe
from ferrule.runtime import use_allocator

LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype = ctypes.c_void_p


class Memory:
    """Memory of libc, with a book about it."""

    def __init__(self) -> None:
        self.live: dict[int, tuple[int, ...]] = {}
        self.asked: list[tuple[int, ...]] = []

    def allocate(self, size: int, align: int, kind: int, index: int) -> int:
        self.asked.append((size, align, kind, index))
        rounded = -(-size // align) * align
        found = int(LIBC.aligned_alloc(ctypes.c_size_t(align), ctypes.c_size_t(rounded)))
        self.live[found] = (kind, index)
        return found

    def free(self, address: int, kind: int, index: int) -> None:
        assert self.live.pop(address) == (kind, index)
        LIBC.free(ctypes.c_void_p(address))


@pytest.fixture
def memory() -> Iterator[Memory]:
    book = Memory()
    use_allocator(book.allocate, book.free)
    yield book
    use_allocator(None, None)


@fe.jit
def doubled(a: fe.Tensor):
    t = fe.empty((a.shape[0], 3), fe.Float64)
    t[:] = 1.0
    b = fe.empty_like(a)
    b[:] = a[:] * 2.0
    return b


def compiled(function: Any = doubled, *examples: Any) -> fe.Function:
    return fe.compile(function, *(examples or (vector(),)), options="--target cpu")


def test_tensors_come_from_it_and_go_back(memory: Memory) -> None:
    function = compiled()
    found = function(np.arange(4, dtype=np.float32))
    assert memory.asked == [(96, 64, 1, 0), (16, 64, 1, 0)]
    assert np.from_dlpack(found).tolist() == [0, 2, 4, 6]
    assert list(memory.live) == [np.from_dlpack(found).ctypes.data]
    del found
    assert not memory.live


def test_tensors_without_elements_take_no_memory(memory: Memory) -> None:
    found = compiled()(np.zeros(0, np.float32))
    assert (found.shape, memory.asked) == ((0,), [])


def test_torch_keeps_its_own(memory: Memory) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert compiled()(torch.ones(2)).tolist() == [2, 2]
    assert memory.asked == []


def test_a_tensor_outlives_the_allocator_s_time(memory: Memory) -> None:
    found = compiled()(np.ones(2, np.float32))
    use_allocator(None, None)
    assert np.from_dlpack(compiled()(np.ones(2, np.float32))).tolist() == [2, 2]
    assert len(memory.live) == 1
    del found
    assert not memory.live


def test_addresses_of_c_functions_are_taken_as_they_are() -> None:
    library = ctypes.CDLL(None)
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_int64] * 3)
    allocate = kind(lambda size, align, _type, _index: LIBC.aligned_alloc(align, size + align))
    address = ctypes.cast(allocate, ctypes.c_void_p).value
    use_allocator(address, ctypes.cast(library.free, ctypes.c_void_p).value)
    try:
        found = compiled()(np.ones(64, np.float32))
        assert np.from_dlpack(found).sum() == 128
    finally:
        use_allocator(None, None)


@pytest.mark.parametrize("first", [True, False])
def test_an_allocator_that_has_none_is_a_memory_error(first: bool) -> None:
    book = Memory()

    def allocate(size: int, align: int, kind: int, index: int) -> int | None:
        return None if first or book.asked else book.allocate(size, align, kind, index)

    use_allocator(allocate, book.free)
    try:
        with pytest.raises(MemoryError, match="the registered allocator has no memory"):
            compiled()(np.ones(4, np.float32))
    finally:
        use_allocator(None, None)
    assert (len(book.asked), book.live) == (0 if first else 1, {})


def test_memory_that_is_not_aligned_is_an_error() -> None:
    freed = []
    use_allocator(lambda *_: 8200, lambda address, *_: freed.append(address))
    try:
        message = "expected data alignment=64 bytes of the allocator, but got address 8200"
        with pytest.raises(RuntimeError, match=message):
            compiled()(np.ones(4, np.float32))
    finally:
        use_allocator(None, None)
    assert freed == [8200]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="allocate must be a function or the address of one"):
        use_allocator("malloc", print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="free must be a function"):
        use_allocator(print, None)
