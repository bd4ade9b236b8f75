"""Tensors of different sizes that a function returns on different ways: one result, whose sizes
only a call tells."""

from __future__ import annotations

from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.values import Parts
from ferrule.specs import Dim, Tensor, compact_strides, format_dim, sym_int64
from ferrule.specs.copies import changed


def unified(low: Lowering, left: Parts, right: Parts) -> tuple[Parts, Parts]:
    """Two values that are returned, of one kind if they are tensors alike but for their sizes."""
    ours, theirs = type(left).param, type(right).param
    if not (isinstance(ours, Tensor) and isinstance(theirs, Tensor)):
        return left, right
    if _of_any_sizes(ours) != _of_any_sizes(theirs):
        return left, right
    kind = _kind(low, ours, theirs)
    return tuple.__new__(kind, left), tuple.__new__(kind, right)


def _of_any_sizes(tensor: Tensor) -> Any:
    """What must be the same: the function has made both tensors, so they are compact."""
    return tensor.dtype, len(tensor.shape), tensor.device, tensor.align


def _kind(low: Lowering, ours: Tensor, theirs: Tensor) -> type[Parts]:
    """The kind of both, which has a symbol for each size that is not the same."""
    known = f"{_words(low, ours.shape, ours)} or {_words(low, theirs.shape, theirs)}"
    if known not in low.state.returned:
        pairs = zip(ours.shape, theirs.shape, strict=True)
        shape = tuple(one if one == other else _symbol(low) for one, other in pairs)
        strides = compact_strides(shape, tuple(reversed(range(len(shape)))))
        param = changed(ours, shape=shape, strides=strides)
        words = _words(low, shape, ours)
        low.state.returned[known] = type("Parts", (Parts,), {"param": param, "words": words})
    return low.state.returned[known]


def _symbol(low: Lowering) -> Dim:
    taken, number = set(low.state.symbols.values()), 0
    while (name := f"rows_{number}" if number else "rows") in taken:
        number += 1
    symbol = sym_int64()
    low.state.symbols[symbol] = name
    return symbol


def _words(low: Lowering, shape: tuple[Dim, ...], tensor: Tensor) -> str:
    dims = ", ".join(format_dim(dim, low.state.symbols) for dim in shape)
    return f"a tensor of shape ({dims}) and dtype {tensor.dtype.name}"
