"""Types of values in the kernel IR: a dtype for a scalar, `TensorType` for a tensor.

The dims and strides of a tensor type are sizes of `ferrule.specs`: ints and expressions over the
program's symbols, so that two tensors that share a symbol are known to agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.specs import Dim, DType


@dataclass(frozen=True, slots=True)
class TensorType:
    """A view of memory: element (i, j, …) stands at data + sum(index * stride) elements.

    `align`: bytes that the address of the first element is a multiple of.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    align: int


Type = DType | TensorType
