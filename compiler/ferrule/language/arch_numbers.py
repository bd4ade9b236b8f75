"""Functions of numbers for which GPUs have an instruction, available in `arch`; see `faces`."""

from __future__ import annotations

from typing import Any

from ferrule.language import maths
from ferrule.language.faces import outside
from ferrule.language.vectors import where


def fmax(a: Any, b: Any) -> Any:
    """The larger of two floats; if one is NaN, the other one.  `max` returns NaN there."""
    return where(a != a, b, where(b != b, a, maths.max(a, b)))


def fmin(a: Any, b: Any) -> Any:
    """The smaller of two floats; if one is NaN, the other one.  `min` returns NaN there."""
    return where(a != a, b, where(b != b, a, maths.min(a, b)))


def rcp_approx(a: Any) -> Any:
    """An approximation of 1 / a for a float; on a GPU, for Float32, `rcp.approx` with at most 1
    ulp."""
    outside("arch.rcp_approx")
