"""Vectors and fragments: values in the registers of one thread; see `base` for the meaning of a
face.

A vector is a value with a compile-time shape, such as `a.load()` or `full(4, 0.0, Float32)`;
operators and `math` work element by element.  A fragment is a tensor in registers.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ferrule.language.faces.base import outside


class ReductionOp(Enum):
    """The operation of `v.reduce(op, init)` on the elements of a vector."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class TensorSSA:
    """A vector, such as `a.load()`: for annotations, and for `isinstance` in a compiled
    function."""

    def __init__(self) -> None:
        raise TypeError("TensorSSA is an annotation; .load() of a tensor makes a vector")

    def reduce(self: Any, op: Any, init_val: Any, reduction_profile: Any = 0) -> Any:
        """`v.reduce(op, init_val, reduction_profile)` of a vector `v`."""
        return self.reduce(op, init_val, reduction_profile)

    def reshape(self: Any, shape: Any) -> Any:
        """`v.reshape(shape)` of a vector `v`."""
        return self.reshape(shape)

    def to(self: Any, dtype: Any) -> Any:
        """`v.to(dtype)` of a vector `v`."""
        return self.to(dtype)


def make_fragment(layout_or_shape: Any, dtype: Any) -> Any:
    """A tensor in registers with a compile-time shape (column-major) or layout.

    Its elements are undefined until they are written.
    """
    outside("make_fragment")


def make_rmem_tensor(layout_or_shape: Any, dtype: Any) -> Any:
    """The same as `make_fragment`."""
    outside("make_rmem_tensor")


def make_fragment_like(src: Any, dtype: Any = None) -> Any:
    """A compact tensor in registers with the shape and dtype of a tensor, vector or layout.

    Its modes have the order of the other's strides, if these are known at compile time.
    """
    outside("make_fragment_like")


make_rmem_tensor_like = make_fragment_like
"""CuTe DSL's newer name of it."""


def full(shape: Any, fill_value: Any, dtype: Any) -> Any:
    """A vector filled with one number; in a host function a new tensor, allocated like `empty`."""
    outside("full")


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    """`full` of the shape of another, and of its dtype by default."""
    outside("full_like")


def zeros_like(a: Any, dtype: Any = None) -> Any:
    """`full_like` of zeros."""
    outside("zeros_like")


def ones_like(a: Any, dtype: Any = None) -> Any:
    """`full_like` of ones."""
    outside("ones_like")


def where(cond: Any, x: Any, y: Any) -> Any:
    """x if a condition holds, else y: of numbers, vectors or whole tensors.

    Both are computed.
    """
    outside("where")


def any_(x: Any) -> Any:
    """Whether an element of a vector is true."""
    outside("any_")


def all_(x: Any) -> Any:
    """Whether all elements of a vector are true."""
    outside("all_")


def autovec_copy(src: Any, dst: Any) -> None:
    """Copies a tensor with a compile-time shape: all of it is read, then written.

    Neighbours are read and written together if their alignment is known.
    """
    outside("autovec_copy")
