"""Types that are registered with tvm-ffi for the tests, each once for the process."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Optional

import pytest
import tvm_ffi
import tvm_ffi.testing


def use_count(value: Any) -> int:
    """How many references an object of tvm-ffi has."""
    return int(tvm_ffi.testing.object_use_count(value))


@cache
def _pair() -> Any:
    dataclasses = pytest.importorskip("tvm_ffi.dataclasses")
    if not hasattr(dataclasses, "py_class"):
        pytest.skip("this tvm-ffi registers no classes of Python")

    @dataclasses.py_class("ferrule.test.Base")
    class Base(tvm_ffi.Object):
        number: int
        label: str = "none"

    @dataclasses.py_class("ferrule.test.Node")
    class Node(Base):
        weight: float = 1.0
        ready: bool = False
        limit: Optional[int] = None  # noqa: UP045
        sizes: tvm_ffi.Array[int] = dataclasses.field(default_factory=lambda: tvm_ffi.Array([]))
        inner: Optional[Base] = None  # noqa: UP045
        held: Any = None

    return Base, Node


def base_class() -> Any:
    """A class of Python, `ferrule.test.Base`: a number and a label."""
    return _pair()[0]


def node_class() -> Any:
    """A class derived from it, with a field of every kind; `held` is anything."""
    return _pair()[1]


class Token:
    """A Python object whose references are counted: who holds one shows in `count`."""

    @property
    def count(self) -> int:
        """How many references there are."""
        return sys.getrefcount(self)
