"""Whole-tensor expressions of which a thread computes several neighbouring elements.

A GPU moves 16 bytes as fast as one.  So where all tensors of a `Parallel` of one axis are
contiguous along it, a thread takes as many neighbours as 16 bytes hold of the widest dtype: it
loads all of them first and stores them last, and LLVM makes one access of them where they are
aligned for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.rewrite import with_operands
from ferrule.language.ir.scalars import EVERY
from ferrule.language.ir.walk import is_plain
from ferrule.specs import AddressSpace
from ferrule.specs.deferred import dataclass

_BYTES: Final = 16
"""Of the widest access."""
_LEAST: Final = 8
"""A widest access of fewer bytes is not worth the longer code."""
_MOST: Final = 256
"""The ops of all elements of a thread."""
_LONG: Final = 24
"""What a function of the maths library counts: about as many ops are its formula."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The body of a `Parallel` for `count` elements: all but its stores, and these.

    `tensors` are those that are read or written at the index.
    """

    count: int
    computing: tuple[ops.Op, ...]
    stores: tuple[ops.Store, ...]
    tensors: tuple[ops.Value, ...]

    def bytes_of(self, tensor: ops.Value) -> int:
        """What a thread accesses of a tensor."""
        return self.count * tensor.tensor.dtype.itemsize

    def emitted(self, each: Sequence[Mapping[ops.Value, ops.Value]]) -> Iterator[ops.Op]:
        """The ops for all elements; `each` has for every one of them what takes the place of
        values of the body."""
        made = [dict(values) for values in each]
        for values in made:
            yield from _copies(self.computing, values)
        for values in made:
            yield from _copies(self.stores, values)


def neighbours(op: ops.Parallel) -> Neighbours | None:
    """How a thread computes several elements; None for one after the other."""
    parts = _parts(op.body.ops)
    if len(op.indices) != 1 or parts is None:
        return None
    computing, stores = parts
    (index,) = op.indices
    accesses = [each for each in op.body.ops if isinstance(each, ops.Load | ops.Store)]
    moving = [each for each in accesses if index in each.indices]
    movable = all(_is_contiguous(each, index) for each in moving)
    if not movable or any(index not in each.indices for each in stores):
        return None
    tensors = tuple(dict.fromkeys(each.tensor for each in moving))
    widest = max(tensor.tensor.dtype.itemsize for tensor in tensors)
    count = _BYTES // widest
    while count > 1 and count * _cost(op.body.ops) > _MOST:
        count //= 2
    return Neighbours(count, computing, stores, tensors) if count * widest >= _LEAST else None


def _parts(body: Sequence[ops.Op]) -> tuple[tuple[ops.Op, ...], tuple[ops.Store, ...]] | None:
    """The ops before the stores, and the stores; None if their order matters."""
    stores = tuple(each for each in body if isinstance(each, ops.Store))
    computing = tuple(body[: len(body) - len(stores)])
    movable = all(
        is_plain(each) and (isinstance(each, ops.Load) or not each.effects) for each in computing
    )
    return (computing, stores) if stores and movable else None


def _is_contiguous(op: ops.Load | ops.Store, index: ops.Value) -> bool:
    """Whether neighbours of an element in the order of `index` are neighbours in memory."""
    type_ = op.tensor.tensor
    strides = [
        stride for each, stride in zip(op.indices, type_.strides, strict=True) if each is index
    ]
    whole = type_.dtype.bits == 8 * type_.dtype.itemsize and type_.dtype.itemsize <= _BYTES // 2
    return strides == [1] and whole and type_.space is AddressSpace.gmem


def _cost(body: Iterable[ops.Op]) -> int:
    return sum(_LONG if _is_formula(each) else 1 for each in body)


def _is_formula(op: ops.Op) -> bool:
    """Whether the maths library has a formula of many ops for an op."""
    if not isinstance(op, (ops.Unary, ops.Binary)):
        return False
    row = EVERY[op.op]
    return row.library and row.function == "rounded"


def _copies(these: Iterable[ops.Op], values: dict[ops.Value, ops.Value]) -> Iterator[ops.Op]:
    """Ops with new results, which are added to `values`."""
    for op in these:
        made = with_operands(op, values)
        for old in op.defined:
            values[old] = ops.Value(old.type, old.hint)
            fresh: dict[str, Any] = {"result": values[old]}
            made = replace(made, **fresh)
        yield made
