"""The sizes of a CudaLaunch: one to three, within CUDA's limits."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from ferrule.compiler.conventions.arguments import shown
from ferrule.specs import Dim, Scalar
from ferrule.specs.expr import is_dim

AXES: Final = "xyz"

Sizes = tuple[Dim, Dim, Dim]


def three(name: str, sizes: Dim | Sequence[Dim], limits: Sequence[tuple[int, int]]) -> Sizes:
    """One to three sizes, filled up with ones to three.

    Raises TypeError for invalid sizes, ValueError for another number of them and for constants
    beyond the limits.
    """
    given = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"CudaLaunch: {name} takes 1 to 3 sizes, but got {len(given)}")
    for axis, size, (smallest, largest) in zip(AXES, given, limits, strict=False):
        if not is_dim(size):
            hint = f": write sig[{size.name!r}].value" if isinstance(size, Scalar) else ""
            raise TypeError(
                f"CudaLaunch: {name} {axis} must be a size, but got {shown(size)}{hint}"
            )
        if isinstance(size, int) and not smallest <= size <= largest:
            raise ValueError(
                f"CudaLaunch: {name} {axis} must be in [{smallest}, {largest}], but got {size}"
            )
    x, y, z = [*given, 1, 1][:3]
    return x, y, z


def check_product(what: str, items: str, sizes: Sizes, most: int) -> None:
    """Raise ValueError if the product of the constant sizes is above the limit."""
    known = prod(size for size in sizes if isinstance(size, int))
    if known > most:
        raise ValueError(f"CudaLaunch: {what} has at most {most} {items}, but {sizes} has {known}")
