"""Reductions of whole tensors in host functions, and of vectors; see `base` for the meaning of a
face.

Every result is computed in order, from the first element to the last.  The sum of no elements is 0,
the product is 1.  Sums and products of integers and bools are `Int64` (`Uint64` for unsigned ones),
of 2-byte floats `Float32`.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def sum(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum of all elements, or along an axis or several: `b[:] = sum(a[:], axis=1)`."""
    outside("sum")


def prod(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The product of all elements, or along an axis or several."""
    outside("prod")


def max(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest element; NaN if one is NaN; a ValueError if there are no elements."""
    outside("max")


def min(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest element; NaN if one is NaN; a ValueError if there are no elements."""
    outside("min")
