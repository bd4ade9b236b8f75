"""Memory of the reference interpreter: bytes of NumPy arrays, read and written as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrule.specs import DType
from interpreter import declared, scalars
from interpreter.scalars import Scalar


class OutOfBounds(AssertionError):
    """A program reads or writes outside of a tensor: it has no meaning."""


class Unwritten(AssertionError):
    """A program reads what it has not written: it is undefined."""


@dataclass(frozen=True)
class Memory:
    """The bytes from the lowest element of an array to its highest, and where a tensor begins.

    Memories of overlapping arrays share their bytes, as the arrays do.  `written`: which of these
    have been, where not all of them were before.
    """

    bytes: np.ndarray[Any, np.dtype[np.uint8]]
    first: int = 0
    written: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    @classmethod
    def undefined(cls, count: int) -> Memory:
        """New memory of so many bytes, which nobody has written."""
        return cls(np.full(count, 0xA5, np.uint8), 0, np.zeros(count, np.bool_))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Memory:
        """The memory of an array of any strides; its first element is where the tensor begins."""
        back = tuple(stride < 0 for stride in array.strides)
        # With an ellipsis, of which even an array of no dims gives a view.
        lowest = array[(*(slice(None, None, -1 if flip else None) for flip in back), ...)]
        reach = [(n - 1) * s for n, s in zip(array.shape, lowest.strides, strict=True)]
        count = sum(reach) + array.itemsize if array.size else 0
        corner = (*(slice(0, 1) for _ in back), ...)
        single = lowest[corner] if array.size else lowest.reshape(-1)[:0]
        one = np.lib.stride_tricks.as_strided(single, (1,) if count else (0,), (array.itemsize,))
        cells = np.lib.stride_tricks.as_strided(one.view(np.uint8), (count,), (1,))
        return cls(cells, sum(far for far, flip in zip(reach, back, strict=True) if flip))

    def at(self, offset: int) -> Memory:
        """The same memory for a tensor that begins so many bytes behind this one."""
        return Memory(self.bytes, self.first + offset, self.written)

    def _cell(self, dtype: DType, offset: int) -> slice:
        start = self.first + offset
        if not 0 <= start <= len(self.bytes) - dtype.itemsize:
            raise OutOfBounds(f"byte {offset} of memory with {len(self.bytes)} bytes")
        return slice(start, start + dtype.itemsize)

    def read(self, dtype: DType, offset: int) -> Scalar:
        """The number so many bytes behind the first one.  Raises OutOfBounds, Unwritten."""
        declared.seen("reads", memory=self)
        cell = self._cell(dtype, offset)
        if self.written is not None and not self.written[cell].all():
            raise Unwritten(f"byte {offset} of a fragment with {len(self.bytes)} bytes")
        return scalars.from_memory(dtype, self.bytes[cell].view(scalars.memory(dtype))[0])

    def write(self, dtype: DType, offset: int, value: Scalar) -> None:
        """Puts a number there.  Raises OutOfBounds."""
        declared.seen("writes", memory=self)
        cell = self._cell(dtype, offset)
        self.bytes[cell].view(scalars.memory(dtype))[0] = scalars.to_memory(dtype, value)
        if self.written is not None:
            self.written[cell] = True
