"""Functions of numbers that GPUs have an instruction for, as `arch` has them; see `faces`."""

from __future__ import annotations

from typing import Any

from ferrule.language import maths
from ferrule.language.faces import outside
from ferrule.language.vectors import where


def fmax(a: Any, b: Any) -> Any:
    """The larger of two floats; where one is NaN, the other one.  `max` gives NaN there."""
    return where(a != a, b, where(b != b, a, maths.max(a, b)))


def fmin(a: Any, b: Any) -> Any:
    """The smaller of two floats; where one is NaN, the other one.  `min` gives NaN there."""
    return where(a != a, b, where(b != b, a, maths.min(a, b)))


def rcp_approx(a: Any) -> Any:
    """About 1 / a of a float, on a GPU of a Float32 by `rcp.approx`, of at most 1 ulp."""
    outside("arch.rcp_approx")
