"""Functions that make views of tensors and pointers; see `faces` for the meaning of a face."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def make_tensor(iterator: Any, layout: Any) -> Any:
    """The elements from a pointer on, with a layout or a compact column-major shape."""
    outside("make_tensor")


def recast_tensor(src: Any, dtype: Any) -> Any:
    """The bytes of a tensor as elements of another dtype."""
    outside("recast_tensor")


def recast_ptr(ptr: Any, swizzle_: None = None, dtype: Any = None) -> Any:
    """The same address, of elements of another dtype."""
    outside("recast_ptr")


def domain_offset(coord: Any, tensor: Any) -> Any:
    """The tensor with its layout, with the element at a coordinate as its first."""
    outside("domain_offset")


def elem_less(lhs: Any, rhs: Any) -> Any:
    """Whether every number of a coordinate is less than the corresponding one of the other."""
    outside("elem_less")
