"""Tensors of PyTorch in a recording, also those without memory: fake ones, and on device meta."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from dataclasses import field, replace
from functools import reduce
from math import prod
from typing import Any

from ferrule.frontends.examples import Seen
from ferrule.frontends.triton.foreign import own
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import row_major_strides


@dataclass(frozen=True, slots=True)
class Recorded:
    """A tensor as a launch saw it.

    `storage` is the memory that it is a view of, from element `offset` on, of `memory` bytes; two
    tensors of a recording with the same storage are views of the same.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    storage: int
    memory: int
    offset: int
    aligned: bool
    owner: Any = field(compare=False, repr=False)

    @property
    def is_compact(self) -> bool:
        """Whether its elements lie one behind the other."""
        row_major = row_major_strides(self.shape)
        return tuple(row_major) == self.strides or 0 in self.shape

    @property
    def reach(self) -> int:
        """The bytes of memory up to the end of its last element, from its first one on."""
        if 0 in self.shape:
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return (1 + sum((size - 1) * step for size, step in steps)) * self.dtype.bits // 8

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its memory, and nothing in it is left out, or there twice."""
        dims = sorted((st, si) for si, st in zip(self.shape, self.strides, strict=True) if si != 1)
        sizes = [size for _, size in dims]
        steps = [prod(sizes[:at]) for at in range(len(sizes))]
        in_order = 0 in self.shape or steps == [step for step, _ in dims]
        size = prod(self.shape) * self.dtype.bits // 8
        return self.offset == 0 and in_order and size == self.memory

    def whole(self, sizes: Sequence[int]) -> Recorded:
        """The tensor of these sizes that is all of the memory, if it is as large."""
        steps = tuple(prod(sizes[at + 1 :]) for at in range(len(sizes)))
        return replace(self, shape=tuple(sizes), strides=steps, offset=0)

    def seen(self) -> Seen:
        """The same as an example."""
        return Seen(self.shape, self.strides, self.dtype, self.aligned)


class Shape(tuple[Any, ...]):
    """The sizes of a tensor, for a host function a `torch.Size`."""

    __slots__ = ()

    __class__: Any = property(lambda _: sys.modules["torch"].Size)

    def numel(self) -> Any:
        """The number of elements."""
        return reduce(operator.mul, self, 1)

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Shape(found) if type(found) is tuple else found

    def __add__(self, other: Any) -> Any:
        return Shape((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Shape((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return Shape(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size({[*self]!r})"


def is_torch(value: object) -> bool:
    """Whether this is a tensor of PyTorch, with or without memory."""
    return all(hasattr(value, name) for name in ("untyped_storage", "storage_offset", "data_ptr"))


def recorded(name: str, tensor: Any) -> Recorded:
    """A tensor of PyTorch as it is now.  TypeError for a dtype that no kernel can have."""
    with sys.modules["torch"]._C.DisableTorchFunction():
        return _recorded(name, tensor)


def _recorded(name: str, tensor: Any) -> Recorded:
    dtype = own(tensor.dtype, name)
    if not isinstance(dtype, DType):
        raise TypeError(f"{name} is a tensor of {tensor.dtype}, which ferrule does not have")
    offset, storage = int(tensor.storage_offset()), tensor.untyped_storage()
    return Recorded(
        tuple(map(int, tensor.shape)),
        tuple(map(int, tensor.stride())),
        dtype,
        int(storage._cdata),
        int(storage.nbytes()),
        offset,
        _address(tensor, offset) % 16 == 0,
        storage,
    )


def _address(tensor: Any, offset: int) -> int:
    """The address, as far as its alignment goes: memory that is only imagined is aligned."""
    imagined = tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor"
    return offset * int(tensor.element_size()) if imagined else int(tensor.data_ptr())
