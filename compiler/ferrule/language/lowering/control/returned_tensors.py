"""Tensors of different sizes that a function returns on different ways: one result, whose sizes
only a call tells."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.sizes import name_symbol
from ferrule.language.values import Parts
from ferrule.specs import Dim, format_dim, params, sym_int64
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import row_major_strides


def unified(low: Lowering, left: Any, right: Any) -> tuple[Any, Any]:
    """Two values that are returned, in which tensors that are alike but for their sizes are of one
    kind.  All else is unchanged."""
    return _Join(low).of(left, right)


@dataclass(frozen=True, slots=True)
class _Join:
    """A join of two ways.

    `symbols`: the sizes that differ, and what both are after it.  Equal sizes on both ways share a
    symbol, but only in one join: in another one, the condition is another.
    """

    low: Lowering
    symbols: dict[tuple[Dim, Dim], Dim] = field(default_factory=dict)

    def of(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Both values, of one kind where that is possible."""
        if isinstance(left, Parts) and isinstance(right, Parts):
            return self.tensors(left, right)
        if type(left) is tuple and type(right) is tuple and len(left) == len(right):
            pairs = [self.of(one, other) for one, other in zip(left, right, strict=True)]
            return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
        return left, right

    def tensors(self, left: Parts, right: Parts) -> tuple[Parts, Parts]:
        """Two tensors, of one kind if they are compact and of one dtype and rank."""
        ours, theirs = type(left).param, type(right).param
        if type(left) is type(right) or not _may_be_one(ours, theirs):
            return left, right
        assert isinstance(ours, params.Tensor) and isinstance(theirs, params.Tensor)
        pairs = zip(ours.shape, theirs.shape, strict=True)
        shape = tuple(one if one == other else self.symbol(one, other) for one, other in pairs)
        align = math.gcd(ours.align, theirs.align)
        param = changed(ours, shape=shape, strides=row_major_strides(shape), align=align)
        dims = ", ".join(format_dim(dim, self.low.state.symbols) for dim in shape)
        words = f"a tensor of shape ({dims}) and dtype {ours.dtype.name}"
        kind = type("Parts", (Parts,), {"param": param, "words": words})
        return tuple.__new__(kind, left), tuple.__new__(kind, right)

    def symbol(self, left: Dim, right: Dim) -> Dim:
        """The symbol of a size that is one on the left, and another one on the right."""
        if (left, right) not in self.symbols:
            self.symbols[left, right] = symbol = sym_int64()
            name_symbol(self.low, symbol, "size")
        return self.symbols[left, right]


def _may_be_one(left: params.Param, right: params.Param) -> bool:
    """Whether these are compact tensors that are alike but for their sizes and alignment."""
    if not (isinstance(left, params.Tensor) and isinstance(right, params.Tensor)):
        return False
    return (left.dtype, len(left.shape), left.device) == (
        right.dtype,
        len(right.shape),
        right.device,
    ) and all(each.strides == row_major_strides(each.shape) for each in (left, right))
