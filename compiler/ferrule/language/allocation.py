"""Functions that allocate tensors in a host function; see `faces` for the meaning of a face."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def empty(shape: Any, dtype: Any, device: Any = None) -> Any:
    """A new tensor, compact and row-major, with uninitialised elements.

    `shape`: an integer or a tuple of integers, which may be run-time values.  The memory is from
    the caller's allocator, which is torch's if a call has a torch tensor, and is released at the
    end of the call unless the tensor is returned.
    """
    outside("empty")


def zeros(shape: Any, dtype: Any, device: Any = None) -> Any:
    """The same with zeros in all bits of every element."""
    outside("zeros")


def empty_like(a: Any, dtype: Any = None) -> Any:
    """A new tensor with the shape of another, and its dtype by default."""
    outside("empty_like")
