"""Which offsets of elements fit 32 bits: by bounds of sizes, or because a launch measured a layout.

A GPU multiplies and adds 64 bits in several instructions.  Most offsets need only 32, but few
sizes have bounds that say so.  So a kernel is there twice where this makes a difference, and the
host function measures the layouts of each launch: see `measured`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Dim, Int32, Sym, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make
from ferrule.specs.intervals import interval, is_bounded

if TYPE_CHECKING:
    from ferrule.specs.implied import Product

FURTHEST = Int32.range[1]
"""The largest offset of 32 bits, in elements."""

Accesses: TypeAlias = ops.Load | ops.Store | ops.View | ops.Atomic
"""The ops that compute the address of an element."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The dims of a layout, as sizes and strides.  The two of its elements that are furthest apart
    are the sum of `(size - 1) * abs(stride)` elements apart, so no offset is larger."""

    dims: tuple[tuple[Dim, Dim], ...]

    @classmethod
    def of(cls, type_: TensorType) -> Reach:
        """Of a tensor; dims in which all elements are one do not count."""
        pairs = zip(type_.shape, type_.strides, strict=True)
        return cls(tuple(each for each in pairs if each[1] != 0))

    def fits(self, limits: Sequence[Product] = ()) -> bool:
        """Whether bounds of sizes, and limits of their products, say that it is at most
        `FURTHEST`."""
        if not limits and not any(is_bounded(dim) for pair in self.dims for dim in pair):
            return False
        # Without elements there is no offset, so each size is at least 1.
        positive = {size for size, _ in self.dims if isinstance(size, Sym)}
        return sum(_most(*each, positive, limits) for each in self.dims) <= FURTHEST


def measured(kernel: ops.Function, limits: Sequence[Product] = ()) -> dict[Reach, ops.Value]:
    """What a launch must measure so that 32 bits are enough for all costly offsets of a kernel, and
    a tensor of each layout.

    Empty for a kernel that gains nothing.
    """
    found: dict[Reach, ops.Value] = {}
    given = frozenset(_given(kernel))
    for tensor in _tensors(kernel):
        reach = Reach.of(tensor.tensor)
        known = all(given.issuperset(symbols_of(dim)) for pair in reach.dims for dim in pair)
        if known and reach not in found and not reach.fits(limits):
            found[reach] = tensor
    return found


def _tensors(kernel: ops.Function) -> Iterator[ops.Value]:
    """The tensors in global memory that have a costly offset: an index times a stride that is not
    constant.  Expressions of whole compact tensors have none, see `ir.passes.collapse`."""
    zeros = {op.result for op in kernel.facts.each(ops.Constant) if op.value == 0}
    for op in kernel.facts.ops:
        if isinstance(op, Accesses) and op.tensor.tensor.space is AddressSpace.gmem:
            pairs = zip(op.indices, op.tensor.tensor.strides, strict=False)
            if any(not isinstance(stride, int) and index not in zeros for index, stride in pairs):
                yield op.tensor


def _given(kernel: ops.Function) -> Iterator[Sym]:
    """The symbols that the code which launches a kernel knows."""
    for param in kernel.params:
        if isinstance(param.type, TensorType):
            for dim in (*param.type.shape, *param.type.strides):
                yield from symbols_of(dim)


def _most(size: Dim, stride: Dim, positive: Collection[Sym], limits: Sequence[Product]) -> int:
    """How far the last element of a dim is from the first, at most."""
    low, high = interval(stride)
    reach = max(interval(size)[1] - 1, 0) * max(abs(low), abs(high))
    if not limits:
        return reach
    from ferrule.specs.implied import most

    product = most(make("mul", size, stride), positive, limits)
    return reach if product is None else min(reach, product)
