"""Functions that make tensors in a host function; see `faces` for what a face is."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def empty(shape: Any, dtype: Any, device: Any = None) -> Any:
    """A new tensor, compact and row-major, whose elements are whatever the memory holds.

    `shape`: an integer or a tuple of integers, also such that are known only at the call.  The
    memory comes from the caller's allocator, which is torch's where a call has a torch tensor, and
    is let go of at the end of the call unless the tensor is returned.
    """
    outside("empty")


def zeros(shape: Any, dtype: Any, device: Any = None) -> Any:
    """The same with all bits of every element 0."""
    outside("zeros")


def empty_like(a: Any, dtype: Any = None) -> Any:
    """A new tensor of the shape of another, and of its dtype if none is given."""
    outside("empty_like")
