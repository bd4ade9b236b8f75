"""New tensors on a GPU that is not there: host memory stands in for its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ferrule.runtime import use_allocator


class Memory:
    """What was asked for, as (size, device type, index), and what is not freed, by address; `given`
    is the largest size that an address was given for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.live: dict[int, Any] = {}
        self.given: dict[int, int] = {}

    @property
    def sizes(self) -> list[int]:
        """How many bytes were asked for, each time."""
        return [size for size, _, _ in self.asked]

    def allocate(self, size: int, align: int, kind: int, index: int) -> int:
        self.asked.append((size, kind, index))
        buffer = ctypes.create_string_buffer(size + align)
        address = -(-ctypes.addressof(buffer) // align) * align
        self.live[address] = buffer
        self.given[address] = max(size, self.given.get(address, 0))
        return address

    def free(self, address: int, kind: int, index: int) -> None:
        del self.live[address]


@contextmanager
def allocating() -> Iterator[Memory]:
    """Every tensor that is made meanwhile is in this memory."""
    memory = Memory()
    use_allocator(memory.allocate, memory.free)
    try:
        yield memory
    finally:
        use_allocator(None, None)


@contextmanager
def all_freed() -> Iterator[None]:
    """Every tensor that is made meanwhile is gone at the end."""
    with allocating() as memory:
        yield
    assert not memory.live


@pytest.fixture
def memory() -> Iterator[Memory]:
    """The memory of every tensor that is made during the test."""
    with allocating() as memory:
        yield memory
