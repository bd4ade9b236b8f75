"""Functions that view tensors and pointers anew; see `faces` for what a face is."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def make_tensor(iterator: Any, layout: Any) -> Any:
    """The elements from a pointer on, in a layout or a compact column-major shape."""
    outside("make_tensor")


def recast_tensor(src: Any, dtype: Any) -> Any:
    """The bytes of a tensor as elements of another dtype."""
    outside("recast_tensor")


def recast_ptr(ptr: Any, swizzle_: None = None, dtype: Any = None) -> Any:
    """The same address, of elements of another dtype."""
    outside("recast_ptr")


def domain_offset(coord: Any, tensor: Any) -> Any:
    """The tensor in its layout, as if the element at a coordinate were its first."""
    outside("domain_offset")


def elem_less(lhs: Any, rhs: Any) -> Any:
    """Whether every number of a coordinate is less than the one at its place in the other."""
    outside("elem_less")
