"""Memory of the reference interpreter: bytes of NumPy arrays, read and written as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrule.specs import DType
from interpreter import scalars
from interpreter.scalars import Scalar


class OutOfBounds(AssertionError):
    """A program reads or writes outside of a tensor: it has no meaning."""


@dataclass(frozen=True)
class Memory:
    """The bytes from the lowest element of an array to its highest, and where a tensor begins.

    Memories of overlapping arrays share their bytes, as the arrays do.
    """

    bytes: np.ndarray[Any, np.dtype[np.uint8]]
    first: int = 0

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
        return Memory(self.bytes, self.first + offset)

    def _cell(self, dtype: DType, offset: int) -> np.ndarray[Any, Any]:
        start = self.first + offset
        if not 0 <= start <= len(self.bytes) - dtype.itemsize:
            raise OutOfBounds(f"byte {offset} of memory with {len(self.bytes)} bytes")
        return self.bytes[start : start + dtype.itemsize].view(scalars.memory(dtype))

    def read(self, dtype: DType, offset: int) -> Scalar:
        """The number so many bytes behind the first one.  Raises OutOfBounds."""
        return scalars.from_memory(dtype, self._cell(dtype, offset)[0])

    def write(self, dtype: DType, offset: int, value: Scalar) -> None:
        """Puts a number there.  Raises OutOfBounds."""
        self._cell(dtype, offset)[0] = scalars.to_memory(dtype, value)
