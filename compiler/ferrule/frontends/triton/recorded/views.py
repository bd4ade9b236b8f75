"""Tensors and numbers of a launch over the sizes of several recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.frontends.triton.arguments import Fixed
from ferrule.frontends.triton.recorded.sizes import Sizes
from ferrule.frontends.triton.recorded.tensors import Recorded
from ferrule.specs import Dim, DType, Tensor, sym_int
from ferrule.specs.conditions import FloatExpr
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Free:
    """A number that differs between recordings and follows from no size: callers give it, or it is
    `computed` of what they give."""

    dtype: DType
    computed: FloatExpr | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A tensor of a launch: its form over the sizes, and what it was in each recording."""

    tensor: Tensor
    each: tuple[Recorded, ...]


def tensor_over(
    name: str, each: Sequence[Recorded], sizes: Sizes, *, aligned: bool = True
) -> Tensor:
    """The spec of a tensor over the sizes; with `aligned` its address is a multiple of 16 if it was
    in every recording."""
    first = each[0]
    shape = tuple(
        sizes.dim(tuple(one.shape[at] for one in each), f"{name}_{at}")
        for at in range(len(first.shape))
    )
    align = 16 if aligned and all(one.aligned for one in each) else None
    if all(one.is_compact for one in each):
        return Tensor(name, shape, first.dtype, align=align)
    strides = tuple(
        sizes.dim(tuple(one.strides[at] for one in each), f"{name}_stride_{at}", 64)
        for at in range(len(first.shape))
    )
    return Tensor(name, shape, first.dtype, strides=strides, align=align)


def tensor_like(name: str, each: Sequence[Recorded]) -> Tensor:
    """The spec of a tensor whose sizes are its own: none of a call."""
    shape = tuple(sym_int() for _ in each[0].shape)
    aligned = all(one.aligned for one in each)
    return Tensor(name, shape, each[0].dtype, align=16 if aligned else None)


def example_of(number: Dim | float | bool | Free) -> Any:
    """A number as an example for `compile`."""
    if isinstance(number, Free):
        return number.dtype
    return Fixed(number) if isinstance(number, bool | int | float) else number
