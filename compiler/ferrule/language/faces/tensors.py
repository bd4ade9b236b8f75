"""New tensors in host functions, and views of tensors and pointers; `base` says what a face is."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def make_tensor(iterator: Any, layout: Any) -> Any:
    """The elements from a pointer on, with a layout or a compact column-major shape."""
    outside("make_tensor")


def make_identity_tensor(shape: Any) -> Any:
    """A tensor whose elements are their own coordinates; nothing of it is in memory."""
    outside("make_identity_tensor")


def recast_tensor(src: Any, dtype: Any) -> Any:
    """The bytes of a tensor as elements of another dtype."""
    outside("recast_tensor")


def recast_ptr(ptr: Any, swizzle_: Any = None, dtype: Any = None) -> Any:
    """The same address, of elements of another dtype, with a swizzle of its bytes."""
    outside("recast_ptr")


def domain_offset(coord: Any, tensor: Any) -> Any:
    """The tensor with its layout, with the element at a coordinate as its first."""
    outside("domain_offset")


def elem_less(lhs: Any, rhs: Any) -> Any:
    """Whether every number of a coordinate is less than the corresponding one of the other."""
    nested = isinstance(lhs, (tuple, list)), isinstance(rhs, (tuple, list))
    if any(nested):
        if not all(nested) or len(lhs) != len(rhs):
            raise ValueError(f"elem_less takes two tuples of one profile, but got {lhs} and {rhs}")
        parts = list(map(elem_less, lhs, rhs))
        return all(parts)
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs < rhs
    outside("elem_less")


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
    """A new tensor with the shape of another, and its dtype by default.

    In a kernel it is a vector, as with `zeros_like`.
    """
    outside("empty_like")


def shrink(tensor: Any, size: Any) -> Any:
    """The first rows of a tensor, as a tensor that can be returned; nothing is copied.

    The tensor is one that the host function has made, that a call gave back, or a parameter.

    `size`: how many rows, an integer that may be known only at the call.  One that is negative or
    more than the tensor has is a ValueError of the call.
    """
    outside("shrink")
