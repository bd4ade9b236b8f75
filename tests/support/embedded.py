"""What the tests of embedding share: the example of the guide, memory that a GPU might have."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ferrule.runtime import use_allocator

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny_dsl.py"


class Memory:
    """Host memory in the place of a GPU's: how much was asked for, and what is not freed."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.live: dict[int, Any] = {}

    def allocate(self, size: int, align: int, kind: int, index: int) -> int:
        self.asked.append(size)
        buffer = np.zeros(size + align, np.uint8)
        address = int(-(-buffer.ctypes.data // align) * align)
        self.live[address] = buffer
        return address

    def free(self, address: int, kind: int, index: int) -> None:
        del self.live[address]


@contextmanager
def allocating() -> Iterator[Memory]:
    """Every tensor that is made meanwhile is in this memory."""
    book = Memory()
    use_allocator(book.allocate, book.free)
    yield book
    use_allocator(None, None)


@cache
def tiny_dsl() -> ModuleType:
    """The tiny language of the guide."""
    spec = importlib.util.spec_from_file_location("tiny_dsl", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
