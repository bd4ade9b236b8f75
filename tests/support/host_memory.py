"""New tensors on a GPU that is not there: host memory stands in for its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ferrule as fe


@contextmanager
def use_memory() -> Iterator[None]:
    """Host memory in the place of a GPU's."""
    buffers: dict[int, Any] = {}

    def allocate(size: int, align: int, kind: int, index: int) -> int:
        buffer = ctypes.create_string_buffer(size + align)
        address = -(-ctypes.addressof(buffer) // align) * align
        buffers[address] = buffer
        return address

    fe.runtime.use_allocator(allocate, lambda address, kind, index: buffers.pop(address))
    yield
    fe.runtime.use_allocator(None, None)
    assert not buffers
