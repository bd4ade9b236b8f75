"""Functions of run-time numbers and of whole tensors.  Of values known at compile time they are
computed at compile time.  Integers are taken as Float32, except by `max` and `min`.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def exp(x: Any) -> Any:
    """e to the power of x."""
    outside("math.exp")


def sqrt(x: Any) -> Any:
    """The square root, correctly rounded; NaN for x < 0."""
    outside("math.sqrt")


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    outside("math.rsqrt")


def max(x: Any, y: Any) -> Any:
    """The larger of two; NaN if one of them is NaN, as numpy.maximum."""
    outside("math.max")


def min(x: Any, y: Any) -> Any:
    """The smaller of two; NaN if one of them is NaN, as numpy.minimum."""
    outside("math.min")
